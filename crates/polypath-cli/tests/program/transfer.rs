//! Successful transfers.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::setup::{BINARY, Files, IS_NEW, polypath, receiver};

fn transfer(files: &Files, output: &str, more: &[&str]) {
    let (mut recv, port) = receiver("127.0.0.1", &files.path(output), &[]);
    let (file, host) = (files.text("file"), format!("127.0.0.1:{port}"));
    let mut args = vec!["send", &file, &host];
    args.extend(more);
    let sent = polypath(&args).wait();
    let received = recv.wait();
    for ended in [&sent, &received] {
        let sha256 = format!("sha256 {}", files.sha256);
        assert!(ended.succeeds().out.contains(&sha256), "{}", ended.out);
    }
}

#[test]
fn a_file_into_a_folder() {
    let files = Files::new(5_000_000);
    transfer(&files, "out", &[]);
    files.assert_received("file");
    let mode = files.path("out/file").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o600, 0o600);
}

/// The file arrives even if only one side has an extension, which is then not used.
#[test]
fn a_file_with_extensions_on_both_sides_or_one() {
    for sampling in ["timestamps", "retransmission-flag"] {
        let policy = format!("rtt_sampling={sampling}");
        for receives in [vec![], vec!["--policy", policy.as_str()]] {
            let files = Files::new(500_000);
            let (mut recv, port) = receiver("127.0.0.1", &files.path("out"), &receives);
            let (file, host) = (files.text("file"), format!("127.0.0.1:{port}"));
            let args = [
                "send",
                &file,
                &host,
                "--policy",
                &policy,
                "--policy",
                "loss=multiple-fast-retransmit",
            ];
            polypath(&args).wait().succeeds();
            recv.wait().succeeds();
            files.assert_received("file");
        }
    }
}

#[test]
fn an_empty_file() {
    let files = Files::new(0);
    transfer(&files, "out", &[]);
    files.assert_received("file");
}

#[test]
fn another_name_at_the_receiver() {
    let files = Files::new(1000);
    transfer(&files, "out/other", &[]);
    files.assert_received("other");
}

#[test]
fn another_name_from_the_sender() {
    let files = Files::new(1000);
    transfer(&files, "out", &["--as", "grüße"]);
    files.assert_received("grüße");
}

#[test]
fn an_existing_file_is_replaced_only_on_request() {
    let files = Files::new(1000);
    std::fs::write(files.path("out/file"), "old").unwrap();
    let run = |more: &[&str]| {
        let (mut recv, port) = receiver("127.0.0.1", &files.path("out"), more);
        let sent = polypath(&["send", &files.text("file"), &format!("127.0.0.1:{port}")]).wait();
        (sent, recv.wait())
    };
    let (sent, received) = run(&[]);
    sent.complains(1, &["127.0.0.1: ", "out/file exists and is not replaced"]);
    received.complains(1, &["out/file exists and is not replaced"]);
    assert_eq!(std::fs::read(files.path("out/file")).unwrap(), b"old");
    let (sent, received) = run(&["--overwrite"]);
    sent.succeeds();
    received.succeeds();
    files.assert_received("file");
    // The same content again: nothing to do, and nothing wrong.
    let (sent, _) = run(&[]);
    assert!(sent.succeeds().out.contains("1000 bytes were there already"), "{}", sent.out);
}

#[test]
fn ipv6() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: this host has no IPv6");
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"));
        return;
    }
    let files = Files::new(100_000);
    let (mut recv, port) = receiver("::1", &files.path("out"), &[]);
    polypath(&["send", &files.text("file"), &format!("[::1]:{port}")]).wait().succeeds();
    recv.wait().succeeds();
    files.assert_received("file");
}

#[test]
fn json() {
    let files = Files::new(1_000_000);
    let (mut recv, port) = receiver("127.0.0.1", &files.path("out"), &["--json"]);
    let args = ["send", &files.text("file"), &format!("127.0.0.1:{port}"), "--json", "--quiet"];
    let sent = polypath(&args).wait();
    assert!(sent.err.lines().all(|line| line.contains(IS_NEW)), "{}", sent.err);
    let received = recv.wait();
    for (json, role) in [(sent.json(), "sender"), (received.json(), "receiver")] {
        assert_eq!(json["role"], role);
        assert_eq!(json["bytes"], 1_000_000);
        assert_eq!(json["sha256"], files.sha256.as_str());
        assert_eq!(json["paths"][0]["state"], "active");
        assert!(json["paths"][0]["bytes"].as_u64().unwrap() >= 1_000_000);
        assert!(json["goodput_bit_per_s"].as_f64().unwrap() > 1e6);
        assert!(json["blackout_s"].as_f64().unwrap() >= 0.0);
    }
}

#[test]
fn one_after_the_other() {
    let files = Files::new(10_000);
    let (mut recv, port) = receiver("127.0.0.1", &files.path("out"), &["--forever"]);
    for name in ["a", "b", "c"] {
        let to = format!("127.0.0.1:{port}");
        polypath(&["send", &files.text("file"), &to, "--as", name]).wait().succeeds();
    }
    let mut names = files.received();
    names.sort();
    assert_eq!(names, ["a", "b", "c"]);
    // The receiver runs until it is interrupted.
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(recv.id()),
        nix::sys::signal::Signal::SIGTERM,
    )
    .unwrap();
    let ended = recv.wait();
    assert_eq!(ended.status.code(), Some(143));
    assert_eq!(ended.out.matches("received ").count(), 3);
}

#[test]
fn small_windows_and_other_settings() {
    let files = Files::new(1_000_000);
    let (mut recv, port) =
        receiver("127.0.0.1", &files.path("out"), &["-c", "receive_buffer=128KiB"]);
    let args = [
        "send",
        &files.text("file"),
        &format!("127.0.0.1:{port}"),
        "--profile",
        "rfc9260",
        "--config",
        "send_buffer=128KiB",
        "--policy",
        "retransmission=same",
    ];
    polypath(&args).wait().succeeds();
    recv.wait().succeeds();
    files.assert_received("file");
}

#[test]
fn raw_ip() {
    let files = Files::new(300_000);
    let out = files.text("out");
    let args = ["recv", "--bind", "127.0.7.2", "--raw", "-p", "21000", "-o", &out];
    let mut recv = polypath(&args);
    let first = recv.said("");
    if first.contains("CAP_NET_RAW") {
        eprintln!("skipped: raw IP sockets need the capability CAP_NET_RAW");
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"));
        return;
    }
    let args =
        ["send", &files.text("file"), "127.0.7.2", "--raw", "-p", "21000", "--bind", "127.0.7.1"];
    polypath(&args).wait().succeeds();
    recv.wait().succeeds();
    files.assert_received("file");
}

#[test]
fn the_reader_of_stdout_may_go_away() {
    let command = format!("{BINARY} policies | head -1");
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
