//! Where each constant of a profile comes from: the table `[sources]`, without which none loads.
//!
//! ```toml
//! [sources]
//! read_ns = { kind = "data_sheet", detail = "K9K8G08" }
//! streams = { kind = "fitted", values = ["uflip/table3/mtron/partitions"] }
//! default = { kind = "guess" }
//! ```
//!
//! A number looks just as exact whether it was read off a data sheet or turned until a printed value
//! came out, so the difference is data. `values` are ids of published values (which there are is known
//! where those are kept, and not here): whoever compares the device with one of them is told that it was
//! used. `default` stands for all keys that are not named.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uflip_core::{Error, Result};

const TABLE: &str = "sources";
const DEFAULT: &str = "default";
const PAGE: &str = "docs/reference/profiles.md explains the table [sources]";

/// Of what kind a source is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A data sheet, or a standard.
    DataSheet,
    /// A paper says so of the device, or of how it was measured.
    Paper,
    /// Concluded from something else: from published values, if any are named.
    Inferred,
    /// Turned until published values came out.
    Fitted,
    /// One of a few candidates, taken because published values come out with it.
    Chosen,
    /// Nothing stands behind it but its order of magnitude.
    Guess,
    /// Nothing: what it belongs to is switched off.
    Off,
}

/// Where a constant comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Of what kind it is.
    pub kind: SourceKind,
    /// Which data sheet, where in the paper, how it was concluded.
    #[serde(default)]
    pub detail: String,
    /// Ids of the published values that were used.
    #[serde(default)]
    pub values: Vec<String>,
}

impl Source {
    /// What such a source must say besides, if it does not.
    fn lacks(&self) -> Option<&'static str> {
        use SourceKind::{Chosen, DataSheet, Fitted, Guess, Inferred, Off, Paper};
        match self.kind {
            Fitted | Chosen if self.values.is_empty() => {
                Some("values: the ids of what it was fitted to")
            }
            DataSheet | Paper | Guess | Off if !self.values.is_empty() => {
                Some("no values: what used some was fitted, chosen or inferred")
            }
            DataSheet | Paper if self.detail.is_empty() => Some("detail: which one, and where"),
            Inferred if self.detail.is_empty() && self.values.is_empty() => {
                Some("detail: what it was inferred from")
            }
            _ => None,
        }
    }
}

/// The source of each key of the profile `text`, which comes from `source`.
///
/// # Errors
/// A key without a source, a source without a key or without what its kind must say.
pub fn sources(text: &str, source: &str) -> Result<BTreeMap<String, Source>> {
    let unreadable = |message: &str| Error::usage("The profile is not valid").misread(message);
    let whole: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        unreadable(error.message()).at(source).action("correct the profile")
    })?;
    let mut named = read(&whole, source)?;
    let default = named.remove(DEFAULT);
    let mut without = Vec::new();
    let mut found = BTreeMap::new();
    let tables = whole.iter().filter(|(name, _)| *name != TABLE);
    for key in tables.filter_map(|(_, table)| table.as_table()).flat_map(|table| table.keys()) {
        match named.remove(key).or_else(|| default.clone()) {
            Some(one) => drop(found.insert(key.clone(), one)),
            None => without.push(key.as_str()),
        }
    }
    if !without.is_empty() {
        return Err(Error::usage("A constant of the profile has no source")
            .at(format!("{source}, [{TABLE}]"))
            .got(format!("nothing for {}", without.join(", ")))
            .allowed("a line for each key, or default = { kind = \"guess\" } for all others")
            .action(format!("say where the numbers come from; {PAGE}")));
    }
    if let Some(key) = named.keys().next() {
        let known: Vec<&str> = found.keys().map(String::as_str).collect();
        let place = format!("{source}, [{TABLE}]");
        return Err(Error::unknown("key of a profile", key, &known).at(place));
    }
    Ok(found)
}

/// The lines of the table, each with what its kind must say.
fn read(whole: &toml::Table, source: &str) -> Result<BTreeMap<String, Source>> {
    let empty = toml::Table::new();
    let table = whole.get(TABLE).and_then(toml::Value::as_table).unwrap_or(&empty);
    let mut found = BTreeMap::new();
    for (key, value) in table {
        let place = format!("{source}, [{TABLE}] {key}");
        let one: Source = value.clone().try_into().map_err(|error: toml::de::Error| {
            Error::usage("The source of a constant cannot be read")
                .misread(error.message())
                .at(&place)
                .action(format!("correct the profile; {PAGE}"))
        })?;
        if let Some(lacking) = one.lacks() {
            return Err(Error::usage("The source of a constant is incomplete")
                .at(place)
                .got(serde_json::to_string(&one).expect("plain data"))
                .allowed(lacking)
                .action(format!("correct the profile; {PAGE}")));
        }
        found.insert(key.clone(), one);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: &str = "description = \"x\"\n[a]\none = 1\ntwo = 2\n[b]\nthree = 3\n";

    fn error(table: &str) -> String {
        sources(&format!("{PARTS}[sources]\n{table}"), "my.toml").unwrap_err().to_string()
    }

    #[test]
    fn each_key_has_its_own_source_or_the_default() {
        let table =
            "one = { kind = \"fitted\", values = [\"p/x\"] }\ndefault = { kind = \"guess\" }";
        let found = sources(&format!("{PARTS}[sources]\n{table}"), "my.toml").unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["one", "three", "two"]);
        assert_eq!(found["one"].values, ["p/x"]);
        assert_eq!(found["two"].kind, SourceKind::Guess);
    }

    #[test]
    fn a_key_without_a_source_does_not_load() {
        let text = sources(PARTS, "my.toml").unwrap_err().to_string();
        assert!(text.contains("nothing for one, two, three"), "{text}");
        assert!(error("one = { kind = \"guess\" }").contains("nothing for two, three"));
    }

    #[test]
    fn what_is_wrong_with_a_source_is_said() {
        let rest = "\ndefault = { kind = \"guess\" }";
        for (line, words) in [
            ("four = { kind = \"guess\" }", "'four'"),
            (
                "one = { kind = \"hearsay\" }",
                "data_sheet, paper, inferred, fitted, chosen, guess, off",
            ),
            ("one = { kind = \"fitted\" }", "values: the ids"),
            ("one = { kind = \"guess\", values = [\"p/x\"] }", "no values"),
            ("one = { kind = \"paper\" }", "detail: which one"),
            ("one = { kind = \"inferred\" }", "detail: what it was inferred from"),
            ("one = { kind = \"guess\", why = \"x\" }", "`why`"),
            ("one = \"guess\"", "my.toml, [sources] one"),
        ] {
            let text = error(&format!("{line}{rest}"));
            assert!(text.contains(words), "{line}: {text}");
        }
    }
}
