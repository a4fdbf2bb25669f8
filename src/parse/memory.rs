//! P2: what one document may take of memory, and how it is shared among the parts of its way.
//!
//! Every buffer whose length a document decides has a share of `parse.max_memory`, and the shares
//! of what is held at the same time add up to less than the whole. A share that is used up cuts
//! the document there, with a reason. The body as received is no part of it: `fetch.max_body` and
//! the credit of bodies bound that.

use crate::types::Reason;

/// The memory of one document, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    bytes_max: usize,
}

/// What a link costs beside its text, through all its forms: found, resolved, in the page record,
/// on its way to discovery.
const LINK_BYTES: usize = 4096;

impl Memory {
    /// `parse.max_memory`.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max }
    }

    /// The decoded body, and the one before while a second coding is undone.
    pub(super) fn body(self) -> usize {
        self.bytes_max / 4
    }

    /// The window of a zstd or Brotli stream.
    pub(super) fn window(self) -> usize {
        self.bytes_max / 16
    }

    /// The body as text, where it is no UTF-8 already.
    pub(super) fn text(self) -> usize {
        self.bytes_max / 4
    }

    /// The text of the page that is kept.
    pub(super) fn kept_text(self) -> usize {
        self.bytes_max / 64
    }

    /// References with their character references decoded.
    pub(super) fn references(self) -> usize {
        self.bytes_max / 16
    }

    /// Links of a page, counted.
    pub(super) fn links(self) -> usize {
        self.bytes_max / LINK_BYTES
    }

    /// Absolute URLs and texts of the links of a page.
    pub(super) fn urls(self) -> usize {
        self.bytes_max / 16
    }

    /// Absolute URLs and titles of the entries of a sitemap or a feed.
    pub(super) fn entries(self) -> usize {
        self.bytes_max / 5
    }

    /// What one entry of them holds.
    pub(super) fn entry(self) -> usize {
        self.bytes_max / 64
    }

    /// A text of JSON: its reader holds a string two times.
    pub(super) fn json(self) -> usize {
        self.bytes_max / 8
    }

    /// Markup of which a tree is made for the extractors, and the fields they find.
    pub(super) fn markup(self) -> usize {
        self.bytes_max / 64
    }

    /// That tree.
    pub(super) fn tree(self) -> usize {
        self.bytes_max / 2
    }

    /// That a share was used up.
    pub(super) fn reason(share: usize, of: &str) -> Reason {
        Reason::ParseLimit { limit: format!("{share} bytes of {of} (parse.max_memory)") }
    }
}

/// Makes room for `more` bytes as a growing buffer does, but never beyond `bytes_max`: a buffer
/// that doubles holds twice what it was given to hold.
pub(super) fn grow(buffer: &mut Vec<u8>, more: usize, bytes_max: usize) {
    let wanted = buffer.len() + more;
    if wanted > buffer.capacity() {
        let room = (2 * buffer.capacity()).min(bytes_max).max(wanted);
        buffer.reserve_exact(room - buffer.len());
    }
}

/// [`grow`] for text.
pub(super) fn grow_text(text: &mut String, more: usize, bytes_max: usize) {
    let wanted = text.len() + more;
    if wanted > text.capacity() {
        let room = (2 * text.capacity()).min(bytes_max).max(wanted);
        text.reserve_exact(room - text.len());
    }
}

/// Gives a text that is to stay within `bytes_max` all of it before it would double beyond.
pub(super) fn bound_growth(text: &mut String, bytes_max: usize) {
    if text.capacity() > bytes_max / 2 && text.capacity() < bytes_max {
        text.reserve_exact(bytes_max - text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is held at the same time, by the parts of a document's way.
    #[test]
    fn the_shares_of_what_is_held_together_are_less_than_the_whole() {
        let whole = 256 << 20;
        let memory = Memory::new(whole);
        let links = memory.links() * LINK_BYTES / 4;
        // A buffer that grows holds its old half too.
        let decoding = 2 * memory.body() + memory.body() / 2 + memory.window();
        let recoding = memory.body() + memory.text() + memory.text() / 2;
        let scanning = memory.body()
            + memory.text()
            + 2 * memory.kept_text()
            + memory.references()
            + memory.urls() * 3 / 2
            + links;
        let listing = memory.body() + memory.text() + memory.entries() * 3 / 2 + memory.entry();
        let tree = memory.tree() + 8 * memory.markup() + links;
        let record = memory.entries() * 4 + memory.kept_text();
        for (what, bytes) in [
            ("decoding", decoding),
            ("recoding", recoding),
            ("scanning", scanning),
            ("listing", listing),
            ("tree", tree),
            ("record", record),
        ] {
            assert!(bytes < whole, "{what}: {bytes}");
        }
    }

    #[test]
    fn buffers_grow_to_their_bound_and_not_beyond() {
        let mut buffer = Vec::new();
        let mut moves = 0;
        for length in 1..=1000 {
            let before = buffer.capacity();
            grow(&mut buffer, 1, 1000);
            moves += usize::from(buffer.capacity() != before);
            buffer.push(0);
            assert!(buffer.capacity() >= length && buffer.capacity() <= 1000);
        }
        assert!(moves < 12, "{moves}");
    }
}
