//! What the harness costs, each figure against a bare loop in the same process, the two in turn, so
//! that a machine whose speed drifts moves both. Prints one JSON object a line:
//! `{name, value, unit, reference, ratio, target}`; `make bench` collects them.

mod bare;
mod harness;

fn main() {
    for row in harness::rows() {
        println!("{row}");
    }
}
