//! Reading profiles and other TOML; errors name the line.

use serde::de::DeserializeOwned;
use serde_json::Value;
use uflip_core::{Error, Result};

use crate::config::faults::{error_of, read};
use crate::config::sources::read_sources;
use crate::config::tree::{line_of, parse_tree};

/// Read a profile from the text of `source`; `page` documents its keys.
///
/// # Errors
/// Not TOML; or all keys that are unknown, missing or of the wrong kind, with lines and allowed
/// values, and the errors of [`crate::config::sources`].
pub(crate) fn read_toml<P: DeserializeOwned>(text: &str, source: &str, page: &str) -> Result<P> {
    let root = parse_tree(text, source, page)?;
    let profile = read(&root);
    let faults = [profile.as_ref().err().cloned(), read_sources(&root).err()];
    match (profile, faults.into_iter().flatten().flatten().collect::<Vec<_>>()) {
        (Ok(profile), faults) if faults.is_empty() => Ok(profile),
        (_, mut faults) => {
            faults.sort_by_key(|fault| fault.line);
            Err(error_of(&faults, source, page))
        }
    }
}

/// Convert any TOML to JSON: strings, 64-bit integers, finite numbers, booleans, lists and tables.
///
/// # Errors
/// Not TOML; nested too deeply; a date or time, NaN or infinity.
pub fn toml_to_json(text: &str) -> Result<String> {
    let wrong = |got: String| {
        let wrong = Error::usage("The text cannot be read").at("the text").got(got);
        wrong.allowed("TOML of texts, numbers, true and false, lists, tables").action("correct it")
    };
    let table = text.parse::<toml::Table>().map_err(|error| {
        wrong(format!("not TOML: line {}: {}", line_of(text, &error), error.message().trim()))
    })?;
    let plain = json_of(toml::Value::Table(table)).map_err(wrong)?;
    Ok(plain.to_string())
}

/// Convert a value to JSON, or describe a value that JSON lacks.
fn json_of(value: toml::Value) -> std::result::Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) if number.is_finite() => Value::from(number),
        toml::Value::Float(number) => return Err(format!("{number}, which is not a number")),
        toml::Value::Boolean(truth) => Value::Bool(truth),
        toml::Value::Datetime(time) => return Err(format!("{time}, a date or a time")),
        toml::Value::Array(parts) => {
            parts.into_iter().map(json_of).collect::<std::result::Result<_, _>>()?
        }
        toml::Value::Table(table) => {
            let pairs = table.into_iter().map(|(key, value)| Ok((key, json_of(value)?)));
            Value::Object(pairs.collect::<std::result::Result<_, String>>()?)
        }
    })
}
