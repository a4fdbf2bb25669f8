//! Visible text, white space folded to single spaces, never longer than its bound (P2, O4).

/// Looked at together where text is longer than that.
const BLOCK_BYTES: usize = 16;
/// ASCII white space, controls, and the first byte of the no-break space.
static MAY_BE_SPACE: [bool; 256] = {
    let mut set = [false; 256];
    let mut byte = 0;
    while byte <= 0x20 {
        set[byte] = true;
        byte += 1;
    }
    set[0xC2] = true;
    set
};

/// Collects words.
#[derive(Debug, Default)]
pub(super) struct TextSink {
    text: String,
    gap: bool,
    bytes_max: usize,
    cut: bool,
}

impl TextSink {
    /// Takes at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Where the next word goes, in bytes.
    pub(super) fn position(&self) -> usize {
        self.text.len()
    }

    /// Text between two positions.
    pub(super) fn between(&self, start: usize, end: usize) -> &str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// The next word is not the last one's end.
    pub(super) fn separate(&mut self) {
        self.gap = true;
    }

    /// Appends text. Copies as long as the white space is single spaces, so a long run of prose is
    /// one copy.
    pub(super) fn push(&mut self, run: &str) {
        let bytes = run.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let space = space_at(bytes, at);
            if space > 0 {
                self.gap = true;
                at += space;
                continue;
            }
            let end = chunk_end(bytes, at);
            self.append(run.get(at..end).unwrap_or_default());
            at = end;
        }
    }

    fn append(&mut self, chunk: &str) {
        let room = self.bytes_max.saturating_sub(self.text.len() + 1);
        if self.cut || chunk.is_empty() {
            return;
        }
        let fits = chunk.get(..chunk.floor_char_boundary(room)).unwrap_or_default();
        self.cut = fits.len() < chunk.len();
        let fits = if self.cut { fits.trim_end_matches(' ') } else { fits };
        if fits.is_empty() {
            return;
        }
        if self.gap && !self.text.is_empty() {
            self.text.push(' ');
        }
        self.gap = false;
        self.text.push_str(fits);
    }

    /// Nothing more is taken.
    pub(super) fn is_full(&self) -> bool {
        self.cut
    }

    /// The text, and whether it was cut.
    pub(super) fn finish(self) -> (String, bool) {
        (self.text, self.cut)
    }
}

/// White space folded, as a page's text is; for titles, descriptions and plain text.
pub fn fold(text: &str, bytes_max: usize) -> (String, bool) {
    let mut sink = TextSink::new(bytes_max);
    sink.push(text);
    sink.finish()
}

/// Bytes of white space at `at`: ASCII white space and controls, and the no-break space.
fn space_at(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(0..=0x20) => 1,
        Some(0xC2) if bytes.get(at + 1) == Some(&0xA0) => 2,
        _ => 0,
    }
}

/// The end of what can be copied as it stands.
fn chunk_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk)
        && is_even(block)
    {
        at += BLOCK_BYTES;
    }
    while let Some(byte) = bytes.get(at) {
        if MAY_BE_SPACE[usize::from(*byte)] {
            let single = *byte == b' ' && at + 1 < bytes.len() && space_at(bytes, at + 1) == 0;
            if !single && space_at(bytes, at) > 0 {
                return at;
            }
        }
        at += 1;
    }
    at
}

/// Holds nothing to fold: spaces are single. The byte after the block tells that of its last one.
/// Without a branch, so that a compiler takes many bytes at a time.
fn is_even(block: &[u8; BLOCK_BYTES + 1]) -> bool {
    let [_, after @ ..] = block;
    let ends = |byte: u8| byte <= b' ' || byte == 0xC2;
    let uneven = block.iter().zip(after).fold(false, |uneven, (byte, next)| {
        uneven | (*byte < b' ') | (*byte == 0xC2) | ((*byte == b' ') & ends(*next))
    });
    !uneven
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn long_runs_fold_as_short_ones_do(
            text in "(a{1,40}| |  |\\u{a0}|\\t|\\n|\u{1}|é|«|b c d e f g h i j|é é é é é){0,12}",
        ) {
            let words = text.split(|c: char| c <= ' ' || c == '\u{a0}');
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(fold(&text, 10_000).0, words.join(" "));
        }
    }

    #[test]
    fn white_space_folds_and_ends_are_trimmed() {
        let text = |raw| fold(raw, 100).0;
        assert_eq!(text("  a  b\t\n c d e \u{a0}\u{a0} é\u{a0}f "), "a b c d e é f");
        assert_eq!(text(" \u{a0}\n"), "");
        assert_eq!(text("a \u{a0}b"), "a b");
    }

    #[test]
    fn spaces_fold_across_the_border_of_a_block() {
        for length in 1..3 * BLOCK_BYTES {
            for gap in ["  ", " \u{a0}", "\u{a0} ", " \n", "\t"] {
                let (one, other) = ("a".repeat(length), "b".repeat(BLOCK_BYTES));
                assert_eq!(fold(&format!("{one}{gap}{other}"), 100).0, format!("{one} {other}"));
            }
        }
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(fold("ééé", 4), ("é".to_owned(), true));
        assert_eq!(fold("abc", 4), ("abc".to_owned(), false));
        // No space is left where no word follows it.
        assert_eq!(fold("abc def", 4), ("abc".to_owned(), true));
        assert_eq!(fold("abc def", 5), ("abc".to_owned(), true));
        assert_eq!(fold("abc def", 6), ("abc d".to_owned(), true));
    }

    #[test]
    fn runs_join_unless_something_separates_them() {
        let mut sink = TextSink::new(100);
        sink.push("wo");
        sink.push("rd");
        sink.separate();
        sink.push("next ");
        sink.push("one");
        assert_eq!(sink.finish().0, "word next one");
    }
}
