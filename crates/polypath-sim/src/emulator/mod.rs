//! The links of the simulator, in real time, between real UDP sockets.
//!
//! For path n the emulator stands between a sender at an address S and a receiver at an address R:
//! it binds R:`front_port`, which the sender talks to, and S:`back_port`, which the receiver sees
//! as its peer. So the IP addresses are true, and only the ports of the UDP encapsulation differ;
//! RFC 6951 learns them per path. What the sender's port is, the emulator learns from its first
//! datagram over any path.
//!
//! Link times count whole packets: IP header, UDP header, payload. Faults of the scenario are
//! timed from the first datagram on. A [`Handle`] changes links while the emulator runs.

// This module is the one place of the crate that has sockets, a clock and a thread: it is not a
// simulation.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod relay;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt;
use thiserror::Error;

use crate::link::{Link, LinkCounters};
use crate::network::ChangeKind;
use crate::scenario::{Direction, EmulatorSpec, Plan, Scenario, ScenarioError};
use relay::{Command, Relay, Route};

/// Receive buffer asked for at each socket, in bytes: what the modelled queue has room for must
/// not be lost in front of it.
const SOCKET_BUFFER: usize = 4 << 20;

/// Why an emulator does not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario has no `[[path]]`.
    #[error("the emulator needs a scenario with [[path]]")]
    NoPath,
    /// The scenario has background traffic.
    #[error(
        "the emulator has no background traffic: take [[traffic]] and cross_traffic out of the \
         scenario"
    )]
    Traffic,
    /// Addresses of the scenario come and go.
    #[error(
        "the emulator's addresses are those of real sockets, which come and go by themselves: take \
         [[address]] out of the scenario"
    )]
    Addresses,
    /// An address cannot be bound.
    #[error("{address} cannot be bound: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// The capture cannot be written.
    #[error("the capture cannot be written: {0}")]
    Capture(io::Error),
    /// The operating system refused something else.
    #[error("the emulator failed: {0}")]
    System(#[from] io::Error),
    /// The emulator has ended.
    #[error("the emulator has ended")]
    Ended,
}

/// Where a path is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathAddresses {
    /// Name of the path in the scenario.
    pub name: String,
    /// The sender's own address on this path.
    pub sender: IpAddr,
    /// What the sender talks to.
    pub front: SocketAddr,
    /// What the receiver sees as its peer.
    pub back: SocketAddr,
    /// Where the receiver listens.
    pub receiver: SocketAddr,
}

/// What went over one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// Name of the link.
    pub name: String,
    /// It works.
    pub up: bool,
    /// Counters.
    pub counters: LinkCounters,
}

/// How late datagrams left the emulator, by its links' times: what the machine adds to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Punctuality {
    /// Datagrams that left.
    pub datagrams: u64,
    /// All their delays added up.
    pub total: Duration,
    /// The longest delay.
    pub most: Duration,
}

impl Punctuality {
    /// The mean delay; none before the first datagram.
    pub fn mean(&self) -> Option<Duration> {
        let nanoseconds = self.total.as_nanos().checked_div(self.datagrams.into())?;
        // The mean is at most the longest, which is a Duration.
        u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
    }

    fn note(&mut self, late: Duration) {
        self.datagrams += 1;
        self.total += late;
        self.most = self.most.max(late);
    }
}

/// What an emulator has done so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every link, in the order of the capture's interfaces.
    pub links: Vec<LinkReport>,
    /// How well it kept their times.
    pub punctuality: Punctuality,
}

/// A running emulator. It ends when this is dropped.
#[derive(Debug)]
pub struct Handle {
    paths: Vec<PathAddresses>,
    commands: mpsc::Sender<Command>,
    waker: UnixDatagram,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Starts an emulator of the scenario's paths and faults; with a writer it writes a pcapng capture
/// of every link, with the datagrams as the receiver sees them.
///
/// # Errors
/// The scenario is wrong or has no paths, or an address cannot be bound.
pub fn start(
    scenario: &Scenario,
    capture: Option<Box<dyn Write + Send>>,
) -> Result<Handle, EmulatorError> {
    let plan = Plan::new(scenario).map_err(|problem| problem.at(Default::default()))?;
    if plan.paths.is_empty() {
        return Err(EmulatorError::NoPath);
    }
    if !plan.traffic.is_empty() {
        return Err(EmulatorError::Traffic);
    }
    if !plan.moves.is_empty() {
        return Err(EmulatorError::Addresses);
    }
    let spec = scenario.emulator.clone().unwrap_or_default();
    let (mut routes, mut paths) = (Vec::new(), Vec::new());
    for (n, path) in plan.paths.iter().enumerate() {
        let (sender, receiver) = addresses(&spec, n);
        let receiver = SocketAddr::new(receiver, spec.receiver_port);
        let front = bind(SocketAddr::new(receiver.ip(), spec.front_port))?;
        let back = bind(SocketAddr::new(sender, spec.back_port))?;
        paths.push(PathAddresses {
            name: path.name.clone(),
            sender,
            front: front.local_addr()?,
            back: back.local_addr()?,
            receiver,
        });
        routes.push(Route {
            front,
            back,
            sender: None,
            receiver,
            forward: path.forward.clone(),
            backward: path.back.clone(),
            middle: path.middle,
        });
    }
    let links = plan.topology.links.iter();
    let links =
        links.map(|l| (l.name.clone(), Link::new(l.config.clone(), scenario.seed, &l.name)));
    let (commands, inbox) = mpsc::channel();
    let (waker, woken) = UnixDatagram::pair()?;
    woken.set_nonblocking(true)?;
    let mut relay = Relay::new(routes, links.collect(), plan.changes, inbox, woken);
    if let Some(out) = capture {
        relay.capture(out).map_err(EmulatorError::Capture)?;
    }
    let thread = std::thread::Builder::new().name("emulator".to_owned()).spawn(|| relay.run())?;
    Ok(Handle { paths, commands, waker, thread: Some(thread) })
}

/// Addresses of the sender and the receiver on the n-th path.
fn addresses(spec: &EmulatorSpec, n: usize) -> (IpAddr, IpAddr) {
    let loopback = |host| IpAddr::V4(Ipv4Addr::new(127, 0, n as u8 + 1, host));
    let sender = spec.senders.get(n).copied().unwrap_or_else(|| loopback(1));
    let receiver = spec.receivers.get(n).copied().unwrap_or_else(|| loopback(2));
    (sender, receiver)
}

fn bind(address: SocketAddr) -> Result<UdpSocket, EmulatorError> {
    let bound = || {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // The system may give less; then bursts are lost earlier.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
        let _ = sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER);
        Ok(socket)
    };
    bound().map_err(|source| EmulatorError::Bind { address, source })
}

impl Handle {
    /// Where the paths are to be found, in the order of the scenario.
    pub fn paths(&self) -> &[PathAddresses] {
        &self.paths
    }

    /// Changes the n-th path's (middle) link now.
    ///
    /// # Errors
    /// The emulator has ended.
    pub fn change(
        &self,
        path: usize,
        direction: Direction,
        kind: ChangeKind,
    ) -> Result<(), EmulatorError> {
        self.tell(Command::Change { path, direction, kind })
    }

    /// Cuts the n-th path, both ways.
    ///
    /// # Errors
    /// The emulator has ended.
    pub fn cut(&self, path: usize) -> Result<(), EmulatorError> {
        self.change(path, Direction::Both, ChangeKind::Down)
    }

    /// Mends the n-th path, both ways.
    ///
    /// # Errors
    /// The emulator has ended.
    pub fn mend(&self, path: usize) -> Result<(), EmulatorError> {
        self.change(path, Direction::Both, ChangeKind::Up)
    }

    /// What went over every link so far, and how punctually.
    ///
    /// # Errors
    /// The emulator has ended.
    pub fn report(&self) -> Result<Report, EmulatorError> {
        let (answer, report) = mpsc::channel();
        self.tell(Command::Report(answer))?;
        report.recv().map_err(|_| EmulatorError::Ended)
    }

    /// Ends the emulator and completes its capture.
    ///
    /// # Errors
    /// The emulator failed, or its capture could not be written.
    pub fn stop(mut self) -> Result<(), EmulatorError> {
        self.end()
    }

    fn tell(&self, command: Command) -> Result<(), EmulatorError> {
        self.commands.send(command).map_err(|_| EmulatorError::Ended)?;
        // A full socket means that it wakes anyway.
        let _ = self.waker.send(&[0]);
        Ok(())
    }

    fn end(&mut self) -> Result<(), EmulatorError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let _ = self.tell(Command::Stop);
        match thread.join() {
            Ok(result) => result.map_err(EmulatorError::Capture),
            Err(_) => Err(EmulatorError::Ended),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests;
