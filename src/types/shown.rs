//! How things that are not ours are put into views and messages.

use std::error::Error;

/// A number of things as views show it; more than fit are the most that do.
pub fn tally(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// An error and what it comes from, in one line.
pub fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no page")]
    struct Outer(#[source] std::num::ParseIntError);

    #[test]
    fn an_error_is_told_with_its_source() {
        let error = Outer("x".parse::<u8>().unwrap_err());
        assert_eq!(in_full(&error), "no page: invalid digit found in string");
    }

    #[test]
    fn a_tally_saturates() {
        assert_eq!([tally(0), tally(7), tally(usize::MAX)], [0, 7, u32::MAX]);
    }
}
