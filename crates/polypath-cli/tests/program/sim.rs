//! Simulated scenarios, and the lists of policies and profiles.

use serde_json::Value;

use crate::setup::polypath;

const SCENARIO: &str = "schema = 1\nname = \"short\"\n\
    [[path]]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
    [workload]\nkind = \"bulk\"\nsize = \"200 kB\"\n";

fn scenario(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    std::fs::write(&file, text).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (folder, name)
}

#[test]
fn a_table_for_people() {
    let (_folder, file) = scenario(SCENARIO);
    let ended = polypath(&["sim", &file]).wait();
    let out = &ended.succeeds().out;
    assert!(out.starts_with("short, seed 1: all associations are closed"), "{out}");
    assert!(out.contains("200000 of 200000 bytes"), "{out}");
    assert!(out.contains("links, in packets"), "{out}");
    assert_eq!(ended.err, "");
}

#[test]
fn files_for_machines_are_the_same_twice() {
    let (folder, file) = scenario(SCENARIO);
    let run = |n: u8| {
        let name = |what: &str| folder.path().join(format!("{n}.{what}"));
        let text = |what: &str| name(what).to_str().unwrap().to_owned();
        let args = [
            "sim",
            &file,
            "--json",
            "--seed",
            "7",
            "--set",
            "path.0.loss=2 %",
            "--pcap",
            &text("pcapng"),
            "--series",
            &text("csv"),
        ];
        let json = polypath(&args).wait().json();
        (json, std::fs::read(name("pcapng")).unwrap(), std::fs::read(name("csv")).unwrap())
    };
    let (json, pcap, csv) = run(1);
    assert_eq!(json["seed"], 7);
    assert_eq!(json["associations"][0]["complete"], true);
    assert!(json["links"][0]["counts"]["lost"].as_u64().unwrap() > 0);
    assert_eq!(pcap[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    let csv_text = String::from_utf8(csv.clone()).unwrap();
    assert!(csv_text.starts_with("association,side,path,time_s,cwnd_bytes"));
    assert!(csv_text.lines().count() > 10);
    assert_eq!(run(2), (json, pcap, csv));
}

#[test]
fn wrong_scenarios_are_one_line() {
    let (_folder, file) = scenario("schema = 1\n[[path]]\nrato = \"10 Mbit/s\"\n");
    let line = polypath(&["sim", &file]).wait().complains(1, &["path[0].rato", "rate"]);
    assert!(line.contains("scenario.toml:3"), "{line}");
    let (_folder, file) = scenario(SCENARIO);
    let ended = polypath(&["sim", &file, "--set", "path.0.rate=fast"]).wait();
    ended.complains(2, &["path[0].rate", "Mbit/s"]);
    polypath(&["sim", &file, "--set", "name"]).wait().complains(2, &["KEY=VALUE"]);
    let ended = polypath(&["sim", "no-such-file.toml"]).wait();
    ended.complains(1, &["cannot read no-such-file.toml: no such file or directory"]);
}

#[test]
fn policies_and_profiles_are_listed() {
    let text = polypath(&["policies"]).wait().succeeds().out.clone();
    assert!(text.contains("retransmission: Which path a retransmission is sent on."), "{text}");
    assert!(text.contains("* earliest"), "{text}");
    let policies = polypath(&["policies", "--json"]).wait().json();
    let decisions: Vec<&Value> =
        policies.as_array().unwrap().iter().map(|s| &s["decision"]).collect();
    assert!(decisions.len() >= 9 && decisions.contains(&&Value::from("probing")), "{decisions:?}");
    let text = polypath(&["profiles"]).wait().succeeds().out.clone();
    assert!(text.contains("rto_min = 1 s"), "{text}");
    let profiles = polypath(&["profiles", "--json"]).wait().json();
    let profile = |name: &str| {
        let profiles = profiles.as_array().unwrap();
        profiles.iter().find(|profile| profile["profile"] == name).unwrap()
    };
    assert_eq!(profile("rfc9260")["constants"]["path_max_retrans"], "5");
    assert_eq!(profile("ns2-2.35")["changes"]["rto_initial"], "3 s");
    assert_eq!(profile("ns2-2.35")["changes"].get("rto_min"), None);
}
