//! The emulator's thread: receives datagrams, passes them through the links, and sends them when
//! they arrive.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use polypath_proto::{Ecn, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Port;
use super::packet;
use super::report::{LinkReport, Punctuality, Queueing, Report};
use crate::link::{Allows, Link, Origin, Ticket, Verdict};
use crate::network::{Change, ChangeKind, Departures, EventQueue, LinkId};
use crate::pcapng::{InterfaceId, PcapNg};
use crate::scenario::{Direction, PathLinks};
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

/// A path: its ends and the links between them.
pub(super) struct Route {
    ends: Ends,
    forward: Vec<LinkId>,
    backward: Vec<LinkId>,
    middle: usize,
}

/// Where packets enter and leave a path.
pub(super) enum Ends {
    /// UDP sockets; datagrams are passed on without their headers.
    Sockets {
        /// Socket to which the sender sends.
        front: UdpSocket,
        /// Socket to which the receiver sends.
        back: UdpSocket,
        /// Address of the sender, once its port is known or assumed.
        sender: Option<SocketAddr>,
        receiver: SocketAddr,
    },
    /// The sender's and the receiver's end, for whole IP packets.
    Ports([Box<dyn Port>; 2]),
}

impl Route {
    pub(super) fn new(ends: Ends, path: &PathLinks) -> Self {
        let (forward, backward) = (path.forward.clone(), path.back.clone());
        Self { ends, forward, backward, middle: path.middle }
    }

    fn links(&self, forward: bool) -> &[LinkId] {
        if forward { &self.forward } else { &self.backward }
    }

    /// What to wait for: packets of the sender, packets of the receiver.
    fn readable(&self) -> [BorrowedFd<'_>; 2] {
        match &self.ends {
            Ends::Sockets { front, back, .. } => [front.as_fd(), back.as_fd()],
            Ends::Ports([sender, receiver]) => [sender.as_fd(), receiver.as_fd()],
        }
    }

    /// Size in bytes of a packet with its headers, and its part after the IP and UDP headers.
    fn measure<'b>(&self, bytes: &'b [u8]) -> (u32, &'b [u8]) {
        match &self.ends {
            Ends::Sockets { receiver, .. } => {
                let header = wire::ip_header_size(receiver.ip()) + wire::UDP_HEADER;
                (header + bytes.len() as u32, bytes)
            }
            Ends::Ports(_) => (bytes.len() as u32, &bytes[packet::payload_offset(bytes)..]),
        }
    }

    /// Sends what has passed the path. A packet that the system does not accept is lost, as on any
    /// network.
    fn deliver(&mut self, forward: bool, bytes: &[u8]) {
        let _ = match &mut self.ends {
            Ends::Sockets { front, back, sender, receiver } => match (forward, *sender) {
                (true, _) => back.send_to(bytes, *receiver).map(drop),
                (false, Some(sender)) => front.send_to(bytes, sender).map(drop),
                (false, None) => Ok(()),
            },
            Ends::Ports([sender, receiver]) => if forward { receiver } else { sender }.send(bytes),
        };
    }
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

/// A datagram in a queue under active management.
#[derive(Debug)]
struct Held {
    datagram: Datagram,
    since: Time,
}

#[derive(Debug)]
enum Event {
    Arrival { datagram: Datagram, ticket: Ticket },
    Departure(LinkId),
    Change(usize),
}

pub(super) struct Relay {
    started: Instant,
    routes: Vec<Route>,
    links: Vec<(String, Link)>,
    /// How long packets wait in the queue of each link.
    queueing: Vec<Queueing>,
    events: EventQueue<Event>,
    /// The datagrams in queues under active management, when they leave, and the number of all so
    /// far.
    held: HashMap<u64, Held>,
    departures: Departures,
    named: u64,
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
            queueing: vec![Queueing::default(); links.len()],
            links,
            events: EventQueue::new(),
            held: HashMap::new(),
            departures: Departures::default(),
            named: 0,
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

    /// Waits for the next event or for a readable socket. Returns which are readable: the waker,
    /// then the sender's and the receiver's end of each path.
    fn wait(&self) -> io::Result<Vec<bool>> {
        let mut sockets = vec![PollFd::new(&self.woken, PollFlags::IN)];
        for route in &self.routes {
            let readable = route.readable();
            sockets.extend(readable.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
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
                Some((at, Event::Departure(link))) => self.depart(at, link),
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
                    let links = self.links.iter().zip(&self.queueing);
                    let links = links.map(|((name, link), queueing)| LinkReport {
                        name: name.clone(),
                        up: link.is_up(),
                        counters: *link.counters(),
                        queueing: *queueing,
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
            let (size, from) = match &mut self.routes[path].ends {
                Ends::Sockets { front, back, .. } => {
                    // Errors other than `WouldBlock` are ICMP errors that an earlier datagram
                    // caused.
                    let socket = if forward { front } else { back };
                    let Ok((size, from)) = socket.recv_from(&mut self.received) else { return };
                    (size, Some(from))
                }
                Ends::Ports(ports) => {
                    let port = &mut ports[usize::from(!forward)];
                    let Ok(size) = port.receive(&mut self.received) else { return };
                    (size, None)
                }
            };
            if let Some(from) = from
                && !self.is_expected(path, forward, from)
            {
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

    /// Whether a datagram comes from the sender, whose address it announces, or from the receiver.
    fn is_expected(&mut self, path: usize, forward: bool, from: SocketAddr) -> bool {
        let Ends::Sockets { sender, receiver, .. } = &mut self.routes[path].ends else {
            return true;
        };
        if !forward {
            return from.ip() == receiver.ip();
        }
        *sender = Some(from);
        self.heard(from.port());
        true
    }

    /// Assumes that the sender's port is the same on the paths over which it has not sent yet. The
    /// receiver may send first on such a path: its HEARTBEAT would be lost, and with
    /// Path.Max.Retrans 0 it would not use that path for half a minute.
    fn heard(&mut self, port: u16) {
        for route in &mut self.routes {
            if let Ends::Sockets { back, sender: sender @ None, .. } = &mut route.ends {
                let address = back.local_addr();
                *sender = address.ok().map(|address| SocketAddr::new(address.ip(), port));
            }
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

    fn offer(&mut self, now: Time, datagram: Datagram) {
        let route = &self.routes[datagram.path];
        let id = route.links(datagram.forward)[datagram.hops];
        let (size, payload) = route.measure(&datagram.bytes);
        // The ECN field of a datagram that a socket received is not known.
        let whole = matches!(route.ends, Ends::Ports(_));
        let mark = whole && packet::allows_mark(&datagram.bytes);
        let link = &mut self.links[id.index()].1;
        let origin = if link.is_managed() {
            self.named += 1;
            // The datagrams that two sockets exchange are one flow in each direction.
            let socket = 2 * datagram.path as u64 + u64::from(datagram.forward);
            let flow = if whole { packet::flow(&datagram.bytes) } else { socket };
            Origin { flow, id: self.named, background: false }
        } else {
            Origin::default()
        };
        let allows = Allows { fragments: false, mark };
        let verdict = link.offer_as(now, size, payload, allows, origin);
        if let (Some(capture), Ends::Sockets { back, receiver, .. }) =
            (&mut self.capture, &route.ends)
        {
            capture.record(now, id, (back, *receiver), &datagram, verdict);
        }
        if verdict == Verdict::Wait {
            self.held.insert(origin.id, Held { datagram, since: now });
            self.schedule_departure(now, id);
        } else {
            self.settle(now, id, datagram, verdict);
        }
    }

    /// A link takes the next packet from its queue.
    fn depart(&mut self, at: Time, id: LinkId) {
        if !self.departures.is_due(at, id) {
            return;
        }
        while let Some((name, verdict)) = self.links[id.index()].1.depart(at) {
            if let Some(Held { datagram, since }) = self.held.remove(&name) {
                self.settle(since, id, datagram, verdict);
            }
        }
        self.schedule_departure(at, id);
    }

    /// Schedules the next departure from a link in whose queue datagrams may wait.
    fn schedule_departure(&mut self, now: Time, id: LinkId) {
        if let Some(at) = self.departures.next(now, id, &self.links[id.index()].1) {
            self.events.schedule(at, Event::Departure(id));
        }
    }

    /// Schedules the arrival of a datagram that a link transmits, or drops it. It was offered to
    /// the link at `since`.
    fn settle(&mut self, since: Time, id: LinkId, mut datagram: Datagram, verdict: Verdict) {
        let (size, payload) = self.routes[datagram.path].measure(&datagram.bytes);
        let start = datagram.bytes.len() - payload.len();
        match verdict {
            Verdict::Deliver { arrival, duplicate } => {
                let config = self.links[id.index()].1.config();
                let transmission = config.rate.map_or(Duration::ZERO, |r| r.time_for(size.into()));
                let wait = arrival.at.since(since).saturating_sub(config.delay + transmission);
                self.queueing[id.index()].note(wait);
                let ticket = arrival.ticket;
                if arrival.cleared {
                    packet::set_ecn(&mut datagram.bytes, Ecn::NotEct);
                }
                if duplicate {
                    let copy = Datagram { bytes: datagram.bytes.clone(), ..datagram };
                    self.events.schedule(arrival.at, Event::Arrival { datagram: copy, ticket });
                }
                if arrival.marked {
                    packet::set_ecn(&mut datagram.bytes, Ecn::Ce);
                }
                if let Some(bit) = arrival.inverted_bit {
                    datagram.bytes[start + (bit / 8) as usize] ^= 0x80 >> (bit % 8);
                }
                self.events.schedule(arrival.at, Event::Arrival { datagram, ticket });
            }
            Verdict::Drop(_) => self.spare.push(datagram.bytes),
            Verdict::Wait => {}
        }
    }

    fn arrived(&mut self, at: Time, mut datagram: Datagram, ticket: Ticket) {
        let route = &mut self.routes[datagram.path];
        let (size, _) = route.measure(&datagram.bytes);
        let links = route.links(datagram.forward);
        let (id, hops) = (links[datagram.hops], links.len());
        if !self.links[id.index()].1.arrive(ticket, size) {
            self.spare.push(datagram.bytes);
            return;
        }
        datagram.hops += 1;
        if datagram.hops < hops {
            // Use the model's time, not the later one of the thread, so that delays do not add up.
            self.offer(at, datagram);
            return;
        }
        self.punctuality.note(Time::since(Time::ZERO + self.started.elapsed(), at));
        route.deliver(datagram.forward, &datagram.bytes);
        self.spare.push(datagram.bytes);
    }
}

impl Capture {
    /// Records the datagram as the receiver sees it, with a port that capture tools recognise.
    fn record(
        &mut self,
        now: Time,
        link: LinkId,
        (back, receiver): (&UdpSocket, SocketAddr),
        datagram: &Datagram,
        verdict: Verdict,
    ) {
        if self.result.is_err() {
            return;
        }
        let back = match back.local_addr() {
            Ok(back) => back,
            Err(error) => {
                self.result = Err(error);
                return;
            }
        };
        let (source, destination) =
            if datagram.forward { (back, receiver) } else { (receiver, back) };
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
