//! The Python bindings: convert, release the interpreter lock, call, convert. They contain no
//! logic.
//!
//! Each run takes one pattern as JSON and returns one trace (columns that numpy views without a
//! copy). `python/uflip/_native.pyi` documents each function.

mod analysis;
mod any_device;
mod background;
mod columns;
mod conversion;
mod device;
mod flash;
mod inside;
mod inspect;
mod ios;
mod serve;
mod trace;
mod verification;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::analysis::{
        analyse, autocorrelation, half_width, pelt, run_length, student_quantile,
    };
    #[pymodule_export]
    use crate::background::Handle;
    #[pymodule_export]
    use crate::columns::Column;
    #[pymodule_export]
    use crate::conversion::NativeError;
    #[pymodule_export]
    use crate::device::PyDevice;
    #[pymodule_export]
    use crate::flash::{FlashDevice, PyFlashTrace, inspect_flash, read_flash_trace};
    #[pymodule_export]
    use crate::inspect::{
        causes_json, check_block, check_durability, check_file, check_polled, clock_ns,
        inspect_block, inspect_file, inspect_nvme, inspect_sim, inspect_snapshot, known_blocks,
        locations_json, profile_faults, profile_interface, profile_keys_json, profile_sources,
        query_drive, read_quantity, registry_json, report_block, resolve_pattern, resolve_state,
        toml_to_json,
    };
    #[pymodule_export]
    use crate::ios::{
        Ios, Recording, read_numbers, read_rates, read_recording, read_series, recognised_format,
        recording_formats, unit_of_name,
    };
    #[pymodule_export]
    use crate::serve::{PyListener, check_data_file, serve};
    #[pymodule_export]
    use crate::trace::{
        PyTrace, check_traces, digest, digest_files, read_inside, read_metadata,
        read_specification, read_trace,
    };

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyModuleMethods;
        module.add("SIMULATOR_VERSION", uflip_sim::snapshot::VERSION)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
