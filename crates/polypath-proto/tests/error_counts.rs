//! The error counters of RFC 9260 8.1 to 8.3 against a model that knows nothing but what was sent
//! and what arrived.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::*;
use polypath_proto::policy::{probing, retransmission};
use polypath_proto::{CloseReason, Config, PathId, PathState, Rng, Seed};
use proptest::prelude::*;

/// An unacknowledged chunk.
#[derive(Clone, Copy)]
struct Flying {
    /// Where it was last sent.
    path: usize,
    /// It was sent to another path before.
    wandered: bool,
    /// T3-rtx has given it up: it may have arrived long ago, and only the SACK for it was missing.
    given_up: bool,
}

/// What 8.1 to 8.3 say, for host 0.
#[derive(Default)]
struct Model {
    errors: Vec<u32>,
    association: u32,
    /// Each unacknowledged chunk.
    flying: BTreeMap<u32, Flying>,
    inactive: Vec<bool>,
    by_gap: BTreeSet<u32>,
    cumulative: u32,
    /// Timeouts and lost heartbeats, and answered ones, as the paths counted them.
    lost: Vec<u64>,
    timeouts: Vec<u64>,
    answered: Vec<u64>,
    seen: usize,
}

impl Model {
    fn error(&mut self, path: usize) {
        self.errors[path] += 1;
        self.association += 1;
    }

    fn answer(&mut self, path: usize) {
        self.errors[path] = 0;
        self.association = 0;
    }

    /// Takes in what the last step did; what happened first comes first.
    fn follow(&mut self, net: &Net) {
        let paths = net.a(0).paths().count();
        self.errors.resize(paths, 0);
        self.lost.resize(paths, 0);
        self.timeouts.resize(paths, 0);
        self.answered.resize(paths, 0);
        self.inactive.resize(paths, false);
        // In a packet, control chunks stand before the SACK (6.10).
        for path in 0..paths {
            let acked = net.a(0).path_stats(PathId(path as u8)).unwrap().heartbeats_acked;
            if self.answered[path] < acked {
                self.answered[path] = acked;
                self.answer(path);
                self.inactive[path] = false;
            }
        }
        let ours = |p: &&Sent| net.hosts[0].addresses.contains(&p.to.ip());
        if let Some(sack) = net.arrival.as_ref().filter(ours).and_then(Sent::sack) {
            self.sack(&sack);
        }
        for path in 0..paths {
            let id = PathId(path as u8);
            let stats = net.a(0).path_stats(id).unwrap();
            let lost = stats.timeouts + stats.heartbeats_lost;
            let unconfirmed = net.a(0).path(id).unwrap().state == PathState::Unconfirmed;
            if self.timeouts[path] < stats.timeouts {
                self.timeouts[path] = stats.timeouts;
                self.flying.values_mut().filter(|f| f.path == path).for_each(|f| f.given_up = true);
            }
            while self.lost[path] < lost {
                self.lost[path] += 1;
                // 5.4: a probe of an unconfirmed path does not count for the association.
                if unconfirmed { self.errors[path] += 1 } else { self.error(path) }
            }
        }
        for packet in net.log[self.seen..].iter() {
            if net.hosts[0].addresses.contains(&packet.from.ip()) {
                for chunk in packet.data() {
                    let path = usize::from(packet.net());
                    let before = self.flying.get(&chunk.n);
                    let wandered = before.is_some_and(|f| f.wandered || f.path != path);
                    self.flying.insert(chunk.n, Flying { path, wandered, given_up: false });
                }
            }
        }
        self.seen = net.log.len();
        self.inactive = net.states(0).iter().map(|s| *s == PathState::Inactive).collect();
    }

    /// 8.2: "the endpoint SHOULD clear the error counter of the destination transport address to which
    /// the DATA chunk was last sent"; for one that was sent to several it may choose not to, and this
    /// one does not, unless every path has failed.
    fn sack(&mut self, sack: &SackSeen) {
        if sack.cumulative.wrapping_sub(self.cumulative) > 1 << 31 {
            return;
        }
        self.cumulative = sack.cumulative;
        let by_gap: BTreeSet<u32> = sack
            .gaps
            .iter()
            .flat_map(|g| u32::from(g.0)..=u32::from(g.1))
            .map(|o| sack.cumulative + o)
            .collect();
        let acked: Vec<u32> = self
            .flying
            .keys()
            .copied()
            .filter(|n| *n <= sack.cumulative || by_gap.contains(n))
            .filter(|n| !self.by_gap.contains(n))
            .collect();
        let dormant = self.inactive.iter().all(|i| *i);
        for n in acked {
            // 8.1: whatever was acknowledged.
            self.association = 0;
            let chunk = self.flying[&n];
            if !chunk.given_up && (dormant || !chunk.wandered) {
                self.answer(chunk.path);
            }
        }
        self.flying.retain(|n, _| *n > sack.cumulative);
        self.by_gap = by_gap;
    }
}

#[derive(Clone, Debug)]
enum Weather {
    Cut(u8),
    Mend(u8),
    Lose(u8),
    Send(u16),
    Wait(u16),
}

fn weather() -> impl Strategy<Value = Weather> {
    prop_oneof![
        2 => (0u8..3).prop_map(Weather::Cut),
        3 => (0u8..3).prop_map(Weather::Mend),
        1 => (0u8..60).prop_map(Weather::Lose),
        4 => (1u16..20_000).prop_map(Weather::Send),
        4 => (1u16..30_000).prop_map(Weather::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counters_agree_with_the_model(
        seed in any::<u64>(),
        paths in 1u8..4,
        path_max_retrans in 0u32..4,
        association_max_retrans in 3u32..15,
        policy in 0usize..3,
        after_rto in any::<bool>(),
        steps in prop::collection::vec(weather(), 1..40),
    ) {
        let mut config = Config::builder()
            .path_max_retrans(path_max_retrans)
            .association_max_retrans(association_max_retrans)
            .heartbeat_interval(Some(S(5)));
        let policy = retransmission::ANSWERS[policy];
        config = config.retransmission(policy);
        if after_rto && policy.name != "same" {
            config = config.probing(&probing::AFTER_RTO);
        }
        let config = config.build().unwrap();
        let mut net = Setup { paths, seed: seed >> 8, configs: [config.clone(), config], ..Setup::default() }.build();
        net.establish();
        // Counted from here on: nothing has gone wrong yet.
        let mut model = Model::default();
        model.follow(&net);
        let loss = std::rc::Rc::new(std::cell::Cell::new(0u64));
        let (mut dice, chance) = (Rng::new(&Seed::from_u64(seed)), loss.clone());
        net.filter(move |_| if dice.below(100) < chance.get() { Fate::Drop } else { Fate::Pass });
        for step in steps {
            let mut end = net.now;
            match step {
                Weather::Cut(path) => { net.cuts.insert(path); }
                Weather::Mend(path) => { net.cuts.remove(&path); }
                Weather::Lose(percent) => loss.set(percent.into()),
                Weather::Send(size) => { let _ = net.send(0, 0, payload(1, size.into())); }
                Weather::Wait(ms) => end = net.now + MS(ms.into()),
            }
            loop {
                let goes_on = net.step(end);
                model.follow(&net);
                if net.a(0).is_closed() || !goes_on {
                    break;
                }
                let states = net.states(0);
                for (path, view) in net.a(0).paths().enumerate() {
                    let what = format!("path {path} at {}\n{}", net.now, net.tail(12));
                    prop_assert_eq!(view.error_count, model.errors[path], "{}", what);
                    let inactive = view.error_count > path_max_retrans;
                    prop_assert_eq!(states[path] == PathState::Inactive, inactive, "{}", what);
                }
                prop_assert!(model.association <= association_max_retrans, "{}", net.tail(12));
                // 6.4: the primary while it is active, else an active path if there is one.
                let current = net.a(0).current_path().index();
                let active = |p: usize| states[p] == PathState::Active;
                prop_assert!(current == 0 || !active(0));
                prop_assert!(active(current) || !(0..states.len()).any(active));
            }
            if let Some(reason) = net.closed(0) {
                // The peer may have given up as well, and its endpoint may say so.
                let told = matches!(reason, CloseReason::PeerAbort { .. });
                prop_assert!(told || reason == CloseReason::PeerUnreachable);
                prop_assert!(told || model.association > association_max_retrans);
                break;
            }
        }
    }
}
