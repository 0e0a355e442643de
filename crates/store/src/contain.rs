//! The containment of panics: a panic in a parser of foreign bytes becomes an error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Run `work`; return its result, or the message of its panic, which is not printed.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !CONTAINED.get() {
                loud(panic);
            }
        }));
    });
    let outer = CONTAINED.replace(true);
    // Values borrowed by `work` are dropped with it or only read, so no partial change is visible.
    let done = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(outer);
    done.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        format!("nothing that can be read ({text})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_rest_goes_on() {
        assert_eq!(contained(|| 5), Ok(5));
        let numbers: Vec<u8> = Vec::new();
        let index = numbers.len() + 3;
        let error = contained(|| numbers[index]).unwrap_err();
        assert!(error.contains("out of bounds"), "{error}");
        let nested = contained(|| contained(|| panic!("inside")).map(|()| 1));
        assert_eq!(nested, Ok(Err("nothing that can be read (inside)".to_owned())));
    }
}
