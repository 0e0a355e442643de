//! The file of a served device: what its clients wrote outlives the server. It passes the same
//! [guard](crate::guard) as every other file that is written; a server's own files are recognised by
//! [their mark](crate::guard::data_mark).

use std::fs::File;
use std::path::Path;

use uflip_core::{Bytes, Error, ErrorKind, Result};

use crate::guard::admit::{self, Wanted};
use crate::guard::data_mark::DataMark;
use crate::guard::machine::Machine;
use crate::guard::named::{Folder, Named};
use crate::guard::{Roots, lock};

/// For its owner alone: it may hold a database.
const MODE: libc::c_uint = 0o600;

/// How a data file is to be used.
#[derive(Clone, Copy, Debug)]
pub struct DataOptions<'a> {
    /// The size of the device.
    pub size: Bytes,
    /// Clients may not write: nothing is made, marked or changed.
    pub read_only: bool,
    /// What the user typed to give up a file that no server of ours made.
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
    /// # Errors
    /// It cannot be made, read or written; [`ErrorKind::Refused`] where its size is another one, it is in
    /// use, or holds something that no server of ours left there.
    pub fn open(path: &Path, options: DataOptions) -> Result<DataFile> {
        let place = path.display().to_string();
        let machine = Machine::look(&Roots::default());
        let Some(named) = find(path, &place, options)? else {
            return create(&machine, path, &place, options);
        };
        let reader = admit(&machine, &named, &place, options)?;
        let file = named.open(!options.read_only, libc::O_NONBLOCK);
        let file = file.map_err(|error| unusable(&place, options, &error))?;
        named.check_same(&file, &place)?;
        lock::hold(&file, !options.read_only, &place)?;
        if options.read_only {
            return Ok(DataFile { _mark: None, file });
        }
        // Once more, now that no other server can come in between.
        let machine = Machine::look(&machine.roots);
        admit::admit_data_file(&machine, &reader, wanted(&place, options))?;
        DataFile::marked(file, &place, options)
    }

    fn marked(file: File, place: &str, options: DataOptions) -> Result<DataFile> {
        let mark = DataMark::open(&file).map_err(|error| unusable(place, options, &error))?;
        Ok(DataFile { _mark: Some(mark), file })
    }

    /// The file itself.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Whether the file at `path` may be used as [`DataFile::open`] would, without opening it for writing.
///
/// # Errors
/// As [`DataFile::open`].
pub fn check_data_file(path: &Path, options: DataOptions) -> Result<()> {
    let place = path.display().to_string();
    let machine = Machine::look(&Roots::default());
    match find(path, &place, options)? {
        Some(named) => admit(&machine, &named, &place, options).map(|_| ()),
        None => folder_of(&machine, path, &place, options).map(|_| ()),
    }
}

/// Return what `path` names; it may be missing only if it can be created.
fn find(path: &Path, place: &str, options: DataOptions) -> Result<Option<Named>> {
    match Named::find(path).map_err(|error| unusable(place, options, &error))? {
        None if options.read_only => {
            let missing = std::io::Error::from_raw_os_error(libc::ENOENT);
            Err(unusable(place, options, &missing))
        }
        found => Ok(found),
    }
}

/// Refuse a file that does not fit, or must not be written; return a descriptor to look at it.
fn admit(machine: &Machine, named: &Named, place: &str, options: DataOptions) -> Result<File> {
    admit::refuse_below_dev(&named.real_path(), place)?;
    let is_file = named.metadata.is_file();
    if !is_file || named.metadata.len() != options.size.0 {
        return Err(misfit(place, is_file, named.metadata.len(), options));
    }
    admit::admit_file_system(machine, named.held(), place)?;
    let reader = named.reader().map_err(|error| unusable(place, options, &error))?;
    if !options.read_only {
        admit::admit_data_file(machine, &reader, wanted(place, options))?;
    }
    Ok(reader)
}

fn wanted<'a>(place: &'a str, options: DataOptions<'a>) -> Wanted<'a> {
    let instead = "name a file that does not exist yet";
    Wanted { place, path: place, destroy: options.destroy, instead }
}

/// The folder that a new file is to be in.
fn folder_of(machine: &Machine, path: &Path, place: &str, options: DataOptions) -> Result<Folder> {
    let folder = Folder::of(path).map_err(|error| unusable(place, options, &error))?;
    admit::refuse_below_dev(&folder.real_path(), place)?;
    admit::admit_file_system(machine, folder.held(), place)?;
    Ok(folder)
}

/// Make the file with `options.size` zeroes, so that it is there after a loss of power.
fn create(machine: &Machine, path: &Path, place: &str, options: DataOptions) -> Result<DataFile> {
    let folder = folder_of(machine, path, place, options)?;
    let failed = |error: std::io::Error| unusable(place, options, &error);
    let file = Named::create(&folder, MODE).map_err(failed)?;
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

fn misfit(place: &str, is_file: bool, length: u64, options: DataOptions) -> Error {
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
