//! A panic in a parser of foreign bytes is damage that was found, not the end of the program.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// What `work` returns; what it says if it panics. Nothing is printed then.
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
    // What `work` borrows is dropped with it, or only read: nothing half changed is seen again.
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
