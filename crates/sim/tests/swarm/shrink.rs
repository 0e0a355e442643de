//! Shrinks a failing case: fewer keys, smaller numbers, a simpler host. A different failure is
//! another fault and does not count.

use serde_json::Value;

use super::case::SwarmCase;
use super::live::{CaseOutcome, run_watched};
use super::watch::Watchdog;

/// Return the shortest case that fails like `case`, and its failure.
pub fn shrink(case: SwarmCase, message: String, watch: &Watchdog) -> (SwarmCase, String) {
    let (mut best, mut message) = (case, message);
    let mut tried = 0;
    'again: loop {
        for simpler in simpler_cases(&best) {
            tried += 1;
            if tried > 300 {
                return (best, message);
            }
            if let CaseOutcome::Broken(new_message) = run_watched(&simpler, true, watch)
                && kind(&new_message) == kind(&message)
            {
                (best, message) = (simpler, new_message);
                continue 'again;
            }
        }
        return (best, message);
    }
}

/// Return the failure without its numbers.
fn kind(message: &str) -> String {
    message.chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
}

/// Return cases that are simpler in one point, the most promising first.
fn simpler_cases(case: &SwarmCase) -> Vec<SwarmCase> {
    let mut cases = Vec::new();
    for key in case.overrides.keys() {
        let mut without = case.clone();
        without.overrides.remove(key);
        cases.push(without);
    }
    for depth in [1, 2, case.host.depth / 2] {
        if depth > 0 && depth < case.host.depth {
            let mut shallow = case.clone();
            shallow.host.depth = depth;
            cases.push(shallow);
        }
    }
    for (key, value) in &case.overrides {
        for smaller in smaller_values(value) {
            let mut changed = case.clone();
            changed.overrides.insert(key.clone(), smaller);
            cases.push(changed);
        }
    }
    if case.host.seed > 1 {
        let mut first = case.clone();
        first.host.seed = 1;
        cases.push(first);
    }
    cases
}

/// Return smaller and shorter numbers.
fn smaller_values(value: &Value) -> Vec<Value> {
    if let Some(number) = value.as_u64() {
        let mut smaller = vec![0, 1, 2, number / 2, number.saturating_sub(1)];
        smaller.retain(|other| *other < number);
        smaller.dedup();
        return smaller.into_iter().map(Value::from).collect();
    }
    match value.as_f64() {
        Some(number) => {
            let shorter = (number * 1000.0).round() / 1000.0;
            let shorter = (shorter != number).then_some(shorter.into());
            shorter.into_iter().collect()
        }
        None => Vec::new(),
    }
}
