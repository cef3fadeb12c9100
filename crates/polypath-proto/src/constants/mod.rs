//! The constants of an association: one table with the name, type, default and source of each.

use std::time::Duration;

use thiserror::Error;

use crate::auth::ChunkTypes;
use crate::quantity;

mod choices;

pub use choices::{BufferSplitting, BurstRule, Delivery, PathConfirmation, Procedures};

/// Passes the table to the macro `$then`, with further tokens: `name: Type = default, kind;` with
/// the doc comment. [`Kind`](crate::Kind) is the type with its range.
macro_rules! with_constants {
    ($then:ident $($more:tt)*) => {
        $then! {
            constants {
                /// RTO.Initial: retransmission timeout before the first RTT sample (RFC 9260 16; 1
                /// s).
                rto_initial: Duration = Duration::from_secs(1),
                    Time(TICK..=HOUR);
                /// RTO.Min: lower bound of the retransmission timeout (RFC 9260 16; 1 s).
                rto_min: Duration = Duration::from_secs(1),
                    Time(TICK..=HOUR);
                /// RTO.Max: upper bound of the retransmission timeout (RFC 9260 16; 60 s).
                rto_max: Duration = Duration::from_secs(60),
                    Time(TICK..=HOUR);
                /// Max.Burst: number of packets that one event may add to the flight size of a path
                /// (RFC 9260 6.1 D, 16; 4). A congestion controller that paces limits bursts
                /// itself.
                max_burst: u32 = 4,
                    Count(1..=1 << 20);
                /// When Max.Burst applies, and its reference point.
                burst_rule: BurstRule = BurstRule::AckClocked,
                    Choice(BurstRule::NAMES);
                /// New data waits while any chunk is to be retransmitted (RFC 9260 6.1 C:
                /// retransmissions first). With `false`, new data is sent even while the window of
                /// another path holds back a retransmission.
                new_data_waits: bool = true,
                    Flag;
                /// Which reading of the RFC the sender follows where it leaves room for
                /// interpretation.
                procedures: Procedures = Procedures::RFC9260,
                    Choice(Procedures::NAMES);
                /// Whether data waits until the paths are confirmed (RFC 9260 5.4).
                path_confirmation: PathConfirmation = PathConfirmation::AlongsideData,
                    Choice(PathConfirmation::NAMES);
                /// Valid.Cookie.Life: how long a state cookie is accepted (RFC 9260 16; 60 s).
                cookie_life: Duration = Duration::from_secs(60),
                    Time(TICK..=DAY);
                /// Association.Max.Retrans: consecutive errors over all paths that end the
                /// association (RFC 9260 8.1, 16; 10).
                association_max_retrans: u32 = 10,
                    Count(0..=1 << 20);
                /// Path.Max.Retrans (PMR): a path is inactive once its error count exceeds this
                /// (RFC 9260 8.2, 16; 5).
                path_max_retrans: u32 = 5,
                    Count(0..=1 << 20);
                /// PotentiallyFailed.Max.Retrans (PFMR): a path is potentially failed once its
                /// error count exceeds this, with a `failover` policy that has this state (RFC 7829
                /// 3.2, 6; 0).
                potentially_failed_max_retrans: u32 = 0,
                    Count(0..=1 << 20);
                /// Congestion window, in PMDCS, of a potentially failed path after a HEARTBEAT ACK
                /// has made it active again, with the CMT-PF `failover` policy (Natarajan 2009,
                /// 3.1; 2).
                potentially_failed_cwnd: u32 = 2,
                    Count(1..=64);
                /// Change Primary Threshold (CPT): a failover is permanent once the primary's error
                /// count exceeds this; `None` for never (Caro 2006, failover, IV; RFC 7829 5,
                /// Primary.Switchover.Max.Retrans). Rejected with a `failover` policy that would
                /// ignore it.
                change_primary_threshold: Option<u32> = None,
                    Count(0..=1 << 20);
                /// Max.Init.Retransmits: retransmissions of INIT and of COOKIE ECHO (RFC 9260 16;
                /// 8).
                max_init_retransmits: u32 = 8,
                    Count(0..=1 << 20);
                /// After INITs that were not answered, twice at least and on every path, also try
                /// INITs without extensions and optional parameters: middleboxes may drop what they
                /// do not know, silently (as in RFC 3168 6.1.1.1; off). Not if chunks have to be
                /// authenticated.
                plain_init: bool = false,
                    Flag;
                /// HB.interval: added to the RTO between HEARTBEATs on an idle path (RFC 9260 8.3,
                /// 16; 30 s). With `None`, only the HEARTBEATs that confirm a path (5.4) and those
                /// of CMT-PF are sent.
                heartbeat_interval: Option<Duration> = Some(Duration::from_secs(30)),
                    Time(Duration::ZERO..=DAY);
                /// HB.Max.Burst: HEARTBEATs to unconfirmed paths that may be unacknowledged within
                /// one RTO (RFC 9260 5.4, 16; 1).
                hb_max_burst: u32 = 1,
                    Count(1..=64);
                /// SACK.Delay: longest wait before data is acknowledged (RFC 9260 6.2, 16; 200 ms,
                /// at most 500 ms).
                sack_delay: Duration = Duration::from_millis(200),
                    Time(Duration::ZERO..=Duration::from_millis(500));
                /// Number of packets with DATA after which a SACK is sent at the latest (RFC 9260
                /// 6.2; 2).
                sack_every: u32 = 2,
                    Count(1..=64);
                /// The first DATA chunk of an association is acknowledged at once (RFC 9260 5.1;
                /// RFC 2960 does not require it).
                first_sack_at_once: bool = true,
                    Flag;
                /// T3-rtx spares chunks sent within the last smoothed round-trip time: they cannot
                /// have been acknowledged yet (Iyengar 2004, IV.B). RFC 9260 6.3.3 marks everything
                /// outstanding on the path.
                srtt_heuristic: bool = false,
                    Flag;
                /// Seed of the generator (MRG32k3a; L'Ecuyer 1999) that then breaks ties between
                /// paths, so that runs can be compared with those of the papers' simulator; `None`
                /// uses the endpoint's own seed.
                tie_seed: Option<u32> = None,
                    Count(1..=4_294_944_442);
                /// Missing reports that make a chunk lost (RFC 9260 7.2.4; 3).
                fast_retransmit_reports: u32 = 3,
                    Count(1..=64);
                /// The packet with the COOKIE ECHO also has data that waits to be sent, which
                /// arrives a round-trip time earlier (RFC 9260 5.1 C permits it; off).
                data_with_cookie: bool = false,
                    Flag;
                /// Offer partial reliability: if the peer offers it too, messages may be abandoned
                /// according to their [`Reliability`](crate::Reliability) (RFC 3758; 4.2 of that
                /// RFC: off by default).
                partial_reliability: bool = false,
                    Flag;
                /// Offer user message interleaving: if the peer offers it too, a long message does
                /// not delay those of other streams (RFC 8260 2).
                interleaving: bool = false,
                    Flag;
                /// Offer NR-SACK chunks: if both sides offer them, the receiver reports the data
                /// that it will not renege on, so that the sender can free it at once
                /// (draft-natarajan-tsvwg-sctp-nrsack).
                nr_sack: bool = false,
                    Flag;
                /// Which buffers are split between the paths in CMT: a path may not exceed its
                /// share of them.
                buffer_splitting: BufferSplitting = BufferSplitting::Off,
                    Choice(BufferSplitting::NAMES);
                /// Largest size of the receive buffer in bytes, announced as a_rwnd (RFC 9260
                /// 3.3.2: at least 1500; 1 MiB). Each chunk counts with its header of 16 bytes.
                receive_buffer: u32 = 1 << 20,
                    Bytes(1500..=1 << 30);
                /// Size of the receive buffer at first, if that is less than `receive_buffer`: it
                /// grows to four times what the application reads in a round-trip time, and shrinks
                /// again (Linux: `tcp_rcv_space_adjust`). `None` for a fixed size.
                initial_receive_buffer: Option<u32> = None,
                    Bytes(1500..=1 << 30);
                /// Largest size of the send buffer in bytes: messages not yet sent or not yet
                /// acknowledged (1 MiB).
                send_buffer: u32 = 1 << 20,
                    Bytes(1..=1 << 30);
                /// Size of the send buffer at first, if that is less than `send_buffer`: it grows
                /// to two congestion windows beyond the data that was sent and waits for its
                /// acknowledgement, and shrinks again. `None` for a fixed size.
                initial_send_buffer: Option<u32> = None,
                    Bytes(1..=1 << 30);
                /// Bytes by which the buffers of all associations of an endpoint together may
                /// exceed their first sizes (512 MiB). One buffer takes at most half of the rest.
                /// The endpoint's configuration counts, not that of an association.
                buffer_budget: u32 = 1 << 29,
                    Bytes(0..=u32::MAX as u64);
                /// Largest message accepted for sending, in bytes (16 MiB).
                max_message_size: u32 = 1 << 24,
                    Bytes(1..=1 << 30);
                /// Requested number of outgoing streams (RFC 9260 3.3.2; 64 by default, at least
                /// 1).
                outbound_streams: u16 = 64,
                    Count(1..=65_535);
                /// Allowed number of incoming streams (RFC 9260 3.3.2; 2048 by default, at least
                /// 1).
                inbound_streams: u16 = 2048,
                    Count(1..=65_535);
                /// Initial slow start threshold in bytes; `None` is the peer's a_rwnd (RFC 9260
                /// 7.2.1).
                initial_ssthresh: Option<u32> = None,
                    Bytes(576..=u32::MAX as u64);
                /// Initial congestion window in PMDCS; 0 is the formula of RFC 9260 7.2.1.
                initial_cwnd: u32 = 0,
                    Count(0..=1024);
                /// Lower bound, in PMDCS, of ssthresh after a loss and of cwnd after idleness (RFC
                /// 9260 7.2.1, 7.2.3: 4; RFC 2960: 2).
                cwnd_floor: u32 = 4,
                    Count(1..=64);
                /// Largest IP packet of a path in bytes, headers included (1500).
                path_mtu: u16 = 1500,
                    Bytes(576..=65_535);
                /// Maximum number of paths of an association; further peer addresses get no path
                /// (16).
                max_paths: u8 = 16,
                    Count(1..=64);
                /// Offer authenticated chunks (RFC 4895; off).
                authentication: bool = false,
                    Flag;
                /// Chunk types accepted only if authenticated, if the peer offers authentication
                /// (RFC 4895 3.2; none). If COOKIE ECHO is listed, that of a peer without
                /// authentication is rejected.
                authenticated_chunks: ChunkTypes = ChunkTypes::NONE,
                    Kind::ChunkTypes;
                /// Offer dynamic addresses (RFC 5061; off). ASCONF chunks are authenticated.
                dynamic_addresses: bool = false,
                    Flag;
                /// Also change addresses without authentication, if the peer has none: an attacker
                /// who can guess or read the verification tag may then redirect the association
                /// (RFC 5061 8; off).
                unauthenticated_addresses: bool = false,
                    Flag;
                /// Adaptation Layer Indication announced in the handshake, a number that the layer
                /// above defines (RFC 5061 4.2.6, `SCTP_ADAPTATION_LAYER` of RFC 6458 8.1.10;
                /// `None` announces none). The peer's is
                /// [`peer_adaptation_layer`](crate::Association::peer_adaptation_layer).
                adaptation_layer: Option<u32> = None,
                    Count(0..=u32::MAX as u64);
                /// Offer RE-CONFIG chunks: streams can be reset and added (RFC 6525; off).
                stream_reconfiguration: bool = false,
                    Flag;
                /// Search each path's MTU, from 1200 bytes (IPv6: 1280) up to `path_mtu` (RFC 8899;
                /// off).
                path_mtu_discovery: bool = false,
                    Flag;
                /// Offer explicit congestion notification (RFC 4960 Appendix A, RFC 3168; off). A
                /// path that drops or marks all ECN-capable packets gets no more of them (RFC 9000
                /// 13.4.2).
                ecn: bool = false,
                    Flag;
                /// How messages are sent, unless a stream or a message differs: as the scheduler
                /// decides, on the path that delivers first, or in several copies.
                delivery: Delivery = Delivery::Standard,
                    Choice(Delivery::NAMES);
                /// Copies of a redundant message, besides its first transmission (2).
                redundant_copies: u32 = 2,
                    Count(1..=8);
                /// Bytes per second that copies of messages may take on all paths together, besides
                /// `copy_share` (125 kB).
                copy_rate: u32 = 125_000,
                    Bytes(0..=u32::MAX as u64);
                /// Percent of the new data that copies may take besides `copy_rate` (5).
                copy_share: u32 = 5,
                    Count(0..=800);
                /// Pair every local with every remote address, instead of one local address for
                /// each remote one.
                full_mesh: bool = false,
                    Flag;
            }
            $($more)*
        }
    };
}
pub(crate) use with_constants;

macro_rules! define {
    (constants {
        $( $(#[$doc:meta])* $name:ident: $ty:ty = $default:expr, $kind:expr; )*
    }) => {
        /// The constants of an association, which its policies are made from
        /// ([`Setup`](crate::policy::Setup)). [`Config::builder`](crate::Config::builder) sets
        /// them.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Constants {
            $( pub(crate) $name: $ty, )*
        }

        impl Constants {
            $( $(#[$doc])* pub fn $name(&self) -> $ty { self.$name } )*

            /// The constants of RFC 9260, section 16.
            pub(crate) fn rfc9260() -> Self {
                Self { $( $name: $default, )* }
            }
        }
    };
}

with_constants!(define);

/// Numbers of consecutive errors above which the failover policy acts. The configuration sets them
/// for an association, [`Association::set_thresholds`](crate::Association::set_thresholds) for a
/// single path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Path.Max.Retrans (PMR): above it the path is inactive (RFC 9260 8.2).
    pub path_max_retrans: u32,
    /// PotentiallyFailed.Max.Retrans (PFMR): above it the path is potentially failed (RFC 7829
    /// 3.2).
    pub potentially_failed_max_retrans: u32,
    /// The Change Primary Threshold (CPT): above it another path becomes the primary permanently
    /// (Caro 2006, failover, IV; RFC 7829 5, Primary.Switchover.Max.Retrans). `None`: never.
    pub change_primary: Option<u32>,
}

/// A value that [`ConfigBuilder::build`](crate::ConfigBuilder::build) or
/// [`Parameter::set`](crate::Parameter::set) rejects.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{parameter} is {value}, but must be {allowed}{}", question(.suggestion))]
pub struct ConfigError {
    /// The parameter, named as its setter.
    pub parameter: &'static str,
    /// The rejected value.
    pub value: String,
    /// The allowed values.
    pub allowed: String,
    /// The name that was probably meant, if the value is a misspelt name.
    pub suggestion: Option<&'static str>,
}

impl ConfigError {
    pub(crate) fn new(parameter: &'static str, value: impl Into<String>, allowed: String) -> Self {
        Self { parameter, value: value.into(), allowed, suggestion: None }
    }
}

/// The end of an error with a suggestion.
fn question(suggestion: &Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default()
}

impl Constants {
    /// The path thresholds.
    pub(crate) fn thresholds(&self) -> Thresholds {
        Thresholds {
            path_max_retrans: self.path_max_retrans,
            potentially_failed_max_retrans: self.potentially_failed_max_retrans,
            change_primary: self.change_primary_threshold,
        }
    }

    /// Size of the receive buffer at first, in bytes.
    pub(crate) fn first_receive_buffer(&self) -> u32 {
        self.initial_receive_buffer.unwrap_or(u32::MAX).min(self.receive_buffer)
    }

    /// Size of the send buffer at first, in bytes.
    pub(crate) fn first_send_buffer(&self) -> u32 {
        self.initial_send_buffer.unwrap_or(u32::MAX).min(self.send_buffer)
    }

    pub(crate) const fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.path_max_retrans = thresholds.path_max_retrans;
        self.potentially_failed_max_retrans = thresholds.potentially_failed_max_retrans;
        self.change_primary_threshold = thresholds.change_primary;
    }

    /// Rejects combinations of constants that exclude each other. The table has their ranges.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |parameter, value: String, allowed: String| {
            Err(ConfigError::new(parameter, value, allowed))
        };
        let time = quantity::time;
        if self.rto_max < self.rto_min {
            let allowed = format!("at least rto_min ({})", time(self.rto_min));
            return refuse("rto_max", time(self.rto_max), allowed);
        }
        if self.rto_initial < self.rto_min || self.rto_initial > self.rto_max {
            let (low, high) = (time(self.rto_min), time(self.rto_max));
            let allowed = format!("from rto_min ({low}) to rto_max ({high})");
            return refuse("rto_initial", time(self.rto_initial), allowed);
        }
        if let Some(ssthresh) = self.initial_ssthresh.filter(|n| *n < self.path_mtu.into()) {
            let allowed = format!("at least path_mtu ({})", quantity::size(self.path_mtu.into()));
            return refuse("initial_ssthresh", quantity::size(ssthresh.into()), allowed);
        }
        if self.dynamic_addresses && !self.authentication && !self.unauthenticated_addresses {
            // RFC 5061 4.1.
            let allowed = "false without authentication (or unauthenticated_addresses)".into();
            return refuse("dynamic_addresses", "true".into(), allowed);
        }
        Ok(())
    }
}
