//! Functions that need no open device: properties and checks of targets, patterns and states, profiles,
//! sizes, durations and counts.

use std::path::Path;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;
use uflip_core::{Bytes, Counters, DeviceKind, Durability, Error, Quantity};
use uflip_engine::{PatternSpec, ResolvedState, StateSpec, StateTotals};
use uflip_host::{Data, DriveQuery};

use crate::background::interruptible;
use crate::conversion::{json, raise};

/// Check that `text` names a durability.
#[pyfunction]
pub fn check_durability(text: &str) -> PyResult<()> {
    read_durability(text).map(|_| ())
}

/// Return the registered names by kind, for help, documentation and their tests.
#[pyfunction]
pub fn registry_json() -> String {
    serde_json::json!({
        "ftl": uflip_sim::FTLS,
        "gc": uflip_sim::VICTIM_POLICIES,
        "allocator": uflip_sim::ALLOCATORS,
        "data": Data::NAMES,
        "counters": counter_names(),
    })
    .to_string()
}

/// Return the location functions of patterns, as JSON: name, properties and parameters of each.
#[pyfunction]
pub fn locations_json() -> String {
    json(uflip_engine::LOCATIONS)
}

/// Return the causes of response times by kind of device, as JSON: column, label, colour and
/// meaning of each; and for each purpose of an operation the column of its work.
#[pyfunction]
pub fn causes_json() -> String {
    serde_json::json!({
        "host": uflip_engine::HOST_COLUMNS,
        "block": uflip_sim::SimBreakdown::ABOUT,
        "open_channel": uflip_sim::FlashBreakdown::ABOUT,
        "purposes": uflip_sim::Operations::PURPOSES,
    })
    .to_string()
}

/// Return the tables of the profiles of an interface, as JSON: name, and keys with name, unit,
/// allowed values and meaning.
#[pyfunction]
pub fn profile_keys_json(interface: &str) -> String {
    json(uflip_sim::key_tables(interface))
}

#[pyfunction]
pub fn inspect_file(py: Python<'_>, path: String, buffered: bool) -> PyResult<String> {
    interruptible(py, move |_| uflip_host::inspect_file(&path, buffered)).map(json)
}

#[pyfunction]
pub fn inspect_sim(
    name: &str,
    profile_toml: &str,
    source: &str,
    overrides_json: &str,
) -> PyResult<String> {
    let profile = uflip_sim::Profile::parse(profile_toml, source, overrides_json).map_err(raise)?;
    let info = uflip_sim::SimDevice::inspect(name, &profile);
    Ok(json(info))
}

#[pyfunction]
#[pyo3(signature = (path, interface=None))]
pub fn inspect_snapshot(path: &str, interface: Option<&str>) -> PyResult<String> {
    uflip_sim::inspect_snapshot(Path::new(path), interface).map(json).map_err(raise)
}

#[pyfunction]
pub fn inspect_block(py: Python<'_>, path: String) -> PyResult<String> {
    interruptible(py, move |_| uflip_host::inspect_block(&path)).map(json)
}

#[pyfunction]
pub fn inspect_nvme(py: Python<'_>, path: String) -> PyResult<String> {
    interruptible(py, move |_| uflip_host::inspect_nvme(&path)).map(json)
}

#[pyfunction]
pub fn check_block(py: Python<'_>, path: String, destroy: Option<String>) -> PyResult<()> {
    interruptible(py, move |_| uflip_host::check_block(&path, destroy.as_deref()))
}

#[pyfunction]
pub fn check_file(py: Python<'_>, path: String, destroy: Option<String>) -> PyResult<()> {
    interruptible(py, move |stop| uflip_host::check_file(&path, destroy.as_deref(), stop))
}

#[pyfunction]
pub fn check_polled(py: Python<'_>, path: String, buffered: bool) -> PyResult<()> {
    interruptible(py, move |_| uflip_host::check_polled(&path, buffered))
}

#[pyfunction]
pub fn report_block(py: Python<'_>, path: String) -> PyResult<String> {
    interruptible(py, move |_| uflip_host::report_block(&path)).map(report_json)
}

/// Return the properties of each block device, and its report (JSON).
#[pyfunction]
pub fn known_blocks(py: Python<'_>, paths: Vec<String>) -> PyResult<Vec<(String, String)>> {
    let reports = interruptible(py, move |_| Ok(uflip_host::report_blocks(&paths)))?.into_iter();
    let documents = reports.map(|(info, report)| (json(info), report_json(report)));
    Ok(documents.collect())
}

fn report_json(report: uflip_host::BlockReport) -> String {
    let holds: Vec<_> = report.signatures.iter().map(|signature| &signature.name).collect();
    serde_json::json!({
        "in_use": uflip_host::format_uses(&report.uses),
        "holds": holds,
        "token": report.token,
    })
    .to_string()
}

fn counter_names() -> Vec<String> {
    match serde_json::to_value(Counters::default()) {
        Ok(Value::Object(zeros)) => zeros.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}

/// Return the drive's answer, or no bytes and the reason.
#[pyfunction]
#[pyo3(signature = (path, query, page=0, specific=0, size_bytes=512))]
pub fn query_drive<'py>(
    py: Python<'py>,
    path: &str,
    query: &str,
    page: u8,
    specific: u16,
    size_bytes: usize,
) -> PyResult<(Bound<'py, PyBytes>, String)> {
    let query = match query {
        "nvme_controller" => DriveQuery::NvmeController,
        "nvme_namespace" => DriveQuery::NvmeNamespace,
        "nvme_log" => DriveQuery::NvmeLog { page, specific, bytes: size_bytes },
        "ata_identify" => DriveQuery::AtaIdentify,
        "ata_smart" => DriveQuery::AtaSmart,
        _ => return Err(PyValueError::new_err(format!("no such query: {query}"))),
    };
    Ok(match py.detach(|| uflip_host::query_drive(path, query)) {
        Ok(answer) => (PyBytes::new(py, &answer), String::new()),
        Err(reason) => (PyBytes::new(py, &[]), reason),
    })
}

#[pyfunction]
pub fn resolve_pattern(
    spec_json: &str,
    capacity_bytes: u64,
    sector_bytes: u64,
    kind: &str,
) -> PyResult<String> {
    let kind: DeviceKind = serde_json::from_value(kind.into()).expect("a known kind of device");
    let resolved = PatternSpec::parse(spec_json)
        .and_then(|spec| spec.resolve(Bytes(capacity_bytes), Bytes(sector_bytes)))
        .and_then(|resolved| resolved.check_on(kind).map(|()| resolved))
        .map_err(raise)?;
    let mut canonical = resolved.canonical;
    canonical["totals"] = serde_json::to_value(resolved.totals).unwrap_or(Value::Null);
    Ok(canonical.to_string())
}

#[pyfunction]
pub fn resolve_state(
    py: Python<'_>,
    state_json: &str,
    capacity_bytes: u64,
    sector_bytes: u64,
) -> PyResult<String> {
    let (capacity, sector) = (Bytes(capacity_bytes), Bytes(sector_bytes));
    let (resolved, totals) = counted_state(py, state_json, capacity, sector)?;
    let mut canonical = serde_json::to_value(resolved).expect("serializable");
    canonical["totals"] = serde_json::to_value(totals).expect("serializable");
    Ok(canonical.to_string())
}

#[pyfunction]
pub fn clock_ns(py: Python<'_>) -> f64 {
    py.detach(uflip_host::clock_cost_ns)
}

/// Parse a size [bytes], a duration [ns] or a count.
#[pyfunction]
pub fn read_quantity(thing: &str, text: &str) -> PyResult<i128> {
    let quantities = [Quantity::Size, Quantity::Duration, Quantity::Count];
    let quantity = quantities.into_iter().find(|quantity| quantity.name() == thing);
    let quantity =
        quantity.ok_or_else(|| Error::unknown("quantity", thing, &quantities.map(Quantity::name)));
    quantity.and_then(|quantity| quantity.read(text)).map_err(raise)
}

/// Return all faults of a profile, as JSON: line, key, got, allowed.
#[pyfunction]
pub fn profile_faults(profile_toml: &str, source: &str) -> PyResult<String> {
    uflip_sim::profile_faults(profile_toml, source).map(json).map_err(raise)
}

/// Return the interface of a profile: `block` or `open_channel`.
#[pyfunction]
pub fn profile_interface(profile_toml: &str, source: &str) -> PyResult<&'static str> {
    uflip_sim::interface_of(profile_toml, source).map_err(raise)
}

/// Convert TOML of plain values to JSON.
#[pyfunction]
pub fn toml_to_json(text: &str) -> PyResult<String> {
    uflip_sim::toml_to_json(text).map_err(raise)
}

/// Return the source of each constant of a profile, as JSON: key → kind, detail, values.
#[pyfunction]
pub fn profile_sources(profile_toml: &str, source: &str) -> PyResult<String> {
    uflip_sim::sources(profile_toml, source).map(json).map_err(raise)
}

pub(crate) fn read_durability(text: &str) -> PyResult<Durability> {
    text.parse().map_err(raise)
}

/// Resolve a state and count its writes, which takes seconds for a large device.
pub(crate) fn counted_state(
    py: Python<'_>,
    json: &str,
    capacity: Bytes,
    sector: Bytes,
) -> PyResult<(ResolvedState, StateTotals)> {
    let spec = StateSpec::parse(json).map_err(raise)?;
    interruptible(py, move |stop| {
        let state = spec.resolve(capacity, sector)?;
        Ok((state, state.totals(stop)?))
    })
}
