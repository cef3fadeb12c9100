//! Reduces a failing scenario: delta debugging (Zeller and Hildebrandt 2002) on its TOML.
//!
//! Faults, address events, traffic, associations, interfaces and paths are removed, then keys
//! (whose defaults then apply); then messages and numbers become smaller and rounder. A step is
//! kept if the run fails in the same way.

mod network;
mod numbers;

use polypath_sim::Scenario;
use toml::{Table, Value};

use crate::judge;

/// Maximum number of runs of one minimisation.
pub const RUNS: u32 = 600;
/// Seeds to try for each step in addition to the scenario's own: other packets may be lost.
const SEEDS: [i64; 2] = [1, 2];
/// Maximum number of events of one run.
const EVENTS: u64 = 500_000;
/// Lists whose elements do not depend on each other.
const LISTS: [&str; 4] = ["fault", "address", "traffic", "association"];
/// Keys that limit the run, or that every scenario has.
const KEPT: [&str; 3] = ["run", "schema", "seed"];

/// The smallest scenario found that fails in this class.
pub fn minimise(scenario: &Scenario, class: &str, runs: u32) -> Scenario {
    let mut table = Table::try_from(scenario).unwrap_or_default();
    table.remove("name");
    let mut left = runs;
    let smallest = reduce(table, &mut |table| fails(table, class, &mut left));
    read(&smallest).unwrap_or_else(|| scenario.clone())
}

fn read(table: &Table) -> Option<Scenario> {
    Scenario::from_toml(&toml::to_string(table).ok()?).ok()
}

/// The table, perhaps with another seed, if it fails in this class.
fn fails(table: &Table, class: &str, left: &mut u32) -> Option<Table> {
    let own = table.get("seed").cloned();
    for seed in own.into_iter().chain(SEEDS.map(Value::from)) {
        let mut table = table.clone();
        table.insert("seed".to_owned(), seed);
        let mut scenario = read(&table)?;
        *left = left.checked_sub(1)?;
        scenario.run.max_events = scenario.run.max_events.min(EVENTS);
        if judge::run(&scenario).is_err_and(|failure| failure.class == class) {
            return Some(table);
        }
    }
    None
}

/// Tries steps until none succeeds. `fails` returns the table of a step that still fails.
fn reduce(mut table: Table, fails: &mut dyn FnMut(&Table) -> Option<Table>) -> Table {
    loop {
        let before = table.clone();
        for list in LISTS {
            table = without_elements(table, list, fails);
        }
        table = network::reduce(table, fails);
        table = without_keys(table, &[], fails);
        table = numbers::reduce(table, fails);
        if table == before {
            return table;
        }
    }
}

/// Removes elements of a list: first all, then halves of it, then smaller parts, then single ones.
fn without_elements(
    mut table: Table,
    list: &str,
    fails: &mut dyn FnMut(&Table) -> Option<Table>,
) -> Table {
    let count = |table: &Table| table.get(list).and_then(Value::as_array).map_or(0, Vec::len);
    let mut size = count(&table);
    while size > 0 {
        let mut at = 0;
        while at < count(&table) {
            let mut step = table.clone();
            let Some(Value::Array(elements)) = step.get_mut(list) else { break };
            let end = (at + size).min(elements.len());
            elements.drain(at..end);
            if elements.is_empty() {
                step.remove(list);
            }
            match fails(&step) {
                Some(smaller) => table = smaller,
                None => at += size,
            }
        }
        size /= 2;
    }
    table
}

/// A step from a table to an inner one: a key, or an index of a list.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Place(usize),
}

/// The value at a place in the table.
fn at<'a>(table: &'a mut Table, place: &[Step]) -> Option<&'a mut Value> {
    let (Step::Key(first), rest) = place.split_first()? else { return None };
    rest.iter().try_fold(table.get_mut(first)?, |value, step| match step {
        Step::Key(key) => value.as_table_mut()?.get_mut(key),
        Step::Place(n) => value.as_array_mut()?.get_mut(*n),
    })
}

/// The places of the values directly inside the one at `place`, or inside the table itself.
fn inside(table: &mut Table, place: &[Step]) -> Vec<Vec<Step>> {
    let with = |step: Step| place.iter().cloned().chain([step]).collect();
    let keys = |table: &Table| table.keys().cloned().map(Step::Key).map(with).collect();
    if place.is_empty() {
        return keys(table);
    }
    match at(table, place) {
        Some(Value::Table(inner)) => keys(inner),
        Some(Value::Array(list)) => (0..list.len()).map(Step::Place).map(with).collect(),
        _ => Vec::new(),
    }
}

/// Removes keys, a table before the keys in it.
fn without_keys(
    mut table: Table,
    place: &[Step],
    fails: &mut dyn FnMut(&Table) -> Option<Table>,
) -> Table {
    for inner in inside(&mut table, place) {
        if let Some(Step::Key(key)) = inner.last()
            && !(place.is_empty() && KEPT.contains(&key.as_str()))
        {
            let mut step = table.clone();
            let around = if place.is_empty() {
                Some(&mut step)
            } else {
                at(&mut step, place).and_then(Value::as_table_mut)
            };
            around.map(|table| table.remove(key));
            if let Some(smaller) = fails(&step) {
                table = smaller;
                continue;
            }
        }
        if !matches!(inner.first(), Some(Step::Key(key)) if KEPT.contains(&key.as_str())) {
            table = without_keys(table, &inner, fails);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    /// Reduces by a predicate; also returns how often it was called.
    fn reduced(text: &str, fails: impl Fn(&Scenario) -> bool) -> (Scenario, u32) {
        let mut asked = 0;
        let smallest = reduce(table(text), &mut |table| {
            asked += 1;
            read(table).filter(&fails).map(|_| table.clone())
        });
        (read(&smallest).unwrap(), asked)
    }

    const LARGE: &str = r#"
        schema = 1
        seed = 77
        path = [
            { rate = "265480 bit/s", delay = "3933 us" },
            { rate = "76489393 bit/s", delay = "4751745 ns", loss = "6 %" },
            { rate = "10 Mbit/s", queue = "12 packets" },
        ]
        transport = { rto_min = "13 ms", rto_initial = "168 ms", receive_buffer = "63648 B" }
        policy = { failover = "two-phase", loss = "ns2" }
        workload = { kind = "bulk", messages = 155, message_size = "22 B .. 703 B", streams = 21 }
        fault = [
            { at = "1 s", path = 0, kind = "down" },
            { at = "2 s", path = 2, kind = "down", for = "17 ms" },
            { at = "3 s", path = 1, kind = "delay", delay = "10 ms" },
        ]
        address = [
            { at = "1 s", node = "sender.1", kind = "goes" },
            { at = "2 s", node = "receiver.2", kind = "goes" },
        ]
        run = { max_events = 1000 }
    "#;

    #[test]
    fn only_what_the_failure_needs_is_left() {
        // The failure needs the link that breaks on the last path, an rto_min below 100 ms and
        // twenty messages.
        let (smallest, asked) = reduced(LARGE, |scenario| {
            let last = scenario.paths.len() - 1;
            let breaks = scenario.faults.iter().any(|fault| {
                fault.path == Some(polypath_sim::scenario::PathRef::Index(last))
                    && fault.lasts.is_some()
            });
            let rto = scenario.transport.both.rto_min.is_some_and(|rto| rto.as_millis() < 100);
            let messages = scenario.workload.as_ref().and_then(|w| w.messages);
            breaks && rto && messages.is_some_and(|n| n >= 20)
        });
        let expected = r#"
            schema = 1
            seed = 77
            path = [{}]
            transport = { rto_min = "10 ms" }
            workload = { messages = 20 }
            fault = [{ at = "0 s", path = 0, kind = "down", for = "0 s" }]
            run = { max_events = 1000 }
        "#;
        let expected = Scenario::from_toml(expected).unwrap();
        assert_eq!(smallest, expected, "{}", smallest.to_toml());
        assert!(asked < 600, "{asked}");
    }

    #[test]
    fn interfaces_of_a_graph_are_left_out() {
        let text = r#"
            schema = 1
            node = [
                { name = "sender", addresses = ["10.0.0.1", "10.0.1.1"] },
                { name = "receiver", addresses = ["10.0.0.2", "10.0.1.2", "10.0.2.2"] },
                { name = "router" },
            ]
            link = [
                { between = ["sender.0", "router"], delay = "1 ms" },
                { between = ["sender.1", "router"], delay = "2 ms" },
                { between = ["receiver.0", "router"], delay = "3 ms" },
                { between = ["receiver.1", "router"], delay = "4 ms" },
                { between = ["receiver.2", "router"], delay = "5 ms" },
            ]
            association = [
                { from = "sender", to = "receiver", workload = { messages = 1 } },
            ]
            fault = [{ at = "1 s", link = "router->receiver.2", kind = "down" }]
            address = [{ at = "1 s", node = "receiver.1", kind = "goes" }]
        "#;
        let (smallest, _) = reduced(text, |scenario| {
            let broken = scenario.faults.first().and_then(|fault| fault.link.clone());
            let broken = broken.unwrap_or_default();
            let name = broken.strip_prefix("router->").unwrap_or("none").to_owned();
            let slow = scenario.links.iter().any(|l| l.between[0] == name && l.delay.is_some());
            slow && !scenario.associations.is_empty()
        });
        let [sender, receiver] = [0, 1].map(|n| smallest.nodes[n].addresses.len());
        assert_eq!((sender, receiver, smallest.links.len()), (1, 1, 2), "{}", smallest.to_toml());
        assert!(smallest.addresses.is_empty());
        assert_eq!(smallest.faults[0].link.as_deref(), Some("router->receiver.0"));
    }

    #[test]
    fn another_class_of_failure_is_not_taken_for_the_same() {
        let scenario = Scenario::from_toml(LARGE).unwrap();
        let mut left = 10;
        assert_eq!(fails(&Table::try_from(&scenario).unwrap(), "no such class", &mut left), None);
        assert_eq!(left, 7, "the scenario's seed and two others");
        assert_eq!(minimise(&scenario, "no such class", 5).faults, scenario.faults);
    }
}
