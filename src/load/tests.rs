//! A small load: everything arrives, once, also after an end without a close.

use super::*;

fn options(data: PathBuf) -> LoadOptions {
    let set = [
        ("frontier.shards", "2"),
        ("limits.memory", "256MiB"),
        ("politeness.min_delay", "1ms"),
        ("politeness.per_address_min_delay", "1ms"),
        ("data.flush_interval", "50ms"),
    ];
    let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    LoadOptions { data, hosts: 20, links: 50, set }
}

async fn until_served(load: &Load, served: &Served, pages: u64) {
    let clock = Arc::clone(load.clock());
    let deadline = clock.now() + Duration::from_secs(60);
    while served.pages() < pages {
        assert!(clock.now() < deadline, "{served:?} of {pages}: {:?}", load.counts().await);
        clock.sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_url_is_admitted_granted_and_published_once() {
    let data = tempfile::tempdir().unwrap();
    let load = Load::open(&options(data.path().to_owned())).await.unwrap();
    let admitted = load.admit_new(0, 1000).await;
    assert_eq!(admitted, Admitted { added: 1000, known: 0, refused: 0 });
    let mixed = load.admit_mixed(1000, 10).await;
    assert_eq!(mixed, Admitted { added: 50, known: 450, refused: 0 });
    let served = load.serve(16);
    until_served(&load, &served, 1050).await;
    while load.views().await.iter().any(|view| view.being_parsed > 0) {
        load.clock().sleep(Duration::from_millis(10)).await;
    }
    let counts = load.counts().await;
    assert_eq!((counts.known, counts.queued), (1050, 0));
    assert_eq!((served.pages(), served.robots(), served.published()), (1050, 20, 1050));
    let views = load.views().await;
    assert!(views.iter().all(|view| view.violations == 0 && view.repeated == 0), "{views:#?}");
    load.close().await.unwrap();
    let load = Load::open(&options(data.path().to_owned())).await.unwrap();
    assert_eq!(load.counts().await.known, 1050);
    assert_eq!(load.admit_new(0, 1000).await.known, 1000);
    load.close().await.unwrap();
    assert!(Space::of(data.path()).bytes > 0);
}
