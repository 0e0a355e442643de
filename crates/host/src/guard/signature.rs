//! The contents of a medium (file systems, volumes, partition tables), identified by libblkid.
//!
//! The library is loaded on demand, so that building uflip needs no header, and simulated devices
//! need no library. Without it the contents are unknown, which differs from an empty medium: the
//! signature is then `unprobed`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;

use libloading::{Library, Symbol};

const LIBRARY: &str = "libblkid.so.1";
/// `BLKID_SUBLKS_LABEL | UUID | TYPE | USAGE | BADCSUM`: damaged superblocks count, too.
const SUPERBLOCKS: c_int = 1 << 1 | 1 << 3 | 1 << 5 | 1 << 7 | 1 << 10;
/// A bound on the number of signatures, in case the library never ends.
const MAX_SIGNATURES: usize = 64;
/// The name of unknown contents.
pub(crate) const UNPROBED: &str = "unprobed";
/// The protective partition table of a GPT disk.
const PROTECTIVE_MBR: &str = "PMBR";

/// One signature on a medium.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The name in libblkid (`ext4`, `crypto_LUKS`, `gpt`), or [`UNPROBED`].
    pub name: String,
    /// Its label, or its identifier if it has no label; may be empty.
    pub label: String,
}

impl Signature {
    fn unprobed(reason: String) -> Vec<Signature> {
        vec![Signature { name: UNPROBED.into(), label: reason }]
    }
}

/// Return all signatures on `medium`, which must not be open for direct I/O.
pub(crate) fn probe(medium: &File) -> Vec<Signature> {
    probe_with(LIBRARY, medium)
}

fn probe_with(library: &str, medium: &File) -> Vec<Signature> {
    // SAFETY: libblkid has no initialisers with side effects.
    let loaded = match unsafe { Library::new(library) } {
        Ok(loaded) => loaded,
        Err(error) => return Signature::unprobed(format!("{library} is missing: {error}")),
    };
    // SAFETY: the types are those of libblkid/blkid.h, stable since util-linux 2.17.
    let signatures = unsafe { read_signatures(&loaded, medium) };
    signatures.unwrap_or_else(|error| Signature::unprobed(error.to_string()))
}

type Probe = *mut c_void;
type Freer<'a> = Symbol<'a, unsafe extern "C" fn(Probe)>;

/// Frees a probe on drop.
struct OwnedProbe<'a>(Probe, Freer<'a>);

impl Drop for OwnedProbe<'_> {
    fn drop(&mut self) {
        // SAFETY: created by blkid_new_probe, and not freed yet.
        unsafe { (self.1)(self.0) };
    }
}

/// # Safety
/// `library` must be libblkid.
unsafe fn read_signatures(
    library: &Library,
    medium: &File,
) -> Result<Vec<Signature>, libloading::Error> {
    // SAFETY: names and types as blkid.h declares them; the probe outlives its uses.
    unsafe {
        let new: Symbol<unsafe extern "C" fn() -> Probe> = library.get(b"blkid_new_probe")?;
        let free: Freer = library.get(b"blkid_free_probe")?;
        let set_device: Symbol<unsafe extern "C" fn(Probe, c_int, i64, i64) -> c_int> =
            library.get(b"blkid_probe_set_device")?;
        let set = |name: &[u8], value: c_int, probe: Probe| -> Result<(), libloading::Error> {
            let set: Symbol<unsafe extern "C" fn(Probe, c_int) -> c_int> = library.get(name)?;
            set(probe, value);
            Ok(())
        };
        let next: Symbol<unsafe extern "C" fn(Probe) -> c_int> = library.get(b"blkid_do_probe")?;
        let probe = OwnedProbe(new(), free);
        if probe.0.is_null() || set_device(probe.0, medium.as_raw_fd(), 0, 0) != 0 {
            return Ok(Signature::unprobed("it could not be read".into()));
        }
        set(b"blkid_probe_enable_superblocks", 1, probe.0)?;
        set(b"blkid_probe_set_superblocks_flags", SUPERBLOCKS, probe.0)?;
        set(b"blkid_probe_enable_partitions", 1, probe.0)?;
        let mut signatures: Vec<Signature> = vec![];
        // 0: another signature was found; 1: no more; negative: the medium is unreadable.
        let mut status = 0;
        while status == 0 && signatures.len() < MAX_SIGNATURES {
            status = next(probe.0);
            if status != 0 {
                break;
            }
            let name = value(library, probe.0, c"TYPE")?;
            let name = if name.is_empty() { value(library, probe.0, c"PTTYPE")? } else { name };
            let label = value(library, probe.0, c"LABEL")?;
            let label = if label.is_empty() { value(library, probe.0, c"UUID")? } else { label };
            let new = !signatures.iter().any(|signature| signature.name == name);
            if new && !name.is_empty() && name != PROTECTIVE_MBR {
                signatures.push(Signature { name, label });
            }
        }
        if status < 0 {
            signatures.extend(Signature::unprobed("it could not be read".into()));
        }
        Ok(signatures)
    }
}

/// # Safety
/// `library` must be libblkid and `probe` one of its probes.
unsafe fn value(library: &Library, probe: Probe, name: &CStr) -> Result<String, libloading::Error> {
    // SAFETY: the type is that of blkid.h; the data belong to the probe and are copied at once.
    unsafe {
        type Lookup =
            unsafe extern "C" fn(Probe, *const c_char, *mut *const c_char, *mut usize) -> c_int;
        let lookup: Symbol<Lookup> = library.get(b"blkid_probe_lookup_value")?;
        let mut data: *const c_char = std::ptr::null();
        if lookup(probe, name.as_ptr(), &raw mut data, std::ptr::null_mut()) != 0 || data.is_null()
        {
            return Ok(String::new());
        }
        Ok(CString::from(CStr::from_ptr(data)).to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_library_reports_unprobed() {
        let medium = tempfile::tempfile().expect("create a temporary file");
        medium.set_len(1 << 20).expect("resize the file");
        let signatures = probe_with("libno-such-library.so.9", &medium);
        assert_eq!(signatures.len(), 1);
        assert_eq!(signatures[0].name, UNPROBED);
        assert!(signatures[0].label.contains("libno-such-library"), "{signatures:?}");
    }
}
