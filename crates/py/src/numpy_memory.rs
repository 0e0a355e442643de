//! Memory of large numpy arrays: a temporary file that is mapped, as for [`uflip_core::SpooledVec`].
//!
//! **Source**: NEP 49, *Data allocation strategies*: numpy asks the handler of the current context for
//! the memory of an array, and later the same handler to release it.
//! **Faithful**: the layout of handler version 1, and the place of the functions in numpy's table.
//! **Simplified**: arrays that grow in place (`realloc`) stay in memory, unless they began in a file.
//! **Ambiguous**: nothing.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use uflip_core::{map_bytes, mapped_bytes, unmap_bytes};

/// Smaller arrays are in memory [bytes].
const MEMORY_BYTES: usize = 64 << 20;

/// `PyDataMemAllocator`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Allocator {
    context: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

/// `PyDataMem_Handler`; the context of ours is the allocator of numpy.
#[repr(C)]
struct Handler {
    name: [c_char; 127],
    version: u8,
    allocator: Allocator,
}

// SAFETY: the fields are constant, and the functions may be called on any thread.
unsafe impl Send for Handler {}

const HANDLER_NAME: &CStr = c"mem_handler";
/// The positions of `PyDataMem_SetHandler` and `PyDataMem_DefaultHandler` in the table of numpy.
const SET_HANDLER: usize = 304;
const DEFAULT_HANDLER: usize = 306;

/// Let `handler` provide the memory of new arrays of this context, and return the one before.
///
/// `None`: one that puts large arrays into mapped files.
#[pyfunction]
#[pyo3(signature = (handler=None))]
pub fn set_array_memory<'py>(
    py: Python<'py>,
    handler: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let table = py.import("numpy._core._multiarray_umath")?.getattr("_ARRAY_API")?;
    let table = table.cast::<PyCapsule>()?.pointer_checked(None)?.cast::<*mut c_void>();
    let handler = match handler {
        Some(handler) => handler,
        None => {
            // SAFETY: numpy 2 stores the address of the capsule of its own handler here.
            let default =
                unsafe { *(*table.add(DEFAULT_HANDLER).as_ptr()).cast::<*mut ffi::PyObject>() };
            // SAFETY: the capsule lives as long as numpy.
            let default = unsafe { Bound::from_borrowed_ptr(py, default) };
            let default = default.cast_into::<PyCapsule>()?;
            mapping_handler(&default)?
        }
    };
    // SAFETY: numpy 2 stores this function here.
    let set: unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject =
        unsafe { std::mem::transmute(*table.add(SET_HANDLER).as_ptr()) };
    // SAFETY: the handler is a capsule of this name, which numpy checks; the result is a new reference.
    unsafe { Bound::from_owned_ptr_or_err(py, set(handler.as_ptr())) }
}

/// Return a capsule of the handler for mapped files; smaller arrays get the memory of `default`.
fn mapping_handler<'py>(default: &Bound<'py, PyCapsule>) -> PyResult<Bound<'py, PyAny>> {
    let inner = default.pointer_checked(Some(HANDLER_NAME))?.cast::<Handler>();
    let mut name = [0; 127];
    for (to, from) in name.iter_mut().zip(b"uflip_mapped") {
        *to = *from as c_char;
    }
    // SAFETY: the handler of numpy is constant, and lives as long as numpy.
    let context = unsafe { &raw mut (*inner.as_ptr()).allocator };
    let allocator = Allocator { context: context.cast(), malloc, calloc, realloc, free };
    let handler = Handler { name, version: 1, allocator };
    Ok(PyCapsule::new_with_value(default.py(), handler, HANDLER_NAME)?.into_any())
}

/// Return the allocator of numpy.
unsafe fn inner(context: *mut c_void) -> Allocator {
    // SAFETY: the context is a constant allocator.
    unsafe { *context.cast::<Allocator>() }
}

fn mapped(bytes: usize) -> Option<NonNull<c_void>> {
    if bytes < MEMORY_BYTES { None } else { map_bytes(bytes).ok() }
}

unsafe extern "C" fn malloc(context: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: numpy's own function, with its context.
    let default = || unsafe { (inner(context).malloc)(inner(context).context, bytes) };
    mapped(bytes).map_or_else(default, NonNull::as_ptr)
}

unsafe extern "C" fn calloc(context: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: numpy's own function, with its context.
    let default = || unsafe { (inner(context).calloc)(inner(context).context, count, size) };
    count.checked_mul(size).and_then(mapped).map_or_else(default, NonNull::as_ptr)
}

unsafe extern "C" fn realloc(context: *mut c_void, old: *mut c_void, bytes: usize) -> *mut c_void {
    let Some(old_bytes) = mapped_bytes(old) else {
        // SAFETY: numpy's own function, with its context and its memory.
        return unsafe { (inner(context).realloc)(inner(context).context, old, bytes) };
    };
    // SAFETY: as numpy calls it.
    let new = unsafe { malloc(context, bytes) };
    if !new.is_null() {
        // SAFETY: both are at least this long, and apart.
        unsafe {
            std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), bytes.min(old_bytes))
        };
        // SAFETY: numpy gives up the old memory.
        unsafe { unmap_bytes(old) };
    }
    new
}

unsafe extern "C" fn free(context: *mut c_void, start: *mut c_void, bytes: usize) {
    // SAFETY: numpy gives up the memory.
    if !unsafe { unmap_bytes(start) } {
        // SAFETY: numpy's own function, with its context and its memory.
        unsafe { (inner(context).free)(inner(context).context, start, bytes) };
    }
}
