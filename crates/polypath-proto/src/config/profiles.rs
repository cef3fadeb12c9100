//! Profiles: named sets of constants and policies.

use std::time::Duration;

use super::Config;
use crate::constants::{BurstRule, Constants, PathConfirmation, Procedures};
use crate::policy::{ack, congestion, cwnd_update, failover, loss, retransmission, scheduler};

/// Name of the profile that applies where none is given: [`Config::modern`].
pub const DEFAULT_PROFILE: &str = "modern";

/// A named set of constants and policies.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Its name on the command line and in scenario files.
    pub name: &'static str,
    /// Source of its values, in one line.
    pub summary: &'static str,
    /// Makes the configuration.
    pub make: fn() -> Config,
}

/// The name identifies a profile.
impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Every profile of this crate.
pub(super) static PROFILES: &[Profile] = &[
    Profile {
        name: "rfc9260",
        summary: "the constants of RFC 9260, section 16, and its standard answers",
        make: Config::rfc9260,
    },
    Profile {
        name: DEFAULT_PROFILE,
        summary: "for today's links, all paths at once: losses by time (RACK-TLP, RFC 8985), BBR with \
                  pacing; a silent path is left after 1.5 round trips (RFC 7829, RFC 9002); ten \
                  packets at first (RFC 6928), buffers of 8 MiB (default)",
        make: Config::modern,
    },
    Profile {
        name: "cmt",
        summary: "rfc9260 with concurrent multipath transfer: SFR over MFR, CUCv2, DAC, RTX-CWND \
                  (Iyengar 2004, 2006), data sent to arrive in order (DAPS; Kuhn 2014)",
        make: cmt,
    },
    Profile {
        name: "cmt-pf",
        summary: "cmt that leaves a path with its first timeout: CMT-PF (Natarajan 2009)",
        make: cmt_pf,
    },
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

impl Config {
    /// The profile `modern`, for today's links: the default. It sends on all paths.
    /// docs/congestion.md has measurements of one path, docs/paths.md of several.
    pub fn modern() -> Self {
        Self {
            scheduler: (&scheduler::BOTTLENECK_AWARE).into(),
            cwnd_update: (&cwnd_update::CUC_V2).into(),
            failover: (&failover::SUSPECT).into(),
            retransmission: (&retransmission::EARLIEST).into(),
            loss: (&loss::RACK).into(),
            congestion: (&congestion::BBR).into(),
            constants: Constants {
                // The probes of RACK-TLP precede T3-rtx, so that a short one does no harm.
                rto_min: Duration::from_millis(200),
                initial_cwnd: 10,
                // Twice the bandwidth-delay product of 100 Mbit/s and 300 ms.
                receive_buffer: 8 << 20,
                send_buffer: 8 << 20,
                ..Constants::rfc9260()
            },
            ..Self::rfc9260()
        }
    }
}

/// Concurrent multipath transfer with the policies that its papers recommend.
fn cmt() -> Config {
    Config {
        scheduler: (&scheduler::DELAY_AWARE).into(),
        loss: (&loss::SPLIT_MULTIPLE_FAST_RETRANSMIT).into(),
        cwnd_update: (&cwnd_update::CUC_V2).into(),
        ack: (&ack::DELAYED_CMT).into(),
        // Iyengar 2004, VI: among the three best policies, and needs no oracle.
        retransmission: (&retransmission::CWND).into(),
        constants: Constants { srtt_heuristic: true, ..Constants::rfc9260() },
        ..Config::rfc9260()
    }
}

/// Natarajan 2009, 4: "we recommend CMT be replaced by CMT-PF".
fn cmt_pf() -> Config {
    Config { failover: (&failover::CMT_POTENTIALLY_FAILED).into(), ..cmt() }
}

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
            procedures: Procedures::Ns2,
            path_confirmation: PathConfirmation::BeforeData,
            tie_seed: Some(12345),
            receive_buffer: 1 << 16,
            initial_ssthresh: Some(1 << 16),
            ..Constants::rfc9260()
        },
        // AllRtxSame; ns-2: rtxToAlt_ 0.
        retransmission: (&retransmission::SAME).into(),
        loss: (&loss::NS2).into(),
        // ns-2: dormantAction_ 0.
        failover: (&failover::DORMANT_HOP).into(),
        congestion: (&congestion::NS2).into(),
        cwnd_update: (&cwnd_update::NS2).into(),
        ack: (&ack::NS2).into(),
        ..Config::rfc9260()
    }
}
