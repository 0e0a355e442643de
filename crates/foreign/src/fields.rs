//! The fields of a line, and the numbers, units and words in them.

use crate::lines::LineError;

/// The character between two fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Separator {
    Comma,
    Semicolon,
    Tab,
    /// One or more blanks or tabs.
    Blanks,
}

impl Separator {
    pub(crate) const ALL: [Separator; 4] =
        [Separator::Semicolon, Separator::Tab, Separator::Comma, Separator::Blanks];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Separator::Comma => "commas",
            Separator::Semicolon => "semicolons",
            Separator::Tab => "tabs",
            Separator::Blanks => "blanks",
        }
    }

    fn letter(self) -> char {
        match self {
            Separator::Comma => ',',
            Separator::Semicolon => ';',
            Separator::Tab | Separator::Blanks => '\t',
        }
    }
}

/// Split a line at separators outside quotes; fields are trimmed, and lose their quotes.
pub(crate) fn split<'a>(line: &'a str, separator: Separator, fields: &mut Vec<&'a str>) {
    fields.clear();
    if separator == Separator::Blanks {
        fields.extend(line.split_ascii_whitespace());
        return;
    }
    let letter = separator.letter();
    if !line.contains('"') {
        fields.extend(line.split(letter).map(str::trim));
        return;
    }
    let (mut start, mut is_quoted) = (0, false);
    for (at, each) in line.char_indices() {
        is_quoted ^= each == '"';
        if each == letter && !is_quoted {
            fields.push(unquoted(&line[start..at]));
            start = at + letter.len_utf8();
        }
    }
    fields.push(unquoted(&line[start..]));
}

fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(field)
}

/// Parse a decimal number and return it times `unit`, rounded down, without a detour over floating
/// point where it has no exponent; `None` if it is negative or too large.
pub(crate) fn scaled(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        let value = text.parse::<f64>().ok()? * unit as f64;
        return (value.is_finite() && (0.0..9e18).contains(&value)).then_some(value as u64);
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let fraction = &fraction[..fraction.len().min(18)];
    let part = if fraction.is_empty() {
        0
    } else {
        let digits = u128::from(fraction.parse::<u64>().ok()?);
        (digits * u128::from(unit) / 10u128.pow(fraction.len() as u32)) as u64
    };
    whole.checked_mul(unit)?.checked_add(part)
}

/// The separators in the numbers of a column: those of thousands are refused, because each reading
/// but one is wrong, and leaving out such numbers loses the largest.
#[derive(Default)]
pub(crate) struct DigitGroups {
    /// A number whose separators can only be those of thousands.
    certain: Option<String>,
    /// A number such as 1.234, and whether all numbers with a separator are such.
    possible: Option<String>,
    has_decimals: bool,
    /// Whether a number has no separator, and whether such a number has four digits or more.
    has_plain: bool,
    has_long: bool,
}

impl DigitGroups {
    pub(crate) fn add(&mut self, text: &str) {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let is_separator = |letter: char| ".,'’ \u{a0}\u{202f}".contains(letter);
        let mut parts = text.split(is_separator);
        let first = parts.next().unwrap_or("");
        let groups: Vec<&str> = parts.collect();
        if !is_number(first) || !groups.iter().all(|group| is_number(group)) {
            return;
        }
        let is_grouped = first.len() <= 3 && !first.starts_with('0');
        let is_grouped = is_grouped && groups.iter().all(|group| group.len() == 3);
        let mark = text.chars().find(|letter| is_separator(*letter));
        match mark {
            None => {
                self.has_plain = true;
                self.has_long |= first.len() > 3;
            }
            Some('.' | ',') if groups.len() == 1 && is_grouped => {
                self.possible.get_or_insert_with(|| text.to_owned());
            }
            Some('.' | ',') if groups.len() == 1 => self.has_decimals = true,
            Some(_) => {
                self.certain.get_or_insert_with(|| text.to_owned());
            }
        }
    }

    /// Refuse separators of thousands. Without a decimal of another length, 1,234 is one where the
    /// comma is no usual decimal sign of the table, or where numbers below 1000 have no separator.
    pub(crate) fn check(&self, separator: Separator) -> Result<(), LineError> {
        let is_usual = |text: &str| text.contains('.') || matches!(separator, Separator::Semicolon);
        let possible = self.possible.as_deref().filter(|text| {
            let is_mixed = self.has_plain && !self.has_long;
            !self.has_decimals && (is_mixed || !is_usual(text))
        });
        let Some(text) = self.certain.as_deref().or(possible) else { return Ok(()) };
        let allowed = "numbers without separators of thousands";
        Err(LineError::of_file(format!("numbers such as {text}"), allowed)
            .action("write the numbers without separators of thousands, and with a decimal point"))
    }
}

/// Return the nanoseconds of a unit of time by any of its usual names.
pub(crate) fn unit_ns(word: &str) -> Option<u64> {
    let word = word.to_lowercase();
    match word.as_str() {
        "ns" | "nsec" | "nsecs" | "nanos" | "nanosecond" | "nanoseconds" => Some(1),
        "us" | "usec" | "usecs" | "µs" | "μs" | "µsec" | "μsec" | "micros" | "microsec"
        | "microsecs" | "microsecond" | "microseconds" => Some(1000),
        "ms" | "msec" | "msecs" | "millis" | "millisec" | "millisecs" | "millisecond"
        | "milliseconds" => Some(1_000_000),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1_000_000_000),
        _ => None,
    }
}

/// Return the usual name of a unit of time.
pub(crate) fn unit_name(ns: u64) -> &'static str {
    match ns {
        1 => "ns",
        100 => "100 ns",
        1000 => "us",
        1_000_000 => "ms",
        _ => "s",
    }
}

/// Return the words of a name: "LAT(ms)", "lat_usec", "Lat IO us" and "latencyMs" have two or three.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let starts_word = letter.is_uppercase() && was_lower;
        if !letter.is_alphanumeric() || starts_word {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().expect("never empty").extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Return the unit of time in the name of a column [ns], if it has exactly one and is no rate.
#[must_use]
pub fn unit_of_name(name: &str) -> Option<u64> {
    const RATES: &[&str] = &["per", "iops", "bw", "rate", "bandwidth", "throughput"];
    let words = words(name);
    if name.contains('/') || words.iter().any(|word| RATES.contains(&word.as_str())) {
        return None;
    }
    let mut units: Vec<u64> = words.iter().filter_map(|word| unit_ns(word)).collect();
    units.dedup();
    match units.as_slice() {
        [unit] => Some(*unit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_have_units() {
        for (name, unit) in [
            ("LAT(ms)", Some(1_000_000)),
            ("lat_usec", Some(1000)),
            ("Lat IO us", Some(1000)),
            ("response_time_ns", Some(1)),
            ("latencyMs", Some(1_000_000)),
            ("Response [s]", Some(1_000_000_000)),
            ("latency", None),
            ("MB/s", None),
            ("ios_per_s", None),
            ("bw_s", None),
            ("items", None),
        ] {
            assert_eq!(unit_of_name(name), unit, "{name}");
        }
    }

    #[test]
    fn numbers_are_scaled_exactly() {
        assert_eq!(scaled("1700000000.123456789", 1_000_000_000), Some(1_700_000_000_123_456_789));
        assert_eq!(scaled("0,5", 1000), Some(500));
        assert_eq!(scaled(".25", 1000), Some(250));
        assert_eq!(scaled("1e-3", 1_000_000_000), Some(1_000_000));
        for odd in ["", ".", "-1", "x", "nan", "inf", "1.2.3", "99999999999999999999"] {
            assert_eq!(scaled(odd, 1), None, "{odd}");
        }
    }

    #[test]
    fn quotes_protect_separators() {
        let mut fields = Vec::new();
        split("1, \"a,b\" ,\"\",2", Separator::Comma, &mut fields);
        assert_eq!(fields, ["1", "a,b", "", "2"]);
        split("  1 \t 2  ", Separator::Blanks, &mut fields);
        assert_eq!(fields, ["1", "2"]);
    }
}
