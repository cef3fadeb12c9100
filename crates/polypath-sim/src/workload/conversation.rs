//! The two applications of an association.

use polypath_proto::{
    Association, AssociationId, CloseReason, Delivery, Event, Message, PathId, PathState, Ppid,
    SendError, StreamId, StreamReset, Time,
};

use super::ledger::{Failed, Ledger};
use super::pair::ApplicationPair;
use super::progress::Progress;
use crate::random::derive;
use crate::scenario::{AssociationPlan, Reset, Run, Workload, WorkloadKind};
use crate::units::Rate;

/// An association and its two applications. Side 0 opened it, side 1 accepted it.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) name: String,
    /// The stacks that it runs on.
    pub(crate) stacks: [usize; 2],
    pub(crate) port: u16,
    pub(crate) start: Time,
    /// Index of its application among those of the run.
    pub(crate) application: usize,
    /// Index among the application's associations.
    member: usize,
    pub(crate) parties: [Party; 2],
    /// Messages sent by side 0 and by side 1.
    pub(crate) flows: [Flow; 2],
    pub(crate) changes: Vec<StateChange>,
    read_rate: Option<Rate>,
    /// Number of messages between resets, and the kind of reset.
    resets: Option<(u32, Reset)>,
    delivery: Option<Delivery>,
}

/// One of the two applications.
#[derive(Debug, Default)]
pub(crate) struct Party {
    pub(crate) id: Option<AssociationId>,
    pub(crate) established: Option<Time>,
    pub(crate) closed: Option<(Time, CloseReason)>,
    /// Whether the association may have data to read.
    readable: bool,
    /// Time at which a slow reader reads again.
    next_read: Time,
    /// Whether the send buffer was full: wait for [`Event::Writable`].
    blocked: bool,
    shut_down: bool,
    /// Time of this application's earliest event in the queue.
    scheduled: Option<Time>,
}

/// Messages in one direction.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) progress: Progress,
    ledger: Ledger,
}

/// Requests a reset, unless another request is in progress.
fn ask_for_reset(now: Time, association: &mut Association, reset: Reset) {
    let _ = match reset {
        Reset::Outgoing => association.reset_streams(now, StreamReset::Outgoing, &[]),
        Reset::Incoming => association.reset_streams(now, StreamReset::Incoming, &[]),
        Reset::Both => association.reset_streams(now, StreamReset::Both, &[]),
        Reset::Association => association.reset_association(now),
    };
}

/// A change of a path, seen from one side: of its state, or of its use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateChange {
    pub(crate) at: Time,
    pub(crate) side: usize,
    pub(crate) path: PathId,
    pub(crate) what: Changed,
}

/// Kind of change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Changed {
    State { from: PathState, to: PathState },
    Current,
    Primary,
}

impl Conversation {
    /// The `member`-th association of its application.
    pub(crate) fn new(
        plan: &AssociationPlan,
        workload: &Workload,
        member: usize,
        seed: u64,
        run: &Run,
    ) -> Self {
        let flow = |direction: &str| {
            let name = format!("workload:{}/{direction}", plan.name);
            let mut progress = Progress::new(run.blackout.duration());
            if workload.kind != WorkloadKind::Bulk {
                progress.time_messages();
            }
            Flow { progress, ledger: Ledger::new(derive(seed, &name), run.check_content) }
        };
        Self {
            name: plan.name.clone(),
            stacks: plan.stacks,
            port: plan.port,
            start: plan.start,
            application: plan.application,
            member,
            parties: [Party::default(), Party::default()],
            flows: [flow("forward"), flow("back")],
            changes: Vec::new(),
            read_rate: workload.read_rate,
            resets: workload.reset_every.map(|n| (n, workload.reset.unwrap_or_default())),
            delivery: workload.delivery.map(Delivery::from),
        }
    }

    /// Passes an event of the association to one of the applications.
    ///
    /// # Errors
    /// A reliable message was abandoned.
    pub(crate) fn notice(&mut self, now: Time, side: usize, event: Event) -> Result<(), String> {
        let party = &mut self.parties[side];
        let mut change = |at, path, what| self.changes.push(StateChange { at, side, path, what });
        match event {
            Event::Established { .. } => {
                party.established.get_or_insert(now);
            }
            Event::Readable => party.readable = true,
            Event::Writable => party.blocked = false,
            Event::PathState { path, from, to, at } => {
                change(at, path, Changed::State { from, to });
            }
            Event::CurrentPath { path, at } => change(at, path, Changed::Current),
            Event::PrimaryChanged { path } => change(now, path, Changed::Primary),
            Event::SendFailed { stream, ppid, unordered, sent, .. } => {
                let failed = Failed { stream: stream.0, mark: ppid.0, unordered, sent };
                let flow = &mut self.flows[side];
                flow.progress.given_up(flow.ledger.given_up(&failed)?);
            }
            Event::Closed(reason) => {
                party.closed.get_or_insert((now, reason));
            }
            _ => {}
        }
        Ok(())
    }

    /// Lets one of the applications read, send and shut down, as far as it can.
    ///
    /// # Errors
    /// The data received is not the data sent, or the association refused a message that it must
    /// accept.
    pub(crate) fn act(
        &mut self,
        now: Time,
        side: usize,
        association: &mut Association,
        app: &mut ApplicationPair,
    ) -> Result<(), String> {
        self.read(now, side, association, app)?;
        self.send(now, side, association, app)?;
        // After SHUTDOWN the peer may send no new data, so wait until all its data has arrived.
        let done = app.is_through(0) && self.has_all(1, app);
        let party = &mut self.parties[0];
        if side == 0 && done && party.established.is_some() && !party.shut_down {
            party.shut_down = true;
            association.shutdown(now);
        }
        Ok(())
    }

    fn read(
        &mut self,
        now: Time,
        side: usize,
        from: &mut Association,
        app: &mut ApplicationPair,
    ) -> Result<(), String> {
        let party = &mut self.parties[side];
        let flow = &mut self.flows[1 - side];
        while party.readable && now >= party.next_read {
            let Some(received) = from.recv(now) else {
                party.readable = false;
                break;
            };
            let arrival = flow.ledger.received(&received)?;
            flow.progress.delivered(now, received.payload.len(), arrival);
            if let Some(message) = arrival.complete {
                app.delivered(now, 1 - side, &message);
                app.sources[side].received(now, &message);
            }
            if let Some(rate) = self.read_rate {
                party.next_read = now + rate.time_for(received.payload.len() as u64);
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        now: Time,
        side: usize,
        to: &mut Association,
        app: &mut ApplicationPair,
    ) -> Result<(), String> {
        let (party, flow) = (&mut self.parties[side], &mut self.flows[side]);
        if party.established.is_none() || party.closed.is_some() || party.blocked || party.shut_down
        {
            return Ok(());
        }
        while app.has_room(to)
            && let Some(planned) = app.next(now, side, self.member)
        {
            let payload = flow.ledger.payload(&planned);
            let message = Message {
                ppid: Ppid(Ledger::mark(&planned)),
                unordered: planned.unordered,
                reliability: planned.reliability,
                delivery: self.delivery,
                ..Message::new(StreamId(planned.stream), payload)
            };
            match to.send(now, message) {
                Ok(()) => {
                    let number = planned.number;
                    flow.ledger.sent(planned);
                    flow.progress.sent(now, planned.size);
                    flow.progress.begun(now, number);
                    if let Some((every, reset)) = self.resets
                        && (number + 1).is_multiple_of(every.into())
                    {
                        ask_for_reset(now, to, reset);
                    }
                    app.sent(now, side, self.member, planned);
                }
                Err(SendError::WouldBlock) => {
                    app.put_back(side, planned);
                    party.blocked = true;
                    break;
                }
                Err(SendError::Closed) => {
                    app.put_back(side, planned);
                    break;
                }
                Err(error) => {
                    return Err(format!("message {} was refused: {error}", planned.number));
                }
            }
        }
        Ok(())
    }

    /// Time of an event to schedule so that the application acts without another cause; `None` if
    /// that is not needed, or if an event that is early enough is already scheduled.
    pub(crate) fn schedule_wake(
        &mut self,
        now: Time,
        side: usize,
        app: &ApplicationPair,
    ) -> Option<Time> {
        let party = &mut self.parties[side];
        let read = party.readable.then_some(party.next_read);
        let sends = party.established.is_some() && party.closed.is_none();
        let wake = app.sources[side].wakes_at().filter(|at| sends && *at > now);
        let at = read.into_iter().chain(wake).min()?;
        if at <= now || party.scheduled.is_some_and(|scheduled| scheduled <= at) {
            return None;
        }
        party.scheduled = Some(at);
        Some(at)
    }

    /// Handles a scheduled event of an application.
    pub(crate) fn woken(&mut self, now: Time, side: usize) {
        let scheduled = &mut self.parties[side].scheduled;
        if scheduled.is_some_and(|at| at <= now) {
            *scheduled = None;
        }
    }

    /// Appends numbers that change whenever one side makes progress.
    pub(crate) fn marks(
        &self,
        side: usize,
        association: Option<&Association>,
        marks: &mut Vec<u64>,
    ) {
        let (party, progress) = (&self.parties[side], &self.flows[side].progress);
        let states = [party.established.is_some(), party.closed.is_some(), party.shut_down];
        marks.extend(states.map(u64::from));
        marks.extend([
            progress.messages_sent,
            progress.messages_delivered,
            progress.messages_abandoned,
            progress.bytes_delivered,
        ]);
        // Bytes leave the send buffer when they are acknowledged, and the queue when they are sent.
        marks
            .extend(association.into_iter().flat_map(|a| [a.buffered() as u64, a.unsent() as u64]));
    }

    /// The run is over: the last gap of a direction that misses data lasts until now.
    pub(crate) fn broken_off(&mut self, now: Time, app: &ApplicationPair) {
        for side in 0..2 {
            if !self.has_all(side, app) {
                self.flows[side].progress.broken_off(now);
            }
        }
    }

    /// Whether both sides are closed and have read everything.
    pub(crate) fn is_over(&self) -> bool {
        let [opened, accepted] = &self.parties;
        let over = |party: &Party| party.closed.is_some() && !party.readable;
        over(opened) && (over(accepted) || accepted.id.is_none())
    }

    /// Whether side `side` sends any data.
    pub(crate) fn sends(&self, side: usize, app: &ApplicationPair) -> bool {
        !app.is_given_out(side) || self.flows[side].progress.messages_sent > 0
    }

    /// Whether all data that side `side` has to send was received.
    fn has_all(&self, side: usize, app: &ApplicationPair) -> bool {
        app.is_through(side) && self.flows[side].ledger.outstanding() == 0
    }

    /// Whether everything was sent and has arrived.
    pub(crate) fn is_complete(&self, app: &ApplicationPair) -> bool {
        (0..2).all(|side| self.has_all(side, app))
    }
}
