//! Tests of reading scenario files, and of the errors that wrong ones cause.

use proptest::prelude::*;

use super::*;
use crate::RunOptions;
use crate::link::{
    Codel, LossModel, LossScript, Middlebox, PacketKind, RateTrace, Red, Reordering,
};
use crate::network::NatBehavior;
use crate::units::{Probability, QueueLimit, Rate, Size, Span, SpanRange};

const GOOD: &str = r#"
schema = 1
name = "good"
[[path]]
rate = "10 Mbit/s"
delay = "45 ms"
[workload]
size = "1 MB"
"#;

/// The error that `text` causes.
fn error(text: &str) -> String {
    Scenario::from_toml(text).expect_err(text).to_string()
}

/// The error that [`GOOD`] causes with `from` replaced by `to`.
fn edited(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    error(&GOOD.replace(from, to))
}

const EDGE: &str = "edge = { rate = \"100 Mbit/s\" }";

/// The error of [`GOOD`] with this cross-traffic and another line on its path.
fn cross(traffic: &str, line: &str) -> String {
    edited("[workload]", &format!("cross_traffic = {traffic}\n{line}\n[workload]"))
}

/// The error of [`GOOD`] with background traffic from its sender.
fn traffic(lines: &str) -> String {
    error(&format!("{GOOD}[[traffic]]\nfrom = \"sender.0\"\n{lines}\n"))
}

/// The error of [`GOOD`] with another path.
fn sharing(lines: &str) -> String {
    edited("[workload]", &format!("\n\n[[path]]\n{lines}\n[workload]"))
}

/// The error of [`GOOD`] with an association in place of its workload.
fn associations(lines: &str) -> String {
    let association = "[[association]]\nfrom = \"sender\"\nto = \"receiver\"\n\n\
        workload = { size = \"1 B\" }\n";
    edited("[workload]\nsize = \"1 MB\"\n", &format!("{association}{lines}\n"))
}

#[test]
fn constants_and_policies_have_a_table_each() {
    let mut scenario = Scenario::from_toml(GOOD).unwrap();
    scenario.transport.both.scheduler = Some("primary".into());
    let error = scenario.validate().unwrap_err().to_string();
    assert_eq!(error, "transport.scheduler: belongs to [policy]");
    let error = edited("[workload]", "[transport]\nscheduler = \"primary\"\n[workload]");
    assert!(error.starts_with("line 8: transport.scheduler: no such key; "), "{error}");
}

#[test]
fn sizes_may_be_numbers_of_bytes() {
    let text = GOOD.replace("[workload]", "[transport]\nreceive_buffer = 65536\n[workload]");
    let scenario = Scenario::from_toml(&text).unwrap();
    assert_eq!(scenario.transport.both.receive_buffer, Some(65_536));
    assert!(scenario.to_toml().contains("receive_buffer = \"64 KiB\""));
}

#[test]
fn a_good_one() {
    let scenario = Scenario::from_toml(GOOD).unwrap();
    assert_eq!(scenario.seed, 1);
    assert_eq!(scenario.paths[0].rate, Some(Rate::mbit(10)));
    assert_eq!(scenario.workload.as_ref().unwrap().size, Some(Size(1_000_000)));
    let built = Scenario::new("good")
        .path(PathSpec::new(Rate::mbit(10), Span::millis(45)))
        .workload(Workload::bulk(Size(1_000_000)));
    assert_eq!(scenario, built);
}

/// Each message found is the one expected, in one line.
fn each_is_one_line<const N: usize>(table: [(String, &str); N]) {
    for (found, expected) in table {
        assert_eq!(found, expected);
        assert_eq!(found.lines().count(), 1);
    }
}

#[test]
fn wrong_keys_get_one_line() {
    each_is_one_line([
        (
            edited("delay =", "dealy ="),
            "line 6: path[0].dealy: no such key; did you mean \"delay\"? \
          allowed: name, addresses, forward, back, edge, shares, cross_traffic, nat, rate, trace, delay, queue, mtu, mark_at, red, codel, policer, middlebox, loss, reorder, \
          duplicate, corrupt",
        ),
        (
            edited("size =", "bytes ="),
            "line 8: workload.bytes: no such key; allowed: kind, \
          direction, size, messages, message_size, reply_size, interval, application, streams, unordered, delivery, \
           lifetime, retransmissions, priorities, unreliable, start, striped, read_rate, reset_every, reset",
        ),
        (
            edited("[workload]", "[transport]\nrto_mni = \"1 s\"\n[workload]"),
            "line 8: \
          transport.rto_mni: no such key; did you mean \"rto_min\"? allowed: profile, \
          encapsulation, rto_initial, rto_min, rto_max, max_burst, burst_rule, new_data_waits, procedures, \
          path_confirmation, cookie_life, association_max_retrans, path_max_retrans, potentially_failed_max_retrans, \
          potentially_failed_cwnd, change_primary_threshold, max_init_retransmits, plain_init, heartbeat_interval, \
          hb_max_burst, sack_delay, sack_every, first_sack_at_once, srtt_heuristic, tie_seed, fast_retransmit_reports, \
          data_with_cookie, partial_reliability, interleaving, nr_sack, buffer_splitting, receive_buffer, \
          initial_receive_buffer, send_buffer, initial_send_buffer, buffer_budget, \
          max_message_size, outbound_streams, inbound_streams, initial_ssthresh, initial_cwnd, cwnd_floor, path_mtu, \
          max_paths, authentication, authenticated_chunks, dynamic_addresses, unauthenticated_addresses, \
          adaptation_layer, stream_reconfiguration, path_mtu_discovery, ecn, delivery, redundant_copies, copy_rate, \
          copy_share, full_mesh, sender, receiver",
        ),
        (edited("schema = 1\n", ""), "schema: missing"),
        (edited("schema = 1", "schema = 2"), "line 2: schema: found 2; allowed: 1"),
    ]);
}

#[test]
fn wrong_quantities_get_one_line() {
    each_is_one_line([
        (
            edited("10 Mbit/s", "10 Mbps"),
            "line 5: path[0].rate: \"10 Mbps\" is not a rate; \
          allowed: a number and bit/s, kbit/s, Mbit/s or Gbit/s, such as \"10 Mbit/s\"",
        ),
        (
            edited("\"45 ms\"", "45"),
            "line 6: path[0].delay: found integer `45`; allowed: a number \
          and ns, us, ms, s, min or h, such as \"45 ms\"",
        ),
        (edited("10 Mbit/s", "0 bit/s"), "line 5: path[0].rate: found 0 bit/s; allowed: above 0"),
        (
            edited("delay = \"45 ms\"", "loss = \"101 %\""),
            "line 6: path[0].loss: \"101 %\" is not \
          a probability; allowed: \"0 %\" to \"100 %\", or a number from 0 to 1",
        ),
        (
            edited("delay = \"45 ms\"", "loss = { good_to_bad = \"1 %\" }"),
            "line 6: path[0].loss: \
          neither a whole Gilbert-Elliott model nor a script; allowed: a probability such \
          as \"3 %\", a table with good_to_bad, bad_to_good, loss_good and loss_bad, or a script \
          such as { packets = [3, 17] } or { data = [5], sack = [2] }",
        ),
        (
            edited("delay = \"45 ms\"", "loss = { good_to_bda = \"1 %\" }"),
            "line 6: \
          path[0].loss.good_to_bda: no such key; did you mean \"good_to_bad\"? allowed: \
          good_to_bad, bad_to_good, loss_good, loss_bad, packets, data, sack, init, init_ack, \
          cookie_echo, cookie_ack, heartbeat, heartbeat_ack, shutdown, shutdown_ack, \
          shutdown_complete, abort, asconf, asconf_ack",
        ),
        (
            edited("delay = \"45 ms\"", "queue = \"50\""),
            "line 6: path[0].queue: \"50\" is not a \
          queue limit; allowed: \"50 packets\", a size such as \"64 KiB\", or \"unlimited\"",
        ),
        (
            edited("delay = \"45 ms\"", "addresses = [\"10.0.0.1\", \"fd00::2\"]"),
            "line 6: \
          path[0].addresses: IPv4 and IPv6 do not mix on one path",
        ),
    ]);
}

#[test]
fn wrong_transports_get_one_line() {
    each_is_one_line([
        (
            edited("[workload]", "[transport]\nprofile = \"rfc9620\"\n[workload]"),
            "line 8: \
          transport.profile: no profile \"rfc9620\"; did you mean \"rfc9260\"? \
          allowed: rfc9260, modern, cmt, cmt-pf, paper-2006, ns2-2.35",
        ),
        (
            edited("[workload]", "[transport]\nrto_min = \"2 s\"\n[workload]"),
            "line 7: \
          transport.rto_initial: found 1 s; allowed: from rto_min (2 s) to rto_max (1 min)",
        ),
        (
            edited("[workload]", "[transport]\nreceiver = { path_mtu = \"100 B\" }\n[workload]"),
            "line 8: transport.receiver.path_mtu: found 100 B; allowed: from 576 B to 65535 B",
        ),
        (
            edited("[workload]", "[transport]\nreceive_buffer = \"5 GiB\"\n[workload]"),
            "line 8: \
          transport.receive_buffer: found 5 GiB; allowed: from 1500 B to 1 GiB",
        ),
        (
            edited("[workload]", "[transport]\nreceive_buffer = \"1 Mbit\"\n[workload]"),
            "line 8: transport.receive_buffer: found 1 Mbit; allowed: from 1500 B to 1 GiB: a \
          number and B, kB, MB, GB (powers of 1000), KiB, MiB or GiB (powers of 1024), such as \
          \"64 KiB\"",
        ),
        (
            edited("[workload]", "[transport]\nmax_burst = \"4\"\n[workload]"),
            "line 8: transport.max_burst: found string \"4\"; allowed: from 1 to 1048576",
        ),
        (
            edited("[workload]", "[transport]\ntie_seed = 0\n[workload]"),
            "line 8: transport.tie_seed: found 0; allowed: from 1 to 4294944442, or off",
        ),
        (
            edited("[workload]", "[transport]\nsender = { burst_rule = \"off\" }\n[workload]"),
            "line 8: transport.sender.burst_rule: found \"off\"; allowed: flight-size, \
          ack-clocked, after-retransmission, packet-count",
        ),
        (
            edited("[workload]", "[policy]\nscheduler = \"primry\"\n[workload]"),
            "line 8: \
          policy.scheduler: found \"primry\"; did you mean \"primary\"? allowed: primary, \
          concurrent, delay-aware, bottleneck-aware, earliest",
        ),
        (
            edited(
                "[workload]",
                "[policy]\nretransmission = \"same\"\nsender = { probing = \"after-rto\" }\n[workload]",
            ),
            "line 9: policy.sender.probing: found after-rto; allowed: idle with retransmission same: \
          the retransmission itself goes to the path that timed out",
        ),
    ]);
}

#[test]
fn wrong_workloads_get_one_line() {
    each_is_one_line([
        (
            edited("size = \"1 MB\"", "kind = \"bulky\""),
            "line 8: workload.kind: \"bulky\" is not \
          known; did you mean \"bulk\"? allowed: bulk, periodic, request-reply, application",
        ),
        (
            edited("size = \"1 MB\"", "kind = \"bulk\""),
            "line 7: workload.size: missing; kind \
          \"bulk\" needs it",
        ),
        (
            edited("size = \"1 MB\"", "kind = \"periodic\"\nmessages = 3"),
            "line 7: \
          workload.interval: kind \"periodic\" needs one above 0 s",
        ),
        (
            edited("size = \"1 MB\"", "size = \"1 MB\"\nreply_size = \"1 B\""),
            "line 9: \
          workload.reply_size: does not belong to kind \"bulk\"",
        ),
        (
            edited("size = \"1 MB\"", "size = \"1 MB\"\nstreams = 65"),
            "line 9: workload.streams: \
          allowed: at most 64, the streams of [transport]",
        ),
        (
            edited("size = \"1 MB\"", "size = \"1 MB\"\nstreams = 70000"),
            "line 9: workload.streams: \
          found integer `70000`; allowed: an integer from 0 to 65535",
        ),
        (
            edited("[workload]", "[transport]\nfull_mesh = \"yes\"\n[workload]"),
            "line 8: \
          transport.full_mesh: found string \"yes\"; allowed: true or false",
        ),
        (
            edited("name = \"good\"", "transport = 3"),
            "line 3: transport: found integer `3`; \
          allowed: a table",
        ),
        (
            edited("size = \"1 MB\"", "size = \"1 MB\"\nmessage_size = \"9 B .. 1 B\""),
            "line 9: \
          workload.message_size: \"9 B .. 1 B\" is not a size of messages; allowed: a size from 1 \
          B, such as \"1452 B\", or a range such as \"1 B .. 200 kB\"",
        ),
    ]);
}

#[test]
fn wrong_faults_get_one_line() {
    each_is_one_line([
        (
            error(&format!("{GOOD}[[fault]]\nat = \"1 s\"\npath = 1\nkind = \"down\"\n")),
            "line 11: fault[0].path: no path \"1\"; allowed: path0",
        ),
        (
            error(&format!("{GOOD}[[fault]]\nat = \"1 s\"\npath = 0\nkind = \"rate\"\n")),
            "line 9: \
          fault[0].rate: missing; kind \"rate\" needs it",
        ),
        (
            error(&format!("{GOOD}[[fault]]\nat = \"1 s\"\nkind = \"down\"\n")),
            "line 9: fault[0]: \
          allowed: either path or link",
        ),
    ]);
}

#[test]
fn wrong_networks_get_one_line() {
    each_is_one_line([
        (
            error("schema = 1\n"),
            "path: missing; allowed: at least one [[path]], or [[node]] and \
          [[link]]",
        ),
        (
            error(
                "schema = 1\n[[node]]\nname = \"a\"\naddresses = [\"10.0.0.1\"]\n[[link]]\n\
          between = [\"a\", \"b\"]\n",
            ),
            "line 6: link[0].between[1]: no node \"b\"; did you mean \
          \"a\"? allowed: a.0, a",
        ),
        (
            error("schema = 1\n[[node]]\nname = \"a\"\naddresses = [\"10.0.0.300\"]\n"),
            "line 4: \
          node[0].addresses[0]: invalid IP address syntax",
        ),
        (
            error(
                "schema = 1\n[[node]]\nname = \"a\"\naddresses = [\"10.0.0.1\"]\n[[node]]\n\
                 name = \"b\"\naddresses = [\"10.0.0.2\"]\n[workload]\nsize = \"1 B\"\n",
            ),
            "line 8: workload: no way leads from a to b, or none back",
        ),
    ]);
}

#[test]
fn wrong_shared_links_get_one_line() {
    each_is_one_line([
        (
            sharing("shares = \"path0\""),
            "line 10: path[1].shares: no path above with edge \"path0\"; nothing is allowed here",
        ),
        (
            sharing("shares = \"other\"\nedge = { rate = \"1 Mbit/s\" }\nloss = \"1 %\""),
            "line 12: path[1].loss: is that of path \"other\", whose link this one shares",
        ),
        (
            sharing("shares = \"other\"\nedge = { rate = \"1 Mbit/s\" }\nmark_at = 3"),
            "line 12: path[1].mark_at: is that of path \"other\", whose link this one shares",
        ),
    ]);
}

#[test]
fn wrong_sets_of_associations_get_one_line() {
    each_is_one_line([
        (
            associations("paths = [\"path1\"]"),
            "line 12: association[0].paths[0]: no path \"path1\"; did you mean \"path0\"? \
          allowed: path0",
        ),
        (
            associations("paths = [0, 0]"),
            "line 12: association[0].paths[1]: path 0 is there already",
        ),
        (
            associations("transport = { rto_min = \"2 s\" }"),
            "line 12: association[0].transport.rto_initial: found 1 s; allowed: from rto_min (2 s) to \
          rto_max (1 min)",
        ),
        (
            associations("policy = { scheduler = \"concurent\" }"),
            "line 12: association[0].policy.scheduler: found \"concurent\"; did you mean \
          \"concurrent\"? allowed: primary, concurrent, delay-aware, bottleneck-aware, earliest",
        ),
        (
            associations(
                "[[association]]\nfrom = \"sender\"\nto = \"receiver\"\nname = \"association0\"\nworkload = { size = \"1 B\" }",
            ),
            "line 15: association[1].name: another association is called \"association0\"",
        ),
        (
            edited(
                "size = \"1 MB\"",
                "kind = \"periodic\"\nmessages = 3\ninterval = \"1 s\"\nstriped = true",
            ),
            "line 11: workload.striped: does not belong to kind \"periodic\"",
        ),
        (
            edited("size =", "striped = true\nlifetime = \"1 s\"\nsize ="),
            "line 9: workload.lifetime: a striped transfer lasts until everything has arrived; not with striped",
        ),
    ]);
}

#[test]
fn wrong_background_traffic_gets_one_line() {
    each_is_one_line([
        (
            cross("{}", ""),
            "line 7: path[0].cross_traffic: needs edge: the links of its nodes are like those of \
          the path's ends",
        ),
        (
            cross("{ load = \"201 %\" }", EDGE),
            "line 7: path[0].cross_traffic.load: \"201 %\" is not a load; allowed: \"0 %\" to \
          \"200 %\", or a number from 0 to 2",
        ),
        (
            cross("{ load = -0.5 }", EDGE),
            "line 7: path[0].cross_traffic.load: \"-0.5\" is not a load; allowed: \"0 %\" to \
          \"200 %\", or a number from 0 to 2",
        ),
        (
            cross("{ back = { rate = \"21 Mbit/s\" } }", EDGE),
            "line 7: path[0].cross_traffic.back.rate: found 21 Mbit/s; allowed: at most 20 Mbit/s, \
          twice the link's rate",
        ),
        (
            cross("{ rate = \"8 Mbit/s\", load = \"80 %\" }", EDGE),
            "line 7: path[0].cross_traffic: either load or rate, not both",
        ),
        (
            cross("{ laod = \"80 %\" }", EDGE),
            "line 7: path[0].cross_traffic.laod: no such key; did you mean \"load\"? allowed: load, \
          rate, forward, back, nodes, sources, packet_sizes, shape, on, off, delay",
        ),
        (
            cross("{ nodes = 0 }", EDGE),
            "line 7: path[0].cross_traffic.nodes: found 0; allowed: from 1 to 100",
        ),
        (
            cross("{ packet_sizes = [\"44 B\", \"64 KiB\"] }", EDGE),
            "line 7: path[0].cross_traffic.packet_sizes[1]: found 64 KiB; allowed: from 1 B to \
          65535 B",
        ),
        (
            cross("{ shape = 1 }", EDGE),
            "line 7: path[0].cross_traffic.shape: found 1; allowed: above 1 (below, there is no \
          mean), up to 100",
        ),
        (
            cross("{ delay = \"20 ms .. 5 ms\" }", EDGE),
            "line 7: path[0].cross_traffic.delay: \"20 ms .. 5 ms\" is not a range of times; \
          allowed: \"5 ms .. 20 ms\", or one time such as \"10 ms\"",
        ),
        (
            cross("{}", "edge = { rate = \"1 Mbit/s\" }"),
            "line 7: path[0].cross_traffic: 4 edge links of 1 Mbit/s do not carry that load",
        ),
        (
            traffic("to = \"receiver.1\"\nrate = \"1 Mbit/s\""),
            "line 11: traffic[0].to: no node \"receiver.1\"; did you mean \"receiver.0\"? allowed: \
          sender.0, receiver.0",
        ),
        (
            traffic("to = \"sender.0\"\nrate = \"1 Mbit/s\""),
            "line 11: traffic[0].to: is the node that sends",
        ),
        (traffic("to = \"receiver.0\""), "line 9: traffic[0].rate: missing"),
        (
            traffic("to = \"receiver.0\"\nrate = \"0 bit/s\""),
            "line 12: traffic[0].rate: found 0 bit/s; allowed: above 0",
        ),
        (
            traffic("to = \"receiver.0\"\nrate = \"1 Mbit/s\"\nkind = \"poisson\""),
            "line 13: traffic[0].kind: \"poisson\" is not known; allowed: pareto, constant, tcp",
        ),
        (
            traffic("to = \"receiver.0\"\nrate = \"1 Mbit/s\"\nkind = \"constant\"\noff = \"1 s\""),
            "line 14: traffic[0].off: belongs to kind \"pareto\"",
        ),
        (
            traffic("to = \"receiver.0\"\nrate = \"1 Mbit/s\"\non = \"1 us\""),
            "line 13: traffic[0].on: found 1 us; allowed: at least 120 us, a hundredth of the time \
          from packet to packet",
        ),
        (
            traffic("to = \"receiver.0\"\nrate = \"1 Mbit/s\"\nshpae = 2"),
            "line 13: traffic[0].shpae: no such key; did you mean \"shape\"? allowed: name, from, \
          to, kind, rate, packet_size, sources, start, shape, on, off, congestion, window",
        ),
    ]);
}

#[test]
fn wrong_other_sections_get_one_line() {
    each_is_one_line([
        (
            error(&format!("{GOOD}[run]\ncheck_every = \"now\"\n")),
            "line 10: run.check_every: \"now\" \
          is not known; allowed: \"event\", \"1000 events\" or \"end\"",
        ),
        (
            error(&format!("{GOOD}[series]\ninterval = \"0 s\"\n")),
            "line 10: series.interval: found \
          0 s; allowed: above 0 s",
        ),
        (
            error(&format!("{GOOD}[emulator]\nsenders = [\"127.0.0.1\", \"127.0.0.2\"]\n")),
            "line 10: \
          emulator.senders: found 2 addresses; allowed: one for each [[path]] (1)",
        ),
        (
            edited("name = \"good\"", "seed = -1"),
            "line 3: seed: found integer `-1`; allowed: an \
          integer from 0, or a string such as \"0x1f\"",
        ),
        (
            edited("name = \"good\"", "extends = \"base.toml\""),
            "line 3: extends: only a scenario in \
          a file can extend another file",
        ),
    ]);
}

#[test]
fn not_toml_is_one_line_too() {
    let error = error("schema = 1\nname = \"x\n");
    assert!(error.starts_with("line 2: not TOML: "), "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn files_extend_files() {
    let folder = std::env::temp_dir().join(format!("polypath-extends-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("base.toml", GOOD);
    write("more.toml", "extends = \"base.toml\"\nname = \"more\"\n[workload]\nstreams = 4\n");
    let more = Scenario::from_file(folder.join("more.toml")).unwrap();
    assert_eq!(more.name, "more");
    let workload = more.workload.unwrap();
    assert_eq!((workload.streams, workload.size), (Some(4), Some(Size(1_000_000))));

    write("wrong.toml", "extends = \"base.toml\"\n\n[run]\nlimt = \"1 s\"\n");
    let error = Scenario::from_file(folder.join("wrong.toml")).unwrap_err().to_string();
    let place = format!("{}:4: ", folder.join("wrong.toml").display());
    assert!(error.starts_with(&format!("{place}run.limt: no such key; did you mean")), "{error}");

    // An error in the base file is reported with its place in the base file.
    write("base.toml", &GOOD.replace("45 ms", "45 sm"));
    let error = Scenario::from_file(folder.join("more.toml")).unwrap_err().to_string();
    let place = format!("{}:6: path[0].delay: ", folder.join("base.toml").display());
    assert!(error.starts_with(&place), "{error}");

    write("circle.toml", "extends = \"circle.toml\"\n");
    let error = Scenario::from_file(folder.join("circle.toml")).unwrap_err().to_string();
    assert!(error.ends_with(":1: extends: more than 16 files deep, or in a circle"), "{error}");
    let missing = Scenario::from_file(folder.join("none.toml")).unwrap_err().to_string();
    assert!(missing.contains("none.toml: cannot be read: "), "{missing}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A file may name its traces, relative to itself; a text has them itself.
#[test]
fn traces_are_read_from_files() {
    let folder = std::env::temp_dir().join(format!("polypath-traces-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("lte.up", "3\n3\n8\n");
    let good = GOOD.replacen("rate = \"10 Mbit/s\"", "trace = \"lte.up\"", 1);
    assert_ne!(good, GOOD);
    write("good.toml", &good);
    let scenario = Scenario::from_file(folder.join("good.toml")).unwrap();
    assert_eq!(scenario.paths[0].trace, Some(RateTrace::new(vec![3, 3, 8]).unwrap()));
    // It no longer needs the file.
    assert_eq!(Scenario::from_toml(&scenario.to_toml()).unwrap(), scenario);
    let wrong = |text: &str, why: &str| {
        write("wrong.toml", text);
        let error = Scenario::from_file(folder.join("wrong.toml")).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    wrong(&good.replace("lte.up", "none.up"), "wrong.toml:5: path[0].trace: ");
    write("bad.up", "8\n3\n");
    wrong(&good.replace("lte.up", "bad.up"), "bad.up: entry 2 is 3, after 8; allowed: ascending");
    wrong(&good.replace("\"lte.up\"", "[]"), "path[0].trace: found no entry");
    let both = GOOD.replacen("rate =", "trace = [5]\nrate =", 1);
    wrong(&both, "either rate or trace, not both");
    assert!(Scenario::from_toml(&good).is_err(), "a text cannot name a file");
    let fault = "[[fault]]\nat = \"1 s\"\npath = 0\nkind = \"rate\"\nrate = \"1 Mbit/s\"\n";
    wrong(
        &format!("{good}{fault}"),
        "fault[0].kind: the link has a trace; allowed: links with a rate",
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_scenario_in_the_repository_is_good() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let scenario = Scenario::from_file(&path).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(Scenario::from_toml(&scenario.to_toml()).unwrap(), scenario);
            files += 1;
        }
    }
    assert!(files >= 5);
}

#[test]
fn the_general_graph_and_several_associations() {
    let scenario = Scenario::from_toml(
        r#"
        schema = 1
        [[node]]
        name = "a"
        addresses = ["10.0.0.1", "10.1.0.1"]
        [[node]]
        name = "b"
        addresses = ["10.0.0.2"]
        [[node]]
        name = "c"
        addresses = ["10.0.0.3"]
        [[node]]
        name = "r"
        [[link]]
        between = ["a.0", "r"]
        delay = "1 ms"
        [[link]]
        between = ["a.1", "r"]
        name = "second"
        back = { loss = "1 %" }
        [[link]]
        between = ["b", "r"]
        [[link]]
        between = ["c", "r"]
        [[association]]
        from = "a"
        to = "b"
        workload = { size = "10 kB" }
        [[association]]
        name = "other"
        from = "a"
        to = "c"
        workload = { size = "10 kB", direction = "both" }
        [[association]]
        from = "b"
        to = "a"
        port = 7
        workload = { kind = "request-reply", messages = 10 }
        [[fault]]
        at = "10 ms"
        for = "200 ms"
        link = "a.0->r"
        kind = "down"
        [[fault]]
        at = "10 ms"
        link = "second"
        kind = "delay"
        delay = "5 ms"
        "#,
    )
    .unwrap();
    let plan = Plan::new(&scenario).unwrap();
    assert_eq!(plan.stacks.len(), 5, "a and b on two ports, c on one");
    let names: Vec<&str> = plan.topology.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names[..4], ["a.0->r", "r->a.0", "second/forward", "second/back"]);
    assert_eq!(plan.changes.len(), 4);
    let twice = scenario.to_toml().replace("port = 7", "port = 5001");
    let twice = twice.replace("from = \"a\"\nto = \"b\"", "from = \"a\"\nto = \"b\"\nport = 5001");
    let error = error(&twice);
    assert!(error.contains("another association between the two hosts has port 5001"), "{error}");
    let outcome = scenario.run(&RunOptions::default()).unwrap();
    assert!(outcome.associations.iter().all(|a| a.complete), "{outcome:#?}");
}

fn link_spec() -> impl Strategy<Value = LinkSpec> {
    let p =
        || any::<u32>().prop_map(|n| Probability::new(f64::from(n) / f64::from(u32::MAX)).unwrap());
    let queue = prop_oneof![
        any::<u32>().prop_map(QueueLimit::Packets),
        any::<u64>().prop_map(QueueLimit::Bytes),
        Just(QueueLimit::Unlimited)
    ];
    let loss = prop_oneof![
        p().prop_map(LossModel::bernoulli),
        (p(), p(), p(), p()).prop_map(|(a, b, c, d)| LossModel::GilbertElliott {
            good_to_bad: a,
            bad_to_good: b,
            loss_good: c,
            loss_bad: d
        }),
        (prop::collection::vec(1u64..1000, 0..5), prop::collection::vec(1u64..9, 0..3)).prop_map(
            |(packets, data)| {
                LossModel::Script(LossScript::packets(packets).and(PacketKind::Data, data))
            }
        ),
    ];
    let reorder =
        (p(), any::<u64>()).prop_map(|(probability, n)| Reordering { probability, delay: Span(n) });
    let red = (any::<u16>(), 1..=u32::MAX / 2, p(), 0.001..1.0).prop_map(
        |(min, more, probability, weight)| {
            let min = u32::from(min);
            Red { min, max: min + more, probability, weight }
        },
    );
    let codel = (any::<u64>(), 1..=u64::MAX, 1..=65_536u32, 1..=u32::MAX).prop_map(
        |(target, interval, flows, quantum)| Codel {
            target: Span(target),
            interval: Span(interval),
            flows,
            quantum,
        },
    );
    let managed = prop_oneof![
        prop::option::of(red).prop_map(|red| (red, None)),
        codel.prop_map(|codel| (None, Some(codel))),
    ];
    let middlebox = any::<[bool; 3]>().prop_map(|[clear_ecn, drop_fragments, drop_extensions]| {
        Middlebox { clear_ecn, drop_fragments, drop_extensions }
    });
    (
        prop::option::of((1..=u64::MAX).prop_map(Rate)),
        prop::option::of(any::<u64>().prop_map(Span)),
        prop::option::of(queue),
        prop::option::of((68u64..1 << 40).prop_map(Size)),
        prop::option::of(loss),
        prop::option::of(reorder),
        prop::option::of(p()),
        (managed, prop::option::of(middlebox)),
    )
        .prop_map(
            |(rate, delay, queue, mtu, loss, reorder, duplicate, (managed, middlebox))| {
                let (red, codel) = managed;
                LinkSpec {
                    rate,
                    trace: None,
                    delay,
                    queue,
                    mtu,
                    mark_at: None,
                    red,
                    codel,
                    policer: None,
                    middlebox,
                    loss,
                    reorder,
                    duplicate,
                    corrupt: duplicate,
                }
            },
        )
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    let edge =
        (link_spec(), prop::collection::vec(1u64..1 << 32, 0..5)).prop_map(|(edge, times)| {
            match RateTrace::new(times) {
                Ok(trace) => LinkSpec { rate: None, trace: Some(trace), ..edge },
                Err(_) => edge,
            }
        });
    let path = (link_spec(), prop::option::of(link_spec()), prop::option::of(edge)).prop_map(
        |(forward, back, edge)| PathSpec {
            cross_traffic: edge.as_ref().map(|_| CrossTraffic {
                rate: Some(Rate(0)),
                shape: Some(1.25),
                delay: Some(SpanRange { min: Span(1), max: Span(2) }),
                ..CrossTraffic::default()
            }),
            forward: Some(forward),
            back,
            edge,
            ..PathSpec::default()
        },
    );
    let fault = (any::<u64>(), prop::option::of(any::<u64>()), 1..=u64::MAX).prop_map(
        |(at, lasts, rate)| {
            let fault = Fault::rate(0, Span(at), Rate(rate)).direction(Direction::Back);
            Fault { lasts: lasts.map(Span), ..fault }
        },
    );
    (
        any::<u64>(),
        "[ -~]{0,20}",
        prop::collection::vec(path, 1..4),
        prop::collection::vec(fault, 0..4),
        (1u64..1 << 50, 1u64..10_000, 0u64..10_000, 1u16..64),
        (1u64..1 << 40, prop::option::of(0u32..100), any::<bool>()),
    )
        .prop_map(
            |(seed, name, paths, faults, (size, min, more, streams), (rto, pmr, off))| {
                let mut scenario = Scenario::new(name).seed(seed);
                scenario.paths = paths;
                scenario.faults = faults;
                let rto = Span(rto).duration();
                let both = &mut scenario.transport.both;
                (both.rto_initial, both.rto_min, both.rto_max) = (Some(rto), Some(rto), Some(rto));
                both.path_max_retrans = pmr;
                both.heartbeat_interval = Some((!off).then_some(rto));
                scenario.policy.both.scheduler = off.then(|| "primary".into());
                let range = SizeRange { min: Size(min), max: Size(min + more) };
                scenario.workload = Some(Workload {
                    message_size: Some(range),
                    streams: Some(streams),
                    ..Workload::bulk(Size(size))
                });
                scenario.series = off.then(Series::default);
                scenario
            },
        )
}

proptest! {
    #[test]
    fn what_is_written_reads_back(scenario in any_scenario()) {
        let text = scenario.to_toml();
        let read = Scenario::from_toml(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(read, scenario);
    }
}

#[test]
fn random_early_detection_has_defaults_and_limits() {
    let with =
        |red: &str| Scenario::from_toml(&GOOD.replacen("rate =", &format!("{red}\nrate ="), 1));
    let red = with("red = { min = 5, max = 15 }").unwrap().paths[0].red.unwrap();
    assert_eq!((red.probability, red.weight), (Probability::percent(10), 0.002));
    let wrong = |red: &str, why: &str| {
        let error = with(red).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    wrong("red = { min = 5 }", "max");
    wrong("red = { min = 5, max = 5 }", "path[0].red.max: allowed: above min");
    wrong(
        "red = { min = 5, max = 6, weight = 0 }",
        "path[0].red.weight: allowed: above 0, up to 1",
    );
    wrong("red = { min = 5, max = 6, weight = nan }", "path[0].red.weight");
    wrong("red = { min = 5, max = 6, size = 7 }", "size");
}

#[test]
fn codel_has_defaults_and_limits() {
    let with =
        |codel: &str| Scenario::from_toml(&GOOD.replacen("rate =", &format!("{codel}\nrate ="), 1));
    let path = &with("codel = { flows = 1024 }").unwrap().paths[0];
    assert_eq!(path.codel, Some(Codel { flows: 1024, ..Codel::default() }));
    let wrong = |codel: &str, why: &str| {
        let error = with(codel).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    wrong("codel = { interval = \"0 ms\" }", "path[0].codel.interval: allowed: above 0");
    wrong("codel = { flows = 0 }", "path[0].codel.flows: allowed: 1 to 65536");
    wrong("codel = { quantum = 0 }", "path[0].codel.quantum: allowed: above 0");
    wrong("red = { min = 5, max = 6 }\ncodel = {}", "path[0].codel: either red or codel, not both");
}

/// [`GOOD`] over UDP with these lines on its path and these behind it.
fn behind_nat(path: &str, rest: &str) -> Result<Scenario, ScenarioError> {
    let udp = format!("{path}\n[transport]\nencapsulation = \"udp\"\n[workload]");
    Scenario::from_toml(&format!("{}{rest}", GOOD.replace("[workload]", &udp)))
}

#[test]
fn nats_have_defaults_and_read_back() {
    let spec = |nat: &str| {
        let scenario = behind_nat(nat, "").unwrap();
        assert_eq!(Scenario::from_toml(&scenario.to_toml()).unwrap(), scenario);
        scenario.paths[0].nat.unwrap()
    };
    assert_eq!(spec("nat = {}"), NatSpec::default());
    assert_eq!(NatSpec::default().timeout, Span::secs(30));
    let given = spec(
        "nat = { timeout = \"2 min\", mapping = \"address-and-port-dependent\", \
         filtering = \"address-dependent\", inbound_refresh = true, address = \"203.0.113.9\" }",
    );
    let expected = NatSpec {
        timeout: Span::secs(120),
        mapping: NatBehavior::AddressAndPortDependent,
        filtering: NatBehavior::AddressDependent,
        inbound_refresh: true,
        address: Some("203.0.113.9".parse().unwrap()),
    };
    assert_eq!(given, expected);
    let reset = "[[fault]]\nat = \"1 s\"\npath = 0\nkind = \"nat-reset\"\n";
    let scenario = behind_nat("nat = {}", reset).unwrap();
    assert_eq!(scenario.faults, [Fault::nat_reset(0, Span::secs(1))]);
    assert_eq!(Scenario::from_toml(&scenario.to_toml()).unwrap(), scenario);
}

#[test]
fn wrong_nats_get_one_line() {
    let wrong = |path: &str, rest: &str| behind_nat(path, rest).unwrap_err().to_string();
    let reset = |more: &str| {
        let reset = "[[fault]]\nat = \"1 s\"\npath = 0\nkind = \"nat-reset\"\n";
        wrong("nat = {}", &format!("{reset}{more}\n"))
    };
    let mixed = "belongs to kind \"nat-reset\"";
    each_is_one_line([
        (
            edited("[workload]", "nat = {}\n[workload]"),
            "transport.encapsulation: a nat lets only UDP pass; allowed with it: udp",
        ),
        (
            wrong("nat = { timeout = \"0 s\" }", ""),
            "line 7: path[0].nat.timeout: found 0 s; allowed: above 0 s",
        ),
        (
            wrong("nat = { mapping = \"cone\" }", ""),
            "line 7: path[0].nat.mapping: \"cone\" is not known; allowed: endpoint-independent, \
             address-dependent, address-and-port-dependent",
        ),
        (
            wrong("nat = { address = \"10.0.0.1\" }", ""),
            "line 4: path: nat of \"path0\": address 10.0.0.1 is used twice",
        ),
        (
            wrong("", "[[fault]]\nat = \"1 s\"\npath = 0\nkind = \"nat-reset\"\n"),
            "line 15: fault[0].kind: the path or link has no nat",
        ),
        (reset("for = \"1 s\""), "line 16: fault[0].for: does not belong to kind \"nat-reset\""),
        (
            reset("address = \"10.0.0.2\""),
            "line 16: fault[0].address: 10.0.0.2 is used already, or of another IP version",
        ),
        (
            reset("address = \"fd00::1\""),
            "line 16: fault[0].address: fd00::1 is used already, or of another IP version",
        ),
        (
            error(&format!(
                "{GOOD}[[fault]]\nat = \"1 s\"\npath = 0\nkind = \"down\"\naddress = \"10.9.9.9\"\n"
            )),
            &format!("line 13: fault[0].address: {mixed}"),
        ),
    ]);
}

#[test]
fn tcp_flows_read_back_and_have_keys_of_their_own() {
    let flow = "to = \"receiver.0\"\nkind = \"tcp\"\n";
    let read = |lines: &str| {
        Scenario::from_toml(&format!("{GOOD}[[traffic]]\nfrom = \"sender.0\"\n{flow}{lines}\n"))
    };
    let scenario = read("congestion = \"newreno\"\nwindow = \"1 MB\"\nsources = 3").unwrap();
    assert_eq!(Scenario::from_toml(&scenario.to_toml()).unwrap(), scenario);
    let plan = scenario.plan().unwrap();
    let names: Vec<_> = plan.tcp.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["traffic0/0", "traffic0/1", "traffic0/2"]);
    assert_eq!(plan.tcp[0].window, 1_000_000 / 1460);
    assert_ne!(plan.tcp[0].ways[0], plan.tcp[0].ways[1]);
    let wrong = |lines: &str| traffic(&format!("{flow}{lines}"));
    each_is_one_line([
        (wrong("rate = \"1 Mbit/s\""), "line 13: traffic[0].rate: does not belong to kind \"tcp\""),
        (wrong("on = \"1 s\""), "line 13: traffic[0].on: does not belong to kind \"tcp\""),
        (
            wrong("window = \"2 kB\""),
            "line 13: traffic[0].window: found 2 kB; allowed: two segments to 256 MB",
        ),
        (
            wrong("packet_size = \"40 B\""),
            "line 13: traffic[0].packet_size: found 40 B; allowed: above 40 B",
        ),
        (
            wrong("sources = 1001"),
            "line 13: traffic[0].sources: found 1001; allowed: from 1 to 1000",
        ),
        (
            traffic("to = \"receiver.0\"\nrate = \"1 Mbit/s\"\nwindow = \"1 MB\""),
            "line 13: traffic[0].window: belongs to kind \"tcp\"",
        ),
        (traffic("to = \"receiver.0\""), "line 9: traffic[0].rate: missing"),
    ]);
}
