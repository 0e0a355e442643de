//! Reading a profile's text: what is wrong with it is said with its line and the keys that it may have.

use std::ops::Range;

use serde::de::DeserializeOwned;
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
        let begin = span.start;
        let line = text[..begin].matches('\n').count() + 1;
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
