//! The cost of the harness. Each figure alternates with a bare loop in the same process, so that
//! drift of the machine's speed affects both. Prints one JSON object per line: `{name, value, unit,
//! reference, ratio, target}`; `make bench` collects them.

mod bare;
mod bare_ftl;
mod flash;
mod harness;
mod loads;
mod method;
mod sim;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [load, count] = &arguments[..] {
        let count = count.parse().expect("a number of pages");
        assert!(loads::one(load, count) || flash::one(load, count), "no load is called {load}");
        return;
    }
    let only = arguments.first();
    let wanted = |part: &str| only.is_none_or(|only| only == part);
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
