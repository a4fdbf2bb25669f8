//! The order of keys is the order of what they stand for.

use proptest::prelude::*;

use super::*;

fn url_ids() -> impl Strategy<Value = UrlId> {
    (0..4_u64, any::<u64>(), 0..3_u8).prop_map(|(host, hash, disambiguator)| UrlId {
        host: HostId(host.wrapping_mul(u64::MAX / 3)),
        hash,
        disambiguator,
    })
}

fn times() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp::from_millis)
}

fn keys() -> impl Strategy<Value = Key> {
    let named = "[a-z0-9:]{0,12}";
    prop_oneof![
        url_ids().prop_map(Key::Url),
        url_ids().prop_map(Key::Visit),
        url_ids().prop_map(Key::Failing),
        any::<u64>().prop_map(|host| Key::Unjudged(HostId(host))),
        (any::<u8>(), any::<u64>(), url_ids()).prop_map(|(band, order, id)| Key::Queue {
            band,
            order,
            id
        }),
        (times(), url_ids()).prop_map(|(due, id)| Key::Due { due, id }),
        url_ids().prop_map(Key::Sleeper),
        any::<u64>().prop_map(|host| Key::Host(HostId(host))),
        any::<u64>().prop_map(|host| Key::Counts(HostId(host))),
        any::<u64>().prop_map(|host| Key::Robots(HostId(host))),
        (url_ids(), any::<u32>()).prop_map(|(id, v)| Key::ToParse(id, UrlVersion(v))),
        url_ids().prop_map(Key::Dead),
        any::<u64>().prop_map(|seq| Key::Outbox(EventSeq(seq))),
        (times(), any::<u64>(), any::<u32>())
            .prop_map(|(until, batch, part)| Key::Ledger(LedgerPlace { until, batch, part })),
        named.prop_map(Key::Payload),
        any::<u128>().prop_map(Key::Text),
        named.prop_map(Key::Exclusion),
        named.prop_map(Key::Purge),
        named.prop_map(Key::Meta),
        named.prop_map(Key::Output),
        named.prop_map(Key::Own),
    ]
}

proptest! {
    #[test]
    fn keys_survive_their_bytes(key in keys()) {
        let bytes = key.encode();
        prop_assert_eq!(Key::decode(&bytes), Some(key.clone()));
        prop_assert!(key.kind().range().contains(&bytes));
    }

    #[test]
    fn junk_is_no_key_or_encodes_to_itself(
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        if let Some(key) = Key::decode(&bytes) {
            prop_assert_eq!(key.encode(), bytes);
        }
    }

    #[test]
    fn queues_sort_by_host_band_order_and_hash(
        a in (url_ids(), 0..3_u8, 0..3_u64), b in (url_ids(), 0..3_u8, 0..3_u64),
    ) {
        let place = |(id, band, order): (UrlId, u8, u64)| {
            (id.host, band, order, id.hash, id.disambiguator)
        };
        let bytes = |(id, band, order)| Key::Queue { band, order, id }.encode();
        prop_assert_eq!(place(a).cmp(&place(b)), bytes(a).cmp(&bytes(b)));
    }

    #[test]
    fn due_rows_sort_by_time(a in (times(), url_ids()), b in (times(), url_ids())) {
        let bytes = |(due, id)| Key::Due { due, id }.encode();
        prop_assert_eq!(a.cmp(&b), bytes(a).cmp(&bytes(b)));
        let due = time_range(Kind::Due, Timestamp::EPOCH, b.0);
        prop_assert_eq!(due.contains(&bytes(a)), a.0 < b.0);
    }

    #[test]
    fn ledger_and_outbox_sort_by_number(
        a in any::<(u32, u64, u32)>(), b in any::<(u32, u64, u32)>(),
    ) {
        let ledger = |(until, batch, part): (u32, u64, u32)| {
            let until = Timestamp::from_millis(i64::from(until));
            Key::Ledger(LedgerPlace { until, batch, part }).encode()
        };
        prop_assert_eq!(a.cmp(&b), ledger(a).cmp(&ledger(b)));
        let outbox = |seq| Key::Outbox(EventSeq(seq)).encode();
        prop_assert_eq!(a.1.cmp(&b.1), outbox(a.1).cmp(&outbox(b.1)));
    }

    #[test]
    fn a_host_has_its_own_range(host in any::<u64>(), id in url_ids()) {
        for (kind, key) in [(Kind::Url, Key::Url(id)), (Kind::Sleeper, Key::Sleeper(id))] {
            let inside = host_range(kind, HostId(host)).contains(&key.encode());
            prop_assert_eq!(inside, id.host.0 == host);
            prop_assert!(host_range(kind, id.host).contains(&key.encode()));
        }
    }
}

#[test]
fn a_host_and_its_counts_are_neighbours() {
    let row = |key: Key| key.encode();
    let (host, next) = (HostId(7), HostId(8));
    assert!(row(Key::Host(host)) < row(Key::Counts(host)));
    assert!(row(Key::Counts(host)) < row(Key::Host(next)));
}

#[test]
fn behind_a_key_comes_the_next_one() {
    let seen = Key::Outbox(EventSeq(5));
    let rest = after(Kind::Outbox.range(), Some(&seen));
    assert!(!rest.contains(&seen.encode()));
    assert!(rest.contains(&Key::Outbox(EventSeq(6)).encode()));
    assert_eq!(after(Kind::Outbox.range(), None), Kind::Outbox.range());
}

#[test]
fn the_last_host_has_a_range() {
    let id = UrlId { host: HostId(u64::MAX), hash: u64::MAX, disambiguator: u8::MAX };
    assert!(host_range(Kind::Url, id.host).contains(&Key::Url(id).encode()));
    assert!(!host_range(Kind::Url, id.host).contains(&Key::Visit(id).encode()));
}
