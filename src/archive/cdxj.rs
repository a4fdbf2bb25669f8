//! CDXJ lines as cdxj-indexer writes them, so that an archive replays in pywb as it is (O3).

use std::fmt::Write;

use super::record::{Record, text};
use crate::policy::surt::surt_key;
use crate::types::CrawlUrl;

/// The line of a record, with its line end; `None` for records that are not replayed.
pub(super) fn line(record: &Record, file: &str, offset: u64, length: u64) -> Option<String> {
    let mime = match record.kind() {
        "response" => mime(record),
        "revisit" => Some("warc/revisit".to_owned()),
        _ => return None,
    };
    let url = record.field("WARC-Target-URI")?;
    let stamp: String =
        record.field("WARC-Date")?.chars().filter(char::is_ascii_digit).take(14).collect();
    let status = record.http().map(|http| http.status.to_string());
    let mut line = format!(
        "{} {stamp} {{",
        CrawlUrl::parse(url).map_or_else(|_| url.to_owned(), |url| surt_key(&url))
    );
    let fields = [
        ("url", Some(url.to_owned())),
        ("mime", mime),
        ("status", status),
        ("digest", record.field("WARC-Payload-Digest").map(str::to_owned)),
        ("length", Some(length.to_string())),
        ("offset", Some(offset.to_string())),
        ("filename", Some(file.to_owned())),
    ];
    let mut between = "";
    for (name, value) in fields {
        if let Some(value) = value {
            line.push_str(between);
            push_string(&mut line, name);
            line.push_str(": ");
            push_string(&mut line, &value);
            between = ", ";
        }
    }
    line.push_str("}\n");
    Some(line)
}

/// Content-Type up to its parameters.
fn mime(record: &Record) -> Option<String> {
    let http = record.http()?;
    let (_, value) =
        http.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"))?;
    let value = text(value);
    let end = |c: char| c == ';' || c.is_whitespace();
    Some(value.split(end).next().unwrap_or_default().to_owned())
}

/// A JSON string in ASCII: the tool writes everything else as escapes, so lines compare byte by
/// byte.
fn push_string(line: &mut String, value: &str) {
    line.push('"');
    for character in value.chars() {
        match character {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\t' => line.push_str("\\t"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\u{8}' => line.push_str("\\b"),
            '\u{c}' => line.push_str("\\f"),
            ' '..='\u{7f}' => line.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(line, "\\u{unit:04x}").expect("a String takes all text");
                }
            }
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_the_tool_does() {
        let mut line = String::new();
        push_string(&mut line, "a\"\\\u{1}é😀\u{7f}");
        assert_eq!(line, "\"a\\\"\\\\\\u0001\\u00e9\\ud83d\\ude00\u{7f}\"");
    }
}
