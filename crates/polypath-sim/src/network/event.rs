//! The events of a run.

use super::packet::PacketId;
use super::topology::LinkId;
use crate::link::Ticket;

/// An event of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A packet reaches the end of a link.
    Arrival { link: LinkId, packet: PacketId, ticket: Ticket },
    /// A source of background traffic sends a packet.
    Emission { source: u32 },
    /// A background packet reaches the end of the n-th link of its route.
    Background { source: u32, hop: u32, ticket: Ticket },
    /// A packet of a TCP flow reaches the end of a link.
    Segment { segment: u32, ticket: Ticket },
    /// A timer of a TCP flow may have expired.
    TcpTimer { flow: u32 },
    /// A link with a queue under active management may take its next packet.
    Departure { link: LinkId },
    /// A deadline of an endpoint may have expired.
    Timer { stack: u32 },
    /// An application acts on an association.
    Application { association: u32, side: u8 },
    /// The n-th scheduled change of a link.
    Change { index: u32 },
    /// The n-th scheduled addition or removal of an address.
    Move { index: u32 },
    /// The n-th scheduled loss of a NAT's mappings.
    Reset { index: u32 },
    /// The host's endpoints learn of the n-th addition or removal of an address.
    Notice { index: u32 },
    /// The n-th probe takes its samples.
    Sample { probe: u32 },
}
