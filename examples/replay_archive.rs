//! Reads responses back from the archive, by the pointers in the page records.
//!
//! `cargo run --example replay_archive -- DATA_DIRECTORY [HOW_MANY]`
//!
//! Works while the crawl runs and after it; no site is asked for anything.
#![expect(clippy::print_stdout, reason = "an example speaks to its reader")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use mehman::archive::ArchiveReader;
use mehman::types::ArchivePointer;
use mehman::world::DirectorySpool;
use serde::Deserialize;

/// What is needed of a page record.
#[derive(Deserialize)]
struct Page {
    url: String,
    title: Option<String>,
    archive: ArchivePointer,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let data = arguments.next().context("give a data directory")?;
    let mut left: usize = arguments.next().map_or(Ok(10), |count| count.parse())?;
    let reader = ArchiveReader::new(Arc::new(DirectorySpool::new(&data)));
    let mut files: Vec<_> =
        fs::read_dir(Path::new(&data).join("pages"))?.collect::<Result<_, _>>()?;
    files.sort_by_key(|file| file.path());
    for file in files {
        for line in BufReader::new(File::open(file.path())?).lines().take(left) {
            // A crawl that runs may be in the middle of its last line.
            let Ok(page) = serde_json::from_str::<Page>(&line?) else { break };
            let stored = reader.read(&page.archive).await?;
            println!(
                "{} {} {} bytes, at {} in {}: {}",
                stored.status,
                page.url,
                stored.body.len(),
                page.archive.offset,
                page.archive.file,
                page.title.unwrap_or_default(),
            );
            left -= 1;
        }
    }
    Ok(())
}
