//! Scenario files, and changes to them on the command line: `--set transport.rto_min="200 ms"`.

use std::path::{Path, PathBuf};

use polypath::proto::Registry;
use polypath_sim::scenario::literal;
use polypath_sim::{Scenario, ScenarioError};

use crate::failure::Failure;

/// A scenario and changes to it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ScenarioArgs {
    /// Scenario file
    #[arg(value_name = "SCENARIO.toml")]
    file: PathBuf,
    /// Override a key, such as transport.rto_min=200ms; may be repeated
    ///
    /// Another example: --set path.first.rate="5 Mbit/s".
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Scenario")]
    set: Vec<String>,
    /// Override the seed of all random numbers
    #[arg(long, value_name = "N", help_heading = "Scenario")]
    seed: Option<u64>,
}

impl ScenarioArgs {
    pub(crate) fn load(&self, registry: &Registry) -> Result<Scenario, Failure> {
        let failure = |error| match error {
            ScenarioError::Read { path, source } => Failure::file("read", &path, &source),
            error => Failure::new(error.to_string()),
        };
        let mut scenario = Scenario::from_file_with(&self.file, registry).map_err(failure)?;
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
    let change = |setting: &String| match setting.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), Some(literal(value.trim())))),
        None => Err(Failure::usage(format!("--set {setting:?} does not have the form KEY=VALUE"))),
    };
    let changes = settings.iter().map(change).collect::<Result<Vec<_>, _>>()?;
    scenario.with(changes).map_err(|error| Failure::usage(format!("--set: {error}")))
}
