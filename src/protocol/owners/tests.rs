//! Ends of exchanges find their owner.

use tokio::sync::watch;

use super::*;
use crate::protocol::probe::probe;
use crate::protocol::{OutputMsg, Routes, ShardRoute};
use crate::types::{CrawlUrl, HostId, LeaseId, Timestamp, UrlId, UrlVersion};
use crate::world::TokioClock;

fn report() -> EndedReport {
    let completion = Completion {
        lease: LeaseId(7),
        id: UrlId { host: HostId(1), hash: 1, disambiguator: 0 },
        url: CrawlUrl::parse("http://a.test/").unwrap(),
        version: UrlVersion(1),
        outcome: Outcome::RateLimited,
        status: Some(503),
        sent_at: Some(Timestamp::EPOCH),
        ended_at: Timestamp::EPOCH,
        bytes: 0,
        retry_after: Some(Duration::from_secs(3600)),
        reason: Some(Reason::WorkerDied),
        archive: None,
        digest: None,
        validators: None,
        content_type: None,
        location: None,
        address: None,
        robots_body: None,
        max_age: None,
    };
    EndedReport { completion, response: None, permit: Permit::free() }
}

#[tokio::test(start_paused = true)]
async fn a_wait_reaches_the_shard_that_is_opened_in_place_of_the_one_that_asked() {
    let (old, _) = probe::<ShardMsg>().await;
    old.stop_and_wait(None, None).await.unwrap();
    let down = Routes { shards: vec![None], ..Routes::default() };
    let (map, routes) = watch::channel(Arc::new(down));
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(Timestamp::EPOCH));
    Owners { routes, clock: Arc::clone(&clock) }.tell_end(&old, report());
    clock.sleep(Duration::from_secs(60)).await;
    let (shard, mut hears) = probe::<ShardMsg>().await;
    let (output, _) = probe::<OutputMsg>().await;
    let up = Some(ShardRoute { shard, output });
    map.send_replace(Arc::new(Routes { shards: vec![up], ..Routes::default() }));
    let heard = tokio::time::timeout(Duration::from_secs(5), hears.recv()).await.unwrap();
    let Some(ShardMsg::Ended(report)) = heard else { panic!("{heard:?}") };
    assert_eq!(report.completion.retry_after, Some(Duration::from_secs(3600)));
}
