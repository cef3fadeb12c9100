//! Many runs in one call: parallel up to the number of threads, with the results in the requested
//! order.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use polypath_sim::{Outcome as Inner, RunOptions, Scenario as Plan};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::outcome::Outcome;
use crate::run::{one, wanted_series};
use crate::scenario::Scenario;

/// Interval of checks for Ctrl-C.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(100);

/// Runs scenarios in parallel and returns an outcome or an exception for each, in the order of
/// `jobs`. `done(index, result)` is called after each, in the calling thread. If it raises, or on
/// Ctrl-C, no more runs are started, running ones are awaited, and the exception is raised.
#[pyfunction]
#[pyo3(signature = (jobs, series=None, threads=None, done=None))]
pub(crate) fn run_many(
    py: Python<'_>,
    jobs: Vec<(Py<Scenario>, Option<u64>)>,
    series: Option<&str>,
    threads: Option<NonZero<usize>>,
    done: Option<Py<PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let series = wanted_series(series)?;
    let options = |seed| RunOptions { seed, series: series.clone(), ..RunOptions::default() };
    let plans: Vec<_> = jobs.iter().map(|(job, seed)| (&job.get().inner, options(*seed))).collect();
    let threads = threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get);
    let mut results: Vec<Option<Py<PyAny>>> = plans.iter().map(|_| None).collect();
    in_parallel(py, &plans, threads, |index, result| {
        let result = match result {
            Ok(outcome) => Py::new(py, Outcome::new(py, outcome)?)?.into_any(),
            Err(failure) => PyErr::from(failure).into_value(py).into_any(),
        };
        if let Some(done) = &done {
            done.call1(py, (index, &result))?;
        }
        results[index] = Some(result);
        Ok(())
    })?;
    Ok(results.into_iter().flatten().collect())
}

/// Calls `finished` in this thread as each run ends.
fn in_parallel(
    py: Python<'_>,
    plans: &[(&Plan, RunOptions)],
    threads: usize,
    mut finished: impl FnMut(usize, Result<Inner, Failure>) -> PyResult<()>,
) -> PyResult<()> {
    let next = AtomicUsize::new(0);
    let (sender, mut receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.min(plans.len()) {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((plan, options)) = plans.get(index) else { break };
                    if sender.send((index, one(plan, options, None))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let result = loop {
            let waiting = &mut receiver;
            let step = match py.detach(move || waiting.recv_timeout(LOOK_FOR_SIGNALS)) {
                Ok((index, result)) => finished(index, result),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            };
            if let Err(error) = step.and_then(|()| py.check_signals()) {
                break Err(error);
            }
        };
        if result.is_err() {
            next.store(plans.len(), Ordering::Relaxed);
            let rest = &mut receiver;
            py.detach(move || rest.iter().for_each(drop));
        }
        result
    })
}
