//! Panics of the crawler's own: supervisors catch them and go on, so a simulation has to listen.
//!
//! A simulated world lives on one thread, so what panics there is counted there.

use std::cell::RefCell;
use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

static LISTENING: Once = Once::new();

/// From here on panics of this thread are kept instead of printed, until [`heard`].
pub(super) fn listen() {
    LISTENING.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !keep(info) {
                before(info);
            }
        }));
    });
    HEARD.with_borrow_mut(|heard| *heard = Some(Vec::new()));
}

/// The panics of this thread since [`listen`].
pub(super) fn heard() -> Vec<String> {
    HEARD.with_borrow_mut(Option::take).unwrap_or_default()
}

fn keep(info: &PanicHookInfo<'_>) -> bool {
    HEARD.with_borrow_mut(|heard| {
        let Some(heard) = heard else { return false };
        heard.push(info.to_string());
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_that_was_caught_is_heard() {
        listen();
        std::panic::catch_unwind(|| panic!("of its own")).unwrap_err();
        std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new("meant"))).unwrap_err();
        let heard = heard();
        assert_eq!(heard.len(), 1);
        assert!(heard[0].contains("of its own"), "{heard:?}");
    }
}
