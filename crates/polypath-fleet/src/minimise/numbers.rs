//! Makes numbers smaller and rounder, and reduces ranges to single values.

use toml::{Table, Value};

use super::{KEPT, Step, at, inside};

/// Keys whose smaller values make the network busier.
const BUSY: [&str; 1] = ["heartbeat_interval"];

pub(super) fn reduce(mut table: Table, fails: &mut dyn FnMut(&Table) -> Option<Table>) -> Table {
    let mut open = inside(&mut table, &[]);
    while let Some(place) = open.pop() {
        let is = |step: Option<&Step>, keys: &[&str]| match step {
            Some(Step::Key(key)) => keys.contains(&key.as_str()),
            _ => false,
        };
        if is(place.first(), &KEPT) || is(place.last(), &BUSY) {
            continue;
        }
        open.extend(inside(&mut table, &place));
        // A value that becomes simpler may become simpler again.
        while let Some(simpler) = simpler(&mut table, &place, fails) {
            table = simpler;
        }
    }
    table
}

/// The table with the first simpler value at `place` with which it still fails.
fn simpler(
    table: &mut Table,
    place: &[Step],
    fails: &mut dyn FnMut(&Table) -> Option<Table>,
) -> Option<Table> {
    let values = match at(table, place)? {
        Value::Integer(n) => integers(*n).into_iter().map(Value::from).collect::<Vec<_>>(),
        Value::String(text) => texts(text).into_iter().map(Value::from).collect(),
        _ => return None,
    };
    values.into_iter().find_map(|value| {
        let mut step = table.clone();
        *at(&mut step, place)? = value;
        fails(&step)
    })
}

/// Smaller values, those with the largest change first.
fn integers(n: i64) -> Vec<i64> {
    let mut smaller = vec![0, 1, n / 16, n / 2, n - n / 4, n - 1];
    smaller.extend(rounded(n.unsigned_abs()).map(|n| n as i64));
    smaller.retain(|&m| m >= 0 && m < n);
    smaller.dedup();
    smaller
}

/// The number rounded down to one significant digit, and to two, where that changes it.
fn rounded(n: u64) -> impl Iterator<Item = u64> {
    let digits = n.checked_ilog10().unwrap_or(0) + 1;
    let round = move |left: u32| {
        let scale = 10u64.pow(digits.saturating_sub(left));
        n / scale * scale
    };
    [1, 2].into_iter().map(round).filter(move |&m| m < n)
}

/// The upper end of a range; a quantity as zero, or with fewer digits.
fn texts(text: &str) -> Vec<String> {
    if let Some((_, upper)) = text.split_once(" .. ") {
        return vec![upper.to_owned()];
    }
    let Some((number, unit)) = text.split_once(' ') else { return Vec::new() };
    let Ok(number) = number.parse::<u64>() else { return Vec::new() };
    let mut numbers = vec![0];
    numbers.extend(rounded(number));
    if unit == "packets" || unit == "%" || unit == "B" {
        numbers.extend(integers(number as i64).into_iter().map(|n| n as u64));
    }
    numbers.retain(|&n| n < number);
    numbers.into_iter().map(|number| format!("{number} {unit}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_rounder() {
        assert_eq!(texts("265480 bit/s"), ["0 bit/s", "200000 bit/s", "260000 bit/s"]);
        assert_eq!(texts("22 B .. 703 B"), ["703 B"]);
        assert_eq!(texts("10 Mbit/s"), ["0 Mbit/s"]);
        assert_eq!(texts("0 ms"), Vec::<String>::new());
        assert_eq!(texts("fd00::1"), Vec::<String>::new());
        assert_eq!(integers(155), [0, 1, 9, 77, 117, 154, 100, 150]);
        assert_eq!(integers(0), Vec::<i64>::new());
    }
}
