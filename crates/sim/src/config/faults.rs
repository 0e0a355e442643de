//! Reading a tree into a type, and all that is wrong with it at once.
//!
//! Whoever writes a profile by hand wants to hear of every key that is missing, unknown or of the wrong
//! kind, and not of one an attempt. serde stops at the first. So reading begins again after each fault,
//! with the place of the fault taken for a value of whatever kind is asked for there: nothing is
//! written down a second time about which keys there are.
//!
//! Here is also where a text becomes a number: `read_ns = "25us"`, as in the name of a device.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, MapAccess, SeqAccess,
};
use serde::de::{Unexpected, Visitor};
use serde::{Deserializer, Serialize};
use uflip_core::{Error, Quantity};

use crate::config::tree::{Content, NOT_VALID, Node};

/// Something that is wrong with a profile.
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    /// What is wrong, where it is the only fault.
    #[serde(skip)]
    pub what: &'static str,
    /// Where it is; a key that is missing, is missing from a table.
    pub line: usize,
    /// Table and key, with a point between them.
    pub key: String,
    /// What was found there.
    pub got: String,
    /// What could be there; empty where nothing could.
    pub allowed: String,
}

/// One error of all `faults` in the text of `source`, whose keys `page` explains.
pub(crate) fn error_of(faults: &[Fault], source: &str, page: &str) -> Error {
    let action = format!("correct the profile; {page} explains every key");
    if let [fault] = faults {
        return Error::usage(fault.what)
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

type Path = Vec<String>;

/// Read `root` into a type.
///
/// # Errors
/// Every key that is missing, unknown, or of another kind, by its line.
pub(crate) fn read<P: DeserializeOwned>(root: &Node) -> Result<P, Vec<Fault>> {
    let log = Log::default();
    loop {
        let at = At { node: Some(root), line: 1, path: Path::new(), log: &log };
        match P::deserialize(at) {
            Ok(value) => {
                let faults = log.into_faults();
                return if faults.is_empty() { Ok(value) } else { Err(faults) };
            }
            Err(misfit) => {
                if !log.take(misfit) {
                    return Err(log.into_faults());
                }
            }
        }
    }
}

/// What was found so far.
#[derive(Default)]
struct Log {
    faults: RefCell<BTreeMap<Path, Fault>>,
    /// Places that are taken for whatever is asked for.
    filled: RefCell<BTreeSet<Path>>,
}

impl Log {
    /// Whether reading can go on after a misfit: not where the same place misfits again.
    fn take(&self, misfit: Misfit) -> bool {
        let Misfit { mut path, line, got, allowed, .. } = misfit;
        path.reverse();
        let key = path.join(".");
        let fault = Fault { what: NOT_VALID, line: line.unwrap_or(1), key, got, allowed };
        let goes_on = self.filled.borrow_mut().insert(path.clone());
        self.faults.borrow_mut().entry(path).or_insert(fault);
        goes_on
    }

    fn unknown(&self, path: Path, line: usize, known: &[&str]) {
        let got = format!("unknown key `{}`", path.last().map_or("", String::as_str));
        let (key, allowed) = (path.join("."), known.join(", "));
        let fault = Fault { what: NOT_VALID, line, key, got, allowed };
        self.faults.borrow_mut().entry(path).or_insert(fault);
    }

    /// What a place that was filled should have held.
    fn asked_for(&self, path: &Path, what: impl Into<String>) {
        if let Some(fault) = self.faults.borrow_mut().get_mut(path)
            && fault.allowed.is_empty()
        {
            fault.allowed = what.into();
        }
    }

    fn into_faults(self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.faults.into_inner().into_values().collect();
        faults.sort_by_key(|fault| fault.line);
        faults
    }
}

/// A place of the tree; one without a node is what is asked for.
struct At<'a> {
    node: Option<&'a Node>,
    line: usize,
    path: Path,
    log: &'a Log,
}

impl<'a> At<'a> {
    fn content(&self) -> Option<&'a Content> {
        let filled = self.log.filled.borrow().contains(&self.path);
        self.node.filter(|_| !filled).map(|node| &node.content)
    }

    fn below(&self, key: &str, node: Option<&'a Node>) -> At<'a> {
        let path = self.path.iter().cloned().chain([key.to_owned()]).collect();
        At { node, line: node.map_or(self.line, |node| node.line), path, log: self.log }
    }

    fn key(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    fn misfit(&self, content: &Content, allowed: impl Into<String>) -> Misfit {
        let got = if self.path.is_empty() {
            content.shown()
        } else {
            format!("`{}` is {}", self.key(), content.shown())
        };
        let path = self.path.iter().rev().cloned().collect();
        Misfit { path, line: Some(self.line), got, allowed: allowed.into(), named: true }
    }

    /// What a whole number may be written as here.
    fn whole_allowed(&self, number: &str) -> String {
        match Quantity::of_key(self.key()) {
            Some(Quantity::Size) => format!("{number}, or a text with its unit, as in \"32KiB\""),
            Some(_) => format!("{number}, or a text with its unit, as in \"25us\""),
            None => number.to_owned(),
        }
    }

    fn whole<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Misfit> {
        let allowed = self.whole_allowed(WHOLE);
        let number = match (self.content(), Quantity::of_key(self.key())) {
            (None, _) => {
                self.log.asked_for(&self.path, allowed);
                1
            }
            (Some(Content::Whole(number)), _) => *number,
            (Some(Content::Text(text)), Some(quantity)) => {
                quantity.read(text).map_err(|error| {
                    let (what, _, _, written, _) = error.parts();
                    let misfit = self.misfit(&Content::Text(text.clone()), written);
                    Misfit { got: format!("{}: {what}", misfit.got), ..misfit }
                })?
            }
            (Some(content), _) => return Err(self.misfit(content, allowed)),
        };
        let visited = match u64::try_from(number) {
            Ok(number) => visitor.visit_u64(number),
            Err(_) => visitor.visit_i64(number as i64), // a tree has no other numbers
        };
        visited.map_err(|misfit: Misfit| {
            let allowed = self.whole_allowed(&misfit.allowed);
            self.misfit(&Content::Whole(number), allowed)
        })
    }
}

const WHOLE: &str = "a whole number";

/// Why reading stopped; the path begins at its end.
#[derive(Debug)]
struct Misfit {
    path: Path,
    line: Option<usize>,
    got: String,
    allowed: String,
    /// Whether the path is that of the misfit, and needs no more to it.
    named: bool,
}

impl Misfit {
    fn new(got: impl Display, allowed: impl Into<String>) -> Misfit {
        let (got, allowed) = (got.to_string(), allowed.into());
        Misfit { path: Path::new(), line: None, got, allowed, named: false }
    }

    /// The misfit, met inside `at`.
    fn inside(mut self, at: &At) -> Misfit {
        if !self.named {
            self.path.extend(at.path.iter().rev().cloned());
            (self.line, self.named) = (Some(at.line), true);
        }
        self
    }
}

impl Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.got)
    }
}

impl std::error::Error for Misfit {}

impl serde::de::Error for Misfit {
    fn custom<T: Display>(message: T) -> Self {
        Misfit::new(message, "")
    }

    fn invalid_type(got: Unexpected, expected: &dyn Expected) -> Self {
        Misfit::invalid_value(got, expected)
    }

    fn invalid_value(got: Unexpected, expected: &dyn Expected) -> Self {
        Misfit::new(
            got,
            match expected.to_string().as_str() {
                "u32" => format!("{WHOLE}, 0 to {}", u32::MAX),
                "u64" => format!("{WHOLE}, 0 to {}", i64::MAX), // what TOML can write
                other => other.to_owned(),
            },
        )
    }

    fn missing_field(field: &'static str) -> Self {
        let path = vec![field.to_owned()];
        Misfit { path, ..Misfit::new(format!("missing key `{field}`"), "") }
    }
}

macro_rules! whole_numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            self.whole(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for At<'_> {
    type Error = Misfit;

    whole_numbers! {
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.content() {
            None => {
                self.log.asked_for(&self.path, "a number");
                visitor.visit_f64(1.0)
            }
            Some(Content::Real(number)) if number.is_finite() => visitor.visit_f64(*number),
            Some(Content::Whole(number)) => visitor.visit_f64(*number as f64),
            Some(content @ Content::Real(_)) => Err(self.misfit(content, "finite numbers")),
            Some(content) => Err(self.misfit(content, "a number")),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.content() {
            None => {
                self.log.asked_for(&self.path, "true, false");
                visitor.visit_bool(false)
            }
            Some(Content::Truth(truth)) => visitor.visit_bool(*truth),
            Some(content) => Err(self.misfit(content, "true, false")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.content() {
            None => {
                self.log.asked_for(&self.path, "a text in quotes");
                visitor.visit_str("")
            }
            Some(Content::Text(text)) => visitor.visit_str(text),
            Some(content) => Err(self.misfit(content, "a text in quotes")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_str(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let name: StrDeserializer<'_, Misfit> = match self.content() {
            None => {
                self.log.asked_for(&self.path, names.join(", "));
                names.first().copied().unwrap_or_default().into_deserializer()
            }
            Some(Content::Text(text)) if names.contains(&text.as_str()) => {
                text.as_str().into_deserializer()
            }
            Some(content) => return Err(self.misfit(content, names.join(", "))),
        };
        visitor.visit_enum(name)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.content() {
            None => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let keys = format!("a table with {}", known.join(", "));
        let found = match self.content() {
            None => {
                self.log.asked_for(&self.path, keys);
                known.iter().map(|key| ((*key).to_owned(), None)).collect()
            }
            Some(Content::Table(table)) => self.keys(table, known),
            Some(content) => return Err(self.misfit(content, keys)),
        };
        let keys = Keys { at: &self, left: found.into_iter(), next: None };
        visitor.visit_map(keys).map_err(|misfit| misfit.inside(&self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.content() {
            None => {
                self.log.asked_for(&self.path, "a list");
                visitor.visit_seq(Items { at: &self, left: [].iter() })
            }
            Some(Content::List(parts)) => {
                visitor.visit_seq(Items { at: &self, left: parts.iter() })
            }
            Some(content) => Err(self.misfit(content, "a list")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    /// No profile has a place for anything.
    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Misfit> {
        Err(Misfit::new("a key whose kind no one asks for", ""))
    }

    serde::forward_to_deserialize_any! {
        char bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct map identifier
    }
}

impl<'a> At<'a> {
    /// The keys of `table` that are known, and those that were missing; others are faults.
    fn keys(
        &self,
        table: &'a BTreeMap<String, Node>,
        known: &[&str],
    ) -> Vec<(String, Option<&'a Node>)> {
        for (key, node) in table.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let path = self.below(key, Some(node)).path;
            self.log.unknown(path, node.line, known);
        }
        let filled = self.log.filled.borrow();
        let found = known.iter().filter_map(|key| match table.get(*key) {
            Some(node) => Some(((*key).to_owned(), Some(node))),
            None => filled.contains(&self.below(key, None).path).then(|| ((*key).to_owned(), None)),
        });
        found.collect()
    }
}

struct Keys<'b, 'a> {
    at: &'b At<'a>,
    left: std::vec::IntoIter<(String, Option<&'a Node>)>,
    next: Option<(String, Option<&'a Node>)>,
}

impl<'de> MapAccess<'de> for Keys<'_, '_> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Misfit> {
        self.next = self.left.next();
        let Some((key, _)) = &self.next else { return Ok(None) };
        let key: StrDeserializer<'_, Misfit> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let (key, node) = self.next.take().expect("a key comes before its value");
        let below = self.at.below(&key, node);
        let place = self.at.below(&key, node);
        seed.deserialize(below).map_err(|misfit| misfit.inside(&place))
    }
}

struct Items<'b, 'a> {
    at: &'b At<'a>,
    left: std::slice::Iter<'a, Node>,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Misfit> {
        let Some(node) = self.left.next() else { return Ok(None) };
        let at =
            At { node: Some(node), line: node.line, path: self.at.path.clone(), log: self.at.log };
        seed.deserialize(at).map(Some)
    }
}
