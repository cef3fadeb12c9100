//! Emulates the simulator's links in real time, between real UDP sockets.
//!
//! For path n the emulator is placed between a sender at address S and a receiver at address R: it
//! binds R:`front_port`, to which the sender sends, and S:`back_port`, which the receiver sees as
//! its peer. So the IP addresses are real, and only the UDP encapsulation ports differ, which an
//! RFC 6951 endpoint learns per path. The emulator learns the sender's port from the first datagram
//! on any path.
//!
//! Link times count whole packets: IP header, UDP header, payload. The scenario's faults are timed
//! from the first datagram. A [`Handle`] changes links while the emulator runs.
//!
//! [`start_between`] forwards whole IP packets of any protocol between [`Port`]s instead, such as
//! TUN devices in two network namespaces.

// Only this module of the crate uses sockets, a clock and a thread: it is not a simulation.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

mod packet;
mod relay;
mod report;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc;
use std::thread::JoinHandle;

use rustix::net::sockopt;
use thiserror::Error;

use crate::link::Link;
use crate::network::ChangeKind;
use crate::scenario::{Direction, EmulatorSpec, Plan, Scenario, ScenarioError};
use relay::{Command, Ends, Relay, Route};
pub use report::{LinkReport, Punctuality, Queueing, Report};

/// Requested socket buffer size in bytes: a packet for which the modelled queue has room must not
/// be lost in a socket.
const SOCKET_BUFFER: usize = 4 << 20;

/// An error of the emulator.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario has no `[[path]]`.
    #[error("the emulator needs a scenario with [[path]]")]
    NoPath,
    /// The scenario has another number of paths than there are pairs of ports.
    #[error("{ports} pairs of ports for {paths} paths")]
    Ports {
        /// Number of paths in the scenario.
        paths: usize,
        /// Number of pairs of ports.
        ports: usize,
    },
    /// The scenario has background traffic.
    #[error(
        "the emulator has no background traffic: take [[traffic]] and cross_traffic out of the \
         scenario"
    )]
    Traffic,
    /// The scenario adds or removes addresses.
    #[error(
        "the emulator's addresses are those of real sockets, which come and go by themselves: take \
         [[address]] out of the scenario"
    )]
    Addresses,
    /// The scenario has a NAT.
    #[error("the emulator has no NATs: take nat out of the scenario's paths")]
    Nat,
    /// An address cannot be bound.
    #[error("{address} cannot be bound: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Error of the operating system.
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

/// Addresses of a path: its two ends and the emulator's sockets between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathAddresses {
    /// Name of the path in the scenario.
    pub name: String,
    /// The sender's address on this path.
    pub sender: IpAddr,
    /// Address to which the sender sends.
    pub front: SocketAddr,
    /// Address that the receiver sees as its peer.
    pub back: SocketAddr,
    /// Address on which the receiver listens.
    pub receiver: SocketAddr,
}

/// A running emulator. Dropping the handle ends the emulator.
#[derive(Debug)]
pub struct Handle {
    paths: Vec<PathAddresses>,
    commands: mpsc::Sender<Command>,
    waker: UnixDatagram,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// One end of a path: sends and receives whole IP packets. Non-blocking.
pub trait Port: AsFd + Send {
    /// Receives one packet; returns its size in bytes.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; other errors end the reading until the port is readable
    /// again.
    fn receive(&mut self, packet: &mut [u8]) -> io::Result<usize>;

    /// Sends one packet.
    ///
    /// # Errors
    /// The packet is lost.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;
}

/// Starts an emulator of the scenario's paths and faults. With a writer, it writes a pcapng capture
/// of every link, with the datagrams as the receiver sees them.
///
/// # Errors
/// The scenario is invalid, has no paths, or has background traffic or address changes; an address
/// cannot be bound; or the capture cannot be written.
pub fn start(
    scenario: &Scenario,
    capture: Option<Box<dyn Write + Send>>,
) -> Result<Handle, EmulatorError> {
    let plan = plan(scenario)?;
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
        routes.push(Route::new(Ends::Sockets { front, back, sender: None, receiver }, path));
    }
    run(scenario, plan, routes, paths, capture)
}

/// Starts an emulator that forwards IP packets of any protocol: the n-th path of the scenario is
/// between the n-th pair of ports, the sender's first. [`Handle::paths`] is empty.
///
/// # Errors
/// The scenario is invalid, has background traffic or address changes, or not as many paths as
/// there are pairs.
pub fn start_between(
    scenario: &Scenario,
    ports: Vec<[Box<dyn Port>; 2]>,
) -> Result<Handle, EmulatorError> {
    let plan = plan(scenario)?;
    if plan.paths.len() != ports.len() {
        return Err(EmulatorError::Ports { paths: plan.paths.len(), ports: ports.len() });
    }
    let routes = ports.into_iter().map(Ends::Ports).zip(&plan.paths);
    let routes = routes.map(|(ends, path)| Route::new(ends, path)).collect();
    run(scenario, plan, routes, Vec::new(), None)
}

/// The scenario's links and faults, if the emulator can run them.
fn plan(scenario: &Scenario) -> Result<Plan, EmulatorError> {
    let plan = Plan::new(scenario).map_err(|problem| problem.at(Default::default()))?;
    if plan.paths.is_empty() {
        return Err(EmulatorError::NoPath);
    }
    if !plan.traffic.is_empty() || !plan.tcp.is_empty() {
        return Err(EmulatorError::Traffic);
    }
    if !plan.moves.is_empty() {
        return Err(EmulatorError::Addresses);
    }
    if !plan.topology.nats.is_empty() {
        return Err(EmulatorError::Nat);
    }
    Ok(plan)
}

/// Starts the emulator's thread.
fn run(
    scenario: &Scenario,
    plan: Plan,
    routes: Vec<Route>,
    paths: Vec<PathAddresses>,
    capture: Option<Box<dyn Write + Send>>,
) -> Result<Handle, EmulatorError> {
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
        // The system may grant a smaller buffer; bursts are then lost earlier.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
        let _ = sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER);
        Ok(socket)
    };
    bound().map_err(|source| EmulatorError::Bind { address, source })
}

impl Handle {
    /// Addresses of the paths, in the order of the scenario.
    pub fn paths(&self) -> &[PathAddresses] {
        &self.paths
    }

    /// Changes the middle link of the n-th path now.
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

    /// Takes the n-th path's middle link down in both directions.
    ///
    /// # Errors
    /// The emulator has ended.
    pub fn cut(&self, path: usize) -> Result<(), EmulatorError> {
        self.change(path, Direction::Both, ChangeKind::Down)
    }

    /// Brings the n-th path's middle link up again in both directions.
    ///
    /// # Errors
    /// The emulator has ended.
    pub fn restore(&self, path: usize) -> Result<(), EmulatorError> {
        self.change(path, Direction::Both, ChangeKind::Up)
    }

    /// Reports the counters of every link and the punctuality so far.
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
        // If the socket is full, the thread wakes anyway.
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
