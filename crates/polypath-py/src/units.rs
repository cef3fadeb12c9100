//! Quantities with units, as numbers.

use polypath_sim::units::{Probability, Rate, Size, Span};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Parses a quantity as written in scenarios, in its base unit: bit/s, seconds, bytes, or a
/// fraction from 0 to 1.
#[pyfunction]
pub(crate) fn quantity(text: &str) -> PyResult<f64> {
    let rate = text.parse::<Rate>().map(|rate| rate.0 as f64).ok();
    let span = || text.parse::<Span>().map(|span| span.duration().as_secs_f64()).ok();
    let size = || text.parse::<Size>().map(|size| size.0 as f64).ok();
    let share = || text.parse::<Probability>().map(Probability::get).ok();
    rate.or_else(span).or_else(size).or_else(share).ok_or_else(|| {
        PyValueError::new_err(format!(
            "\"{text}\" is not a quantity; allowed: a rate (\"10 Mbit/s\"), a span of time \
             (\"45 ms\"), a size (\"64 KiB\") or a share (\"8 %\")"
        ))
    })
}
