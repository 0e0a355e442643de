//! Reading a tree into a type, and all that is wrong with it at once.
//!
//! Whoever writes a profile by hand wants to hear of every key that is missing, unknown or of the wrong
//! kind, and not of one an attempt. serde stops at the first. So reading begins again after each fault,
//! with the place of the fault taken for a value of whatever kind is asked for there: nothing is
//! written down a second time about which keys there are.
//!
//! Here is also where a text becomes a number: `read_ns = "25us"`, as in the name of a device.

mod reader;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use serde::Serialize;
use serde::de::DeserializeOwned;
use uflip_core::Error;

use crate::config::keys::renamed;
use crate::config::tree::{NOT_VALID, Node};
use reader::{At, Misfit};

/// Something that is wrong with a profile.
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    /// What is wrong, where it is the only fault.
    #[serde(skip)]
    pub what: &'static str,
    /// Where it is; a key that is missing, is missing from a table.
    pub line: usize,
    /// Table and key, with a point between them.
    pub key: String,
    /// What was found there.
    pub got: String,
    /// What could be there; empty where nothing could.
    pub allowed: String,
}

/// One error of all `faults` in the text of `source`, whose keys `page` explains.
pub(crate) fn error_of(faults: &[Fault], source: &str, page: &str) -> Error {
    let action = format!("correct the profile; {page} explains every key");
    if let [fault] = faults {
        return Error::usage(fault.what)
            .at(format!("{source}, line {}", fault.line))
            .got(&fault.got)
            .allowed(&fault.allowed)
            .action(action);
    }
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    Error::usage(format!("The profile has {} faults", faults.len()))
        .at(source)
        .got(lines.join("\n"))
        .action(action)
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.got)?;
        let of_table = self.key.rsplit_once('.').map(|(table, _)| table);
        if let Some(table) = of_table {
            write!(f, " in [{table}]")?;
        }
        if self.allowed.is_empty() { Ok(()) } else { write!(f, "; allowed: {}", self.allowed) }
    }
}

type Path = Vec<String>;

/// Read `root` into a type.
///
/// # Errors
/// Every key that is missing, unknown, or of another kind, by its line.
pub(crate) fn read<P: DeserializeOwned>(root: &Node) -> Result<P, Vec<Fault>> {
    let log = Log::default();
    loop {
        let at = At { node: Some(root), line: 1, path: Path::new(), log: &log };
        match P::deserialize(at) {
            Ok(value) => {
                let faults = log.into_faults();
                return if faults.is_empty() { Ok(value) } else { Err(faults) };
            }
            Err(misfit) => {
                if !log.take(misfit) {
                    return Err(log.into_faults());
                }
            }
        }
    }
}

/// What was found so far.
#[derive(Default)]
struct Log {
    faults: RefCell<BTreeMap<Path, Fault>>,
    /// Places that are taken for whatever is asked for.
    filled: RefCell<BTreeSet<Path>>,
}

impl Log {
    /// Whether reading can go on after a misfit: not where the same place misfits again.
    fn take(&self, misfit: Misfit) -> bool {
        let Misfit { mut path, line, got, allowed, .. } = misfit;
        path.reverse();
        let key = path.join(".");
        let fault = Fault { what: NOT_VALID, line: line.unwrap_or(1), key, got, allowed };
        let goes_on = self.filled.borrow_mut().insert(path.clone());
        self.faults.borrow_mut().entry(path).or_insert(fault);
        goes_on
    }

    fn unknown(&self, path: Path, line: usize, known: &[&str]) {
        let name = path.last().map_or("", String::as_str);
        let now = renamed(name).map(|now| format!(", which was renamed to `{now}`"));
        let got = format!("unknown key `{name}`{}", now.unwrap_or_default());
        let (key, allowed) = (path.join("."), known.join(", "));
        let fault = Fault { what: NOT_VALID, line, key, got, allowed };
        self.faults.borrow_mut().entry(path).or_insert(fault);
    }

    /// What a place that was filled should have held.
    fn asked_for(&self, path: &Path, what: impl Into<String>) {
        if let Some(fault) = self.faults.borrow_mut().get_mut(path)
            && fault.allowed.is_empty()
        {
            fault.allowed = what.into();
        }
    }

    fn into_faults(self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.faults.into_inner().into_values().collect();
        faults.sort_by_key(|fault| fault.line);
        faults
    }
}
