//! The cost of the harness. Each figure alternates with a bare loop in the same process, so that
//! drift of the machine's speed affects both. Prints one JSON object per line: `{name, value, unit,
//! reference, ratio, target}`; `make bench` collects them.

mod bare_ftl;
mod flash;
mod harness;
mod loads;
mod method;
mod sim;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [load, count] = &arguments[..] {
        let count = count.parse().expect("the second argument is a number of pages");
        assert!(
            loads::run_load(load, count) || flash::run_load(load, count),
            "unknown load {load}"
        );
        return;
    }
    let only = arguments.first();
    let is_selected = |part: &str| only.is_none_or(|only| only == part);
    let mut rows = Vec::new();
    if is_selected("harness") {
        rows.extend(harness::rows());
    }
    if is_selected("method") {
        rows.extend(method::rows());
    }
    if is_selected("sim") {
        rows.extend(sim::rows());
    }
    if is_selected("flash") {
        rows.extend(flash::rows());
    }
    for row in rows {
        println!("{row}");
    }
}
