//! The papers' grids: transfers of 4 MiB over two paths of 10 Mbit/s that lose packets or fail, by
//! the defaults and by each of the papers' policies with the papers' constants.

use polypath_sim::units::Span;
use polypath_sim::{RunOptions, Scenario};

/// Loss of the first and of the second path in percent, round-trip time of the second path in
/// milliseconds, and whether the first path fails after three seconds.
pub(crate) type Cell = (u32, u32, u32, bool);

/// The papers' policies: a name, `[transport]`, and `[policy]`.
const RIVALS: [(&str, &str, &str); 8] = [
    (
        "same+MFR+TS",
        PAPER,
        "retransmission = \"same\"\nloss = \"multiple-fast-retransmit\"\n\
                            rtt_sampling = \"timestamps\"\n",
    ),
    ("alternate+TS", PAPER, "retransmission = \"alternate\"\nrtt_sampling = \"timestamps\"\n"),
    (
        "hybrid+MFR+TS",
        PAPER,
        "retransmission = \"hybrid\"\nloss = \"multiple-fast-retransmit\"\n\
                              rtt_sampling = \"timestamps\"\n",
    ),
    (
        "hybrid+MFR, PMR 0",
        PMR_0,
        "retransmission = \"hybrid\"\n\
                                  loss = \"multiple-fast-retransmit\"\n\
                                  failover = \"dormant-hop\"\n",
    ),
    ("RTX-CWND", CMT, "retransmission = \"cwnd\"\n"),
    ("RTX-SSTHRESH", CMT, "retransmission = \"ssthresh\"\n"),
    ("RTX-LOSSRATE", CMT, "retransmission = \"loss-rate\"\n"),
    ("CMT-PF", CMT, "retransmission = \"cwnd\"\nfailover = \"cmt-potentially-failed\"\n"),
];

/// Caro 2006: one path at a time.
const PAPER: &str = "profile = \"paper-2006\"\nreceive_buffer = \"64 KiB\"\n";
const PMR_0: &str = "profile = \"paper-2006\"\nreceive_buffer = \"64 KiB\"\npath_max_retrans = 0\n";
/// Iyengar 2004, Natarajan 2009: all paths at once.
const CMT: &str =
    "profile = \"paper-2006\"\nreceive_buffer = \"16 MiB\"\nsend_buffer = \"32 MiB\"\n";
const CMT_POLICY: &str = "scheduler = \"concurrent\"\nloss = \"split-fast-retransmit\"\n\
                          cwnd_update = \"cuc-v2\"\nack = \"delayed-cmt\"\n";

pub(crate) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for rtt in [90, 1040] {
        for first in [1, 3, 5, 8, 10] {
            cells.extend([0, 1, 2, 4, 6, 8, 10].map(|second| (first, second, rtt, false)));
        }
        for first in [0, 3, 8] {
            cells.extend([0, 2, 5, 10].map(|second| (first, second, rtt, true)));
        }
    }
    cells
}

pub(crate) fn name((first, second, rtt, fails): Cell) -> String {
    format!("{first} / {second} | {rtt} | {} |", if fails { "yes" } else { "" })
}

/// Seconds from the first DATA to the last byte; the limit of the run if it does not arrive.
fn time(cell: Cell, transport: &str, policy: &str, seed: u64) -> f64 {
    const LIMIT: f64 = 3600.0;
    let (first, second, rtt, fails) = cell;
    let path = |name: &str, rtt: u32, loss: u32| {
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"10 Mbit/s\"\ndelay = \"{} us\"\n\
             queue = \"50 packets\"\nloss = \"{loss} %\"\n",
            rtt * 500
        )
    };
    let fault =
        if fails { "[[fault]]\nat = \"3 s\"\npath = \"first\"\nkind = \"down\"\n" } else { "" };
    let text = format!(
        "schema = 1\n{}{}{fault}[transport]\n{transport}[policy]\n{policy}\
         [workload]\nkind = \"bulk\"\nsize = \"4 MiB\"\n\
         [run]\ncheck_content = false\ncheck_checksums = false\ncheck_every = \"end\"\n",
        path("first", 90, first),
        path("second", rtt, second),
    );
    let mut scenario = Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    scenario.run.limit = Span::millis((LIMIT * 1e3) as u64);
    let options = RunOptions { seed: Some(seed), ..RunOptions::default() };
    let outcome = scenario.run(&options).unwrap_or_else(|error| panic!("{error}"));
    let flow = outcome.associations.first().filter(|association| association.complete);
    flow.and_then(|association| association.forward.time_from_first_data).unwrap_or(LIMIT)
}

/// Transfer times of the defaults and of the best of the papers' policies in one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    /// Mean time of the defaults in seconds.
    pub(crate) own: f64,
    /// The best policy, and its mean time.
    pub(crate) best: (&'static str, f64),
    /// The mean difference to it, and half of its 95 % interval.
    pub(crate) difference: (f64, f64),
}

/// Runs a cell with these settings and with each of the papers' policies; the seeds are the same.
pub(crate) fn compare(cell: Cell, settings: (&str, &str), seeds: u64) -> Comparison {
    let times = |transport: &str, policy: &str| -> Vec<f64> {
        (1..=seeds).map(|seed| time(cell, transport, policy, seed)).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let own = times(settings.0, settings.1);
    let rivals = RIVALS.map(|(name, transport, policy)| {
        let all = if transport == CMT { CMT_POLICY } else { "" };
        (name, times(transport, &format!("{all}{policy}")))
    });
    let best = rivals.iter().min_by(|a, b| mean(&a.1).total_cmp(&mean(&b.1)));
    let (name, best) = best.expect("there are policies");
    let differences: Vec<f64> = own.iter().zip(best).map(|(own, best)| own - best).collect();
    let middle = mean(&differences);
    let squares = differences.iter().map(|d| (d - middle).powi(2)).sum::<f64>();
    let n = differences.len() as f64;
    let deviation = (squares / (n - 1.0).max(1.0)).sqrt();
    // Student's distribution for 30 runs.
    let half = 2.045 * deviation / n.sqrt();
    Comparison { own: mean(&own), best: (name, mean(best)), difference: (middle, half) }
}
