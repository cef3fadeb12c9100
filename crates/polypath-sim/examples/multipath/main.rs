//! Measures several paths together: standstill after cuts, flapping paths, aggregation, a shared
//! bottleneck. Prints the tables of docs/paths.md.
//!
//! ```sh
//! cargo run --release -p polypath-sim --example multipath -- standstill
//! cargo run --release -p polypath-sim --example multipath -- aggregation scheduler=concurrent
//! ```

mod cells;
mod grids;
mod messages;
mod parallel;

use cells::{Cut, Path, bound, filled, flapping, shared, standstill};
use messages::{Cell, Use, times};
use parallel::map;

const CUTS: [Cut; 4] = [Cut::Both, Cut::Data, Cut::Acks, Cut::Half];

/// Round trips before a cut: on long paths the first number ends while Startup fills the queues.
const ROUNDS: [u32; 2] = [8, 30];

fn sets() -> Vec<Vec<Path>> {
    let mut sets = Vec::new();
    for rtt in [4, 10, 20, 50, 100, 300, 600] {
        sets.push(vec![Path::new(20, rtt); 2]);
    }
    for (a, b) in [(10, 100), (20, 200), (50, 600), (4, 40)] {
        sets.push(vec![Path::new(20, a), Path::new(20, b)]);
    }
    sets.push(vec![Path::new(50, 20), Path::new(5, 60)]);
    sets.push(vec![Path::new(100, 40), Path::new(10, 20)]);
    for rtt in [20, 100] {
        sets.push(vec![Path::new(20, rtt); 3]);
    }
    sets.push(vec![Path::new(20, 10), Path::new(20, 50), Path::new(20, 200)]);
    sets
}

fn name(paths: &[Path]) -> String {
    paths.iter().map(|p| format!("{}/{}", p.rate, p.rtt)).collect::<Vec<_>>().join(" + ")
}

/// Which cells to measure.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// One cell of this many.
    every: usize,
    /// Runs of each cell, with seeds from 1 on.
    seeds: u64,
}

impl Sample {
    fn of<T>(self, cells: Vec<T>) -> Vec<T> {
        cells.into_iter().step_by(self.every).collect()
    }
}

fn standstills(settings: &str, sample: Sample) {
    println!("| Mbit/s / ms | bound | cut path | round trips | both | data | acks | 50 % loss |");
    println!("|---|---|---|---|---|---|---|---|");
    let (mut good, mut all) = (0, 0);
    let sets = sets();
    let cuts = sets.iter().flat_map(|paths| (0..paths.len()).map(move |cut| (paths, cut)));
    let rows = cuts.flat_map(|(paths, cut)| ROUNDS.map(|rounds| (paths, (cut, rounds))));
    let rows = sample.of(rows.collect());
    let cells: Vec<_> = rows.iter().flat_map(|&row| CUTS.map(|kind| (row, kind))).collect();
    let worst = map(&cells, |&((paths, cut), kind)| {
        (1..=sample.seeds)
            .map(|seed| standstill(paths, cut, kind, settings, seed))
            .fold(0.0, f64::max)
    });
    for (&(paths, (cut, rounds)), worst) in rows.iter().zip(worst.chunks(CUTS.len())) {
        let mut row = format!("| {} | {:.0} | {cut} | {rounds} |", name(paths), bound(paths));
        for &worst in worst {
            let holds = worst < bound(paths);
            (good, all) = (good + u32::from(holds), all + 1);
            row += &format!(" {worst:.0}{} |", if holds { "" } else { " !" });
        }
        println!("{row}");
    }
    println!("\n{good} of {all} hold");
}

fn flaps(settings: &str, sample: Sample) {
    println!("| steady + flapping, Mbit/s / ms | steady alone | both |");
    println!("|---|---|---|");
    let pairs = [(20, 20), (20, 100), (100, 20), (100, 100), (40, 300)];
    let paths = |(a, b)| [Path::new(20, a), Path::new(20, b)];
    let cells = pairs.into_iter().flat_map(|p| [1000, 300, 3000].map(|half| (paths(p), half)));
    let cells = sample.of(cells.collect());
    let goodput = map(&cells, |(paths, half)| {
        let alone = flapping(&paths[..1], 1 << 20, settings, 1);
        (alone, flapping(paths, *half, settings, 1))
    });
    for ((paths, half), (alone, both)) in cells.iter().zip(goodput) {
        let mark = if both < alone { " !" } else { "" };
        println!("| {}, {half} ms | {alone:.1} | {both:.1}{mark} |", name(paths));
    }
}

fn aggregation(settings: &str, losses: &[f64], sample: Sample) {
    println!("| paths, Mbit/s / ms | loss, % | share |");
    println!("|---|---|---|");
    let kinds: Vec<(u32, u32)> =
        [20, 50, 100].into_iter().flat_map(|r| [10, 40, 100, 200].map(|t| (r, t))).collect();
    let mut cells = Vec::new();
    for (i, &(r1, t1)) in kinds.iter().enumerate() {
        for &(r2, t2) in &kinds[i..] {
            for &loss in losses {
                cells.push([(r1, t1), (r2, t2)].map(|(r, t)| Path { loss, ..Path::new(r, t) }));
            }
        }
    }
    let cells = sample.of(cells);
    let shares = map(&cells, |paths| filled(paths, settings, (4.0, 14.0), 1));
    let mut low = 0;
    let all = cells.len();
    for (paths, share) in cells.iter().zip(shares) {
        let equal = (paths[0].rate, paths[0].rtt) == (paths[1].rate, paths[1].rtt);
        let least = if paths[0].loss > 0.0 {
            0.85
        } else if equal {
            0.97
        } else {
            0.95
        };
        low += u32::from(share < least);
        let mark = if share < least { " !" } else { "" };
        println!("| {} | {} | {share:.3}{mark} |", name(paths), paths[0].loss);
    }
    println!("\n{low} of {all} are too low");
}

/// Four times the seeds of other parts: who gets how much differs between runs.
fn bottleneck(settings: &str, sample: Sample) {
    println!("| Mbit/s / ms | one path | competitor | two paths | competitor | ratio |");
    println!("|---|---|---|---|---|---|");
    let seeds = 4 * sample.seeds;
    let links = sample.of(vec![(10, 90), (20, 40), (50, 20), (50, 100)]);
    let cells: Vec<_> = links
        .iter()
        .flat_map(|&link| [true, false].map(|single| (link, single)))
        .flat_map(|(link, single)| (1..=seeds).map(move |seed| (link, single, seed)))
        .collect();
    let runs =
        map(&cells, |&((rate, rtt), single, seed)| shared(rate, rtt, settings, single, seed));
    let means: Vec<_> = runs
        .chunks(seeds as usize)
        .map(|runs| {
            let n = runs.len() as f64;
            let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / n;
            (mean(|r| r.0), mean(|r| r.1))
        })
        .collect();
    for ((rate, rtt), means) in links.into_iter().zip(means.chunks(2)) {
        let (one, two) = (means[0], means[1]);
        let ratio = two.0 / one.0;
        let mark = if (0.8..=1.2).contains(&ratio) { "" } else { " !" };
        println!(
            "| {rate}/{rtt} | {:.2} | {:.2} | {:.2} | {:.2} | {ratio:.2}{mark} |",
            one.0, one.1, two.0, two.1,
        );
    }
}

/// 99th percentiles of the delivery times of messages in milliseconds.
fn messages(settings: (&str, &str), sample: Sample) {
    println!(
        "| RTT of both paths, ms | time in bursts | unloaded | path with bursts | path with a queue | \
         earliest | redundant |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut cells = Vec::new();
    for rtts in [[20, 40], [40, 40], [100, 100]] {
        cells.extend([10, 20, 40].map(|bursts| Cell { rtts, bursts }));
    }
    let cells = sample.of(cells);
    let single = [(Use::Bursts, ""), (Use::Queue, "")];
    let both =
        [(Use::Both, "delivery = \"earliest\"\n"), (Use::Both, "delivery = \"redundant\"\n")];
    let kinds: Vec<_> = single.into_iter().chain(both).collect();
    let runs: Vec<_> =
        cells.iter().flat_map(|&cell| kinds.iter().map(move |&k| (cell, k))).collect();
    let worst = map(&runs, |&(cell, (paths, more))| {
        let transport = format!("{}{more}", settings.0);
        let one = |seed| times(cell, paths, (&transport, settings.1), true, seed).p99;
        1e3 * (1..=sample.seeds).map(one).fold(0.0, f64::max)
    });
    for (cell, p99) in cells.iter().zip(worst.chunks(kinds.len())) {
        // The path with bursts delivers earlier than one with a second of queue.
        let unloaded = 1e3 * times(*cell, Use::Bursts, settings, false, 1).p99;
        let better = p99[2] < p99[0].min(p99[1]);
        let near = p99[3] <= 1.2 * unloaded;
        let mark = |holds: bool| if holds { "" } else { " !" };
        println!(
            "| {} + {} | {} % | {unloaded:.1} | {:.1} | {:.1} | {:.1}{} | {:.1}{} |",
            cell.rtts[0],
            cell.rtts[1],
            cell.bursts,
            p99[0],
            p99[1],
            p99[2],
            mark(better),
            p99[3],
            mark(near),
        );
    }
}

/// Ten times the seeds of other parts.
fn papers(settings: (&str, &str), sample: Sample) {
    println!(
        "| loss, % | RTT 2, ms | path 1 fails | defaults, s | best policy | its time, s | difference, s |"
    );
    println!("|---|---|---|---|---|---|---|");
    let cells = sample.of(grids::cells());
    let compared = map(&cells, |&cell| grids::compare(cell, settings, 10 * sample.seeds));
    let mut slower = 0;
    for (&cell, c) in cells.iter().zip(compared) {
        let (difference, half) = c.difference;
        let misses = difference - half > 0.0;
        slower += u32::from(misses);
        println!(
            "| {} {:.2} | {} | {:.2} | {difference:.2} ± {half:.2}{} |",
            grids::name(cell),
            c.own,
            c.best.0,
            c.best.1,
            if misses { " !" } else { "" },
        );
    }
    println!("\n{slower} of {} are slower", cells.len());
}

/// Prints the goodput in Mbit/s of each association of a scenario.
fn goodput(file: &str) {
    let scenario = polypath_sim::Scenario::from_file(file).expect("a scenario");
    let outcome = scenario.run(&polypath_sim::RunOptions::default()).expect("the invariants hold");
    for association in &outcome.associations {
        let (flow, changes) = (&association.forward, &association.changes);
        println!("{}: {:.2}", association.name, flow.goodput * 8.0 / 1e6);
        for path in &association.sender.paths {
            println!("  {} {} cwnd {} srtt {:?}", path.path, path.state, path.cwnd, path.srtt);
        }
        for gap in &flow.blackouts {
            println!("  gap at {:.3} of {:.3}", gap.start, gap.length);
        }
        for change in changes {
            println!("  {change:?}");
        }
    }
    for series in outcome.series.iter().filter(|series| series.side == "sender") {
        println!("{} path {}: data in flight", series.association, series.path);
        for (time, bytes) in series.time.iter().zip(&series.in_flight) {
            println!("  {time:.2} {bytes}");
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    if what.ends_with(".toml") {
        return goodput(&what);
    }
    let (mut policy, mut transport) = (String::new(), String::new());
    let mut sample = Sample { every: 1, seeds: 3 };
    for arg in args {
        let (key, value) = arg.split_once('=').expect("KEY=VALUE");
        match key.strip_prefix("transport.") {
            Some("profile") => transport += &format!("profile = \"{value}\"\n"),
            Some(key) => transport += &format!("{key} = {value}\n"),
            None if key == "every" => sample.every = value.parse().expect("a number"),
            None if key == "seeds" => sample.seeds = value.parse().expect("a number"),
            None => policy += &format!("{key} = \"{value}\"\n"),
        }
    }
    let settings = format!("[transport]\n{transport}[policy]\n{policy}");
    match what.as_str() {
        "standstill" => standstills(&settings, sample),
        "flapping" => flaps(&settings, sample),
        "aggregation" => aggregation(&settings, &[0.0], sample),
        "lossy" => aggregation(&settings, &[0.1, 1.0, 3.0], sample),
        "shared" => bottleneck(&settings, sample),
        "messages" => messages((&transport, &policy), sample),
        "papers" => papers((&transport, &policy), sample),
        _ => println!("standstill, flapping, aggregation, lossy, shared, messages or papers"),
    }
}
