//! What `scope.include` and `scope.exclude` say: rules as written, and files of them.
//!
//! A file has one rule a line, in the spelling of the configuration but for `file:`. It is read
//! line by line, and of its text only the rules stay: a million of them are a list like any other.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use crate::config::{Config, Fault};
use crate::policy::scope::{RuleSet, RuleSetBuilder, ScopeRule};

/// Faults of one file that are told one by one: a file of something else has as many as lines.
const FAULTS_MAX: usize = 20;
/// A longer line is no rule.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The rules of both keys, or everything that is wrong with them.
pub(super) fn scope_rules(config: &Config) -> Result<[RuleSet; 2], Vec<Fault>> {
    let mut faults = Vec::new();
    let scope = &config.scope;
    let lists = [("scope.include", &scope.include), ("scope.exclude", &scope.exclude)];
    let sets = lists.map(|(key, texts)| rules(key, texts, &mut faults));
    if faults.is_empty() { Ok(sets) } else { Err(faults) }
}

fn rules(key: &str, texts: &[String], faults: &mut Vec<Fault>) -> RuleSet {
    let mut builder = RuleSetBuilder::default();
    let before = faults.len();
    for (at, text) in texts.iter().enumerate() {
        let key = format!("{key}[{at}]");
        if let Some(file) = text.strip_prefix("file:") {
            add_file(&key, Path::new(file), &mut builder, faults);
            continue;
        }
        match ScopeRule::parse(text) {
            Ok(rule) => builder.add(rule),
            Err(why) => faults.push(Fault::of(key, why).found(text)),
        }
    }
    if faults.len() > before {
        return RuleSet::default();
    }
    // Each may be right, and all of them together too much.
    builder.build().unwrap_or_else(|why| {
        faults.push(Fault::of(key, why));
        RuleSet::default()
    })
}

/// Adds the rules of a file.
fn add_file(key: &str, file: &Path, builder: &mut RuleSetBuilder, faults: &mut Vec<Fault>) {
    let mut wrong = 0;
    let mut wrong_at = |number: usize, why: String| {
        wrong += 1;
        if wrong <= FAULTS_MAX {
            let problem = format!("{} line {number}: {why}", file.display());
            faults.push(Fault::of(key, problem));
        }
    };
    let read = each_line(file, |number, line| {
        if line.len() >= LINE_BYTES_MAX {
            return wrong_at(number, format!("it is longer than {LINE_BYTES_MAX} bytes"));
        }
        let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned());
        if let Err(why) = text.and_then(|text| builder.add_line(text)) {
            wrong_at(number, why);
        }
    });
    if wrong > FAULTS_MAX {
        let problem = format!("{}: {} more lines are wrong", file.display(), wrong - FAULTS_MAX);
        faults.push(Fault::of(key, problem));
    }
    if let Err(why) = read {
        faults.push(Fault::of(key, format!("failed to read {}: {why}", file.display())));
    }
}

/// Every line with its number from 1, without a byte order mark; a line that is too long is cut.
fn each_line(file: &Path, mut take: impl FnMut(usize, &[u8])) -> std::io::Result<()> {
    let mut reader = BufReader::new(File::open(file)?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let is_last = read_line(&mut reader, &mut line)?;
        let bare = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1).unwrap_or(&line);
        take(number, bare);
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Reads to the end of a line, of which it keeps a bound; whether the file ends with it.
fn read_line(reader: &mut BufReader<File>, line: &mut Vec<u8>) -> std::io::Result<bool> {
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(true);
        }
        let end = memchr::memchr(b'\n', bytes);
        let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(bytes);
        let room = LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(piece.get(..room).unwrap_or(piece));
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::types::CrawlUrl;

    fn written(text: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        file
    }

    fn read(text: &[u8]) -> Result<RuleSet, Vec<String>> {
        let file = written(text);
        let path = file.path().display().to_string();
        let mut faults = Vec::new();
        let set = rules("scope.include", &[format!("file:{path}")], &mut faults);
        let shown = faults.iter().map(|fault| fault.to_string().replace(&path, "FILE"));
        if faults.is_empty() { Ok(set) } else { Err(shown.collect()) }
    }

    fn finds(set: &RuleSet, url: &str) -> Option<String> {
        set.find(&CrawlUrl::parse(url).unwrap()).map(|rule| rule.to_string())
    }

    #[test]
    fn a_file_has_a_rule_a_line_and_remarks_between_them() {
        let text = "\u{feff}# hosts\r\nhost:a.test\r\n\r\n  domain:B.test  \n#x\nsurt:com,c,)/p";
        let set = read(text.as_bytes()).unwrap();
        assert_eq!(finds(&set, "http://a.test/").as_deref(), Some("host:a.test"));
        assert_eq!(finds(&set, "http://x.b.test/").as_deref(), Some("domain:b.test"));
        assert_eq!(finds(&set, "http://c.com/page").as_deref(), Some("surt:com,c,)/p"));
        assert_eq!(finds(&set, "http://d.test/"), None);
        assert!(read(b"").is_ok() && read(b"\n\n").is_ok());
    }

    #[test]
    fn every_wrong_line_is_named_by_its_number() {
        let faults = read(b"host:a.test\n\nnonsense\nregex:(\n\xff\nfile:other").unwrap_err();
        let begins = [3, 4, 5, 6].map(|line| format!("scope.include[0]: FILE line {line}: "));
        assert_eq!(faults.len(), begins.len(), "{faults:?}");
        for (fault, begin) in faults.iter().zip(begins) {
            assert!(fault.starts_with(&begin), "{fault}");
        }
    }

    #[test]
    fn a_file_of_something_else_is_told_in_a_few_lines() {
        let faults = read(&b"nonsense\n".repeat(5000)).unwrap_err();
        assert_eq!(faults.len(), FAULTS_MAX + 1);
        assert_eq!(faults[FAULTS_MAX], "scope.include[0]: FILE: 4980 more lines are wrong");
        let long = [b"host:".as_slice(), &b"a".repeat(9 << 20), b"\nhost:b.test"].concat();
        let told = "scope.include[0]: FILE line 1: it is longer than 65536 bytes";
        assert_eq!(read(&long).map_err(|faults| faults[0].clone()).err().as_deref(), Some(told));
    }

    #[test]
    fn a_file_that_is_not_there_is_said() {
        let mut faults = Vec::new();
        rules("scope.exclude", &["file:/no/such/file".to_owned()], &mut faults);
        let [fault] = &faults[..] else { panic!("{faults:?}") };
        let expected = "scope.exclude[0]: failed to read /no/such/file: ";
        assert!(fault.to_string().starts_with(expected), "{fault}");
    }

    #[test]
    fn a_million_lines_are_looked_up() {
        let mut text = String::new();
        for n in 0..250_000 {
            text.push_str(&format!(
                "host:h{n}.test\ndomain:d{n}.example\nsurt:com,s{n},)/p\n# a remark\n\
                 host:p{n}.test:81\n"
            ));
        }
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 1_000_000);
        let set = read(text.as_bytes()).unwrap();
        for n in (0..250_000).step_by(997) {
            let found = |url: &str| finds(&set, url);
            assert_eq!(found(&format!("https://h{n}.test/")), Some(format!("host:h{n}.test")));
            assert_eq!(found(&format!("http://p{n}.test:81/")), Some(format!("host:p{n}.test:81")));
            assert_eq!(
                found(&format!("http://a.d{n}.example/")),
                Some(format!("domain:d{n}.example"))
            );
            assert_eq!(found(&format!("http://s{n}.com/page")), Some(format!("surt:com,s{n},)/p")));
            assert_eq!(found(&format!("http://s{n}.com/other")), None);
            assert_eq!(found(&format!("http://x{n}.test/")), None);
        }
    }
}
