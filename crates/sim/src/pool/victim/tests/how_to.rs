//! The policy of `docs/how-to/add-a-victim-policy.md`, word for word. It is registered while tests run, so
//! that the conformance tests cover it as well.

mod oldest_half;

pub(crate) use oldest_half::OldestHalf as HowTo;
// The names that the page imports from `super`, the module of all policies.
use super::{PolicyOptions, VictimPolicy};

#[test]
fn documentation_shows_compiled_code() {
    let page = include_str!("../../../../../../docs/how-to/add-a-victim-policy.md");
    let code = include_str!("oldest_half.rs");
    assert!(page.contains(&format!("```rust file=oldest_half.rs\n{code}```\n")));
}
