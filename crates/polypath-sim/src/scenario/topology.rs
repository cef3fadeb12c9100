//! `topology = "dual-dumbbell"`: the networks of the multihoming studies, by name.

use serde::{Deserialize, Serialize};

use super::cross_traffic::CrossTraffic;
use super::link::{LinkSpec, PathSpec};
use crate::units::{QueueLimit, Rate, Span};

/// Named networks of paths between the two hosts. Each path is interface -100 Mbit/s 10 ms- router
/// -10 Mbit/s 25 ms- router -100 Mbit/s 10 ms- interface: 45 ms one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyName {
    /// "primary" and "alternate" (caro2006-retransmission Fig. 5, caro2006-failover Fig. 2).
    TwoPaths,
    /// The same with another path, "second-alternate" (caro2006-failover III.5).
    ThreePaths,
    /// Two paths with cross-traffic, and queues of twice the bandwidth-delay product
    /// (caro2006-retransmission Fig. 2, natarajan2009 Fig. 3).
    DualDumbbell,
    /// "primary", "alternate" and "competitor" over one link between the same two routers. The
    /// link's queue holds the bandwidth-delay product of a round trip (natarajan2009, future work).
    SharedBottleneck,
}

impl TopologyName {
    /// Paths of the network.
    pub fn paths(self) -> Vec<PathSpec> {
        if self == Self::SharedBottleneck {
            let sharing = ["alternate", "competitor"];
            let sharing = sharing.map(|name| PathSpec::sharing("primary").named(name));
            return std::iter::once(self.path("primary")).chain(sharing).collect();
        }
        let names = ["primary", "alternate", "second-alternate"];
        let count = if self == Self::ThreePaths { 3 } else { 2 };
        names.iter().take(count).map(|name| self.path(name)).collect()
    }

    fn path(self, name: &str) -> PathSpec {
        let mut edge = LinkSpec::default().rate(Rate::mbit(100)).delay(Span::millis(10));
        let mut core = PathSpec::new(Rate::mbit(10), Span::millis(25));
        core.name = Some(name.to_owned());
        if self == Self::DualDumbbell {
            // "A buffer size twice the link's bandwidth-delay product", one way.
            edge = edge.queue(QueueLimit::Bytes(250_000));
            core = core.queue(QueueLimit::Bytes(62_500)).cross_traffic(CrossTraffic::default());
        }
        if self == Self::SharedBottleneck {
            core = core.queue(QueueLimit::Packets(75));
        }
        core.edge(edge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, literal};
    use crate::units::Load;

    fn read(lines: &str) -> Result<Scenario, String> {
        let text = format!("schema = 1\n{lines}\n[workload]\nsize = \"1 MB\"\n");
        Scenario::from_toml(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_name_stands_for_the_paths() {
        let by_hand = "path = [\
            { name = \"primary\", rate = \"10 Mbit/s\", delay = \"25 ms\", \
              edge = { rate = \"100 Mbit/s\", delay = \"10 ms\" } }, \
            { name = \"alternate\", rate = \"10 Mbit/s\", delay = \"25 ms\", \
              edge = { rate = \"100 Mbit/s\", delay = \"10 ms\" } }]";
        let two = read("topology = \"two-paths\"").unwrap();
        assert_eq!(two, read(by_hand).unwrap());
        assert_eq!(two.paths, Scenario::new("x").topology(TopologyName::TwoPaths).paths);
        assert_eq!(read("topology = \"three-paths\"").unwrap().paths.len(), 3);
    }

    #[test]
    fn entries_change_the_paths_of_their_name() {
        let scenario = read(
            "topology = \"dual-dumbbell\"\n\
             [[path]]\nname = \"alternate\"\nloss = \"3 %\"\nback = { rate = \"5 Mbit/s\" }\n\
             edge = { delay = \"1 ms\" }\ncross_traffic = { load = \"40 %\" }",
        )
        .unwrap();
        let mut expected = TopologyName::DualDumbbell.paths();
        let alternate = expected[1].clone();
        let edge = alternate.edge.unwrap().delay(Span::millis(1));
        expected[1] = PathSpec {
            loss: Some("3 %".parse().map(crate::link::LossModel::bernoulli).unwrap()),
            back: Some(LinkSpec::default().rate(Rate::mbit(5))),
            cross_traffic: Some(CrossTraffic::load(Load::percent(40))),
            edge: Some(edge),
            ..expected[1].clone()
        };
        assert_eq!(scenario.paths, expected);
        assert_eq!(Scenario::from_toml(&scenario.to_toml()).unwrap(), scenario);
    }

    #[test]
    fn other_values_name_the_topology_too() {
        let two = read("topology = \"two-paths\"").unwrap();
        let set = |key: &'static str, value: &str| (key, Some(literal(value)));
        let changed = two
            .with([
                set("topology", "dual-dumbbell"),
                set("path.primary.cross_traffic.load", "90 %"),
            ])
            .unwrap();
        assert_eq!(changed.paths[0].cross_traffic, Some(CrossTraffic::load(Load::percent(90))));
        assert_eq!(changed.paths[1], TopologyName::DualDumbbell.paths()[1]);
        let error = two.with([set("topology", "tow-paths")]).unwrap_err().to_string();
        assert_eq!(
            error,
            "topology: \"tow-paths\" is not known; did you mean \"two-paths\"? allowed: two-paths, \
             three-paths, dual-dumbbell, shared-bottleneck"
        );
    }

    #[test]
    fn what_is_wrong_is_found_in_its_entry() {
        let table = [
            (
                read("topology = \"dumbell\""),
                "line 2: topology: \"dumbell\" is not known; allowed: two-paths, three-paths, \
                 dual-dumbbell, shared-bottleneck",
            ),
            (
                read("topology = \"two-paths\"\n[[path]]\nname = \"primry\""),
                "line 4: path[0].name: no path of the topology \"primry\"; did you mean \
                 \"primary\"? allowed: primary, alternate",
            ),
            (
                read("topology = \"two-paths\"\n[[path]]\nloss = \"1 %\""),
                "line 3: path[0].name: missing; allowed: primary, alternate",
            ),
            (
                read(
                    "topology = \"two-paths\"\n[[path]]\nname = \"primary\"\n\
                     [[path]]\nname = \"primary\"",
                ),
                "line 6: path[1].name: another entry is about \"primary\"",
            ),
            // This is the second path of the network, but the first entry of the text.
            (
                read(
                    "topology = \"two-paths\"\n[[path]]\nname = \"alternate\"\nrate = \"0 bit/s\"",
                ),
                "line 5: path[0].rate: found 0 bit/s; allowed: above 0",
            ),
        ];
        for (found, expected) in table {
            assert_eq!(found.unwrap_err(), expected);
        }
    }
}
