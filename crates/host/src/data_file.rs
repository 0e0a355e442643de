//! The data file of a served device, which keeps its clients' data beyond the life of the server.
//! It passes the same [guard](crate::guard) as every other written file. A server recognises its
//! own files by [their mark](crate::guard::ownership).

use std::fs::File;
use std::path::Path;

use uflip_core::{Bytes, Error, ErrorKind, Result};

use crate::guard::admit::{self, WriteRequest};
use crate::guard::machine::Machine;
use crate::guard::ownership::DataMark;
use crate::guard::target::{Folder, TargetHandle};
use crate::guard::{Roots, lock};

/// Readable by its owner only: it may hold a database.
const MODE: libc::c_uint = 0o600;

/// The options for a data file.
#[derive(Clone, Copy, Debug)]
pub struct DataOptions<'a> {
    /// The size of the device.
    pub size: Bytes,
    /// Clients may not write: nothing is created, marked or changed.
    pub read_only: bool,
    /// The `--destroy` text that the user typed for a file that no uflip server created.
    pub destroy: Option<&'a str>,
}

/// A data file, open and locked; its mark is closed when this is dropped.
#[derive(Debug)]
pub struct DataFile {
    _mark: Option<DataMark>,
    file: File,
}

impl DataFile {
    /// Open the file at `path`, or create it with zeroes if it is missing and clients may write.
    ///
    /// If the file cannot be created, read or written; [`ErrorKind::Refused`] if its size differs,
    /// it is in use, or it holds data that no uflip server wrote.
    pub fn open(path: &Path, options: DataOptions) -> Result<DataFile> {
        let location = path.display().to_string();
        let machine = Machine::examine(&Roots::default());
        let Some(target) = find(path, &location, options)? else {
            return create(&machine, path, &location, options);
        };
        let reader = admit(&machine, &target, &location, options)?;
        let file = target.open(!options.read_only, libc::O_NONBLOCK);
        let file = file.map_err(|error| unusable(&location, options, &error))?;
        target.check_same(&file, &location)?;
        lock::hold(&file, !options.read_only, &location)?;
        if options.read_only {
            return Ok(DataFile { _mark: None, file });
        }
        // A second check under the lock: another server may have opened it meanwhile.
        let machine = Machine::examine(&machine.roots);
        admit::admit_data_file(&machine, &reader, write_request(&location, options))?;
        DataFile::marked(file, &location, options)
    }

    fn marked(file: File, location: &str, options: DataOptions) -> Result<DataFile> {
        let mark = DataMark::open(&file).map_err(|error| unusable(location, options, &error))?;
        Ok(DataFile { _mark: Some(mark), file })
    }

    /// Return the file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Check whether the file at `path` may be used like in [`DataFile::open`], without opening it for
/// writing.
///
/// # Errors
/// As [`DataFile::open`].
pub fn check_data_file(path: &Path, options: DataOptions) -> Result<()> {
    let location = path.display().to_string();
    let machine = Machine::examine(&Roots::default());
    match find(path, &location, options)? {
        Some(target) => admit(&machine, &target, &location, options).map(|_| ()),
        None => folder_of(&machine, path, &location, options).map(|_| ()),
    }
}

/// Find the file at `path`; it may be missing only if it can be created.
fn find(path: &Path, location: &str, options: DataOptions) -> Result<Option<TargetHandle>> {
    match TargetHandle::find(path).map_err(|error| unusable(location, options, &error))? {
        None if options.read_only => {
            let missing = std::io::Error::from_raw_os_error(libc::ENOENT);
            Err(unusable(location, options, &missing))
        }
        target => Ok(target),
    }
}

/// Refuse a file of another kind or size, or one that must not be written; return a descriptor for
/// reading.
fn admit(
    machine: &Machine,
    target: &TargetHandle,
    location: &str,
    options: DataOptions,
) -> Result<File> {
    admit::refuse_below_dev(&target.real_path(), location)?;
    let is_file = target.metadata.is_file();
    if !is_file || target.metadata.len() != options.size.0 {
        return Err(wrong_size(location, is_file, target.metadata.len(), options));
    }
    admit::admit_file_system(machine, target.descriptor(), location)?;
    let reader = target.reader().map_err(|error| unusable(location, options, &error))?;
    if !options.read_only {
        admit::admit_data_file(machine, &reader, write_request(location, options))?;
    }
    Ok(reader)
}

fn write_request<'a>(location: &'a str, options: DataOptions<'a>) -> WriteRequest<'a> {
    let alternative = "name a file that does not exist yet";
    WriteRequest { location, path: location, destroy: options.destroy, alternative }
}

/// Return the folder for a new file.
fn folder_of(
    machine: &Machine,
    path: &Path,
    location: &str,
    options: DataOptions,
) -> Result<Folder> {
    let folder = Folder::containing(path).map_err(|error| unusable(location, options, &error))?;
    admit::refuse_below_dev(&folder.real_path(), location)?;
    admit::admit_file_system(machine, folder.descriptor(), location)?;
    Ok(folder)
}

/// Create the file with `options.size` zeros, and sync it and its folder.
fn create(
    machine: &Machine,
    path: &Path,
    location: &str,
    options: DataOptions,
) -> Result<DataFile> {
    let folder = folder_of(machine, path, location, options)?;
    let failed = |error: std::io::Error| unusable(location, options, &error);
    let file = TargetHandle::create(&folder, MODE).map_err(failed)?;
    let data_file = lock::hold(&file, true, location).and_then(|()| {
        file.set_len(options.size.0).map_err(failed)?;
        let data_file = DataFile::marked(file.try_clone().map_err(failed)?, location, options)?;
        folder.sync().map_err(failed).map(|()| data_file)
    });
    data_file.inspect_err(|_| folder.remove(&file))
}

fn unusable(location: &str, options: DataOptions, error: &std::io::Error) -> Error {
    Error::os("The data file cannot be used", location, error).action(if options.read_only {
        "name an existing file that may be read"
    } else {
        "name a file that may be written, or a new one"
    })
}

fn wrong_size(location: &str, is_file: bool, length: u64, options: DataOptions) -> Error {
    let (or_missing, creation) = if options.read_only {
        ("", "")
    } else {
        (", or a new file", "; it is created with the size of the device")
    };
    let kind = if is_file { "" } else { "not a regular file, " };
    Error::new(ErrorKind::Refused, "The data file does not fit the device")
        .at(location)
        .got(format!("{kind}{length} bytes"))
        .allowed(format!("a regular file of {} bytes{or_missing}", options.size.0))
        .action(format!("name another file{creation}"))
}
