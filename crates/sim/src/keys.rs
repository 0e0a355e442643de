//! The keys of profiles: fields of types that `parameters!` defines.
//!
//! A field has its type, allowed values, unit and meaning in one place. The reference pages, the
//! comments of a new profile and the forms of the explorer follow. If the allowed values begin with
//! a range, that range is checked:
//!
//! ```text
//! 1 or more     1 to 64     0 or 1     above 0     above 0, below 0.5     above 0, up to 1     0 up to, not including, 1
//! ```
//!
//! An end that is no number depends on other keys. It is checked separately, as is any text after
//! the range.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use uflip_core::Error;

/// Define a table of a profile: a type with a field for each key.
///
/// ```text
/// key: type = "allowed values" in "unit",
///     "meaning";
/// ```
macro_rules! parameters {
    (
        $(#[$about:meta])*
        pub struct $part:ident {
            $(
                $(#[$attribute:meta])*
                $key:ident: $kind:ty = $allowed:literal $(in $unit:literal)?,
                $meaning:literal;
            )+
        }
    ) => {
        $(#[$about])*
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(rustdoc::broken_intra_doc_links)] // "[suspend]" is a table of a profile
        pub struct $part {
            $(
                #[doc = $meaning]
                $(#[$attribute])*
                pub $key: $kind,
            )+
        }

        impl $part {
            /// Its keys.
            pub(crate) const KEYS: &'static [crate::keys::Key] = &[
                $(crate::keys::Key {
                    name: stringify!($key),
                    unit: concat!($($unit)?),
                    allowed: $allowed,
                    meaning: $meaning,
                }),+
            ];
        }
    };
}
pub(crate) use parameters;

/// A key of a profile.
#[derive(Debug, Serialize)]
pub struct Key {
    /// Its name, which overrides use without its table.
    pub name: &'static str,
    /// Its unit; empty if it has none.
    pub unit: &'static str,
    /// Its allowed values.
    pub allowed: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

/// Tables of a profile and their keys, in the order of the documentation.
pub(crate) type KeyTables = &'static [(&'static str, &'static [Key])];

/// Former names of keys, and their present names.
const RENAMED: [(&str, &str); 1] = [("static_wear_gap", "static_wear_threshold")];

/// Return the present name of the former `key`.
pub(crate) fn renamed(key: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(before, _)| *before == key).map(|(_, now)| *now)
}

/// A key with an invalid value.
pub(crate) struct InvalidKey {
    pub(crate) key: &'static str,
    pub(crate) got: String,
    pub(crate) allowed: String,
}

impl InvalidKey {
    pub(crate) fn error(self, source: &str) -> Error {
        Error::usage(format!("Profile key '{}' has an invalid value", self.key))
            .at(source)
            .got(self.got)
            .allowed(self.allowed)
            .action("change it")
    }
}

/// Maximum distance of a drawn number from the least one.
const DRAWN_SPAN: f64 = 6.0;

/// All keys of the profiles of one interface, by table and name.
pub(crate) struct Keys(BTreeMap<&'static str, BTreeMap<&'static str, &'static Key>>);

impl Keys {
    pub(crate) fn new(tables: KeyTables) -> Keys {
        let by_name = |keys: &'static [Key]| keys.iter().map(|key| (key.name, key)).collect();
        Keys(tables.iter().map(|(table, keys)| (*table, by_name(keys))).collect())
    }

    /// Return all tables with their keys, in order.
    #[cfg(test)]
    pub(crate) fn by_table(&self) -> BTreeMap<&str, Vec<&str>> {
        let tables = self.0.iter();
        tables.map(|(table, keys)| (*table, keys.keys().copied().collect())).collect()
    }

    /// Return values for all keys of a table, each in its range but otherwise arbitrary: `below`
    /// draws a number.
    pub(crate) fn drawn(
        &self,
        table: &str,
        mut below: impl FnMut(u64) -> u64,
    ) -> Map<String, Value> {
        let keys = self.0[table].iter();
        keys.map(|(name, key)| ((*name).to_owned(), key.drawn(&mut below))).collect()
    }

    /// Return the table of a key; the first, if several tables have a key of this name.
    pub(crate) fn table_of(&self, key: &str) -> Option<&'static str> {
        let mut tables = self.0.iter();
        tables.find(|(_, keys)| keys.contains_key(key)).map(|(table, _)| *table)
    }

    /// Return the keys whose value is outside its range.
    pub(crate) fn invalid_keys(&'static self, profile: &impl Serialize) -> Vec<InvalidKey> {
        let profile = serde_json::to_value(profile).expect("a profile is serializable");
        let value_of = |table: &str, key: &str| profile.get(table).and_then(|table| table.get(key));
        let all = self.0.iter().flat_map(|(table, keys)| {
            keys.iter().filter_map(move |(name, key)| Some((name, key, value_of(table, name)?)))
        });
        all.filter(|(_, key, value)| !key.allows(value))
            .map(|(name, key, value)| InvalidKey {
                key: name,
                got: describe(value),
                allowed: key.allowed.replace('`', ""),
            })
            .collect()
    }
}

impl Key {
    /// Return whether the range, if any, contains `value`. JSON cannot represent NaN or infinity.
    fn allows(&self, value: &Value) -> bool {
        let number = value.as_f64();
        match NumberRange::parse(self.allowed) {
            Some(range) => number.is_some_and(|number| range.contains(number)),
            None => !value.is_null(),
        }
    }

    /// Return a value in its range: one of the first few, or one of the named ones.
    fn drawn(&self, below: &mut impl FnMut(u64) -> u64) -> Value {
        let named: Vec<&str> = self.allowed.split('`').skip(1).step_by(2).collect();
        match NumberRange::parse(self.allowed) {
            None => named.get(below(named.len().max(1) as u64) as usize).map_or(0.into(), |name| {
                name.parse::<bool>().map_or_else(|_| Value::from(*name), Value::from)
            }),
            Some(NumberRange { min, from: false, max, .. }) => {
                (min.midpoint(max.min(min + 2.0))).into()
            }
            Some(NumberRange { min, max, to, .. }) => {
                let many = (max - min).min(DRAWN_SPAN) + f64::from(u8::from(to));
                (min as u64 + below((many as u64).max(1))).into()
            }
        }
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "not a finite number".into(),
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(String::new, |number| number.to_string())
        }
        value => value.to_string(),
    }
}

/// A range of numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
struct NumberRange {
    min: f64,
    /// Whether the lower end is included.
    from: bool,
    max: f64,
    to: bool,
}

impl NumberRange {
    /// Return the range that a text begins with.
    fn parse(allowed: &str) -> Option<NumberRange> {
        let words: Vec<&str> =
            allowed.split_whitespace().map(|word| word.trim_end_matches([',', ';'])).collect();
        let number = |word: &str| word.parse::<f64>().ok();
        let range = |min: &str, from: bool, max: Option<f64>, to: bool| {
            Some(NumberRange { min: number(min)?, from, max: max.unwrap_or(f64::INFINITY), to })
        };
        match words[..] {
            ["above", min, "below", max, ..] => range(min, false, number(max), false),
            ["above", min, "up", "to", max, ..] => range(min, false, number(max), true),
            ["above", min, ..] => range(min, false, None, false),
            [min, "up", "to", "not", "including", max, ..] => range(min, true, number(max), false),
            [min, "to", max, ..] => range(min, true, number(max), true),
            [min, "or", "more", ..] => range(min, true, None, false),
            [min, "or", max, ..] => range(min, true, Some(number(max)?), true),
            _ => None,
        }
    }

    fn contains(&self, number: f64) -> bool {
        let above = number > self.min || self.from && number == self.min;
        above && (number < self.max || self.to && number == self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_is_parsed() {
        let range = |min, from, max, to| Some(NumberRange { min, from, max, to });
        let open = f64::INFINITY;
        for (text, expected) in [
            ("1 or more", range(1.0, true, open, false)),
            ("1 or more, a divisor of `blocks_per_die`", range(1.0, true, open, false)),
            ("1 to 16; 1 without the key", range(1.0, true, 16.0, true)),
            ("0 to 1e9", range(0.0, true, 1e9, true)),
            ("0 to all pages", range(0.0, true, open, true)),
            ("0 or 1", range(0.0, true, 1.0, true)),
            ("above 0", range(0.0, false, open, false)),
            ("above 0, below 0.5", range(0.0, false, 0.5, false)),
            ("above 0, up to 1", range(0.0, false, 1.0, true)),
            ("0 up to, not including, 1", range(0.0, true, 1.0, false)),
            ("0 up to, not including, the data pages", range(0.0, true, open, false)),
            ("`true`, `false`", None),
            ("powers of two from 512", None),
        ] {
            assert_eq!(NumberRange::parse(text), expected, "{text}");
        }
        let share = NumberRange::parse("0 up to, not including, 1").expect("a valid range");
        assert_eq!(
            [-0.1, 0.0, 0.9, 1.0].map(|value| share.contains(value)),
            [false, true, true, false]
        );
        let factor = NumberRange::parse("above 0, up to 1").expect("a valid range");
        assert_eq!(
            [0.0, 1e-9, 1.0, 1.1].map(|value| factor.contains(value)),
            [false, true, true, false]
        );
    }
}
