//! Encryption between processes: accepted and refused peers, and the messages about them.

use std::process::Command;

use crate::setup::{BINARY, Ended, Files, Process, consent, start};

/// Starts the program with a separate configuration directory, as on a separate host.
fn host(files: &Files, name: &str, words: &[&str]) -> Process {
    // A secret takes the place of the code phrase, and so does a named sender.
    let mut more = consent(words[0]);
    if words.iter().any(|word| word.starts_with("--psk") || *word == "--from") {
        more.drain(..2);
    }
    start(Command::new(BINARY).args(words).args(more).env("XDG_CONFIG_HOME", files.path(name)))
}

/// A receiver with `--forever`, its UDP port and its fingerprint.
fn receiver(files: &Files, name: &str, port: &str, words: &[&str]) -> (Process, String, String) {
    let out = files.text("out");
    let mut args = vec!["recv", "--bind", "127.0.0.1", "-u", port, "-o", &out, "--forever"];
    args.extend(words);
    let mut process = host(files, name, &args);
    let line = process.said("waiting on");
    let port = line.split("UDP port ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let how = process.said(if words.contains(&"--plain") { "in clear" } else { "encrypted, " });
    let fingerprint = how.rsplit(' ').next().unwrap().to_owned();
    (process, port, fingerprint)
}

fn send(files: &Files, port: &str, words: &[&str]) -> Ended {
    let (file, to) = (files.text("file"), format!("127.0.0.1:{port}"));
    let mut args = vec!["send", &file, &to, "--quiet"];
    args.extend(words);
    host(files, "here", &args).wait()
}

fn fails(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    for word in words {
        assert!(ended.err.contains(word), "{word:?} is not in {ended:?}");
    }
    assert!(ended.seconds < 20.0, "{ended:?}");
}

#[test]
fn a_host_is_known_after_the_first_time_and_a_changed_one_is_refused() {
    let files = Files::new(300_000);
    let (process, port, fingerprint) = receiver(&files, "there", "0", &[]);
    let first = send(&files, &port, &[]);
    assert!(first.status.success(), "{first:?}");
    files.assert_received("file");
    assert!(first.err.contains(&format!("is new: its fingerprint, {fingerprint}")), "{first:?}");
    let second = send(&files, &port, &[]);
    assert_eq!((second.status.code(), second.err.as_str()), (Some(0), ""));
    drop(process);
    // A restarted receiver keeps its identity.
    let (process, _, same) = receiver(&files, "there", &port, &[]);
    assert_eq!(same, fingerprint);
    assert!(send(&files, &port, &[]).status.success());
    drop(process);
    // Another host at the same address.
    let (_process, _, other) = receiver(&files, "elsewhere", &port, &[]);
    assert_ne!(other, fingerprint);
    let refused = send(&files, &port, &[]);
    fails(&refused, &["is not the expected host", &other, "known_hosts"]);
    // `--fingerprint` overrides the known hosts.
    assert!(send(&files, &port, &["--fingerprint", &other]).status.success());
    fails(&send(&files, &port, &["--fingerprint", &fingerprint]), &["is not the expected host"]);
}

#[test]
fn a_receiver_may_choose_its_sender() {
    let files = Files::new(1000);
    let (process, port, there) = receiver(&files, "there", "0", &[]);
    assert!(send(&files, &port, &[]).status.success());
    drop(process);
    let known = std::fs::read_to_string(files.path("here").join("polypath/known_hosts")).unwrap();
    assert!(known.contains(&there) && known.lines().count() == 1, "{known}");
    for option in ["--from", "--fingerprint"] {
        let (_process, port, _) = receiver(&files, "there", &port, &[option, &there]);
        fails(&send(&files, &port, &[]), &["does not trust this host"]);
    }
}

/// The fingerprint of the sender of these tests.
fn fingerprint(files: &Files) -> String {
    let mut host = host(files, "here", &["recv", "--bind", "127.0.0.1", "-u", "0"]);
    host.said("encrypted, ").rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn a_shared_secret_takes_the_place_of_fingerprints() {
    let files = Files::new(1000);
    std::fs::write(files.path("secret"), "correct horse\n").unwrap();
    let secret = files.text("secret");
    let (_process, port, _) = receiver(&files, "there", "0", &["--psk-file", &secret]);
    assert!(send(&files, &port, &["--psk", "correct horse"]).status.success());
    files.assert_received("file");
    fails(&send(&files, &port, &["--psk", "correct house"]), &["the code phrase is wrong"]);
    fails(&send(&files, &port, &[]), &["the code phrase is wrong"]);
    let short = send(&files, &port, &["--psk", "short"]);
    assert_eq!(short.status.code(), Some(2), "{short:?}");
    // A named sender needs no proof, and others may still give one.
    let other = "0123-4567-89ab-cdef-0123";
    let words = ["--psk-file", &secret, "--from", other, "--overwrite"];
    let (_process, port, _) = receiver(&files, "there", "0", &words);
    assert!(send(&files, &port, &["--psk-file", &secret]).status.success());
    fails(&send(&files, &port, &[]), &["the code phrase is wrong"]);
    // A host that asks for no proof does not get the file.
    let (_process, port, _) = receiver(&files, "elsewhere", "0", &["--from", &fingerprint(&files)]);
    let sent = send(&files, &port, &["--psk", "correct horse"]);
    fails(&sent, &["does not prove the shared secret"]);
}

#[test]
fn plain_and_encrypted_say_what_is_the_matter() {
    let files = Files::new(1000);
    let (_plain, port, _) = receiver(&files, "there", "0", &["--plain"]);
    fails(&send(&files, &port, &[]), &["127.0.0.1 does not encrypt", "--plain"]);
    assert!(send(&files, &port, &["--plain"]).status.success());
    let (_encrypted, port, _) = receiver(&files, "there", "0", &[]);
    fails(&send(&files, &port, &["--plain"]), &["accepts only encrypted connections", "--plain"]);
    for wrong in [["--plain", "--psk=correct horse"], ["--raw", "--psk=correct horse"]] {
        let ended = send(&files, &port, &wrong);
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    }
}

#[test]
fn the_older_version_is_a_choice() {
    let files = Files::new(100_000);
    let (_process, port, _) = receiver(&files, "there", "0", &["--min-dtls", "1.2"]);
    // Either side may use this option alone: both have the newer version.
    for words in [&["--min-dtls", "1.2"][..], &[]] {
        let ended = send(&files, &port, words);
        assert!(ended.status.success(), "{ended:?}");
        files.assert_received("file");
    }
    let wrong = send(&files, &port, &["--min-dtls", "1.1"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    assert!(wrong.err.contains("versions of DTLS are 1.2 and 1.3"), "{wrong:?}");
}
