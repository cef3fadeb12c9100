//! Scenario files, and what the command line changes in them: `--set transport.rto_min="200 ms"`.

use std::path::{Path, PathBuf};

use polypath_sim::{Scenario, ScenarioError};
use toml::{Table, Value};

use crate::failure::Failure;

/// A scenario and changes to it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ScenarioArgs {
    /// Scenario (TOML)
    #[arg(value_name = "SCENARIO.toml")]
    file: PathBuf,
    /// Other value of a key, such as transport.rto_min=200ms or path.first.rate="5 Mbit/s"; may be
    /// repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Other root of all randomness
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl ScenarioArgs {
    pub(crate) fn load(&self) -> Result<Scenario, Failure> {
        let failure = |error| match error {
            ScenarioError::Read { path, source } => Failure::file("read", &path, &source),
            error => Failure::new(error.to_string()),
        };
        let mut scenario = Scenario::from_file(&self.file).map_err(failure)?;
        if !self.set.is_empty() {
            scenario = with_settings(&scenario, &self.set)?;
        }
        if let Some(seed) = self.seed {
            scenario.seed = seed;
        }
        Ok(scenario)
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }
}

fn with_settings(scenario: &Scenario, settings: &[String]) -> Result<Scenario, Failure> {
    let mut table: Table = scenario
        .to_toml()
        .parse()
        .map_err(|error| Failure::new(format!("the scenario cannot be changed: {error}")))?;
    for setting in settings {
        let Some((key, value)) = setting.split_once('=') else {
            return Err(Failure::usage(format!("--set {setting:?} is not of the form KEY=VALUE")));
        };
        set(&mut table, key.trim(), value.trim())
            .map_err(|problem| Failure::usage(format!("--set {key}: {problem}")))?;
    }
    Scenario::from_toml(&table.to_string()).map_err(|error| {
        let ScenarioError::Key { key, problem, .. } = &error else {
            return Failure::usage(error.to_string());
        };
        // The line number would be that of a file which does not exist.
        Failure::usage(format!("--set: {key}: {problem}"))
    })
}

/// Sets a value by its dotted key. Elements of arrays go by number, counted from 0, or by name.
fn set(table: &mut Table, key: &str, value: &str) -> Result<(), String> {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), literal(value));
            Ok(())
        }
        Some((head, rest)) => {
            match table.entry(head).or_insert_with(|| Value::Table(Table::new())) {
                Value::Table(inner) => set(inner, rest, value),
                Value::Array(elements) => set_element(elements, rest, value),
                _ => Err(format!("{head} is not a table")),
            }
        }
    }
}

fn set_element(elements: &mut [Value], key: &str, value: &str) -> Result<(), String> {
    let (which, rest) = key.split_once('.').ok_or("a key has to follow the element")?;
    let count = elements.len();
    let named = |element: &Value| element.get("name").and_then(Value::as_str) == Some(which);
    let index = match which.parse::<usize>() {
        Ok(index) => (index < count).then_some(index),
        Err(_) => elements.iter().position(named),
    };
    match index.map(|index| &mut elements[index]) {
        Some(Value::Table(inner)) => set(inner, rest, value),
        _ => Err(format!("no element {which:?}; allowed: 0 to {}, or a name", count.max(1) - 1)),
    }
}

/// As TOML has it; whatever is not TOML is a string without its quotes.
fn literal(text: &str) -> Value {
    let parsed: Option<Table> = format!("value = {text}").parse().ok();
    parsed
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "schema = 1\n\
        path = [{ name = \"a\", rate = \"1 Mbit/s\" }, { name = \"b\", rate = \"2 Mbit/s\" }]\n\
        workload = { kind = \"bulk\", size = \"1 MB\" }";

    fn changed(settings: &[&str]) -> Result<Scenario, Failure> {
        let settings: Vec<String> = settings.iter().map(|&s| s.to_owned()).collect();
        with_settings(&Scenario::from_toml(SCENARIO).unwrap(), &settings)
    }

    #[test]
    fn keys_are_dotted_and_values_are_plain() {
        let scenario = changed(&[
            "transport.rto_min=200 ms",
            "path.1.rate=5 Mbit/s",
            "path.a.delay=\"45 ms\"",
            "transport.full_mesh=true",
            "name=other",
        ])
        .unwrap();
        let expected = "schema = 1\nname = \"other\"\n\
            path = [{ name = \"a\", rate = \"1 Mbit/s\", delay = \"45 ms\" }, \
                    { name = \"b\", rate = \"5 Mbit/s\" }]\n\
            workload = { kind = \"bulk\", size = \"1 MB\" }\n\
            transport = { rto_min = \"200 ms\", full_mesh = true }";
        assert_eq!(scenario, Scenario::from_toml(expected).unwrap());
    }

    #[test]
    fn wrong_keys_and_values_are_told() {
        let text = |setting: &str| changed(&[setting]).unwrap_err().to_string();
        assert!(text("transport.rto_mni=1 s").contains("rto_min"));
        assert!(text("path.0.rate=fast").contains("path[0].rate"), "{}", text("path.0.rate=fast"));
        assert!(text("path.c.rate=1").contains("no element \"c\"; allowed: 0 to 1, or a name"));
        assert!(text("name.x=1").contains("name is not a table"));
        assert!(text("name").contains("KEY=VALUE"));
    }
}
