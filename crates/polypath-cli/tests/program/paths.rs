//! Two paths through the emulator: one is cut and restored.

use serde_json::Value;
use tempfile::TempDir;

use crate::setup::{BRISK, Files, Process, polypath};

/// The emulator with paths of 10 Mbit/s and 20 ms between 127.83.NET.1, .3, ... and .2, .4, ...
pub(crate) struct Emulator {
    pub(crate) process: Process,
    _folder: TempDir,
    receivers: Vec<String>,
    joined: String,
}

impl Emulator {
    pub(crate) fn new(net: u8, paths: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = |host: usize| format!("127.83.{net}.{host}");
        let senders: Vec<String> = (0..paths).map(|n| address(2 * n + 1)).collect();
        let receivers: Vec<String> = (0..paths).map(|n| address(2 * n + 2)).collect();
        let mut scenario = String::from("schema = 1\n");
        for n in 0..paths {
            scenario += &format!(
                "[[path]]\nname = \"p{n}\"\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
                 queue = \"100 packets\"\n"
            );
        }
        scenario += &format!(
            "[workload]\nkind = \"bulk\"\nsize = \"1 MB\"\n\
             [emulator]\nsenders = {senders:?}\nreceivers = {receivers:?}\n"
        );
        let file = folder.path().join("scenario.toml");
        std::fs::write(&file, scenario).unwrap();
        let mut process = polypath(&["emulate", file.to_str().unwrap()]);
        process.said("ready");
        let joined = receivers.join(",");
        Self { process, _folder: folder, receivers, joined }
    }

    /// The receiver's addresses, for `--bind`.
    pub(crate) fn receivers(&self) -> &str {
        &self.joined
    }

    /// The receiver's address on the n-th path, for the sender.
    pub(crate) fn host(&self, n: usize) -> String {
        let receiver = &self.receivers[n];
        let (net, host) = receiver.rsplit_once('.').unwrap();
        let sender = host.parse::<u8>().unwrap() - 1;
        format!("{receiver}:9900={net}.{sender}")
    }
}

fn changes(summary: &Value, path: u64) -> Vec<&str> {
    let changes = summary["changes"].as_array().unwrap().iter();
    changes.filter(|c| c["path"] == path).map(|c| c["change"].as_str().unwrap()).collect()
}

#[test]
fn the_primary_is_cut_half_way_and_restored() {
    let files = Files::new(8_000_000);
    let mut emulator = Emulator::new(1, 2);
    let out = files.text("out");
    // One path at a time, as in RFC 9260.
    let one_path = ["--profile", "rfc9260"];
    let mut args = vec!["recv", "--bind", emulator.receivers(), "-o", &out, "--json"];
    args.extend(one_path.iter().chain(BRISK));
    let mut recv = polypath(&args);
    recv.said("waiting on");
    let (file, first, second) = (files.text("file"), emulator.host(0), emulator.host(1));
    let mut args = vec!["send", &file, &first, "--via", &second, "--json"];
    args.extend(one_path.iter().chain(BRISK));
    let mut send = polypath(&args);
    files.wait_for(2_000_000);
    emulator.process.say("down p0");
    emulator.process.said("done: down p0");
    files.wait_for(5_000_000);
    emulator.process.say("up p0");
    emulator.process.said("done: up p0");
    let (sent, received) = (send.wait().json(), recv.wait().json());
    files.assert_received("file");
    assert_eq!(sent["sha256"], received["sha256"]);
    for summary in [&sent, &received] {
        let bytes = |n: usize| summary["paths"][n]["bytes"].as_u64().unwrap();
        assert!(bytes(0) > 500_000 && bytes(1) > 500_000, "{summary}");
        let blackout = summary["blackout_s"].as_f64().unwrap();
        assert!((0.2..15.0).contains(&blackout), "{blackout}");
    }
    assert_eq!(changes(&sent, 0)[..2], ["inactive", "active"]);
    assert_eq!(changes(&sent, 1)[0], "takes_new_data");
    emulator.process.say("report");
    emulator.process.said("p0/forward");
    emulator.process.say("quit");
    emulator.process.wait().succeeds();
}

#[test]
fn progress_is_told_where_there_is_no_terminal() {
    let files = Files::new(16_000_000);
    let emulator = Emulator::new(2, 2);
    let out = files.text("out");
    let mut recv = polypath(&["recv", "--bind", emulator.receivers(), "-o", &out]);
    recv.said("waiting on");
    let (first, second) = (emulator.host(0), emulator.host(1));
    let mut send = polypath(&["send", &files.text("file"), &first, "--via", &second]);
    let ended = send.wait();
    recv.wait().succeeds();
    assert!(ended.succeeds().err.contains("file: "), "{}", ended.err);
    assert!(ended.err.contains("* path 0  127.83.2.1 > 127.83.2.2  active"), "{}", ended.err);
    assert!(ended.out.contains("longest time without new acknowledgements"), "{}", ended.out);
    assert!(!ended.err.contains('\u{1b}'));
}

#[test]
fn wrong_commands_do_not_end_the_emulator() {
    let mut emulator = Emulator::new(3, 1);
    emulator.process.say("cut p0");
    emulator.process.said("polypath: no command \"cut\"");
    emulator.process.say("down p7");
    emulator.process.said("no path \"p7\"; did you mean \"p0\"? allowed: p0");
    emulator.process.say("rate p0 5 Mbit/s");
    emulator.process.said("done: rate p0 5 Mbit/s");
    emulator.process.say("quit");
    emulator.process.wait().succeeds();
}

#[test]
fn ports_in_use_are_told() {
    let _emulator = Emulator::new(4, 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    let scenario = "schema = 1\n[[path]]\n[workload]\nkind = \"bulk\"\nsize = \"1 MB\"\n\
        [emulator]\nsenders = [\"127.83.4.1\"]\nreceivers = [\"127.83.4.2\"]\n";
    std::fs::write(&file, scenario).unwrap();
    let ended = polypath(&["emulate", file.to_str().unwrap()]).wait();
    ended.complains(1, &["127.83.4.2:9900", "in use"]);
}
