//! Reading the text of a profile, or any TOML: what is wrong with it is said with its line, and in a
//! profile with the keys that it may have.

use std::ops::Range;

use serde::de::DeserializeOwned;
use serde_json::Value;
use uflip_core::{Error, Result};

/// No profile has a key of this name, and it sorts before all letters: whoever reads a table with it in
/// it meets it first, and lists the keys that there are.
const NO_KEY: &str = "!";

/// Read the TOML `text` of `source`, whose keys `page` of the documentation explains.
///
/// # Errors
/// Not TOML, an unknown or missing key, a value of the wrong kind: with the line, and with the allowed
/// keys of its table.
pub(crate) fn read_toml<P: DeserializeOwned>(text: &str, source: &str, page: &str) -> Result<P> {
    if let Some(key) = text.parse::<toml::Table>().ok().and_then(|table| no_number(&table)) {
        return Err(Error::usage(format!("Profile key '{key}' is no number"))
            .at(source)
            .got("nan or inf")
            .allowed("finite numbers")
            .action(format!("correct the profile; {page} explains every key")));
    }
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..text.len());
        let line = line_of(text, &error);
        let wrong = Error::usage("The profile is not valid")
            .misread(error.message())
            .at(format!("{source}, line {line}"))
            .action(format!("correct the profile; {page} explains every key"));
        if !error.message().starts_with("missing field") {
            return wrong;
        }
        match keys_of_table::<P>(text, table_at(text, &span)) {
            Some(keys) => wrong.allowed(keys),
            None => wrong,
        }
    })
}

/// Any TOML as JSON, for who reads it elsewhere: texts, whole numbers of 64 bits, finite numbers,
/// booleans, lists and tables.
///
/// # Errors
/// Not TOML, deeper than the parser goes, a date or a time, nan or inf.
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

/// A value as JSON has it, or what it is that JSON has no word for.
fn json_of(value: toml::Value) -> std::result::Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) if number.is_finite() => Value::from(number),
        toml::Value::Float(number) => return Err(format!("{number}, which is no number")),
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

/// The line that an error is about, the first being 1.
fn line_of(text: &str, error: &toml::de::Error) -> usize {
    let begin = error.span().map_or(0, |span| span.start).min(text.len());
    text.as_bytes()[..begin].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The first key of `table`, or of a table in it, that has no finite number.
fn no_number(table: &toml::Table) -> Option<String> {
    table.iter().find_map(|(key, value)| match value {
        toml::Value::Float(number) => (!number.is_finite()).then(|| key.clone()),
        toml::Value::Table(table) => no_number(table),
        _ => None,
    })
}

/// The name of the table that begins where the `span` of an error does; none for the whole text.
fn table_at<'a>(text: &'a str, span: &Range<usize>) -> Option<&'a str> {
    let whole = span.end - span.start >= text.trim_end().len();
    let (before, behind) = text.split_at(span.start);
    if whole {
        None
    } else if let Some(header) = behind.strip_prefix('[') {
        header.split(']').next().map(str::trim)
    } else {
        // `table = { ... }`
        before.lines().last()?.split('=').next().map(str::trim)
    }
}

/// The keys that `table` of a profile may have, or its tables where none is named; `None` where
/// something else is wrong with the text as well.
fn keys_of_table<P: DeserializeOwned>(text: &str, table: Option<&str>) -> Option<String> {
    let mut whole = text.parse::<toml::Table>().ok()?;
    let asked = match table {
        None => &mut whole,
        Some(name) => whole.get_mut(name)?.as_table_mut()?,
    };
    asked.insert(NO_KEY.into(), toml::Value::Boolean(true));
    let error = whole.try_into::<P>().err()?;
    let listed = Error::usage("").misread(error.message());
    let (_, _, got, allowed, _) = listed.parts();
    got.contains(&format!("`{NO_KEY}`")).then(|| allowed.to_owned())
}
