//! How deep a tree of the page would be, at most: what tells whether a tree may be built (P2).
//!
//! An end tag closes only what is innermost; a misnested one closes nothing here, as tree builders
//! keep or rebuild what it seems to close, and pay for that with every element that follows. So
//! the measure is never too small, and too large only on pages with hundreds of such faults.

/// Beyond this nothing more is measured.
pub(super) const MEASURED_MAX: usize = 1024;

/// The name of an element in lower case; longer ones are cut.
type Name = [u8; 10];

/// Elements that end where one of these begins.
const ENDED_BY: [(&[u8], &[&[u8]]); 8] = [
    (b"li", &[b"li"]),
    (b"dt", &[b"dt", b"dd"]),
    (b"dd", &[b"dt", b"dd"]),
    (b"option", &[b"option", b"optgroup"]),
    (b"td", &[b"td", b"th", b"tr", b"tbody", b"tfoot"]),
    (b"th", &[b"td", b"th", b"tr", b"tbody", b"tfoot"]),
    (b"tr", &[b"tr", b"tbody", b"tfoot"]),
    (b"tbody", &[b"tbody", b"tfoot"]),
];

/// The open elements.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    open: Vec<Name>,
    max: usize,
}

impl Nesting {
    /// The deepest so far.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// A start tag; `is_block` says whether it ends a paragraph.
    pub(super) fn start(&mut self, name: &[u8], is_block: bool) {
        if self.max > MEASURED_MAX {
            return;
        }
        let name = lower(name);
        while self.open.last().is_some_and(|open| ends(name, is_block, *open)) {
            self.open.pop();
        }
        self.open.push(name);
        self.max = self.max.max(self.open.len());
    }

    /// An end tag: closes the innermost element, and those inside it that need no end tag.
    pub(super) fn end(&mut self, name: &[u8]) {
        let name = lower(name);
        let inner = self.open.iter().rev().take_while(|open| **open != name);
        let crossed = inner.take_while(|open| needs_no_end(**open)).count();
        let at = self.open.len().checked_sub(crossed + 1);
        if let Some(at) = at.filter(|at| self.open.get(*at) == Some(&name)) {
            self.open.truncate(at);
        }
    }
}

fn ends(new: Name, is_block: bool, open: Name) -> bool {
    if open == lower(b"p") {
        return is_block;
    }
    let by = ENDED_BY.iter().find(|(name, _)| lower(name) == open);
    by.is_some_and(|(_, by)| by.iter().any(|name| lower(name) == new))
}

fn needs_no_end(open: Name) -> bool {
    open == lower(b"p") || ENDED_BY.iter().any(|(name, _)| lower(name) == open)
}

fn lower(name: &[u8]) -> Name {
    let mut lower = Name::default();
    for (to, from) in lower.iter_mut().zip(name) {
        *to = from.to_ascii_lowercase();
    }
    lower
}
