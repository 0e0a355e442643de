//! Reading a tree into a type, with all faults at once.
//!
//! The author of a profile needs all missing, unknown or invalid keys in one report, but serde
//! stops at the first. So reading restarts after each fault, with the faulty value accepted as any
//! requested type. Thus no second list of keys is needed.
//!
//! Texts with units become numbers here: `read_ns = "25us"`, as in a device URL.

mod reader;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use serde::Serialize;
use serde::de::DeserializeOwned;
use uflip_core::Error;

use crate::config::keys::renamed;
use crate::config::tree::{NOT_VALID, ProfileNode};
use reader::{NodeDeserializer, ReadError};

/// A fault of a profile.
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    /// The title if it is the only fault.
    #[serde(skip)]
    pub problem: &'static str,
    /// Its line; for a missing key the line of its table.
    pub line: usize,
    /// Table and key, joined by a point.
    pub key: String,
    /// The value found at the key.
    pub got: String,
    /// The allowed values; empty if there is no such key.
    pub allowed: String,
}

/// Return one error for all `faults` in the text of `source`; `page` documents its keys.
pub(crate) fn error_of(faults: &[Fault], source: &str, page: &str) -> Error {
    let action = format!("correct the profile; {page} explains every key");
    if let [fault] = faults {
        return Error::usage(fault.problem)
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

type KeyPath = Vec<String>;

/// Read `root` into a type.
///
/// # Errors
/// Every missing, unknown or invalid key, by line.
pub(crate) fn read<P: DeserializeOwned>(root: &ProfileNode) -> Result<P, Vec<Fault>> {
    let log = FaultLog::default();
    loop {
        let at = NodeDeserializer { node: Some(root), line: 1, path: KeyPath::new(), log: &log };
        match P::deserialize(at) {
            Ok(value) => {
                let faults = log.into_faults();
                return if faults.is_empty() { Ok(value) } else { Err(faults) };
            }
            Err(error) => {
                if !log.record(error) {
                    return Err(log.into_faults());
                }
            }
        }
    }
}

/// The faults found so far.
#[derive(Default)]
struct FaultLog {
    faults: RefCell<BTreeMap<KeyPath, Fault>>,
    /// Paths of faulty values, which are accepted as any requested type.
    filled: RefCell<BTreeSet<KeyPath>>,
}

impl FaultLog {
    /// Record an error; return whether reading can restart: not if the same key fails again.
    fn record(&self, error: ReadError) -> bool {
        let ReadError { mut path, line, got, allowed, .. } = error;
        path.reverse();
        let key = path.join(".");
        let fault = Fault { problem: NOT_VALID, line: line.unwrap_or(1), key, got, allowed };
        let is_new = self.filled.borrow_mut().insert(path.clone());
        self.faults.borrow_mut().entry(path).or_insert(fault);
        is_new
    }

    fn record_unknown(&self, path: KeyPath, line: usize, known_keys: &[&str]) {
        let name = path.last().map_or("", String::as_str);
        let now = renamed(name).map(|now| format!(", which was renamed to `{now}`"));
        let got = format!("unknown key `{name}`{}", now.unwrap_or_default());
        let (key, allowed) = (path.join("."), known_keys.join(", "));
        let fault = Fault { problem: NOT_VALID, line, key, got, allowed };
        self.faults.borrow_mut().entry(path).or_insert(fault);
    }

    /// Record what a faulty key should have contained.
    fn record_expected(&self, path: &KeyPath, expected: impl Into<String>) {
        if let Some(fault) = self.faults.borrow_mut().get_mut(path)
            && fault.allowed.is_empty()
        {
            fault.allowed = expected.into();
        }
    }

    fn into_faults(self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.faults.into_inner().into_values().collect();
        faults.sort_by_key(|fault| fault.line);
        faults
    }
}
