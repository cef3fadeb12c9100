//! `cross_traffic` of a `[[path]]`: the single-homed nodes of the dual dumbbell.
//!
//! caro2006-retransmission 2.1 (Fig. 2) and natarajan2009 3 (Fig. 3): at each end of a path's
//! middle link, four single-homed nodes are attached to its router, each with eight Pareto sources
//! that send to the node opposite. The papers give 44, 576 and 1500 bytes for 50, 25 and 25 % of
//! the packets, edge links of 100 Mbit/s and delays uniform between 5 and 20 ms. The other
//! parameters are those of the ns-2 scripts that reproduce the papers' results: shape 1.5, bursts
//! and pauses of 500 ms in the mean, so that the rate in bursts is twice the mean, and equal packet
//! rates of all sources.

use polypath_proto::Time;
use serde::{Deserialize, Serialize};

use super::error::Problem;
use super::key::Key;
use super::traffic;
use crate::link::LinkConfig;
use crate::network::traffic::{Pattern, TrafficPlan};
use crate::network::{LinkId, NodeId, Topology};
use crate::random::Random;
use crate::units::{Load, Rate, Size, Span, SpanRange};

/// Default load: it causes losses of a few percent.
const LOAD: f64 = 0.8;
const PACKET_SIZES: [Size; 4] = [Size(44), Size(44), Size(576), Size(1500)];
const DELAY: SpanRange = SpanRange { min: Span(5_000_000), max: Span(20_000_000) };
const MOST_NODES: u32 = 100;
const MOST_SOURCES: u32 = 100;

/// Background traffic over the middle link of a path with edges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CrossTraffic {
    /// Mean load offered to the middle link in each direction, as a share of its rate; "80 %" by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// Mean rate in each direction, in place of `load`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Load from the sender's end to the receiver's, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward: Option<LoadSpec>,
    /// Load from the receiver's end to the sender's, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back: Option<LoadSpec>,
    /// Single-homed nodes at each end; 4 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Sources of each node; 8 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<u32>,
    /// Packet sizes, IP headers included; the sources of a node use them in turn, starting over at
    /// the end of the list. All sources send the same number of packets. Default: 44, 44, 576 and
    /// 1500 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_sizes: Option<Vec<Size>>,
    /// Shape of the Pareto distributions; 1.5 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<f64>,
    /// Mean length of a burst; "500 ms" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Span>,
    /// Mean time between bursts; "500 ms" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<Span>,
    /// Propagation delay of the nodes' links, drawn uniformly from this range with the scenario's
    /// seed; "5 ms .. 20 ms" by default. The path's `edge` sets the links' other parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<SpanRange>,
}

/// The load of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadSpec {
    /// Mean load as a share of the link's rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// Mean rate, in place of `load`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

impl CrossTraffic {
    /// Background traffic with this load in each direction.
    pub fn load(load: Load) -> Self {
        Self { load: Some(load), ..Self::default() }
    }
}

/// A path's middle link, with its routers and the edge links.
#[derive(Debug)]
pub(super) struct Middle<'a> {
    pub(super) name: &'a str,
    /// The routers at the sender's and at the receiver's end.
    pub(super) routers: [NodeId; 2],
    /// The links from the first to the second router, and back.
    pub(super) links: [LinkId; 2],
    /// Configuration of the path's edge links.
    pub(super) edge: &'a LinkConfig,
}

/// A single-homed node: its links to and from the router.
struct Node {
    out: LinkId,
    inward: LinkId,
}

/// Adds the nodes to the topology; returns the sources of both directions.
pub(super) fn expand(
    spec: &CrossTraffic,
    middle: &Middle<'_>,
    topology: &mut Topology,
    seed: u64,
    key: &Key,
) -> Result<Vec<TrafficPlan>, Problem> {
    let nodes = spec.nodes.unwrap_or(4);
    traffic::check_count(nodes, MOST_NODES, &key.field("nodes"))?;
    let [near, far] = [(0, "near"), (1, "far")].map(|(end, place)| {
        let node = |n| middle.add_node(end, &format!("cross{n}-{place}"), spec, topology, seed);
        (0..nodes).map(node).collect::<Vec<_>>()
    });
    let mut plans = Vec::new();
    for (way, from, to) in [(0, &near, &far), (1, &far, &near)] {
        let (direction, over) = [("forward", spec.forward), ("back", spec.back)][way];
        let (over, place) = match over {
            Some(over) => (over, key.field(direction)),
            None => (LoadSpec { load: spec.load, rate: spec.rate }, key.clone()),
        };
        let link = &topology.links[middle.links[way].index()].config;
        let rate = over.mean_rate(link.rate, &place)?;
        if let Some(edge) = middle.edge.rate.filter(|edge| rate > edge.0 as f64 * f64::from(nodes))
        {
            let text = format!("{nodes} edge links of {edge} do not carry that load");
            return Err(Problem::new(place, text));
        }
        for (n, (from, to)) in from.iter().zip(to).enumerate() {
            let name = format!("{}/{direction}/cross{n}", middle.name);
            let links = [from.out, middle.links[way], to.inward];
            plans.extend(spec.sources_of_node(&name, &links, rate / f64::from(nodes), key)?);
        }
    }
    Ok(plans)
}

impl LoadSpec {
    /// The mean rate offered to a link of this rate, in bits per second.
    fn mean_rate(&self, link: Option<Rate>, key: &Key) -> Result<f64, Problem> {
        let most = link.map(|link| link.0.saturating_mul(2));
        match (self.load, self.rate, link, most) {
            (Some(_), Some(_), ..) => {
                Err(Problem::new(key.clone(), "either load or rate, not both"))
            }
            (_, Some(rate), _, Some(most)) if rate.0 > most => {
                let most = Rate(most);
                let text = format!("found {rate}; allowed: at most {most}, twice the link's rate");
                Err(Problem::new(key.field("rate"), text))
            }
            (_, Some(rate), ..) => Ok(rate.0 as f64),
            (load, None, Some(link), _) => Ok(load.map_or(LOAD, Load::get) * link.0 as f64),
            (_, None, None, _) => {
                let text = "the link has no rate to be a share of; allowed: rate in place of load";
                Err(Problem::new(key.field("load"), text))
            }
        }
    }
}

impl Middle<'_> {
    fn add_node(
        &self,
        end: usize,
        place: &str,
        spec: &CrossTraffic,
        topology: &mut Topology,
        seed: u64,
    ) -> Node {
        let name = format!("{}/{place}", self.name);
        let SpanRange { min, max } = spec.delay.unwrap_or(DELAY);
        let mut dice = Random::named(seed, &format!("delay:{name}"));
        let delay = Span(dice.between(min.0, max.0)).duration();
        let config = LinkConfig { delay, ..self.edge.clone() };
        let (node, router) = (topology.add_router(), self.routers[end]);
        Node {
            out: topology.add_link(format!("{name}/out"), node, router, config.clone()),
            inward: topology.add_link(format!("{name}/in"), router, node, config),
        }
    }
}

impl CrossTraffic {
    /// The sources of a node, which together have this mean rate in bits per second; no sources if
    /// the rate is 0.
    fn sources_of_node(
        &self,
        name: &str,
        way: &[LinkId],
        rate: f64,
        key: &Key,
    ) -> Result<Vec<TrafficPlan>, Problem> {
        let sources = self.sources.unwrap_or(8);
        traffic::check_count(sources, MOST_SOURCES, &key.field("sources"))?;
        let on_off = traffic::on_off(self.shape, self.on, self.off, key)?;
        let sizes = self.packet_sizes.as_deref().unwrap_or(&PACKET_SIZES);
        if sizes.is_empty() {
            let text = "found none; allowed: sizes such as [\"576 B\", \"1500 B\"]";
            return Err(Problem::new(key.field("packet_sizes"), text));
        }
        let sizes = (0..sources as usize).map(|n| {
            let place = n % sizes.len();
            traffic::check_packet_size(sizes[place], &key.field("packet_sizes").index(place))
        });
        let sizes = sizes.collect::<Result<Vec<u32>, Problem>>()?;
        if rate == 0.0 {
            return Ok(Vec::new());
        }
        // All sources have the same packet rate; a round is one packet of each source.
        let round: f64 = sizes.iter().map(|&size| f64::from(size) * 8e9).sum();
        let interval = round / rate * on_off.duty();
        traffic::check_burst(&on_off, interval, key)?;
        let plan = |(n, &size): (usize, &u32)| TrafficPlan {
            name: format!("{name}/{n}"),
            way: way.to_vec(),
            size,
            interval,
            start: Time::ZERO,
            pattern: Pattern::Pareto(on_off),
        };
        Ok(sizes.iter().enumerate().map(plan).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::traffic::Source;
    use crate::scenario::{Plan, Scenario, TopologyName};

    fn plans(spec: CrossTraffic) -> Vec<TrafficPlan> {
        let mut scenario = Scenario::new("x").topology(TopologyName::DualDumbbell);
        scenario.paths.truncate(1);
        scenario.paths[0].cross_traffic = Some(spec);
        Plan::new(&scenario).unwrap().traffic
    }

    #[test]
    fn eight_sources_of_four_nodes_in_each_direction() {
        let plans = plans(CrossTraffic::load(Load::percent(80)));
        assert_eq!(plans.len(), 64);
        assert_eq!(plans[0].name, "primary/forward/cross0/0");
        assert_eq!(plans[63].name, "primary/back/cross3/7");
        let sizes: Vec<u32> = plans[..8].iter().map(|plan| plan.size).collect();
        assert_eq!(sizes, [44, 44, 576, 1500, 44, 44, 576, 1500]);
        // Sources send half of the time, at this interval: together 8 Mbit/s in each direction.
        let rate = |plan: &TrafficPlan| f64::from(plan.size) * 8e9 / plan.interval / 2.0;
        for direction in plans.chunks(32) {
            assert!((direction.iter().map(rate).sum::<f64>() - 8e6).abs() < 1.0);
        }
        assert!(plans.iter().all(|plan| plan.interval == plans[0].interval && plan.way.len() == 3));
        assert!(self::plans(CrossTraffic::load(Load::percent(0))).is_empty());
    }

    #[test]
    fn half_of_the_packets_are_small() {
        let plans = plans(CrossTraffic::default());
        let shares = (1..=10).map(|seed| {
            let mut packets = [0.0; 3];
            for plan in &plans {
                let kind = [44, 576, 1500].iter().position(|&size| size == plan.size).unwrap();
                let mut source = Source::new(plan.clone(), seed);
                let mut left = 300.0 - source.next_gap().as_secs_f64();
                while left > 0.0 {
                    packets[kind] += 1.0;
                    left -= source.next_gap().as_secs_f64();
                }
            }
            packets.map(|n| n / packets.iter().sum::<f64>())
        });
        let shares: Vec<[f64; 3]> = shares.collect();
        for (kind, expected) in [0.5, 0.25, 0.25].into_iter().enumerate() {
            let mean = shares.iter().map(|share| share[kind]).sum::<f64>() / 10.0;
            let squares = shares.iter().map(|share| (share[kind] - mean) * (share[kind] - mean));
            // 99 % interval of ten seeds (Student's t with 9 degrees of freedom).
            let half = 3.25 * (squares.sum::<f64>() / 90.0).sqrt();
            assert!(half < 0.03, "{mean} +- {half} decides nothing");
            assert!((mean - expected).abs() < half, "{mean} +- {half}, not {expected}");
        }
    }

    #[test]
    fn delays_of_nodes_are_drawn_by_name() {
        let delays = |seed| {
            let scenario = Scenario::new("x").seed(seed).topology(TopologyName::DualDumbbell);
            let links = Plan::new(&scenario).unwrap().topology.links;
            let of_nodes = links.into_iter().filter(|link| link.name.contains("cross"));
            of_nodes.map(|link| (link.name, link.config.delay)).collect::<Vec<_>>()
        };
        let [one, two] = [delays(1), delays(2)];
        assert_eq!(one.len(), 32);
        assert_eq!(one, delays(1));
        assert_ne!(one, two);
        for pair in one.chunks(2) {
            assert_eq!(pair[0].1, pair[1].1, "{} and {}", pair[0].0, pair[1].0);
            assert!((5..20).contains(&pair[0].1.as_millis()), "{pair:?}");
        }
    }
}
