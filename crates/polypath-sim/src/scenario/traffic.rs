//! `[[traffic]]`: sources of background packets between any two nodes.

use std::time::Duration;

use polypath_proto::Time;
use serde::{Deserialize, Serialize};

use super::error::Problem;
use super::key::Key;
use crate::network::LinkId;
use crate::network::tcp::{TcpCongestion, TcpPlan};
use crate::network::traffic::{OnOff, Pattern, TrafficPlan};
use crate::units::{Rate, Size, Span};

/// Maximum number of sources of one entry.
const MOST_SOURCES: u32 = 10_000;
/// Maximum number of TCP flows of one entry.
const MOST_FLOWS: u32 = 1_000;
/// Receive window of a TCP flow by default.
const WINDOW: Size = Size(4_000_000);
/// The largest one: a flow keeps a record of each segment outstanding.
const MOST_WINDOW: Size = Size(256_000_000);
/// Size of the largest IP packet, in bytes.
const MOST_BYTES: u64 = 65_535;

/// Sending pattern of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficKind {
    /// The source sends in bursts; bursts and pauses have Pareto-distributed lengths.
    #[default]
    Pareto,
    /// The source always sends.
    Constant,
    /// A long-lived TCP flow, with acknowledgements in the other direction.
    Tcp,
}

/// `[[traffic]]`: sources of packets that no SCTP stack receives. The packets use the same links
/// and queues as all others and are dropped at their destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// Name of the sources, which determines their random streams; "traffic0", "traffic1", ... by
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The node that sends: the name of a router, or "host.n" for the n-th address of a host
    /// counted from 0 ("host" alone if it has one). With `[[path]]`: "sender.n" and "receiver.n" at
    /// the ends of the n-th path, and its routers "NAME/near" and "NAME/far" if it has an edge.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Sending pattern; "pareto" by default.
    #[serde(default)]
    pub kind: TrafficKind,
    /// Rate of whole packets while a source sends; for kind "pareto" the rate in bursts. Kind
    /// "tcp" has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Size of a packet, IP header included; "1500 B" by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_size: Option<Size>,
    /// Number of sources of this kind; 1 by default. Each has its own random stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<u32>,
    /// Start of the sources; the beginning of the run by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Span>,
    /// kind "pareto": shape of both distributions; 1.5 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<f64>,
    /// kind "pareto": mean length of a burst; "500 ms" by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Span>,
    /// kind "pareto": mean time between bursts; "500 ms" by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<Span>,
    /// kind "tcp": congestion control; "cubic" by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<TcpCongestion>,
    /// kind "tcp": receive window; "4 MB" by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Size>,
}

impl TrafficSpec {
    /// The TCP flows of this entry, all with these two routes.
    pub(super) fn flows(
        &self,
        name: &str,
        ways: [&[LinkId]; 2],
        key: &Key,
    ) -> Result<Vec<TcpPlan>, Problem> {
        let given = [
            ("rate", self.rate.is_some()),
            ("shape", self.shape.is_some()),
            ("on", self.on.is_some()),
            ("off", self.off.is_some()),
        ];
        if let Some((field, _)) = given.iter().find(|(_, given)| *given) {
            return Err(Problem::new(key.field(field), "does not belong to kind \"tcp\""));
        }
        let size = self.packet_size.unwrap_or(Size(1500));
        let size_key = key.field("packet_size");
        let bytes = check_packet_size(size, &size_key)?;
        if bytes <= TcpPlan::HEADERS {
            let text = format!("found {size}; allowed: above {} B", TcpPlan::HEADERS);
            return Err(Problem::new(size_key, text));
        }
        let sources = self.sources.unwrap_or(1);
        check_count(sources, MOST_FLOWS, &key.field("sources"))?;
        let segment = u64::from(bytes - TcpPlan::HEADERS);
        let window = self.window.unwrap_or(WINDOW);
        if !(2 * segment..=MOST_WINDOW.0).contains(&window.0) {
            let text = format!("found {window}; allowed: two segments to {MOST_WINDOW}");
            return Err(Problem::new(key.field("window"), text));
        }
        let plan = |n| TcpPlan {
            name: format!("{name}/{n}"),
            ways: ways.map(<[LinkId]>::to_vec),
            size: bytes,
            window: window.0 / segment,
            start: Time::ZERO + self.start.unwrap_or_default().duration(),
            congestion: self.congestion.unwrap_or_default(),
        };
        Ok((0..sources).map(plan).collect())
    }

    /// The sources of this entry, all with this route.
    pub(super) fn plans(
        &self,
        name: &str,
        way: &[LinkId],
        key: &Key,
    ) -> Result<Vec<TrafficPlan>, Problem> {
        let rate = self.rate.ok_or_else(|| Problem::new(key.field("rate"), "missing"))?;
        if rate.0 == 0 {
            return Err(Problem::new(key.field("rate"), "found 0 bit/s; allowed: above 0"));
        }
        for (field, given) in
            [("congestion", self.congestion.is_some()), ("window", self.window.is_some())]
        {
            if given {
                return Err(Problem::new(key.field(field), "belongs to kind \"tcp\""));
            }
        }
        let size = self.packet_size.unwrap_or(Size(1500));
        let size = check_packet_size(size, &key.field("packet_size"))?;
        let sources = self.sources.unwrap_or(1);
        check_count(sources, MOST_SOURCES, &key.field("sources"))?;
        let interval = f64::from(size) * 8e9 / rate.0 as f64;
        let pattern = match self.kind {
            TrafficKind::Pareto => {
                let on_off = on_off(self.shape, self.on, self.off, key)?;
                check_burst(&on_off, interval, key)?;
                Pattern::Pareto(on_off)
            }
            TrafficKind::Constant | TrafficKind::Tcp => {
                let given = [
                    ("shape", self.shape.is_some()),
                    ("on", self.on.is_some()),
                    ("off", self.off.is_some()),
                ];
                if let Some((field, _)) = given.iter().find(|(_, given)| *given) {
                    let text = "belongs to kind \"pareto\"";
                    return Err(Problem::new(key.field(field), text));
                }
                Pattern::Constant
            }
        };
        let plan = |n| TrafficPlan {
            name: format!("{name}/{n}"),
            way: way.to_vec(),
            size,
            interval,
            start: Time::ZERO + self.start.unwrap_or_default().duration(),
            pattern,
        };
        Ok((0..sources).map(plan).collect())
    }
}

/// Pareto on/off times; parameters that are not set have the papers' values
/// (caro2006-retransmission 2.1: self-similar traffic; shape and times are those of ns-2's
/// cross-traffic).
pub(super) fn on_off(
    shape: Option<f64>,
    on: Option<Span>,
    off: Option<Span>,
    key: &Key,
) -> Result<OnOff, Problem> {
    let shape = shape.unwrap_or(1.5);
    if !(shape > 1.0 && shape <= 100.0) {
        let text = format!("found {shape}; allowed: above 1 (below, there is no mean), up to 100");
        return Err(Problem::new(key.field("shape"), text));
    }
    let time = |span: Option<Span>| span.unwrap_or(Span::millis(500)).duration();
    let (on, off) = (time(on), time(off));
    for (field, time) in [("on", on), ("off", off)] {
        let most = Duration::from_secs(86_400);
        if time.is_zero() || time > most {
            let text = format!("found {}; allowed: above 0 s, at most 24 h", Span::from(time));
            return Err(Problem::new(key.field(field), text));
        }
    }
    Ok(OnOff { shape, on, off })
}

/// Rejects bursts so short that hundreds of them pass without a packet: they would only take
/// computing time.
pub(super) fn check_burst(on_off: &OnOff, interval: f64, key: &Key) -> Result<(), Problem> {
    let least = Duration::from_nanos((interval / 100.0) as u64);
    if on_off.on < least {
        let text = format!(
            "found {}; allowed: at least {}, a hundredth of the time from packet to packet",
            Span::from(on_off.on),
            Span::from(least)
        );
        return Err(Problem::new(key.field("on"), text));
    }
    Ok(())
}

pub(super) fn check_packet_size(size: Size, key: &Key) -> Result<u32, Problem> {
    if size.0 == 0 || size.0 > MOST_BYTES {
        let text = format!("found {size}; allowed: from 1 B to {MOST_BYTES} B");
        return Err(Problem::new(key.clone(), text));
    }
    Ok(size.0 as u32)
}

pub(super) fn check_count(count: u32, most: u32, key: &Key) -> Result<(), Problem> {
    if !(1..=most).contains(&count) {
        let text = format!("found {count}; allowed: from 1 to {most}");
        return Err(Problem::new(key.clone(), text));
    }
    Ok(())
}
