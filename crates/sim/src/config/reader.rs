//! Reading TOML into a type, with all faults at once and the line of each.
//!
//! The author of a profile needs all missing, unknown or invalid keys in one report, but serde
//! stops at the first. So reading restarts after each fault, with the faulty value accepted as any
//! requested type. Thus no second list of keys is needed.
//!
//! Texts with units become numbers here: `read_ns = "25us"`, as in a device URL.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::{Deserializer, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use uflip_core::{Error, Quantity};

use crate::keys::renamed;

/// A fault of a profile.
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    /// The title if it is the only fault.
    #[serde(skip)]
    pub problem: &'static str,
    /// Its line; for a missing key the line of its table.
    pub line: usize,
    /// Table and key, joined by a point.
    pub key: String,
    /// The value found at the key.
    pub got: String,
    /// The allowed values; empty if there is no such key.
    pub allowed: String,
}

/// Return one error for all `faults` in the text of `source`; `page` documents its keys.
pub(crate) fn error_of(faults: &[Fault], source: &str, page: &str) -> Error {
    let action = format!("correct the profile; {page} explains every key");
    if let [fault] = faults {
        return Error::usage(fault.problem)
            .at(format!("{source}, line {}", fault.line))
            .got(&fault.got)
            .allowed(&fault.allowed)
            .action(action);
    }
    let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
    Error::usage(format!("The profile has {} faults", faults.len()))
        .at(source)
        .got(lines.join("\n"))
        .action(action)
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.got)?;
        let of_table = self.key.rsplit_once('.').map(|(table, _)| table);
        if let Some(table) = of_table {
            write!(f, " in [{table}]")?;
        }
        if self.allowed.is_empty() { Ok(()) } else { write!(f, "; allowed: {}", self.allowed) }
    }
}

type KeyPath = Vec<String>;

/// Read `root` into a type.
///
/// # Errors
/// Every missing, unknown or invalid key, by line.
pub(crate) fn read<P: DeserializeOwned>(root: &ProfileNode) -> Result<P, Vec<Fault>> {
    let log = FaultLog::default();
    loop {
        let at = NodeDeserializer { node: Some(root), line: 1, path: KeyPath::new(), log: &log };
        match P::deserialize(at) {
            Ok(value) => {
                let faults = log.into_faults();
                return if faults.is_empty() { Ok(value) } else { Err(faults) };
            }
            Err(error) => {
                if !log.record(error) {
                    return Err(log.into_faults());
                }
            }
        }
    }
}

/// The faults found so far.
#[derive(Default)]
struct FaultLog {
    faults: RefCell<BTreeMap<KeyPath, Fault>>,
    /// Paths of faulty values, which are accepted as any requested type.
    filled: RefCell<BTreeSet<KeyPath>>,
}

impl FaultLog {
    /// Record an error; return whether reading can restart: not if the same key fails again.
    fn record(&self, error: ReadError) -> bool {
        let ReadError { mut path, line, got, allowed, .. } = error;
        path.reverse();
        let key = path.join(".");
        let fault = Fault { problem: NOT_VALID, line: line.unwrap_or(1), key, got, allowed };
        let is_new = self.filled.borrow_mut().insert(path.clone());
        self.faults.borrow_mut().entry(path).or_insert(fault);
        is_new
    }

    fn record_unknown(&self, path: KeyPath, line: usize, known_keys: &[&str]) {
        let name = path.last().map_or("", String::as_str);
        let now = renamed(name).map(|now| format!(", which was renamed to `{now}`"));
        let got = format!("unknown key `{name}`{}", now.unwrap_or_default());
        let (key, allowed) = (path.join("."), known_keys.join(", "));
        let fault = Fault { problem: NOT_VALID, line, key, got, allowed };
        self.faults.borrow_mut().entry(path).or_insert(fault);
    }

    /// Record what a faulty key should have contained.
    fn record_expected(&self, path: &KeyPath, expected: impl Into<String>) {
        if let Some(fault) = self.faults.borrow_mut().get_mut(path)
            && fault.allowed.is_empty()
        {
            fault.allowed = expected.into();
        }
    }

    fn into_faults(self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.faults.into_inner().into_values().collect();
        faults.sort_by_key(|fault| fault.line);
        faults
    }
}

// A deserializer of the tree that records why a value cannot be read.

/// A node of the tree and its path; without a node, any requested type is accepted.
struct NodeDeserializer<'a> {
    node: Option<&'a ProfileNode>,
    line: usize,
    path: KeyPath,
    log: &'a FaultLog,
}

impl<'a> NodeDeserializer<'a> {
    fn content(&self) -> Option<&'a NodeContent> {
        let filled = self.log.filled.borrow().contains(&self.path);
        self.node.filter(|_| !filled).map(|node| &node.content)
    }

    fn child(&self, key: &str, node: Option<&'a ProfileNode>) -> NodeDeserializer<'a> {
        let path = self.path.iter().cloned().chain([key.to_owned()]).collect();
        NodeDeserializer {
            node,
            line: node.map_or(self.line, |node| node.line),
            path,
            log: self.log,
        }
    }

    fn key(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    fn error(&self, content: &NodeContent, allowed: impl Into<String>) -> ReadError {
        let got = if self.path.is_empty() {
            content.describe()
        } else {
            format!("`{}` is {}", self.key(), content.describe())
        };
        let path = self.path.iter().rev().cloned().collect();
        ReadError { path, line: Some(self.line), got, allowed: allowed.into(), has_path: true }
    }

    /// Return the allowed forms of a whole number at this key.
    fn whole_allowed(&self, number: &str) -> String {
        match Quantity::from_key(self.key()) {
            Some(Quantity::Size) => format!("{number}, or a text with its unit, as in \"32KiB\""),
            Some(_) => format!("{number}, or a text with its unit, as in \"25us\""),
            None => number.to_owned(),
        }
    }

    fn whole<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, ReadError> {
        let allowed = self.whole_allowed(WHOLE);
        let number = match (self.content(), Quantity::from_key(self.key())) {
            (None, _) => {
                self.log.record_expected(&self.path, allowed);
                1
            }
            (Some(NodeContent::Whole(number)), _) => *number,
            (Some(NodeContent::Text(text)), Some(quantity)) => {
                quantity.read(text).map_err(|error| {
                    let (what, _, _, written, _) = error.parts();
                    let error = self.error(&NodeContent::Text(text.clone()), written);
                    ReadError { got: format!("{}: {what}", error.got), ..error }
                })?
            }
            (Some(content), _) => return Err(self.error(content, allowed)),
        };
        let visited = match u64::try_from(number) {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => visitor.visit_i64(number as i64), // a tree has no other numbers
        };
        visited.map_err(|error: ReadError| {
            let allowed = self.whole_allowed(&error.allowed);
            self.error(&NodeContent::Whole(number), allowed)
        })
    }
}

const WHOLE: &str = "a whole number";

/// The reason why reading stopped; the path is in reverse order.
#[derive(Debug)]
struct ReadError {
    path: KeyPath,
    line: Option<usize>,
    got: String,
    allowed: String,
    /// Whether the path is complete.
    has_path: bool,
}

impl ReadError {
    fn new(got: impl Display, allowed: impl Into<String>) -> ReadError {
        let (got, allowed) = (got.to_string(), allowed.into());
        ReadError { path: KeyPath::new(), line: None, got, allowed, has_path: false }
    }

    /// Add the key of `at` to the path.
    fn inside(mut self, at: &NodeDeserializer) -> ReadError {
        if !self.has_path {
            self.path.extend(at.path.iter().rev().cloned());
            (self.line, self.has_path) = (Some(at.line), true);
        }
        self
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.got)
    }
}

impl std::error::Error for ReadError {}

impl serde::de::Error for ReadError {
    fn custom<T: Display>(message: T) -> Self {
        ReadError::new(message, "")
    }

    fn invalid_type(got: Unexpected, expected: &dyn Expected) -> Self {
        ReadError::invalid_value(got, expected)
    }

    fn invalid_value(got: Unexpected, expected: &dyn Expected) -> Self {
        ReadError::new(
            got,
            match expected.to_string().as_str() {
                "u32" => format!("{WHOLE}, 0 to {}", u32::MAX),
                "u64" => format!("{WHOLE}, 0 to {}", i64::MAX), // the limit of TOML
                other => other.to_owned(),
            },
        )
    }

    fn missing_field(field: &'static str) -> Self {
        let path = vec![field.to_owned()];
        ReadError { path, ..ReadError::new(format!("missing key `{field}`"), "") }
    }
}

macro_rules! whole_numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            self.whole(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for NodeDeserializer<'_> {
    type Error = ReadError;

    whole_numbers! {
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.content() {
            None => {
                self.log.record_expected(&self.path, "a number");
                visitor.visit_f64(1.0)
            }
            Some(NodeContent::Real(number)) if number.is_finite() => visitor.visit_f64(*number),
            Some(NodeContent::Whole(number)) => visitor.visit_f64(*number as f64),
            Some(content @ NodeContent::Real(_)) => Err(self.error(content, "finite numbers")),
            Some(content) => Err(self.error(content, "a number")),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.content() {
            None => {
                self.log.record_expected(&self.path, "true, false");
                visitor.visit_bool(false)
            }
            Some(NodeContent::Truth(truth)) => visitor.visit_bool(*truth),
            Some(content) => Err(self.error(content, "true, false")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.content() {
            None => {
                self.log.record_expected(&self.path, "a text in quotes");
                visitor.visit_str("")
            }
            Some(NodeContent::Text(text)) => visitor.visit_str(text),
            Some(content) => Err(self.error(content, "a text in quotes")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let name: StrDeserializer<'_, ReadError> = match self.content() {
            None => {
                self.log.record_expected(&self.path, names.join(", "));
                names.first().copied().unwrap_or_default().into_deserializer()
            }
            Some(NodeContent::Text(text)) if names.contains(&text.as_str()) => {
                text.as_str().into_deserializer()
            }
            Some(content) => return Err(self.error(content, names.join(", "))),
        };
        visitor.visit_enum(name)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.content() {
            None => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let keys = format!("a table with {}", fields.join(", "));
        let entries = match self.content() {
            None => {
                self.log.record_expected(&self.path, keys);
                fields.iter().map(|key| ((*key).to_owned(), None)).collect()
            }
            Some(NodeContent::Table(table)) => self.keys(table, fields),
            Some(content) => return Err(self.error(content, keys)),
        };
        let keys = TableAccess { at: &self, entries: entries.into_iter(), next: None };
        visitor.visit_map(keys).map_err(|error| error.inside(&self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.content() {
            None => {
                self.log.record_expected(&self.path, "a list");
                visitor.visit_seq(ArrayAccess { at: &self, items: [].iter() })
            }
            Some(NodeContent::List(parts)) => {
                visitor.visit_seq(ArrayAccess { at: &self, items: parts.iter() })
            }
            Some(content) => Err(self.error(content, "a list")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    /// Unsupported: no profile accepts arbitrary values.
    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, ReadError> {
        Err(ReadError::new("a key of unknown type", ""))
    }

    serde::forward_to_deserialize_any! {
        char bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct map identifier
    }
}

impl<'a> NodeDeserializer<'a> {
    /// Return the known keys of `table` with those that are missing; record others as faults.
    fn keys(
        &self,
        table: &'a BTreeMap<String, ProfileNode>,
        known: &[&str],
    ) -> Vec<(String, Option<&'a ProfileNode>)> {
        for (key, node) in table.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let path = self.child(key, Some(node)).path;
            self.log.record_unknown(path, node.line, known);
        }
        let filled = self.log.filled.borrow();
        let entries = known.iter().filter_map(|key| match table.get(*key) {
            Some(node) => Some(((*key).to_owned(), Some(node))),
            None => filled.contains(&self.child(key, None).path).then(|| ((*key).to_owned(), None)),
        });
        entries.collect()
    }
}

struct TableAccess<'b, 'a> {
    at: &'b NodeDeserializer<'a>,
    entries: std::vec::IntoIter<(String, Option<&'a ProfileNode>)>,
    next: Option<(String, Option<&'a ProfileNode>)>,
}

impl<'de> MapAccess<'de> for TableAccess<'_, '_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        self.next = self.entries.next();
        let Some((key, _)) = &self.next else { return Ok(None) };
        let key: StrDeserializer<'_, ReadError> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let (key, node) = self.next.take().expect("the key was read before its value");
        let below = self.at.child(&key, node);
        let path = self.at.child(&key, node);
        seed.deserialize(below).map_err(|error| error.inside(&path))
    }
}

struct ArrayAccess<'b, 'a> {
    at: &'b NodeDeserializer<'a>,
    items: std::slice::Iter<'a, ProfileNode>,
}

impl<'de> SeqAccess<'de> for ArrayAccess<'_, '_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some(node) = self.items.next() else { return Ok(None) };
        let at = NodeDeserializer {
            node: Some(node),
            line: node.line,
            path: self.at.path.clone(),
            log: self.at.log,
        };
        seed.deserialize(at).map(Some)
    }
}

// A profile as a tree whose nodes have line numbers.

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
