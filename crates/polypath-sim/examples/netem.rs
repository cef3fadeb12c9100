//! Puts the simulator's links between TUN devices: a network emulator in user space for whole IP
//! packets of any protocol, for hosts whose kernel has no netem. Needs CAP_NET_ADMIN.
//!
//! ```sh
//! netem SCENARIO.toml a0,b0 [a1,b1 ...]   # the devices of each [[path]], the sender's first
//! ```
//!
//! It creates the devices, which `ip link set NAME netns NAMESPACE` then moves to the two hosts,
//! and prints "ready". The paths, which have names, their links and the faults of the scenario are
//! those of the simulator; faults are timed from the first packet. It reads commands from stdin,
//! one a line, and prints one line of JSON for each:
//!
//! ```text
//! down PATH [forward|back]     up PATH [forward|back]     loss PATH PROBABILITY [forward|back]
//! report                       quit
//! ```
//!
//! A report has the counters of every link, and how late packets left compared with the model. On
//! a busy machine run it before all ordinary processes (`chrt -f 50`), and do not trust a run in
//! which many packets were late. A packet that waits in a device while netem does not run is
//! stamped when it is read; such a delay shows as lateness of the packets that were due meanwhile.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::time::Duration;

use polypath_sim::Scenario;
use polypath_sim::emulator::{self, Handle, Port};
use polypath_sim::link::LossModel;
use polypath_sim::network::ChangeKind;
use polypath_sim::scenario::Direction;
use polypath_sim::units::Probability;
use serde_json::{Value, json};
use tappers::{Interface, Tun};

type Failure = Box<dyn Error + Send + Sync>;

/// A TUN device: what the host sends through it can be read from it.
struct Device(Tun);

impl Device {
    fn open(name: &str) -> Result<Box<dyn Port>, Failure> {
        let mut tun = Interface::new(name)
            .and_then(Tun::new_named)
            .map_err(|error| format!("TUN device {name}: {error}"))?;
        tun.set_nonblocking(true)?;
        Ok(Box::new(Self(tun)))
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Port for Device {
    fn receive(&mut self, packet: &mut [u8]) -> io::Result<usize> {
        self.0.recv(packet)
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.0.send(packet).map(drop)
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, devices @ ..] = words.as_slice() else {
        eprintln!("usage: netem SCENARIO.toml SENDER,RECEIVER...");
        return ExitCode::from(2);
    };
    match run(scenario, devices) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("netem: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(scenario: &str, devices: &[String]) -> Result<(), Failure> {
    let text = std::fs::read_to_string(scenario).map_err(|e| format!("{scenario}: {e}"))?;
    let scenario = Scenario::from_toml(&text)?;
    let mut ports = Vec::new();
    for pair in devices {
        let (a, b) = pair.split_once(',').ok_or("devices: SENDER,RECEIVER for each path")?;
        ports.push([Device::open(a)?, Device::open(b)?]);
    }
    let names: Vec<_> = scenario.paths.iter().map(|path| path.name.as_deref()).collect();
    let handle = emulator::start_between(&scenario, ports)?;
    let mut out = io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let answer = match command(&line, &names, &handle) {
            Ok(Some(answer)) => answer,
            Ok(None) => break,
            Err(error) => json!({ "error": error.to_string() }),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    handle.stop()?;
    Ok(())
}

/// Carries out a command; `None` for the last one.
fn command(line: &str, names: &[Option<&str>], handle: &Handle) -> Result<Option<Value>, Failure> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (verb, words) = words.split_first().ok_or("no command")?;
    match *verb {
        "quit" => return Ok(None),
        "report" => return report(handle).map(Some),
        _ => {}
    }
    let (name, words) = words.split_first().ok_or("which path?")?;
    let path = names.iter().position(|known| *known == Some(name)).ok_or("no such path")?;
    let (kind, words) = match *verb {
        "down" => (ChangeKind::Down, words),
        "up" => (ChangeKind::Up, words),
        "loss" => {
            let (value, rest) = words.split_first().ok_or("what loss?")?;
            let loss = value.parse::<Probability>()?;
            (ChangeKind::Loss(LossModel::bernoulli(loss)), rest)
        }
        _ => return Err("no such command".into()),
    };
    let direction = match words {
        [] => Direction::Both,
        ["forward"] => Direction::Forward,
        ["back"] => Direction::Back,
        _ => return Err("forward or back".into()),
    };
    handle.change(path, direction, kind)?;
    Ok(Some(json!({ "done": line })))
}

fn report(handle: &Handle) -> Result<Value, Failure> {
    let report = handle.report()?;
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    let links = report.links.iter().map(|link| {
        json!({
            "name": link.name,
            "up": link.up,
            "counters": link.counters,
            "queued_packets": link.queueing.packets,
            "queued_ms": ms(link.queueing.total),
            "queued_ms_most": ms(link.queueing.most),
        })
    });
    let late = report.punctuality;
    Ok(json!({
        "links": links.collect::<Vec<_>>(),
        "late": {
            "packets": late.datagrams,
            "ms_mean": late.mean().map(ms),
            "ms_most": ms(late.most),
            "over_1_ms": late.over_millisecond,
        },
    }))
}
