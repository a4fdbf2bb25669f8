//! How numbers, sizes, times and tables look to people.

use crate::types::{Timestamp, span};

/// `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 page`, `12 pages`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `812 B`, `1.2 MiB`.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    for (shift, unit) in UNITS {
        if bytes >> shift > 0 {
            let tenth = ((bytes & ((1 << shift) - 1)) * 10) >> shift;
            return format!("{}.{tenth} {unit}", count(bytes >> shift));
        }
    }
    format!("{bytes} B")
}

/// `in 12 s`, `3 min 2 s ago`, `now`.
pub(super) fn relative(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        format!("in {}", span(at.since(now)))
    } else if at == now {
        "now".to_owned()
    } else {
        format!("{} ago", span(now.since(at)))
    }
}

/// `2026-01-01T12:00:00Z (in 12 s)`.
pub(super) fn moment(at: Timestamp, now: Timestamp) -> String {
    format!("{} ({})", at.to_warc_date(), relative(at, now))
}

/// A sentence without the times in it and the words before them, for a table that has a column for
/// when: `may be asked again at 2026-…Z (set by …)` becomes `may be asked again (set by …)`.
pub(super) fn without_times(sentence: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    for word in sentence.split(' ') {
        let bare = word.trim_end_matches([',', ';', ':', '.']);
        if Timestamp::parse_rfc3339(bare).is_none() {
            kept.push(word.to_owned());
            continue;
        }
        kept.pop_if(|before| matches!(before.as_str(), "at" | "until" | "since"));
        if let (Some(last), Some(mark)) = (kept.last_mut(), word.strip_prefix(bare)) {
            last.push_str(mark);
        }
    }
    kept.join(" ")
}

/// A path as a shell takes it: in quotes where it needs them.
pub(super) fn shell_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// On which side a column is filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows with columns of the same width.
pub(super) struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a heading.
    pub(super) fn with_heading(columns: &[(&str, Side)]) -> Self {
        let heading = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self { sides: columns.iter().map(|(_, side)| *side).collect(), rows: vec![heading] }
    }

    /// A list of names and what they stand for.
    pub(super) fn of_pairs() -> Self {
        Self { sides: vec![Side::Left, Side::Left], rows: Vec::new() }
    }

    /// One more row.
    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// One more name and what it stands for.
    pub(super) fn pair(&mut self, name: &str, value: impl Into<String>) {
        self.row([name.to_owned(), value.into()]);
    }

    /// The lines, without the last line end.
    pub(super) fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.sides.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let filled =
                row.iter().zip(&widths).zip(&self.sides).map(|((cell, width), side)| match side {
                    Side::Left => format!("{cell:<width$}"),
                    Side::Right => format!("{cell:>width$}"),
                });
            filled.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_thousands() {
        let shown = [0, 12, 999, 1_000, 1_234_567].map(count);
        assert_eq!(shown, ["0", "12", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "page"), "1 page");
        assert_eq!(counted(2_000, "page"), "2,000 pages");
    }

    #[test]
    fn sizes_have_the_unit_that_fits() {
        let shown = [0, 1023, 1024, 1_572_864, u64::MAX].map(size);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "16,777,215.9 TiB"]);
    }

    #[test]
    fn times_are_told_from_now() {
        let now = Timestamp::from_secs(1_000);
        assert_eq!(relative(Timestamp::from_secs(1_012), now), "in 12 s");
        assert_eq!(relative(Timestamp::from_secs(940), now), "1 min ago");
        assert_eq!(relative(now, now), "now");
    }

    #[test]
    fn tables_line_up() {
        let mut table = Table::with_heading(&[("HOST", Side::Left), ("QUEUED", Side::Right)]);
        table.row(["http://a.test".into(), "1".into()]);
        table.row(["http://é.test".into(), "1,000".into()]);
        let expected = "HOST           QUEUED\nhttp://a.test       1\nhttp://é.test   1,000";
        assert_eq!(table.render(), expected);
    }

    #[test]
    fn words_for_a_shell_are_quoted_where_they_must_be() {
        assert_eq!(shell_word("/tmp/data"), "/tmp/data");
        assert_eq!(shell_word("it's here"), r"'it'\''s here'");
    }

    #[test]
    fn a_reason_beside_a_column_of_times_has_none_of_its_own() {
        let at = Timestamp::from_secs(100);
        for (full, short) in [
            (format!("asked again at {at} (set by it)"), "asked again (set by it)"),
            (format!("unreachable since {at}, so nothing"), "unreachable, so nothing"),
            (format!("asked to wait until {at}"), "asked to wait"),
            ("paused by an operator".to_owned(), "paused by an operator"),
        ] {
            assert_eq!(without_times(&full), short);
        }
    }
}
