//! The procedures of RFC 9260. Each refers to the module that has it.

use super::{Sender, SenderProcedures, Side};
use crate::association::Association;
use crate::association::transmit::Purpose;
use crate::constants::BurstRule;
use crate::ids::{PathId, Tsn};
use crate::path::PathState;
use crate::policy::failover::PathErrorKind;
use crate::policy::scheduler::Turn;
use crate::time::Time;
use crate::wire::{PacketWriter, Sack};

/// The sender of RFC 9260.
pub(super) const SENDER: Sender = Sender {
    name: "rfc9260",
    procedures: &Rfc9260,
    policies: &[],
    register: |registry| registry,
    refuses: |_| None,
    ties: None,
};

/// The procedures of RFC 9260.
#[derive(Debug)]
struct Rfc9260;

impl SenderProcedures for Rfc9260 {
    fn side(&self) -> Box<dyn Side> {
        Box::new(())
    }

    fn counts_padding(&self) -> bool {
        true
    }

    fn bundles(&self) -> bool {
        true
    }

    fn verifies_addresses(&self) -> bool {
        true
    }

    fn stops_t3_without_flight(&self) -> bool {
        true
    }

    fn asks_for_sacks(&self) -> bool {
        true
    }

    fn may_pair_heartbeats(&self, a: &Association, now: Time, path: PathId) -> bool {
        // Full packets go to confirmed addresses only.
        a.paths.is_confirmed(path) && a.paths[path].is_pair_due(now)
    }

    fn counts_for_association(&self, a: &Association, path: PathId, error: PathErrorKind) -> bool {
        // RFC 9260 8.1: "Unacknowledged HEARTBEAT chunks observed on paths different from the path
        // currently used for data transfer SHOULD NOT increment the association error counter".
        error == PathErrorKind::DataTimeout || path == a.paths.current()
    }

    fn updates_window(&self, _: &Association, _: u32) -> bool {
        true
    }

    fn reports_reneging(&self) -> bool {
        true
    }

    fn burst_is_full(&self, a: &Association) -> bool {
        a.config.burst_rule() == BurstRule::PacketCount
            && a.sending.burst.is_full(a.config.max_burst())
    }

    fn on_packet(&self, _: &mut Association, _: PathId) {}

    fn on_message(&self, _: &mut Association) {}

    fn on_sack(&self, _: &mut Association) {}

    fn on_sack_timeout(&self, _: &mut Association) {}

    fn acknowledge(
        &self,
        a: &mut Association,
        now: Time,
        cumulative: Tsn,
        sack: Option<&Sack<'_>>,
        packets: Option<u32>,
    ) {
        a.acknowledge(now, cumulative, sack, packets);
    }

    fn set_window(&self, a: &mut Association, a_rwnd: u32) {
        a.sending.set_window(a_rwnd);
    }

    fn on_probe_refused(&self, _: &mut Association, _: Tsn) {}

    fn on_paths_confirmed(&self, _: &mut Association, _: Time) {}

    fn on_heartbeat_answered(&self, _: &mut Association, _: Time, _: PathId, _: PathState) {}

    fn on_path_taken_back(&self, _: &mut Association, _: PathId) {}

    fn on_heartbeat(&self, _: &mut Association, _: Time, _: PathId) {}

    fn on_heartbeat_written(&self, _: &mut Association, _: PathId) {}

    fn on_chunk_sent(
        &self,
        a: &mut Association,
        now: Time,
        path: PathId,
        tsn: Tsn,
        transmissions: u32,
    ) {
        let lowest = tsn == a.sending.flight.ack_point().next();
        let p = &mut a.paths[path];
        if transmissions > 1 && lowest {
            // RFC 9260 6.1: "If the timer for that address is already running, the sender MUST
            // restart the timer if the earliest (i.e., lowest TSN) outstanding DATA chunk sent to
            // that address is being retransmitted."
            p.restart_t3(now);
        } else {
            p.start_t3(now);
        }
    }

    fn on_new_data_written(&self, _: &mut Association, _: Time, _: PathId) {}

    fn on_burst_over(&self, _: &mut Association) {}

    fn handle_path_timers(&self, a: &mut Association, now: Time) {
        a.handle_path_timers(now);
    }

    fn handle_heartbeat_timeout(&self, a: &mut Association, now: Time, path: PathId) {
        a.heartbeat_unanswered(now, path);
    }

    fn start_path_management(&self, a: &mut Association, now: Time, _: bool) {
        a.probe_paths(now);
    }

    fn schedule_heartbeat(&self, a: &mut Association, now: Time, path: PathId) {
        a.schedule_heartbeat_of(now, path);
    }

    fn before_sending(&self, a: &mut Association, now: Time) {
        if !a.sending.is_idle() {
            a.without_active_path(now);
        }
    }

    fn next_retransmission(&self, a: &mut Association, now: Time) -> Option<(PathId, Tsn)> {
        a.next_retransmission(now)
    }

    fn next_new_data(&self, a: &mut Association, now: Time) -> Option<Turn> {
        a.next_new_data(now)
    }

    fn write_retransmissions(
        &self,
        a: &mut Association,
        now: Time,
        path: PathId,
        purpose: Purpose,
        w: &mut PacketWriter<'_>,
    ) {
        a.write_retransmissions(now, path, purpose, w);
    }
}
