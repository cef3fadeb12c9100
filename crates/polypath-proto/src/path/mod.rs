//! A path: a pair of a local and a remote address, and its state.
//!
//! The association accesses a path only through its methods.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::constants::{Constants, Thresholds};
use crate::ids::{PathId, Tsn};
use crate::preference::Preference;
use crate::stats::PathStats;
use crate::time::Time;
use crate::transmit::Fragmentation;
use crate::wire::COMMON_HEADER_LEN;

mod congestion;
mod copies;
mod delivery;
mod ecn;
mod flight;
mod heartbeat;
mod loss;
mod mtu;
mod pacer;
mod packet_pair;
mod recovery;
mod rtt;
mod rtt_range;
mod sampler;
mod silence;
mod view;
mod westwood;

pub(crate) use congestion::Repair;
pub use loss::LossEstimate;
pub(crate) use mtu::MtuSearch;
pub use mtu::{PathMtu, PathMtuState};
pub use rtt_range::RttRange;
pub use sampler::{DeliverySample, LossSample};
pub use view::{PathState, PathView, PathsView, Window};

use copies::CopiesHere;
use delivery::DeliveryRate;
pub(crate) use ecn::Marks;
use heartbeat::HeartbeatOut;
use pacer::Pacer;
use packet_pair::Answered;
pub(crate) use packet_pair::PacketPair;
pub(crate) use recovery::Recovery;
use rtt::RttEstimator;
pub(crate) use sampler::Earlier;
use sampler::Sampler;
pub(crate) use silence::Silence;
use westwood::Westwood;

/// One transmission of a chunk on this path. If the chunk is retransmitted, on any path, its number
/// of transmissions in the ring changes, and the old entry is void.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentHere {
    pub(crate) tsn: Tsn,
    pub(crate) transmissions: u32,
}

#[derive(Debug)]
pub(crate) struct Path {
    id: PathId,
    local: IpAddr,
    remote: SocketAddr,
    state: PathState,
    state_since: Time,
    pub(crate) created: Time,
    /// The application passed the remote address (RFC 9260 5.4, rule 1), or another path had
    /// confirmed it when this one was added.
    address_confirmed: bool,
    error_count: u32,
    /// Expirations of T3-rtx since the path last answered.
    timeouts_in_a_row: u32,
    /// T3-rtx has expired, and no data has been acknowledged since.
    timed_out: bool,
    /// When T3-rtx last expired.
    last_timeout: Option<Time>,
    /// When a SACK last arrived over this path.
    last_sack: Option<Time>,
    thresholds: Thresholds,
    preference: Preference,
    /// Another path that works is preferred: this one carries no data.
    pub(crate) held: bool,
    window: Window,
    /// The recovery that the window was last cut for.
    repair: Option<Repair>,
    pacer: Pacer,
    /// When the pacer releases data that waits, or the congestion controller is to be called.
    release: Option<Time>,
    rtt: RttEstimator,
    loss: LossEstimate,
    known_loss: Option<u32>,
    bandwidth: Westwood,
    /// Present if the scheduler needs it.
    delivery: Option<DeliveryRate>,
    /// Present if the congestion controller needs it.
    sampler: Option<Box<Sampler>>,
    /// The peer's delay of a SACK, if a probe timeout includes it; otherwise zero.
    sack_delay: Duration,
    pair: PacketPair,
    rtt_range: Option<RttRange>,
    pub(crate) marks: Marks,
    /// Bytes that IP and UDP add to a packet.
    headers: usize,
    /// Present if path MTU discovery is on.
    pub(crate) mtu_search: Option<Box<MtuSearch>>,
    /// The chunk whose round-trip time is being measured.
    rtt_probe: Option<Tsn>,
    /// Largest SCTP packet, common header included, a multiple of 4.
    max_packet: usize,
    /// Bytes of `max_packet` that every packet with DATA needs besides DATA and the common header.
    reserved: usize,
    /// Bytes and chunks outstanding on this path, chunk headers included.
    in_flight: u32,
    chunks_in_flight: u32,
    /// Bytes of chunks that were last sent on this path and wait for retransmission.
    lost: u32,
    /// Send credit: one packet of retransmissions may be sent regardless of the window.
    pub(crate) send_credit: bool,
    /// Transmissions on this path in order; may hold void entries.
    sent_here: VecDeque<SentHere>,
    /// Duplicate entries are removed once there are this many.
    most_sent_here: usize,
    t3: Option<Time>,
    /// State of loss recovery, with a detector that watches time.
    pub(crate) recovery: Recovery,
    copies: CopiesHere,
    /// Whether the path answers, with a failover policy that watches that.
    pub(crate) silence: Silence,
    heartbeat_due: Option<Time>,
    heartbeat_period: Duration,
    heartbeat_out: Option<HeartbeatOut>,
    /// When the last answered HEARTBEAT was sent; an older answer is a repetition.
    heartbeat_answered: Option<Time>,
    /// When DATA that may measure the round-trip time, or a HEARTBEAT, was last sent.
    last_measured: Time,
    /// The highest TSN sent on this path.
    highest_sent: Option<Tsn>,
    /// When DATA was last sent, for the decay of an idle window.
    last_data: Option<Time>,
    /// The window has been reduced since `last_data` because the path was idle.
    decayed: bool,
    pub(crate) stats: PathStats,
}

/// Least number of entries at which duplicates are removed.
const LEAST_SENT_HERE: usize = 1024;

impl Path {
    /// A path with the window that `initial` returns for its largest chunk in bytes, its slow start
    /// threshold and its remote address.
    pub(crate) fn new(
        id: PathId,
        local: IpAddr,
        remote: SocketAddr,
        (max_packet, headers): (usize, usize),
        constants: &Constants,
        initial: impl FnOnce(u32, u32, IpAddr) -> Window,
        now: Time,
    ) -> Self {
        let v6 = remote.is_ipv6();
        let search = || Box::new(MtuSearch::new(max_packet, headers, v6));
        let mtu_search = constants.path_mtu_discovery().then(search);
        let max_packet = mtu_search.as_ref().map_or(max_packet, |s| s.size());
        let max_chunk = (max_packet - COMMON_HEADER_LEN) as u32;
        let ssthresh = constants.initial_ssthresh().unwrap_or(u32::MAX);
        Self {
            id,
            local,
            remote,
            state: PathState::Unconfirmed,
            state_since: now,
            created: now,
            address_confirmed: false,
            error_count: 0,
            timeouts_in_a_row: 0,
            timed_out: false,
            last_timeout: None,
            last_sack: None,
            thresholds: constants.thresholds(),
            preference: Preference::NORMAL,
            held: false,
            window: initial(max_chunk, ssthresh, remote.ip()),
            repair: None,
            pacer: Pacer::default(),
            release: None,
            rtt: RttEstimator::new(
                constants.rto_initial(),
                constants.rto_min(),
                constants.rto_max(),
            ),
            loss: LossEstimate::default(),
            known_loss: None,
            bandwidth: Westwood::default(),
            delivery: None,
            sampler: None,
            sack_delay: Duration::ZERO,
            pair: PacketPair::default(),
            rtt_range: None,
            marks: Marks::default(),
            headers,
            mtu_search,
            rtt_probe: None,
            max_packet,
            reserved: 0,
            in_flight: 0,
            chunks_in_flight: 0,
            lost: 0,
            send_credit: false,
            sent_here: VecDeque::new(),
            most_sent_here: LEAST_SENT_HERE,
            t3: None,
            recovery: Recovery::default(),
            copies: CopiesHere::default(),
            silence: Silence::default(),
            heartbeat_due: None,
            heartbeat_period: Duration::ZERO,
            heartbeat_out: None,
            heartbeat_answered: None,
            last_measured: now,
            highest_sent: None,
            last_data: None,
            decayed: false,
            stats: PathStats::default(),
        }
    }

    /// Inlined everywhere: of the copy only the fields that the caller reads are left.
    #[inline(always)]
    pub(crate) fn view(&self) -> PathView {
        PathView {
            id: self.id,
            local: self.local,
            remote: self.remote.ip(),
            remote_port: self.remote.port(),
            state: self.state,
            state_since: self.state_since,
            error_count: self.error_count,
            timeouts_in_a_row: self.timeouts_in_a_row,
            thresholds: self.thresholds,
            preference: self.preference,
            held: self.held,
            window: self.window,
            limit: self.limit(),
            in_flight: self.in_flight,
            lost: self.lost,
            send_credit: self.send_credit,
            max_chunk: self.max_chunk(),
            rto: self.rtt.rto(),
            loss: self.loss,
            known_loss: self.known_loss,
            bandwidth: self.bandwidth(),
            delivery_rate: self.delivery.as_ref().and_then(DeliveryRate::bytes_per_second),
            clear: self.delivery.as_ref().and_then(DeliveryRate::clear),
            pair_bandwidth: self.pair.bytes_per_second(),
            rtt_range: self.rtt_range,
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            last_rtt: self.silence.last_rtt,
            jitter: self.silence.jitter,
        }
    }

    pub(crate) const fn id(&self) -> PathId {
        self.id
    }

    pub(crate) const fn local(&self) -> IpAddr {
        self.local
    }

    pub(crate) const fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Whether the path is not removed and has this local address.
    pub(crate) fn is_from(&self, local: IpAddr) -> bool {
        self.state != PathState::Removed && self.local == local
    }

    /// Whether the path is not removed and has this remote address.
    pub(crate) fn is_to(&self, remote: IpAddr) -> bool {
        self.state != PathState::Removed && self.remote.ip() == remote
    }

    /// Whether another path can take its id: it is removed, and nothing sent on it is left.
    pub(crate) fn is_free(&self) -> bool {
        self.state == PathState::Removed && self.lost == 0 && self.in_flight == 0
    }

    /// Stops a path that is being removed; its data in flight has been marked lost.
    pub(crate) fn retire(&mut self) {
        self.stop_timers();
        self.rtt_probe = None;
        self.send_credit = false;
        self.recovery = Recovery::default();
        self.silence = Silence::default();
        self.mtu_search = None;
    }

    pub(crate) const fn state(&self) -> PathState {
        self.state
    }

    /// Whether the path carries data: it works, and no other that works is preferred.
    pub(crate) fn is_usable(&self) -> bool {
        self.state == PathState::Active && !self.held
    }

    pub(crate) const fn set_preference(&mut self, preference: Preference) {
        self.preference = preference;
    }

    /// Its rank among the paths that work.
    pub(crate) const fn rank(&self) -> u8 {
        if self.stats.bytes_sent < self.preference.budget { 0 } else { self.preference.rank }
    }

    /// Packets of `bytes` bytes were sent; true if they have used up the budget.
    pub(crate) const fn count_sent(&mut self, packets: u64, bytes: u64) -> bool {
        let before = self.stats.bytes_sent;
        self.stats.packets_sent += packets;
        self.stats.bytes_sent += bytes;
        let budget = self.preference.budget;
        before < budget && budget <= self.stats.bytes_sent
    }

    /// Marks the remote address CONFIRMED, whatever the path's state.
    pub(crate) const fn confirm_address(&mut self) {
        self.address_confirmed = true;
    }

    /// Whether the remote address is CONFIRMED, as far as this path shows (RFC 9260 5.4, rules 1 to
    /// 3).
    pub(crate) fn is_confirmed(&self) -> bool {
        match self.state {
            PathState::Removed => false,
            PathState::Unconfirmed => self.address_confirmed,
            _ => true,
        }
    }

    pub(crate) const fn max_packet(&self) -> usize {
        self.max_packet
    }

    /// The path's MTU (RFC 8899).
    pub(crate) fn mtu(&self) -> PathMtu {
        let state = self.mtu_search.as_ref().map_or(PathMtuState::Disabled, |s| s.state());
        PathMtu { mtu: self.ip_size(), state }
    }

    /// The largest IP packet, headers included.
    const fn ip_size(&self) -> u32 {
        (self.max_packet + self.headers) as u32
    }

    /// Whether IP may fragment a packet; `large` if it holds a chunk that was cut for larger ones.
    pub(crate) fn fragmentation(&self, large: bool) -> Fragmentation {
        match self.mtu_search.as_ref().map(|s| s.state()) {
            _ if large => Fragmentation::Allowed,
            None => Fragmentation::System,
            Some(PathMtuState::Error) => Fragmentation::Allowed,
            Some(_) => Fragmentation::Never,
        }
    }

    /// Bytes that IP and UDP add to a packet.
    pub(crate) const fn headers(&self) -> usize {
        self.headers
    }

    /// Adopts the size that the search has found. The window holds at least one packet.
    pub(crate) fn adopt_mtu(&mut self) {
        if let Some(search) = &self.mtu_search {
            self.max_packet = search.size();
            self.window.cwnd = self.window.cwnd.max(self.max_chunk());
        }
    }

    pub(crate) const fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    pub(crate) const fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// The RTO without its back-off.
    pub(crate) fn base_rto(&self) -> Duration {
        self.rtt.computed()
    }

    pub(crate) const fn error_count(&self) -> u32 {
        self.error_count
    }

    pub(crate) const fn path_max_retrans(&self) -> u32 {
        self.thresholds.path_max_retrans
    }

    pub(crate) const fn set_known_loss(&mut self, per_billion: u32) {
        self.known_loss = Some(per_billion);
    }

    pub(crate) const fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }

    pub(crate) const fn window(&self) -> Window {
        self.window
    }

    pub(crate) const fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// PMDCS, the largest DATA chunk, header included (RFC 9260 1.3).
    pub(crate) const fn max_chunk(&self) -> u32 {
        (self.max_packet - COMMON_HEADER_LEN - self.reserved) as u32
    }

    /// Reserves the bytes of each packet that negotiated extensions need and DATA cannot use. The
    /// window, which counts chunks, is initialised anew with `initial`, as by [`new`](Self::new).
    pub(crate) fn reserve(
        &mut self,
        bytes: usize,
        initial: impl FnOnce(u32, u32, IpAddr) -> Window,
    ) {
        if bytes != self.reserved {
            self.reserved = bytes;
            let ssthresh = self.window.ssthresh;
            self.window = initial(self.max_chunk(), ssthresh, self.remote.ip());
        }
    }

    pub(crate) const fn has_room(&self) -> bool {
        self.in_flight < self.limit()
    }

    /// Bytes that may be in flight.
    const fn limit(&self) -> u32 {
        match self.recovery.limit() {
            Some(limit) => limit,
            None => self.window.cwnd,
        }
    }

    /// RFC 9260 7.2.3: after T3-rtx has expired, "no more than one SCTP packet will be in flight
    /// for that address until the endpoint receives acknowledgement for successful delivery of data
    /// to that address".
    pub(crate) const fn awaits_delivery(&self) -> bool {
        self.timed_out && self.in_flight > 0
    }

    pub(crate) const fn set_timed_out(&mut self, timed_out: bool) {
        self.timed_out = timed_out;
    }

    pub(crate) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(crate) const fn chunks_in_flight(&self) -> u32 {
        self.chunks_in_flight
    }

    /// Sets the state and returns the old one; the caller reports the change.
    pub(crate) fn set_state(&mut self, now: Time, state: PathState) -> PathState {
        if self.state != state {
            self.state_since = now;
        }
        std::mem::replace(&mut self.state, state)
    }

    /// Adopts the addresses of a received packet: a NAT may have given the peer another port (RFC
    /// 6951 5.4), and an unconfirmed path may have been paired with another local address. The path
    /// `moves` to the local address that the packet arrived at if the host has lost its own.
    pub(crate) fn adopt_addresses(&mut self, local: SocketAddr, remote: SocketAddr, moves: bool) {
        self.remote.set_port(remote.port());
        if moves || self.state == PathState::Unconfirmed || self.local.is_unspecified() {
            self.local = local.ip();
        }
    }

    pub(crate) const fn set_initial_ssthresh(&mut self, ssthresh: u32) {
        self.window.ssthresh = ssthresh;
    }

    // Errors (RFC 9260 8.2).

    pub(crate) const fn count_error(&mut self) {
        self.error_count = self.error_count.saturating_add(1);
    }

    pub(crate) const fn clear_errors(&mut self) {
        self.error_count = 0;
        self.timeouts_in_a_row = 0;
    }

    /// T3-rtx has expired.
    pub(crate) const fn count_timeout(&mut self, now: Time) {
        self.last_timeout = Some(now);
        self.timeouts_in_a_row = self.timeouts_in_a_row.saturating_add(1);
        self.stats.timeouts += 1;
    }

    pub(crate) fn back_off(&mut self, now: Time) {
        self.rtt.back_off(now);
    }

    /// Data sent on this path alone has been acknowledged.
    pub(crate) fn end_back_off(&mut self, now: Time) {
        self.rtt.end_back_off(now);
    }

    /// A chunk last sent on this path has been acknowledged this time after that; `once` if it was
    /// sent only once. May end the back-off of the RTO.
    pub(crate) fn chunk_acknowledged(&mut self, age: Duration, once: bool) {
        self.rtt.acknowledged(age, once);
    }

    /// When T3-rtx last expired.
    pub(crate) const fn last_timeout(&self) -> Option<Time> {
        self.last_timeout
    }

    pub(crate) const fn sack_arrived(&mut self, now: Time) {
        self.last_sack = Some(now);
    }

    /// Whether a SACK has arrived over this path since T3-rtx last expired on it.
    pub(crate) fn has_sack_since_timeout(&self) -> bool {
        self.last_sack.is_some() && self.is_since_timeout(self.last_sack)
    }

    /// Whether T3-rtx has not expired on this path after `event`.
    pub(crate) fn is_since_timeout(&self, event: Option<Time>) -> bool {
        event >= self.last_timeout
    }

    pub(crate) fn shortest_rtt(&self) -> Option<Duration> {
        self.rtt_range.map(|range| range.min)
    }

    /// Reduces an idle window once for each RTO without DATA (RFC 9260 7.2.1): `decayed` returns
    /// the new window, for the first RTO or a further one.
    pub(crate) fn decay_if_idle(
        &mut self,
        now: Time,
        mut decayed: impl FnMut(&PathView, bool) -> Window,
    ) {
        let Some(last) = self.last_data else { return };
        if self.in_flight > 0 {
            return;
        }
        let rto = self.rtt.rto();
        let idle = now.since(last);
        if idle < rto {
            return;
        }
        let times = idle.as_nanos() / rto.as_nanos().max(1);
        for _ in 0..times.min(32) {
            self.window = decayed(&self.view(), !self.decayed);
            self.decayed = true;
        }
        self.last_data = Some(now);
    }

    // Round-trip time (RFC 9260 6.3.1).

    /// The chunk whose round-trip time is being measured.
    pub(crate) const fn rtt_probe(&self) -> Option<Tsn> {
        self.rtt_probe
    }

    pub(crate) const fn start_rtt_probe(&mut self, now: Time, tsn: Tsn) {
        self.rtt_probe = Some(tsn);
        self.last_measured = now;
    }

    /// Ends the measurement if the acknowledged chunk is the one that is measured; true then.
    pub(crate) fn end_rtt_probe(&mut self, tsn: Tsn) -> bool {
        let measured = self.rtt_probe == Some(tsn);
        if measured {
            self.rtt_probe = None;
        }
        measured
    }

    /// Abandons the measurement if its chunk is to be retransmitted.
    pub(crate) fn drop_rtt_probe(&mut self, tsn: Tsn) {
        if self.rtt_probe == Some(tsn) {
            self.rtt_probe = None;
        }
    }

    /// RFC 9260 6.3.1 (C5): "RTT measurements SHOULD only be made using a DATA chunk with TSN r if
    /// no DATA chunk with TSN less than or equal to r was retransmitted since the DATA chunk with
    /// TSN r was sent first."
    pub(crate) fn drop_rtt_probe_from(&mut self, tsn: Tsn) {
        self.rtt_probe = self.rtt_probe.filter(|probe| probe.is_before(tsn));
    }

    pub(crate) fn sample_rtt(&mut self, r: Duration) {
        self.rtt.sample(r);
        self.rtt_range = Some(RttRange::widened(self.rtt_range, r));
        self.stats.rtt_samples += 1;
    }

    /// Measures the delivery rate from now on.
    pub(crate) fn measure_delivery(&mut self) {
        self.delivery = Some(DeliveryRate::default());
    }

    // Bandwidth (Qiao 2008, 5.2).

    /// Chunks of `bytes` bytes that were sent on this path were acknowledged.
    pub(crate) fn acknowledged(&mut self, now: Time, bytes: u32) {
        let shortest = self.shortest_rtt();
        self.bandwidth.acknowledged(now, bytes, shortest);
        if let Some(delivery) = &mut self.delivery {
            delivery.acknowledged(now, bytes, shortest);
        }
    }

    /// Bandwidth in bytes per second of whole IP packets, as if all were full.
    fn bandwidth(&self) -> Option<f64> {
        let whole = f64::from(self.ip_size()) / f64::from(self.max_chunk());
        self.bandwidth.bytes_per_second().map(|chunks| chunks * whole)
    }

    /// Whether the next HEARTBEAT may be a pair of full packets: the path answers, and has
    /// bandwidth for them.
    pub(crate) fn is_pair_due(&self, now: Time) -> bool {
        self.error_count == 0 && self.pair.is_due(now, self.ip_size())
    }

    /// A pair of HEARTBEATs is sent.
    pub(crate) const fn pair_sent(&mut self, now: Time) {
        self.pair.sent(now);
    }

    /// A HEARTBEAT that carried `sent` has been answered; true if it was the second of a pair.
    pub(crate) fn is_second_of_pair(&mut self, now: Time, sent: Time) -> bool {
        self.pair.answered(now, sent, self.ip_size()) == Answered::Second
    }

    // T3-rtx (RFC 9260 6.3.2).

    pub(crate) const fn t3(&self) -> Option<Time> {
        self.t3
    }

    /// R1: starts the timer unless it runs.
    pub(crate) fn start_t3(&mut self, now: Time) {
        if self.t3.is_none() {
            self.restart_t3(now);
        }
    }

    /// R3 if something is outstanding, R2 if not.
    pub(crate) fn restart_t3(&mut self, now: Time) {
        if self.chunks_in_flight > 0 {
            self.set_t3(now);
        } else {
            self.stop_t3();
        }
    }

    /// Makes T3-rtx expire now, because what it waits for will not arrive.
    pub(crate) fn hasten_t3(&mut self, now: Time) {
        self.t3 = self.t3.map(|t| t.min(now));
    }

    /// Lets the timer expire at `at` unless it expires earlier; with `None` it stops.
    pub(crate) fn bring_forward_t3(&mut self, at: Option<Time>) {
        self.t3 = self.t3.zip(at).map(|(t3, at)| t3.min(at));
    }

    /// Starts the timer now, whatever is in flight.
    pub(crate) fn set_t3(&mut self, now: Time) {
        let alone = self.in_flight <= self.max_chunk() && !self.sack_delay.is_zero();
        let probe = self.rtt.srtt().filter(|_| alone).map(|srtt| srtt * 2 + self.sack_delay);
        self.t3 = Some(now + self.rtt.rto().max(probe.unwrap_or_default()));
    }

    /// The peer may delay the SACK of a single packet by this time: T3-rtx is no shorter than the
    /// probe timeout that includes it.
    pub(crate) const fn allow_sack_delay(&mut self, delay: Duration) {
        self.sack_delay = delay;
    }

    /// Changes the limits of the RTO.
    pub(crate) fn limit_rto(&mut self, initial: Duration, min: Duration, max: Duration) {
        self.rtt.limit(initial, min, max);
    }

    pub(crate) const fn stop_t3(&mut self) {
        self.t3 = None;
    }

    // All timers.

    /// The next instant at which a timer of this path expires.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let mtu = self.mtu_search.as_ref().and_then(|s| s.next_timeout());
        let (due, deadline) = (self.heartbeat_due, self.heartbeat_deadline());
        let (loss, silence) = (self.recovery.deadline, self.silence.deadline);
        Time::earliest(&[self.t3, loss, silence, self.release, due, deadline, mtu])
    }

    /// Stops every timer.
    pub(crate) fn stop_timers(&mut self) {
        self.t3 = None;
        self.release = None;
        self.recovery.deadline = None;
        self.silence.deadline = None;
        self.heartbeat_due = None;
        self.heartbeat_out = None;
        if let Some(search) = &mut self.mtu_search {
            search.stop();
        }
    }

    /// The peer has restarted: resets the path (RFC 9260 5.2.4.1).
    pub(crate) fn restart(&mut self, window: Window, constants: &Constants) {
        self.window = window;
        self.rtt =
            RttEstimator::new(constants.rto_initial(), constants.rto_min(), constants.rto_max());
        self.rtt_probe = None;
        self.address_confirmed = false;
        self.clear_errors();
        self.clear_flight();
        self.stop_timers();
    }
}
