//! A world that obeys the test: it panics, fails and dawdles when told.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::protocol::OutputMsg;
use crate::storage::MemorySnapshots;
use crate::types::{HostId, Reason, Timestamp};
use crate::world::{
    Clock, Dice, Exchange, ExchangeFailure, ExchangeRequest, Exchanged, Resolved, Resolver,
    SeededDice, SnapshotStore, TokioClock,
};

/// A clock that notices when a run turns round on the spot.
#[derive(Debug)]
pub(in crate::frontier) struct WatchfulClock {
    clock: TokioClock,
    seen: AtomicU64,
    times: AtomicU32,
}

impl WatchfulClock {
    pub(in crate::frontier) fn starting_at(at: Timestamp) -> Self {
        let clock = TokioClock::starting_at(at);
        Self { clock, seen: AtomicU64::new(0), times: AtomicU32::new(0) }
    }
}

/// Questions about the time within one virtual millisecond.
const LOOKS_MAX: u32 = 200_000;

#[async_trait]
impl Clock for WatchfulClock {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        let millis = u64::try_from(now.as_millis()).unwrap();
        if self.seen.swap(millis, Ordering::SeqCst) == millis {
            let times = self.times.fetch_add(1, Ordering::SeqCst);
            assert!(times < LOOKS_MAX, "turns round on the spot at {now}");
        } else {
            self.times.store(0, Ordering::SeqCst);
        }
        now
    }

    async fn sleep_until(&self, at: Timestamp) {
        self.clock.sleep_until(at).await;
    }
}

/// Dice that make whoever throws them panic, when told.
#[derive(Debug)]
pub(in crate::frontier) struct LoadedDice {
    dice: SeededDice,
    panics: AtomicU32,
}

impl LoadedDice {
    pub(in crate::frontier) fn new(seed: u64) -> Self {
        Self { dice: SeededDice::new(seed), panics: AtomicU32::new(0) }
    }

    /// The next throws panic.
    pub(in crate::frontier) fn load(&self, panics: u32) {
        self.panics.store(panics, Ordering::SeqCst);
    }
}

impl Dice for LoadedDice {
    fn throw(&self) -> u64 {
        let left = self
            .panics
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(left.is_err(), "the dice are loaded");
        self.dice.throw()
    }
}

/// Snapshots whose reader panics, when told.
#[derive(Debug, Default)]
pub(in crate::frontier) struct LoadedSnapshots {
    kept: MemorySnapshots,
    pub(in crate::frontier) panics: AtomicU32,
}

impl SnapshotStore for LoadedSnapshots {
    fn get(&self, host: HostId) -> Option<Vec<u8>> {
        let left = self
            .panics
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(left.is_err(), "the snapshots are loaded");
        self.kept.get(host)
    }

    fn put(&self, host: HostId, snapshot: Vec<u8>) {
        self.kept.put(host, snapshot);
    }

    fn remove(&self, host: HostId) {
        self.kept.remove(host);
    }
}

/// Names to addresses: the table, else 10.0.0.1. A name that ends in `.gone` does not resolve.
#[derive(Debug, Default)]
pub(in crate::frontier) struct Table(pub(in crate::frontier) Mutex<BTreeMap<String, IpAddr>>);

#[async_trait]
impl Resolver for Table {
    async fn resolve(&self, host: &str) -> Result<Resolved, Reason> {
        if host.ends_with(".gone") {
            return Err(Reason::Dns { why: "no such name".to_owned() });
        }
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = table.get(host).copied().unwrap_or(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        Ok(Resolved { addresses: vec![address], until: Timestamp::NEVER })
    }
}

#[derive(Debug)]
pub(in crate::frontier) struct NoExchange;

#[async_trait]
impl Exchange for NoExchange {
    async fn exchange(&self, request: ExchangeRequest) -> Result<Exchanged, ExchangeFailure> {
        panic!("the frontier does not fetch: {request:?}");
    }
}

/// An object store in memory whose writes and reads fail, or take long, when told.
#[derive(Debug)]
pub(in crate::frontier) struct FlakyStore {
    inner: InMemory,
    pub(in crate::frontier) fails: AtomicBool,
    pub(in crate::frontier) slow_ms: AtomicU64,
}

impl FlakyStore {
    pub(in crate::frontier) fn new() -> Self {
        let (fails, slow_ms) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { inner: InMemory::new(), fails, slow_ms }
    }

    async fn trouble(&self) -> object_store::Result<()> {
        let wait = self.slow_ms.load(Ordering::SeqCst);
        if wait > 0 {
            #[expect(clippy::disallowed_methods, reason = "the store stands for the outside")]
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        match self.fails.load(Ordering::SeqCst) {
            true => {
                Err(object_store::Error::Generic { store: "flaky", source: "told to fail".into() })
            }
            false => Ok(()),
        }
    }
}

impl fmt::Display for FlakyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("flaky")
    }
}

#[async_trait]
impl ObjectStore for FlakyStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.trouble().await?;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.trouble().await?;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// An actor that takes everything and does nothing.
pub(in crate::frontier) struct Nobody;

impl Actor for Nobody {
    type Msg = OutputMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<OutputMsg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}
