//! Changes of single keys: `path.first.loss = "3 %"`.

use serde::Deserialize;
use toml::{Table, Value};

use super::error::{Place, Problem, ScenarioError, allowed};
use super::key::Key;
use super::topology::TopologyName;
use super::{Scenario, de};

impl Scenario {
    /// The scenario with other values of some keys, validated once all are set.
    ///
    /// Keys are dotted; an element of an array is selected by its number, counted from 0, or by its
    /// name, as in `path.0.loss` or `path.cable.rate`. `None` removes a key. `topology` replaces
    /// the whole network with the paths of the named one; later changes may refer to them.
    ///
    /// # Errors
    /// The first problem, with its key and what is allowed.
    pub fn with<K: AsRef<str>>(
        &self,
        changes: impl IntoIterator<Item = (K, Option<Value>)>,
    ) -> Result<Self, ScenarioError> {
        self.changed(changes).map_err(|problem| problem.at(Place::default()))
    }

    fn changed<K: AsRef<str>>(
        &self,
        changes: impl IntoIterator<Item = (K, Option<Value>)>,
    ) -> Result<Self, Problem> {
        // Nothing in the schema fails to serialize: keys are strings, numbers fit.
        let mut table = Table::try_from(self).unwrap_or_default();
        for (key, value) in changes {
            if let ("topology", Some(name)) = (key.as_ref(), &value) {
                take_topology(&mut table, name.clone())?;
                continue;
            }
            let segments: Vec<&str> = key.as_ref().split('.').collect();
            set(&mut table, &Key::root(), &segments, value)?;
        }
        let mut scenario = Self::deserialize(de::Reader(Value::Table(table)))?;
        scenario.registry = self.registry.clone();
        scenario.check()?;
        Ok(scenario)
    }
}

/// Parses a value as a user types it: TOML, or else a string without its quotes. "true" is a
/// boolean, "3" a number, and "200 ms" a string.
pub fn literal(text: &str) -> Value {
    let parsed: Option<Table> = format!("value = {text}").parse().ok();
    parsed
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Replaces the whole network with the paths of the network of this name.
fn take_topology(table: &mut Table, name: Value) -> Result<(), Problem> {
    let under = |problem: Problem| problem.under("topology");
    let name = TopologyName::deserialize(de::Reader(name)).map_err(|e| under(e.into()))?;
    for network in ["node", "link"] {
        table.remove(network);
    }
    // As in `changed`, nothing fails to serialize.
    let paths = name.paths().into_iter().filter_map(|path| Value::try_from(path).ok());
    table.insert("path".to_owned(), Value::Array(paths.collect()));
    Ok(())
}

/// Sets, or removes if `value` is `None`, the value at `segments` in the table at `key`.
fn set(
    table: &mut Table,
    key: &Key,
    segments: &[&str],
    value: Option<Value>,
) -> Result<(), Problem> {
    let Some((&name, rest)) = segments.split_first() else { return Ok(()) };
    let here = key.field(name);
    if rest.is_empty() {
        match value {
            Some(value) => table.insert(name.to_owned(), value),
            None => table.remove(name),
        };
        return Ok(());
    }
    if value.is_none() && !table.contains_key(name) {
        return Ok(());
    }
    match table.entry(name).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => set(inner, &here, rest, value),
        Value::Array(elements) => set_in_element(elements, &here, rest, value),
        other => {
            let text = format!("found {}; allowed: a table", other.type_str());
            Err(Problem::new(here, text))
        }
    }
}

fn set_in_element(
    elements: &mut [Value],
    key: &Key,
    segments: &[&str],
    value: Option<Value>,
) -> Result<(), Problem> {
    let Some((&which, rest)) = segments.split_first() else { return Ok(()) };
    let named = |element: &Value| element.get("name").and_then(Value::as_str) == Some(which);
    let number = which.parse::<usize>();
    let index = match number {
        Ok(index) => (index < elements.len()).then_some(index),
        Err(_) => elements.iter().position(named),
    };
    let Some(index) = index else {
        let numbers = match elements.len() {
            0 | 1 => "0".to_owned(),
            n => format!("0 to {}", n - 1),
        };
        let names = elements.iter().filter_map(|e| e.get("name")?.as_str());
        let known = match number {
            Ok(_) => format!("; allowed: {numbers}"),
            Err(_) => allowed(which, names.chain([numbers.as_str()])),
        };
        return Err(Problem::new(key.field(which), format!("no such element{known}")));
    };
    match &mut elements[index] {
        _ if rest.is_empty() => {
            let text = "a key of the element has to follow, such as its name";
            Err(Problem::new(key.field(which), text))
        }
        Value::Table(inner) => set(inner, &key.index(index), rest, value),
        other => {
            let text = format!("found {}; allowed: a table", other.type_str());
            Err(Problem::new(key.index(index), text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "schema = 1\n\
        path = [{ name = \"a\", rate = \"1 Mbit/s\" }, { name = \"b\", rate = \"2 Mbit/s\" }]\n\
        workload = { kind = \"bulk\", size = \"1 MB\" }";

    fn changed(settings: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
        let scenario = Scenario::from_toml(SCENARIO).unwrap();
        scenario.with(settings.iter().map(|(key, value)| (key, Some(literal(value)))))
    }

    #[test]
    fn keys_are_dotted_and_values_are_plain() {
        let scenario = changed(&[
            ("transport.rto_min", "200 ms"),
            ("path.1.rate", "5 Mbit/s"),
            ("path.a.delay", "\"45 ms\""),
            ("path.a.back.loss", "3 %"),
            ("transport.full_mesh", "true"),
            ("name", "other"),
        ])
        .unwrap();
        let expected = "schema = 1\nname = \"other\"\n\
            path = [{ name = \"a\", rate = \"1 Mbit/s\", delay = \"45 ms\", back.loss = \"3 %\" }, \
                    { name = \"b\", rate = \"5 Mbit/s\" }]\n\
            workload = { kind = \"bulk\", size = \"1 MB\" }\n\
            transport = { rto_min = \"200 ms\", full_mesh = true }";
        let expected = Scenario::from_toml(expected).unwrap();
        assert_eq!(scenario, expected);
        let taken = [("path.a.back", None), ("transport", None), ("run.no.such", None)];
        let without = scenario.with(taken).unwrap();
        assert_eq!(without.paths[0].back, None);
        assert_eq!(without.transport, Default::default());
    }

    #[test]
    fn several_changes_are_judged_together() {
        let (rto_min, rto_initial) =
            (("transport.rto_min", "2 s"), ("transport.rto_initial", "2 s"));
        assert!(changed(&[rto_min]).is_err());
        assert!(changed(&[rto_min, rto_initial]).is_ok());
    }

    #[test]
    fn wrong_keys_and_values_are_told() {
        let error = |key: &str, value: &str| changed(&[(key, value)]).unwrap_err().to_string();
        let table = [
            (
                error("path.0.rate", "fast"),
                "path[0].rate: \"fast\" is not a rate; allowed: a number and bit/s, kbit/s, Mbit/s \
                 or Gbit/s, such as \"10 Mbit/s\"",
            ),
            (error("path.third.rate", "1"), "path.third: no such element; allowed: a, b, 0 to 1"),
            (error("path.2.rate", "1"), "path.2: no such element; allowed: 0 to 1"),
            (error("path.a", "1"), "path.a: a key of the element has to follow, such as its name"),
            (error("name.x", "1"), "name: found string; allowed: a table"),
            (error("schema", "2"), "schema: found 2; allowed: 1"),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
        assert!(error("transport.rto_mni", "1 s").contains("did you mean \"rto_min\"? allowed: "));
        assert!(
            error("transprot.rto_min", "1 s").contains("did you mean \"transport\"? allowed: ")
        );
    }
}
