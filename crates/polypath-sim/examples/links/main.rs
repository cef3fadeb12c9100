//! Measures transfers over a table of links. `make links` runs it on all processors
//! (benches/links.py) and writes docs/links.md.
//!
//! ```sh
//! cargo run --release -p polypath-sim --example links -- list
//! cargo run --release -p polypath-sim --example links -- grid:100:20:1:1 congestion=cubic
//! cargo run --release -p polypath-sim --example links -- toml grid:100:20:1:1  # its network
//! ```

mod cells;

use cells::{Cell, cells, measure};

/// A cell by its name, or any cell of the grid: "grid:RATE:RTT:LOSS:QUEUE".
fn find(name: &str) -> Option<Cell> {
    if let Some(cell) = cells().into_iter().find(|cell| cell.to_string() == name) {
        return Some(cell);
    }
    let mut parts = name.strip_prefix("grid:")?.split(':');
    let mut cell = Cell::new(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    cell.loss = parts.next()?.parse().ok()?;
    cell.queue = parts.next()?.parse().ok()?;
    Some(cell)
}

fn known(name: &str) -> Cell {
    find(name).unwrap_or_else(|| {
        eprintln!("no cell \"{name}\"; `list` prints the names");
        std::process::exit(2);
    })
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, name] = words.as_slice()
        && verb == "toml"
    {
        print!("{}", known(name).toml());
        return;
    }
    let (mut names, mut policy, mut transport) = (Vec::new(), String::new(), String::new());
    let mut seed = 1;
    for arg in words {
        match arg.split_once('=') {
            Some(("seed", n)) => seed = n.parse().expect("seed=NUMBER"),
            Some((key, value)) => match key.strip_prefix("transport.") {
                Some(key) => transport += &format!("{key} = {value}\n"),
                None => policy += &format!("{key} = \"{value}\"\n"),
            },
            None if arg == "list" => {
                for cell in cells() {
                    println!("{cell}");
                }
                return;
            }
            None => names.push(arg),
        }
    }
    let settings = format!("[transport]\n{transport}[policy]\n{policy}");
    println!(
        "cell,seed,seconds,goodput,after_first,share,of_ideal,queue_ms,queue_95_ms,retransmitted,timeouts,jain,cpu_s_per_gb"
    );
    for name in names {
        let cell = known(&name);
        let r = measure(&cell, &settings, seed);
        println!(
            "{name},{seed},{},{:.2},{:.2},{:.4},{:.4},{:.1},{:.1},{:.3},{},{:.4},{:.3}",
            cell.seconds(),
            r.goodput,
            r.after,
            r.share,
            r.of_ideal,
            r.queue,
            r.queue_95,
            r.retransmitted,
            r.timeouts,
            r.jain,
            r.cpu
        );
    }
}
