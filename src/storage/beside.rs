//! What is kept beside a shard's store, in the same place, so that it moves with the shard: the
//! chunks of its filter.
//!
//! It only saves work. The first chunk names the batch and is written last, so an interrupted save
//! is not taken for a filter.

use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tracing::warn;

use super::filter::Filter;
use super::store::{BatchId, ShardStore};

impl ShardStore {
    /// Keeps the filter of a table whose last batch is `batch`. A failure is logged: the filter is
    /// then rebuilt by a scan.
    pub async fn save_filter(&self, filter: &Filter, batch: BatchId) {
        let objects = self.objects().store();
        let chunks = filter.to_chunks(batch);
        for (number, chunk) in chunks.into_iter().enumerate().rev() {
            if let Err(error) = objects.put(&self.chunk(number), chunk.into()).await {
                warn!(shard = self.shard().0, %error, "filter not saved");
                return;
            }
        }
    }

    /// The filter as it was kept, if it is the one of the batch that the store was opened at.
    pub async fn load_filter(&self) -> Option<Filter> {
        let objects = self.objects().store();
        let first = self.read(&*objects, 0).await?;
        let more = usize::try_from(Filter::chunks_after(&first, self.opened_at())?).ok()?;
        let mut chunks = vec![first];
        for number in 1..=more {
            chunks.push(self.read(&*objects, number).await?);
        }
        Filter::from_chunks(&chunks, self.opened_at())
    }

    async fn read(&self, objects: &dyn ObjectStore, number: usize) -> Option<Vec<u8>> {
        let chunk = objects.get(&self.chunk(number)).await.ok()?;
        Some(chunk.bytes().await.ok()?.to_vec())
    }

    fn chunk(&self, number: usize) -> Path {
        Path::from(format!("{}/filter/{number:06}", self.path()))
    }
}
