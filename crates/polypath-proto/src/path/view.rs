//! Read-only views of paths, for policies and for the application (RFC 9260 11.1.8 and 11.1.11:
//! STATUS, GETSRTTREPORT).

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use super::Path;
use super::loss::LossEstimate;
use super::rtt_range::RttRange;
use crate::constants::Thresholds;
use crate::ids::PathId;
use crate::preference::Preference;
use crate::time::Time;

/// The state of a path (RFC 9260 5.4, 8.2; RFC 7829 for potentially failed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// Not yet confirmed to reach the peer: carries HEARTBEATs only (RFC 9260 5.4).
    Unconfirmed,
    /// Usable for data.
    Active,
    /// Has had errors, but fewer than make it inactive (RFC 7829; CMT-PF).
    PotentiallyFailed,
    /// Failed; HEARTBEATs detect when it works again (RFC 9260 8.2).
    Inactive,
    /// Its address was removed (RFC 5061); a later path may reuse its id.
    Removed,
}

impl fmt::Display for PathState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unconfirmed => "unconfirmed",
            Self::Active => "active",
            Self::PotentiallyFailed => "potentially failed",
            Self::Inactive => "inactive",
            Self::Removed => "removed",
        })
    }
}

/// The congestion control state of a path, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow start threshold.
    pub ssthresh: u32,
    /// Bytes acknowledged towards the next step of congestion avoidance (RFC 9260 7.2.2).
    pub partial_bytes_acked: u32,
    /// Rate at which packets leave, in bytes per second of DATA chunks with their headers; `None`
    /// if they leave as soon as the window allows, at most Max.Burst at a time.
    pub pacing_rate: Option<u64>,
}

impl Window {
    /// A window without pacing.
    pub const fn unpaced(cwnd: u32, ssthresh: u32) -> Self {
        Self { cwnd, ssthresh, partial_bytes_acked: 0, pacing_rate: None }
    }

    /// Whether it grows by slow start (RFC 9260 7.2.1 leaves open what is done at equality).
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// A copy of a path's current state.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PathView {
    /// Its id.
    pub id: PathId,
    /// Local address; unspecified while the operating system chooses.
    pub local: IpAddr,
    /// Remote address.
    pub remote: IpAddr,
    /// UDP encapsulation port of the peer on this path (RFC 6951); 0 on raw IP.
    pub remote_port: u16,
    /// Its state.
    pub state: PathState,
    /// When it entered this state.
    pub state_since: Time,
    /// Consecutive errors (RFC 9260 8.2).
    pub error_count: u32,
    /// Expirations of T3-rtx since the path last answered.
    pub timeouts_in_a_row: u32,
    /// The error counts that change its state.
    pub thresholds: Thresholds,
    /// How much the path is preferred.
    pub preference: Preference,
    /// Another path that works is preferred: this one carries no data.
    pub held: bool,
    /// Congestion window, slow start threshold, partial_bytes_acked.
    pub window: Window,
    /// Bytes that may be in flight: the congestion window, or in fast recovery what proportional
    /// rate reduction allows (RFC 6937), with a loss detector that watches time.
    pub limit: u32,
    /// Bytes of DATA chunks in flight on this path, chunk headers included.
    pub in_flight: u32,
    /// Bytes of chunks that were last sent on this path and wait for retransmission.
    pub lost: u32,
    /// Whether one packet of retransmissions may be sent on this path regardless of the window (RFC
    /// 9260 6.3.3 E3, 7.2.4 (3)).
    pub send_credit: bool,
    /// Largest DATA chunk that fits, header included (PMDCS; RFC 9260 1.3).
    pub max_chunk: u32,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Estimated share of packets lost on this path.
    pub loss: LossEstimate,
    /// True loss rate in packets per billion, if an oracle has set it (Iyengar 2004, II).
    pub known_loss: Option<u32>,
    /// Bandwidth estimated from acknowledgements in bytes per second, once there are some; whole
    /// packets, IP headers included (TCP Westwood; Qiao 2008, 5.2).
    pub bandwidth: Option<f64>,
    /// The highest recent rate at which its DATA chunks were acknowledged, in bytes per second,
    /// chunk headers included: BBR's bandwidth estimate (Cardwell 2016). Measured only if the
    /// scheduler [asks for it](crate::policy::Needs::delivery_rate).
    pub delivery_rate: Option<f64>,
    /// When the path will have delivered all data in flight at this rate, once there is a rate.
    pub clear: Option<Time>,
    /// Bandwidth estimated from pairs of HEARTBEATs in bytes per second, if the association sends
    /// them (packet pairs; Qiao 2008, 5.2).
    pub pair_bandwidth: Option<f64>,
    /// The shortest and the longest round-trip time, once there is a sample.
    pub rtt_range: Option<RttRange>,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Duration>,
    /// Round-trip time variation, once there is a sample.
    pub rttvar: Option<Duration>,
    /// Time between the last acknowledgement and the transmission of the newest chunk that it
    /// acknowledged. Measured only if the failover policy
    /// [watches for silence](crate::policy::Needs::silence).
    pub last_rtt: Option<Duration>,
    /// Mean difference of `last_rtt` between successive acknowledgements (RFC 3550 6.4.1).
    pub jitter: Duration,
}

impl PathView {
    /// Whether the path carries data: it is active, and no other active path is preferred.
    pub fn is_usable(&self) -> bool {
        self.state == PathState::Active && !self.held
    }

    /// Whether the window has room for a packet (RFC 9260 6.1 B: less than cwnd outstanding).
    pub const fn has_room(&self) -> bool {
        self.in_flight < self.limit
    }
}

/// All paths of an association, read-only.
#[derive(Clone, Copy, Debug)]
pub struct PathsView<'a> {
    pub(crate) paths: &'a [Path],
    pub(crate) primary: PathId,
    pub(crate) current: PathId,
}

impl PathsView<'_> {
    /// The primary path (RFC 9260 6.4).
    pub const fn primary(&self) -> PathId {
        self.primary
    }

    /// The path that new data is currently sent on: the primary, or an alternate after a failover.
    pub const fn current(&self) -> PathId {
        self.current
    }

    /// The number of path ids, those of removed paths included.
    pub const fn count(&self) -> usize {
        self.paths.len()
    }

    /// One path.
    #[inline(always)]
    pub fn path(&self, id: PathId) -> PathView {
        self.paths[id.index()].view()
    }

    /// A path's state.
    pub const fn state(&self, id: PathId) -> PathState {
        self.paths[id.index()].state()
    }

    /// A path's destination address.
    pub fn remote(&self, id: PathId) -> IpAddr {
        self.paths[id.index()].remote().ip()
    }

    /// A path's source address; unspecified while the operating system chooses.
    pub const fn local(&self, id: PathId) -> IpAddr {
        self.paths[id.index()].local()
    }

    /// Whether a path other than this one is active.
    pub fn another_is_active(&self, id: PathId) -> bool {
        self.paths.iter().any(|p| p.state() == PathState::Active && p.id() != id)
    }

    /// Whether a path is active, and no other active path is preferred.
    pub fn is_active(&self, id: PathId) -> bool {
        self.paths[id.index()].is_usable()
    }

    /// The active paths for which `has_room` is true, in the order of ids.
    #[inline]
    pub fn with_room(&self, has_room: &dyn Fn(PathId) -> bool) -> impl Iterator<Item = PathView> {
        self.iter().filter(move |path| path.is_usable() && has_room(path.id))
    }

    /// Every path that has not been removed, in the order of ids.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = PathView> + '_ {
        self.paths.iter().filter(|p| p.state() != PathState::Removed).map(Path::view)
    }

    /// The ids of the active paths to which no other is preferred, in order. Cheaper than
    /// [`iter`](Self::iter), which copies the state of each path.
    pub fn active(&self) -> impl Iterator<Item = PathId> + '_ {
        self.paths.iter().filter(|p| p.is_usable()).map(Path::id)
    }

    /// Bytes of DATA chunks in flight on a path, chunk headers included.
    pub const fn in_flight(&self, id: PathId) -> u32 {
        self.paths[id.index()].in_flight()
    }

    /// The largest DATA chunk that fits into a packet of a path, header included, in bytes.
    pub fn max_chunk(&self, id: PathId) -> u32 {
        self.paths[id.index()].max_chunk()
    }

    /// The shortest round-trip time of the other active paths, once there is a sample.
    pub fn shortest_of_others(&self, id: PathId) -> Option<Duration> {
        let others = self.paths.iter().filter(|p| p.id() != id && p.state() == PathState::Active);
        others.filter_map(Path::shortest_rtt).min()
    }

    /// The next path after `id` in round robin for which `usable` holds; `id` itself is tried last.
    pub fn next_after(&self, id: PathId, usable: impl Fn(PathId) -> bool) -> Option<PathId> {
        let n = self.paths.len();
        (1..=n)
            .map(|step| &self.paths[(id.index() + step) % n])
            .find(|p| p.state() != PathState::Removed && usable(p.id()))
            .map(Path::id)
    }
}
