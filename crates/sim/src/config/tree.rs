//! A profile as a tree whose nodes have line numbers.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use uflip_core::Error;

/// The title of most faults.
pub(crate) const NOT_VALID: &str = "The profile is not valid";

/// A value with the line of its key, counted from 1.
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    Table(BTreeMap<String, Node>),
    List(Vec<Node>),
    Text(String),
    /// Up to 64 bits, signed or unsigned.
    Whole(i128),
    Real(f64),
    Truth(bool),
    /// Values that no profile has: a date, a number beyond 64 bits.
    Other(String),
}

impl Node {
    /// Return the tree of a TOML text.
    ///
    /// # Errors
    /// It is not TOML.
    pub(crate) fn parse(text: &str) -> Result<Node, toml::de::Error> {
        let lines = Lines(text.match_indices('\n').map(|(at, _)| at).collect());
        let table = DeTable::parse(text)?.into_inner();
        Ok(Node { line: 1, content: content(DeValue::Table(table), &lines) })
    }

    /// Return its entries if it is a table.
    pub(crate) fn table(&self) -> Option<&BTreeMap<String, Node>> {
        match &self.content {
            Content::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl Content {
    /// Return it as written.
    pub(crate) fn shown(&self) -> String {
        match self {
            Content::Table(_) => "a table".into(),
            Content::List(_) => "a list".into(),
            Content::Text(text) => format!("{text:?}"),
            Content::Whole(number) => number.to_string(),
            Content::Real(number) => format!("{number:?}"),
            Content::Truth(truth) => truth.to_string(),
            Content::Other(text) => text.clone(),
        }
    }
}

/// Positions of line ends.
struct Lines(Vec<usize>);

impl Lines {
    fn of(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}

fn content(value: DeValue, lines: &Lines) -> Content {
    match value {
        DeValue::Table(table) => Content::Table(
            table
                .into_iter()
                .map(|(key, value)| (key.get_ref().to_string(), node(&key, value, lines)))
                .collect(),
        ),
        DeValue::Array(parts) => Content::List(
            parts
                .into_iter()
                .map(|part| node(&Spanned::new(part.span(), ()), part, lines))
                .collect(),
        ),
        DeValue::String(text) => Content::Text(text.into_owned()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(whole) if i64::try_from(whole).is_ok() || u64::try_from(whole).is_ok() => {
                Content::Whole(whole)
            }
            _ => Content::Other("a number beyond 64 bits".into()),
        },
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or_else(|_| Content::Other(number.to_string()), Content::Real),
        DeValue::Boolean(truth) => Content::Truth(truth),
        DeValue::Datetime(_) => Content::Other("a date or a time".into()),
    }
}

fn node<K>(key: &Spanned<K>, value: Spanned<DeValue>, lines: &Lines) -> Node {
    Node { line: lines.of(key.span().start), content: content(value.into_inner(), lines) }
}

/// Return the tree of the text of `source`.
///
/// # Errors
/// Not TOML.
pub(crate) fn tree_of(text: &str, source: &str, page: &str) -> uflip_core::Result<Node> {
    Node::parse(text).map_err(|error| {
        Error::usage(NOT_VALID)
            .with_serde_message(error.message())
            .at(format!("{source}, line {}", line_of(text, &error)))
            .action(format!("correct the profile; {page} explains every key"))
    })
}

/// Return the line of an error, counted from 1.
pub(crate) fn line_of(text: &str, error: &toml::de::Error) -> usize {
    let begin = error.span().map_or(0, |span| span.start).min(text.len());
    text.as_bytes()[..begin].iter().filter(|byte| **byte == b'\n').count() + 1
}
