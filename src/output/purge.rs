//! Page records of closed files are removed (R5).
//!
//! A closed file loses its lines: it is copied without them and renamed. A file that may still be
//! counted by its length, since its output is not configured now and could be again, keeps it:
//! blank lines at its end take the place of what went.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::Deserialize;
use tracing::error;

use super::OutputSettings;
use crate::types::{CrawlUrl, Removed};
use crate::world::{Lines, Piece, Spool, draft_of, splice, without_drafts};

/// Where the files of all outputs lie.
const FOLDER: &str = "pages";
const SUFFIX: &str = ".jsonl";
/// Blank lines that are written at once.
const BLANK_BYTES: usize = 1 << 20;

/// Takes page records out of files.
#[derive(Clone, Debug)]
pub struct PagePurge {
    /// The disk.
    pub spool: Arc<dyn Spool>,
    /// The outputs that there are now.
    pub outputs: Vec<OutputSettings>,
}

/// What goes from one file of page records.
#[derive(Debug, Default)]
pub struct PageFinds {
    /// The lines.
    pub lines: Vec<Piece>,
    /// A line of the file is no page record, so nobody knows whose it is.
    pub unreadable: bool,
}

impl PageFinds {
    /// In numbers.
    pub fn removed(&self) -> Removed {
        let page_records = u64::try_from(self.lines.len()).unwrap_or(u64::MAX);
        Removed { page_records, ..Removed::default() }
    }
}

/// The part of a page record that says whose it is.
#[derive(Deserialize)]
struct Whose {
    url: CrawlUrl,
}

impl PagePurge {
    /// The files there are, those that are being written too: in them there is nothing to find.
    /// Drafts that a crash left are removed.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn files(&self) -> io::Result<Vec<String>> {
        let mut files = without_drafts(&*self.spool, FOLDER).await?;
        files.retain(|name| is_page_file(name));
        Ok(files)
    }

    /// Looks for the records of URLs that the rule covers.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn look(
        &self,
        file: &str,
        covers: &(dyn Fn(&CrawlUrl) -> bool + Send + Sync),
    ) -> io::Result<PageFinds> {
        let mut lines = Lines::new(&*self.spool, file);
        let mut finds = PageFinds::default();
        while let Some((line, piece)) = lines.next().await? {
            match serde_json::from_slice::<Whose>(line) {
                Ok(whose) if covers(&whose.url) => finds.lines.push(piece),
                Ok(_) => {}
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(why) => {
                    error!(file, piece.offset, %why, "a line is no page record, and is left");
                    finds.unreadable = true;
                }
            }
        }
        if lines.has_rest() {
            error!(file, "the last line has no end, and is left");
            finds.unreadable = true;
        }
        Ok(finds)
    }

    /// Removes what was found.
    ///
    /// # Errors
    /// When the disk fails or `stops` says so: the file is as it was, or as it should be. Which of
    /// these is found by another look; what was found before is void.
    pub async fn rewrite(
        &self,
        file: &str,
        finds: &PageFinds,
        stops: &(dyn Fn() -> bool + Send + Sync),
    ) -> io::Result<()> {
        let size = splice(&*self.spool, file, &finds.lines, |_| Vec::new(), stops).await?;
        let draft = draft_of(file);
        if self.may_be_counted(file).await? {
            let mut at = size;
            let end = size + finds.lines.iter().map(|piece| piece.length).sum::<u64>();
            while at < end {
                let length = usize::try_from(end - at).unwrap_or(usize::MAX).min(BLANK_BYTES);
                self.spool.append(&draft, at, vec![b'\n'; length].into()).await?;
                at += u64::try_from(length).unwrap_or(u64::MAX);
            }
        }
        self.spool.rename(&draft, file).await
    }

    /// Whether it is the newest file of an output and shard that nothing writes now.
    async fn may_be_counted(&self, file: &str) -> io::Result<bool> {
        let Some((prefix, number)) = parts_of(file) else { return Ok(false) };
        let written = self.outputs.iter().any(|output| {
            prefix.strip_prefix(&output.prefix).is_some_and(|rest| {
                rest.strip_prefix('-').is_some_and(|shard| shard.parse::<u16>().is_ok())
            })
        });
        let mut newest: BTreeMap<String, u64> = BTreeMap::new();
        for (name, _) in self.spool.list(FOLDER).await? {
            if let Some((prefix, number)) = parts_of(&name) {
                let found = newest.entry(prefix.to_owned()).or_default();
                *found = number.max(*found);
            }
        }
        Ok(!written && newest.get(prefix) == Some(&number))
    }
}

/// Whether a file holds page records, by where it lies and by its name.
pub fn is_page_file(file: &str) -> bool {
    let in_folder = file.strip_prefix(FOLDER).is_some_and(|rest| rest.starts_with('/'));
    in_folder && parts_of(file).is_some()
}

/// `pages/pages-SHARD` and the number of `pages/pages-SHARD-NUMBER.jsonl`.
fn parts_of(file: &str) -> Option<(&str, u64)> {
    let (prefix, number) = file.strip_suffix(SUFFIX)?.rsplit_once('-')?;
    Some((prefix, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::wishes::Purpose;
    use crate::world::MemorySpool;

    fn line(url: &str, text: &str) -> String {
        format!("{{\"url\":\"{url}\",\"text\":\"{text}\"}}\n")
    }

    fn purge(spool: &Arc<MemorySpool>) -> PagePurge {
        let output = OutputSettings {
            name: "pages".to_owned(),
            purpose: Purpose::Archive,
            prefix: "pages/pages".to_owned(),
            file_bytes_max: 1,
        };
        PagePurge { spool: Arc::clone(spool) as Arc<dyn Spool>, outputs: vec![output] }
    }

    fn covers(url: &CrawlUrl) -> bool {
        url.as_str().starts_with("http://gone.test/")
    }

    #[tokio::test]
    async fn lines_of_covered_pages_go_and_the_others_stay_byte_by_byte() {
        let spool = Arc::new(MemorySpool::new());
        let [keep, late] =
            [line("http://a.test/", "see http://gone.test/"), line("http://b.test/", "ä")];
        let gone = line("http://gone.test/x", "secret");
        let cut = "{\"url\":\"http://gone.test/";
        spool.place(
            "pages/pages-0-0.jsonl",
            [&*keep, &gone, "\n", &late, &gone, cut].concat().into(),
        );
        spool.place("pages/pages-0-1.jsonl", late.clone().into());
        spool.place("pages/notes.txt", gone.clone().into());
        spool.place("pages/pages-0-0.jsonl.purge", b"left".to_vec());
        let purge = purge(&spool);
        let files = purge.files().await.unwrap();
        assert_eq!(files, ["pages/pages-0-0.jsonl", "pages/pages-0-1.jsonl"]);
        let finds = purge.look(&files[0], &covers).await.unwrap();
        assert_eq!((finds.removed().page_records, finds.unreadable), (2, true));
        purge.rewrite(&files[0], &finds, &|| false).await.unwrap();
        let left = spool.content(&files[0]).unwrap();
        assert_eq!(left, [&*keep, "\n", &late, cut].concat().as_bytes());
        assert!(purge.look(&files[0], &covers).await.unwrap().lines.is_empty());
        let other = purge.look(&files[1], &covers).await.unwrap();
        assert!(other.lines.is_empty() && !other.unreadable);
        assert_eq!(spool.list("pages").await.unwrap().len(), 3, "no draft is left");
    }

    #[tokio::test]
    async fn the_newest_file_of_an_output_that_is_not_configured_keeps_its_length() {
        let spool = Arc::new(MemorySpool::new());
        let [keep, gone] = [line("http://a.test/", "a"), line("http://gone.test/", "b")];
        let purge = purge(&spool);
        for (file, keeps) in [
            ("pages/pages1-0-3.jsonl", true),
            ("pages/pages1-0-2.jsonl", false),
            ("pages/pages-0-3.jsonl", false),
            ("pages/pages-1-3.jsonl", false),
        ] {
            let before = [&*gone, &keep].concat();
            spool.place(file, before.clone().into());
            let finds = purge.look(file, &covers).await.unwrap();
            purge.rewrite(file, &finds, &|| false).await.unwrap();
            let left = String::from_utf8(spool.content(file).unwrap()).unwrap();
            assert_eq!(left.len() == before.len(), keeps, "{file}: {left:?}");
            assert_eq!(left.trim_end_matches('\n'), keep.trim_end(), "{file}");
        }
    }
}
