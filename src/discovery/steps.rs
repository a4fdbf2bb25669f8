//! What led to a URL without going deeper: redirects in a row (H2), and sitemaps in a row (P3).
//!
//! Neither counts as a link away from the seed, so each needs a bound of its own: without one an
//! index that names an index that names an index never ends. The row of a URL has one byte for
//! both: redirects up to the highest `fetch.max_redirects`, and above them the sitemaps.

/// Redirects that the byte tells apart: one more than `fetch.max_redirects` may be.
const REDIRECTS: u8 = 51;
/// P3: sitemaps that name each other in a row. The protocol has an index and its sitemaps, which
/// is two; sites nest indexes once or twice more.
pub(super) const LISTS_MAX: u8 = 4;

/// Steps in a row that are no step deeper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Steps {
    /// Redirects.
    pub(super) redirects: u8,
    /// Sitemaps, each named by the one before.
    pub(super) lists: u8,
}

impl Steps {
    /// As [`crate::types::UrlRecord::redirects`] has them.
    pub(super) fn of(byte: u8) -> Self {
        Self { redirects: byte % REDIRECTS, lists: byte / REDIRECTS }
    }

    /// What a page redirects to was named by the same sitemap.
    pub(super) fn redirected(self) -> Self {
        Self { redirects: self.redirects.saturating_add(1), ..self }
    }

    /// What a sitemap names. Redirects begin anew.
    pub(super) fn listed(self) -> Self {
        Self { redirects: 0, lists: self.lists.saturating_add(1) }
    }

    /// The byte; beyond its bounds, which discovery does not admit, the highest there is.
    pub(super) fn byte(self) -> u8 {
        self.lists.min(LISTS_MAX) * REDIRECTS + self.redirects.min(REDIRECTS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_counts_fit_into_the_byte_and_come_out_again() {
        for lists in 0..=LISTS_MAX {
            for redirects in 0..REDIRECTS {
                let steps = Steps { redirects, lists };
                assert_eq!(Steps::of(steps.byte()), steps);
            }
        }
        assert_eq!(Steps::of(7), Steps { redirects: 7, lists: 0 }, "as rows had it before");
        let far = Steps { redirects: 200, lists: 9 };
        assert_eq!(Steps::of(far.byte()), Steps { redirects: 50, lists: 4 });
    }

    #[test]
    fn redirects_keep_the_sitemaps_and_begin_anew_behind_one() {
        let steps = Steps::default().listed().redirected().redirected();
        assert_eq!(steps, Steps { redirects: 2, lists: 1 });
        assert_eq!(steps.listed(), Steps { redirects: 0, lists: 2 });
    }
}
