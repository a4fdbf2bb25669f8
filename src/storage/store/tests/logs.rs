//! The outbox and the ledger: entries by number and by time, however they lie in rows.

use super::*;
use crate::storage::LedgerPlace;
use crate::types::{LeaseId, LedgerRow, Outcome};

fn ended(lease: u64, secs: i64) -> Change {
    let row = LedgerRow::Ended {
        lease: LeaseId(lease),
        sent_at: None,
        ended_at: at(secs),
        outcome: Outcome::Timeout,
        address: None,
    };
    Change::Record { at: at(secs), row: Box::new(row) }
}

fn leases(entries: &[(Timestamp, LedgerRow)]) -> Vec<u64> {
    entries.iter().map(|(_, row)| row.lease().0).collect()
}

/// All of the ledger from a time on, a part at a time.
async fn read(store: &ShardStore, from: i64, enough: usize) -> Vec<u64> {
    let (mut all, mut after): (_, Option<LedgerPlace>) = (Vec::new(), None);
    loop {
        let (entries, more) = store.ledger(at(from), after, enough).await.unwrap();
        all.extend(leases(&entries));
        match more {
            Some(place) => assert!(after.replace(place).is_none_or(|before| before < place)),
            None => return all,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_ledger_is_read_from_a_time_on_whatever_lies_in_one_row_with_it() {
    let store = open(&Objects::memory()).await;
    write(&store, vec![ended(1, 10), ended(2, 30), ended(3, 20)]).await;
    // A clock that was set back.
    write(&store, vec![ended(4, 25), ended(5, 5)]).await;
    write(&store, vec![ended(6, 40)]).await;
    for enough in [1, 2, 100] {
        assert_eq!(read(&store, 0, enough).await, [4, 5, 1, 2, 3, 6]);
        assert_eq!(read(&store, 20, enough).await, [4, 2, 3, 6]);
        assert_eq!(read(&store, 31, enough).await, [6]);
        assert_eq!(read(&store, 41, enough).await, [0_u64; 0]);
    }
    store.close(DEADLINE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_large_batch_fills_several_rows_and_loses_no_entry() {
    let store = open(&Objects::memory()).await;
    let (last, count) = (3_000, 3_000);
    let changes = (1..=last).flat_map(|n| [ended(n, 1), event(&entry(1, 0, n))]);
    let written = write(&store, changes.collect()).await;
    assert_eq!(written.events, Some((EventSeq(1), EventSeq(last))));
    let two = write(&store, vec![event(&entry(1, 0, 7)), ended(last + 1, 1)]).await;
    assert_eq!(two.events, Some((EventSeq(last + 1), EventSeq(last + 1))));
    store.flush(DEADLINE).await.unwrap();
    let all: Vec<u64> = (1..=last + 1).collect();
    assert_eq!(read(&store, 0, 500).await, all);
    assert_eq!(numbers(&store).await, all[..1000]);
    for after in [0, 1, 62, 63, 64, 1_000, last - 1, last] {
        let events = store.events(EventSeq(after), 100).await.unwrap();
        let numbers: Vec<u64> = events.iter().map(|(seq, _)| seq.0).collect();
        let from = usize::try_from(after).unwrap();
        assert_eq!(numbers, all[from..(from + 100).min(all.len())]);
        for (seq, event) in events.iter().filter(|(seq, _)| seq.0 <= last) {
            let Subject::Url { url, .. } = &event.subject else { panic!("{event:?}") };
            assert_eq!(*url, format!("https://h1.example/{}", seq.0));
        }
    }
    let rows = async |kind: Kind| {
        let mut scan = store.db().scan(kind.range()).await.unwrap();
        let mut sizes = Vec::new();
        while let Some(row) = scan.next().await.unwrap() {
            sizes.push(row.value.len());
        }
        sizes
    };
    for kind in [Kind::Outbox, Kind::Ledger] {
        let sizes = rows(kind).await;
        assert!(sizes.len() > 2 && sizes.len() < count / 50, "{kind}: {sizes:?}");
        assert!(sizes.iter().all(|size| *size < 17 << 10), "{kind}: {sizes:?}");
    }
    store.close(DEADLINE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_damaged_row_of_a_log_is_an_error() {
    let store = open(&Objects::memory()).await;
    write(&store, vec![event(&entry(1, 0, 1)), event(&entry(1, 0, 2))]).await;
    let key = Key::Outbox(EventSeq(2)).encode();
    let row = store.db().get(&key).await.unwrap().unwrap();
    store.db().put(&key, &row[..row.len() - 1]).await.unwrap();
    store.flush(DEADLINE).await.unwrap();
    let error = store.events(EventSeq(0), 9).await.unwrap_err().to_string();
    assert!(error.contains("outbox"), "{error}");
    store.close(DEADLINE).await.unwrap();
}
