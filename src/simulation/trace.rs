//! The trace of a run: a running hash over everything that can be seen from outside, and its last
//! lines in words. The same seed gives the same hash; where it does not, something asked the
//! machine instead of the simulated world.

use std::collections::VecDeque;
use std::fmt::Display;

use xxhash_rust::xxh3::Xxh3;

/// Lines that are kept in words.
const LINES_KEPT: usize = 40;

/// The trace.
#[derive(Clone, Default)]
pub(super) struct Trace {
    hash: Xxh3,
    lines: VecDeque<String>,
}

impl Trace {
    /// One more line.
    pub(super) fn note(&mut self, line: impl Display) {
        let line = line.to_string();
        tracing::debug!("{line}");
        self.hash.update(line.as_bytes());
        self.hash.update(b"\n");
        if self.lines.len() == LINES_KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// The hash of all lines so far.
    pub(super) fn hash(&self) -> u64 {
        self.hash.digest()
    }

    /// The last lines, oldest first.
    pub(super) fn last_lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_and_their_order_count() {
        let hash = |lines: &[&str]| {
            let mut trace = Trace::default();
            lines.iter().for_each(|line| trace.note(line));
            trace.hash()
        };
        assert_eq!(hash(&["a", "b"]), hash(&["a", "b"]));
        assert_ne!(hash(&["a", "b"]), hash(&["b", "a"]));
        assert_ne!(hash(&["ab"]), hash(&["a", "b"]));
    }
}
