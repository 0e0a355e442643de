//! The data file of a served device, which keeps its clients' data beyond the life of the server.
//! It passes the same [guard](crate::guard) as every other written file. A server recognises its
//! own files by [their mark](crate::guard::data_mark).

use std::fs::File;
use std::path::Path;

use uflip_core::{Bytes, Error, ErrorKind, Result};

use crate::guard::admit::{self, WriteRequest};
use crate::guard::data_mark::DataMark;
use crate::guard::machine::Machine;
use crate::guard::target::{Folder, Target};
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
        let place = path.display().to_string();
        let machine = Machine::look(&Roots::default());
        let Some(target) = find(path, &place, options)? else {
            return create(&machine, path, &place, options);
        };
        let reader = admit(&machine, &target, &place, options)?;
        let file = target.open(!options.read_only, libc::O_NONBLOCK);
        let file = file.map_err(|error| unusable(&place, options, &error))?;
        target.check_same(&file, &place)?;
        lock::hold(&file, !options.read_only, &place)?;
        if options.read_only {
            return Ok(DataFile { _mark: None, file });
        }
        // A second check under the lock: another server may have opened it meanwhile.
        let machine = Machine::look(&machine.roots);
        admit::admit_data_file(&machine, &reader, write_request(&place, options))?;
        DataFile::marked(file, &place, options)
    }

    fn marked(file: File, place: &str, options: DataOptions) -> Result<DataFile> {
        let mark = DataMark::open(&file).map_err(|error| unusable(place, options, &error))?;
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
    let place = path.display().to_string();
    let machine = Machine::look(&Roots::default());
    match find(path, &place, options)? {
        Some(target) => admit(&machine, &target, &place, options).map(|_| ()),
        None => folder_of(&machine, path, &place, options).map(|_| ()),
    }
}

/// Find the file at `path`; it may be missing only if it can be created.
fn find(path: &Path, place: &str, options: DataOptions) -> Result<Option<Target>> {
    match Target::find(path).map_err(|error| unusable(place, options, &error))? {
        None if options.read_only => {
            let missing = std::io::Error::from_raw_os_error(libc::ENOENT);
            Err(unusable(place, options, &missing))
        }
        found => Ok(found),
    }
}

/// Refuse a file of another kind or size, or one that must not be written; return a descriptor for
/// reading.
fn admit(machine: &Machine, target: &Target, place: &str, options: DataOptions) -> Result<File> {
    admit::refuse_below_dev(&target.real_path(), place)?;
    let is_file = target.metadata.is_file();
    if !is_file || target.metadata.len() != options.size.0 {
        return Err(wrong_size(place, is_file, target.metadata.len(), options));
    }
    admit::admit_file_system(machine, target.held(), place)?;
    let reader = target.reader().map_err(|error| unusable(place, options, &error))?;
    if !options.read_only {
        admit::admit_data_file(machine, &reader, write_request(place, options))?;
    }
    Ok(reader)
}

fn write_request<'a>(place: &'a str, options: DataOptions<'a>) -> WriteRequest<'a> {
    let instead = "name a file that does not exist yet";
    WriteRequest { place, path: place, destroy: options.destroy, instead }
}

/// Return the folder for a new file.
fn folder_of(machine: &Machine, path: &Path, place: &str, options: DataOptions) -> Result<Folder> {
    let folder = Folder::containing(path).map_err(|error| unusable(place, options, &error))?;
    admit::refuse_below_dev(&folder.real_path(), place)?;
    admit::admit_file_system(machine, folder.held(), place)?;
    Ok(folder)
}

/// Create the file with `options.size` zeros, and sync it and its folder.
fn create(machine: &Machine, path: &Path, place: &str, options: DataOptions) -> Result<DataFile> {
    let folder = folder_of(machine, path, place, options)?;
    let failed = |error: std::io::Error| unusable(place, options, &error);
    let file = Target::create(&folder, MODE).map_err(failed)?;
    let made = lock::hold(&file, true, place).and_then(|()| {
        file.set_len(options.size.0).map_err(failed)?;
        let made = DataFile::marked(file.try_clone().map_err(failed)?, place, options)?;
        folder.sync().map_err(failed).map(|()| made)
    });
    made.inspect_err(|_| folder.remove(&file))
}

fn unusable(place: &str, options: DataOptions, error: &std::io::Error) -> Error {
    Error::os("The data file cannot be used", place, error).action(if options.read_only {
        "name a file that is there and may be read"
    } else {
        "name a file that may be written, or one that is not there yet"
    })
}

fn wrong_size(place: &str, is_file: bool, length: u64, options: DataOptions) -> Error {
    let (none_yet, made_so) = if options.read_only {
        ("", "")
    } else {
        (", or none yet", "; it is made with the size of the device")
    };
    let what = if is_file { "" } else { "no regular file, " };
    Error::new(ErrorKind::Refused, "The data file does not fit the device")
        .at(place)
        .got(format!("{what}{length} bytes"))
        .allowed(format!("a regular file of {} bytes{none_yet}", options.size.0))
        .action(format!("name another file{made_so}"))
}
