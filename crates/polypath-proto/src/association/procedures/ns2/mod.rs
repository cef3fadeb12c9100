//! The sender's procedures of ns-2's SCTP module, where the RFC or the papers
//! leave them open. The papers' figures depend on them.
//!
//! - Chunks that wait for retransmission count as outstanding: for the growth of windows and for
//!   T3-rtx.
//! - A SACK that finds losses, or T3-rtx, sends exactly one packet, regardless of the window; later
//!   SACKs send the rest, as that path's window allows. All retransmissions of one event use the
//!   path chosen for its first chunk. No new data is sent while anything waits for retransmission,
//!   and none except in response to a packet that arrives (FastRtx, TimeoutRtx, RtxMarkedChunks,
//!   SendMuch).
//! - Windows grow before they are cut.
//! - T3-rtx stops for every path that owns a chunk which the cumulative ack removes, or whose
//!   lowest chunk a gap ack block acknowledges, and restarts if anything is outstanding on it. Its
//!   expiry marks everything outstanding on the path, including what was marked before.
//! - A measurement of the round-trip time is abandoned at a cut and at a timeout, but its chunk
//!   keeps its time.
//! - A SACK without gap ack blocks does not revoke what earlier gap ack blocks acknowledged.
//! - An acknowledgement credits the path that the chunk was last sent to (RFC 9260 8.2 leaves it
//!   open).
//! - One generator of HEARTBEATs serves all paths. Up to release 3.6, which does not confirm paths
//!   before it sends data, so does one timer for the answers (oneHeartbeatTimer_): a HEARTBEAT on
//!   another path replaces it, and the answer on any path stops it. A lost HEARTBEAT is repeated at
//!   once, and a path that becomes inactive by T3-rtx is probed at once.
//! - The association's error count rises only while the path is active.
//! - An idle window decays by a timer: an RTO after the last packet, whether data is in flight or
//!   not.
//! - Nothing is bundled. A SACK is sent behind retransmissions and before new data.
//! - A TIMESTAMP chunk that reports neither a time nor an echo is all zeros, which the module's
//!   receiver reads as DATA with the TSN before the first: a duplicate. It sends a SACK at once,
//!   even as the sender of the data, with a TIMESTAMP chunk of zeros again
//!   (BundleControlChunks). Data that is retransmitted while such a SACK is due has no timestamp.

use std::any::Any;
use std::collections::BTreeSet;

use super::{Rules, SenderModel, SenderProcedures, Stamps};
use crate::association::Sender;
use crate::association::choose::Content;
use crate::config::Registry;
use crate::constants::Procedures;
use crate::ids::{PathId, Tsn};
use crate::path::PathState;
use crate::paths::Paths;
use crate::policy::failover::PathErrorKind;
use crate::policy::loss::NewlyAckedOn;
use crate::policy::scheduler::Turn;
use crate::receive::PendingSack;
use crate::send::{InFlight, Sending};
use crate::time::Time;
use crate::wire::{PacketWriter, Sack, Timestamp};

mod acknowledge;
mod cmt;
mod combinations;
mod mrg32k3a;
pub mod parameters;
pub mod policy;
mod profiles;
mod single;
mod tables;
mod timers;
mod transmit;

use acknowledge::PathTally;
use tables::{PathSide, highest_not_lost};

/// The sender.
pub(super) static SENDER: SenderModel = SenderModel {
    name: "ns2",
    procedures: &Ns2,
    rules: Rules {
        counts_padding: false,
        bundles: false,
        verifies_addresses: false,
        // T3-rtx also runs for chunks that wait for retransmission, and until the next SACK if
        // those have been sent over another path.
        stops_t3_without_flight: false,
        asks_for_sacks: false,
        sends_sacks_first: true,
        reports_reneging: false,
        counts_bursts: false,
    },
    policies: policy::REPLACEMENTS,
    register,
    refuses: combinations::refused,
    ties: Some(|seed| Box::new(mrg32k3a::after_handshake(seed))),
};

/// The value of the parameter `procedures`.
pub const PROCEDURES: Procedures = Procedures::of(&SENDER);

/// Adds the policies and profiles.
fn register(registry: Registry) -> Registry {
    let registry = registry
        .with(&policy::LOSS)
        .with(&policy::CONGESTION)
        .with(&policy::CWND_UPDATE)
        .with(&policy::ACK);
    profiles::PROFILES.iter().fold(registry, |registry, profile| registry.with(*profile))
}

/// The procedures.
#[derive(Debug)]
struct Ns2;

/// Retransmissions that the current event allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Retransmit {
    /// Nothing.
    #[default]
    Nothing,
    /// One packet, regardless of the window.
    OnePacket,
    /// As much as the window of the path allows.
    Window,
}

/// How many more packets with timestamps of zero this host answers.
///
/// Two hosts without data answer each other for ever, at the rate of the links, and where the
/// network makes copies of packets, which ns-2's networks do not, the copies are answered too.
/// The number keeps both from filling the network. No transfer of the papers' grids reaches it.
#[derive(Debug)]
struct Answers(u32);

impl Answers {
    const MOST: u32 = 4096;
    /// What a packet with a timestamp adds: it comes with data.
    const EACH: u32 = 8;

    /// A packet with a timestamp has been sent or has arrived.
    const fn add(&mut self) {
        self.0 += Self::EACH;
        if self.0 > Self::MOST {
            self.0 = Self::MOST;
        }
    }

    /// Whether a packet is answered.
    const fn take(&mut self) -> bool {
        let answers = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        answers
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self(Self::MOST)
    }
}

/// What these procedures remember of the association.
#[derive(Debug, Default)]
struct Side {
    retransmit: Retransmit,
    /// The path of the current event's retransmissions, once the first has been sent.
    destination: Option<PathId>,
    /// The lowest chunk outstanding on each path, as the current event's retransmissions see it.
    first: Vec<Option<Tsn>>,
    /// New data may be sent: a packet that allows it has arrived (eSendNewDataChunks).
    new_data: bool,
    /// The current event is a packet that arrived, or a message from the application.
    answering: bool,
    /// The SACK that is due was caused by its timer.
    sack_by_timer: bool,
    /// The last echo of a timestamp; a SACK without an echo is read as if it had this one
    /// (fInTimestampEcho).
    echo: Option<u32>,
    answers: Answers,
    /// Max.Burst applies (eApplyMaxBurst), and the packets that count towards it.
    limited: bool,
    burst: u32,
    /// The last result of `highest_outstanding`.
    highest_outstanding: Option<Tsn>,
    /// The generator of HEARTBEATs: its next tick, and when it was started.
    tick: Option<Time>,
    started: Time,
    /// Number of timers set so far.
    order: u64,
    cmt: cmt::Notes,
    /// The association's paths, by their ids.
    paths: Vec<PathSide>,
    /// Memory for what a SACK reports of each path, reused for the next.
    tally: (Vec<PathTally>, Vec<NewlyAckedOn>),
    /// Chunks that have counted towards partial_bytes_acked, with CMT.
    counted: BTreeSet<u32>,
}

impl super::Side for Side {
    /// A delayed SACK is sent to the source of the last packet, whatever it contained.
    fn on_packet(&mut self, ack: &mut PendingSack, path: PathId) {
        self.answering = true;
        self.sack_by_timer = false;
        ack.last_path = path;
    }

    /// A packet whose timestamps are zero counts as one with data.
    fn on_timestamp(&mut self, ack: &mut PendingSack, chunk: &Timestamp) -> Stamps {
        let sent = (chunk.sent != 0).then_some(chunk.sent);
        ack.echo = ack.echo.or(sent);
        self.echo = chunk.echo.or(self.echo);
        if sent.is_some() {
            self.answers.add();
        }
        let data = sent.is_none() && chunk.echo.is_none() && self.answers.take();
        Stamps { sent, echo: self.echo, data }
    }

    /// The module's packets have a timestamp while it sends data, unless a SACK is due
    /// (BundleControlChunks); otherwise the field is zero.
    fn stamp(&mut self, sending: &Sending, ack: &PendingSack, sack: bool, now: u32) -> u32 {
        let answers = ack.is_due() && !self.sack_by_timer;
        let sends_data = !sack || sending.flight.has_lost();
        if sends_data && !answers {
            self.answers.add();
            return now.max(1);
        }
        0
    }

    fn on_sack_timeout(&mut self, sending: &Sending, ack: &mut PendingSack) {
        self.sack_by_timer = true;
        if sending.is_concurrent() {
            ack.clear_count();
        }
    }

    fn on_message(&mut self) {
        self.allow_new_data();
    }

    fn on_sack(&mut self) {
        self.cmt.forget_bursts();
        self.allow_new_data();
    }

    fn stop(&mut self) {
        self.paths.iter_mut().for_each(PathSide::stop);
        // A restart of the peer renumbers the chunks.
        self.counted.clear();
    }

    fn next_timeout(&self) -> Option<Time> {
        let decays = self.paths.iter().filter_map(PathSide::next_timeout);
        decays.chain(self.tick).min()
    }
}

/// The notes of these procedures, among an association's fields.
trait Own {
    /// To read.
    fn notes(&self) -> &Side;
    /// To change.
    fn own(&mut self) -> &mut Side;
}

impl Own for Option<Box<dyn super::Side>> {
    fn notes(&self) -> &Side {
        let side: Option<&dyn Any> = self.as_deref().map(|side| side as _);
        side.and_then(|side| side.downcast_ref()).expect("these procedures have made it")
    }

    fn own(&mut self) -> &mut Side {
        let side: Option<&mut dyn Any> = self.as_deref_mut().map(|side| side as _);
        side.and_then(|side| side.downcast_mut()).expect("these procedures have made it")
    }
}

impl Side {
    /// A SACK has arrived, late or not, or the application has passed data.
    const fn allow_new_data(&mut self) {
        self.answering = true;
        self.new_data = true;
    }

    const fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// The notes on `paths` paths.
    fn paths_of(&mut self, paths: usize) -> &mut [PathSide] {
        self.paths.resize_with(paths.max(self.paths.len()), PathSide::default);
        &mut self.paths
    }

    /// The notes on a path.
    fn path(&mut self, path: PathId) -> &mut PathSide {
        &mut self.paths_of(path.index() + 1)[path.index()]
    }

    /// Starts T3-rtx of a path now, whatever is in flight there.
    fn start_t3(&mut self, paths: &mut Paths, now: Time, path: PathId) {
        let order = self.next_order();
        self.path(path).start_t3(&mut paths[path], now, order);
    }

    /// Schedules the decay of a path's window an RTO after `now`.
    fn schedule_decay(&mut self, paths: &Paths, now: Time, path: PathId) {
        let order = self.next_order();
        self.path(path).schedule_decay(&paths[path], now, order);
    }

    /// Notes that a chunk counts towards partial_bytes_acked; false if it has counted already.
    fn count(&mut self, tsn: Tsn) -> bool {
        self.counted.insert(tsn.0)
    }

    /// With CMT, [`count`](Self::count).
    fn counts(&mut self, cmt: bool) -> Option<impl FnMut(Tsn) -> bool> {
        cmt.then_some(|tsn| self.count(tsn))
    }

    /// Drops the notes on chunks up to the cumulative ack.
    fn clear_counted(&mut self, cumulative: Tsn) {
        if !self.counted.is_empty() {
            self.counted.retain(|&tsn| Tsn(tsn).is_after(cumulative));
        }
    }

    /// The highest TSN that does not wait for retransmission, or an earlier, higher result: after
    /// T3-rtx, which marks everything outstanding on the path, it is lower than the highest TSN
    /// sent (uiHighestTsnSent, GetHighestOutstandingTsn).
    fn highest_outstanding(&mut self, flight: &InFlight) -> Tsn {
        let now = highest_not_lost(flight);
        if let Some(tsn) = now
            && self.highest_outstanding.is_none_or(|before| tsn.is_after(before))
        {
            self.highest_outstanding = now;
        }
        self.highest_outstanding.unwrap_or_else(|| flight.ack_point())
    }

    /// The last result of `highest_outstanding`.
    const fn noted_highest(&self) -> Option<Tsn> {
        self.highest_outstanding
    }
}

impl SenderProcedures for Ns2 {
    fn side(&self) -> Option<Box<dyn super::Side>> {
        Some(Box::new(Side::default()))
    }

    fn may_pair_heartbeats(&self, _: &Paths, _: Time, _: PathId) -> bool {
        true
    }

    fn counts_for_association(&self, paths: &Paths, path: PathId, _: PathErrorKind) -> bool {
        // An association in the dormant state never ends (Caro 2006, failover).
        paths[path].state() != PathState::Inactive
    }

    fn updates_window(&self, announced: u32, chunk: u32) -> bool {
        // Only if the peer cannot send without it.
        announced < chunk
    }

    fn acknowledge(
        &self,
        s: &mut Sender<'_>,
        now: Time,
        cumulative: Tsn,
        sack: Option<&Sack<'_>>,
        packets: Option<u32>,
    ) {
        s.ns2_acknowledge(now, cumulative, sack, packets);
    }

    fn set_window(&self, s: &mut Sender<'_>, a_rwnd: u32) {
        if s.is_ns2_cmt() {
            s.ns2_cmt_set_window(a_rwnd);
        } else {
            s.sending.set_window(a_rwnd);
        }
    }

    fn on_probe_refused(&self, s: &mut Sender<'_>, tsn: Tsn) {
        policy::bar_from_fast_retransmission(&mut *s.sending.loss, tsn);
        if s.is_ns2_cmt() {
            s.ns2_cmt_begin(true);
        } else {
            s.ns2_after_sack(true);
        }
    }

    fn on_paths_confirmed(&self, s: &mut Sender<'_>, now: Time) {
        s.ns2_begin_data(now);
    }

    fn on_heartbeat_answered(&self, s: &mut Sender<'_>, now: Time, path: PathId, was: PathState) {
        s.ns2_heartbeat_answered(path);
        let given_up = matches!(was, PathState::Inactive | PathState::PotentiallyFailed);
        if given_up && s.is_ns2_cmt() {
            s.ns2_cmt_path_is_back(now, path);
        }
    }

    fn on_path_taken_back(&self, s: &mut Sender<'_>, path: PathId) {
        // T3-rtx also runs for chunks that wait for other paths.
        if s.paths[path].in_flight() == 0 {
            s.paths[path].stop_t3();
        }
        s.side.own().cmt.taken_back = Some(path);
    }

    fn on_heartbeat(&self, s: &mut Sender<'_>, now: Time, path: PathId) {
        s.side.own().path(path).used(now);
        s.ns2_replace_heartbeat(path);
    }

    fn on_heartbeat_written(&self, s: &mut Sender<'_>, path: PathId) {
        let order = s.side.own().next_order();
        s.side.own().path(path).set_heartbeat_order(order);
    }

    fn on_chunk_sent(&self, s: &mut Sender<'_>, now: Time, path: PathId, _: Tsn, _: u32) {
        if s.paths[path].t3().is_none() {
            s.side.own().start_t3(s.paths, now, path);
        }
    }

    fn on_new_data_written(&self, s: &mut Sender<'_>, now: Time, path: PathId) {
        s.ns2_new_data_sent(now, path);
    }

    fn on_burst_over(&self, s: &mut Sender<'_>) {
        s.ns2_burst_over();
    }

    fn handle_path_timers(&self, s: &mut Sender<'_>, now: Time) -> bool {
        s.ns2_handle_path_timers(now);
        false
    }

    fn handle_heartbeat_timeout(&self, s: &mut Sender<'_>, now: Time, path: PathId) {
        s.ns2_handle_heartbeat_timeout(now, path);
        s.end_confirmation(now);
    }

    fn start_path_management(&self, s: &mut Sender<'_>, now: Time, inbound: bool) {
        s.ns2_start_path_management(now, inbound);
    }

    /// One generator serves all paths.
    fn schedule_heartbeat(&self, _: &mut Sender<'_>, _: Time, _: PathId) {}

    fn before_sending(&self, _: &mut Sender<'_>, _: Time) -> bool {
        // Looking for new data changes the module's state, even if there is none.
        true
    }

    fn next_retransmission(&self, s: &mut Sender<'_>, now: Time) -> Option<(PathId, Tsn)> {
        if s.is_ns2_cmt() {
            return s.ns2_cmt_next_retransmission(now);
        }
        s.ns2_next_retransmission()
    }

    fn next_new_data(&self, s: &mut Sender<'_>, now: Time) -> Option<Turn> {
        s.ns2_next_new_data(now)
    }

    fn write_retransmissions(
        &self,
        s: &mut Sender<'_>,
        now: Time,
        path: PathId,
        content: Content,
        w: &mut PacketWriter<'_>,
    ) {
        match content {
            Content::Retransmission(first) if s.is_ns2_cmt() => {
                s.ns2_cmt_write_retransmissions(now, path, first, w);
            }
            Content::Retransmission(_) => s.ns2_write_retransmissions(now, path, w),
            _ => {}
        }
    }
}
