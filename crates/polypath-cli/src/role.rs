//! The two sides of a transfer.

/// Side of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Sender,
    Receiver,
}

/// Default SCTP port.
pub(crate) const SCTP_PORT: u16 = 9260;
