//! A4: a clock that was set back.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_clock_set_back_does_not_stop_the_store() {
    let objects = Objects::memory();
    let clock = |secs| StoreOptions {
        clock: Arc::new(TokioClock::starting_at(at(secs))),
        ..options(&objects)
    };
    let store = ShardStore::open(clock(86_400)).await.unwrap();
    write(&store, vec![known(&entry(1, 0, 1))]).await;
    store.close(DEADLINE).await.unwrap();
    let store = ShardStore::open(clock(0)).await.unwrap();
    write(&store, vec![known(&entry(1, 0, 2))]).await;
    store.flush(DEADLINE).await.unwrap();
    assert_eq!(store.url_ids(None, 9).await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_clock_set_back_behind_the_newest_file_does_not_stop_the_store() {
    let objects = Objects::memory();
    let clock = |secs| StoreOptions {
        clock: Arc::new(TokioClock::starting_at(at(secs))),
        ..options(&objects)
    };
    let ahead = clock(86_400);
    let running = Arc::clone(&ahead.clock);
    let store = ShardStore::open(ahead).await.unwrap();
    write(&store, vec![known(&entry(1, 0, 1))]).await;
    store.flush(DEADLINE).await.unwrap();
    // The file that the close writes is an hour newer than its newest row.
    running.sleep(Duration::from_secs(3600)).await;
    store.close(DEADLINE).await.unwrap();
    let store = ShardStore::open(clock(0)).await.unwrap();
    write(&store, vec![known(&entry(1, 0, 2))]).await;
    store.close(DEADLINE).await.unwrap();
    let store = ShardStore::open(clock(1)).await.unwrap();
    assert_eq!(store.url_ids(None, 9).await.unwrap().len(), 2);
}
