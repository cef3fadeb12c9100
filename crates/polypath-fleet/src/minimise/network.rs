//! Removes paths, and interfaces of a general graph, with everything that refers to them, and
//! renumbers the later ones.

use toml::{Table, Value};

pub(super) fn reduce(mut table: Table, fails: &mut dyn FnMut(&Table) -> Option<Table>) -> Table {
    let paths = list(&table, "path").map_or(0, Vec::len);
    for n in (0..paths).rev() {
        table = fails(&without_path(&table, n)).unwrap_or(table);
    }
    let hosts: Vec<(String, usize)> = list(&table, "node")
        .into_iter()
        .flatten()
        .filter_map(|node| {
            let count = node.get("addresses")?.as_array()?.len();
            Some((node.get("name")?.as_str()?.to_owned(), count))
        })
        .collect();
    for (host, count) in hosts {
        for n in (0..count).rev() {
            table = fails(&without_interface(&table, &host, n)).unwrap_or(table);
        }
    }
    table
}

fn list<'a>(table: &'a Table, key: &str) -> Option<&'a Vec<Value>> {
    table.get(key)?.as_array()
}

/// Keeps the elements of a list for which `keep`, which may change them, returns true.
fn retain(table: &mut Table, key: &str, keep: &mut dyn FnMut(&mut Table) -> bool) {
    let Some(Value::Array(list)) = table.get_mut(key) else { return };
    list.retain_mut(|element| element.as_table_mut().is_none_or(&mut *keep));
    if list.is_empty() {
        table.remove(key);
    }
}

fn without_path(table: &Table, n: usize) -> Table {
    let mut table = table.clone();
    if let Some(Value::Array(paths)) = table.get_mut("path") {
        paths.remove(n);
    }
    retain(&mut table, "fault", &mut |fault| {
        let Some(Value::Integer(path)) = fault.get_mut("path") else { return true };
        let gone = *path == n as i64;
        *path -= i64::from(*path > n as i64);
        !gone
    });
    renumber(&mut table, "sender", n);
    renumber(&mut table, "receiver", n);
    table
}

fn without_interface(table: &Table, host: &str, n: usize) -> Table {
    let mut table = table.clone();
    retain(&mut table, "node", &mut |node| {
        if node.get("name").and_then(Value::as_str) == Some(host)
            && let Some(Value::Array(addresses)) = node.get_mut("addresses")
        {
            addresses.remove(n);
        }
        true
    });
    retain(&mut table, "link", &mut |link| {
        let Some(Value::Array(ends)) = link.get_mut("between") else { return true };
        ends.iter_mut().all(|end| rename(end, host, n))
    });
    retain(&mut table, "fault", &mut |fault| {
        let Some(Value::String(link)) = fault.get_mut("link") else { return true };
        let mut ends: Vec<Value> = link.split("->").map(Value::from).collect();
        let stays = ends.iter_mut().all(|end| rename(end, host, n));
        let ends: Vec<&str> = ends.iter().filter_map(Value::as_str).collect();
        *link = ends.join("->");
        stays
    });
    renumber(&mut table, host, n);
    table
}

/// Removes the n-th interface of a host from address events and traffic, and renumbers the later
/// ones.
fn renumber(table: &mut Table, host: &str, n: usize) {
    for (list, keys) in [("address", &["node"][..]), ("traffic", &["from", "to"][..])] {
        retain(table, list, &mut |element| {
            keys.iter().all(|key| element.get_mut(*key).is_none_or(|end| rename(end, host, n)))
        });
    }
}

/// Gives "host.m" its new number; false if it is the n-th itself.
fn rename(end: &mut Value, host: &str, n: usize) -> bool {
    let number = end.as_str().and_then(|end| end.strip_prefix(host)?.strip_prefix('.'));
    let Some(number) = number.and_then(|number| number.parse::<usize>().ok()) else { return true };
    if number > n {
        *end = Value::from(format!("{host}.{}", number - 1));
    }
    number != n
}
