//! Scheduled changes of links and addresses.

use std::time::Duration;

use polypath_proto::Time;

use super::{LinkId, NodeId};
use crate::link::{Link, LossModel};
use crate::units::Rate;

/// Something that happens to a link at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// To which link.
    pub link: LinkId,
    /// What.
    pub kind: ChangeKind,
}

/// What happens to a link.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeKind {
    /// It breaks; what is queued and on the wire is lost.
    Down,
    /// It works again.
    Up,
    /// Packets offered from now on have this rate; `None` takes no time.
    Rate(Option<Rate>),
    /// Packets offered from now on have this propagation delay.
    Delay(Duration),
    /// Packets offered from now on are lost like this.
    Loss(LossModel),
    /// Packets offered from now on may be so large; `None` has no limit.
    Mtu(Option<u32>),
}

impl ChangeKind {
    /// Does it.
    pub fn apply(&self, now: Time, link: &mut Link) {
        match self {
            Self::Down => link.set_down(now),
            Self::Up => link.set_up(),
            Self::Rate(rate) => link.set_rate(*rate),
            Self::Delay(delay) => link.set_delay(*delay),
            Self::Loss(loss) => link.set_loss(loss.clone()),
            Self::Mtu(mtu) => link.set_mtu(*mtu),
        }
    }
}

/// An address that comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// When.
    pub(crate) at: Time,
    /// Its interface.
    pub(crate) node: NodeId,
    /// It comes.
    pub(crate) comes: bool,
    /// How much later the host's endpoints hear of it.
    pub(crate) notice: Duration,
}
