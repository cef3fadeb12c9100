//! Traces that a scenario names as files.

use std::path::Path;

use toml::{Table, Value};

use super::error::Problem;
use super::key::Key;
use crate::link::RateTrace;

/// Tables of a path or of a link that may have a trace of their own.
const PARTS: [&str; 3] = ["forward", "back", "edge"];

/// Replaces the name of each trace's file, relative to `folder`, with the trace.
pub(super) fn read(table: &mut Table, folder: &Path) -> Result<(), Problem> {
    for array in ["path", "link"] {
        let Some(Value::Array(entries)) = table.get_mut(array) else { continue };
        for (index, entry) in entries.iter_mut().enumerate() {
            let Value::Table(entry) = entry else { continue };
            let key = Key::root().field(array).index(index);
            read_of(entry, &key, folder)?;
            for part in PARTS {
                if let Some(Value::Table(inner)) = entry.get_mut(part) {
                    read_of(inner, &key.field(part), folder)?;
                }
            }
        }
    }
    Ok(())
}

fn read_of(table: &mut Table, key: &Key, folder: &Path) -> Result<(), Problem> {
    let Some(value) = table.get_mut("trace") else { return Ok(()) };
    let Value::String(name) = value else { return Ok(()) };
    let file = folder.join(name);
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string());
    let trace = text.and_then(|text| RateTrace::parse(&text));
    let trace = trace.map_err(|problem| {
        Problem::new(key.field("trace"), format!("{}: {problem}", file.display()))
    })?;
    // The last is at most u32::MAX.
    *value = Value::Array(trace.times().iter().map(|&ms| Value::Integer(ms as i64)).collect());
    Ok(())
}
