//! Random messages through random networks with random configurations: every message arrives
//! exactly once, intact, ordered streams in order; the association ends closed, or says why.
//!
//! Each case follows from one number. A failure prints a line that runs it again:
//! `POLYPATH_CASE=0x... cargo test -p polypath-sim --test simulator random_networks::replay -- --nocapture`.
//! `POLYPATH_CASES` sets how many cases run, `POLYPATH_FIRST` where they begin.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::random_case::Case;
use polypath_sim::link::LinkCounters;
use polypath_sim::outcome::{End, Outcome, PathChange, PathCounts, SideOutcome};
use polypath_sim::random::derive;
use polypath_sim::{RunOptions, SimError};

/// Enough for a CI run of well under a minute on two cores.
const CASES: u64 = 20_000;

/// A number from the environment: how a person replays a case.
#[allow(clippy::disallowed_methods)]
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    Some(number.unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// Runs a case; what is wrong with it, if anything.
fn run(case: &Case) -> Result<Outcome, String> {
    let outcome = outcome(case)?;
    judge(case, &outcome)?;
    Ok(outcome)
}

fn outcome(case: &Case) -> Result<Outcome, String> {
    let run = catch_unwind(AssertUnwindSafe(|| case.scenario.run(&RunOptions::default())));
    match run {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(error @ SimError::Violation { .. })) => Err(error.to_string()),
        Ok(Err(error)) => Err(format!("the case itself is wrong: {error}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
            Err(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

fn dormant(side: &SideOutcome) -> bool {
    side.close.is_none() && side.paths.iter().all(|path| path.state != "active")
}

/// `gone` has given up, and `open` probes a path that does not answer.
fn abandoned(open: &SideOutcome, gone: &SideOutcome) -> bool {
    let failed = open.paths.iter().any(|path| path.state != "active");
    open.close.is_none() && failed && gone.close.as_deref() == Some("peer-unreachable")
}

fn judge(case: &Case, outcome: &Outcome) -> Result<(), String> {
    let association = &outcome.associations[0];
    if association.complete {
        return Ok(());
    }
    let (sender, receiver) = (&association.sender, &association.receiver);
    let everything = [&association.forward, &association.back]
        .iter()
        .all(|flow| flow.messages_sent == flow.messages_delivered + flow.messages_abandoned);
    let story = format!(
        "ended {:?} at {:.3} s, sender {}, receiver {}, forward {}/{}, back {}/{} messages",
        outcome.end,
        outcome.ended_at,
        close(sender),
        close(receiver),
        association.forward.messages_delivered,
        association.forward.messages_sent,
        association.back.messages_delivered,
        association.back.messages_sent,
    );
    match outcome.end {
        End::Closed => {}
        // One side is gone, and the other has nothing to send and no heartbeats to notice it by.
        End::Idle if sender.close.is_some() || receiver.close.is_some() => {}
        // Without heartbeats nothing else tells that; what asks for the path's MTU does not.
        End::TimeLimit
            if case.asks_for_mtu_only && (sender.close.is_some() || receiver.close.is_some()) => {}
        // By ns-2's procedures an association whose paths have all failed never ends.
        End::TimeLimit if case.ns2 && (dormant(sender) || dormant(receiver)) => {}
        // By these procedures a lost heartbeat to a path that is not active is repeated for ever, and counts as no
        // error of the association: one side is gone, and the other's idle path does not tell.
        // The same, where applications that look for room every few ms use up the events before the time.
        End::EventLimit if case.ns2 && dormant(sender) && dormant(receiver) => {}
        End::TimeLimit
            if case.ns2 && (abandoned(sender, receiver) || abandoned(receiver, sender)) => {}
        End::Idle | End::TimeLimit | End::EventLimit => return Err(format!("stuck: {story}")),
    }
    // A handshake ends where it began: an address that goes before it is complete may be all that it has.
    let unopened = sender.close.as_deref() == Some("no-answer")
        && case.scenario.addresses.iter().any(|event| event.node.starts_with("sender."));
    // The guard of the shutdown (T5, RFC 9260 9.2) is five times RTO.Max: where that is a second, losses in
    // a row are enough.
    let guard = sender.close.as_deref() == Some("shutdown-timeout") && everything;
    if case.gentle && !guard && !unopened {
        return Err(format!("nothing justifies this: {story}"));
    }
    if sender.close.as_deref() == Some("graceful") && !everything {
        return Err(format!("closed gracefully with data missing: {story}"));
    }
    let allowed = [
        "graceful",
        "peer-unreachable",
        "no-answer",
        "shutdown-timeout",
        // The other side gave up and said so.
        "peer-abort",
    ];
    for side in [sender, receiver] {
        if side.close.as_deref().is_some_and(|close| !allowed.contains(&close)) {
            return Err(format!("a reason that no network justifies: {story}"));
        }
    }
    Ok(())
}

fn close(side: &SideOutcome) -> String {
    side.close_reason.clone().unwrap_or_else(|| "open".to_owned())
}

#[test]
fn messages_survive_random_networks() {
    let cases = number("POLYPATH_CASES").unwrap_or(CASES);
    let first = number("POLYPATH_FIRST").unwrap_or(0);
    let next = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    let seen = Mutex::new(Seen::default());
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= cases {
                        break;
                    }
                    let case = derive(first + index, "case");
                    match run(&Case::new(case)) {
                        Ok(outcome) => seen.lock().unwrap().add(&outcome),
                        Err(what) => failures.lock().unwrap().push((case, what)),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    for (case, what) in &failures {
        println!(
            "POLYPATH_CASE={case:#x} cargo test -p polypath-sim --test simulator random_networks::replay  \
             # {what}"
        );
    }
    let seen = seen.into_inner().unwrap();
    println!("{cases} cases: {seen:?}");
    assert!(failures.is_empty(), "{} of {cases} cases failed", failures.len());
    if cases >= CASES {
        seen.check(cases);
    }
}

/// Cases that failed once, and what they found.
const FAILED_ONCE: [(u64, &str); 6] = [
    (0x3892_954a_6fc9_60e8, "a receive buffer smaller than a chunk"),
    (0x9672_8204_f521_36a8, "a receive buffer that holds one fragment and no second one"),
    (0xa868_70ee_3a6e_7953, "a peer that forgot the association after the shutdown"),
    (0x0f68_7273_ce39_24d9, "a COOKIE ECHO over another path than the INIT"),
    (0x20c6_2570_53e2_b042, "a COOKIE ECHO over another path than the INIT"),
    (0xe5a8_b1d0_bee4_bce0, "a COOKIE ACK that confirmed a path which it did not come over"),
];

#[test]
fn what_failed_once_holds() {
    for (case, what) in FAILED_ONCE {
        if let Err(error) = run(&Case::new(case).with_standard_answers()) {
            panic!("POLYPATH_CASE={case:#x} ({what}): {error}");
        }
    }
}

/// 0x90cd...: a link from one side that stays down, and ns-2's dormant procedures; 45 events a second, most of
/// them of a periodic application whose send buffer is full.
#[test]
fn what_never_ends_by_the_procedures_is_not_stuck() {
    let mut case = Case::new(0x90cd_4a54_deb5_5d1b);
    case.scenario.run.max_events = 20_000;
    let outcome = run(&case).unwrap();
    assert_eq!(outcome.end, End::EventLimit);
    case.ns2 = false;
    assert!(run(&case).unwrap_err().starts_with("stuck"));
    // One that is not dormant yet.
    case.ns2 = true;
    case.scenario.run.max_events = 100;
    assert!(run(&case).unwrap_err().starts_with("stuck"));
}

/// What happened at least once in a case, in how many cases: a test that never meets a failing path
/// says nothing about failing paths.
#[derive(Debug, Default)]
struct Seen {
    complete: u64,
    path_failures: u64,
    failures_of_all_paths: u64,
    fast_retransmissions: u64,
    timeouts: u64,
    heartbeats_lost: u64,
    duplicates: u64,
    bad_checksums: u64,
    full_queues: u64,
    reordered: u64,
    no_buffer: u64,
    unreachable: u64,
    no_answer: u64,
    blackouts: u64,
    background: u64,
    background_dropped: u64,
    abandoned: u64,
    addresses_gone: u64,
    addresses_back: u64,
}

impl Seen {
    fn add(&mut self, outcome: &Outcome) {
        let association = &outcome.associations[0];
        let sides = [&association.sender, &association.receiver];
        let any = |test: &dyn Fn(&SideOutcome) -> bool| u64::from(sides.iter().any(|s| test(s)));
        let any_path = |test: &dyn Fn(&PathCounts) -> bool| {
            any(&|side| side.paths.iter().any(|path| test(&path.counts)))
        };
        let any_link = |test: &dyn Fn(&LinkCounters) -> bool| {
            u64::from(outcome.links.iter().any(|link| test(&link.counts)))
        };
        let closed = |reason: &str| any(&|side| side.close.as_deref() == Some(reason));
        self.complete += u64::from(association.complete);
        self.path_failures += any_path(&|path| path.failures > 0);
        self.failures_of_all_paths +=
            any(&|s| !s.paths.is_empty() && s.paths.iter().all(|p| p.counts.failures > 0));
        self.fast_retransmissions += any_path(&|path| path.fast_retransmissions > 0);
        self.timeouts += any_path(&|path| path.timeouts > 0);
        self.heartbeats_lost += any_path(&|path| path.heartbeats_lost > 0);
        self.duplicates += any(&|side| side.counts.duplicates_received > 0);
        self.bad_checksums +=
            u64::from(outcome.endpoints.iter().any(|e| e.counts.bad_checksum > 0));
        self.full_queues += any_link(&|link| link.dropped_queue > 0);
        self.reordered += any_link(&|link| link.reordered > 0);
        let background = |test: &dyn Fn(&LinkCounters) -> bool| {
            u64::from(outcome.links.iter().any(|link| test(&link.background)))
        };
        self.background += background(&|link| link.delivered > 0);
        self.background_dropped += background(&|link| link.dropped_queue > 0);
        let flows = [&association.forward, &association.back];
        self.abandoned += u64::from(flows.iter().any(|flow| flow.messages_abandoned > 0));
        let removed = |change: &&PathChange| change.to.as_deref() == Some("removed");
        self.addresses_gone += u64::from(association.changes.iter().any(|c| removed(&c)));
        // Its number is a new path's.
        let back = |n: usize| {
            let gone = &association.changes[n];
            let after = &association.changes[n..];
            removed(&gone)
                && after.iter().any(|c| {
                    (c.side == gone.side && c.path == gone.path)
                        && c.from.as_deref() == Some("unconfirmed")
                })
        };
        self.addresses_back += u64::from((0..association.changes.len()).any(back));
        self.no_buffer += any(&|side| side.counts.dropped_no_buffer > 0);
        self.unreachable += closed("peer-unreachable");
        self.no_answer += closed("no-answer");
        self.blackouts += u64::from(!association.forward.blackouts.is_empty());
    }

    fn check(&self, cases: u64) {
        // Outages that nothing survives are a part of the game, but not the whole of it.
        assert!(self.complete * 10 >= cases * 8, "too few complete: {self:?}");
        let all = [
            self.path_failures,
            self.failures_of_all_paths,
            self.fast_retransmissions,
            self.timeouts,
            self.heartbeats_lost,
            self.duplicates,
            self.bad_checksums,
            self.full_queues,
            self.reordered,
            self.no_buffer,
            self.unreachable,
            self.no_answer,
            self.blackouts,
            self.background,
            self.background_dropped,
            self.abandoned,
            self.addresses_gone,
            self.addresses_back,
        ];
        assert!(all.iter().all(|&n| n * 1000 >= cases), "something hardly ever happened: {self:?}");
    }
}

#[test]
fn replay() {
    let Some(case) = number("POLYPATH_CASE") else { return };
    let drawn = Case::new(case);
    println!("{}", drawn.scenario.to_toml());
    let judged = outcome(&drawn).and_then(|outcome| {
        println!("{outcome:#?}");
        judge(&drawn, &outcome)
    });
    if let Err(what) = judged {
        panic!("case {case:#x}: {what}");
    }
}
