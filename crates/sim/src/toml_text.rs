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
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..text.len());
        let begin = span.start;
        let line = text[..begin].matches('\n').count() + 1;
        let (what, mut keys) = split(error.message());
        if keys.is_empty() && what.starts_with("missing field") {
            keys = keys_of_table::<P>(text, table_at(text, &span));
        }
        let wrong = Error::usage("The profile is not valid")
            .at(format!("{source}, line {line}"))
            .got(what.replace("field", "key"))
            .action(format!("correct the profile; {page} explains every key"));
        if keys.is_empty() { wrong } else { wrong.allowed(keys) }
    })
}

/// What serde says, and the names that it expected.
fn split(message: &str) -> (String, String) {
    match message.trim().split_once(", expected ") {
        Some((what, expected)) if expected.contains('`') => {
            let names: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
            (what.to_owned(), names.join(", "))
        }
        _ => (message.trim().to_owned(), String::new()),
    }
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

/// The keys that `table` of a profile may have, or its tables where none is named; empty where
/// something else is wrong with the text as well.
fn keys_of_table<P: DeserializeOwned>(text: &str, table: Option<&str>) -> String {
    let Ok(mut whole) = text.parse::<toml::Table>() else { return String::new() };
    let asked = match table {
        None => &mut whole,
        Some(name) => match whole.get_mut(name).and_then(toml::Value::as_table_mut) {
            Some(table) => table,
            None => return String::new(),
        },
    };
    asked.insert(NO_KEY.into(), toml::Value::Boolean(true));
    match whole.try_into::<P>() {
        Err(error) if error.message().contains(&format!("`{NO_KEY}`")) => split(error.message()).1,
        _ => String::new(),
    }
}
