//! What a policy may see of the paths.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use super::failover::Thresholds;
use crate::{LossEstimate, PathId, RttRange, Time};

/// Whether a path can be used (RFC 9260 5.4, 8.2; RFC 7829 for the state between).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// Not yet shown to reach the peer: carries heartbeats only (RFC 9260 5.4).
    Unconfirmed,
    /// In use or ready for it.
    Active,
    /// Errors have been seen, but not yet enough to give it up (RFC 7829; CMT-PF).
    PotentiallyFailed,
    /// Given up; heartbeats find out when it is back (RFC 9260 8.2).
    Inactive,
    /// Its address has gone (RFC 5061); its number may be another path's later.
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

/// A path's congestion window and what belongs to it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow start threshold.
    pub ssthresh: u32,
    /// Bytes acknowledged towards the next step of congestion avoidance (RFC 9260 7.2.2).
    pub partial_bytes_acked: u32,
}

/// A path as it stands, copied for the reader.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PathView {
    /// Its number.
    pub id: PathId,
    /// Local address; unspecified while the operating system chooses.
    pub local: IpAddr,
    /// Remote address.
    pub remote: IpAddr,
    /// UDP encapsulation port of the peer on this path (RFC 6951); 0 on raw IP.
    pub remote_port: u16,
    /// Whether it can be used.
    pub state: PathState,
    /// Since when it has this state.
    pub state_since: Time,
    /// Consecutive errors (RFC 9260 8.2).
    pub error_count: u32,
    /// How many of them change its state.
    pub thresholds: Thresholds,
    /// Congestion window, slow start threshold, partial_bytes_acked.
    pub window: Window,
    /// Bytes of DATA chunks outstanding here, chunk headers included.
    pub in_flight: u32,
    /// Bytes of chunks that were last sent here and wait for their retransmission.
    pub lost: u32,
    /// One packet of retransmissions may leave here whatever the window (RFC 9260 6.3.3 E3, 7.2.4 (3)).
    pub allowance: bool,
    /// Largest DATA chunk that fits, header included (PMDCS; RFC 9260 1.3).
    pub max_chunk: u32,
    /// Retransmission timeout.
    pub rto: Duration,
    /// What share of what is sent here is lost.
    pub loss: LossEstimate,
    /// The same for sure, in packets of a thousand million, where an oracle has told (Iyengar 2004, II).
    pub known_loss: Option<u32>,
    /// Bandwidth by its acknowledgements in bytes a second, once there are some; whole packets, IP
    /// headers included (TCP Westwood; Qiao 2008, 5.2).
    pub bandwidth: Option<f64>,
    /// The highest rate at which its DATA chunks were acknowledged of late, in bytes a second, chunk
    /// headers included: the bandwidth as BBR estimates it (Cardwell 2016). Measured if the scheduler
    /// [asks for it](super::Scheduler::measures_delivery).
    pub delivery_rate: Option<f64>,
    /// When, at this rate, the path will have carried what has left, once there is a rate.
    pub clear: Option<Time>,
    /// Bandwidth by pairs of HEARTBEATs in bytes a second, if the association sends such
    /// (packet pairs; Qiao 2008, 5.2).
    pub pair_bandwidth: Option<f64>,
    /// The shortest and the longest round-trip time, once there is a sample.
    pub rtt_range: Option<RttRange>,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Duration>,
    /// Round-trip time variation, once there is a sample.
    pub rttvar: Option<Duration>,
}

impl PathView {
    /// The window has room for a packet (RFC 9260 6.1 B: less than cwnd outstanding).
    pub const fn has_room(&self) -> bool {
        self.in_flight < self.window.cwnd
    }
}

/// All paths of an association, read-only.
#[derive(Clone, Copy, Debug)]
pub struct PathsView<'a> {
    pub(crate) paths: &'a [crate::path::Path],
    pub(crate) primary: PathId,
    pub(crate) current: PathId,
}

impl PathsView<'_> {
    /// The primary path (RFC 9260 6.4).
    pub const fn primary(&self) -> PathId {
        self.primary
    }

    /// The path that new data goes to at the moment: the primary, or its stand-in.
    pub const fn current(&self) -> PathId {
        self.current
    }

    /// How many numbers of paths there are, those of removed ones included.
    pub const fn count(&self) -> usize {
        self.paths.len()
    }

    /// One path.
    pub fn path(&self, id: PathId) -> PathView {
        self.paths[id.index()].view()
    }

    /// Whether a path can be used.
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

    /// It is in use or ready for it.
    pub fn is_active(&self, id: PathId) -> bool {
        self.state(id) == PathState::Active
    }

    /// Every path that has not been removed, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = PathView> + '_ {
        let there = |p: &PathView| p.state != PathState::Removed;
        self.paths.iter().map(crate::path::Path::view).filter(there)
    }

    /// The next path after `id` in round robin of which `usable` holds; `id` itself is asked last.
    pub fn next_after(&self, id: PathId, usable: impl Fn(PathId) -> bool) -> Option<PathId> {
        let n = self.paths.len();
        (1..=n)
            .map(|step| &self.paths[(id.index() + step) % n])
            .find(|p| p.state() != PathState::Removed && usable(p.id()))
            .map(crate::path::Path::id)
    }
}
