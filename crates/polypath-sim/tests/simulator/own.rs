//! Applications and probes from outside the crate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polypath_proto::{Event, PathState};
use polypath_sim::application::{Application, Applications, Message};
use polypath_sim::outcome::End;
use polypath_sim::probe::{Probe, Seen as Sample};
use polypath_sim::random::Random;
use polypath_sim::scenario::{
    AssociationSpec, Direction, Fault, PathSpec, Series, Side, Workload, WorkloadKind,
};
use polypath_sim::units::{Rate, Size, Span};
use polypath_sim::{RunOptions, Scenario, Time};

/// Messages received: side, time and size.
type Seen = Arc<Mutex<Vec<(Side, Time, u32)>>>;

/// Sends messages of random sizes, each when the one before was answered, and notes what it saw.
#[derive(Debug)]
struct Dialogue {
    side: Side,
    left: u32,
    /// Number of messages that may be sent now.
    allowed: u32,
    dice: Random,
    seen: Seen,
}

impl Application for Dialogue {
    fn next(&mut self, _: Time) -> Option<Message> {
        if self.is_finished() || self.allowed == 0 {
            return None;
        }
        (self.left, self.allowed) = (self.left - 1, self.allowed - 1);
        Some(Message { stream: 1, ..Message::new(self.dice.between(1, 40_000) as u32) })
    }

    fn received(&mut self, now: Time, message: &Message) {
        assert_eq!(message.stream, 1);
        self.allowed += 1;
        self.seen.lock().unwrap().push((self.side, now, message.size));
    }

    fn is_finished(&self) -> bool {
        self.left == 0
    }
}

fn path() -> PathSpec {
    PathSpec::new(Rate::mbit(10), Span::millis(20))
}

fn dialogue(seen: &Seen) -> Applications {
    let seen = Arc::clone(seen);
    Applications::default().with("dialogue", move |side, dice| {
        let allowed = u32::from(side == Side::Sender);
        Box::new(Dialogue { side, left: 20, allowed, dice, seen: Arc::clone(&seen) })
    })
}

#[test]
fn an_application_of_ones_own_sends_and_answers() {
    let mut workload = Workload::application("dialogue");
    workload.direction = Some(Direction::Both);
    let scenario = Scenario::new("dialogue").path(path()).path(path()).workload(workload);
    let run = |seed| {
        let seen = Arc::default();
        let options =
            RunOptions { seed: Some(seed), applications: dialogue(&seen), ..RunOptions::default() };
        let outcome = scenario.run(&options).unwrap();
        assert_eq!(outcome.end, End::Closed);
        let association = &outcome.associations[0];
        assert!(association.complete);
        assert_eq!(association.forward.messages_delivered, 20);
        assert_eq!(association.back.messages_delivered, 20);
        drop(options);
        Arc::into_inner(seen).unwrap().into_inner().unwrap()
    };
    let seen = run(7);
    // Messages take turns, and each takes at least the delay of a path.
    for pair in seen.windows(2) {
        assert_ne!(pair[0].0, pair[1].0);
        assert!(pair[1].1.since(pair[0].1) >= Duration::from_millis(20));
    }
    let sizes = seen.iter().map(|(_, _, size)| *size);
    assert!(sizes.clone().max() > Some(20_000) && sizes.min() < Some(20_000));
    assert_eq!(run(7), seen, "the same seed");
    assert_ne!(run(8), seen, "another seed");
}

#[test]
fn an_application_that_is_not_provided_is_an_error_with_a_suggestion() {
    let text = "schema = 1\n[[node]]\nname = \"a\"\naddresses = [\"10.0.0.1\"]\n\
                [[node]]\nname = \"b\"\naddresses = [\"10.0.0.2\"]\n\
                [[link]]\nbetween = [\"a.0\", \"b.0\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
                [[association]]\nfrom = \"a\"\nto = \"b\"\n\
                workload = { kind = \"application\", application = \"dialog\" }\n";
    let mut scenario = Scenario::from_toml(text).unwrap();
    let options = RunOptions { applications: dialogue(&Arc::default()), ..RunOptions::default() };
    assert_eq!(
        scenario.run(&options).unwrap_err().to_string(),
        "association[0].workload.application: no application \"dialog\"; did you mean \
         \"dialogue\"? allowed: dialogue"
    );
    let mut workload = Workload::application("dialogue");
    workload.direction = Some(Direction::Both);
    scenario.associations = vec![AssociationSpec::new("a", "b", workload)];
    assert!(scenario.run(&options).unwrap().associations[0].complete);

    let wrong = |change: fn(&mut Workload)| {
        let mut workload = Workload::application("dialogue");
        change(&mut workload);
        scenario
            .clone()
            .association(AssociationSpec::new("a", "b", workload))
            .validate()
            .unwrap_err()
            .to_string()
    };
    let error = wrong(|w| w.size = Some(Size(1)));
    assert!(error.ends_with("size: does not belong to kind \"application\""), "{error}");
    let error = wrong(|w| w.application = None);
    assert!(error.ends_with("application: missing; kind \"application\" needs it"), "{error}");
    let error = wrong(|w| w.kind = WorkloadKind::Periodic);
    assert!(error.ends_with("messages: missing; kind \"periodic\" needs it"), "{error}");
}

#[test]
fn a_message_that_cannot_be_sent_ends_the_run_with_its_reason() {
    #[derive(Debug)]
    struct Empty;
    impl Application for Empty {
        fn next(&mut self, _: Time) -> Option<Message> {
            Some(Message::new(0))
        }
        fn is_finished(&self) -> bool {
            false
        }
    }
    let scenario = Scenario::new("empty").path(path()).workload(Workload::application("empty"));
    let applications = Applications::default().with("empty", |_, _| Box::new(Empty));
    let error = scenario.run(&RunOptions { applications, ..RunOptions::default() }).unwrap_err();
    assert!(error.to_string().contains("message 0 was refused"), "{error}");
}

/// Counts samples, and keeps the changes of state that it was notified of.
#[derive(Debug, Default)]
struct Observer {
    interval: Option<Duration>,
    samples: BTreeMap<(usize, bool), Vec<Time>>,
    failed: Vec<Time>,
    most: u64,
}

impl Probe for Observer {
    fn interval(&self) -> Option<Duration> {
        self.interval
    }

    fn sample(&mut self, now: Time, seen: &Sample<'_>) {
        let key = (seen.number, seen.side == Side::Sender);
        self.samples.entry(key).or_default().push(now);
        if seen.side == Side::Sender {
            let in_flight: u32 = seen.association.paths().map(|path| path.in_flight).sum();
            self.most = self.most.max(in_flight.into());
        }
    }

    fn event(&mut self, _: Time, seen: &Sample<'_>, event: &Event) {
        assert_eq!((seen.number, seen.name), (0, "main"));
        if let Event::PathState { to: PathState::PotentiallyFailed, at, .. } = event {
            self.failed.push(*at);
        }
    }
}

#[test]
fn a_probe_sees_what_the_series_and_the_outcome_say() {
    let scenario = Scenario::new("probed")
        .path(path())
        .path(path())
        .workload(Workload::bulk(Size(4_000_000)))
        .fault(Fault::down(0, Span::secs(1)));
    let options = RunOptions { series: Some(Series::default()), ..RunOptions::default() };
    let mut observer = Observer::default();
    let outcome = scenario.run_probed(&options, &mut observer).unwrap();
    let plain = scenario.run(&RunOptions::default()).unwrap();
    assert_eq!(outcome.associations, plain.associations, "a probe changes nothing");

    // The series has a sample where a path has changed: the probe was asked at each of them.
    let times = &observer.samples[&(0, true)];
    assert!(outcome.series.iter().any(|series| series.time.len() > 100));
    for series in outcome.series.iter().filter(|series| series.side == "sender") {
        for at in &series.time {
            assert!(times.iter().any(|time| time.as_secs_f64() == *at), "no sample at {at} s");
        }
    }
    let failed: Vec<f64> = observer.failed.iter().map(|at| at.as_secs_f64()).collect();
    let changes = outcome.associations[0].changes.iter();
    let expected: Vec<f64> = changes
        .filter(|change| change.to.as_deref() == Some("potentially failed"))
        .map(|change| change.at)
        .collect();
    assert!(!failed.is_empty());
    assert_eq!(failed, expected);
    assert!(observer.most > 50_000, "two paths of 10 Mbit/s times 40 ms: {}", observer.most);
}

#[test]
fn a_probe_with_an_interval_is_asked_at_its_times() {
    let scenario = Scenario::new("probed").path(path()).workload(Workload::bulk(Size(1_000_000)));
    let interval = Some(Duration::from_millis(100));
    let mut observer = Observer { interval, ..Observer::default() };
    let outcome = scenario.run_probed(&RunOptions::default(), &mut observer).unwrap();
    let times = &observer.samples[&(0, true)];
    let expected = (outcome.ended_at / 0.1) as usize;
    assert!(
        times.len() >= expected - 1 && times.len() <= expected,
        "{} of {expected}",
        times.len()
    );
    assert!(times.iter().all(|at| at.as_nanos() % 100_000_000 == 0));
}
