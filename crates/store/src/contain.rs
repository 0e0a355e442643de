//! The containment of panics: a panic in a parser of foreign bytes becomes an error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Run `work`; return its result, or the message of its panic, which is not printed.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static INSTALL_HOOK: Once = Once::new();
    INSTALL_HOOK.call_once(|| {
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !CONTAINED.get() {
                default_hook(panic);
            }
        }));
    });
    let outer = CONTAINED.replace(true);
    // Values borrowed by `work` are dropped with it or only read, so no partial change is visible.
    let result = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(outer);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        format!("unreadable content ({text})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_an_error() {
        assert_eq!(contained(|| 5), Ok(5));
        let numbers: Vec<u8> = Vec::new();
        let index = numbers.len() + 3;
        let error = contained(|| numbers[index]).unwrap_err();
        assert!(error.contains("out of bounds"), "{error}");
        let nested = contained(|| contained(|| panic!("inside")).map(|()| 1));
        assert_eq!(nested, Ok(Err("unreadable content (inside)".to_owned())));
    }
}
