//! D1: any text as a URL, and as a reference against one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mehman::policy::normalise::recognised;
use mehman::policy::surt::{parse_prefix, surt_key};
use mehman::types::{CrawlUrl, HostKey};

fuzz_target!(|text: &str| {
    let (base, reference) = text.split_once('\n').unwrap_or((text, "a/../b?c#d"));
    parse_prefix(text).ok();
    let _is_one = HostKey::parse(text);
    let Ok(base) = CrawlUrl::parse(base) else { return };
    let joined = base.join(reference);
    for url in [Some(base), joined.ok()].into_iter().flatten() {
        assert!(url.as_str().starts_with("http"));
        assert!(!url.as_str().contains('#') && url.path_and_query().starts_with('/'));
        // What was parsed once is its own form, and so is what it is recognised by.
        assert_eq!(CrawlUrl::parse(url.as_str()).as_ref(), Ok(&url));
        let known = recognised(&url).into_owned();
        let again = CrawlUrl::parse(&known).expect("the recognised form is a URL");
        assert_eq!(recognised(&again), known);
        assert!(!surt_key(&url).is_empty());
        assert_eq!(HostKey::parse(url.host_key().as_str()), Some(url.host_key()));
    }
});
