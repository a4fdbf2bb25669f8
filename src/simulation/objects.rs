//! The object store of the simulated world: in memory, with times from the simulated clock, and
//! with answers that take a while.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::draw::{below, draw};
use crate::types::Timestamp;
use crate::world::Clock;

/// The longest write, in milliseconds.
const WRITE_MS_MAX: u64 = 25;

/// What outlives a crash: the objects, and when each was written.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptObjects {
    memory: Arc<InMemory>,
    written: Arc<Mutex<BTreeMap<String, Timestamp>>>,
}

/// The store as one life of the node sees it.
#[derive(Debug)]
pub(super) struct SimulatedObjects {
    pub(super) kept: KeptObjects,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) seed: u64,
}

impl KeptObjects {
    fn note(&self, location: &Path, at: Timestamp) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.insert(location.to_string(), at);
    }

    fn dated(&self, mut meta: ObjectMeta) -> ObjectMeta {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let at = written.get(meta.location.as_ref()).copied().unwrap_or(Timestamp::EPOCH);
        meta.last_modified = date(at);
        meta
    }
}

fn date(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.as_millis()).unwrap_or_default()
}

impl SimulatedObjects {
    /// The time that a write takes, and how much of it lies before the object is there: a crash in
    /// between finds it there although nobody was told.
    fn time_of(&self, location: &Path) -> (Duration, Duration) {
        let now = self.clock.now().as_millis();
        let millis = 2 + below(WRITE_MS_MAX, self.seed, format_args!("object {location} {now}"));
        let before = draw(self.seed, format_args!("order {location} {now}")) % (millis + 1);
        (Duration::from_millis(before), Duration::from_millis(millis - before))
    }
}

impl fmt::Display for SimulatedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated objects")
    }
}

#[async_trait]
impl ObjectStore for SimulatedObjects {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let (before, after) = self.time_of(location);
        self.clock.sleep(before).await;
        let put = self.kept.memory.put_opts(location, payload, opts).await;
        if put.is_ok() {
            self.kept.note(location, self.clock.now());
        }
        self.clock.sleep(after).await;
        put
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.kept.note(location, self.clock.now());
        self.kept.memory.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut got = self.kept.memory.get_opts(location, options).await?;
        got.meta = self.kept.dated(got.meta);
        Ok(got)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.kept.memory.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let kept = self.kept.clone();
        let found = self.kept.memory.list(prefix);
        found.map(move |meta| meta.map(|meta| kept.dated(meta))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut found = self.kept.memory.list_with_delimiter(prefix).await?;
        found.objects = found.objects.into_iter().map(|meta| self.kept.dated(meta)).collect();
        Ok(found)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.kept.memory.copy_opts(from, to, options).await?;
        self.kept.note(to, self.clock.now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt as _;

    use super::*;
    use crate::world::TokioClock;

    #[tokio::test(start_paused = true)]
    async fn objects_carry_the_simulated_time() {
        let clock = Arc::new(TokioClock::starting_at(Timestamp::from_secs(1_000)));
        let store = SimulatedObjects { kept: KeptObjects::default(), clock, seed: 3 };
        let path = Path::from("a/b");
        store.put(&path, "x".into()).await.unwrap();
        assert_eq!(store.head(&path).await.unwrap().last_modified.timestamp(), 1_000);
        let listed: Vec<_> = store.list(None).collect().await;
        assert_eq!(listed[0].as_ref().unwrap().last_modified.timestamp(), 1_000);
        let found = store.list_with_delimiter(Some(&Path::from("a"))).await.unwrap();
        assert_eq!(found.objects[0].last_modified.timestamp(), 1_000);
    }
}
