//! The mark of a file that may be overwritten: an extended attribute that is bound to what is in it.
//!
//! It says which file (inode, generation, time of birth), how long it is, when it was last written,
//! and the [`Brand`] of the data. So a copy of the file, other content in it, a file system made or
//! mounted in it, a growth by somebody else: each voids it, and the file is asked for again. uflip
//! renews it after every run, with what that run left behind, and closes it when it closes the file. If
//! anybody else wrote meanwhile, the file not being as uflip left it, or closed it who could write, the mark
//! is void from then on, whatever uflip writes after that. While the file is open the mark says so: if uflip
//! was killed, what changed since may be its own doing, and the file is still expendable if every sector of it
//! is zero or carries the brand.
//!
//! Version history
//! ---------------
//! 1   the word `expendable`. It outlived the content, so it is no mark any more.
//! 2   `2 brand=… size=… modified=… inode=… born=… generation=… open=…`, times in ns; `modified=-` once
//!     somebody else wrote to it while uflip had it open.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use crate::brand::Brand;
use crate::standing::Others;

const NAME: &CStr = c"user.uflip";
const VERSION: &str = "2";
/// What is not known, or of no meaning any more.
const UNKNOWN: &str = "-";
/// Longer than any mark.
const LONGEST: usize = 1024;
/// `_IOR('v', 1, long)`: the number that tells two files of one inode number apart.
const FS_IOC_GETVERSION: u32 = 0x8008_7601;
/// The kernel's clock for files ticks every few milliseconds.
const TICK: Duration = Duration::from_millis(1);
const TICKS: u32 = 50;

/// What a mark says about a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// It has none.
    Unmarked,
    /// It is ours, and holds what we left in it.
    Expendable(Brand),
    /// It was ours; why it is not any more.
    Void(&'static str),
}

/// When a file was last written, and how long it was: looked through once, it need not be again.
pub(crate) type Seen = (u64, i64, i64);

/// See [`Seen`].
pub(crate) fn seen(metadata: &Metadata) -> Seen {
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// What `file` is to us. `stop` says whether looking through all of it is to be given up; it is not
/// looked through again if it is as it was when it was `known` to be ours.
pub(crate) fn standing(file: &File, known: Option<Seen>, stop: &dyn Fn() -> bool) -> Standing {
    let Some(text) = read(file) else { return Standing::Unmarked };
    let Some((version, said)) = parse(&text) else {
        return Standing::Void("its mark cannot be read");
    };
    let (VERSION, Ok(metadata)) = (version, file.metadata()) else {
        return Standing::Void("its mark is of another version of uflip");
    };
    let Some(brand) = said.get("brand").and_then(|text| Brand::parse(text)) else {
        return Standing::Void("its mark cannot be read");
    };
    if said.get("modified") == Some(&UNKNOWN) {
        return Standing::Void("somebody else wrote to it while uflip had it open");
    }
    let now = facts(file, &metadata, brand, Some(seen(&metadata)));
    let differ = |key: &str| said.get(key).copied() != now.get(key).map(String::as_str);
    if ["inode", "born", "generation"].into_iter().any(differ) {
        return Standing::Void("it is a copy of a file that uflip made");
    }
    if (!differ("size") && !differ("modified")) || known == Some(seen(&metadata)) {
        return Standing::Expendable(brand);
    }
    if said.get("open") != Some(&"1") {
        return Standing::Void("it was changed since uflip closed it");
    }
    match brand.is_all_of(file, stop) {
        Some(true) => Standing::Expendable(brand),
        Some(false) => Standing::Void("it holds data that uflip did not write"),
        None => Standing::Void("it was not looked through to its end"),
    }
}

/// The brand that the mark of `file` names, whatever else has changed.
pub(crate) fn brand(file: &File) -> Option<Brand> {
    let text = read(file)?;
    let (_, said) = parse(&text)?;
    Brand::parse(said.get("brand")?)
}

/// A file of ours while it is open: its mark is kept true, and left behind at the end. Or another
/// target, which has no mark.
#[derive(Debug)]
pub(crate) struct Kept {
    brand: Brand,
    /// `None` for what is no file.
    file: Option<File>,
    book: Mutex<Book>,
}

/// Who has written to the file.
#[derive(Debug, Default)]
struct Book {
    /// As we left it; `None` while we write.
    left: Option<Seen>,
    /// Who else opens it, where that is told.
    others: Option<Others>,
    /// How often it was not as we had left it.
    changed: u64,
    /// How many who could write had closed it when that was last asked.
    writers: u64,
    /// Whether it has no mark to be renewed: it never was ours, or it is not any more.
    is_no_more_ours: bool,
}

impl Kept {
    /// A device, which has no mark.
    pub(crate) fn device(brand: Brand) -> Kept {
        Kept { brand, file: None, book: Mutex::default() }
    }

    /// A `file` that is only read, which gets no mark.
    pub(crate) fn read(file: &File) -> Kept {
        let book = Book { is_no_more_ours: true, ..Book::default() };
        let book = Mutex::new(book);
        let kept = Kept { brand: Brand::fresh(), file: file.try_clone().ok(), book };
        kept.renew();
        kept
    }

    /// Mark `file` as ours and open.
    pub(crate) fn mark(file: &File, brand: Brand) -> Kept {
        let kept = Kept { brand, file: file.try_clone().ok(), book: Mutex::default() };
        kept.renew();
        kept
    }

    pub(crate) fn brand(&self) -> Brand {
        self.brand
    }

    /// Hear from now on who else opens `file`.
    pub(crate) fn listen(&self, file: &File) {
        self.book().others = Others::of(file);
    }

    /// Add what others have done to how the target stands.
    pub(crate) fn tell(&self, now: &mut crate::standing::Standing) {
        let mut book = self.book();
        self.look(&mut book);
        now.changed_by_others = self.file.is_some().then_some(book.changed);
        if let Some(others) = &book.others {
            others.tell(now);
        }
    }

    /// We write from now on.
    pub(crate) fn begin(&self) {
        let mut book = self.book();
        self.look(&mut book);
        book.left = None;
    }

    /// Make the mark say what we left: a run is over. From here on what others write has a later time.
    pub(crate) fn renew(&self) {
        if let Some(file) = &self.file {
            wait_for_the_next_tick(file);
        }
        let mut book = self.book();
        self.look(&mut book);
        book.left = self.now();
        if !book.is_no_more_ours {
            self.write(book.left, true);
        }
    }

    /// The file is as it was before we opened it, and was not ours: it gets no mark.
    pub(crate) fn give_back(&self) {
        self.book().is_no_more_ours = true;
        if let Some(file) = &self.file {
            remove(file);
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("no panic while held")
    }

    fn now(&self) -> Option<Seen> {
        Some(seen(&self.file.as_ref()?.metadata().ok()?))
    }

    /// Void the mark if others have written since the last look: the file is not as we left it. While we write
    /// ourselves who could write tells.
    fn look(&self, book: &mut Book) {
        let writers = book.others.as_mut().map_or(0, Others::writers);
        let beside_us = book.left.is_none() && writers > book.writers;
        let is_changed = book.left.is_some() && book.left != self.now();
        if is_changed {
            book.changed += 1;
            book.left = self.now();
        }
        if (is_changed || beside_us) && !book.is_no_more_ours {
            book.is_no_more_ours = true;
            self.write(None, false);
        }
        book.writers = writers;
    }

    /// Where marks cannot be kept, the file will be asked for again.
    fn write(&self, left: Option<Seen>, open: bool) {
        let Some(file) = &self.file else { return };
        let Ok(metadata) = file.metadata() else { return };
        let mut text = VERSION.to_owned();
        for (key, value) in facts(file, &metadata, self.brand, left) {
            text += &format!(" {key}={value}");
        }
        text += if open { " open=1" } else { " open=0" };
        write_text(file, NAME, &text);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut book = self.book();
        self.look(&mut book);
        // Where what we wrote has not come to its end, the mark stays as that of an open file.
        if book.left.is_some() && !book.is_no_more_ours {
            self.write(book.left, false);
        }
    }
}

/// Wait until a further write would have a later time than the last one of ours.
pub(crate) fn wait_for_the_next_tick(file: &File) {
    for _ in 0..TICKS {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a valid timespec to write to; the clock exists on every Linux.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
        let now = (time.tv_sec, time.tv_nsec);
        match file.metadata() {
            Ok(metadata) if (metadata.mtime(), metadata.mtime_nsec()) >= now => {
                std::thread::sleep(TICK);
            }
            _ => return,
        }
    }
}

/// What a mark is bound to, for a file that we have `left` so; `None`: it is ours no more.
fn facts(
    file: &File,
    metadata: &Metadata,
    brand: Brand,
    left: Option<Seen>,
) -> BTreeMap<&'static str, String> {
    let size = left.map_or(metadata.len(), |(size, ..)| size);
    let mut facts = BTreeMap::from(identity(file, metadata));
    facts.insert("brand", brand.text());
    facts.insert("size", size.to_string());
    facts.insert("modified", left.map_or_else(|| UNKNOWN.to_owned(), modified_text));
    facts
}

/// The time of the last write as a mark has it [ns].
pub(crate) fn modified_text((_, s, ns): Seen) -> String {
    (i128::from(s) * 1_000_000_000 + i128::from(ns)).to_string()
}

/// What tells a file from a copy of it and from a later file of the same inode number.
pub(crate) fn identity(file: &File, metadata: &Metadata) -> [(&'static str, String); 3] {
    let born = metadata.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let mut generation: libc::c_long = 0;
    // SAFETY: an open descriptor and a place for the number.
    let told =
        unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_GETVERSION as _, &raw mut generation) };
    let unknown = || UNKNOWN.to_owned();
    [
        ("inode", metadata.ino().to_string()),
        ("born", born.map_or_else(unknown, |born| born.as_nanos().to_string())),
        ("generation", if told == 0 { (generation as u32).to_string() } else { unknown() }),
    ]
}

fn read(file: &File) -> Option<String> {
    read_text(file, NAME)
}

/// Remove the mark of `file`: it is not expendable any more.
pub(crate) fn remove(file: &File) {
    // SAFETY: an open descriptor and a text that ends in a zero.
    unsafe { libc::fremovexattr(file.as_raw_fd(), NAME.as_ptr()) };
}

/// The extended attribute `name` of `file`.
pub(crate) fn read_text(file: &File, name: &CStr) -> Option<String> {
    let mut text = vec![0u8; LONGEST];
    // SAFETY: an open descriptor, a text that ends in a zero, and a buffer of the size that is said.
    let length = unsafe {
        libc::fgetxattr(file.as_raw_fd(), name.as_ptr(), text.as_mut_ptr().cast(), text.len())
    };
    text.truncate(usize::try_from(length).ok()?);
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Set the extended attribute `name` of `file`. Where a file system has none, the user is asked again.
pub(crate) fn write_text(file: &File, name: &CStr, text: &str) {
    // SAFETY: an open descriptor, a text that ends in a zero, and the stated number of bytes.
    unsafe {
        let (value, size) = (text.as_ptr().cast(), text.len());
        libc::fsetxattr(file.as_raw_fd(), name.as_ptr(), value, size, 0);
    }
}

pub(crate) fn parse(text: &str) -> Option<(&str, BTreeMap<&str, &str>)> {
    let mut words = text.split(' ');
    let version = words.next()?;
    Some((version, words.filter_map(|word| word.split_once('=')).collect()))
}
