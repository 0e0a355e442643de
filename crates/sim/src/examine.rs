//! Inspection of a profile while it is edited, with all its faults; and of a snapshot file.

use std::path::Path;

use serde::Serialize;
use uflip_core::{DeviceInfo, Result};

use crate::config::Profile;
use crate::config::overrides::interface_of;
use crate::config::reader::{Fault, NOT_VALID, NodeContent, ProfileNode, parse_tree, read};
use crate::config::sources::read_sources;
use crate::device::SimDevice;
use crate::keys::{InvalidKey, KeyTables};
use crate::open_channel::{OpenChannelDevice, OpenChannelProfile};
use crate::snapshot::SnapshotFile;

/// Return the description of the device in the file `path`, which has the given `interface`; its
/// state is not read. `details` has a hash of the state under `snapshot`.
///
/// # Errors
/// As [`crate::snapshot::Snapshot::restore`].
pub fn inspect_snapshot(path: &Path, interface: Option<&str>) -> Result<DeviceInfo> {
    let mut file = SnapshotFile::new(path)?;
    let header = file.header()?;
    match interface.unwrap_or(header.interface()) {
        "open_channel" => file.named::<OpenChannelDevice>(&header),
        _ => file.named::<SimDevice>(&header),
    }
}

/// Return all faults of the profile `text` of `source`, by line.
///
/// Keys and their sources come first. Values are checked only if every key can be read, and
/// combinations of values only if each is in its range; of those the first fault is returned, since
/// the next depends on it.
///
/// # Errors
/// Not TOML, or an unknown interface.
pub fn profile_faults(text: &str, source: &str) -> Result<Vec<Fault>> {
    let mut all_faults = match interface_of(text, source)? {
        "open_channel" => {
            let root = parse_tree(text, source, OpenChannelProfile::PAGE)?;
            faults(&root, |profile: OpenChannelProfile| {
                value_faults(&root, profile.invalid_keys(), || profile.check(source))
            })
        }
        _ => {
            let root = parse_tree(text, source, Profile::PAGE)?;
            faults(&root, |profile: Profile| {
                value_faults(&root, profile.invalid_keys(), || profile.check(source))
            })
        }
    };
    all_faults.sort_by_key(|fault| fault.line);
    Ok(all_faults)
}

fn faults<P: serde::de::DeserializeOwned + Serialize>(
    root: &ProfileNode,
    check: impl FnOnce(P) -> Vec<Fault>,
) -> Vec<Fault> {
    let of_sources = read_sources(root).err().unwrap_or_default();
    let of_keys = match read(root) {
        Ok(profile) => check(profile),
        Err(faults) => faults,
    };
    of_keys.into_iter().chain(of_sources).collect()
}

/// Return the faults of invalid values; otherwise the fault found by `check`.
fn value_faults(
    root: &ProfileNode,
    invalid_keys: Vec<InvalidKey>,
    check: impl FnOnce() -> Result<()>,
) -> Vec<Fault> {
    if invalid_keys.is_empty() {
        return error_faults(root, check());
    }
    invalid_keys
        .into_iter()
        .map(|invalid| key_fault(root, invalid.key, invalid.got, invalid.allowed))
        .collect()
}

/// Return the fault of an error, at the key that it is about.
fn error_faults(root: &ProfileNode, checked: Result<()>) -> Vec<Fault> {
    let Err(error) = checked else { return Vec::new() };
    let (problem, _, got, allowed, _) = error.parts();
    let key = key_of(root, problem, got).unwrap_or_default();
    let fault = key_fault(root, &key, got.to_owned(), allowed.to_owned());
    vec![Fault { got: format!("{problem}: {got}"), ..fault }]
}

/// Return the key that an error is about: one in quotes, one shown with its value, or an unknown
/// name.
fn key_of(root: &ProfileNode, problem: &str, got: &str) -> Option<String> {
    let quoted = problem.split('\'').skip(1).step_by(2);
    let shown = got.match_indices(" = ").filter_map(|(at, _)| got[..at].split(' ').next_back());
    let named = got.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let holds_it = |node: &ProfileNode| match (&node.content, named) {
        (NodeContent::Text(text), Some(name)) => {
            text == name || text.split(':').next() == Some(name)
        }
        _ => false,
    };
    let mut candidates = quoted.chain(shown);
    let key = candidates.find(|key| keys_of(root).any(|(_, table_key, _)| table_key == *key));
    let key_of_holder = || keys_of(root).find(|(.., node)| holds_it(node)).map(|(_, key, _)| key);
    key.or_else(key_of_holder).map(str::to_owned)
}

/// Return table, key and value of all entries of tables.
fn keys_of(root: &ProfileNode) -> impl Iterator<Item = (&str, &str, &ProfileNode)> {
    let tables = root.table().into_iter().flatten().filter(|(name, _)| *name != "sources");
    tables.flat_map(|(name, node)| {
        let keys = node.table().into_iter().flatten();
        keys.map(move |(key, value)| (name.as_str(), key.as_str(), value))
    })
}

fn key_fault(root: &ProfileNode, key: &str, got: String, allowed: String) -> Fault {
    let located = keys_of(root)
        .find(|(_, table_key, _)| *table_key == key)
        .map(|(table, _, node)| (node.line, format!("{table}.{key}"), &node.content));
    let (line, key, got) = match located {
        Some((line, path, NodeContent::Table(_))) => (line, path, got),
        Some((line, path, content)) => (line, path, format!("`{key}` is {}", content.describe())),
        None => (1, key.to_owned(), got),
    };
    Fault { problem: NOT_VALID, line, key, got, allowed }
}

/// Return the tables of the profiles of an interface, with their keys.
#[must_use]
pub fn key_tables(interface: &str) -> KeyTables {
    if interface == "block" { Profile::TABLES } else { OpenChannelProfile::TABLES }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BLOCK;
    use crate::keys::Keys;
    use crate::open_channel::OPEN_CHANNEL;
    use serde::de::DeserializeOwned;

    /// Return the keys of a type, from its error about an unknown key.
    fn known_keys<P: DeserializeOwned>(text: &str) -> Vec<String> {
        let Err(faults) = read::<P>(&ProfileNode::parse(text).expect("valid TOML")) else {
            panic!("a profile with an unknown key was accepted: {text}")
        };
        let fault = faults
            .iter()
            .find(|fault| fault.got.contains("no_such"))
            .expect("the unknown key is a fault");
        let mut keys: Vec<String> = fault.allowed.split(", ").map(str::to_owned).collect();
        keys.retain(|name| !["interface", "description", "sources"].contains(&&**name));
        keys.sort();
        keys
    }

    fn check_explained<P: DeserializeOwned>(keys: &Keys) {
        let tables = keys.by_table();
        let explained: Vec<&str> = tables.keys().copied().collect();
        assert_eq!(known_keys::<P>("no_such_table = 1"), explained);
        for (table, explained) in tables {
            let text = format!("[{table}]\nno_such_key = 1");
            assert_eq!(known_keys::<P>(&text), explained, "[{table}]");
        }
    }

    #[test]
    fn every_key_is_documented() {
        check_explained::<Profile>(&BLOCK);
        check_explained::<OpenChannelProfile>(&OPEN_CHANNEL);
    }
}
