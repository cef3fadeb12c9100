//! The error counters, states, HEARTBEATs and RTOs of RFC 9260 8.1 to 8.3 compared with a model
//! that knows only which packets were sent and arrived, over a network that cuts paths and drops,
//! duplicates and delays packets.

use crate::common::*;
use crate::error_model::{Constants, Model};
use polypath_proto::policy::{failover, probing, scheduler};
use polypath_proto::{CloseReason, Config, PathState, Registry, Rng, Seed};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Weather {
    Cut(u8),
    Restore(u8),
    Lose(u8),
    /// Packets are duplicated, or seconds late.
    Disturb(u8),
    Send(u16),
    Wait(u16),
}

fn weather() -> impl Strategy<Value = Weather> {
    prop_oneof![
        2 => (0u8..3).prop_map(Weather::Cut),
        3 => (0u8..3).prop_map(Weather::Restore),
        1 => (0u8..60).prop_map(Weather::Lose),
        1 => (0u8..60).prop_map(Weather::Disturb),
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
        // Failover: standard, SCTP-PF or CMT-PF. Scheduler: one path or all.
        failover in 0usize..3,
        concurrent in any::<bool>(),
        steps in prop::collection::vec(weather(), 1..40),
    ) {
        let mut config = Config::rfc9260().to_builder()
            .path_max_retrans(path_max_retrans)
            .association_max_retrans(association_max_retrans)
            .heartbeat_interval(Some(S(5)));
        let policy = Registry::standard().retransmission()[policy];
        config = config.retransmission(policy);
        let failover =
            [&failover::STANDARD, &failover::POTENTIALLY_FAILED, &failover::CMT_POTENTIALLY_FAILED][failover];
        config = config.failover(failover);
        if concurrent {
            config = config.scheduler(&scheduler::CONCURRENT);
        }
        if after_rto && policy.name != "same" {
            config = config.probing(&probing::AFTER_RTO);
        }
        let config = config.build().unwrap();
        let constants = Constants {
            path_max_retrans,
            association_max_retrans,
            heartbeat_interval: S(5),
            rto_max: config.rto_max(),
            after_rto: config.probing().name == probing::AFTER_RTO.name,
            potentially_failed: failover.name != failover::STANDARD.name,
        };
        let cmt_pf = failover.name == failover::CMT_POTENTIALLY_FAILED.name;
        let mut net = Setup { paths, seed: seed >> 8, configs: [config.clone(), config], ..Setup::default() }.build();
        net.establish();
        // The model counts from now on: there are no errors yet.
        let mut model = Model::new(&net, constants);
        let loss = std::rc::Rc::new(std::cell::Cell::new([0u64; 2]));
        let (mut dice, chance) = (Rng::new(&Seed::from_u64(seed)), loss.clone());
        net.filter(move |_| {
            let [lost, disturbed] = chance.get();
            match (dice.below(100) < lost, dice.below(100) < disturbed, dice.below(2)) {
                (true, ..) => Fate::Drop,
                (_, true, 0) => Fate::Twice,
                (_, true, _) => Fate::Late(MS(dice.below(6000))),
                _ => Fate::Pass,
            }
        });
        for step in steps {
            let mut end = net.now;
            match step {
                Weather::Cut(path) => { net.cuts.insert(path); }
                Weather::Restore(path) => { net.cuts.remove(&path); }
                Weather::Lose(percent) => loss.set([percent.into(), loss.get()[1]]),
                Weather::Disturb(percent) => loss.set([loss.get()[0], percent.into()]),
                Weather::Send(size) => { let _ = net.send(0, 0, payload(1, size.into())); }
                Weather::Wait(ms) => end = net.now + MS(ms.into()),
            }
            loop {
                let (mark, before) = (net.log.len(), net.states(0));
                let goes_on = net.step(end);
                let found = model.follow(&net);
                prop_assert_eq!(found, Ok(()), "at {}\n{}", net.now, net.tail(12));
                if net.a(0).is_closed() || !goes_on {
                    break;
                }
                let states = net.states(0);
                for (path, view) in net.a(0).paths().enumerate() {
                    let what = format!("path {path} at {}\n{}", net.now, net.tail(12));
                    prop_assert_eq!(view.error_count, model.paths[path].errors, "{}", what);
                    prop_assert_eq!(states[path] == PathState::Inactive, model.inactive(path), "{}", what);
                    // Natarajan 2009, 3.1: of paths that are all potentially failed, one with the
                    // fewest timeouts becomes active again, without an answer.
                    let failed = |state: PathState| state == PathState::PotentiallyFailed;
                    let spotless = view.error_count == 0;
                    prop_assert!(!failed(states[path]) || (constants.potentially_failed && !spotless), "{}", what);
                    if states[path] == PathState::Active && failed(before[path]) && !spotless {
                        let mut others = net.a(0).paths().filter(|other| other.id != view.id);
                        prop_assert!(cmt_pf && others.all(|other| match other.state {
                            PathState::Active => false,
                            PathState::PotentiallyFailed => other.error_count >= view.error_count,
                            _ => true,
                        }), "{}", what);
                    }
                }
                // No DATA is sent on a path that is not active while another one is.
                for packet in net.sent_since(0, mark) {
                    let to = states[usize::from(packet.net())];
                    let avoids = states.contains(&PathState::Active) && to != PathState::Active;
                    prop_assert!(!packet.has("DATA") || !avoids, "at {}\n{}", net.now, net.tail(12));
                }
                prop_assert!(!model.unreachable(), "{}", net.tail(12));
                // 6.4: the current path is the primary while it is active, else an active path if
                // there is one.
                let current = net.a(0).current_path().index();
                let active = |p: usize| states[p] == PathState::Active;
                prop_assert!(current == 0 || !active(0));
                prop_assert!(active(current) || !(0..states.len()).any(active));
            }
            if let Some(reason) = net.closed(0) {
                // The peer may have closed the association as well, and sent an ABORT.
                let told = matches!(reason, CloseReason::PeerAbort { .. });
                prop_assert!(told || reason == CloseReason::PeerUnreachable);
                prop_assert!(told || model.perhaps_unreachable());
                break;
            }
        }
    }
}
