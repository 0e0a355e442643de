//! A look at a profile that is being written: everything that is wrong with it.

use serde::Serialize;
use uflip_core::Result;

use crate::config::Profile;
use crate::config::faults::{Fault, read};
use crate::config::overrides::interface_of;
use crate::config::sources::read_sources;
use crate::config::tree::NOT_VALID;
use crate::config::tree::tree_of;
use crate::config::tree::{Content, Node};
use crate::open_channel::OpenChannelProfile;

/// All that is wrong with the profile `text` of `source`, by line.
///
/// Keys first, and their sources; values only where every key can be read, and what they make together
/// only where each is in its range: the first thing that is wrong with that, since the next depends on it.
///
/// # Errors
/// Not TOML, or an interface that does not exist.
pub fn profile_faults(text: &str, source: &str) -> Result<Vec<Fault>> {
    let mut found = match interface_of(text, source)? {
        "open_channel" => {
            let root = tree_of(text, source, OpenChannelProfile::PAGE)?;
            faults(&root, |profile: OpenChannelProfile| of_error(&root, profile.check(source)))
        }
        _ => {
            let root = tree_of(text, source, Profile::PAGE)?;
            faults(&root, |profile: Profile| {
                let misfits = profile.misfits();
                if misfits.is_empty() {
                    return of_error(&root, profile.check(source));
                }
                let of = |key: &str, got, allowed| of_key(&root, key, got, allowed);
                misfits.into_iter().map(|one| of(one.key, one.got, one.allowed)).collect()
            })
        }
    };
    found.sort_by_key(|fault| fault.line);
    Ok(found)
}

fn faults<P: serde::de::DeserializeOwned + Serialize>(
    root: &Node,
    check: impl FnOnce(P) -> Vec<Fault>,
) -> Vec<Fault> {
    let of_sources = read_sources(root).err().unwrap_or_default();
    let of_keys = match read(root) {
        Ok(profile) => check(profile),
        Err(faults) => faults,
    };
    of_keys.into_iter().chain(of_sources).collect()
}

/// The fault of an error, at the key that it is about.
fn of_error(root: &Node, checked: Result<()>) -> Vec<Fault> {
    let Err(error) = checked else { return Vec::new() };
    let (what, _, got, allowed, _) = error.parts();
    let key = key_of(root, what, got).unwrap_or_default();
    let fault = of_key(root, &key, got.to_owned(), allowed.to_owned());
    vec![Fault { got: format!("{what}: {got}"), ..fault }]
}

/// Which key an error is about: one in quotes, one that is shown with its value, or the one that has the
/// name which nobody knows.
fn key_of(root: &Node, what: &str, got: &str) -> Option<String> {
    let quoted = what.split('\'').skip(1).step_by(2);
    let shown = got.match_indices(" = ").filter_map(|(at, _)| got[..at].split(' ').next_back());
    let named = got.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let holds_it = |node: &Node| match (&node.content, named) {
        (Content::Text(text), Some(name)) => text == name || text.split(':').next() == Some(name),
        _ => false,
    };
    let mut candidates = quoted.chain(shown);
    let told = candidates.find(|key| keys_of(root).any(|(_, known, _)| known == *key));
    let found = || keys_of(root).find(|(.., node)| holds_it(node)).map(|(_, key, _)| key);
    told.or_else(found).map(str::to_owned)
}

/// Table, key and value of all that is in tables.
fn keys_of(root: &Node) -> impl Iterator<Item = (&str, &str, &Node)> {
    let tables = root.table().into_iter().flatten().filter(|(name, _)| *name != "sources");
    tables.flat_map(|(name, node)| {
        let keys = node.table().into_iter().flatten();
        keys.map(move |(key, value)| (name.as_str(), key.as_str(), value))
    })
}

fn of_key(root: &Node, key: &str, got: String, allowed: String) -> Fault {
    let found = keys_of(root)
        .find(|(_, known, _)| *known == key)
        .map(|(table, _, node)| (node.line, format!("{table}.{key}"), &node.content));
    let (line, key, got) = match found {
        Some((line, path, Content::Table(_))) => (line, path, got),
        Some((line, path, content)) => (line, path, format!("`{key}` is {}", content.shown())),
        None => (1, key.to_owned(), got),
    };
    Fault { what: NOT_VALID, line, key, got, allowed }
}
