//! The emulator's thread: receives datagrams, passes them through the links, and sends them when
//! they arrive.

use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use polypath_proto::{Ecn, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::report::{LinkReport, Punctuality, Report};
use crate::link::{Link, Ticket, Verdict};
use crate::network::{Change, ChangeKind, EventQueue, LinkId};
use crate::pcapng::{InterfaceId, PcapNg};
use crate::scenario::Direction;
use crate::wire;

/// Maximum number of datagrams read from one socket before the next socket is read.
const BATCH: usize = 64;
const LARGEST_DATAGRAM: usize = 65_535;

/// A command from the handle to the thread.
#[derive(Debug)]
pub(super) enum Command {
    Change { path: usize, direction: Direction, kind: ChangeKind },
    Report(mpsc::Sender<Report>),
    Stop,
}

/// A path and its sockets.
#[derive(Debug)]
pub(super) struct Route {
    /// Socket to which the sender sends.
    pub(super) front: UdpSocket,
    /// Socket to which the receiver sends.
    pub(super) back: UdpSocket,
    /// Address of the sender, once its port is known or assumed.
    pub(super) sender: Option<SocketAddr>,
    pub(super) receiver: SocketAddr,
    pub(super) forward: Vec<LinkId>,
    pub(super) backward: Vec<LinkId>,
    pub(super) middle: usize,
}

/// A datagram under way.
#[derive(Debug)]
struct Datagram {
    bytes: Vec<u8>,
    path: usize,
    forward: bool,
    /// Number of links that it has passed.
    hops: usize,
}

#[derive(Debug)]
enum Event {
    Arrival { datagram: Datagram, ticket: Ticket },
    Change(usize),
}

pub(super) struct Relay {
    started: Instant,
    routes: Vec<Route>,
    links: Vec<(String, Link)>,
    events: EventQueue<Event>,
    changes: Vec<Change>,
    /// Whether a datagram has arrived and the scenario's faults are scheduled.
    begun: bool,
    commands: mpsc::Receiver<Command>,
    woken: UnixDatagram,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    received: Vec<u8>,
    punctuality: Punctuality,
    capture: Option<Capture>,
}

struct Capture {
    file: PcapNg<Box<dyn Write + Send>>,
    interfaces: Vec<InterfaceId>,
    result: io::Result<()>,
}

impl Relay {
    pub(super) fn new(
        routes: Vec<Route>,
        links: Vec<(String, Link)>,
        changes: Vec<Change>,
        commands: mpsc::Receiver<Command>,
        woken: UnixDatagram,
    ) -> Self {
        Self {
            started: Instant::now(),
            routes,
            links,
            events: EventQueue::new(),
            changes,
            begun: false,
            commands,
            woken,
            spare: Vec::new(),
            received: vec![0; LARGEST_DATAGRAM],
            punctuality: Punctuality::default(),
            capture: None,
        }
    }

    pub(super) fn capture(&mut self, out: Box<dyn Write + Send>) -> io::Result<()> {
        let mut file = PcapNg::new(out)?;
        let interfaces = self.links.iter().map(|(name, _)| file.interface(name));
        let interfaces = interfaces.collect::<io::Result<_>>()?;
        self.capture = Some(Capture { file, interfaces, result: Ok(()) });
        Ok(())
    }

    fn now(&self) -> Time {
        Time::ZERO + self.started.elapsed()
    }

    /// Relays datagrams until the handle sends [`Command::Stop`].
    pub(super) fn run(mut self) -> io::Result<()> {
        loop {
            let readable = self.wait()?;
            self.handle_due();
            if readable[0] && self.handle_commands() {
                break;
            }
            for path in 0..self.routes.len() {
                for (socket, forward) in [(1 + 2 * path, true), (2 + 2 * path, false)] {
                    if readable[socket] {
                        self.receive(path, forward);
                    }
                }
            }
        }
        match self.capture {
            Some(mut capture) => capture.result.and_then(|()| capture.file.flush()),
            None => Ok(()),
        }
    }

    /// Waits for the next event or for a readable socket. Returns which sockets are readable: the
    /// waker, then front and back of each path.
    fn wait(&self) -> io::Result<Vec<bool>> {
        let mut sockets = vec![PollFd::new(&self.woken, PollFlags::IN)];
        for route in &self.routes {
            sockets.push(PollFd::new(&route.front, PollFlags::IN));
            sockets.push(PollFd::new(&route.back, PollFlags::IN));
        }
        let timeout = self.events.next_time().map(|at| timespec(at.since(self.now())));
        match poll(&mut sockets, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(sockets.iter().map(|socket| !socket.revents().is_empty()).collect())
    }

    /// Handles the arrivals and link changes that are due.
    fn handle_due(&mut self) {
        loop {
            let now = self.now();
            if self.events.next_time().is_none_or(|at| at > now) {
                return;
            }
            match self.events.pop() {
                Some((at, Event::Arrival { datagram, ticket })) => {
                    self.arrived(at, datagram, ticket);
                }
                Some((at, Event::Change(index))) => {
                    let Change { link, kind, .. } = self.changes[index].clone();
                    kind.apply(at, &mut self.links[link.index()].1);
                }
                None => return,
            }
        }
    }

    /// Handles the pending commands; true if one is [`Command::Stop`].
    fn handle_commands(&mut self) -> bool {
        let mut byte = [0];
        while self.woken.recv(&mut byte).is_ok() {}
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Change { path, direction, kind } => self.change(path, direction, &kind),
                Command::Report(answer) => {
                    let links = self.links.iter().map(|(name, link)| LinkReport {
                        name: name.clone(),
                        up: link.is_up(),
                        counters: *link.counters(),
                    });
                    let links = links.collect();
                    // The caller may have stopped waiting.
                    let _ = answer.send(Report { links, punctuality: self.punctuality });
                }
                Command::Stop => return true,
            }
        }
        false
    }

    fn change(&mut self, path: usize, direction: Direction, kind: &ChangeKind) {
        let now = self.now();
        let Some(route) = self.routes.get(path) else { return };
        let forward = direction.is_forward().then_some(route.forward[route.middle]);
        let backward = direction.is_back().then_some(route.backward[route.middle]);
        for link in forward.into_iter().chain(backward) {
            kind.apply(now, &mut self.links[link.index()].1);
        }
    }

    fn receive(&mut self, path: usize, forward: bool) {
        for _ in 0..BATCH {
            let route = &mut self.routes[path];
            let socket = if forward { &route.front } else { &route.back };
            // Errors other than `WouldBlock` are ICMP errors that an earlier datagram caused.
            let Ok((size, from)) = socket.recv_from(&mut self.received) else { return };
            if forward {
                route.sender = Some(from);
                self.heard(from.port());
            } else if from.ip() != route.receiver.ip() {
                continue;
            }
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clear();
            bytes.extend_from_slice(&self.received[..size]);
            let now = self.now();
            self.begin(now);
            self.offer(now, Datagram { bytes, path, forward, hops: 0 });
        }
    }

    /// Assumes that the sender's port is the same on the paths over which it has not sent yet. The
    /// receiver may send first on such a path: its HEARTBEAT would be lost, and with
    /// Path.Max.Retrans 0 it would not use that path for half a minute.
    fn heard(&mut self, port: u16) {
        for route in self.routes.iter_mut().filter(|route| route.sender.is_none()) {
            let address = route.back.local_addr();
            route.sender = address.ok().map(|address| SocketAddr::new(address.ip(), port));
        }
    }

    /// Schedules the scenario's faults, which are timed from the first datagram.
    fn begin(&mut self, now: Time) {
        if !self.begun {
            self.begun = true;
            for (index, change) in self.changes.iter().enumerate() {
                self.events.schedule(now + change.at.since(Time::ZERO), Event::Change(index));
            }
        }
    }

    fn offer(&mut self, now: Time, mut datagram: Datagram) {
        let route = &self.routes[datagram.path];
        let links = if datagram.forward { &route.forward } else { &route.backward };
        let id = links[datagram.hops];
        let header = wire::ip_header_size(route.receiver.ip()) + wire::UDP_HEADER;
        let size = header + datagram.bytes.len() as u32;
        let verdict = self.links[id.index()].1.offer(now, size, &datagram.bytes);
        if let Some(capture) = &mut self.capture {
            capture.record(now, id, route, &datagram, verdict);
        }
        match verdict {
            Verdict::Deliver { arrival, duplicate } => {
                let ticket = arrival.ticket;
                if duplicate {
                    let copy = Datagram { bytes: datagram.bytes.clone(), ..datagram };
                    self.events.schedule(arrival.at, Event::Arrival { datagram: copy, ticket });
                }
                if let Some(bit) = arrival.inverted_bit {
                    datagram.bytes[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
                }
                self.events.schedule(arrival.at, Event::Arrival { datagram, ticket });
            }
            Verdict::Drop(_) => self.spare.push(datagram.bytes),
        }
    }

    fn arrived(&mut self, at: Time, mut datagram: Datagram, ticket: Ticket) {
        let route = &self.routes[datagram.path];
        let links = if datagram.forward { &route.forward } else { &route.backward };
        let size = wire::ip_header_size(route.receiver.ip())
            + wire::UDP_HEADER
            + datagram.bytes.len() as u32;
        if !self.links[links[datagram.hops].index()].1.arrive(ticket, size) {
            self.spare.push(datagram.bytes);
            return;
        }
        datagram.hops += 1;
        if datagram.hops < links.len() {
            // Use the model's time, not the later one of the thread, so that delays do not add up.
            self.offer(at, datagram);
            return;
        }
        let late = self.now().since(at);
        self.punctuality.note(late);
        // A datagram that the system does not accept is lost, as on any network.
        let _ = match (datagram.forward, route.sender) {
            (true, _) => route.back.send_to(&datagram.bytes, route.receiver),
            (false, Some(sender)) => route.front.send_to(&datagram.bytes, sender),
            (false, None) => Ok(0),
        };
        self.spare.push(datagram.bytes);
    }
}

impl Capture {
    /// Records the datagram as the receiver sees it, with a port that capture tools recognise.
    fn record(
        &mut self,
        now: Time,
        link: LinkId,
        route: &Route,
        datagram: &Datagram,
        verdict: Verdict,
    ) {
        if self.result.is_err() {
            return;
        }
        let back = match route.back.local_addr() {
            Ok(back) => back,
            Err(error) => {
                self.result = Err(error);
                return;
            }
        };
        let (source, destination) =
            if datagram.forward { (back, route.receiver) } else { (route.receiver, back) };
        self.result = self.file.packet(
            self.interfaces[link.index()],
            now,
            source,
            destination,
            Ecn::NotEct,
            &datagram.bytes,
            verdict.comment(),
        );
    }
}

fn timespec(duration: Duration) -> Timespec {
    // Cap at a century: a longer timeout makes no difference.
    let duration = duration.min(Duration::from_secs(100 * 365 * 86_400));
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}
