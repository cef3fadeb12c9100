//! Results of a run, as data. They depend on the scenario and the seed alone.

use std::time::Duration;

use polypath_proto::{AssociationStats, CloseReason, EndpointStats, PathStats, PathView, Time};
use serde::{Deserialize, Serialize};

use crate::link::LinkCounters;
use crate::network::trace::PacketTrace;
use crate::network::{NatCounters, tcp};
use crate::series::PathSeries;
use crate::workload::{ApplicationPair, Changed, Gap, Progress, StateChange};

/// The results of a run. Times are seconds from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Name of the scenario.
    pub scenario: String,
    /// Root seed of the run.
    pub seed: u64,
    /// Why the run ended.
    pub end: End,
    /// When the run ended.
    pub ended_at: f64,
    /// Number of events handled.
    pub events: u64,
    /// Packets without a route, or whose source or destination address no host had at the time.
    pub unroutable_packets: u64,
    /// Every association, in the order of the scenario.
    pub associations: Vec<AssociationOutcome>,
    /// Every application that was striped over several associations, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stripes: Vec<StripeOutcome>,
    /// Every direction of every link.
    pub links: Vec<LinkOutcome>,
    /// Every TCP flow of background traffic, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpOutcome>,
    /// Every NAT, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nats: Vec<NatOutcome>,
    /// Every endpoint.
    pub endpoints: Vec<EndpointOutcome>,
    /// Samples over time, if requested.
    pub series: Vec<PathSeries>,
    /// Every packet, if requested. Not serialized, because there are too many for a file.
    #[serde(skip)]
    pub packets: Option<PacketTrace>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Every association was closed on both sides.
    Closed,
    /// No event was left, although an association was still open on one side.
    Idle,
    /// The time limit of the scenario was reached.
    TimeLimit,
    /// The event limit of the scenario was reached.
    EventLimit,
    /// No association made progress for [`RunOptions::patience`](crate::RunOptions::patience).
    Stalled,
}

/// A TCP flow of background traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpOutcome {
    /// Name of its `[[traffic]]`, a slash and its number.
    pub name: String,
    /// Bytes delivered in order, without headers.
    pub bytes_delivered: u64,
    /// Those bytes per second, from its start to the end of the run.
    pub goodput: f64,
    /// Packets with data that were sent.
    pub segments_sent: u64,
    /// Those that were sent again.
    pub retransmissions: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// Smoothed round-trip time in seconds at the end, if there was a sample.
    pub srtt: Option<f64>,
}

impl TcpOutcome {
    pub(crate) fn new(name: &str, progress: &tcp::Progress, end: Time) -> Self {
        let &tcp::Progress { start, bytes_delivered, .. } = progress;
        let time = end.since(start).as_secs_f64();
        Self {
            name: name.to_owned(),
            bytes_delivered,
            goodput: if time > 0.0 { bytes_delivered as f64 / time } else { 0.0 },
            segments_sent: progress.segments_sent,
            retransmissions: progress.retransmissions,
            timeouts: progress.timeouts,
            srtt: progress.srtt.map(|srtt| srtt.as_secs_f64()),
        }
    }
}

/// A NAT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NatOutcome {
    /// Name of its path or link.
    pub name: String,
    /// Counters.
    pub counts: NatCounters,
}

/// Outcome of an association.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssociationOutcome {
    /// Name of the association.
    pub name: String,
    /// Whether all data that was to be sent was delivered and both sides closed gracefully.
    pub complete: bool,
    /// Time at which it was opened.
    pub started_at: f64,
    /// Data from the side that opened it to the other.
    pub forward: FlowOutcome,
    /// Data in the other direction.
    pub back: FlowOutcome,
    /// The side that opened it.
    pub sender: SideOutcome,
    /// The side that accepted it.
    pub receiver: SideOutcome,
    /// Changes of path states and of the path in use, in the order of time.
    pub changes: Vec<PathChange>,
}

/// Outcome of an application that was striped over several associations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StripeOutcome {
    /// Name of the application.
    pub name: String,
    /// Names of the associations that carry it.
    pub associations: Vec<String>,
    /// Whether all data that was to be sent was delivered by one of them.
    pub complete: bool,
    /// Time at which they were opened.
    pub started_at: f64,
    /// Data that they carried together from the side that opened them to the other.
    pub forward: FlowOutcome,
    /// Data in the other direction.
    pub back: FlowOutcome,
}

/// Data of an association in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// Messages that the application sent.
    pub messages_sent: u64,
    /// Bytes of the messages sent.
    pub bytes_sent: u64,
    /// Messages delivered to the other application.
    pub messages_delivered: u64,
    /// Bytes delivered, including those of messages delivered in part.
    pub bytes_delivered: u64,
    /// Messages that the sender abandoned and that were not delivered.
    pub messages_abandoned: u64,
    /// Time of the application's first send.
    pub first_send: Option<f64>,
    /// Time at which the first DATA chunk was sent.
    pub first_data: Option<f64>,
    /// Time at which the first byte was delivered.
    pub first_delivered: Option<f64>,
    /// Time at which the last byte was delivered.
    pub last_delivered: Option<f64>,
    /// Seconds from the opening of the association to the last byte delivered.
    pub time_from_start: Option<f64>,
    /// Seconds from the first DATA chunk to the last byte delivered.
    pub time_from_first_data: Option<f64>,
    /// Bytes delivered per second, from the opening of the association to the last of them.
    pub goodput: f64,
    /// The longest time without newly delivered data, after the first DATA chunk.
    pub longest_gap: Option<Blackout>,
    /// Times without newly delivered data that were at least as long as the scenario's threshold.
    pub blackouts: Vec<Blackout>,
    /// Times from the sending of a message to its delivery, except with kind "bulk".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_times: Option<DeliveryTimes>,
}

/// Times from the sending of messages to their delivery, in seconds. A percentile is the shortest
/// time that this share of the delivered messages did not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryTimes {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

impl DeliveryTimes {
    /// `None` without messages; `times` ascend.
    fn of(times: &[Duration]) -> Option<Self> {
        let last = times.last()?;
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            times[rank - 1].as_secs_f64()
        };
        let sum: Duration = times.iter().sum();
        Some(Self {
            mean: sum.as_secs_f64() / times.len() as f64,
            p50: at(50),
            p90: at(90),
            p99: at(99),
            max: last.as_secs_f64(),
        })
    }
}

/// A time without newly delivered data, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blackout {
    /// Time at which it began.
    pub start: f64,
    /// Length of the time.
    pub length: f64,
}

/// One side of an association.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideOutcome {
    /// Name of the host.
    pub host: String,
    /// Time at which the association was established on this side.
    pub established_at: Option<f64>,
    /// Time at which it was closed on this side.
    pub closed_at: Option<f64>,
    /// Reason of the close, as a name: "graceful", "peer-unreachable", ...
    pub close: Option<String>,
    /// Reason of the close, in words.
    pub close_reason: Option<String>,
    /// Counters.
    pub counts: AssociationCounts,
    /// Every path, as it was at the end.
    pub paths: Vec<PathOutcome>,
}

/// A path of an association, seen from one side, at the end of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathOutcome {
    /// Path number.
    pub path: u8,
    /// Local address.
    pub local: String,
    /// Remote address.
    pub remote: String,
    /// "unconfirmed", "active", "potentially failed", "inactive" or "removed".
    pub state: String,
    /// Congestion window in bytes.
    pub cwnd: u32,
    /// Slow start threshold in bytes.
    pub ssthresh: u32,
    /// Retransmission timeout in seconds.
    pub rto: f64,
    /// Smoothed round-trip time in seconds, if there was a sample.
    pub srtt: Option<f64>,
    /// Bandwidth estimated from acknowledgements, in bytes per second, if there were any.
    pub bandwidth: Option<f64>,
    /// Bandwidth estimated from pairs of HEARTBEATs, in bytes per second, if the association sent
    /// any.
    pub pair_bandwidth: Option<f64>,
    /// Shortest round-trip time in seconds, if there was a sample.
    pub rtt_min: Option<f64>,
    /// Longest round-trip time in seconds, if there was a sample.
    pub rtt_max: Option<f64>,
    /// Consecutive errors.
    pub error_count: u32,
    /// Counters.
    pub counts: PathCounts,
}

/// A change of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathChange {
    /// Time of the change.
    pub at: f64,
    /// Side on which it happened: "sender" or "receiver".
    pub side: String,
    /// Path number.
    pub path: u8,
    /// Kind of change: "state", "current" (used for new data from now on) or "primary".
    pub what: String,
    /// The previous state, for a change of state.
    pub from: Option<String>,
    /// The new state, for a change of state.
    pub to: Option<String>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkOutcome {
    /// Name of the link.
    pub name: String,
    /// Counters of all packets.
    pub counts: LinkCounters,
    /// Counters of background packets alone, which `counts` includes.
    pub background: LinkCounters,
}

/// An endpoint of the protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointOutcome {
    /// Name of the host.
    pub host: String,
    /// SCTP port.
    pub port: u16,
    /// Counters.
    pub counts: EndpointCounts,
}

/// Declares a copy of a counter struct of the core that serializes. The simulator counts the fields
/// with `= 0` itself.
macro_rules! counts {
    (@value $stats:ident $field:ident) => { $stats.$field };
    (@value $stats:ident $field:ident $own:literal) => { $own };
    ($(#[$doc:meta])* $name:ident from $stats:ty {
        $( $(#[$field_doc:meta])* $field:ident $(= $own:literal)?, )*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: u64, )*
        }

        impl From<&$stats> for $name {
            fn from(stats: &$stats) -> Self {
                Self { $( $field: counts!(@value stats $field $($own)?), )* }
            }
        }
    };
}

counts! {
    /// Counters of a path, seen from one side.
    PathCounts from PathStats {
        /// Packets sent.
        packets_sent,
        /// Packets received and accepted.
        packets_received,
        /// SCTP bytes sent.
        bytes_sent,
        /// SCTP bytes received in accepted packets.
        bytes_received,
        /// DATA chunks sent for the first time.
        data_chunks_sent,
        /// User bytes sent for the first time.
        data_bytes_sent,
        /// DATA chunks received, duplicates included.
        data_chunks_received,
        /// User bytes received for the first time.
        data_bytes_received,
        /// DATA chunks fast retransmitted to this path.
        fast_retransmissions,
        /// DATA chunks retransmitted to this path after a timeout.
        timeout_retransmissions,
        /// Copies of DATA chunks sent to this path while the first transmission was in flight.
        copies_sent,
        /// User bytes of these copies.
        copy_bytes_sent,
        /// Expirations of T3-rtx.
        timeouts,
        /// Expirations of T3-rtx that were the second in a row.
        second_timeouts = 0,
        /// Expirations of T3-rtx that were the third in a row.
        third_timeouts = 0,
        /// Expirations of T3-rtx that were the fourth in a row.
        fourth_timeouts = 0,
        /// Expirations of T3-rtx that were the fifth in a row.
        fifth_timeouts = 0,
        /// Recoveries from losses or timeouts that turned out to be spurious.
        recoveries_undone,
        /// HEARTBEATs sent.
        heartbeats_sent,
        /// HEARTBEAT ACKs received.
        heartbeats_acked,
        /// HEARTBEATs not acknowledged in time.
        heartbeats_lost,
        /// Number of times that the path became inactive.
        failures,
        /// Samples of the round-trip time.
        rtt_samples,
    }
}

counts! {
    /// Counters of an association, seen from one side.
    AssociationCounts from AssociationStats {
        /// Messages that were sent.
        messages_sent,
        /// Messages handed to the application.
        messages_received,
        /// User bytes handed to the application.
        bytes_received,
        /// DATA chunks that arrived a second time.
        duplicates_received,
        /// SACKs sent.
        sacks_sent,
        /// SACKs received.
        sacks_received,
        /// Packets or chunks dropped because they were wrong, old or unexpected.
        dropped,
        /// Chunks that the peer reneged: gap-acknowledged, then no longer.
        reneged,
        /// Nanoseconds during which new data waited for the peer's receive buffer and an active
        /// path had no outstanding data.
        nanoseconds_blocked,
        /// DATA chunks dropped because the receive buffer was full.
        dropped_no_buffer,
        /// Echoed timestamps at which nothing can have been sent.
        bad_echoes,
    }
}

counts! {
    /// Counters of an endpoint.
    EndpointCounts from EndpointStats {
        /// Datagrams received.
        datagrams_received,
        /// Datagrams that were not SCTP.
        malformed,
        /// Packets with a wrong CRC32c.
        bad_checksum,
        /// Packets that belong to no association.
        out_of_the_blue,
        /// Packets with a wrong verification tag.
        bad_tag,
        /// State cookies with a wrong signature.
        bad_cookies,
        /// State cookies that arrived too late.
        stale_cookies,
        /// Associations refused.
        refused,
        /// Associations established.
        established,
        /// Stateless replies not sent because too many were waiting.
        replies_dropped,
    }
}

/// Short name of a close reason.
pub(crate) const fn close_name(reason: &CloseReason) -> &'static str {
    match reason {
        CloseReason::Graceful => "graceful",
        CloseReason::LocalAbort => "local-abort",
        CloseReason::PeerAbort { .. } => "peer-abort",
        CloseReason::NoAnswer => "no-answer",
        CloseReason::PeerUnreachable => "peer-unreachable",
        CloseReason::ShutdownTimeout => "shutdown-timeout",
        CloseReason::ProtocolViolation { .. } => "protocol-violation",
        CloseReason::Unreachable { .. } => "unreachable",
        _ => "other",
    }
}

impl PathOutcome {
    /// `runs` are the numbers of timeouts that were the second to fifth in a row.
    pub(crate) fn new(view: &PathView, stats: &PathStats, runs: [u64; 4]) -> Self {
        let [second_timeouts, third_timeouts, fourth_timeouts, fifth_timeouts] = runs;
        Self {
            path: view.id.0,
            local: view.local.to_string(),
            remote: view.remote.to_string(),
            state: view.state.to_string(),
            cwnd: view.window.cwnd,
            ssthresh: view.window.ssthresh,
            rto: view.rto.as_secs_f64(),
            srtt: view.srtt.map(|srtt| srtt.as_secs_f64()),
            bandwidth: view.bandwidth,
            pair_bandwidth: view.pair_bandwidth,
            rtt_min: view.rtt_range.map(|range| range.min.as_secs_f64()),
            rtt_max: view.rtt_range.map(|range| range.max.as_secs_f64()),
            error_count: view.error_count,
            counts: PathCounts {
                second_timeouts,
                third_timeouts,
                fourth_timeouts,
                fifth_timeouts,
                ..stats.into()
            },
        }
    }
}

impl StripeOutcome {
    /// `None` if the application is not striped.
    pub(crate) fn new(app: &mut ApplicationPair, names: Vec<String>, now: Time) -> Option<Self> {
        let (complete, start) = (app.is_delivered(), app.start);
        let [forward, back] = app.stripe.as_mut()?.progress.each_mut().map(|progress| {
            if !complete {
                progress.broken_off(now);
            }
            FlowOutcome::new(progress, start)
        });
        Some(Self {
            name: app.name.clone(),
            associations: names,
            complete,
            started_at: start.as_secs_f64(),
            forward,
            back,
        })
    }
}

impl FlowOutcome {
    pub(crate) fn new(progress: &Progress, start: Time) -> Self {
        let seconds = |time: Option<Time>| time.map(Time::as_secs_f64);
        let until_last = |from: Time| progress.last_delivered.map(|last| last.since(from));
        let total = until_last(start).map(|d| d.as_secs_f64());
        let from_data = progress.first_data.and_then(until_last);
        Self {
            messages_sent: progress.messages_sent,
            bytes_sent: progress.bytes_sent,
            messages_delivered: progress.messages_delivered,
            bytes_delivered: progress.bytes_delivered,
            messages_abandoned: progress.messages_abandoned,
            first_send: seconds(progress.first_send),
            first_data: seconds(progress.first_data),
            first_delivered: seconds(progress.first_delivered),
            last_delivered: seconds(progress.last_delivered),
            time_from_start: total,
            time_from_first_data: from_data.map(|d| d.as_secs_f64()),
            goodput: match total {
                Some(total) if total > 0.0 => progress.bytes_delivered as f64 / total,
                _ => 0.0,
            },
            longest_gap: progress.longest_gap.map(Blackout::from),
            blackouts: progress.blackouts.iter().copied().map(Blackout::from).collect(),
            delivery_times: DeliveryTimes::of(&progress.delivery_times()),
        }
    }
}

impl From<Gap> for Blackout {
    fn from(gap: Gap) -> Self {
        Self { start: gap.start.as_secs_f64(), length: gap.length.as_secs_f64() }
    }
}

impl From<&StateChange> for PathChange {
    fn from(change: &StateChange) -> Self {
        let (what, from, to) = match change.what {
            Changed::State { from, to } => ("state", Some(from.to_string()), Some(to.to_string())),
            Changed::Current => ("current", None, None),
            Changed::Primary => ("primary", None, None),
        };
        Self {
            at: change.at.as_secs_f64(),
            side: if change.side == 0 { "sender" } else { "receiver" }.to_owned(),
            path: change.path.0,
            what: what.to_owned(),
            from,
            to,
        }
    }
}
