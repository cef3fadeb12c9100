//! Failures: one clear line on each side, an exit code, and no file under the final name.

use std::net::UdpSocket;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::paths::Emulator;
use crate::setup::{BINARY, BRISK, Files, Process, consent, polypath, receiver, start};

#[test]
fn nobody_listens() {
    let files = Files::new(1000);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ended = polypath(&["send", &files.text("file"), &format!("127.0.0.1:{port}")]).wait();
    let line = ended.complains(1, &["127.0.0.1", "is polypath running there"]);
    assert_eq!(line, "polypath: cannot connect to 127.0.0.1: nothing listens on that UDP port");
    assert!(ended.seconds < 20.0, "{}", ended.seconds);
}

#[test]
fn nobody_answers() {
    let files = Files::new(1000);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = format!("127.0.0.1:{}", silent.local_addr().unwrap().port());
    let ended = polypath(&["send", &files.text("file"), &to, "--timeout", "0.5"]).wait();
    ended.complains(1, &["no answer from 127.0.0.1", "firewall"]);
}

#[test]
fn another_sctp_port() {
    let files = Files::new(1000);
    let (_recv, port) = receiver("127.0.0.1", &files.path("out"), &["--port", "9000"]);
    let to = format!("127.0.0.1:{port}");
    let ended = polypath(&["send", &files.text("file"), &to]).wait();
    ended.complains(1, &["127.0.0.1 refuses the connection", "SCTP port 9260"]);
}

#[test]
fn no_such_host() {
    let files = Files::new(1000);
    let ended = polypath(&["send", &files.text("file"), "no-such-host.invalid"]).wait();
    ended.complains(1, &["cannot find no-such-host.invalid"]);
}

#[test]
fn the_port_is_in_use() {
    let files = Files::new(0);
    let (_first, port) = receiver("127.0.0.1", &files.path("out"), &[]);
    let args = ["recv", "--bind", "127.0.0.1", "-u", &port, "-o", &files.text("out")];
    let line = polypath(&args).wait().complains(1, &["hint: pass another --udp-port"]);
    assert_eq!(line, format!("polypath: UDP 127.0.0.1:{port} is in use"));
}

#[test]
fn an_address_of_somebody_else() {
    let ended = polypath(&["recv", "--bind", "192.0.2.1"]).wait();
    ended.complains(1, &["192.0.2.1:9899 is not an address of this host"]);
}

#[test]
fn files_that_cannot_be_sent() {
    let files = Files::new(0);
    let ended = polypath(&["send", &files.text("nothing"), "127.0.0.1"]).wait();
    ended.complains(1, &["cannot open", "nothing: no such file or directory"]);
    let ended = polypath(&["send", "/dev/null", "127.0.0.1"]).wait();
    ended.complains(1, &["/dev/null is neither a file nor a folder"]);
    let ended = polypath(&["send", &files.text("file"), "127.0.0.1", "--as", "../up"]).wait();
    ended.complains(1, &["it has a path separator"]);
}

#[test]
fn wrong_command_lines_name_what_is_allowed() {
    let files = Files::new(0);
    let send = |more: &[&str], words: &[&str]| {
        let file = files.text("file");
        let mut args = vec!["send", &file, "127.0.0.1"];
        args.extend(more);
        polypath(&args).wait().complains(2, words);
    };
    send(&["--config", "rto_min=soon"], &["rto_min", "45 ms"]);
    send(&["--config", "rto=1s"], &["allowed: rto_initial, rto_min"]);
    send(&["--config", "path_mtu=100"], &["path_mtu", "576"]);
    send(&["--policy", "loss=bad"], &["must be standard"]);
    send(&["--profile", "none"], &["allowed: rfc9260"]);
    send(&["--port", "70000"], &["70000"]);
    send(&["--via", "10.0.0.1:x"], &["is not a UDP port"]);
    send(&["--via", "127.0.0.2", "--primary", "127.0.0.3"], &["allowed: 127.0.0.1, 127.0.0.2"]);
    send(&["--timeout", "0"], &["number of seconds above 0"]);
    let missing = polypath(&["send", &files.text("file")]).wait();
    missing.complains(2, &["required arguments", "hint: usage: polypath send", "<HOST"]);
    polypath(&["recv", "--colour"]).wait().complains(2, &["--colour"]);
    polypath(&["fetch"]).wait().complains(2, &["fetch"]);
}

#[test]
fn folders_that_are_not_there() {
    let files = Files::new(1000);
    // A mistake shows before a sender comes.
    let ended = polypath(&["recv", "-u", "0", "-o", &files.text("nowhere/file")]).wait();
    ended.complains(1, &["cannot create", "nowhere/file: no such file or directory", "--output"]);
    std::fs::create_dir(files.path("nowhere")).unwrap();
    let (mut recv, port) = receiver("127.0.0.1", &files.path("nowhere/file"), &[]);
    std::fs::remove_dir(files.path("nowhere")).unwrap();
    let sent = polypath(&["send", &files.text("file"), &format!("127.0.0.1:{port}")]).wait();
    sent.complains(1, &["127.0.0.1: cannot create", "no such file or directory"]);
    recv.wait().complains(1, &["cannot create", "no such file or directory"]);
}

/// Writing fails in the middle of a file, as on a full disk.
#[test]
fn writing_fails() {
    let files = Files::new(5_000_000);
    let limit = "ulimit -f 2000; trap '' XFSZ; exec \"$@\"";
    let out = files.text("out");
    let mut recv = start(
        Command::new("sh")
            .args(["-c", limit, "sh", BINARY, "recv"])
            .args(["--bind", "127.0.0.1", "-u", "0", "-o", &out])
            .args(consent("recv")),
    );
    let line = recv.said("waiting on");
    let port = line.split("UDP port ").nth(1).unwrap().split(',').next().unwrap();
    let sent = polypath(&["send", &files.text("file"), &format!("127.0.0.1:{port}")]).wait();
    sent.complains(1, &["127.0.0.1: cannot write", "file too large"]);
    recv.wait().complains(1, &["cannot write", "file too large"]);
    assert_only_partial(&files);
}

/// A transfer in progress at 10 Mbit/s.
fn slow(files: &Files, net: u8) -> (Emulator, Process, Process) {
    let emulator = Emulator::new(net, 1);
    let out = files.text("out");
    let mut args = vec!["recv", "--bind", emulator.receivers(), "-o", &out];
    args.extend(BRISK);
    let mut recv = polypath(&args);
    recv.said("waiting on");
    let (file, host) = (files.text("file"), emulator.host(0));
    let mut args = vec!["send", &file, &host];
    args.extend(BRISK);
    let send = polypath(&args);
    files.wait_for(300_000);
    (emulator, recv, send)
}

/// What has arrived is kept for the next run, under a name that its owner recognises.
fn assert_only_partial(files: &Files) {
    let received = files.received();
    let [name] = &received[..] else { panic!("not one file: {received:?}") };
    assert!(name.starts_with(".file.") && name.ends_with(".polypath-part"), "{name}");
}

#[test]
fn the_sender_is_killed() {
    let files = Files::new(20_000_000);
    let (_emulator, mut recv, mut send) = slow(&files, 11);
    send.kill();
    recv.wait().complains(1, &["lost 127.83.11.1", "no path reaches it any more"]);
    assert_only_partial(&files);
}

#[test]
fn the_receiver_is_killed() {
    let files = Files::new(20_000_000);
    let (_emulator, mut recv, mut send) = slow(&files, 12);
    recv.kill();
    recv.wait();
    send.wait().complains(1, &["lost 127.83.12.2", "no path reaches it any more"]);
    assert_only_partial(&files);
}

fn interrupt(process: &Process, signal: Signal) {
    kill(Pid::from_raw(process.id()), signal).unwrap();
}

#[test]
fn the_sender_is_interrupted() {
    let files = Files::new(20_000_000);
    let (_emulator, mut recv, mut send) = slow(&files, 13);
    interrupt(&send, Signal::SIGINT);
    send.wait().complains(130, &["polypath: interrupted"]);
    recv.wait().complains(1, &["127.83.13.1 aborted the connection", "interrupted"]);
    assert_only_partial(&files);
}

#[test]
fn the_receiver_is_interrupted() {
    let files = Files::new(20_000_000);
    let (_emulator, mut recv, mut send) = slow(&files, 14);
    interrupt(&recv, Signal::SIGTERM);
    recv.wait().complains(143, &["polypath: terminated"]);
    send.wait().complains(1, &["127.83.14.2 aborted the connection", "terminated"]);
    assert_only_partial(&files);
}

#[test]
fn interrupted_while_waiting() {
    let files = Files::new(0);
    let (mut recv, _) = receiver("127.0.0.1", &files.path("out"), &[]);
    interrupt(&recv, Signal::SIGINT);
    let ended = recv.wait();
    ended.complains(130, &["polypath: interrupted"]);
}

/// A peer that connects and disconnects, or uses another protocol, does not end the receiver.
#[test]
fn strangers_do_not_end_the_receiver() {
    let files = Files::new(1000);
    let (mut recv, port) = receiver("127.0.0.1", &files.path("out"), &["--plain"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = polypath::Endpoint::bind(polypath::EndpointOptions {
            addresses: vec!["127.0.0.1".parse().unwrap()],
            ..polypath::EndpointOptions::plain()
        })
        .unwrap();
        let to = format!("127.0.0.1:{port}").parse().unwrap();
        let connect = || endpoint.connect(polypath::ConnectOptions::new(9260, [to]));
        let stranger = connect().await.unwrap();
        let hello = polypath::Message::new(polypath::StreamId(0), "GET / HTTP/1.1");
        stranger.send(hello).await.unwrap();
        stranger.closed().await;
        drop(stranger);
        connect().await.unwrap().shutdown().await.unwrap();
        endpoint.close().await;
    });
    let to = format!("127.0.0.1:{port}");
    polypath(&["send", &files.text("file"), &to, "--plain"]).wait().succeeds();
    let ended = recv.wait();
    ended.succeeds();
    assert!(ended.err.contains("does not speak polypath's file protocol"), "{}", ended.err);
    files.assert_received("file");
}

/// What `polypath send` of version 1 of the file protocol sends first.
#[test]
fn an_older_sender_learns_that_it_is_older() {
    let files = Files::new(0);
    let (_recv, port) = receiver("127.0.0.1", &files.path("out"), &["--plain"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async {
        let endpoint = polypath::Endpoint::bind(polypath::EndpointOptions {
            addresses: vec!["127.0.0.1".parse().unwrap()],
            ..polypath::EndpointOptions::plain()
        })
        .unwrap();
        let to = format!("127.0.0.1:{port}").parse().unwrap();
        let association =
            endpoint.connect(polypath::ConnectOptions::new(9260, [to])).await.unwrap();
        let header = r#"{"version":1,"name":"file","size":0}"#;
        let message = polypath::Message {
            ppid: polypath::Ppid(0x7066_0001),
            ..polypath::Message::new(polypath::StreamId(0), header)
        };
        association.send(message).await.unwrap();
        let answer = association.recv().await.unwrap().unwrap();
        // The identifier of an answer in version 1.
        assert_eq!(answer.ppid, polypath::Ppid(0x7066_0004));
        String::from_utf8(answer.payload.to_vec()).unwrap()
    });
    assert!(answer.starts_with(r#"{"error":"the sender's polypath is older"#), "{answer}");
    assert_eq!(files.received(), [""; 0]);
}
