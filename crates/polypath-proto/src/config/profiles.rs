//! Profiles: named sets of constants and policies.

use std::time::Duration;

use super::Config;
use crate::constants::Constants;
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
                  packets at first (RFC 6928), buffers that grow to 256 MiB (default)",
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
];

impl Config {
    /// The profile `modern`, for today's links: the default. It sends on all paths.
    /// docs/congestion.md has measurements of one path, docs/paths.md of several.
    pub fn modern() -> Self {
        Self {
            scheduler: (&scheduler::BOTTLENECK_AWARE).into(),
            cwnd_update: (&cwnd_update::CUC_V2).into(),
            failover: (&failover::SUSPECT).into(),
            ack: (&ack::ALTERNATING).into(),
            retransmission: (&retransmission::EARLIEST).into(),
            loss: (&loss::RACK).into(),
            congestion: (&congestion::BBR).into(),
            constants: Constants {
                // The probes of RACK-TLP precede T3-rtx, so that a short one does no harm.
                rto_min: Duration::from_millis(200),
                initial_cwnd: 10,
                data_with_cookie: true,
                plain_init: true,
                ecn: true,
                // 1 Gbit/s at 600 ms needs 225 MB while a chunk is lost twice. One association gets
                // at most half of the endpoint's `buffer_budget`.
                receive_buffer: 256 << 20,
                send_buffer: 256 << 20,
                initial_receive_buffer: Some(1 << 20),
                initial_send_buffer: Some(1 << 20),
                // RFC 9260 7.2.1: it "MAY be arbitrarily high"; the peer's first window is
                // no measure of the network.
                initial_ssthresh: Some(1 << 30),
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
