//! Sources of a profile's constants: the required table `[sources]`.
//!
//! ```toml
//! [sources]
//! read_ns = { kind = "data_sheet", detail = "K9K8G08" }
//! streams = { kind = "fitted", values = ["uflip/table3/mtron/partitions"] }
//! default = { kind = "guess" }
//! ```
//!
//! A number looks equally exact whether it comes from a data sheet or from a fit, so its source is
//! data. `values` are ids of published values (not checked here): a comparison of the device with
//! one of them reports that it was used. `default` applies to all keys that are not named.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uflip_core::Result;

use super::reader::{Fault, ProfileNode, error_of, parse_tree, read};

const TABLE: &str = "sources";
const DEFAULT: &str = "default";
const PAGE: &str = "docs/reference/profiles.md";

/// Kinds of sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A data sheet or a standard.
    DataSheet,
    /// A paper about the device or its measurement.
    Paper,
    /// Inferred from other facts; from published values if any are named.
    Inferred,
    /// Fitted to published values.
    Fitted,
    /// Chosen from a few candidates, because it reproduces published values.
    Chosen,
    /// A guess: only the order of magnitude is justified.
    Guess,
    /// None: its feature is switched off.
    Off,
}

/// The source of a constant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(rename = "Source")]
pub struct KeySource {
    /// Its kind.
    pub kind: SourceKind,
    /// The data sheet, the passage in the paper, or the derivation.
    #[serde(default)]
    pub detail: String,
    /// Ids of the published values that were used.
    #[serde(default)]
    pub values: Vec<String>,
}

impl KeySource {
    /// Return the missing field that its kind requires, if any.
    fn missing_field(&self) -> Option<&'static str> {
        use SourceKind::{Chosen, DataSheet, Fitted, Guess, Inferred, Off, Paper};
        match self.kind {
            Fitted | Chosen if self.values.is_empty() => {
                Some("values: the ids of what it was fitted to")
            }
            DataSheet | Paper | Guess | Off if !self.values.is_empty() => {
                Some("no values: only fitted, chosen and inferred constants have them")
            }
            DataSheet | Paper if self.detail.is_empty() => Some("detail: which one, and where"),
            Inferred if self.detail.is_empty() && self.values.is_empty() => {
                Some("detail: what it was inferred from")
            }
            _ => None,
        }
    }
}

/// Return the source of each key of the profile `text`, which comes from `source`.
///
/// # Errors
/// A key without a source; a source without a key or without the fields of its kind.
pub fn sources(text: &str, source: &str) -> Result<BTreeMap<String, KeySource>> {
    let root = parse_tree(text, source, PAGE)?;
    read_sources(&root).map_err(|faults| error_of(&faults, source, PAGE))
}

/// Return the source of each key of a profile.
///
/// # Errors
/// As [`sources`], all of them.
pub(crate) fn read_sources(
    root: &ProfileNode,
) -> std::result::Result<BTreeMap<String, KeySource>, Vec<Fault>> {
    let nothing = BTreeMap::new();
    let root_table = root.table().unwrap_or(&nothing);
    let table = root_table.get(TABLE);
    let mut faults = Vec::new();
    let mut named = BTreeMap::new();
    for (key, node) in table.and_then(ProfileNode::table).unwrap_or(&nothing) {
        match read_source(key, node) {
            Ok(source) => drop(named.insert(key.as_str(), (node.line, Some(source)))),
            Err(source_faults) => {
                faults.extend(source_faults);
                named.insert(key, (node.line, None));
            }
        }
    }
    let default = named.remove(DEFAULT);
    let mut without = Vec::new();
    let mut by_key = BTreeMap::new();
    let tables = root_table.iter().filter(|(name, _)| *name != TABLE);
    for key in tables.filter_map(|(_, table)| table.table()).flat_map(|table| table.keys()) {
        match named.remove(key.as_str()).or_else(|| default.clone()) {
            Some((_, source)) => drop(by_key.insert(key.clone(), source)),
            None => without.push(key.as_str()),
        }
    }
    if !without.is_empty() {
        faults.push(Fault {
            problem: "A constant of the profile has no source",
            line: table.map_or(1, |table| table.line),
            key: TABLE.into(),
            got: format!("nothing in [{TABLE}] for {}", without.join(", ")),
            allowed: "a line for each key, or default = { kind = \"guess\" } for all others".into(),
        });
    }
    faults.extend(named.into_iter().map(|(key, (line, _))| Fault {
        problem: "Unknown key of a profile",
        line,
        key: format!("{TABLE}.{key}"),
        got: format!("'{key}', which is in no table"),
        allowed: by_key.keys().cloned().collect::<Vec<_>>().join(", "),
    }));
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(by_key.into_iter().filter_map(|(key, source)| Some((key, source?))).collect())
}

/// Read a line of the table, and check the fields of its kind.
fn read_source(key: &str, node: &ProfileNode) -> std::result::Result<KeySource, Vec<Fault>> {
    let source: KeySource = read(node).map_err(|faults| {
        let inside = |fault: Fault| Fault {
            problem: "The source of a constant cannot be read",
            line: node.line,
            key: format!("{TABLE}.{key}"),
            got: format!("source of `{key}`: {}", fault.got),
            ..fault
        };
        faults.into_iter().map(inside).collect::<Vec<_>>()
    })?;
    match source.missing_field() {
        None => Ok(source),
        Some(lacking) => Err(vec![Fault {
            problem: "The source of a constant is incomplete",
            line: node.line,
            key: format!("{TABLE}.{key}"),
            got: format!(
                "source of `{key}`: {}",
                serde_json::to_string(&source).expect("serializable")
            ),
            allowed: lacking.into(),
        }]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: &str = "description = \"x\"\n[a]\none = 1\ntwo = 2\n[b]\nthree = 3\n";

    fn error(table: &str) -> String {
        sources(&format!("{PARTS}[sources]\n{table}"), "my.toml").unwrap_err().to_string()
    }

    #[test]
    fn sources_use_default_for_keys_without_own_source() {
        let table =
            "one = { kind = \"fitted\", values = [\"p/x\"] }\ndefault = { kind = \"guess\" }";
        let by_key = sources(&format!("{PARTS}[sources]\n{table}"), "my.toml").unwrap();
        assert_eq!(by_key.keys().collect::<Vec<_>>(), ["one", "three", "two"]);
        assert_eq!(by_key["one"].values, ["p/x"]);
        assert_eq!(by_key["two"].kind, SourceKind::Guess);
    }

    #[test]
    fn sources_reject_key_without_source() {
        let text = sources(PARTS, "my.toml").unwrap_err().to_string();
        assert!(text.contains("nothing in [sources] for one, two, three"), "{text}");
        assert!(error("one = { kind = \"guess\" }").contains("for two, three"));
    }

    #[test]
    fn sources_name_the_fault() {
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
            ("one = \"guess\"", "my.toml, line 8"),
        ] {
            let text = error(&format!("{line}{rest}"));
            assert!(text.contains(words), "{line}: {text}");
        }
    }
}
