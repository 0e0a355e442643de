//! The policy of `docs/how-to/add-a-victim-policy.md`, as it stands there: in the list while tests run, so
//! that whatever holds for the others is asked of it as well.

mod oldest_half;

pub(crate) use oldest_half::OldestHalf as HowTo;
// What the page imports from `super`, which is where policies are.
use super::{PolicyOptions, VictimPolicy};

#[test]
fn the_page_shows_what_is_compiled_here() {
    let page = include_str!("../../../../../../docs/how-to/add-a-victim-policy.md");
    let code = include_str!("oldest_half.rs");
    assert!(page.contains(&format!("```rust file=oldest_half.rs\n{code}```\n")));
}
