//! When links with a queue under active management take their next packets, and by which names they
//! know the packets.

use std::hash::{Hash, Hasher};

use polypath_proto::Time;

use super::packet::{Packet, PacketId};
use super::topology::LinkId;
use crate::link::{Link, Origin};
use crate::random::Fnv;

/// The scheduled departures of all links.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    /// For each link the time of its next departure that counts.
    due: Vec<Option<Time>>,
    /// Number of events in the queue, those that do not count included.
    scheduled: usize,
    /// Packets of associations that wait.
    waiting: usize,
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Packet(PacketId),
    /// A background packet of this source, at the n-th link of its route.
    Background {
        source: u32,
        hop: u32,
    },
    /// A packet of a TCP flow.
    Segment(u32),
}

/// Set in the names of background packets.
const BACKGROUND: u64 = 1 << 63;
/// Set too in those of TCP packets. Sources of other traffic have numbers below 2^31.
const SEGMENT: u64 = 1 << 62;

/// The name and the flow of a packet: its addresses and ports, with SCTP's ports where no UDP
/// header has others.
pub(super) fn origin(id: PacketId, packet: &Packet) -> Origin {
    let mut flow = Fnv::default();
    (packet.source, packet.destination).hash(&mut flow);
    if packet.destination.port() == 0 {
        packet.bytes().get(..4).hash(&mut flow);
    }
    Origin { flow: flow.finish(), id: id.index() as u64, background: false }
}

/// The name and the flow of a background packet: each source is a flow.
pub(super) fn background(source: u32, hop: u32) -> Origin {
    let id = BACKGROUND | u64::from(source) << 31 | u64::from(hop);
    Origin { flow: BACKGROUND | u64::from(source), id, background: true }
}

/// The name and the flow of a packet of a TCP flow, in one of its two directions.
pub(super) fn segment(id: u32, flow: u32, back: bool) -> Origin {
    let kind = BACKGROUND | SEGMENT;
    let flow = kind | u64::from(flow) << 1 | u64::from(back);
    Origin { flow, id: kind | u64::from(id), background: true }
}

/// The packet with this name.
pub(super) fn name(id: u64) -> Name {
    let low = (id & 0x7fff_ffff) as u32;
    if id & BACKGROUND == 0 {
        return Name::Packet(PacketId::new(id as usize));
    }
    if id & SEGMENT != 0 {
        return Name::Segment(id as u32);
    }
    Name::Background { source: (id >> 31) as u32 & 0x7fff_ffff, hop: low }
}

impl Departures {
    /// A packet of an association waits.
    pub(super) const fn waits(&mut self) {
        self.waiting += 1;
    }

    /// A packet of an association waits no more.
    pub(super) const fn leaves(&mut self) {
        self.waiting -= 1;
    }

    /// Packets of associations that wait.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether no packet of an association waits.
    pub(super) const fn is_idle(&self) -> bool {
        self.waiting == 0
    }

    /// Number of events in the queue.
    pub(super) const fn scheduled(&self) -> usize {
        self.scheduled
    }

    /// Time of an event to schedule for a link's next departure, unless nothing waits or there is
    /// one already.
    pub(crate) fn next(&mut self, now: Time, on: LinkId, link: &Link) -> Option<Time> {
        if self.due.len() <= on.index() {
            self.due.resize(on.index() + 1, None);
        }
        let due = &mut self.due[on.index()];
        let at = link.departure(now)?;
        if due.is_some_and(|due| due <= at) {
            return None;
        }
        *due = Some(at);
        self.scheduled += 1;
        Some(at)
    }

    /// Whether the event of a departure is the one that counts; it is used up then.
    pub(crate) fn is_due(&mut self, now: Time, on: LinkId) -> bool {
        self.scheduled -= 1;
        let due = &mut self.due[on.index()];
        let counts = *due == Some(now);
        if counts {
            *due = None;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        for (source, hop) in [(0, 0), (3, 7), (u32::MAX >> 1, 0), (0, 0x7fff_ffff)] {
            assert_eq!(name(background(source, hop).id), Name::Background { source, hop });
        }
        assert_eq!(name(segment(u32::MAX, 1, true).id), Name::Segment(u32::MAX));
        assert_ne!(segment(7, 1, true).flow, segment(7, 1, false).flow);
        let id = PacketId::new(0x8000_0001);
        assert_eq!(name(id.index() as u64), Name::Packet(id));
        assert_ne!(background(1, 0).flow, background(2, 0).flow);
        assert_eq!(background(1, 0).flow, background(1, 1).flow);
    }
}
