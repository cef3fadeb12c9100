//! How large is a path's congestion window, and how fast do its packets leave?
//!
//! A controller receives the time and a view of the path with every event, and returns the path's
//! new [`Window`]: the congestion window, and optionally a pacing rate. One controller serves all
//! paths of an association; state of a path belongs in a table indexed by [`PathId`]
//! ([`PathTable`]). Only [`on_ack`](CongestionController::on_ack) and
//! [`on_congestion`](CongestionController::on_congestion) have no default.

use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use crate::ids::PathId;
use crate::path::{DeliverySample, LossSample, PathView, PathsView, Window};
use crate::policy::entry::Entry;
use crate::time::Time;

pub mod bbr;
pub mod coupled;
pub mod cubic;
mod hystart;
pub mod resource_pooling;
pub mod rfc9260;
pub mod testing;

pub use bbr::BBR;
pub use coupled::COUPLED;
pub use cubic::CUBIC;
pub use resource_pooling::RESOURCE_POOLING;
pub use rfc9260::RFC9260;

/// Every policy.
pub(crate) static ENTRIES: &[&Entry<dyn CongestionController>] =
    &[&RFC9260, &COUPLED, &RESOURCE_POOLING, &CUBIC, &BBR];

/// A path that is added, or whose window is initialised anew.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NewPath {
    /// The current time.
    pub now: Time,
    /// Its id.
    pub id: PathId,
    /// Bytes of its largest DATA chunk, header included (PMDCS; RFC 9260 1.3).
    pub max_chunk: u32,
    /// Its slow start threshold in bytes.
    pub ssthresh: u32,
    /// Its remote address.
    pub remote: IpAddr,
}

impl NewPath {
    pub(crate) const fn new(
        now: Time,
        id: PathId,
        (max_chunk, ssthresh, remote): (u32, u32, IpAddr),
    ) -> Self {
        Self { now, id, max_chunk, ssthresh, remote }
    }

    /// RFC 9260 7.2.1: "min(4 * PMDCS, max(2 * PMDCS, 4404)) bytes if the peer address is an IPv4
    /// address" and 4344 for IPv6: three chunks of an Ethernet packet. `packets` other than zero
    /// replaces the formula.
    pub const fn initial_cwnd(&self, packets: u32) -> u32 {
        if packets > 0 {
            return self.max_chunk.saturating_mul(packets);
        }
        let three = if self.remote.is_ipv4() { 4404 } else { 4344 };
        let two = 2 * self.max_chunk;
        let most = if two > three { two } else { three };
        if 4 * self.max_chunk < most { 4 * self.max_chunk } else { most }
    }
}

/// The circumstances of an event on a path.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Context<'a> {
    /// The current time.
    pub now: Time,
    /// The path after the event: what was acknowledged or found lost is no longer in flight.
    pub path: &'a PathView,
    /// All paths of the association.
    pub paths: PathsView<'a>,
}

impl<'a> Context<'a> {
    pub(crate) const fn new(now: Time, path: &'a PathView, paths: PathsView<'a>) -> Self {
        Self { now, path, paths }
    }
}

/// Packets with DATA that were sent at once: those of one buffer ([`Transmit`](crate::Transmit)),
/// or a single one.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sent {
    /// Bytes of their DATA chunks, headers included.
    pub bytes: u32,
    /// Bytes in flight on the path before they were sent.
    pub in_flight_before: u32,
    /// Whether the path is limited by the application ([`DeliverySample::app_limited`]); false if
    /// delivery is not measured.
    pub app_limited: bool,
}

/// The data that a SACK newly acknowledged on one path, in bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PathAck {
    /// Bytes of chunks newly acknowledged, cumulatively or by gap blocks, headers included.
    pub acked: u32,
    /// Those of `acked` that gap blocks acknowledged.
    pub acked_by_gaps: u32,
    /// Bytes in flight on the path before the SACK.
    pub in_flight_before: u32,
    /// Whether more would have been in flight without pacing: the window had room for data that
    /// waited for its time to leave (RFC 9002 7.8).
    pub paced: bool,
    /// Whether the SACK advanced the cumulative TSN ack point.
    pub advanced: bool,
    /// Whether the [`CwndUpdate`](super::CwndUpdate) policy lets the window grow.
    pub may_grow: bool,
    /// Whether the path is in fast recovery.
    pub recovering: bool,
    /// Time since the most recently sent of these chunks was sent. Chunks whose acknowledgement may
    /// belong to an earlier transmission do not count.
    pub rtt: Option<Duration>,
    /// The delivery rate that the SACK shows, if the controller [needs](super::Needs) it and the
    /// time at which one of the chunks was sent is known.
    pub delivery: Option<DeliverySample>,
}

/// A chunk that was found lost.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// Its bytes, header included.
    pub bytes: u32,
    /// The circumstances in which it was sent, if the controller [needs](super::Needs) them.
    pub delivery: Option<LossSample>,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Congestion {
    /// Missing reports found losses, for the first time in this fast recovery.
    Loss,
    /// The peer reported a packet marked "congestion experienced", for the first time in this round
    /// trip (RFC 4960 Appendix A).
    Ecn,
}

/// A reaction that proved unnecessary, because nothing had been lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spurious {
    /// Whether it is the reaction to the last expiration of T3-rtx, and not that to the losses of
    /// a fast recovery ([`Congestion::Loss`]).
    pub timeout: bool,
    /// The window before the reaction.
    pub before: Window,
}

impl Spurious {
    pub(crate) const fn new(timeout: bool, before: Window) -> Self {
        Self { timeout, before }
    }
}

/// Computes congestion windows and pacing rates. Each method gets the current state of a path and
/// returns its new window.
///
/// For one SACK the calls are, in this order: [`on_recovered`](Self::on_recovered) if it ends a
/// recovery, [`on_ack`](Self::on_ack), then [`on_loss`](Self::on_loss) for each lost chunk; after
/// the first one of a recovery, [`on_congestion`](Self::on_congestion).
pub trait CongestionController: Send + Debug {
    /// The window of a new path. A path whose peer has restarted, or whose chunks have another
    /// size, is initialised again.
    fn initial(&mut self, path: &NewPath) -> Window {
        Window::unpaced(path.initial_cwnd(0), path.ssthresh)
    }

    /// A packet with DATA was sent; called only if the controller [needs](super::Needs) it.
    fn on_sent(&mut self, context: &Context<'_>, _sent: &Sent) -> Window {
        context.path.window
    }

    /// A SACK newly acknowledged data on the path.
    fn on_ack(&mut self, context: &Context<'_>, ack: &PathAck) -> Window;

    /// A chunk in flight on the path was found lost, by missing reports or by a timeout.
    fn on_loss(&mut self, context: &Context<'_>, _loss: &Loss) -> Window {
        context.path.window
    }

    /// There is congestion on the path: reduces the window.
    fn on_congestion(&mut self, context: &Context<'_>, congestion: Congestion) -> Window;

    /// All data that was outstanding when fast recovery began, or when T3-rtx last expired, is
    /// acknowledged.
    fn on_recovered(&mut self, context: &Context<'_>) -> Window {
        context.path.window
    }

    /// T3-rtx expired.
    ///
    /// RFC 9260 7.2.3: "ssthresh = max(cwnd / 2, 4 * PMDCS); cwnd = 1 * PMDCS", with the
    /// controller's own reduction in place of the half.
    fn on_timeout(&mut self, context: &Context<'_>) -> Window {
        let reduced = self.on_congestion(context, Congestion::Loss);
        Window { cwnd: context.path.max_chunk, ..reduced }
    }

    /// The last reaction to a loss was spurious: undoes it.
    fn on_spurious(&mut self, context: &Context<'_>, spurious: &Spurious) -> Window {
        let (now, before) = (context.path.window, spurious.before);
        Window {
            cwnd: now.cwnd.max(before.cwnd),
            ssthresh: now.ssthresh.max(before.ssthresh),
            ..before
        }
    }

    /// Nothing was sent on the path for one more RTO, or for the `first` one.
    fn on_idle(&mut self, _now: Time, path: &PathView, _first: bool) -> Window {
        path.window
    }

    /// Another path was left for its silence or its losses, and the data in flight on it is about
    /// to be sent again on the paths that are active, this one among them. Nothing would be
    /// delivered in order before what is lost of it now.
    fn on_path_left(&mut self, context: &Context<'_>) -> Window {
        context.path.window
    }

    /// When to call [`on_wake`](Self::on_wake) for this path; asked after every event if the
    /// controller [needs](super::Needs) it.
    fn wake_at(&self, _path: PathId) -> Option<Time> {
        None
    }

    /// The time of [`wake_at`](Self::wake_at) has come.
    fn on_wake(&mut self, context: &Context<'_>) -> Window {
        context.path.window
    }
}

/// A controller's state of each path, made when it is first used.
#[derive(Clone, Debug)]
pub struct PathTable<T>(Vec<Option<T>>);

impl<T> Default for PathTable<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> PathTable<T> {
    /// The state of a path, made by `new` if it has none yet.
    pub fn get_or_insert_with(&mut self, path: PathId, new: impl FnOnce() -> T) -> &mut T {
        if path.index() >= self.0.len() {
            self.0.resize_with(path.index() + 1, || None);
        }
        self.0[path.index()].get_or_insert_with(new)
    }

    /// The state of a path.
    pub fn get(&self, path: PathId) -> Option<&T> {
        self.0.get(path.index())?.as_ref()
    }

    /// The states of all paths that have one.
    pub fn iter(&self) -> impl Iterator<Item = (PathId, &T)> {
        (0..).map(PathId).zip(&self.0).filter_map(|(id, state)| Some((id, state.as_ref()?)))
    }

    /// Drops the state of a path.
    pub fn reset(&mut self, path: PathId) {
        if let Some(state) = self.0.get_mut(path.index()) {
            *state = None;
        }
    }
}
