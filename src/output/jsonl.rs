//! O4: page records as JSON Lines, one document a line.

use std::sync::Arc;

use super::OutputError;
use super::committed::{Append, CommittedFiles, Place};
use crate::policy::wishes::{Cause, Purpose, Verdict, judge};
use crate::types::{Document, ShardId};
use crate::world::Spool;

/// One output of kind `jsonl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSettings {
    /// Its key in the shard's store; unique and stable.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Where its files are and how their names begin, under the spool's root: `pages/pages`. Shard
    /// and number follow, as in `pages/pages-0-0.jsonl`.
    pub prefix: String,
    /// The next file begins when one has this many bytes.
    pub file_bytes_max: u64,
}

/// One JSON Lines output of one shard.
#[derive(Debug)]
pub(super) struct JsonLines {
    name: String,
    purpose: Purpose,
    files: CommittedFiles,
}

impl JsonLines {
    /// Opens it at what its shard has committed.
    ///
    /// # Errors
    /// When the disk fails, or disk and shard disagree.
    pub(super) async fn open(
        spool: &Arc<dyn Spool>,
        shard: ShardId,
        settings: OutputSettings,
        committed: Option<&[u8]>,
    ) -> Result<Self, OutputError> {
        let OutputSettings { name, purpose, prefix, file_bytes_max } = settings;
        let place = committed
            .map(postcard::from_bytes)
            .transpose()
            .map_err(|source| OutputError::State { name: name.clone(), source })?;
        let names = (format!("{prefix}-{shard}-"), ".jsonl");
        let files = CommittedFiles::open(spool, names, file_bytes_max, place).await?;
        Ok(Self { name, purpose, files })
    }

    /// Its key in the shard's store.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// R6: gathers a document, or says what leaves it out: the purpose may not have it.
    pub(super) fn add<'d>(&mut self, document: &'d Document) -> Option<Cause<'d>> {
        if let Verdict::Refused(cause) = judge(self.purpose, &document.usage, &document.robots) {
            return Some(cause);
        }
        let buffer = self.files.gathered();
        serde_json::to_writer(&mut *buffer, document)
            .expect("memory takes what is written, and every key is text");
        buffer.push(b'\n');
        None
    }

    /// What was gathered, with the name and the state that the shard commits for it.
    pub(super) fn take(&mut self) -> Option<(Append, (String, Vec<u8>))> {
        let append = self.files.take()?;
        let state = self.state(append.end());
        Some((append, state))
    }

    /// Another file from here on; what the shard commits for it, unless there is nothing to leave.
    pub(super) fn rotate(&mut self) -> Option<(String, Vec<u8>)> {
        let place = self.files.rotate()?;
        Some(self.state(place))
    }

    fn state(&self, place: Place) -> (String, Vec<u8>) {
        let state = postcard::to_stdvec(&place).expect("two numbers have a form");
        (self.name.clone(), state)
    }
}
