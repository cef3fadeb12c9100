//! The links that docs/links.md states, and what one or two transfers do on them.

use polypath_sim::scenario::{CheckEvery, Series};
use polypath_sim::units::Span;
use polypath_sim::{Outcome, RunOptions, Scenario};

/// 1452 bytes of each packet of 1500 are payload.
pub(crate) const PAYLOAD: f64 = 1452.0 / 1500.0;
/// Size of a message: 40 packets. With one message in each, stream sequence numbers would limit
/// the window to 2^15 packets.
const MESSAGE: u32 = 40 * 1452;
/// Payload of the initial window in bytes.
const INITIAL: f64 = 14_520.0;

/// A link that one flow uses, or two.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// Its group in the table.
    pub(crate) group: &'static str,
    /// In Mbit/s.
    pub(crate) rate: u32,
    /// Round-trip time in milliseconds, without a queue.
    pub(crate) rtt: u32,
    /// Packets lost in each direction, in percent.
    pub(crate) loss: f64,
    /// Queue in bandwidth-delay products.
    pub(crate) queue: f64,
    /// Further parameters of the path, in TOML.
    pub(crate) more: String,
    /// Rates of a trace: the time in milliseconds and the rate in Kbit/s of each step.
    pub(crate) trace: Vec<(u32, u32)>,
    /// What payload is compared with, if not the rate; in Mbit/s.
    pub(crate) carries: Option<f64>,
    /// The second flow's settings start with those of the first.
    pub(crate) flows: u32,
}

impl Cell {
    pub(crate) fn new(rate: u32, rtt: u32) -> Self {
        Self {
            group: "grid",
            rate,
            rtt,
            loss: 0.0,
            queue: 1.0,
            more: String::new(),
            trace: Vec::new(),
            carries: None,
            flows: 1,
        }
    }

    /// The seconds that a run takes: more than ten, and a hundred round trips.
    pub(crate) fn seconds(&self) -> u64 {
        11.max(u64::from(self.rtt) / 10).max(if self.flows > 1 { 60 } else { 0 })
    }

    /// Bytes of payload per second that the link carries at most.
    pub(crate) fn capacity(&self) -> f64 {
        self.carries.unwrap_or_else(|| f64::from(self.rate)) * 1e6 / 8.0 * PAYLOAD
    }

    /// The bytes that a sender delivers in `secs` seconds if its window doubles in each round trip
    /// after two for the handshake, until it fills the link.
    pub(crate) fn doubling(&self, secs: f64) -> f64 {
        let rtt = f64::from(self.rtt) / 1e3;
        let full = self.capacity() * rtt;
        let (mut at, mut window, mut bytes) = (2.0 * rtt, INITIAL, 0.0);
        while window < full && at < secs {
            bytes += window;
            window *= 2.0;
            at += rtt;
        }
        bytes + (secs - at).max(0.0) * self.capacity()
    }

    /// The network alone.
    pub(crate) fn toml(&self) -> String {
        let queue = (f64::from(self.rate * 125) * f64::from(self.rtt) * self.queue) as u64;
        let mut text = format!(
            "schema = 1\n[[path]]\nname = \"p0\"\nrate = \"{} Mbit/s\"\ndelay = \"{} us\"\n\
             queue = \"{} B\"\n",
            self.rate,
            self.rtt * 500,
            queue.max(3000),
        );
        if self.loss > 0.0 {
            text += &format!("loss = \"{} %\"\n", self.loss);
        }
        text += &self.more;
        if self.flows > 1 {
            text += "edge = {}\n";
        }
        for (at, rate) in &self.trace {
            text += &format!(
                "\n[[fault]]\nat = \"{at} ms\"\npath = \"p0\"\nkind = \"rate\"\n\
                 direction = \"forward\"\nrate = \"{rate} kbit/s\"\n"
            );
        }
        text
    }

    /// The scenario of transfers that outlast the run; `settings` are lines of TOML.
    pub(crate) fn scenario(&self, settings: &str) -> Scenario {
        let mut text = self.toml();
        if self.flows > 1 {
            text += "[[path]]\nname = \"p1\"\nshares = \"p0\"\n";
            for (i, at) in [0, 2300].into_iter().enumerate() {
                text += &format!(
                    "[[association]]\nname = \"flow{i}\"\nfrom = \"sender\"\nto = \"receiver\"\n\
                     paths = [\"p{i}\"]\n\
                     workload = {{ size = \"100 GB\", message_size = \"{MESSAGE} B\", \
                     start = \"{at} ms\" }}\n"
                );
            }
        } else {
            text += &format!(
                "\n[workload]\nkind = \"bulk\"\nsize = \"100 GB\"\nmessage_size = \"{MESSAGE} B\"\n"
            );
        }
        text += &format!(
            "[run]\ncheck_content = false\ncheck_checksums = false\ncheck_every = \"end\"\n{settings}\n"
        );
        Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Runs it for `secs` seconds.
    pub(crate) fn run(&self, settings: &str, secs: u64, seed: u64) -> Outcome {
        let mut scenario = self.scenario(settings);
        scenario.run.limit = Span::secs(secs);
        let options = RunOptions {
            seed: Some(seed),
            check_every: Some(CheckEvery::End),
            series: Some(Series { interval: Some(Span::millis(20)) }),
            ..RunOptions::default()
        };
        scenario.run(&options).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// What a run shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Goodput in Mbit/s, overall, and from the second second on.
    pub(crate) goodput: f64,
    pub(crate) after: f64,
    /// The latter as a share of what payload could use.
    pub(crate) share: f64,
    /// Goodput overall as a share of what an ideal start delivers.
    pub(crate) of_ideal: f64,
    /// Mean and 95th percentile of the queue in milliseconds in the second half.
    pub(crate) queue: f64,
    pub(crate) queue_95: f64,
    /// Retransmitted chunks as a share of all, in percent; timeouts.
    pub(crate) retransmitted: f64,
    pub(crate) timeouts: u64,
    /// Jain's index of the goodput of the flows in the second half.
    pub(crate) jain: f64,
    /// CPU time in seconds per GB of payload: both hosts and the network.
    pub(crate) cpu: f64,
}

fn delivered(outcome: &Outcome) -> Vec<f64> {
    outcome.associations.iter().map(|a| a.forward.bytes_delivered as f64).collect()
}

/// Seconds of CPU time that this thread has used.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

pub(crate) fn measure(cell: &Cell, settings: &str, seed: u64) -> Row {
    let secs = cell.seconds();
    let first = delivered(&cell.run(settings, 1, seed)).iter().sum::<f64>();
    let before = cpu();
    let outcome = cell.run(settings, secs, seed);
    let used = cpu() - before;
    let each = delivered(&outcome);
    let all: f64 = each.iter().sum();
    let after = (all - first) / (secs - 1) as f64;
    let jain = if cell.flows > 1 {
        let half = delivered(&cell.run(settings, secs / 2, seed));
        let late: Vec<f64> = each.iter().zip(half).map(|(all, half)| all - half).collect();
        let squares: f64 = late.iter().map(|x| x * x).sum();
        late.iter().sum::<f64>().powi(2) / squares / late.len() as f64
    } else {
        1.0
    };
    let sender = outcome.series.iter().find(|series| series.side == "sender");
    let mut queue: Vec<f64> = sender.map_or_else(Vec::new, |s| {
        let late = s.time.iter().zip(&s.srtt).filter(|(time, _)| **time > secs as f64 / 2.0);
        late.map(|(_, srtt)| srtt * 1e3 - f64::from(cell.rtt)).collect()
    });
    queue.sort_by(f64::total_cmp);
    let counts = outcome.associations.iter().map(|a| a.sender.paths[0].counts);
    let [mut sent, mut again, mut timeouts] = [0, 0, 0];
    for c in counts {
        sent += c.data_chunks_sent;
        again += c.fast_retransmissions + c.timeout_retransmissions;
        timeouts += c.timeouts;
    }
    Row {
        goodput: all * 8.0 / secs as f64 / 1e6,
        after: after * 8.0 / 1e6,
        share: after / cell.capacity(),
        of_ideal: all / cell.doubling(secs as f64),
        queue: queue.iter().sum::<f64>() / queue.len().max(1) as f64,
        queue_95: queue.get(queue.len() * 95 / 100).copied().unwrap_or(0.0),
        retransmitted: again as f64 * 100.0 / (sent + again).max(1) as f64,
        timeouts,
        jain,
        cpu: used / (all / 1e9),
    }
}

/// A trace like those of LTE: the rate moves by up to a third every 100 ms, between 1 and `top`
/// Mbit/s, and falls to a tenth now and then.
fn lte(top: u32, seed: u64) -> (Vec<(u32, u32)>, f64) {
    let mut state = seed;
    let mut random = |below: u64| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    };
    let (mut rate, mut sum, mut steps) = (f64::from(top) * 500.0, 0.0, Vec::new());
    for at in (100..11_000).step_by(100) {
        rate *= 0.75 + random(59) as f64 / 100.0;
        rate = rate.clamp(1000.0, f64::from(top) * 1000.0);
        let now = if random(20) == 0 { (rate / 10.0).max(500.0) } else { rate };
        steps.push((at, now as u32));
        sum += if at >= 1000 { now } else { 0.0 };
    }
    let carries = sum / 100.0 / 1000.0;
    (steps, carries)
}

/// All cells.
pub(crate) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for rate in [20, 100, 1000] {
        for rtt in [10, 20, 100, 200, 600] {
            for loss in [0.0, 0.01, 0.1, 1.0, 3.0] {
                for queue in [0.25, 1.0, 4.0] {
                    cells.push(Cell { loss, queue, ..Cell::new(rate, rtt) });
                }
            }
        }
    }
    let links = [(20, 20), (20, 100), (100, 20), (100, 100)];
    for (rate, rtt) in links {
        let base = Cell::new(rate, rtt);
        let second = 1000.0 / f64::from(rtt);
        cells.push(Cell { group: "bloat", queue: second, ..base.clone() });
        let more =
            "loss = { good_to_bad = \"0.2 %\", bad_to_good = \"20 %\", loss_bad = \"50 %\" }\n";
        cells.push(Cell { group: "bursts", more: more.into(), ..base.clone() });
        for delay in [1, 5, 20] {
            let more = format!("reorder = {{ probability = \"10 %\", delay = \"{delay} ms\" }}\n");
            cells.push(Cell { group: "reordering", more, ..base.clone() });
        }
        let more = "back = { loss = \"5 %\" }\n";
        cells.push(Cell { group: "ack-loss", more: more.into(), ..base.clone() });
        for burst in [32, 250] {
            let kept = f64::from(rate) / 2.0;
            let more = format!(
                "forward = {{ policer = {{ rate = \"{kept} Mbit/s\", burst = \"{burst} KB\" }} }}\n"
            );
            cells.push(Cell { group: "policer", more, carries: Some(kept), ..base.clone() });
        }
        cells.push(Cell { group: "two", flows: 2, ..base.clone() });
        cells.push(Cell { group: "two", flows: 2, queue: 4.0, ..base });
    }
    for (top, rtt, seed) in [(20, 50, 1), (50, 50, 2), (100, 50, 3), (20, 100, 4)] {
        let (trace, carries) = lte(top, seed);
        let queue = 2.0;
        let base = Cell { group: "trace", queue, ..Cell::new(top, rtt) };
        cells.push(Cell { trace, carries: Some(carries), ..base });
    }
    cells
}

impl std::fmt::Display for Cell {
    /// The cell's name: group, rate, round-trip time, loss, queue, and what else it has.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}:{}:{}", self.group, self.rate, self.rtt, self.loss, self.queue)?;
        if let Some(delay) = self.more.split("delay = \"").nth(1) {
            write!(f, ":{}", delay.split(' ').next().unwrap_or_default())?;
        }
        if let Some(burst) = self.more.split("burst = \"").nth(1) {
            write!(f, ":{}", burst.split(' ').next().unwrap_or_default())?;
        }
        Ok(())
    }
}
