//! Overrides of profiles of all kinds, and the interface of a profile:
//! `sim:demo?gc=greedy&blocks_per_die=64`.
//!
//! An override replaces a key of the profile. A key that the profile leaves out is added with its
//! table; then all keys of that table must be given, since a profile has no defaults.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uflip_core::{Error, Result};

use crate::keys::{Keys, renamed};

/// The interfaces of simulated devices. A profile that names none is a block device.
pub const INTERFACES: [&str; 2] = ["block", "open_channel"];

/// Return the interface of the profile `text` of `source`.
///
/// # Errors
/// An unknown interface. Invalid TOML counts as a block device: reading it reports the error.
pub fn interface_of(text: &str, source: &str) -> Result<&'static str> {
    let named = text.parse::<toml::Table>().ok();
    let named = named.as_ref().and_then(|table| table.get("interface"));
    let Some(named) = named else { return Ok("block") };
    let got = named.as_str().map_or_else(|| format!("{named:?}"), str::to_owned);
    let interface = INTERFACES.into_iter().find(|interface| *interface == got);
    interface.ok_or_else(|| Error::unknown("interface", &got, &INTERFACES).at(source))
}

/// Check that a device of `source` with interface `got` has interface `expected`.
///
/// # Errors
/// It has the other interface.
pub(crate) fn check_interface(got: &str, expected: &str, source: &str) -> Result<()> {
    let error = match expected {
        _ if got == expected => return Ok(()),
        "block" => Error::usage("The device is an open-channel SSD: it has no sectors to address")
            .allowed("a block device, like sim:demo")
            .action("`uflip oc` is for open-channel devices"),
        _ => Error::usage("The device is a block device: it hides its flash")
            .allowed("a profile with interface = \"open_channel\", like sim:dfc")
            .action("`uflip run` and `uflip pattern` are for block devices"),
    };
    Err(error.at(source))
}

/// Return `profile` with `overrides` (a JSON object) applied.
///
/// # Errors
/// An unknown key (the message lists the known ones), or a value of another kind.
pub(crate) fn with_overrides<P: Serialize + DeserializeOwned>(
    profile: &P,
    keys: &Keys,
    overrides: &str,
    source: &str,
) -> Result<P> {
    let changes = match serde_json::from_str(overrides) {
        Ok(Value::Object(changes)) => changes,
        _ => {
            return Err(Error::usage("Overrides are not a JSON object")
                .at(source)
                .got(overrides)
                .allowed("keys of the profile and their values")
                .action("write {\"key\": value}"));
        }
    };
    let mut profile_json = serde_json::to_value(profile).expect("a profile is serializable");
    let (additions, changes) =
        changes.into_iter().partition(|(key, _)| is_omitted(keys, &mut profile_json, key));
    profile_json = add::<P>(profile_json, keys, additions, source)?;
    for (key, value) in changes {
        let allowed_keys = override_keys(&profile_json);
        let Some(entry) = find(&mut profile_json, &key) else {
            let names: Vec<&str> = allowed_keys.iter().map(String::as_str).collect();
            let location = format!("?{key}={}", text_of(&value));
            let unknown = Error::unknown("key of a profile", &key, &names).at(location);
            return Err(match renamed(&key) {
                Some(now) => unknown.action(format!("write {now}: {key} was renamed")),
                None => unknown,
            });
        };
        let before = entry.to_string();
        let got = value.to_string();
        *entry = if entry.is_string() { value } else { read(value) };
        if let Err(error) = serde_json::from_value::<P>(profile_json.clone()) {
            return Err(Error::usage(format!("The override of '{key}' does not fit its key"))
                .at(format!("?{key}="))
                .got(format!("{got} ({error})"))
                .allowed(format!("a value of the same kind as {before}, which {source} has"))
                .action("see docs/reference/profiles.md for what each key may be"));
        }
    }
    Ok(serde_json::from_value(profile_json).expect("each override was checked"))
}

/// Return the name of a profile of `source` with `overrides` for errors, as in the device URL.
pub(crate) fn source_of(overrides: &str, source: &str) -> String {
    let changes: Map<String, Value> = serde_json::from_str(overrides).unwrap_or_default();
    let pairs: Vec<String> =
        changes.iter().map(|(key, value)| format!("{key}={}", text_of(value))).collect();
    format!("?{} with {source}", pairs.join("&"))
}

/// Return a value as in a device URL.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Return whether a profile may have `key`, and this one lacks it.
fn is_omitted(keys: &Keys, profile_json: &mut Value, key: &str) -> bool {
    keys.table_of(key).is_some() && find(profile_json, key).is_none()
}

/// Return `profile_json` with missing keys added.
fn add<P: DeserializeOwned>(
    mut profile_json: Value,
    keys: &Keys,
    additions: Vec<(String, Value)>,
    source: &str,
) -> Result<Value> {
    let names: Vec<String> = additions.iter().map(|(key, _)| format!("?{key}=")).collect();
    if names.is_empty() {
        return Ok(profile_json);
    }
    for (key, value) in additions {
        let table = keys.table_of(&key).expect("the key belongs to an optional table");
        let tables = profile_json.as_object_mut().expect("a profile is an object");
        let table = tables.entry(table).or_insert_with(|| Value::Object(Map::new()));
        let table = table.as_object_mut().expect("a table is an object");
        table.insert(key, read(value));
    }
    match serde_json::from_value::<P>(profile_json.clone()) {
        Ok(_) => Ok(profile_json),
        Err(error) => Err(Error::usage("The overrides do not complete a table of the profile")
            .at(names.join(", "))
            .got(error.to_string())
            .allowed(format!("every key of a table that {source} omits, each of its type"))
            .action("see docs/reference/profiles.md for the tables and their keys")),
    }
}

/// Parse a text of a device URL: numbers and booleans are read as such.
fn read(value: Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        value => value,
    }
}

/// Return the keys of all tables: each is unique, so an override needs no table name.
fn override_keys(profile_json: &Value) -> Vec<String> {
    let tables = profile_json.as_object().into_iter().flatten();
    let keys = tables.filter_map(|(_, table)| table.as_object()).flat_map(|table| table.keys());
    keys.cloned().collect()
}

fn find<'a>(profile_json: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let tables = profile_json.as_object_mut()?.values_mut().filter_map(Value::as_object_mut);
    tables.into_iter().find_map(|table| table.get_mut(key))
}
