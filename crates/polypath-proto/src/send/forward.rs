//! The FORWARD TSN that has been sent and is not acknowledged (RFC 3758 3.5).

use crate::ids::{PathId, Tsn};
use crate::time::Time;

/// What it announced, and where and when it was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forward {
    pub(crate) point: Tsn,
    pub(crate) sent: Time,
    pub(crate) path: PathId,
    /// When it is sent again.
    pub(crate) timer: Time,
}
