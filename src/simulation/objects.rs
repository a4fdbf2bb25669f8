//! The object store of the simulated world: in memory, with times from the simulated wall clock,
//! with answers that take a while, and with bad weather.

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

use super::clock::{moved, wall_ahead_ms};
use super::draw::{below, draw, happens};
use super::faults::{Fault, Faults};
use super::power::{Power, Step};
use super::weather::{StoreWeather, of_store};
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
    /// True time.
    pub(super) clock: Arc<dyn Clock>,
    pub(super) power: Arc<Power>,
    pub(super) faults: Faults,
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
    fn time_of(&self, location: &Path, millis_max: u64) -> (Duration, Duration) {
        let now = self.clock.now().as_millis();
        let millis = 2 + below(millis_max, self.seed, format_args!("object {location} {now}"));
        let before = draw(self.seed, format_args!("order {location} {now}")) % (millis + 1);
        (Duration::from_millis(before), Duration::from_millis(millis - before))
    }

    /// What is written at this moment is dated by the wall.
    fn note(&self, location: &Path) {
        let now = self.clock.now();
        self.kept.note(location, moved(now, wall_ahead_ms(&self.faults, now)));
    }

    fn failed<T>(&self, what: &'static str) -> Result<T> {
        self.faults.count(Fault::Store);
        Err(object_store::Error::Generic { store: "simulation", source: what.into() })
    }

    /// Writing, as the weather has it: the time it takes, or that it fails; then the object may be
    /// there all the same.
    async fn begin_write(&self, location: &Path) -> Result<(Duration, Duration), bool> {
        self.power.needed().await;
        self.power.step(Step::ObjectBegun);
        let now = self.clock.now();
        match of_store(&self.faults, now) {
            StoreWeather::Fair | StoreWeather::NoReads => Ok(self.time_of(location, WRITE_MS_MAX)),
            StoreWeather::Slow(millis) => {
                self.faults.count(Fault::Store);
                Ok(self.time_of(location, millis))
            }
            StoreWeather::Hangs(until) => {
                self.faults.count(Fault::Store);
                self.clock.sleep_until(until).await;
                Ok(self.time_of(location, WRITE_MS_MAX))
            }
            StoreWeather::NoWrites | StoreWeather::Nothing => {
                self.clock.sleep(self.time_of(location, WRITE_MS_MAX).0).await;
                let at = now.as_millis();
                Err(happens(250, self.seed, format_args!("there {location} {at}")))
            }
        }
    }

    async fn readable(&self) -> Result<()> {
        self.power.needed().await;
        match of_store(&self.faults, self.clock.now()) {
            StoreWeather::NoReads | StoreWeather::Nothing => {
                self.clock.sleep(Duration::from_millis(1)).await;
                self.failed("it cannot be read at the moment")
            }
            StoreWeather::Fair
            | StoreWeather::NoWrites
            | StoreWeather::Slow(_)
            | StoreWeather::Hangs(_) => Ok(()),
        }
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
        let begun = self.begin_write(location).await;
        let (before, after) = match begun {
            Ok(times) => times,
            Err(false) => return self.failed("it cannot be written at the moment"),
            Err(true) => (Duration::ZERO, Duration::ZERO),
        };
        self.clock.sleep(before).await;
        self.power.needed().await;
        let put = self.kept.memory.put_opts(location, payload, opts).await;
        if put.is_ok() {
            self.note(location);
        }
        self.power.step(Step::ObjectThere);
        self.clock.sleep(after).await;
        self.power.needed().await;
        self.power.step(Step::ObjectEnded);
        match begun {
            Ok(_) => put,
            Err(_) => self.failed("nobody knows whether it was written"),
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        if self.begin_write(location).await.is_err() {
            return self.failed("it cannot be written at the moment");
        }
        self.note(location);
        self.kept.memory.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.readable().await?;
        let mut got = self.kept.memory.get_opts(location, options).await?;
        got.meta = self.kept.dated(got.meta);
        Ok(got)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        if self.power.is_cut() {
            return futures::stream::pending().boxed();
        }
        self.kept.memory.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match of_store(&self.faults, self.clock.now()) {
            StoreWeather::NoReads | StoreWeather::Nothing => {
                let failed = self.failed("it cannot be listed at the moment");
                return futures::stream::once(async { failed }).boxed();
            }
            StoreWeather::Fair
            | StoreWeather::NoWrites
            | StoreWeather::Slow(_)
            | StoreWeather::Hangs(_) => {}
        }
        let kept = self.kept.clone();
        let found = self.kept.memory.list(prefix);
        found.map(move |meta| meta.map(|meta| kept.dated(meta))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.readable().await?;
        let mut found = self.kept.memory.list_with_delimiter(prefix).await?;
        found.objects = found.objects.into_iter().map(|meta| self.kept.dated(meta)).collect();
        Ok(found)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.power.needed().await;
        self.kept.memory.copy_opts(from, to, options).await?;
        self.note(to);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use object_store::ObjectStoreExt as _;

    use super::*;
    use crate::world::TokioClock;

    #[tokio::test(start_paused = true)]
    async fn objects_carry_the_simulated_time() {
        let clock = Arc::new(TokioClock::starting_at(Timestamp::from_secs(1_000)));
        let store = SimulatedObjects {
            kept: KeptObjects::default(),
            faults: Faults::new(3, clock.now(), BTreeSet::new()),
            power: Arc::new(Power::new(None)),
            clock,
            seed: 3,
        };
        let path = Path::from("a/b");
        store.put(&path, "x".into()).await.unwrap();
        assert_eq!(store.head(&path).await.unwrap().last_modified.timestamp(), 1_000);
        let listed: Vec<_> = store.list(None).collect().await;
        assert_eq!(listed[0].as_ref().unwrap().last_modified.timestamp(), 1_000);
        let found = store.list_with_delimiter(Some(&Path::from("a"))).await.unwrap();
        assert_eq!(found.objects[0].last_modified.timestamp(), 1_000);
    }
}
