//! The analysis of a series of response times in a Python array of float64.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use uflip_core::{Error, SpooledVec};
use uflip_method::{AnalysisOptions, StopRule};

use crate::conversion::{json, raise};

/// Copy a contiguous float64 array, so that the interpreter lock can be released.
fn copied(py: Python<'_>, array: &PyBuffer<f64>) -> PyResult<SpooledVec<f64>> {
    if array.dimensions() == 1 {
        let mut values: SpooledVec<f64> = (0..array.item_count()).map(|_| 0.0).collect();
        array.copy_to_slice(py, &mut values)?;
        return Ok(values);
    }
    let error = Error::usage("Response times are a one-dimensional array")
        .got(format!("{} dimensions", array.dimensions()))
        .action("give one series at a time");
    Err(raise(error))
}

#[pyfunction]
#[pyo3(signature = (times_ns, *, confidence, half_width))]
pub fn analyse(
    py: Python<'_>,
    times_ns: PyBuffer<f64>,
    confidence: Option<f64>,
    half_width: Option<f64>,
) -> PyResult<String> {
    let times = copied(py, &times_ns)?;
    let options = options(confidence, half_width);
    py.detach(|| uflip_method::analyse(&times, options)).map(json).map_err(raise)
}

#[pyfunction]
#[pyo3(signature = (times_ns, *, confidence, half_width, min_ios))]
pub fn run_length(
    py: Python<'_>,
    times_ns: PyBuffer<f64>,
    confidence: Option<f64>,
    half_width: Option<f64>,
    min_ios: usize,
) -> PyResult<String> {
    let times = copied(py, &times_ns)?;
    let options = options(confidence, half_width);
    options.check().and_then(|()| uflip_method::check(&times)).map_err(raise)?;
    let verdict = py.detach(|| {
        let mut rule = StopRule::new(options, 1, min_ios);
        let mut from = 0;
        loop {
            let to = rule.next_evaluation().min(times.len());
            times[from..to].iter().for_each(|time| rule.push(0, *time));
            from = to;
            let verdict = rule.evaluate();
            if verdict.stop || to == times.len() {
                return verdict;
            }
        }
    });
    Ok(json(verdict))
}

fn options(confidence: Option<f64>, half_width: Option<f64>) -> AnalysisOptions {
    let default = AnalysisOptions::default();
    AnalysisOptions {
        confidence: confidence.unwrap_or(default.confidence),
        half_width: half_width.unwrap_or(default.half_width),
    }
}

#[pyfunction]
pub fn autocorrelation(
    py: Python<'_>,
    series: PyBuffer<f64>,
    max_lag: usize,
) -> PyResult<Vec<f64>> {
    let series = copied(py, &series)?;
    Ok(py.detach(|| uflip_method::autocorrelation(&series, max_lag)))
}

#[pyfunction]
pub fn pelt(py: Python<'_>, means: PyBuffer<f64>, penalty: f64) -> PyResult<Vec<usize>> {
    let means = copied(py, &means)?;
    Ok(py.detach(|| uflip_method::pelt(&means, penalty)))
}

#[pyfunction]
pub fn half_width(means: Vec<f64>, confidence: f64) -> f64 {
    uflip_method::half_width(&means, confidence)
}

#[pyfunction]
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    uflip_method::student_quantile(p, freedom)
}
