//! Human-written input: profiles, TOML, sizes, durations and counts.

use pyo3::prelude::*;
use uflip_core::{Error, Quantity};

use crate::error::raise;

/// Parse a size [bytes], a duration [ns] or a count.
#[pyfunction]
pub fn read_quantity(thing: &str, text: &str) -> PyResult<i128> {
    let quantities = [Quantity::Size, Quantity::Duration, Quantity::Count];
    let quantity = quantities.into_iter().find(|quantity| quantity.name() == thing);
    let quantity =
        quantity.ok_or_else(|| Error::unknown("quantity", thing, &quantities.map(Quantity::name)));
    quantity.and_then(|quantity| quantity.read(text)).map_err(|error| raise(&error))
}

/// Return all faults of a profile, as JSON: line, key, got, allowed.
#[pyfunction]
pub fn profile_faults(profile_toml: &str, source: &str) -> PyResult<String> {
    let faults = uflip_sim::profile_faults(profile_toml, source).map_err(|error| raise(&error))?;
    Ok(serde_json::to_string(&faults).expect("serializable"))
}

/// Return the interface of a profile: `block` or `open_channel`.
#[pyfunction]
pub fn profile_interface(profile_toml: &str, source: &str) -> PyResult<&'static str> {
    uflip_sim::interface_of(profile_toml, source).map_err(|error| raise(&error))
}

/// Convert TOML of plain values to JSON.
#[pyfunction]
pub fn toml_to_json(text: &str) -> PyResult<String> {
    uflip_sim::toml_to_json(text).map_err(|error| raise(&error))
}

/// Return the source of each constant of a profile, as JSON: key → kind, detail, values.
#[pyfunction]
pub fn profile_sources(profile_toml: &str, source: &str) -> PyResult<String> {
    let sources = uflip_sim::sources(profile_toml, source).map_err(|error| raise(&error))?;
    Ok(serde_json::to_string(&sources).expect("serializable"))
}
