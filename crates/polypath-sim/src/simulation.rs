//! A run: handles events in the order of their times, until every association is closed.

mod build;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use polypath_proto::{AssociationId, Config, Event as Notice, FourTuple, PathId, Remote, Time};
use thiserror::Error;

use crate::invariants::{self, Due, Schedule};
use crate::network::trace::{Traced, Tracer};
use crate::network::{Change, Event, HostId, Move, NatReset, Network, NodeId, NodeKind, PacketId};
use crate::oracle;
use crate::outcome::{
    AssociationOutcome, End, EndpointOutcome, FlowOutcome, LinkOutcome, NatOutcome, Outcome,
    PathChange, PathOutcome, SideOutcome, StripeOutcome, TcpOutcome, close_name,
};
use crate::probe::{Probe, Seen};
use crate::scenario::{Run, ScenarioError, Side};
use crate::stack::{Membership, Stack};
use crate::units::Span;
use crate::watch::Watch;
use crate::workload::{ApplicationPair, Conversation};

/// Reason why a run gave no outcome.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimError {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// An invariant did not hold: a bug in polypath.
    #[error("seed {seed:#x}, at {at}: {what}")]
    Violation {
        /// Root seed of the run.
        seed: u64,
        /// Time in the run.
        at: Time,
        /// The invariant that did not hold.
        what: String,
    },
    /// The capture cannot be written.
    #[error("the capture cannot be written: {0}")]
    Capture(#[from] io::Error),
}

/// A run under way.
#[derive(Debug)]
pub(crate) struct Simulation<'w> {
    name: String,
    seed: u64,
    now: Time,
    network: Network<'w>,
    stacks: Vec<Stack>,
    conversations: Vec<Conversation>,
    /// Applications whose data the associations carry.
    applications: Vec<ApplicationPair>,
    changes: Vec<Change>,
    /// Changes of addresses.
    moves: Vec<Move>,
    /// Losses of NATs' mappings.
    resets: Vec<NatReset>,
    run: Run,
    /// Configuration of the side that opens each association.
    configs: Vec<Config>,
    schedule: Schedule,
    /// Probes, each with the time between its samples; without one, it samples at every change.
    probes: Vec<(&'w mut dyn Probe, Option<Duration>)>,
    events: u64,
    /// Whether each conversation is over.
    over: Vec<bool>,
    /// The stack that the current event touched.
    touched: Option<usize>,
    /// Ends a run that makes no progress.
    watch: Option<Watch>,
}

impl<'w> Simulation<'w> {
    /// Ends the run once nothing has made progress for `patience` after the last scheduled change
    /// of the network or of an address, and after the start of the last workload.
    pub(crate) fn watch(&mut self, patience: Duration) {
        let changes = self.changes.iter().map(|change| change.at);
        let moves = self.moves.iter().map(|one| one.noticed().max(one.at));
        let starts = self.conversations.iter().map(|talk| talk.start);
        let resets = self.resets.iter().map(|reset| reset.at);
        let last = changes.chain(moves).chain(resets).chain(starts).max();
        self.watch = Some(Watch::new(last.unwrap_or(Time::ZERO), patience));
    }

    /// Writes a capture of every link.
    pub(crate) fn capture(&mut self, out: &'w mut (dyn Write + Send)) -> io::Result<()> {
        self.network.capture(out)
    }

    /// Lets a probe see the run.
    pub(crate) fn probe(&mut self, probe: &'w mut dyn Probe) {
        let interval = probe.interval().filter(|interval| !interval.is_zero());
        self.probes.push((probe, interval));
    }

    /// Records every packet and its fate.
    pub(crate) fn trace(&mut self) {
        let traced = self.conversations.iter().map(|talk| Traced {
            name: talk.name.clone(),
            hosts: talk.stacks.map(|stack| self.stacks[stack].host),
            port: talk.port,
        });
        self.network.tracer = Some(Tracer::new(&self.network.topology, traced.collect()));
    }

    pub(crate) fn run(mut self) -> Result<Outcome, SimError> {
        self.begin();
        let end = self.until_limit()?;
        self.network.finish_capture()?;
        Ok(self.outcome(end))
    }

    /// Bytes that each association has delivered forward by each of these times, in ascending
    /// order.
    pub(crate) fn delivered_by(mut self, times: &[Span]) -> Result<Vec<Vec<u64>>, SimError> {
        self.begin();
        let mut delivered = Vec::with_capacity(times.len());
        for &time in times {
            self.run.limit = time;
            self.until_limit()?;
            let flows = self.conversations.iter().map(|talk| &talk.flows[0].progress);
            delivered.push(flows.map(|progress| progress.bytes_delivered).collect());
        }
        Ok(delivered)
    }

    fn until_limit(&mut self) -> Result<End, SimError> {
        self.handle_events().map_err(|what| SimError::Violation {
            seed: self.seed,
            at: self.now,
            what,
        })
    }

    /// Schedules the events that do not follow from others.
    fn begin(&mut self) {
        for (index, change) in self.changes.iter().enumerate() {
            self.network.events.schedule(change.at, Event::Change { index: index as u32 });
        }
        for (index, one) in (0u32..).zip(&self.moves) {
            self.network.events.schedule(one.at, Event::Move { index });
        }
        for (index, one) in (0u32..).zip(&self.resets) {
            self.network.events.schedule(one.at, Event::Reset { index });
        }
        // Schedule notices after all changes, so that the endpoints learn of all changes of one
        // instant together.
        for (index, one) in (0u32..).zip(&self.moves) {
            self.network.events.schedule(one.noticed(), Event::Notice { index });
        }
        for (index, conversation) in self.conversations.iter().enumerate() {
            let event = Event::Application { association: index as u32, side: 0 };
            self.network.events.schedule(conversation.start, event);
        }
        for (probe, (_, interval)) in (0u32..).zip(&self.probes) {
            if let Some(interval) = *interval {
                self.network.events.schedule(Time::ZERO + interval, Event::Sample { probe });
            }
        }
    }

    /// Handles the events up to the limit of the run.
    fn handle_events(&mut self) -> Result<End, String> {
        let limit = Time::ZERO + self.run.limit.duration();
        let end = loop {
            if self.over.iter().all(|&over| over) {
                break End::Closed;
            }
            match self.network.events.next_time() {
                _ if self.network.is_idle() => break End::Idle,
                None => break End::Idle,
                Some(at) if at > limit => {
                    self.now = limit;
                    break End::TimeLimit;
                }
                Some(_) if self.events >= self.run.max_events => break End::EventLimit,
                Some(at) if self.has_stalled(at) => break End::Stalled,
                Some(_) => {}
            }
            let Some((at, event)) = self.network.events.pop() else { break End::Idle };
            self.now = at;
            self.events += 1;
            self.handle(event)?;
            match self.schedule.after_event() {
                Due::Nothing => {}
                Due::Touched => {
                    if let Some(stack) = self.touched.take() {
                        self.check_stack(stack)?;
                    }
                    invariants::check_links(&self.network)?;
                }
                Due::Everything => self.check_everything()?,
            }
        };
        self.check_everything()?;
        Ok(end)
    }

    /// Whether nothing has made progress for longer than the watch allows; `next` is the time of
    /// the next event.
    #[inline]
    fn has_stalled(&mut self, next: Time) -> bool {
        let Some(due) = self.watch.as_ref().and_then(|watch| watch.due(next)) else { return false };
        let mut marks = Vec::new();
        for talk in &self.conversations {
            for side in 0..2 {
                let party = &talk.parties[side];
                let stack = &self.stacks[talk.stacks[side]];
                talk.marks(
                    side,
                    party.id.and_then(|id| stack.endpoint.association(id)),
                    &mut marks,
                );
            }
        }
        let stalled = self.watch.as_mut().is_some_and(|watch| !watch.progressed(next, marks));
        if stalled {
            self.now = due;
        }
        stalled
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Arrival { link, packet, ticket } => {
                match self.network.arrive(self.now, link, packet, ticket) {
                    Some(node) => self.arrived(node, packet),
                    None => Ok(()),
                }
            }
            Event::Emission { source } => {
                self.network.emit(self.now, source);
                Ok(())
            }
            Event::Background { source, hop, ticket } => {
                self.network.arrive_background(self.now, source, hop, ticket);
                Ok(())
            }
            Event::Segment { segment, ticket } => {
                self.network.arrive_segment(self.now, segment, ticket);
                Ok(())
            }
            Event::TcpTimer { flow } => {
                self.network.tcp_timer(self.now, flow);
                Ok(())
            }
            Event::Departure { link } => {
                self.network.depart(self.now, link);
                Ok(())
            }
            Event::Timer { stack } => self.timer(stack as usize),
            Event::Application { association, side } => {
                self.application(association as usize, usize::from(side))
            }
            Event::Change { index } => {
                let change = &self.changes[index as usize];
                let link = &mut self.network.links[change.link.index()];
                change.kind.apply(self.now, link);
                self.tell_loss_rates();
                Ok(())
            }
            Event::Move { index } => {
                let Move { node, comes, .. } = self.moves[index as usize];
                self.network.set_here(node, comes);
                Ok(())
            }
            Event::Reset { index } => {
                self.network.reset_nat(&self.resets[index as usize]);
                Ok(())
            }
            Event::Notice { index } => self.addresses_changed(self.moves[index as usize].node),
            Event::Sample { probe } => {
                self.sample_all(probe);
                Ok(())
            }
        }
    }

    /// Handles the arrival of a packet at a node.
    fn arrived(&mut self, node: NodeId, packet: PacketId) -> Result<(), String> {
        if self.network.packets.get(packet).to != node {
            self.network.forward(self.now, node, packet);
            return Ok(());
        }
        let NodeKind::Interface { host, .. } = self.network.topology.nodes[node.index()] else {
            self.network.packets.give_back(packet);
            return Ok(());
        };
        if !self.network.is_here(node) {
            self.network.discard(packet);
            return Ok(());
        }
        let received = self.network.packets.get(packet);
        let stack = self.stack_for(host, received.bytes());
        // A stack that has not been notified of the address yet has no socket for it.
        let deaf = |&stack: &usize| {
            !self.moves.is_empty() && !self.stacks[stack].is_bound(received.destination.ip())
        };
        if stack.as_ref().is_some_and(deaf) {
            self.network.discard(packet);
            return Ok(());
        }
        if let Some(stack) = stack {
            let four_tuple = FourTuple { local: received.destination, remote: received.source };
            let endpoint = &mut self.stacks[stack].endpoint;
            let (ecn, bytes) = (received.ecn, received.bytes());
            if received.intact {
                endpoint.handle_verified(self.now, four_tuple, ecn, bytes);
            } else {
                endpoint.handle_datagram(self.now, four_tuple, ecn, bytes);
            }
        }
        self.network.packets.give_back(packet);
        stack.map_or(Ok(()), |stack| self.service(stack))
    }

    /// Notifies a host's endpoints that its addresses have changed.
    fn addresses_changed(&mut self, node: NodeId) -> Result<(), String> {
        let NodeKind::Interface { host, .. } = self.network.topology.nodes[node.index()] else {
            return Ok(());
        };
        for stack in 0..self.stacks.len() {
            if self.stacks[stack].host == host {
                self.stacks[stack].follow_addresses(self.now, &self.network);
                self.service(stack)?;
            }
        }
        Ok(())
    }

    /// The stack of a host that has the packet's destination port; otherwise any stack of the host,
    /// which handles the packet as out of the blue.
    fn stack_for(&self, host: HostId, packet: &[u8]) -> Option<usize> {
        let port = packet.get(2..4).map(|port| u16::from_be_bytes([port[0], port[1]]));
        let of_host = |stack: &Stack| stack.host == host;
        let exact = self.stacks.iter().position(|s| of_host(s) && Some(s.port) == port);
        exact.or_else(|| self.stacks.iter().position(of_host))
    }

    fn timer(&mut self, stack: usize) -> Result<(), String> {
        if self.stacks[stack].fire(self.now) {
            self.stacks[stack].count_timeout(self.now)?;
            self.stacks[stack].handle_timeout(self.now);
        }
        self.service(stack)
    }

    fn application(&mut self, conversation: usize, side: usize) -> Result<(), String> {
        let stack = self.conversations[conversation].stacks[side];
        if side == 0 && self.conversations[conversation].parties[0].id.is_none() {
            self.connect(conversation, stack)?;
        }
        self.conversations[conversation].woken(self.now, side);
        self.act(conversation, side)?;
        self.service(stack)
    }

    fn connect(&mut self, index: usize, stack: usize) -> Result<(), String> {
        let conversation = &mut self.conversations[index];
        let peer = &self.stacks[conversation.stacks[1]];
        let remote = |&ip| Remote { address: SocketAddr::new(ip, peer.udp_port), local: None };
        let there = peer.addresses.iter().filter(|ip| peer.is_bound(**ip));
        let remotes: Vec<Remote> = there.map(remote).collect();
        let stack = &mut self.stacks[stack];
        let id = stack
            .endpoint
            .connect_with(self.now, conversation.port, &remotes, self.configs[index].clone())
            .map_err(|error| format!("association {}: {error}", conversation.name))?;
        conversation.parties[0].id = Some(id);
        stack.associations.push(Membership { id, conversation: index, side: 0 });
        Ok(())
    }

    /// Lets an application read, send and shut down.
    fn act(&mut self, conversation: usize, side: usize) -> Result<(), String> {
        let talk = &mut self.conversations[conversation];
        let endpoint = &mut self.stacks[talk.stacks[side]].endpoint;
        let Some(id) = talk.parties[side].id else { return Ok(()) };
        let Some(association) = endpoint.association_mut(id) else { return Ok(()) };
        let app = &mut self.applications[talk.application];
        talk.act(self.now, side, association, app)
            .map_err(|what| format!("association {}: {what}", talk.name))?;
        if let Some(at) = talk.schedule_wake(self.now, side, app) {
            let event = Event::Application { association: conversation as u32, side: side as u8 };
            self.network.events.schedule(at, event);
        }
        self.over[conversation] = talk.is_over();
        if app.tells() {
            for &association in &app.members {
                for side in 0..2 {
                    let association = association as u32;
                    self.network
                        .events
                        .schedule(self.now, Event::Application { association, side });
                }
            }
        }
        Ok(())
    }

    /// Lets striped applications send more over the associations of a stack that have room. Returns
    /// true if an association without unsent data has got new data.
    fn feed(&mut self, index: usize) -> Result<bool, String> {
        let mut dry = false;
        for place in 0..self.stacks[index].associations.len() {
            let Membership { id, conversation, side } = self.stacks[index].associations[place];
            let app = &self.applications[self.conversations[conversation].application];
            if app.stripe.is_none() {
                continue;
            }
            let unsent = |s: &Self| s.stacks[index].endpoint.association(id).map(|a| a.unsent());
            let room = self.stacks[index].endpoint.association(id).is_some_and(|a| app.has_room(a));
            if room {
                let before = unsent(self);
                self.act(conversation, side)?;
                dry |= before == Some(0) && unsent(self) > before;
            }
        }
        Ok(dry)
    }

    /// Brings the simulation up to date after an endpoint may have changed: passes its events to
    /// the applications, sends its packets, arms its timer.
    fn service(&mut self, index: usize) -> Result<(), String> {
        self.touched = Some(index);
        loop {
            let noticed = self.take_notices(index)?;
            self.transmit(index)?;
            // Building packets may have abandoned messages, whose events have not been read yet.
            let more = self.stacks[index].endpoint.has_events();
            if !self.feed(index)? && !noticed && !more {
                break;
            }
        }
        let due = self.stacks[index].endpoint.poll_timeout();
        invariants::check_deadline(&self.stacks[index], due)?;
        if let Some(at) = due.and_then(|due| self.stacks[index].arm(self.now, due)) {
            self.network.events.schedule_first(at, Event::Timer { stack: index as u32 });
        }
        for probe in 0..self.probes.len() {
            if self.probes[probe].1.is_none() {
                self.sample(probe, index);
            }
        }
        Ok(())
    }

    /// Passes all events of the endpoint to the applications; true if there were any.
    fn take_notices(&mut self, index: usize) -> Result<bool, String> {
        let mut any = false;
        while let Some((id, notice)) = self.stacks[index].endpoint.poll_event() {
            any = true;
            self.notice(index, id, notice)?;
        }
        Ok(any)
    }

    fn notice(&mut self, stack: usize, id: AssociationId, notice: Notice) -> Result<(), String> {
        if self.stacks[stack].membership(id).is_none()
            && matches!(notice, Notice::Established { inbound: true })
        {
            self.accept(stack, id);
        }
        let Some(member) = self.stacks[stack].membership(id) else {
            if matches!(notice, Notice::Closed(_)) {
                self.stacks[stack].endpoint.release(self.now, id);
            }
            return Ok(());
        };
        if let Notice::Established { .. } = notice
            && let Some(association) = self.stacks[stack].endpoint.association_mut(id)
        {
            oracle::tell(&self.network, association);
        }
        if matches!(notice, Notice::SendFailed { .. }) && member.side == 1 {
            // Side 0 shuts down once no more data can arrive: let it check that again.
            let association = member.conversation as u32;
            self.network.events.schedule(self.now, Event::Application { association, side: 0 });
        }
        if !self.probes.is_empty()
            && let Some(seen) =
                see(&self.stacks[stack], &member, &self.conversations, &self.applications)
        {
            for (probe, _) in &mut self.probes {
                probe.event(self.now, &seen, &notice);
            }
        }
        let talk = &mut self.conversations[member.conversation];
        talk.notice(self.now, member.side, notice)
            .map_err(|what| format!("association {}: {what}", talk.name))?;
        self.act(member.conversation, member.side)
    }

    /// Updates the loss rates of all associations after a link has changed.
    fn tell_loss_rates(&mut self) {
        for stack in &mut self.stacks {
            for member in &stack.associations {
                if let Some(association) = stack.endpoint.association_mut(member.id) {
                    oracle::tell(&self.network, association);
                }
            }
        }
    }

    /// Assigns an accepted association to the conversation that the peer's host opened to this
    /// stack.
    fn accept(&mut self, index: usize, id: AssociationId) {
        let stack = &self.stacks[index];
        let remote = stack.endpoint.association(id).and_then(|a| a.paths().next());
        let remote = remote.map(|path| SocketAddr::new(path.remote, path.remote_port));
        let host = remote
            .and_then(|remote| self.network.topology.host_of(self.network.inside_of(remote).ip()));
        let found = self.conversations.iter().position(|talk| {
            talk.stacks[1] == index
                && talk.parties[1].id.is_none()
                && Some(self.stacks[talk.stacks[0]].host) == host
        });
        let stack = &mut self.stacks[index];
        match (found, stack.endpoint.association_mut(id)) {
            (Some(conversation), _) => {
                self.conversations[conversation].parties[1].id = Some(id);
                stack.associations.push(Membership { id, conversation, side: 1 });
            }
            // The COOKIE ECHO arrived after the association was over, or belongs to no
            // conversation.
            (None, Some(association)) => association.abort(self.now, b"nobody waits for this"),
            (None, None) => {}
        }
    }

    /// Sends all packets that the endpoint has to send.
    fn transmit(&mut self, index: usize) -> Result<(), String> {
        if cfg!(debug_assertions) {
            // A driver may look at the timers before it sends; it must not miss what sending sets.
            self.stacks[index].endpoint.poll_timeout();
        }
        while self.stacks[index].endpoint.has_datagrams() {
            let stack = &mut self.stacks[index];
            let id = self.network.packets.take();
            let packet = self.network.packets.get_mut(id);
            let Some(transmit) = stack.endpoint.poll_transmit(self.now, &mut packet.buffer) else {
                self.network.packets.give_back(id);
                break;
            };
            let (size, room) = (transmit.size, packet.buffer.len());
            if size > room || size == 0 {
                return Err(format!("a packet of {size} bytes was written to {room} bytes"));
            }
            stack.count_packet(self.now)?;
            packet.source = SocketAddr::new(transmit.source, stack.udp_port);
            packet.destination = transmit.destination;
            packet.ecn = transmit.ecn;
            packet.fragmentation = transmit.fragmentation;
            packet.intact = true;
            packet.len = size;
            if let Some((association, path)) = transmit.path {
                self.note_data(index, association, path);
            }
            match transmit.segment_size {
                Some(segment) if segment < size => self.send_segments(id, segment.max(1)),
                _ => self.network.send(self.now, id),
            }
        }
        Ok(())
    }

    /// Sends the datagrams of a buffer that holds several.
    fn send_segments(&mut self, whole: PacketId, segment: usize) {
        let size = self.network.packets.get(whole).len;
        for start in (0..size).step_by(segment) {
            let end = (start + segment).min(size);
            let part = self.network.packets.copy_part(whole, start..end);
            self.network.send(self.now, part);
        }
        self.network.packets.give_back(whole);
    }

    /// Records the time at which the first DATA chunk of a direction was sent.
    fn note_data(&mut self, stack: usize, id: AssociationId, path: PathId) {
        let Some(member) = self.stacks[stack].membership(id) else { return };
        let talk = &mut self.conversations[member.conversation];
        let flow = &mut talk.flows[member.side];
        if flow.progress.first_data.is_some() || flow.progress.messages_sent == 0 {
            return;
        }
        let association = self.stacks[stack].endpoint.association(id);
        let stats = association.and_then(|association| association.path_stats(path));
        if stats.is_some_and(|stats| stats.data_chunks_sent > 0) {
            flow.progress.first_data = Some(self.now);
            if let Some(stripe) = &mut self.applications[talk.application].stripe {
                stripe.progress[member.side].first_data.get_or_insert(self.now);
            }
        }
    }

    /// Takes the samples of all associations, and schedules the next ones.
    fn sample_all(&mut self, number: u32) {
        let probe = number as usize;
        (0..self.stacks.len()).for_each(|stack| self.sample(probe, stack));
        // If no other event is left, more samples would show nothing new.
        if let Some(interval) = self.probes[probe].1.filter(|_| !self.network.is_idle()) {
            self.network.events.schedule(self.now + interval, Event::Sample { probe: number });
        }
    }

    /// Lets a probe sample the associations of a stack.
    fn sample(&mut self, probe: usize, stack: usize) {
        let (stack, probe) = (&self.stacks[stack], &mut self.probes[probe].0);
        for member in &stack.associations {
            if let Some(seen) = see(stack, member, &self.conversations, &self.applications) {
                probe.sample(self.now, &seen);
            }
        }
    }

    fn check_stack(&self, index: usize) -> Result<(), String> {
        let stack = &self.stacks[index];
        invariants::check_stack(stack).map_err(|what| {
            format!("host {}: {what}", self.network.topology.hosts[stack.host.index()])
        })
    }

    fn check_everything(&self) -> Result<(), String> {
        (0..self.stacks.len()).try_for_each(|stack| self.check_stack(stack))?;
        invariants::check_links(&self.network)?;
        invariants::check_buffers(&self.network)
    }

    fn outcome(mut self, end: End) -> Outcome {
        for talk in &mut self.conversations {
            talk.broken_off(self.now, &self.applications[talk.application]);
        }
        let host = |stack: &Stack| self.network.topology.hosts[stack.host.index()].clone();
        let endpoints = self.stacks.iter().map(|stack| EndpointOutcome {
            host: host(stack),
            port: stack.port,
            counts: (&stack.endpoint.stats()).into(),
        });
        let links = self.network.links.iter().zip(&self.network.topology.links);
        let associations: Vec<_> =
            self.conversations.iter().map(|talk| self.association(talk)).collect();
        let stripes = self.applications.iter_mut().filter_map(|app| {
            let names = app.members.iter().map(|&member| associations[member].name.clone());
            StripeOutcome::new(app, names.collect(), self.now)
        });
        Outcome {
            scenario: self.name.clone(),
            seed: self.seed,
            end,
            ended_at: self.now.as_secs_f64(),
            events: self.events,
            unroutable_packets: self.network.unroutable,
            stripes: stripes.collect(),
            associations,
            links: links
                .map(|(link, plan)| LinkOutcome {
                    name: plan.name.clone(),
                    counts: *link.counters(),
                    background: *link.background(),
                })
                .collect(),
            tcp: self
                .network
                .tcp_progress()
                .map(|(name, progress)| TcpOutcome::new(name, &progress, self.now))
                .collect(),
            nats: self
                .network
                .nat_counters()
                .map(|(name, counts)| NatOutcome { name: name.to_owned(), counts })
                .collect(),
            endpoints: endpoints.collect(),
            series: Vec::new(),
            packets: self.network.tracer.map(Tracer::finish),
        }
    }

    fn association(&self, talk: &Conversation) -> AssociationOutcome {
        let [sender, receiver] = [0, 1].map(|side| self.side(talk, side));
        let graceful = |side: &SideOutcome| side.close.as_deref() == Some("graceful");
        AssociationOutcome {
            name: talk.name.clone(),
            complete: talk.is_complete(&self.applications[talk.application])
                && graceful(&sender)
                && graceful(&receiver),
            started_at: talk.start.as_secs_f64(),
            forward: FlowOutcome::new(&talk.flows[0].progress, talk.start),
            back: FlowOutcome::new(&talk.flows[1].progress, talk.start),
            sender,
            receiver,
            changes: talk.changes.iter().map(PathChange::from).collect(),
        }
    }

    fn side(&self, talk: &Conversation, side: usize) -> SideOutcome {
        let (party, stack) = (&talk.parties[side], &self.stacks[talk.stacks[side]]);
        let association = party.id.and_then(|id| stack.endpoint.association(id));
        let paths = association.into_iter().flat_map(|association| {
            let stats = |id| association.path_stats(id).unwrap_or_default();
            let runs = |id| stack.timeout_runs(association.id(), id);
            association
                .paths()
                .map(move |view| PathOutcome::new(&view, &stats(view.id), runs(view.id)))
        });
        let closed = party.closed.as_ref();
        SideOutcome {
            host: self.network.topology.hosts[stack.host.index()].clone(),
            established_at: party.established.map(Time::as_secs_f64),
            closed_at: closed.map(|(at, _)| at.as_secs_f64()),
            close: closed.map(|(_, reason)| close_name(reason).to_owned()),
            close_reason: closed.map(|(_, reason)| reason.to_string()),
            counts: association.map(|a| (&a.stats()).into()).unwrap_or_default(),
            paths: paths.collect(),
        }
    }
}

/// One side of an association, as a probe sees it; `None` once the association is released.
fn see<'a>(
    stack: &'a Stack,
    member: &Membership,
    conversations: &'a [Conversation],
    applications: &[ApplicationPair],
) -> Option<Seen<'a>> {
    let Membership { id, conversation: number, side } = *member;
    let talk = &conversations[number];
    Some(Seen {
        number,
        name: &talk.name,
        side: if side == 0 { Side::Sender } else { Side::Receiver },
        sends: talk.sends(side, &applications[talk.application]),
        association: stack.endpoint.association(id)?,
    })
}
