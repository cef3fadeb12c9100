//! The applications of both sides. One association carries their messages, or several do, which
//! they are striped over.

use std::collections::BTreeMap;

use polypath_proto::{Association, Time};

use super::ledger::Arrival;
use super::progress::Progress;
use super::source::{Planned, Source};
use crate::scenario::{ApplicationPlan, Run};

/// The messages of side 0 and side 1, whichever associations carry them.
#[derive(Debug)]
pub(crate) struct ApplicationPair {
    pub(crate) name: String,
    /// Time at which its associations are opened.
    pub(crate) start: Time,
    /// The conversations that carry it.
    pub(crate) members: Vec<usize>,
    pub(super) sources: [Source; 2],
    /// State of the striping over several associations.
    pub(crate) stripe: Option<Stripe>,
}

/// The ideal striping application (AppStripe; Iyengar 2004, III): it has the highest throughput
/// that an application can get by distributing its data over associations of one path each.
///
/// The next message is sent over any association with room for it, that is, with so little unsent
/// data that it might run dry. Once all messages have been assigned, an association with room also
/// sends messages that others have not delivered yet, and second copies are discarded on arrival:
/// the last messages wait for no path that has lost them. The application knows at once which
/// messages have arrived.
#[derive(Debug)]
pub(crate) struct Stripe {
    /// Progress of all associations together.
    pub(crate) progress: [Progress; 2],
    /// Messages assigned and not yet delivered, by number, with the members that carry them.
    under_way: [BTreeMap<u64, (Planned, Members)>; 2],
    /// Stage of each side that the members have been notified of.
    told: [Stage; 2],
}

/// Stage of one side's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Sending,
    GivenOut,
    Delivered,
}

/// A set of members.
#[derive(Clone, Copy, Debug, Default)]
struct Members([u64; 4]);

impl Members {
    const fn has(&self, member: usize) -> bool {
        self.0[member / 64 % 4] & (1 << (member % 64)) != 0
    }

    const fn add(&mut self, member: usize) {
        self.0[member / 64 % 4] |= 1 << (member % 64);
    }
}

impl ApplicationPair {
    pub(crate) fn new(plan: &ApplicationPlan, sources: [Source; 2], run: &Run) -> Self {
        let stripe = plan.workload.is_striped().then(|| Stripe {
            progress: [(); 2].map(|()| Progress::new(run.blackout.duration())),
            under_way: [BTreeMap::new(), BTreeMap::new()],
            told: [Stage::Sending; 2],
        });
        let mut pair = Self {
            name: plan.name.clone(),
            start: Time::ZERO + plan.workload.start.unwrap_or_default().duration(),
            members: Vec::new(),
            sources,
            stripe,
        };
        // The members need no notification of a direction that is not used.
        pair.tells();
        pair
    }

    /// Whether a side has assigned all its messages to associations.
    pub(crate) fn is_given_out(&self, side: usize) -> bool {
        self.sources[side].is_finished()
    }

    /// Whether a side has nothing more to send over any association: if it is striped, all messages
    /// have arrived; otherwise its association has all of them.
    pub(super) fn is_through(&self, side: usize) -> bool {
        let given_out = self.sources[side].is_finished();
        given_out && self.stripe.as_ref().is_none_or(|stripe| stripe.under_way[side].is_empty())
    }

    /// Whether a striped application has delivered everything.
    pub(crate) fn is_delivered(&self) -> bool {
        self.is_through(0) && self.is_through(1)
    }

    /// Whether an association may take another message. With striping, only while it has less
    /// unsent data than one event may send (Max.Burst).
    pub(crate) fn has_room(&self, association: &Association) -> bool {
        let config = association.config();
        let burst = config.max_burst().saturating_mul(u32::from(config.path_mtu()));
        let room = || association.unsent() < burst as usize && association.send_room() > 0;
        self.stripe.is_none() || room()
    }

    /// The next message that a side sends over its `member`-th association, if it may send one now.
    #[inline]
    pub(super) fn next(&mut self, now: Time, side: usize, member: usize) -> Option<Planned> {
        if let Some(planned) = self.sources[side].next(now) {
            return Some(planned);
        }
        let stripe = self.stripe.as_ref().filter(|_| self.sources[side].is_finished())?;
        let others = stripe.under_way[side].values();
        others.filter(|(_, members)| !members.has(member)).map(|(planned, _)| *planned).next()
    }

    /// Takes back a message that could not be sent.
    pub(super) fn put_back(&mut self, side: usize, planned: Planned) {
        let known = |stripe: &Stripe| stripe.under_way[side].contains_key(&planned.number);
        if !self.stripe.as_ref().is_some_and(known) {
            self.sources[side].put_back(planned);
        }
    }

    /// Records that a message has been sent.
    #[inline]
    pub(super) fn sent(&mut self, now: Time, side: usize, member: usize, planned: Planned) {
        let Some(stripe) = &mut self.stripe else { return };
        let entry = stripe.under_way[side].entry(planned.number);
        let (_, members) = entry.or_insert_with(|| {
            stripe.progress[side].sent(now, planned.size);
            (planned, Members::default())
        });
        members.add(member);
    }

    /// Records that a message of `side` has been received, perhaps not for the first time.
    pub(super) fn delivered(&mut self, now: Time, side: usize, message: &Planned) {
        let Some(stripe) = &mut self.stripe else { return };
        if stripe.under_way[side].remove(&message.number).is_some() {
            let arrival = Arrival { complete: Some(*message), given_up: false };
            stripe.progress[side].delivered(now, message.size as usize, arrival);
        }
    }

    /// True if members have to be notified of a new stage, which they may not notice: the last
    /// message has been assigned, or the last one has arrived.
    pub(crate) fn tells(&mut self) -> bool {
        let stages = [0, 1].map(|side| match (self.is_given_out(side), self.is_through(side)) {
            (_, true) => Stage::Delivered,
            (true, false) => Stage::GivenOut,
            (false, _) => Stage::Sending,
        });
        self.stripe.as_mut().is_some_and(|s| std::mem::replace(&mut s.told, stages) != stages)
    }
}
