//! Measures several paths together: standstill after cuts, flapping paths, aggregation, a shared
//! bottleneck. Prints the tables of docs/multipath.md.
//!
//! ```sh
//! cargo run --release -p polypath-sim --example multipath -- standstill
//! cargo run --release -p polypath-sim --example multipath -- aggregation scheduler=concurrent
//! ```

mod cells;

use cells::{Cut, Path, bound, filled, flapping, shared, standstill};

const CUTS: [Cut; 4] = [Cut::Both, Cut::Data, Cut::Acks, Cut::Half];

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

fn standstills(settings: &str) {
    println!("| Mbit/s / ms | bound | cut path | both | data | acks | 50 % loss |");
    println!("|---|---|---|---|---|---|---|");
    let (mut good, mut all) = (0, 0);
    for paths in sets() {
        for cut in 0..paths.len() {
            let mut row = format!("| {} | {:.0} | {cut} |", name(&paths), bound(&paths));
            for kind in CUTS {
                let runs = (1..=3).map(|seed| standstill(&paths, cut, kind, settings, seed));
                let worst = runs.fold(0.0, f64::max);
                let holds = worst < bound(&paths);
                (good, all) = (good + u32::from(holds), all + 1);
                row += &format!(" {worst:.0}{} |", if holds { "" } else { " !" });
            }
            println!("{row}");
        }
    }
    println!("\n{good} of {all} hold");
}

fn flaps(settings: &str) {
    println!("| steady + flapping, Mbit/s / ms | steady alone | both |");
    println!("|---|---|---|");
    for (a, b) in [(20, 20), (20, 100), (100, 20), (100, 100), (40, 300)] {
        for half in [1000, 300, 3000] {
            let paths = [Path::new(20, a), Path::new(20, b)];
            let alone = flapping(&[paths[0], Path::new(20, b)][..1], 1 << 20, settings, 1);
            let both = flapping(&paths, half, settings, 1);
            println!("| {}, {half} ms | {alone:.1} | {both:.1} |", name(&paths));
        }
    }
}

fn aggregation(settings: &str, losses: &[f64]) {
    println!("| paths, Mbit/s / ms | loss, % | share |");
    println!("|---|---|---|");
    let kinds: Vec<(u32, u32)> =
        [20, 50, 100].into_iter().flat_map(|r| [10, 40, 100, 200].map(|t| (r, t))).collect();
    let mut low = 0;
    let mut all = 0;
    for (i, &(r1, t1)) in kinds.iter().enumerate() {
        for &(r2, t2) in &kinds[i..] {
            for &loss in losses {
                let paths = [(r1, t1), (r2, t2)].map(|(r, t)| Path { loss, ..Path::new(r, t) });
                let share = filled(&paths, settings, (4.0, 14.0), 1);
                let equal = (r1, t1) == (r2, t2);
                let least = if loss > 0.0 {
                    0.85
                } else if equal {
                    0.97
                } else {
                    0.95
                };
                (low, all) = (low + u32::from(share < least), all + 1);
                let mark = if share < least { " !" } else { "" };
                println!("| {} | {loss} | {share:.3}{mark} |", name(&paths));
            }
        }
    }
    println!("\n{low} of {all} are too low");
}

fn bottleneck(settings: &str) {
    println!("| Mbit/s / ms | one path | competitor | two paths | competitor | ratio |");
    println!("|---|---|---|---|---|---|");
    for (rate, rtt) in [(10, 90), (20, 40), (50, 20), (50, 100)] {
        let mean = |single| {
            let runs: Vec<_> =
                (1..=4).map(|seed| shared(rate, rtt, settings, single, seed)).collect();
            let n = runs.len() as f64;
            (runs.iter().map(|r| r.0).sum::<f64>() / n, runs.iter().map(|r| r.1).sum::<f64>() / n)
        };
        let (one, two) = (mean(true), mean(false));
        println!(
            "| {rate}/{rtt} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            one.0,
            one.1,
            two.0,
            two.1,
            two.0 / one.0
        );
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let (mut policy, mut transport) = (String::new(), String::from("profile = \"multipath\"\n"));
    for arg in args {
        let (key, value) = arg.split_once('=').expect("KEY=VALUE");
        match key.strip_prefix("transport.") {
            Some("profile") => transport = format!("profile = \"{value}\"\n"),
            Some(key) => transport += &format!("{key} = {value}\n"),
            None => policy += &format!("{key} = \"{value}\"\n"),
        }
    }
    let settings = format!("[transport]\n{transport}[policy]\n{policy}");
    match what.as_str() {
        "standstill" => standstills(&settings),
        "flapping" => flaps(&settings),
        "aggregation" => aggregation(&settings, &[0.0]),
        "lossy" => aggregation(&settings, &[0.1, 1.0, 3.0]),
        "shared" => bottleneck(&settings),
        _ => println!("standstill, flapping, aggregation, lossy or shared"),
    }
}
