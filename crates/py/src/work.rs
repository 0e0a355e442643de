//! The kinds of work on a device: a run, which returns a trace, or several in a row; a state or an
//! idle time, which return nothing; untimed writes, which return counters; and the growth of a file
//! or the creation of a simulated device, which return the device.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::IntoPyObjectExt as _;
use uflip_core::{Bytes, Durability, Nanos, Result};
use uflip_engine::{Control, Resolved, ResolvedState, SeriesPart};
use uflip_host::{DirectDevice, Growth};
use uflip_sim::Snapshot;

use crate::any_device::AnyDevice;
use crate::device::{AnySlot, PyDevice};
use crate::job::{BackgroundJob, Handle};
use crate::trace::PyTrace;

/// Run `pattern` on `device` with `durability`, with a long trace in a file in `spool`, and put the
/// device back into `slot`. With `inside`, the inside of the device is recorded.
pub(crate) fn run(
    device: AnyDevice,
    slot: AnySlot,
    pattern: Resolved,
    durability: Durability,
    spool: Option<PathBuf>,
    inside: bool,
    in_pieces: bool,
) -> Handle {
    let control = Control::new(pattern.streams.len()).in_pieces(in_pieces);
    let total = pattern.totals.total_ios;
    let work = move |device: &mut AnyDevice, control: &Control| -> Result<_> {
        device.set_durability(durability)?;
        let before = device.counters();
        let outcome = device.mark_writes(pattern.writes(), |device| {
            if inside {
                let outcome = device.run_inside(pattern, control, spool);
                return outcome.map(|(trace, inside)| (trace, Some(inside)));
            }
            device.run(pattern, control, spool).map(|trace| (trace, None))
        });
        let (trace, inside) = outcome?;
        let after = device.counters();
        let counters = before.zip(after).map(|(before, after)| after.since(&before));
        Ok((trace, counters, inside))
    };
    BackgroundJob::start(device, slot, control, total, work).handle(
        |py, (trace, counters, inside)| {
            let metadata = String::new();
            PyTrace { trace: Arc::new(trace), metadata, counters, inside }.into_py_any(py)
        },
    )
}

/// Run `patterns` on `device` back to back; otherwise as [`run`]. Return for each its start, from
/// the start of the first [ns], and its trace.
pub(crate) fn run_series(
    device: AnyDevice,
    slot: AnySlot,
    patterns: Vec<Resolved>,
    durability: Durability,
) -> Handle {
    let processes = patterns.iter().map(|pattern| pattern.streams.len()).max().unwrap_or(1);
    let total = patterns.iter().map(|pattern| pattern.totals.total_ios).sum();
    let work = move |device: &mut AnyDevice, control: &Control| -> Result<_> {
        device.set_durability(durability)?;
        let writes = patterns.iter().any(Resolved::writes);
        device.mark_writes(writes, |device| device.run_series(patterns, control))
    };
    BackgroundJob::start(device, slot, Control::new(processes), total, work).handle(|py, parts| {
        let traces = parts.into_iter().map(|SeriesPart { trace, began, counters }| {
            let (trace, metadata) = (Arc::new(trace.into()), String::new());
            (began.0, PyTrace { trace, metadata, counters, inside: None })
        });
        traces.collect::<Vec<_>>().into_py_any(py)
    })
}

/// Create a device.
pub(crate) fn make(
    bytes: Bytes,
    create: impl FnOnce(&Control) -> Result<AnyDevice> + Send + 'static,
) -> Handle {
    let job = BackgroundJob::make(Control::new(1), bytes.0, None, create);
    job.handle(|py, device| PyDevice::new(device).into_py_any(py))
}

/// Copy a simulated device; as [`run`].
pub(crate) fn copy(device: AnyDevice, slot: AnySlot) -> Handle {
    let work = |device: &mut AnyDevice, _: &Control| {
        device.simulated("cloned").map(|sim| AnyDevice::Sim(Box::new(sim.clone())))
    };
    let job = BackgroundJob::start(device, slot, Control::new(1), 1, work);
    job.handle(|py, device| PyDevice::new(device).into_py_any(py))
}

/// Write a simulated device to the new file `path`; as [`run`].
pub(crate) fn save(device: AnyDevice, slot: AnySlot, path: PathBuf) -> Handle {
    let work = move |device: &mut AnyDevice, control: &Control| {
        device.simulated("saved")?.save_unless(&path, &|| control.is_cancelled())
    };
    let job = BackgroundJob::start(device, slot, Control::new(1), 1, work);
    job.handle(|py, ()| Ok(py.None()))
}

/// Leave `device` idle for a while; as [`run`].
pub(crate) fn idle(device: AnyDevice, slot: AnySlot, pause: Nanos) -> Handle {
    let work = move |device: &mut AnyDevice, control: &Control| device.idle(pause, control);
    BackgroundJob::start(device, slot, Control::new(1), 1, work).handle(|py, ()| Ok(py.None()))
}

/// Apply the I/Os of `pattern` to a simulated device, untimed; as [`run`].
pub(crate) fn apply(device: AnyDevice, slot: AnySlot, pattern: Resolved) -> Handle {
    let total = pattern.totals.total_ios;
    let work = move |device: &mut AnyDevice, control: &Control| device.apply(&pattern, control);
    let job = BackgroundJob::start(device, slot, Control::new(1), total, work);
    job.handle(|py, counters| {
        serde_json::to_string(&counters).expect("serializable").into_py_any(py)
    })
}

/// Drive `device` with `pattern` until its power is cut, and let it recover; as [`run`].
pub(crate) fn survive(
    device: AnyDevice,
    slot: AnySlot,
    pattern: Option<Resolved>,
    durability: Durability,
    at_once: u32,
    after: Nanos,
) -> Handle {
    let total = pattern.as_ref().map_or(0, |pattern| pattern.totals.total_ios);
    let work = move |device: &mut AnyDevice, control: &Control| {
        device.survive(pattern.as_ref(), durability, at_once, after, control)
    };
    let job = BackgroundJob::start(device, slot, Control::new(1), total, work);
    job.handle(|py, outage| serde_json::to_string(&outage).expect("serializable").into_py_any(py))
}

/// Execute the writes of `state` from number `ios.start` on; as [`run`].
pub(crate) fn enforce(
    device: AnyDevice,
    slot: AnySlot,
    state: ResolvedState,
    ios: Range<u64>,
) -> Handle {
    let (skip, total) = (ios.start, ios.end - ios.start);
    let writes = state.writes().skip(usize::try_from(skip).unwrap_or(usize::MAX));
    let work = move |device: &mut AnyDevice, control: &Control| {
        device.mark_writes(true, |device| device.enforce(writes, control))
    };
    BackgroundJob::start(device, slot, Control::new(1), total, work).handle(|py, ()| Ok(py.None()))
}

/// Write the missing part of a file; on failure the file is restored.
pub(crate) fn grow((device, growth): (DirectDevice, Option<Growth>)) -> Handle {
    let (total, watch) = (growth.as_ref().map_or(0, Growth::ios), device.watch());
    let work = move |control: &Control| -> Result<AnyDevice> {
        let mut device = AnyDevice::Direct(device);
        if let Some(growth) = growth {
            device.mark_writes(true, |device| {
                device.enforce(growth.writes(), control).inspect_err(|_| growth.roll_back())
            })?;
            device.update_allocated_size();
        }
        Ok(device)
    };
    let job = BackgroundJob::make(Control::new(1), total, Some(watch), work);
    job.handle(|py, device| PyDevice::new(device).into_py_any(py))
}

/// Set the zones that `pattern` uses to the required states; as [`run`].
pub(crate) fn prepare_zones(device: AnyDevice, slot: AnySlot, pattern: Resolved) -> Handle {
    let work = move |device: &mut AnyDevice, control: &Control| {
        device.mark_writes(true, |device| device.prepare_zones(&pattern, control))
    };
    BackgroundJob::start(device, slot, Control::new(1), 1, work).handle(|py, ()| Ok(py.None()))
}
