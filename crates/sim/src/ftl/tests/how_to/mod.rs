//! The FTL of `docs/how-to/add-an-ftl.md`, word for word. It is registered while tests run, so that the
//! conformance tests cover it as well.

mod replacement_block;

pub(crate) use replacement_block::ReplacementBlock as HowTo;
pub use replacement_block::ReplacementPart;
// The names that the page imports from `super`, the module of all FTLs.
use super::{FtlOptions, MergingFtl};

#[test]
fn documentation_shows_compiled_code() {
    let page = include_str!("../../../../../../docs/how-to/add-an-ftl.md");
    let code = include_str!("replacement_block.rs");
    assert!(page.contains(&format!("```rust file=replacement_block.rs\n{code}```\n")));
}
