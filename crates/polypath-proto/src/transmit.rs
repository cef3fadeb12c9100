//! Metadata of datagrams that the driver sends and receives.

use std::net::{IpAddr, SocketAddr};

use crate::ids::{AssociationId, PathId};

/// Explicit congestion notification bits of an IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable transport.
    #[default]
    NotEct = 0b00,
    /// ECN-capable, codepoint ECT(1).
    Ect1 = 0b01,
    /// ECN-capable, codepoint ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

/// Whether IP may fragment a datagram that exceeds the MTU of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragmentation {
    /// The operating system's default.
    #[default]
    System,
    /// IP must neither fragment the datagram nor hold it back for its size: if it is too large, it
    /// is lost (RFC 8899 3 (3)).
    Never,
    /// IP may fragment the datagram: it contains a chunk cut for a larger PMTU (RFC 9260 6.9).
    Allowed,
}

/// Local and remote address of a datagram.
///
/// The ports are those of the UDP encapsulation (RFC 6951); on raw IP both are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FourTuple {
    /// Address (and UDP port) of this host on which the datagram arrived.
    pub local: SocketAddr,
    /// Address (and UDP port) that the datagram came from.
    pub remote: SocketAddr,
}

/// One or more datagrams for one path that [`poll_transmit`](crate::Endpoint::poll_transmit) has
/// written to the driver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The association and its path; `None` for stateless replies.
    pub path: Option<(AssociationId, PathId)>,
    /// Source address; the unspecified address leaves the choice to the operating system.
    pub source: IpAddr,
    /// Destination address and UDP encapsulation port (0 on raw IP).
    pub destination: SocketAddr,
    /// ECN bits for the IP header.
    pub ecn: Ecn,
    /// Bytes written to the buffer.
    pub size: usize,
    /// Whether IP may fragment it.
    pub fragmentation: Fragmentation,
    /// If the buffer holds several datagrams: the size of each but the last one, in bytes.
    pub segment_size: Option<usize>,
}
