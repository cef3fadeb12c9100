//! Messages of 1 kB, fifty a second, over two paths: one loses a fifth of its packets in bursts,
//! the other has a second of queue that a competitor fills.

use polypath_sim::RunOptions;
use polypath_sim::Scenario;
use polypath_sim::outcome::DeliveryTimes;
use polypath_sim::units::Span;

/// A network for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    /// Round-trip times in milliseconds: of the path with bursts, and of the one with a queue.
    pub(crate) rtts: [u32; 2],
    /// Share of the time in which packets are lost, in percent.
    pub(crate) bursts: u32,
}

/// Packets lost in a burst, in percent.
const LOST: u32 = 20;
/// Packets that a burst lasts on average.
const LENGTH: f64 = 25.0;

/// Which of the paths messages use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Bursts,
    Queue,
    Both,
}

fn path(name: &str, rate: u32, rtt: u32, queue: u64, more: &str) -> String {
    format!(
        "[[path]]\nname = \"{name}\"\nrate = \"{rate} Mbit/s\"\ndelay = \"{} us\"\nqueue = \"{queue} B\"\n\
         edge = {{ rate = \"1 Gbit/s\", delay = \"10 us\" }}\n{more}\n",
        rtt * 500
    )
}

/// Delivery times of messages; with `loaded`, there are losses and a competitor.
pub(crate) fn times(
    cell: Cell,
    paths: Use,
    (transport, policy): (&str, &str),
    loaded: bool,
    seed: u64,
) -> DeliveryTimes {
    let share = f64::from(cell.bursts) / 100.0;
    let (leave, enter) = (1.0 / LENGTH, share / (1.0 - share) / LENGTH);
    let loss = format!(
        "loss = {{ good_to_bad = \"{}\", bad_to_good = \"{leave}\", loss_bad = \"{LOST} %\", loss_good = \"0 %\" }}",
        enter
    );
    let loss = if loaded { loss } else { String::new() };
    let rate = 10;
    let mut text = format!("schema = 1\n[transport]\n{transport}\n[policy]\n{policy}\n");
    text += &path("bursts", 20, cell.rtts[0], 50_000, &loss);
    // A second of queue.
    text += &path("queue", rate, cell.rtts[1], u64::from(rate) * 125_000, "");
    text += "[[path]]\nname = \"competitor\"\nshares = \"queue\"\n";
    let used = match paths {
        Use::Bursts => "[\"bursts\"]",
        Use::Queue => "[\"queue\"]",
        Use::Both => "[\"bursts\", \"queue\"]",
    };
    text += &format!(
        "[[association]]\nname = \"messages\"\nfrom = \"sender\"\nto = \"receiver\"\npaths = {used}\n\
         workload = {{ kind = \"periodic\", messages = 3000, interval = \"20 ms\", \
         message_size = \"1 kB\", unordered = \"100 %\", start = \"5 s\" }}\n"
    );
    if loaded {
        text += "[[association]]\nname = \"bulk\"\nfrom = \"sender\"\nto = \"receiver\"\n\
                 paths = [\"competitor\"]\nworkload = { size = \"1 GB\" }\n\
                 policy = { congestion = \"cubic\" }\ntransport = { delivery = \"standard\" }\n";
    }
    text += "[run]\ncheck_content = false\ncheck_checksums = false\ncheck_every = \"end\"\n";
    let mut scenario = Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    scenario.run.limit = Span::millis(75_000);
    let options = RunOptions { seed: Some(seed), ..RunOptions::default() };
    let outcome = scenario.run(&options).unwrap_or_else(|error| panic!("{error}"));
    let flow = &outcome.associations[0].forward;
    let mut times = flow.delivery_times.expect("messages are timed");
    if flow.messages_delivered < 3000 {
        times.p99 = f64::INFINITY;
    }
    times
}
