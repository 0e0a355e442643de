//! Profiles of all kinds: which kind a text is, and single keys changed in the name of a device.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uflip_core::{Error, Result};

/// The interfaces that a simulated device can have. A profile that names none is a block device.
pub const INTERFACES: [&str; 2] = ["block", "open_channel"];

/// Which interface the profile `text` of `source` describes.
///
/// # Errors
/// A name that is no interface. Text that is no TOML passes for a block device: reading it says more.
pub fn interface_of(text: &str, source: &str) -> Result<&'static str> {
    let named = text.parse::<toml::Table>().ok();
    let named = named.as_ref().and_then(|table| table.get("interface"));
    let Some(named) = named else { return Ok("block") };
    let got = named.as_str().map_or_else(|| format!("{named:?}"), str::to_owned);
    let known = INTERFACES.into_iter().find(|known| *known == got);
    known.ok_or_else(|| Error::unknown("interface", &got, &INTERFACES).at(source))
}

/// `profile` with the keys that `overrides` (a JSON object) names changed.
///
/// # Errors
/// An unknown key (the message lists the known ones), a value of another kind.
pub(crate) fn with_overrides<P>(profile: P, overrides: &str, source: &str) -> Result<P>
where
    P: Serialize + DeserializeOwned,
{
    let changes = match serde_json::from_str(overrides) {
        Ok(Value::Object(changes)) => changes,
        _ => return Err(Error::usage("Overrides are not a JSON object").got(overrides)),
    };
    let mut whole = serde_json::to_value(&profile).expect("a profile is plain data");
    for (key, value) in changes {
        let known = override_keys(&whole);
        let Some(place) = find(&mut whole, &key) else {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            return Err(Error::unknown("key of a profile", &key, &known).at("?key=value"));
        };
        let before = place.to_string();
        let got = value.to_string();
        // A device name carries texts; they are read as what stands there already.
        *place = match (&*place, value) {
            (Value::String(_), value) => value,
            (_, Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            (_, value) => value,
        };
        if let Err(error) = serde_json::from_value::<P>(whole.clone()) {
            return Err(Error::usage(format!("The override of '{key}' does not fit its key"))
                .at(format!("?{key}="))
                .got(format!("{got} ({error})"))
                .allowed(format!("a value of the same kind as {before}, which {source} has"))
                .action("see docs/reference/profiles.md for what each key may be"));
        }
    }
    Ok(serde_json::from_value(whole).expect("every override was tried"))
}

/// The keys of all tables: each is unique, so an override needs no table name.
fn override_keys(whole: &Value) -> Vec<String> {
    let tables = whole.as_object().into_iter().flatten();
    let keys = tables.filter_map(|(_, table)| table.as_object()).flat_map(|table| table.keys());
    keys.cloned().collect()
}

fn find<'a>(whole: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let tables = whole.as_object_mut()?.values_mut().filter_map(Value::as_object_mut);
    tables.into_iter().find_map(|table| table.get_mut(key))
}
