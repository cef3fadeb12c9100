//! Scheduled changes of links and addresses.

use std::time::Duration;

use polypath_proto::Time;

use super::topology::{LinkId, NodeId};
use crate::link::{Link, LossModel};
use crate::units::Rate;

/// A scheduled change of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Time of the change.
    pub at: Time,
    /// The link that changes.
    pub link: LinkId,
    /// Kind of the change.
    pub kind: ChangeKind,
}

/// Kind of change of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeKind {
    /// The link breaks; packets queued and on the wire are lost.
    Down,
    /// The link works again.
    Up,
    /// Packets offered from now on have this rate; `None` transmits in no time.
    Rate(Option<Rate>),
    /// Packets offered from now on have this propagation delay.
    Delay(Duration),
    /// Packets offered from now on are lost according to this model.
    Loss(LossModel),
    /// Packets offered from now on may have at most this size in bytes; `None` sets no limit.
    Mtu(Option<u32>),
}

impl ChangeKind {
    /// Applies the change to a link.
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

/// A scheduled addition or removal of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// Time of the change.
    pub(crate) at: Time,
    /// Interface with the address.
    pub(crate) node: NodeId,
    /// Whether the address is added; otherwise it is removed.
    pub(crate) comes: bool,
    /// Delay until the host's endpoints learn of the change.
    pub(crate) notice: Duration,
}

impl Move {
    /// Time at which the host's endpoints learn of the change.
    pub(crate) fn noticed(&self) -> Time {
        self.at + self.notice
    }

    /// Whether a host has the address of an interface at a time; `None` is before any change.
    pub(crate) fn is_here(moves: &[Self], node: NodeId, at: Option<Time>) -> bool {
        let of = || moves.iter().filter(|one| one.node == node);
        let last = of().rfind(|one| at.is_some_and(|at| one.at <= at));
        // An address that is added first was absent before.
        last.map_or_else(|| of().next().is_none_or(|first| !first.comes), |one| one.comes)
    }
}
