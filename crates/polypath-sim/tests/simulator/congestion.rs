//! CUBIC and BBR fill a link, keep its queue short, and share it.

use polypath_sim::outcome::Outcome;
use polypath_sim::scenario::{CheckEvery, Series};
use polypath_sim::units::Span;
use polypath_sim::{RunOptions, Scenario};

/// A link for one flow.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// In Mbit/s.
    rate: u32,
    /// Round-trip time in milliseconds.
    rtt: u32,
    /// Packets of a thousand that are lost in each direction.
    loss: u32,
    /// Queue in bandwidth-delay products.
    queue: f64,
}

/// 1452 bytes of each packet of 1500 are payload.
const PAYLOAD: f64 = 1452.0 / 1500.0;

impl Link {
    const fn new(rate: u32, rtt: u32) -> Self {
        Self { rate, rtt, loss: 0, queue: 1.0 }
    }

    /// A transfer that outlasts the run, with buffers that do not limit it. Lost retransmissions
    /// are retransmitted again without a timeout.
    fn scenario(self, controller: &str) -> Scenario {
        let queue = f64::from(self.rate) * 125.0 * f64::from(self.rtt) * self.queue;
        let text = format!(
            r#"
            schema = 1
            path = [{{ rate = "{} Mbit/s", delay = "{} us", queue = "{} B", loss = "{} %" }}]
            [transport]
            profile = "rfc9260"
            receive_buffer = "64 MiB"
            send_buffer = "64 MiB"
            initial_cwnd = 10
            [policy]
            congestion = "{controller}"
            loss = "multiple-fast-retransmit"
            [workload]
            kind = "bulk"
            size = "4 GB"
            [run]
            check_content = false
            check_checksums = false
            "#,
            self.rate,
            self.rtt * 500,
            (queue as u64).max(3000),
            f64::from(self.loss) / 10.0,
        );
        Scenario::from_toml(&text).unwrap()
    }

    /// Payload delivered in the first `secs` seconds.
    fn delivered(self, controller: &str, secs: u64) -> u64 {
        let mut scenario = self.scenario(controller);
        scenario.run.limit = Span::secs(secs);
        let options = RunOptions { check_every: Some(CheckEvery::End), ..RunOptions::default() };
        scenario.run(&options).unwrap().associations[0].forward.bytes_delivered
    }

    /// Goodput in Mbit/s from the second second to the eleventh.
    fn goodput(self, controller: &str) -> f64 {
        let bytes = self.delivered(controller, 11) - self.delivered(controller, 1);
        bytes as f64 * 8.0 / 10.0 / 1e6
    }

    /// The share of the link's capacity that a flow uses after the first second.
    fn share(self, controller: &str) -> f64 {
        self.goodput(controller) / PAYLOAD / f64::from(self.rate)
    }

    /// The mean queueing delay in milliseconds from the third second to the fifteenth.
    fn queueing(self, controller: &str) -> f64 {
        let mut scenario = self.scenario(controller);
        scenario.run.limit = Span::secs(15);
        let series = Some(Series { interval: Some(Span::millis(10)) });
        let options =
            RunOptions { series, check_every: Some(CheckEvery::End), ..RunOptions::default() };
        mean_srtt(&scenario.run(&options).unwrap(), 3.0) - f64::from(self.rtt)
    }
}

/// The mean of the sender's smoothed round-trip times after `from` seconds, in milliseconds.
pub(crate) fn mean_srtt(outcome: &Outcome, from: f64) -> f64 {
    let sender = outcome.series.iter().find(|series| series.side == "sender").unwrap();
    let late = sender.time.iter().zip(&sender.srtt).filter(|(time, _)| **time > from);
    let srtt: Vec<f64> = late.map(|(_, srtt)| srtt * 1e3).collect();
    srtt.iter().sum::<f64>() / srtt.len() as f64
}

fn check(controller: &str, least: f64, links: &[Link]) {
    for link in links {
        let share = link.share(controller);
        assert!(share >= least, "{controller} fills {share:.3} of {link:?}");
    }
}

const LOSS_FREE: [Link; 2] = [Link::new(100, 20), Link::new(100, 100)];

#[test]
fn cubic_fills_a_link_with_a_queue_of_its_product() {
    check("cubic", 0.95, &LOSS_FREE);
}

#[test]
fn bbr_fills_a_link_with_a_queue_of_its_product() {
    check("bbr", 0.95, &LOSS_FREE);
}

#[test]
fn both_fill_a_link_with_a_short_queue() {
    for controller in ["cubic", "bbr"] {
        check(controller, 0.9, &LOSS_FREE.map(|link| Link { queue: 0.25, ..link }));
    }
}

#[test]
fn bbr_fills_a_link_that_loses_packets() {
    check("bbr", 0.85, &LOSS_FREE.map(|link| Link { loss: 10, ..link }));
    check("bbr", 0.8, &[Link { loss: 30, ..LOSS_FREE[0] }]);
}

/// RFC 9438 5.1, Tables 1 and 2: a window of 12 packets on average if one of a hundred is lost.
#[test]
fn cubic_has_the_window_of_its_response_function() {
    for link in LOSS_FREE.map(|link| Link { loss: 10, ..link }) {
        let expected = 12.0 * 1452.0 * 8.0 / f64::from(link.rtt) / 1e3;
        let goodput = link.goodput("cubic");
        assert!(goodput >= expected, "{goodput:.2} instead of {expected:.2} Mbit/s on {link:?}");
    }
}

#[test]
fn the_standing_queue_of_bbr_is_at_most_half_of_cubics() {
    let bloated = Link { queue: 10.0, ..Link::new(20, 40) };
    let (cubic, bbr) = (bloated.queueing("cubic"), bloated.queueing("bbr"));
    assert!(cubic > 40.0, "{cubic:.1} ms");
    assert!(bbr <= cubic / 2.0, "{bbr:.1} and {cubic:.1} ms");
}

/// Jain's index of two flows that share `link`, the second one 2.3 s younger, from the 30th to the
/// 60th second.
fn jain(rate: u32, rtt: u32, seed: u64) -> f64 {
    let mut text = format!(
        "schema = 1\nseed = {seed}\n[run]\ncheck_content = false\ncheck_checksums = false\n\
         check_every = \"end\"\n[[path]]\nname = \"p0\"\nrate = \"{rate} Mbit/s\"\n\
         delay = \"{} us\"\nqueue = \"{} B\"\nedge = {{}}\n\
         [[path]]\nname = \"p1\"\nshares = \"p0\"\n",
        rtt * 500,
        rate * 125 * rtt,
    );
    for (path, start) in [0, 2300].into_iter().enumerate() {
        text += &format!(
            "[[association]]\nname = \"flow{path}\"\nfrom = \"sender\"\nto = \"receiver\"\n\
             paths = [\"p{path}\"]\nworkload = {{ size = \"10 GB\", message_size = \"64 KB\", \
             start = \"{start} ms\" }}\n"
        );
    }
    let mut scenario = Scenario::from_toml(&text).unwrap();
    let mut delivered = |secs| {
        scenario.run.limit = Span::secs(secs);
        let outcome = scenario.run(&RunOptions::default()).unwrap();
        outcome.associations.iter().map(|a| a.forward.bytes_delivered as f64).collect::<Vec<_>>()
    };
    let (half, all) = (delivered(30), delivered(60));
    let (a, b) = (all[0] - half[0], all[1] - half[1]);
    (a + b).powi(2) / (a * a + b * b) / 2.0
}

/// A flow that starts while another one has the whole link gets its share within half a minute.
#[test]
fn two_flows_share_a_link() {
    for (rate, rtt) in [(20, 20), (20, 100)] {
        for seed in 1..=2 {
            let index = jain(rate, rtt, seed);
            assert!(index >= 0.95, "{rate} Mbit/s, {rtt} ms, seed {seed}: {index:.3}");
        }
    }
}
