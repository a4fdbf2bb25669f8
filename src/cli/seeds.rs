//! Seeds from arguments and files: one a line, each checked where it stands.
//!
//! A line is a URL, or a JSON object with `url`, `priority`, `depth`; blank lines and those that
//! begin with `#` are left out. Lines have a bound, so a file that is none costs no memory.

use std::path::Path;

use anyhow::Context as _;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader};

use super::failure::WrongUse;
use crate::protocol::discovery::Seed;
use crate::types::CrawlUrl;

/// A longer line is no seed.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Bad seeds that are shown one by one.
const SHOWN_MAX: usize = 50;

/// Characters of a bad seed that are shown.
const SHOWN_CHARS_MAX: usize = 200;

/// Where a seed was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On the command line, from 1.
    Argument(usize),
    /// In the file, from 1.
    Line(u64),
}

/// A seed as it was given, with what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Given {
    /// Where.
    pub(super) place: Place,
    /// The seed, or its text and the reason why it is none.
    pub(super) seed: Result<Seed, BadSeed>,
}

/// Text that is no seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadSeed {
    /// As given, cut where it is long.
    pub(super) text: String,
    /// Why, in one phrase.
    pub(super) reason: String,
}

/// The file of seeds, or standard input.
pub(super) type SeedFile = SeedLines<Box<dyn AsyncBufRead + Unpin + Send>>;

/// Reads seeds line by line.
pub(super) struct SeedLines<R> {
    reader: R,
    line: u64,
    bytes: u64,
}

impl SeedFile {
    /// Opens a file, or standard input for `-`; with the file's length where it has one.
    pub(super) async fn open(path: &Path) -> anyhow::Result<(Self, Option<u64>)> {
        if path == Path::new("-") {
            let file = standard_input().context("failed to open standard input")?;
            return Ok((Self::new(Box::new(BufReader::new(file))), None));
        }
        let open = async {
            let file = tokio::fs::File::open(path).await?;
            let about = file.metadata().await?;
            Ok::<_, std::io::Error>((file, about.is_file().then_some(about.len())))
        };
        let (file, length) = open.await.map_err(|why| {
            let told = format!("failed to open {}", path.display());
            anyhow::Error::new(why).context(WrongUse(told))
        })?;
        Ok((Self::new(Box::new(BufReader::new(file))), length))
    }
}

/// Standard input as a file, so that it is read like one.
fn standard_input() -> std::io::Result<tokio::fs::File> {
    #[cfg(unix)]
    let owned = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned()?;
    #[cfg(windows)]
    let owned =
        std::os::windows::io::AsHandle::as_handle(&std::io::stdin()).try_clone_to_owned()?;
    Ok(tokio::fs::File::from_std(std::fs::File::from(owned)))
}

impl<R: AsyncBufRead + Unpin> SeedLines<R> {
    fn new(reader: R) -> Self {
        Self { reader, line: 0, bytes: 0 }
    }

    /// Bytes read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes
    }

    /// The next line that says something; `None` at the end.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Given>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let Some(whole) = self.read_line(&mut line).await? else { return Ok(None) };
            self.line += 1;
            let seed = match std::str::from_utf8(&line) {
                _ if !whole => {
                    let text = shown(&String::from_utf8_lossy(&line));
                    Err(BadSeed { text, reason: format!("longer than {LINE_BYTES_MAX} bytes") })
                }
                Ok(text) if is_blank(text) => continue,
                Ok(text) => check(text),
                Err(_) => {
                    let text = shown(&String::from_utf8_lossy(&line));
                    Err(BadSeed { text, reason: "not UTF-8".to_owned() })
                }
            };
            return Ok(Some(Given { place: Place::Line(self.line), seed }));
        }
    }

    /// Reads up to a line end; false when the line was too long and its rest was left out.
    async fn read_line(&mut self, line: &mut Vec<u8>) -> std::io::Result<Option<bool>> {
        let (mut any, mut whole) = (false, true);
        loop {
            let read = self.reader.fill_buf().await?;
            if read.is_empty() {
                return Ok(any.then_some(whole));
            }
            any = true;
            let end = read.iter().position(|byte| *byte == b'\n');
            let piece = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
            let room = LINE_BYTES_MAX.saturating_sub(line.len());
            whole &= piece.len() <= room;
            line.extend(piece.iter().take(room));
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            self.bytes += u64::try_from(used).unwrap_or(0);
            if end.is_some() {
                return Ok(Some(whole));
            }
        }
    }
}

/// Checks the seeds given as arguments.
pub(super) fn of_arguments(urls: &[String]) -> impl Iterator<Item = Given> {
    urls.iter()
        .enumerate()
        .map(|(at, url)| Given { place: Place::Argument(at + 1), seed: check(url) })
}

/// All seeds of a crawl, from arguments and a file.
///
/// # Errors
/// [`WrongUse`] that names every bad seed by its place; or the file cannot be read.
pub(super) async fn gather(urls: &[String], file: Option<&Path>) -> anyhow::Result<Vec<Seed>> {
    let mut gathered = Gathered::default();
    for given in of_arguments(urls) {
        gathered.take(given, None);
    }
    if let Some(path) = file {
        let name = if path == Path::new("-") { "stdin".into() } else { path.to_string_lossy() };
        let (mut lines, _) = SeedFile::open(path).await?;
        let failed = || format!("failed to read {}", path.display());
        while let Some(given) = lines.next().await.with_context(failed)? {
            gathered.take(given, Some(&name));
        }
    }
    gathered.into_result()
}

#[derive(Default)]
struct Gathered {
    seeds: Vec<Seed>,
    faults: Vec<String>,
    bad: u64,
}

impl Gathered {
    fn take(&mut self, given: Given, file: Option<&str>) {
        match given.seed {
            Ok(seed) => self.seeds.push(seed),
            Err(BadSeed { text, reason }) => {
                self.bad += 1;
                if self.faults.len() < SHOWN_MAX {
                    let place = file.map_or_else(
                        || given.place.to_string(),
                        |file| format!("{file}, {}", given.place),
                    );
                    self.faults.push(format!("\n  {place}: `{text}`: {reason}"));
                }
            }
        }
    }

    fn into_result(self) -> anyhow::Result<Vec<Seed>> {
        if self.bad == 0 {
            return Ok(self.seeds);
        }
        let head = match self.bad {
            1 => "a seed cannot be crawled".to_owned(),
            bad => format!("{bad} seeds cannot be crawled"),
        };
        let hidden = self.bad - u64::try_from(self.faults.len()).unwrap_or(self.bad);
        let more = if hidden > 0 { format!("\n  and {hidden} more") } else { String::new() };
        Err(WrongUse(format!("{head}{}{more}", self.faults.concat())).into())
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Argument(number) => write!(f, "argument {number}"),
            Self::Line(number) => write!(f, "line {number}"),
        }
    }
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// Reads one seed.
fn check(text: &str) -> Result<Seed, BadSeed> {
    let text = text.trim();
    let bad = |reason: String| BadSeed { text: shown(text), reason };
    let seed = if text.starts_with('{') {
        serde_json::from_str(text).map_err(|why| bad(format!("not a seed: {why}")))?
    } else {
        Seed { url: text.to_owned(), ..Seed::default() }
    };
    CrawlUrl::parse(&seed.url).map_err(|reason| bad(reason.to_string()))?;
    match seed.priority {
        Some(priority) if !(0.0..=1.0).contains(&priority) => {
            Err(bad(format!("its priority is {priority}, wanted from 0 to 1")))
        }
        Some(_) | None => Ok(seed),
    }
}

fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8]) -> Vec<Given> {
        let mut lines = SeedLines::new(BufReader::with_capacity(16, text));
        let mut found = Vec::new();
        while let Some(given) = lines.next().await.unwrap() {
            found.push(given);
        }
        assert_eq!(lines.bytes_read(), u64::try_from(text.len()).unwrap());
        found
    }

    #[tokio::test]
    async fn lines_are_seeds_with_their_numbers() {
        let text = b"# seeds\n\nhttps://a.test/\r\n{\"url\":\"http://b.test\",\"depth\":2}\nfoo";
        let found = all(text).await;
        let places: Vec<_> = found.iter().map(|given| given.place).collect();
        assert_eq!(places, [Place::Line(3), Place::Line(4), Place::Line(5)]);
        assert_eq!(found[0].seed.as_ref().unwrap().url, "https://a.test/");
        assert_eq!(found[1].seed.as_ref().unwrap().depth, Some(2));
        assert!(found[2].seed.is_err());
    }

    #[tokio::test]
    async fn what_is_no_seed_says_why() {
        for (line, reason) in [
            (b"example.org/x".as_slice(), "it has no scheme; try https://example.org/x"),
            (b"ftp://a.test/", "the scheme `ftp` is not http or https"),
            (b"https://me:pw@a.test/", "user name or password"),
            (b"example", "it has no scheme; try https://example/"),
            (b"/path", "relative URL without a base"),
            (b"{\"url\":\"https://a.test/\",\"prio\":1}", "unknown field `prio`"),
            (b"{\"url\":\"https://a.test/\",\"priority\":2}", "wanted from 0 to 1"),
            (b"https://a.test/\xff", "not UTF-8"),
        ] {
            let found = all(line).await;
            let bad = found[0].seed.as_ref().unwrap_err();
            assert!(bad.reason.contains(reason), "{bad:?}");
        }
    }

    #[tokio::test]
    async fn a_line_without_end_costs_its_bound() {
        let mut text = vec![b'x'; 3 * LINE_BYTES_MAX];
        text.extend(b"\nhttps://a.test/\n");
        let found = all(&text).await;
        let bad = found[0].seed.as_ref().unwrap_err();
        assert_eq!(bad.reason, "longer than 65536 bytes");
        assert!(bad.text.chars().count() <= SHOWN_CHARS_MAX + 1);
        assert_eq!(found[1].place, Place::Line(2));
        assert!(found[1].seed.is_ok());
    }

    #[tokio::test]
    async fn all_bad_seeds_are_named_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("seeds.txt");
        std::fs::write(&file, "https://a.test/\n\nmailto:b@a.test\n").unwrap();
        let urls = ["https://c.test/".to_owned(), "nothing".to_owned()];
        let told = gather(&urls, Some(&file)).await.unwrap_err().to_string();
        let expected = format!(
            "2 seeds cannot be crawled\n  argument 2: `nothing`: not a URL: it has no scheme; try \
             https://nothing/\n  {}, line 3: `mailto:b@a.test`: the scheme `mailto` is not http or \
             https",
            file.display()
        );
        assert_eq!(told, expected);
        std::fs::write(&file, "https://a.test/\n").unwrap();
        assert_eq!(gather(&urls[..1], Some(&file)).await.unwrap().len(), 2);
    }
}
