//! `export`: the stored page records that a purpose may have, judged anew by today's table (R6).
//!
//! In: the page records of a data directory, which may grow meanwhile, and what each of them keeps
//! of its site's wishes. Out: the same lines, unchanged, without those that the purpose may not
//! have, and how many were left out and why. One line is held at a time.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde::{Deserialize, Serialize};
use tokio::fs::File;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, BufWriter,
};

use super::arguments::{Common, ExportArgs};
use super::failure::{Exit, Interrupted, WrongUse};
use super::output::Output;
use super::progress::Bar;
use super::settings::{self, Overrides};
use super::signals::Signals;
use super::text::{count, counted};
use crate::config::{self, Config};
use crate::output::output_name;
use crate::policy::wishes::{Purpose, Verdict, judge};
use crate::storage::DataDir;
use crate::types::UsageWish;

/// Bytes that are read and written at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The longest line that is read: more than limits of the parser let any record have.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// How often progress is shown.
const SHOWN_EVERY: u64 = 1_000;

/// The part of a page record that it is judged by.
#[derive(Deserialize)]
struct Judged {
    usage: Vec<UsageWish>,
    robots: Vec<String>,
}

/// What became of the records.
#[derive(Debug, Default, Serialize)]
struct Tally {
    purpose: &'static str,
    from: String,
    read: u64,
    written: u64,
    /// Of those written: a wish says that the purpose may have them.
    allowed: u64,
    /// By what says that it may not.
    left_out: BTreeMap<&'static str, u64>,
    /// Lines without an end, which are being written or were when a crawl died.
    unfinished: u64,
}

/// A file of page records.
struct PageFile {
    path: PathBuf,
    bytes: u64,
}

/// `export`.
pub(super) async fn run(
    args: &ExportArgs,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    let config = settings::load(common, &Overrides::default())?;
    DataDir::readable(&config.data.dir)?;
    let from = args.from.clone().unwrap_or_else(|| widest(&config));
    let files = page_files(&config.data.dir.join("pages"), &from)?;
    let mut signals = Signals::listen().context("failed to listen for signals")?;
    let tally = Tally { purpose: args.purpose.as_str(), from, ..Tally::default() };
    let mut export = Export { purpose: args.purpose, tally, output };
    let mut sink = Sink::open(args.out.as_deref(), output).await?;
    let copied = tokio::select! {
        biased;
        _ = signals.next() => Err(Interrupted.into()),
        copied = export.copy(&files, &mut sink) => copied,
    };
    copied?;
    let to_file = sink.close().await?;
    export.tally.tell(output, to_file)
}

/// The output that has the most of what was parsed: the first for keeping, else the first.
fn widest(config: &Config) -> String {
    let keeps = |one: &config::Output| one.purpose == config::Purpose::Archive;
    output_name(config.output.iter().position(keeps).unwrap_or(0))
}

/// The files of one output, those of a shard one after the other as they were written.
fn page_files(folder: &Path, from: &str) -> anyhow::Result<Vec<PageFile>> {
    let listed = || format!("failed to list {}", folder.display());
    let mut files = BTreeMap::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(gone) if gone.kind() == io::ErrorKind::NotFound => return Err(nothing(folder, from)),
        Err(failure) => return Err(failure).with_context(listed),
    };
    for entry in entries {
        let entry = entry.with_context(listed)?;
        let name = entry.file_name();
        let Some(place) = name.to_str().and_then(|name| place_of(name, from)) else { continue };
        let bytes = entry.metadata().with_context(listed)?.len();
        files.insert(place, PageFile { path: entry.path(), bytes });
    }
    if files.is_empty() { Err(nothing(folder, from)) } else { Ok(files.into_values().collect()) }
}

fn nothing(folder: &Path, from: &str) -> anyhow::Error {
    let folder = folder.display();
    WrongUse(format!("there is nothing to export: no file of {from} in {folder}")).into()
}

/// Shard and number of `pages-SHARD-NUMBER.jsonl`.
fn place_of(name: &str, from: &str) -> Option<(u32, u64)> {
    let rest = name.strip_prefix(from)?.strip_prefix('-')?.strip_suffix(".jsonl")?;
    let (shard, number) = rest.split_once('-')?;
    Some((shard.parse().ok()?, number.parse().ok()?))
}

struct Export<'o> {
    purpose: Purpose,
    tally: Tally,
    output: &'o Output,
}

impl Export<'_> {
    async fn copy(&mut self, files: &[PageFile], sink: &mut Sink<'_>) -> anyhow::Result<()> {
        let total = files.iter().map(|file| file.bytes).sum();
        let bar = Bar::of_bytes(Some(total), self.output);
        let mut bytes = 0;
        for file in files {
            let opened = File::open(&file.path).await;
            let opened =
                opened.with_context(|| format!("failed to open {}", file.path.display()))?;
            let mut reader = BufReader::with_capacity(BUFFER_BYTES, opened);
            let mut line = Vec::new();
            for number in 1_u64.. {
                line.clear();
                let read = (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
                let place = || format!("{}:{number}", file.path.display());
                let read = read.with_context(place)?;
                if read == 0 {
                    break;
                }
                bytes += u64::try_from(read).unwrap_or(u64::MAX);
                if line == b"\n" {
                    // What a purge leaves of a record at the end of some files.
                    continue;
                }
                self.line(&line, sink).await.with_context(place)?;
                if self.tally.read.is_multiple_of(SHOWN_EVERY) {
                    bar.show(bytes, &self.tally.told());
                }
            }
        }
        bar.clear();
        Ok(())
    }

    /// One line, as it was read.
    async fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> anyhow::Result<()> {
        if line.last() != Some(&b'\n') {
            if u64::try_from(line.len()).unwrap_or(u64::MAX) >= LINE_BYTES_MAX {
                return Err(anyhow!("longer than {LINE_BYTES_MAX} bytes"));
            }
            self.tally.unfinished += 1;
            return Ok(());
        }
        let judged: Judged = serde_json::from_slice(line).context("not a page record")?;
        self.tally.read += 1;
        match judge(self.purpose, &judged.usage, &judged.robots) {
            Verdict::Refused(cause) => {
                *self.tally.left_out.entry(cause.scheme.as_str()).or_default() += 1;
                return Ok(());
            }
            Verdict::Allowed(_) => self.tally.allowed += 1,
            Verdict::NoWish => {}
        }
        self.tally.written += 1;
        sink.write(line).await
    }
}

impl Tally {
    fn told(&self) -> String {
        let left_out: u64 = self.left_out.values().sum();
        let of = count(self.read);
        format!("{} of {of} written, {} left out", count(self.written), count(left_out))
    }

    /// Says what was done: on standard error where the records went to standard output.
    fn tell(&self, output: &Output, to_file: bool) -> anyhow::Result<Exit> {
        match (output.is_json(), to_file) {
            (true, true) => output.json(self)?,
            (true, false) => output.alert(&serde_json::to_string(self)?),
            (false, _) => output.note(&self.sentences()),
        }
        Ok(Exit::Done)
    }

    fn sentences(&self) -> String {
        let records = counted(self.read, "page record");
        let mut text = format!("{} of {records} for {}", count(self.written), self.purpose);
        for (why, pages) in &self.left_out {
            text.push_str(&format!("\nleft out by {why}: {}", count(*pages)));
        }
        if self.unfinished > 0 {
            let lines = counted(self.unfinished, "unfinished line");
            text.push_str(&format!("\nnot read: {lines}, which a crawl is writing or will cut"));
        }
        text
    }
}

/// Where the records go.
enum Sink<'o> {
    /// Standard output.
    Results { output: &'o Output, buffer: Vec<u8> },
    /// A file, which has its name when it is whole.
    File { writer: BufWriter<File>, partial: Partial, whole: PathBuf },
    /// A device or a pipe that was there.
    Stream { writer: BufWriter<File>, name: PathBuf },
}

/// A file under a name of this process, gone unless it got its own.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // Under its own name it is not here any more.
        std::fs::remove_file(&self.0).ok();
    }
}

/// Another name in the same directory, which no other export has.
fn partial_of(whole: &Path) -> PathBuf {
    let mut name = whole.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    PathBuf::from(name)
}

impl<'o> Sink<'o> {
    async fn open(path: Option<&Path>, output: &'o Output) -> anyhow::Result<Self> {
        let Some(whole) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::Results { output, buffer: Vec::with_capacity(BUFFER_BYTES) });
        };
        // What a link leads to is written, and keeps its mode; a device or a pipe is written into.
        let whole = std::fs::canonicalize(whole).unwrap_or_else(|_| whole.to_owned());
        let failed = || format!("failed to write {}", whole.display());
        let there = std::fs::metadata(&whole).ok();
        if there.as_ref().is_some_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(&whole).await.with_context(failed)?;
            let writer = BufWriter::with_capacity(BUFFER_BYTES, file);
            return Ok(Self::Stream { writer, name: whole });
        }
        let mode = there.map(|there| there.permissions());
        if mode.as_ref().is_some_and(std::fs::Permissions::readonly) {
            return Err(WrongUse(format!("{} may not be written to", whole.display())).into());
        }
        let partial = partial_of(&whole);
        let file = File::options().write(true).create_new(true).open(&partial).await;
        let file = file.with_context(|| format!("failed to create {}", partial.display()))?;
        let partial = Partial(partial);
        if let Some(mode) = mode {
            file.set_permissions(mode).await.with_context(failed)?;
        }
        let writer = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self::File { writer, partial, whole })
    }

    async fn write(&mut self, line: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Results { output, buffer } => {
                buffer.extend_from_slice(line);
                if buffer.len() >= BUFFER_BYTES {
                    output.bytes(buffer).context("failed to write to standard output")?;
                    buffer.clear();
                }
                Ok(())
            }
            Self::File { writer, partial, .. } => {
                let failed = || format!("failed to write {}", partial.0.display());
                writer.write_all(line).await.with_context(failed)
            }
            Self::Stream { writer, name } => {
                let failed = || format!("failed to write {}", name.display());
                writer.write_all(line).await.with_context(failed)
            }
        }
    }

    /// Ends it; true when it was a file.
    async fn close(self) -> anyhow::Result<bool> {
        match self {
            Self::Results { output, buffer } => {
                output.bytes(&buffer).context("failed to write to standard output")?;
                Ok(false)
            }
            Self::File { mut writer, partial, whole } => {
                let failed = || format!("failed to write {}", whole.display());
                writer.flush().await.with_context(failed)?;
                writer.get_ref().sync_all().await.with_context(failed)?;
                tokio::fs::rename(&partial.0, &whole).await.with_context(failed)?;
                Ok(true)
            }
            Self::Stream { mut writer, name } => {
                let failed = || format!("failed to write {}", name.display());
                writer.flush().await.with_context(failed)?;
                Ok(true)
            }
        }
    }
}

#[cfg(test)]
mod tests;
