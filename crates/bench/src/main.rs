//! What the harness costs, each figure against a bare loop in the same process, the two in turn, so
//! that a machine whose speed drifts moves both. Prints one JSON object a line:
//! `{name, value, unit, reference, ratio, target}`; `make bench` collects them.

mod bare;
mod bare_ftl;
mod flash;
mod harness;
mod method;
mod sim;

fn main() {
    let only = std::env::args().nth(1);
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let mut rows = Vec::new();
    if wanted("harness") {
        rows.extend(harness::rows());
    }
    if wanted("method") {
        rows.extend(method::rows());
    }
    if wanted("sim") {
        rows.extend(sim::rows());
    }
    if wanted("flash") {
        rows.extend(flash::rows());
    }
    for row in rows {
        println!("{row}");
    }
}
