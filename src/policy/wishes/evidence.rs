//! Keeping pieces of evidence within bounds, so that what is left out is seen to be (W-3).

use crate::types::{Timestamp, UsageWish};

/// Pieces kept from one place; one more says that there were more.
pub const WISHES_MAX: usize = 32;
/// Bytes of a piece that are kept.
const WISH_BYTES_MAX: usize = 1024;
/// Behind a piece that was cut.
pub(super) const CUT_MARK: &str = " […]";
/// The source of the piece that stands for those beyond the bound.
pub(super) const BOUND: &str = "bound";

/// Keeps a piece of evidence, once. A long one is cut and marked; in place of the first beyond
/// [`WISHES_MAX`] it is noted that there were more, and later ones are dropped.
pub fn keep(kept: &mut Vec<UsageWish>, source: &str, text: &str, at: Option<Timestamp>) {
    let wish = UsageWish { source: source.to_owned(), text: cut(text.trim()), at };
    if kept.len() >= WISHES_MAX {
        keep_note(kept, at);
    } else if !kept.contains(&wish) {
        kept.push(wish);
    }
}

/// Notes that more was said than is kept.
pub(super) fn keep_note(kept: &mut Vec<UsageWish>, at: Option<Timestamp>) {
    if kept.last().is_none_or(|last| last.source != BOUND) {
        let text = "more wishes on use than are kept".to_owned();
        kept.push(UsageWish { source: BOUND.to_owned(), text, at });
    }
}

fn cut(text: &str) -> String {
    if text.len() <= WISH_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=WISH_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{CUT_MARK}", text.get(..end).unwrap_or_default())
}
