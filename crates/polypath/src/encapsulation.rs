//! How packets are transported.

/// Encapsulation of SCTP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encapsulation {
    /// UDP (RFC 6951).
    Udp {
        /// UDP port to bind on every local address; 0 picks any free port, the same on all of them.
        port: u16,
    },
    /// IP protocol 132 without encapsulation; needs CAP_NET_RAW, Linux only.
    ///
    /// The kernel's own SCTP must not be in use on the same addresses: it would answer the peer's
    /// packets with ABORT.
    RawIp,
}
