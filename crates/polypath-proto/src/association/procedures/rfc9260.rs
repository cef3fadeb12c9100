//! The procedures of RFC 9260. Each refers to the module that has it.

use super::{Rules, SenderModel, SenderProcedures};
use crate::association::Sender;
use crate::association::choose::Content;
use crate::ids::{PathId, Tsn};
use crate::path::PathState;
use crate::paths::Paths;
use crate::policy::failover::PathErrorKind;
use crate::policy::scheduler::Turn;
use crate::time::Time;
use crate::wire::{PacketWriter, Sack};

/// The sender of RFC 9260.
pub(super) const SENDER: SenderModel = SenderModel {
    name: "rfc9260",
    procedures: &Rfc9260,
    rules: Rules {
        counts_padding: true,
        bundles: true,
        verifies_addresses: true,
        stops_t3_without_flight: true,
        asks_for_sacks: true,
        sends_sacks_first: false,
        reports_reneging: true,
        counts_bursts: true,
    },
    policies: &[],
    register: |registry| registry,
    refuses: |_| None,
    ties: None,
};

/// The procedures of RFC 9260.
#[derive(Debug)]
struct Rfc9260;

impl SenderProcedures for Rfc9260 {
    fn may_pair_heartbeats(&self, paths: &Paths, now: Time, path: PathId) -> bool {
        // Full packets go to confirmed addresses only.
        paths.is_confirmed(path) && paths[path].is_pair_due(now)
    }

    fn counts_for_association(&self, paths: &Paths, path: PathId, error: PathErrorKind) -> bool {
        // RFC 9260 8.1: "Unacknowledged HEARTBEAT chunks observed on paths different from the path
        // currently used for data transfer SHOULD NOT increment the association error counter".
        error == PathErrorKind::DataTimeout || path == paths.current()
    }

    fn updates_window(&self, _: u32, _: u32) -> bool {
        true
    }

    fn acknowledge(
        &self,
        s: &mut Sender<'_>,
        now: Time,
        cumulative: Tsn,
        sack: Option<&Sack<'_>>,
        packets: Option<u32>,
    ) {
        s.acknowledge(now, cumulative, sack, packets);
    }

    fn set_window(&self, s: &mut Sender<'_>, a_rwnd: u32) {
        s.sending.set_window(a_rwnd);
    }

    fn on_probe_refused(&self, _: &mut Sender<'_>, _: Tsn) {}

    fn on_paths_confirmed(&self, _: &mut Sender<'_>, _: Time) {}

    fn on_heartbeat_answered(&self, _: &mut Sender<'_>, _: Time, _: PathId, _: PathState) {}

    fn on_path_taken_back(&self, _: &mut Sender<'_>, _: PathId) {}

    fn on_heartbeat(&self, _: &mut Sender<'_>, _: Time, _: PathId) {}

    fn on_heartbeat_written(&self, _: &mut Sender<'_>, _: PathId) {}

    fn on_chunk_sent(
        &self,
        s: &mut Sender<'_>,
        now: Time,
        path: PathId,
        tsn: Tsn,
        transmissions: u32,
    ) {
        let lowest = tsn == s.sending.flight.ack_point().next();
        let p = &mut s.paths[path];
        if transmissions > 1 && lowest {
            // RFC 9260 6.1: "If the timer for that address is already running, the sender MUST
            // restart the timer if the earliest (i.e., lowest TSN) outstanding DATA chunk sent to
            // that address is being retransmitted."
            p.restart_t3(now);
        } else {
            p.start_t3(now);
        }
    }

    fn on_new_data_written(&self, _: &mut Sender<'_>, _: Time, _: PathId) {}

    fn on_burst_over(&self, _: &mut Sender<'_>) {}

    fn handle_path_timers(&self, s: &mut Sender<'_>, now: Time) -> bool {
        s.handle_path_timers(now)
    }

    fn handle_heartbeat_timeout(&self, s: &mut Sender<'_>, now: Time, path: PathId) {
        s.heartbeat_unanswered(now, path);
    }

    fn start_path_management(&self, s: &mut Sender<'_>, now: Time, _: bool) {
        s.probe_paths(now);
    }

    fn schedule_heartbeat(&self, s: &mut Sender<'_>, now: Time, path: PathId) {
        s.schedule_heartbeat_of(now, path);
    }

    fn before_sending(&self, s: &mut Sender<'_>, now: Time) -> bool {
        let waits = !s.sending.is_idle();
        if waits {
            s.without_active_path(now);
        }
        waits
    }

    fn next_retransmission(&self, s: &mut Sender<'_>, now: Time) -> Option<(PathId, Tsn)> {
        s.next_retransmission(now)
    }

    fn next_new_data(&self, s: &mut Sender<'_>, now: Time) -> Option<Turn> {
        s.next_new_data(now)
    }

    fn write_retransmissions(
        &self,
        s: &mut Sender<'_>,
        now: Time,
        path: PathId,
        content: Content,
        w: &mut PacketWriter<'_>,
    ) {
        s.write_retransmissions(now, path, content, w);
    }
}
