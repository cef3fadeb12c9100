//! Helpers that run the program and create files and folders.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_polypath");

/// Longer than any condition in a test takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Message about a host that was not known yet.
pub(crate) const IS_NEW: &str = " is new: its fingerprint, ";

/// Detects failed and restored paths within a second or two.
pub(crate) const BRISK: &[&str] = &[
    "--config",
    "rto_initial=300ms",
    "--config",
    "rto_min=200ms",
    "--config",
    "rto_max=500ms",
    "--config",
    "path_max_retrans=2",
    "--config",
    "association_max_retrans=5",
    "--config",
    "heartbeat_interval=300ms",
];

/// A folder with a file to send and another to receive into.
pub(crate) struct Files {
    folder: TempDir,
    pub(crate) sha256: String,
}

impl Files {
    pub(crate) fn new(size: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let content: Vec<u8> = (0..size)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        std::fs::write(folder.path().join("file"), &content).unwrap();
        std::fs::create_dir(folder.path().join("out")).unwrap();
        Self { folder, sha256: sha256(&content) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Waits until this many bytes of an incomplete file have been received.
    pub(crate) fn wait_for(&self, bytes: u64) {
        let end = Instant::now() + PATIENCE;
        let size = || -> u64 {
            let entries = std::fs::read_dir(self.path("out")).unwrap();
            // The file gets its final name when it is complete.
            entries.map(|entry| entry.unwrap().metadata().map_or(0, |about| about.len())).sum()
        };
        while size() < bytes {
            assert!(Instant::now() < end, "{} of {bytes} bytes have come", size());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Names of the received files.
    pub(crate) fn received(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("out")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    pub(crate) fn assert_received(&self, name: &str) {
        assert_eq!(self.received(), [name]);
        let content = std::fs::read(self.path("out").join(name)).unwrap();
        assert_eq!(sha256(&content), self.sha256);
    }
}

fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A running process; killed when dropped.
pub(crate) struct Process {
    child: Child,
    err: Arc<Mutex<String>>,
    out: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
    started: Instant,
}

/// Exit status and output of a process.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) seconds: f64,
}

/// A file with a code phrase that senders and receivers of all tests share.
const CODE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/code-phrase");

/// Options of `send` and `recv` in tests: consent without a person, and no waiting for a peer that
/// has gone.
pub(crate) fn consent(command: &str) -> Vec<String> {
    let patience = match command {
        "send" => "--retry",
        "recv" => "--resume-wait",
        _ => return Vec::new(),
    };
    ["--code-file".to_owned(), CODE.to_owned(), patience.to_owned(), "0".to_owned()].into()
}

/// Runs the program with default signal handling: the tests themselves may run with SIGINT ignored,
/// as background jobs do.
pub(crate) fn polypath(args: &[&str]) -> Process {
    start(
        Command::new("env")
            .args(["--default-signal=INT,TERM,HUP", BINARY])
            .args(args)
            .args(consent(args[0])),
    )
}

pub(crate) fn start(command: &mut Command) -> Process {
    if command.get_envs().all(|(name, _)| name != "XDG_CONFIG_HOME") {
        // The processes of all tests share this identity.
        command.env("XDG_CONFIG_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/settings"));
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("NO_COLOR", "1")
        .spawn()
        .unwrap();
    let collect = |stream: Box<dyn Read + Send>| {
        let text = Arc::new(Mutex::new(String::new()));
        let to = text.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stream).lines() {
                let Ok(line) = line else { return };
                let mut text = to.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
            }
        });
        (text, reader)
    };
    let (out, out_reader) = collect(Box::new(child.stdout.take().unwrap()));
    let (err, err_reader) = collect(Box::new(child.stderr.take().unwrap()));
    Process { child, err, out, readers: vec![out_reader, err_reader], started: Instant::now() }
}

impl Process {
    pub(crate) fn id(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits for a text on stdout or stderr, and returns the line that contains it.
    pub(crate) fn said(&mut self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            for stream in [&self.err, &self.out] {
                let so_far = stream.lock().unwrap().clone();
                if let Some(line) = so_far.lines().find(|line| line.contains(text)) {
                    return line.to_owned();
                }
            }
            let ended = self.readers.iter().all(JoinHandle::is_finished);
            assert!(
                !ended && Instant::now() < end,
                "it has not said {text:?}: {}{}",
                self.out.lock().unwrap(),
                self.err.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Writes a line to the process's stdin.
    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    pub(crate) fn wait(&mut self) -> Ended {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < end,
                "it does not end: {}{}",
                self.out.lock().unwrap(),
                self.err.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        let seconds = self.started.elapsed().as_secs_f64();
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        let text = |stream: &Mutex<String>| stream.lock().unwrap().clone();
        Ended { status, out: text(&self.out), err: text(&self.err), seconds }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    pub(crate) fn succeeds(&self) -> &Self {
        assert!(self.status.success(), "{}: {}{}", self.status, self.out, self.err);
        self
    }

    pub(crate) fn json(&self) -> Value {
        self.succeeds();
        serde_json::from_str(&self.out).unwrap()
    }

    /// Checks that the process ended with this code and one line (and perhaps a hint) that contains
    /// these words; returns the line.
    pub(crate) fn complains(&self, code: i32, words: &[&str]) -> String {
        assert_eq!(self.status.code(), Some(code), "{}{}", self.out, self.err);
        assert_eq!(self.out, "");
        let news = [
            "waiting on ",
            "encrypted, ",
            "connected with ",
            "in clear",
            "code phrase ",
            "file: ",
            "  path ",
            "* path ",
        ];
        let complaint: Vec<&str> = self
            .err
            .lines()
            .skip_while(|line| {
                line.contains(IS_NEW) || news.iter().any(|news| line.starts_with(news))
            })
            .collect();
        match complaint.as_slice() {
            [line] | [line, _] if line.starts_with("polypath: ") => {
                assert!(complaint.get(1).is_none_or(|hint| hint.starts_with("hint: ")));
                for word in words {
                    assert!(self.err.contains(word), "{word:?} is not in {:?}", self.err);
                }
                (*line).to_owned()
            }
            _ => panic!("not one line of complaint: {:?}", self.err),
        }
    }
}

/// A receiver on a free UDP port, and that port.
pub(crate) fn receiver(address: &str, out: &Path, more: &[&str]) -> (Process, String) {
    let mut args = vec!["recv", "--bind", address, "-u", "0", "-o", out.to_str().unwrap()];
    args.extend(more);
    let mut process = polypath(&args);
    let line = process.said("waiting on");
    let port = line.split("UDP port ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    (process, port)
}
