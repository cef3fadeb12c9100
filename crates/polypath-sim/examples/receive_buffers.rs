//! Goodput of concurrent multipath transfer with a bounded receive buffer: prints the tables of
//! docs/cmt.md.

use polypath_sim::{RunOptions, Scenario};

/// Rate in kbit/s and one-way delay in ms of each path.
type Paths = &'static [(u32, u32)];

const SETS: &[(&str, Paths)] = &[
    ("10 and 2 Mbit/s, 20 and 200 ms", &[(10_000, 20), (2_000, 200)]),
    ("10 and 2 Mbit/s, 10 and 100 ms", &[(10_000, 10), (2_000, 100)]),
    ("10 and 10 Mbit/s, 10 and 100 ms", &[(10_000, 10), (10_000, 100)]),
    ("50 and 20 Mbit/s, 5 and 40 ms", &[(50_000, 5), (20_000, 40)]),
    ("10, 5 and 2 Mbit/s, 20, 60 and 200 ms", &[(10_000, 20), (5_000, 60), (2_000, 200)]),
    ("2 and 10 Mbit/s, 20 and 200 ms", &[(2_000, 20), (10_000, 200)]),
    ("10 and 10 Mbit/s, 45 ms", &[(10_000, 45), (10_000, 45)]),
    ("three of 10 Mbit/s, 45 ms", &[(10_000, 45), (10_000, 45), (10_000, 45)]),
];
const BYTES: u64 = 30_000_000;
const SCHEDULERS: [&str; 2] = ["concurrent", "delay-aware"];

/// Goodput in bytes per second with a receive buffer of `buffer` bytes.
fn goodput(paths: &[(u32, u32)], buffer: u64, scheduler: &str, bytes: u64) -> f64 {
    run(
        paths,
        &format!("receive_buffer = \"{buffer} B\"\nsend_buffer = \"8 MiB\""),
        scheduler,
        bytes,
    )
}

fn run(paths: &[(u32, u32)], transport: &str, scheduler: &str, bytes: u64) -> f64 {
    let mut text = String::from("schema = 1\n");
    for (rate, delay) in paths {
        text += &format!(
            "[[path]]\nrate = \"{rate} kbit/s\"\ndelay = \"{delay} ms\"\nqueue = \"100 packets\"\n"
        );
    }
    text += &format!(
        "[transport]\nprofile = \"cmt\"\n{transport}\n[policy]\nscheduler = \"{scheduler}\"\n\
         [workload]\nkind = \"bulk\"\nsize = \"{bytes} B\"\n[run]\ncheck_every = \"end\"\n"
    );
    let outcome = Scenario::from_toml(&text).unwrap().run(&RunOptions::default()).unwrap();
    bytes as f64 / outcome.associations[0].forward.time_from_first_data.unwrap()
}

fn main() {
    println!("| paths | sum of products | scheduler | 1x | 1.5x | 2x | 4x | 8x | 16x |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, paths) in SETS {
        let total: u32 = paths.iter().map(|p| p.0).sum();
        // Sum of rate times round-trip time in bytes; kbit/s times ms are bits.
        let products: u64 = paths.iter().map(|&(rate, delay)| u64::from(rate * delay) / 4).sum();
        for scheduler in SCHEDULERS {
            let mut row = format!("| {name} | {} kB | {scheduler} |", products / 1000);
            for half in [2, 3, 4, 8, 16, 32] {
                let buffer = products * half / 2;
                let share = |rate: u32| BYTES * u64::from(rate) / u64::from(total);
                let alone: f64 =
                    paths.iter().map(|&p| goodput(&[p], buffer, scheduler, share(p.0))).sum();
                let together = goodput(paths, buffer, scheduler, BYTES);
                row += &format!(" {:.0} % |", 100.0 * together / alone);
            }
            println!("{row}");
        }
    }
    println!();
    println!("| receive, send buffer | scheduler | neither | NR-SACK | split | both |");
    println!("|---|---|---|---|---|---|");
    for (receive, send, splitting) in
        [(300, 8000, "receive"), (600, 8000, "receive"), (4000, 300, "send"), (4000, 600, "send")]
    {
        for scheduler in SCHEDULERS {
            let mut row = format!("| {receive}, {send} kB | {scheduler} |");
            for (nr_sack, split) in [(false, false), (true, false), (false, true), (true, true)] {
                let splitting = if split { splitting } else { "off" };
                let transport = format!(
                    "receive_buffer = \"{receive} kB\"\nsend_buffer = \"{send} kB\"\nnr_sack = {nr_sack}\n\
                     buffer_splitting = \"{splitting}\""
                );
                let rate = run(SETS[0].1, &transport, scheduler, BYTES);
                row += &format!(" {:.1} |", rate * 8.0 / 1e6);
            }
            println!("{row}");
        }
    }
}
