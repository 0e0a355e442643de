//! Sizes, durations and counts in text form: `32KiB`, `1.5ms`, `100k`. Options, device names and
//! profiles all use this parser.
//!
//! Sizes follow fio: k, m, g, t are powers of 1024, in either case, with or without "i" and "B", so
//! 4k = 4KiB = 4096. Durations always carry a unit, because a bare number is ambiguous (ns or s).
//! Counts use powers of 1000: 1k is 1000.

use crate::{Error, Result};

/// The longest accepted text; a longer number would take time to parse.
const MAX_TEXT_BYTES: usize = 100;

/// The kind of quantity to parse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// [bytes]
    Size,
    /// [ns]
    Duration,
    /// A number of things.
    Count,
}

use Quantity::{Count, Duration, Size};

impl Quantity {
    /// Return the quantity of the value of `key`, if its last word is a unit.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Quantity> {
        match key.rsplit('_').next() {
            Some("bytes") => Some(Size),
            Some("ns") => Some(Duration),
            _ => None,
        }
    }

    /// Return the name: `size`, `duration`, `count`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Size => "size",
            Duration => "duration",
            Count => "count",
        }
    }

    /// Return the allowed notation, for errors.
    #[must_use]
    pub fn allowed(self) -> &'static str {
        match self {
            Size => "a whole number of bytes, as in 512, 4k, 32KiB, 1.5MiB, 1g",
            Duration => "a number with its unit (ns, us, ms, s, min, h), as in 100us, 1.5ms, 2s",
            Count => "a whole number, as in 5000, 100k, 1.5M, 2G",
        }
    }

    /// Parse `text`; only counts can be negative.
    ///
    /// # Errors
    /// If the text is not a number, has an unknown or missing unit, is negative, is not whole, or
    /// is beyond 64 bits.
    pub fn read(self, text: &str) -> Result<i128> {
        let name = self.name();
        let error = |problem: String| {
            Err(Error::usage(problem)
                .got(text)
                .allowed(self.allowed())
                .action(format!("write the {name} like one of these")))
        };
        let Some(parts) = NumberParts::parse(text.trim()) else {
            let name = if self == Count { "whole number" } else { name };
            return error(format!("This is not a {name}"));
        };
        let Some(factor) = self.factor(parts.unit) else {
            return error(match parts.unit {
                "" => format!("A {name} needs its unit"),
                unit => format!("Unknown unit '{unit}' of a {name}"),
            });
        };
        let Some(fraction) = fraction_of(parts.fraction, factor) else {
            return error(match self {
                Size => "This size is not a whole number of bytes".into(),
                Duration => "This duration is not a whole number of ns".into(),
                Count => "This is not a whole number".into(),
            });
        };
        let largest = if self == Count { u64::MAX } else { i64::MAX as u64 };
        let whole = parts.whole.parse::<u64>().ok().or(parts.whole.is_empty().then_some(0));
        let number = whole
            .and_then(|whole| whole.checked_mul(factor))
            .and_then(|whole| whole.checked_add(fraction))
            .filter(|number| *number <= largest);
        match number {
            None => error(format!("This {name} is beyond 64 bits")),
            Some(number) if parts.negative && number > 0 && self != Count => {
                error(format!("A {name} cannot be negative"))
            }
            Some(number) if parts.negative => Ok(-i128::from(number)),
            Some(number) => Ok(number.into()),
        }
    }

    /// Return the factor of a unit, in either case.
    fn factor(self, unit: &str) -> Option<u64> {
        let unit = unit.to_ascii_lowercase();
        Some(match (self, unit.as_str()) {
            (Size, "" | "b") | (Count, "") | (Duration, "ns") => 1,
            (Size, "k" | "kb" | "ki" | "kib") => 1 << 10,
            (Size, "m" | "mb" | "mi" | "mib") => 1 << 20,
            (Size, "g" | "gb" | "gi" | "gib") => 1 << 30,
            (Size, "t" | "tb" | "ti" | "tib") => 1 << 40,
            // "µs" exists twice in Unicode: as micro sign and as Greek mu. Both are typed.
            (Count, "k") | (Duration, "us" | "\u{b5}s" | "\u{3bc}s") => 1_000,
            (Count, "m") | (Duration, "ms") => 1_000_000,
            (Count, "g") | (Duration, "s") => 1_000_000_000,
            (Duration, "min") => 60_000_000_000,
            (Duration, "h") => 3_600_000_000_000,
            _ => return None,
        })
    }
}

/// A number split into its parts.
struct NumberParts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    unit: &'a str,
}

impl NumberParts<'_> {
    fn parse(text: &str) -> Option<NumberParts<'_>> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = digits(unsigned);
        let (fraction, unit) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest),
            None => ("", rest),
        };
        let has_point = unit.len() < rest.len();
        if (whole.is_empty() && fraction.is_empty()) || (has_point && fraction.is_empty()) {
            return None;
        }
        let unit = unit.trim_start();
        let is_unit_character = |c: char| !c.is_numeric() && !c.is_whitespace() && c != '.';
        let negative = text.starts_with('-');
        unit.chars().all(is_unit_character).then_some(NumberParts {
            negative,
            whole,
            fraction,
            unit,
        })
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Return `0.fraction` × `factor`, if that is a whole number.
///
/// From the last digit on, each step adds the digit's value to the remainder of the digits behind
/// it and divides by ten. The result is whole only if every step is.
fn fraction_of(fraction: &str, factor: u64) -> Option<u64> {
    let value = fraction.bytes().rev().try_fold(0u128, |remainder, digit| {
        let sum = u128::from(digit - b'0') * u128::from(factor) + remainder;
        sum.is_multiple_of(10).then_some(sum / 10)
    });
    value.and_then(|value| u64::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_match_the_quantity() {
        for (quantity, text, value) in [
            (Size, "512", 512),
            (Size, " 4 KiB ", 4096),
            (Size, ".5k", 512),
            (Size, "1.5m", 3 << 19),
            // 2⁻⁴⁰ TiB: all forty digits count.
            (Size, "0.0000000000009094947017729282379150390625T", 1),
            (Duration, "1.5ms", 1_500_000),
            (Duration, "2h", 7_200_000_000_000),
            (Duration, "100\u{3bc}s", 100_000),
            (Count, "100k", 100_000),
            (Count, "1.5M", 1_500_000),
            (Count, "-2k", -2_000),
            (Count, "18446744073709551615", i128::from(u64::MAX)),
        ] {
            assert_eq!(quantity.read(text).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn invalid_quantities_are_refused() {
        for (quantity, text, words) in [
            (Size, "", "not a size"),
            (Size, "4,5k", "not a size"),
            (Size, "1.k", "not a size"),
            (Size, "4kk", "Unknown unit 'kk'"),
            (Size, "0.3", "not a whole number of bytes"),
            (Size, "-1", "cannot be negative"),
            (Size, "8388608t", "beyond 64 bits"),
            (Duration, "100", "needs its unit"),
            (Duration, "0.5ns", "not a whole number of ns"),
            (Count, "1.5", "not a whole number"),
            (Count, "1e3", "not a whole number"),
            (Count, "4Ki", "Unknown unit 'Ki'"),
            (Count, "18446744073709551616", "beyond 64 bits"),
        ] {
            let error = quantity.read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(Size.read(&"1".repeat(5000)).is_err());
    }
}
