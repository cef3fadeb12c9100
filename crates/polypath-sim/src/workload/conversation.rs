//! The two applications of an association.

use polypath_proto::{
    Association, AssociationId, CloseReason, Event, Message, PathId, PathState, Ppid, SendError,
    StreamId, StreamReset, Time,
};

use super::ledger::Ledger;
use super::progress::Progress;
use super::source::Source;
use crate::random::{Random, derive};
use crate::scenario::{AssociationPlan, Reset, Run, WorkloadKind};
use crate::units::Rate;

/// An association with what its two applications want of it. Side 0 opened it, side 1 accepted it.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) name: String,
    /// The stacks that it runs on.
    pub(crate) stacks: [usize; 2],
    pub(crate) port: u16,
    pub(crate) start: Time,
    pub(crate) parties: [Party; 2],
    /// What side 0 and side 1 send.
    pub(crate) flows: [Flow; 2],
    pub(crate) changes: Vec<StateChange>,
    read_rate: Option<Rate>,
    /// A reset after so many messages.
    resets: Option<(u32, Reset)>,
    kind: WorkloadKind,
    /// Time from a reply to the next request.
    think: std::time::Duration,
}

/// One of the two applications.
#[derive(Debug, Default)]
pub(crate) struct Party {
    pub(crate) id: Option<AssociationId>,
    pub(crate) established: Option<Time>,
    pub(crate) closed: Option<(Time, CloseReason)>,
    /// The association may have something to read.
    readable: bool,
    /// A slow reader reads again at this time.
    next_read: Time,
    /// The send buffer was full; wait for [`Event::Writable`].
    blocked: bool,
    shut_down: bool,
    /// When the source may send another message.
    next_tick: Option<Time>,
    /// The earliest event of this application that is in the queue.
    scheduled: Option<Time>,
}

/// Messages in one direction.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) progress: Progress,
    source: Source,
    ledger: Ledger,
}

/// Left out if another request is in progress.
fn ask_for_reset(now: Time, association: &mut Association, reset: Reset) {
    let _ = match reset {
        Reset::Outgoing => association.reset_streams(now, StreamReset::Outgoing, &[]),
        Reset::Incoming => association.reset_streams(now, StreamReset::Incoming, &[]),
        Reset::Both => association.reset_streams(now, StreamReset::Both, &[]),
        Reset::Association => association.reset_association(now),
    };
}

impl Flow {
    /// Something is sent in this direction.
    pub(crate) fn sends(&self) -> bool {
        !self.source.is_finished() || self.progress.messages_sent > 0
    }

    /// All that is to be sent has been received.
    pub(crate) fn is_complete(&self) -> bool {
        self.source.is_finished() && self.ledger.outstanding() == 0
    }
}

/// A path, seen from one side, changed its state; or new data goes elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateChange {
    pub(crate) at: Time,
    pub(crate) side: usize,
    pub(crate) path: PathId,
    pub(crate) what: Changed,
}

/// What changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Changed {
    State { from: PathState, to: PathState },
    Current,
    Primary,
}

impl Conversation {
    pub(crate) fn new(plan: &AssociationPlan, seed: u64, run: &Run) -> Self {
        let flow = |direction: &str| {
            let name = format!("workload:{}/{direction}", plan.name);
            Flow {
                progress: Progress::new(run.blackout.duration()),
                source: Source::new(
                    &plan.workload,
                    direction == "forward",
                    Random::named(seed, &name),
                ),
                ledger: Ledger::new(derive(seed, &name), run.check_content),
            }
        };
        Self {
            name: plan.name.clone(),
            stacks: plan.stacks,
            port: plan.port,
            start: plan.start,
            parties: [Party::default(), Party::default()],
            flows: [flow("forward"), flow("back")],
            changes: Vec::new(),
            read_rate: plan.workload.read_rate,
            resets: plan.workload.reset_every.map(|n| (n, plan.workload.reset.unwrap_or_default())),
            kind: plan.workload.kind,
            think: plan.workload.interval.unwrap_or_default().duration(),
        }
    }

    /// The association tells one of the applications something.
    pub(crate) fn notice(&mut self, now: Time, side: usize, event: Event) {
        let party = &mut self.parties[side];
        let mut change = |at, path, what| self.changes.push(StateChange { at, side, path, what });
        match event {
            Event::Established { .. } => {
                party.established.get_or_insert(now);
                party.next_tick = self.flows[side].source.ticks().map(|interval| now + interval);
            }
            Event::Readable => party.readable = true,
            Event::Writable => party.blocked = false,
            Event::PathState { path, from, to, at } => {
                change(at, path, Changed::State { from, to });
            }
            Event::CurrentPath { path, at } => change(at, path, Changed::Current),
            Event::PrimaryChanged { path } => change(now, path, Changed::Primary),
            Event::Closed(reason) => {
                party.closed.get_or_insert((now, reason));
            }
            _ => {}
        }
    }

    /// One of the applications reads, sends and shuts down, as far as it can.
    ///
    /// # Errors
    /// What arrived is not what was sent, or the association refused what it must take.
    pub(crate) fn act(
        &mut self,
        now: Time,
        side: usize,
        association: &mut Association,
    ) -> Result<(), String> {
        self.read(now, side, association)?;
        self.tick(now, side);
        self.send(now, side, association)?;
        // SHUTDOWN lets the peer send nothing new, so it waits for what the peer has to say.
        let done = self.flows[0].source.is_finished() && self.flows[1].is_complete();
        let party = &mut self.parties[0];
        if side == 0 && done && party.established.is_some() && !party.shut_down {
            party.shut_down = true;
            association.shutdown(now);
        }
        Ok(())
    }

    fn read(&mut self, now: Time, side: usize, from: &mut Association) -> Result<(), String> {
        let party = &mut self.parties[side];
        let flow = &mut self.flows[1 - side];
        let mut complete = 0;
        while party.readable && now >= party.next_read {
            let Some(received) = from.recv(now) else {
                party.readable = false;
                break;
            };
            let whole = flow.ledger.received(&received)?;
            flow.progress.delivered(now, received.payload.len(), whole);
            complete += u64::from(whole);
            if let Some(rate) = self.read_rate {
                party.next_read = now + rate.time_for(received.payload.len() as u64);
            }
        }
        if self.kind == WorkloadKind::RequestReply && complete > 0 {
            // At side 1 each request allows a reply; at side 0 the reply allows the next request.
            if side == 0 && !self.think.is_zero() {
                self.parties[0].next_tick = Some(now + self.think);
            } else {
                (0..complete).for_each(|_| self.flows[side].source.allow_one());
            }
        }
        Ok(())
    }

    fn tick(&mut self, now: Time, side: usize) {
        let (party, source) = (&mut self.parties[side], &mut self.flows[side].source);
        while let Some(at) = party.next_tick.filter(|&at| at <= now) {
            source.allow_one();
            // The message allowed here is not taken from the source yet, so the last tick allows
            // one too many: harmless, there is none left.
            party.next_tick = source.ticks().map(|interval| at + interval);
        }
    }

    fn send(&mut self, now: Time, side: usize, to: &mut Association) -> Result<(), String> {
        let (party, flow) = (&mut self.parties[side], &mut self.flows[side]);
        if party.established.is_none() || party.closed.is_some() || party.blocked || party.shut_down
        {
            return Ok(());
        }
        while let Some(planned) = flow.source.next() {
            let message = Message {
                stream: StreamId(planned.stream),
                ppid: Ppid(Ledger::mark(&planned)),
                unordered: planned.unordered,
                payload: flow.ledger.payload(&planned),
            };
            match to.send(now, message) {
                Ok(()) => {
                    let number = planned.number;
                    flow.ledger.sent(planned);
                    flow.progress.sent(now, planned.size);
                    if let Some((every, reset)) = self.resets
                        && (number + 1).is_multiple_of(every.into())
                    {
                        ask_for_reset(now, to, reset);
                    }
                }
                Err(SendError::WouldBlock) => {
                    flow.source.put_back(planned);
                    party.blocked = true;
                    break;
                }
                Err(SendError::Closed) => {
                    flow.source.put_back(planned);
                    break;
                }
                Err(error) => {
                    return Err(format!("message {} was refused: {error}", planned.number));
                }
            }
        }
        Ok(())
    }

    /// The time of an event to schedule so that the application acts again although nothing
    /// happens; `None` if there is no need, or an event that comes early enough.
    pub(crate) fn schedule_wake(&mut self, now: Time, side: usize) -> Option<Time> {
        let party = &mut self.parties[side];
        let read = party.readable.then_some(party.next_read);
        let tick = party.next_tick.filter(|_| party.closed.is_none());
        let at = read.into_iter().chain(tick).min()?;
        if at <= now || party.scheduled.is_some_and(|scheduled| scheduled <= at) {
            return None;
        }
        party.scheduled = Some(at);
        Some(at)
    }

    /// An event that was scheduled has come.
    pub(crate) fn woken(&mut self, now: Time, side: usize) {
        let scheduled = &mut self.parties[side].scheduled;
        if scheduled.is_some_and(|at| at <= now) {
            *scheduled = None;
        }
    }

    /// The run is over: what is still missing has been missing until now.
    pub(crate) fn broken_off(&mut self, now: Time) {
        for flow in self.flows.iter_mut().filter(|flow| !flow.is_complete()) {
            flow.progress.broken_off(now);
        }
    }

    /// Both sides are closed and have read what there was.
    pub(crate) fn is_over(&self) -> bool {
        let [opened, accepted] = &self.parties;
        let over = |party: &Party| party.closed.is_some() && !party.readable;
        over(opened) && (over(accepted) || accepted.id.is_none())
    }

    /// Everything was sent, everything arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.flows.iter().all(Flow::is_complete)
    }
}
