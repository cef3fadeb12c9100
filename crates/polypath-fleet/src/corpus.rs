//! Scenarios that have failed, as files: a scenario outlives the generator that drew it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use polypath_sim::Scenario;
use polypath_sim::scenario::Run;
use toml::{Table, Value};

use crate::judge::{self, Failure};

/// Folder of the scenarios.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// A scenario of the corpus.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of its file, without ".toml".
    pub name: String,
    /// Path of its file.
    pub path: PathBuf,
}

/// All scenarios, in the order of their names.
///
/// # Errors
/// The folder cannot be read.
pub fn entries() -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for file in fs::read_dir(folder())? {
        let path = file?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_some_and(|extension| extension == "toml") {
            entries.push(Entry { name, path });
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Runs a scenario of the corpus.
///
/// # Errors
/// The failure of the run.
pub fn run(entry: &Entry) -> Result<(), Failure> {
    let scenario = Scenario::from_file(&entry.path).map_err(|error| Failure {
        class: "the scenario is wrong".to_owned(),
        story: error.to_string(),
    })?;
    judge::run(&scenario).map(drop)
}

/// Writes a scenario into a folder, which is created if it does not exist. The file is named after
/// the number of the case, and a comment in it describes the failure.
///
/// # Errors
/// The file cannot be written.
pub fn add(
    folder: &Path,
    number: u64,
    scenario: &Scenario,
    failure: &Failure,
) -> io::Result<PathBuf> {
    let path = folder.join(format!("{number:#018x}.toml"));
    let comment: String = failure.story.lines().map(|line| format!("# {line}\n")).collect();
    fs::create_dir_all(folder)?;
    fs::write(&path, format!("{comment}{}", text(scenario)))?;
    Ok(path)
}

/// The text of a scenario file, without default values in `[run]` and without an empty name.
pub fn text(scenario: &Scenario) -> String {
    // Nothing in the schema fails to serialize: keys are strings, numbers fit.
    let [mut table, default] = [scenario, &Scenario::new("")]
        .map(|scenario| Table::try_from(scenario).unwrap_or_default());
    let run = Table::try_from(Run::default()).unwrap_or_default();
    if let Some(Value::Table(own)) = table.get_mut("run") {
        own.retain(|key, value| run.get(key) != Some(value));
    }
    table.retain(|key, value| key != "name" || default.get(key) != Some(value));
    toml::to_string(&table).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case;

    #[test]
    fn a_file_is_the_scenario() {
        for number in 0..200 {
            let mut scenario = case::scenario(number);
            assert_eq!(Scenario::from_toml(&text(&scenario)).unwrap(), scenario);
            scenario.name.clear();
            assert!(!text(&scenario).contains("name = \"\""));
        }
    }
}
