//! A deserializer of the tree that records why a value cannot be read.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use serde::Deserializer;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Expected, IntoDeserializer, MapAccess, SeqAccess};
use serde::de::{Unexpected, Visitor};
use uflip_core::Quantity;

use super::{FaultLog, KeyPath};
use crate::config::tree::{NodeContent, ProfileNode};

/// A node of the tree and its path; without a node, any requested type is accepted.
pub(super) struct NodeDeserializer<'a> {
    pub(super) node: Option<&'a ProfileNode>,
    pub(super) line: usize,
    pub(super) path: KeyPath,
    pub(super) log: &'a FaultLog,
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
pub(super) struct ReadError {
    pub(super) path: KeyPath,
    pub(super) line: Option<usize>,
    pub(super) got: String,
    pub(super) allowed: String,
    /// Whether the path is complete.
    pub(super) has_path: bool,
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
