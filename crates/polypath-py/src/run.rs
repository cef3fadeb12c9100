//! A single run.

use std::any::Any;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use polypath_sim::scenario::Series;
use polypath_sim::units::Span;
use polypath_sim::{Outcome as Inner, RunOptions, Scenario as Plan};
use pyo3::prelude::*;

use crate::error::{Failure, ScenarioError};
use crate::outcome::Outcome;
use crate::scenario::Scenario;

/// Runs a scenario to its end, with Python's lock released.
#[pyfunction]
#[pyo3(signature = (scenario, seed=None, series=None, pcap=None, packets=false))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    seed: Option<u64>,
    series: Option<&str>,
    pcap: Option<PathBuf>,
    packets: bool,
) -> PyResult<Outcome> {
    let options =
        RunOptions { seed, series: wanted_series(series)?, packets, ..RunOptions::default() };
    let plan = &scenario.inner;
    let outcome = py.detach(|| one(plan, &options, pcap.as_deref()))?;
    Outcome::new(py, outcome)
}

/// Parses the sampling: "changes" samples at every change, a time span at that interval; `None`
/// keeps the scenario's setting.
pub(crate) fn wanted_series(series: Option<&str>) -> PyResult<Option<Series>> {
    match series {
        None => Ok(None),
        Some("changes") => Ok(Some(Series::default())),
        Some(text) => {
            let wrong = |what: &dyn std::fmt::Display| {
                ScenarioError::new_err(format!("series.interval: {what}"))
            };
            match text.parse::<Span>() {
                Ok(Span(0)) => Err(wrong(&"found 0 s; allowed: above 0")),
                Ok(span) => Ok(Some(Series { interval: Some(span) })),
                Err(error) => Err(wrong(&error)),
            }
        }
    }
}

/// Runs a scenario; a panic is reported as an error instead of ending the process.
pub(crate) fn one(
    plan: &Plan,
    options: &RunOptions,
    pcap: Option<&Path>,
) -> Result<Inner, Failure> {
    // Unwind safe: no state of a run outlives it.
    catch_unwind(AssertUnwindSafe(|| match pcap {
        None => plan.run(options).map_err(Failure::from),
        Some(path) => captured(plan, options, path),
    }))
    .unwrap_or_else(|panic| Err(Failure::Run(format!("the simulator panicked: {}", said(&*panic)))))
}

fn captured(plan: &Plan, options: &RunOptions, path: &Path) -> Result<Inner, Failure> {
    let failed = |error| Failure::File(path.to_owned(), error);
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    let outcome = plan.run_captured(options, &mut file).map_err(Failure::from)?;
    file.flush().map_err(failed)?;
    Ok(outcome)
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}
