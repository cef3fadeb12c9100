//! Helpers to test a policy outside of this crate: they make a policy as an association does, paths
//! in any state, and every context that a policy receives.
//!
//! The contexts have typical values and public fields: change those that matter to the test.
//!
//! ```
//! use polypath_proto::policy::congestion::RFC9260;
//! use polypath_proto::policy::testing::{self, TestPaths};
//!
//! let mut controller = testing::make(&RFC9260);
//! let mut paths = TestPaths::new(1);
//! paths.set_window(0, 4_380, u32::MAX);
//! let mut ack = testing::path_ack(1_460);
//! ack.in_flight_before = 4_380;
//! let window = paths.on(0, |context| controller.on_ack(context, &ack));
//! assert_eq!(window.cwnd, 4_380 + 1_460);
//! ```

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::ack::Arrival;
use super::congestion::{Context, Loss, NewPath, PathAck, Sent};
use super::cwnd_update::ScannedChunk;
use super::loss::{MissingChunk, NewlyAckedOn, SackView};
use super::retransmission::{LossCause, LostChunk};
use super::rtt_sampling::AckedChunk;
use super::scheduler::NewData;
use crate::constants::Constants;
use crate::ids::{PathId, Tsn};
use crate::path::{Path, PathState, PathsView, Window};
use crate::policy::entry::{Entry, Policy, Setup};
use crate::rng::{Rng, Seed};
use crate::time::Time;

/// Bytes of the largest packet without IP's header, and of IP's header.
const PACKET: (usize, usize) = (1472, 20);

/// The policy of an entry, with the defaults of its parameters and the constants of RFC 9260.
pub fn make<T: ?Sized>(entry: &'static Entry<T>) -> Box<T> {
    make_as(entry, entry.name)
}

/// The policy that `text` denotes, such as `aimd:increase=2`.
///
/// # Panics
/// The entry has another name, no such parameter, or does not allow the value.
pub fn make_as<T: ?Sized>(entry: &'static Entry<T>, text: &str) -> Box<T> {
    let policy = Policy::read(&[entry], text)
        .unwrap_or_else(|error| panic!("{text:?} must be {}", error.allowed));
    policy.make(&Setup::new(&Constants::rfc9260(), true, "idle"))
}

/// A generator for policies that draw lots.
pub fn rng(seed: u64) -> Rng {
    Rng::new(&Seed::from_u64(seed))
}

/// Active paths from 10.0.N.1 to 10.0.N.2, idle, with a window of three packets.
#[derive(Debug)]
pub struct TestPaths {
    paths: Vec<Path>,
    primary: PathId,
    current: PathId,
    now: Time,
    next: Tsn,
}

impl TestPaths {
    /// This many paths; the first is the primary.
    pub fn new(count: u8) -> Self {
        let constants = Constants::rfc9260();
        let path = |n| {
            let [local, remote] = [1, 2].map(|host| IpAddr::V4(Ipv4Addr::new(10, 0, n, host)));
            let window = |max_chunk, _, _| Window::unpaced(3 * max_chunk, u32::MAX);
            let at = (remote, 9899).into();
            let mut path = Path::new(PathId(n), local, at, PACKET, &constants, window, Time::ZERO);
            path.set_state(Time::ZERO, PathState::Active);
            path
        };
        Self {
            paths: (0..count).map(path).collect(),
            primary: PathId(0),
            current: PathId(0),
            now: Time::ZERO,
            next: Tsn(1),
        }
    }

    /// The time of the next event, which begins at zero.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Sets a path's congestion window and slow start threshold, in bytes.
    pub fn set_window(&mut self, path: u8, cwnd: u32, ssthresh: u32) {
        self.path(path).set_window(Window::unpaced(cwnd, ssthresh));
    }

    /// Adopts the window that a controller has returned.
    pub fn adopt(&mut self, path: u8, window: Window) {
        self.path(path).set_window(window);
    }

    /// Sends this many bytes on a path, in one chunk.
    pub fn send(&mut self, path: u8, bytes: u32) {
        let (now, tsn) = (self.now, self.next);
        self.next = tsn.next();
        self.path(path).data_sent(now, tsn, 1, bytes);
    }

    /// Measures a round-trip time on a path.
    pub fn measure(&mut self, path: u8, rtt: Duration) {
        self.path(path).sample_rtt(rtt);
    }

    /// A packet is sent on a path and acknowledged, or `lost`.
    pub fn transmit(&mut self, path: u8, lost: bool) {
        self.send(path, 1000);
        let path = self.path(path);
        path.data_gone(1000);
        if lost {
            path.count_loss();
        }
    }

    /// Sets a path's state, since now.
    pub fn set_state(&mut self, path: u8, state: PathState) {
        let now = self.now;
        self.path(path).set_state(now, state);
    }

    /// Counts an error of a path (RFC 9260 8.2).
    pub fn count_error(&mut self, path: u8) {
        self.path(path).count_error();
    }

    /// Makes a path the primary, or the one that carries new data.
    pub fn choose(&mut self, primary: u8, current: u8) {
        (self.primary, self.current) = (PathId(primary), PathId(current));
    }

    /// What a policy sees of the paths.
    pub fn view(&self) -> PathsView<'_> {
        PathsView { paths: &self.paths, primary: self.primary, current: self.current }
    }

    /// Calls a congestion controller for an event on a path.
    pub fn on<R>(&self, path: u8, event: impl FnOnce(&Context<'_>) -> R) -> R {
        let view = self.view().path(PathId(path));
        event(&Context::new(self.now, &view, self.view()))
    }

    fn path(&mut self, path: u8) -> &mut Path {
        &mut self.paths[usize::from(path)]
    }
}

/// A path that is added.
pub fn new_path(id: u8) -> NewPath {
    let remote = IpAddr::V4(Ipv4Addr::new(10, 0, id, 2));
    NewPath::new(Time::ZERO, PathId(id), (1460, u32::MAX, remote))
}

/// A packet that was sent.
pub const fn sent(bytes: u32) -> Sent {
    Sent { bytes, in_flight_before: 0, app_limited: false }
}

/// A SACK that acknowledges these bytes cumulatively, which were all in flight; the window may
/// grow.
pub const fn path_ack(bytes: u32) -> PathAck {
    PathAck {
        acked: bytes,
        acked_by_gaps: 0,
        in_flight_before: bytes,
        paced: false,
        advanced: true,
        may_grow: true,
        recovering: false,
        rtt: None,
        delivery: None,
    }
}

/// A chunk that was found lost.
pub const fn loss(bytes: u32) -> Loss {
    Loss { bytes, delivery: None }
}

/// New data that waits, with a peer whose window is open.
pub const fn new_data(bytes: usize) -> NewData {
    NewData {
        now: Time::ZERO,
        waiting: bytes,
        more: false,
        peer_rwnd: 1 << 20,
        in_flight: 0,
        receive_buffer: 1 << 20,
        ahead: 0,
    }
}

/// The first packet with DATA since the last SACK, in order.
pub fn arrival(path: u8) -> Arrival {
    Arrival { path: PathId(path), packets: 1, ..Arrival::default() }
}

/// A chunk that waits for its first retransmission.
pub const fn lost_chunk(tsn: u32, last_path: u8, cause: LossCause) -> LostChunk {
    LostChunk { tsn: Tsn(tsn), cause, last_path: PathId(last_path), transmissions: 1 }
}

/// A chunk that was sent once, and that no SACK has reported missing.
pub const fn missing_chunk(tsn: u32, path: u8, sent: Time) -> MissingChunk {
    MissingChunk {
        tsn: Tsn(tsn),
        path: PathId(path),
        reports: 0,
        fast_retransmitted: false,
        own_recover: None,
        transmissions: 1,
        sent,
        recover: None,
    }
}

/// A chunk above the cumulative ack that was sent once.
pub const fn scanned_chunk(tsn: u32, path: u8, newly_acked: bool) -> ScannedChunk {
    ScannedChunk { tsn: Tsn(tsn), path: PathId(path), retransmitted: false, newly_acked }
}

/// A SACK that acknowledges everything up to `cumulative`, of which it is the first to acknowledge
/// the last chunk; `on` has what is newly acknowledged on each path.
pub fn sack(cumulative: u32, on: &[NewlyAckedOn]) -> SackView<'_> {
    SackView {
        cumulative: Tsn(cumulative),
        advanced: true,
        highest_newly_acked: Some(Tsn(cumulative)),
        newly_acked_cumulatively: Some(Tsn(cumulative)),
        newly_acked_on: on,
        highest_acked: Tsn(cumulative),
        ..SackView::default()
    }
}

/// A chunk that is newly acknowledged, was sent once and measures the round-trip time.
pub fn acked_chunk(path: u8, sent: Time) -> AckedChunk {
    let path = PathId(path);
    AckedChunk { path, sent, transmissions: 1, measured: true, ..AckedChunk::default() }
}
