//! The profiles that follow ns-2's SCTP module.

use std::time::Duration;

use super::{PROCEDURES, policy};
use crate::config::{Config, Profile};
use crate::constants::{BurstRule, Constants, PathConfirmation};
use crate::policy::{failover, retransmission};

pub(super) static PROFILES: &[Profile] = &[
    Profile {
        name: "paper-2006",
        summary: "what the five papers ran: the SCTP module of ns-2, releases 3.2 to 3.7",
        make: paper_2006,
    },
    Profile {
        name: "ns2-2.35",
        summary: "the last release of ns-2's SCTP module, 3.8, as Debian's package ns2 has it",
        make: ns2_2_35,
    },
];

/// Rules and constants of the ns-2 module up to release 3.5. Release 3.7 differs only in
/// `path_confirmation`, which is "before-data".
fn paper_2006() -> Config {
    let last = ns2_2_35();
    let constants = Constants {
        // RFC 2960 7.2.1, 7.2.3: two packets where RFC 9260 has four.
        initial_cwnd: 2,
        cwnd_floor: 2,
        // RFC 2960 7.2.4: four missing reports.
        fast_retransmit_reports: 4,
        first_sack_at_once: false,
        path_confirmation: PathConfirmation::Off,
        tie_seed: None,
        ..last.constants
    };
    Config { constants, ..last }
}

/// Release 3.8 of the ns-2 module: the windows of RFC 4960.
fn ns2_2_35() -> Config {
    Config {
        constants: Constants {
            rto_initial: Duration::from_secs(3),
            burst_rule: BurstRule::AfterRetransmission,
            procedures: PROCEDURES,
            path_confirmation: PathConfirmation::BeforeData,
            tie_seed: Some(12345),
            receive_buffer: 1 << 16,
            initial_ssthresh: Some(1 << 16),
            ..Constants::rfc9260()
        },
        // AllRtxSame; ns-2: rtxToAlt_ 0.
        retransmission: (&retransmission::SAME).into(),
        loss: (&policy::LOSS).into(),
        // ns-2: dormantAction_ 0.
        failover: (&failover::DORMANT_HOP).into(),
        congestion: (&policy::CONGESTION).into(),
        cwnd_update: (&policy::CWND_UPDATE).into(),
        ack: (&policy::ACK).into(),
        ..Config::rfc9260()
    }
}
