//! One column of a table of text as response times.
//!
//! The unit is that of the value ("12.5 ms"), of the name ("LAT(ms)", "lat_usec"), or given; without
//! one of them the column is refused. Empty and odd values are left out, and counted.

use uflip_core::SpooledVec;

use crate::fields::{DigitGroups, Separator, scaled, split, unit_name, unit_ns, unit_of_name};
use crate::lines::{LineError, LineReader, OddLines};
use crate::sample::Sample;

const ALLOWED: &str = "one number in every line";
const DEFAULT_COLUMN: &str = "response_time_ns";
/// From this number of values on, a series that never falls is a clock, not response times.
const CLOCK_VALUES: usize = 32;

/// The values of a column.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The response times [ns].
    pub values: SpooledVec<f64>,
    /// The names of all columns; empty without a head.
    pub head: Vec<String>,
    /// The name or number of the column.
    pub column: String,
    /// The unit of the column; empty if each value has its own.
    pub unit: String,
    /// The separator of the table.
    pub separator: &'static str,
    /// The empty values, which are left out.
    pub empty: u64,
    /// The odd values, which are left out.
    pub odd: OddLines,
    /// The response times of 0, which count as one tick of the clock.
    pub zero_times: u64,
    /// Whether the values have a decimal comma.
    pub has_decimal_comma: bool,
}

/// The form of a table.
struct Table {
    separator: Separator,
    head: Vec<String>,
}

/// Return the separator with which the lines of a sample have the same number of fields, the most
/// fields first; and the head, if the first line is one.
fn table(sample: &Sample) -> Table {
    let head_of = |separator| {
        let first = sample.lines.first().map_or("", String::as_str);
        let mut fields = Vec::new();
        split(first, separator, &mut fields);
        let is_head = !fields.is_empty() && fields.iter().all(|field| !is_number(field));
        (fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>(), is_head)
    };
    let agreement = |separator: Separator| {
        let (columns, mut fields) = (head_of(separator).0.len(), Vec::new());
        let rows = sample.lines.iter().skip(1);
        let agreeing = rows.filter(|line| {
            split(line, separator, &mut fields);
            fields.len() == columns
        });
        (agreeing.count(), columns)
    };
    let best = Separator::ALL.into_iter().max_by_key(|separator| {
        let (agreeing, columns) = agreement(*separator);
        // With equal agreement the separator that splits; blanks are the last choice.
        (agreeing, usize::from(columns > 1), usize::from(*separator != Separator::Blanks))
    });
    let separator = best.unwrap_or(Separator::Comma);
    let (head, is_head) = head_of(separator);
    Table { separator, head: if is_head { head } else { Vec::new() } }
}

fn is_number(field: &str) -> bool {
    field.replace(',', ".").parse::<f64>().is_ok()
}

/// Return a name of each column: from the head, or its number.
fn column_names(table: &Table, sample: &Sample) -> Vec<String> {
    if !table.head.is_empty() {
        return table.head.clone();
    }
    let mut fields = Vec::new();
    split(sample.lines.first().map_or("", String::as_str), table.separator, &mut fields);
    (1..=fields.len()).map(|number| number.to_string()).collect()
}

fn choose(names: &[String], column: Option<&str>, has_head: bool) -> Result<usize, LineError> {
    let wanted = match column {
        None if names.len() == 1 => return Ok(0),
        None => DEFAULT_COLUMN,
        Some(name) => name,
    };
    if let Some(index) = names.iter().position(|name| name == wanted) {
        return Ok(index);
    }
    let number = wanted.parse::<usize>().ok().filter(|number| (1..=names.len()).contains(number));
    if let (Some(number), true) = (number, column.is_some()) {
        return Ok(number - 1);
    }
    let known: Vec<&str> =
        names.iter().map(|name| if name.is_empty() { "(empty)" } else { name }).collect();
    let got = match (has_head, column) {
        (true, _) => format!("no such column: {wanted}"),
        (false, None) => format!("{} columns and no column names", names.len()),
        (false, Some(name)) => format!("no such column: {name}, and no column names"),
    };
    Err(LineError::of_file(got, &known.join(", ")).action("name one of these with --column"))
}

/// Read one column. `unit` is its unit [ns].
pub(crate) fn read(
    sample: &Sample,
    lines: &mut LineReader<'_>,
    column: Option<&str>,
    unit: Option<u64>,
) -> Result<Series, LineError> {
    let table = table(sample);
    let names = column_names(&table, sample);
    let index = choose(&names, column, !table.head.is_empty())?;
    let name = &names[index];
    let of_name = if table.head.is_empty() { None } else { unit_of_name(name) };
    let has_units = sample.lines.iter().skip(1).take(1).any(|line| {
        let mut fields = Vec::new();
        split(line, table.separator, &mut fields);
        fields
            .get(index)
            .is_some_and(|field| number_and_unit(field).is_some_and(|(_, u)| u.is_some()))
    });
    let unit = match unit.or(of_name) {
        Some(unit) => Some(unit),
        None if has_units => None,
        None => {
            return Err(LineError::of_file(
                format!("column {name}, whose name has no unit of time"),
                "a name such as latency_us or LAT(ms), or --unit ns|us|ms|s",
            )
            .action("give the unit with --unit"));
        }
    };
    let mut series = Series {
        head: table.head.clone(),
        column: name.clone(),
        unit: unit.map_or("", unit_name).to_owned(),
        separator: table.separator.name(),
        ..Series::default()
    };
    if !table.head.is_empty() {
        lines.next()?;
    }
    read_values(&table, lines, index, unit, &mut series)?;
    check_clock(&series)?;
    Ok(series)
}

fn read_values(
    table: &Table,
    lines: &mut LineReader<'_>,
    index: usize,
    unit: Option<u64>,
    series: &mut Series,
) -> Result<(), LineError> {
    let (mut commas, mut points) = (0u64, 0u64);
    let mut groups = DigitGroups::default();
    while let Some(line) = lines.next()? {
        let line = line.to_owned();
        let mut fields = Vec::with_capacity(table.head.len());
        split(&line, table.separator, &mut fields);
        let field = fields.get(index).copied().unwrap_or("");
        let expected = table.head.len().max(1);
        if is_empty(field) && fields.len() >= expected {
            series.empty += 1;
            continue;
        }
        groups.add(field);
        let is_whole_row = table.head.is_empty() || fields.len() == table.head.len();
        // A comma between commas separates thousands or decimals.
        let is_ambiguous = table.separator == Separator::Comma && field.contains(',');
        let value = number_and_unit(field).filter(|_| is_whole_row && !is_ambiguous);
        let Some((value, scale)) = value.and_then(|(value, own)| Some((value, own.or(unit)?)))
        else {
            lines.skip_odd_line();
            continue;
        };
        commas += u64::from(field.contains(','));
        points += u64::from(field.contains('.'));
        // A time of 0 is shorter than a tick of the clock.
        let ns = if value == 0.0 { scale as f64 } else { value * scale as f64 };
        series.zero_times += u64::from(value == 0.0);
        series.values.push(ns);
    }
    groups.check(table.separator)?;
    if commas > 0 && points > 0 {
        let got = format!("{commas} numbers with a comma and {points} with a point");
        return Err(LineError::of_file(got, "one sign of decimals in a column"));
    }
    series.has_decimal_comma = commas > 0;
    series.odd = lines.odd_lines(series.values.len(), ALLOWED)?;
    Ok(())
}

fn is_empty(field: &str) -> bool {
    matches!(field.to_lowercase().as_str(), "" | "-" | "na" | "n/a" | "null" | "none" | "nan")
}

/// Return a number that is not negative, and the unit behind it, if there is one [ns].
fn number_and_unit(field: &str) -> Option<(f64, Option<u64>)> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let is_part = |letter: char| is_digit(letter) || ".,eE+-".contains(letter);
    let end = field.find(|letter| !is_part(letter)).unwrap_or(field.len());
    let (number, unit) = field.split_at(end);
    let unit = match unit.trim() {
        "" => None,
        word => Some(unit_ns(word)?),
    };
    if number.matches([',', '.']).count() > 1 {
        return None;
    }
    let value: f64 = number.replace(',', ".").parse().ok()?;
    (value.is_finite() && value >= 0.0 && !number.starts_with('-')).then_some((value, unit))
}

/// Refuse instants: they only grow.
fn check_clock(series: &Series) -> Result<(), LineError> {
    let values = &series.values;
    let grows = values.windows(2).filter(|pair| pair[1] > pair[0]).count();
    let falls = values.windows(2).any(|pair| pair[1] < pair[0]);
    if values.len() < CLOCK_VALUES || falls || grows * 2 < values.len() {
        return Ok(());
    }
    Err(LineError::of_file(
        format!("column {}, whose {} values only grow", series.column, values.len()),
        "response times; these are instants or addresses",
    )
    .action("select another column with --column"))
}

/// Return the exact value of a column for which no unit is needed, such as a number of a process.
pub(crate) fn read_numbers(
    sample: &Sample,
    lines: &mut LineReader<'_>,
    column: &str,
) -> Result<SpooledVec<u64>, LineError> {
    let table = table(sample);
    let index = choose(&column_names(&table, sample), Some(column), !table.head.is_empty())?;
    if !table.head.is_empty() {
        lines.next()?;
    }
    let mut numbers = SpooledVec::default();
    while let Some(line) = lines.next()? {
        let line = line.to_owned();
        let mut fields = Vec::new();
        split(&line, table.separator, &mut fields);
        let value = fields.get(index).and_then(|field| scaled(field, 1));
        numbers.push(value.ok_or_else(|| lines.error(&line, ALLOWED))?);
    }
    Ok(numbers)
}
