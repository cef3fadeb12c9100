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

    /// Goodput in Mbit/s from the second second to the eleventh.
    fn goodput(self, controller: &str) -> f64 {
        let options = RunOptions { check_every: Some(CheckEvery::End), ..RunOptions::default() };
        let times = [Span::secs(1), Span::secs(11)];
        let delivered = self.scenario(controller).delivered_by(&options, &times).unwrap();
        (delivered[1][0] - delivered[0][0]) as f64 * 8.0 / 10.0 / 1e6
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

/// Bytes that two flows with these controllers deliver from the 30th to the 60th second over a link
/// with a queue of its bandwidth-delay product. The second one is 2.3 s younger.
fn delivered_by(controllers: [&str; 2], rate: u32, rtt: u32, seed: u64) -> [f64; 2] {
    let mut text = format!(
        "schema = 1\nseed = {seed}\n[run]\ncheck_content = false\ncheck_checksums = false\n\
         check_every = \"end\"\n[[path]]\nname = \"p0\"\nrate = \"{rate} Mbit/s\"\n\
         delay = \"{} us\"\nqueue = \"{} B\"\nedge = {{}}\n\
         [[path]]\nname = \"p1\"\nshares = \"p0\"\n",
        rtt * 500,
        rate * 125 * rtt,
    );
    for (path, controller) in controllers.iter().enumerate() {
        let start = 2300 * path;
        text += &format!(
            "[[association]]\nname = \"flow{path}\"\nfrom = \"sender\"\nto = \"receiver\"\n\
             paths = [\"p{path}\"]\npolicy = {{ congestion = \"{controller}\" }}\n\
             workload = {{ size = \"10 GB\", message_size = \"64 KB\", start = \"{start} ms\" }}\n"
        );
    }
    let scenario = Scenario::from_toml(&text).unwrap();
    let times = [Span::secs(30), Span::secs(60)];
    let delivered = scenario.delivered_by(&RunOptions::default(), &times).unwrap();
    [0, 1].map(|flow| (delivered[1][flow] - delivered[0][flow]) as f64)
}

/// Jain's index of two flows with these controllers.
fn jain(controllers: [&str; 2], rate: u32, rtt: u32, seed: u64) -> f64 {
    let [a, b] = delivered_by(controllers, rate, rtt, seed);
    (a + b).powi(2) / (a * a + b * b) / 2.0
}

/// A flow that starts while another one has the whole link gets its share within half a minute.
#[test]
fn two_flows_share_a_link() {
    for (rate, rtt) in [(20, 20), (20, 100)] {
        for seed in 1..=2 {
            let index = jain(["bbr"; 2], rate, rtt, seed);
            assert!(index >= 0.95, "{rate} Mbit/s, {rtt} ms, seed {seed}: {index:.3}");
        }
    }
}

/// Each probe of BBR for bandwidth makes CUBIC lose packets, so that it must leave CUBIC the time
/// to grow in between.
#[test]
fn cubic_is_not_starved_by_bbr() {
    for seed in 1..=2 {
        for (rate, rtt) in [(20, 100), (100, 20)] {
            let index = jain(["bbr", "cubic"], rate, rtt, seed);
            assert!(index >= 0.9, "{rate} Mbit/s, {rtt} ms, seed {seed}: {index:.3}");
        }
    }
    // 833 packets in flight: CUBIC takes minutes to get its share.
    let [bbr, cubic] = delivered_by(["bbr", "cubic"], 100, 100, 1);
    assert!(cubic >= 0.2 * (bbr + cubic), "{:.3}", cubic / (bbr + cubic));
}
