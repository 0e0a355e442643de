//! A profile as a tree whose nodes have line numbers.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use uflip_core::Error;

/// The title of most faults.
pub(crate) const NOT_VALID: &str = "The profile is not valid";

/// A value with the line of its key, counted from 1.
pub(crate) struct ProfileNode {
    pub(crate) line: usize,
    pub(crate) content: NodeContent,
}

pub(crate) enum NodeContent {
    Table(BTreeMap<String, ProfileNode>),
    List(Vec<ProfileNode>),
    Text(String),
    /// Up to 64 bits, signed or unsigned.
    Whole(i128),
    Real(f64),
    Truth(bool),
    /// Values that no profile has: a date, a number beyond 64 bits.
    Other(String),
}

impl ProfileNode {
    /// Return the tree of a TOML text.
    ///
    /// # Errors
    /// It is not TOML.
    pub(crate) fn parse(text: &str) -> Result<ProfileNode, toml::de::Error> {
        let lines = LineEnds(text.match_indices('\n').map(|(at, _)| at).collect());
        let table = DeTable::parse(text)?.into_inner();
        Ok(ProfileNode { line: 1, content: content(DeValue::Table(table), &lines) })
    }

    /// Return its entries if it is a table.
    pub(crate) fn table(&self) -> Option<&BTreeMap<String, ProfileNode>> {
        match &self.content {
            NodeContent::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl NodeContent {
    /// Return it as written.
    pub(crate) fn describe(&self) -> String {
        match self {
            NodeContent::Table(_) => "a table".into(),
            NodeContent::List(_) => "a list".into(),
            NodeContent::Text(text) => format!("{text:?}"),
            NodeContent::Whole(number) => number.to_string(),
            NodeContent::Real(number) => format!("{number:?}"),
            NodeContent::Truth(truth) => truth.to_string(),
            NodeContent::Other(text) => text.clone(),
        }
    }
}

/// Positions of line ends.
struct LineEnds(Vec<usize>);

impl LineEnds {
    fn line_at(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}

fn content(value: DeValue, lines: &LineEnds) -> NodeContent {
    match value {
        DeValue::Table(table) => NodeContent::Table(
            table
                .into_iter()
                .map(|(key, value)| (key.get_ref().to_string(), node(&key, value, lines)))
                .collect(),
        ),
        DeValue::Array(parts) => NodeContent::List(
            parts
                .into_iter()
                .map(|part| node(&Spanned::new(part.span(), ()), part, lines))
                .collect(),
        ),
        DeValue::String(text) => NodeContent::Text(text.into_owned()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(whole) if i64::try_from(whole).is_ok() || u64::try_from(whole).is_ok() => {
                NodeContent::Whole(whole)
            }
            _ => NodeContent::Other("a number beyond 64 bits".into()),
        },
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or_else(|_| NodeContent::Other(number.to_string()), NodeContent::Real),
        DeValue::Boolean(truth) => NodeContent::Truth(truth),
        DeValue::Datetime(_) => NodeContent::Other("a date or a time".into()),
    }
}

fn node<K>(key: &Spanned<K>, value: Spanned<DeValue>, lines: &LineEnds) -> ProfileNode {
    ProfileNode {
        line: lines.line_at(key.span().start),
        content: content(value.into_inner(), lines),
    }
}

/// Return the tree of the text of `source`.
///
/// # Errors
/// Not TOML.
pub(crate) fn parse_tree(text: &str, source: &str, page: &str) -> uflip_core::Result<ProfileNode> {
    ProfileNode::parse(text).map_err(|error| {
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
