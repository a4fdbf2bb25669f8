//! The source tree as text: which files there are, what in them is code, what is a test.

use std::fs;
use std::ops::Range;
use std::path::Path;

/// A file of the tree.
pub(crate) struct Source {
    /// From the top of the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text with comments and literals blanked, line for line.
    pub(crate) code: String,
    /// Lines of inline test modules, counted from 0.
    pub(crate) inline_tests: Vec<Range<usize>>,
}

impl Source {
    pub(crate) fn new(path: String, text: String) -> Self {
        let code = code_of(&text);
        let lines: Vec<&str> = code.lines().collect();
        let mut inline_tests = Vec::new();
        for (start, pair) in lines.windows(2).enumerate() {
            let [attribute, module] = pair else { continue };
            if *attribute == "#[cfg(test)]" && module.starts_with("mod ") && module.ends_with('{') {
                let length = lines.iter().skip(start).position(|line| *line == "}");
                inline_tests.push(start..length.map_or(lines.len(), |length| start + length + 1));
            }
        }
        Self { path, text, code, inline_tests }
    }

    pub(crate) fn is_inline_test(&self, line: usize) -> bool {
        self.inline_tests.iter().any(|part| part.contains(&line))
    }

    /// Is it compiled for tests alone?
    pub(crate) fn is_test(&self) -> bool {
        ["tests.rs", "testing.rs"].iter().any(|name| self.path.ends_with(name))
            || self.path.split('/').any(|folder| folder == "tests" || folder == "testing")
    }

    /// The code that is not a test, with line numbers.
    pub(crate) fn lines_without_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.lines().enumerate();
        lines
            .filter(|(line, _)| !self.is_test() && !self.is_inline_test(*line))
            .map(|(line, text)| (line + 1, text))
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

pub(crate) fn sources(folders: &[&str]) -> Vec<Source> {
    let paths = folders.iter().flat_map(|folder| files(folder.trim_end_matches('/')));
    let paths = paths.filter(|path| path.ends_with(".rs") && !path.starts_with("tests/data/"));
    paths.map(|path| (path.clone(), read(&path))).map(|(p, text)| Source::new(p, text)).collect()
}

/// Every file below a folder, without what a build or a run leaves behind.
pub(crate) fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(root().join(&folder)) else { continue };
        for entry in entries {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let left_behind: &[&str] = match folder.as_str() {
                "" => &[".git", ".venv", "target", "data"],
                "fuzz" => &["target", "corpus", "artifacts", "coverage", "Cargo.lock"],
                _ => &[],
            };
            let is_left_behind = left_behind.contains(&name.as_str());
            if is_left_behind {
                continue;
            }
            let list = if entry.file_type().unwrap().is_dir() { &mut folders } else { &mut found };
            list.push(path);
        }
    }
    found.sort();
    found
}

pub(crate) fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

pub(crate) fn word_at(text: &str) -> String {
    text.chars().take_while(|letter| is_of_word(*letter)).collect()
}

/// Does the word stand there, and not as a part of a longer one?
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = text.split_at(at);
        let after = after.strip_prefix(word).unwrap();
        !before.ends_with(is_of_word) && !after.starts_with(is_of_word)
    })
}

/// The text with comments and literals blanked. Lines stay where they are.
pub(crate) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let skipped = match letter {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => quoted(rest, '"'),
            '\'' if is_char(rest) => quoted(rest, '\''),
            'r' if !code.ends_with(is_of_word) => raw_string(rest).unwrap_or(0),
            'b' if rest.starts_with("br") && !code.ends_with(is_of_word) => {
                raw_string(rest.split_at(1).1).map_or(0, |length| length + 1)
            }
            _ => 0,
        };
        if skipped == 0 {
            code.push(letter);
            rest = rest.split_at(letter.len_utf8()).1;
            continue;
        }
        let (blanked, after) = rest.split_at(skipped);
        code.push(' ');
        code.extend(blanked.chars().filter(|letter| *letter == '\n'));
        rest = after;
    }
    code
}

/// Comments within comments count.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(rest) = text.get(at..) {
        match rest.as_bytes() {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            [] => break,
            _ => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    text.len()
}

/// The length of a literal that opens and closes with the same mark.
fn quoted(text: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == mark => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `'x'` or `'\n'`, but not `'a` of a lifetime.
fn is_char(text: &str) -> bool {
    let mut letters = text.chars().skip(1);
    let (first, second) = (letters.next(), letters.next());
    first == Some('\\') || second == Some('\'')
}

/// The length of `r"…"` or `r#"…"#`, if that is what it is.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.chars().skip(1).take_while(|letter| *letter == '#').count();
    let body = text.get(1 + hashes..)?.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&close)?;
    Some(2 + hashes + end + close.len())
}
