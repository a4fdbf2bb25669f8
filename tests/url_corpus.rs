//! D1, O3: URLs against the vectors of other projects in `tests/data/urls`.
//!
//! Every vector is run that speaks of a form we claim. Where ours is another, it stands in
//! `docs/url-disagreements.md` with both forms and the reason: a new difference fails, and so does
//! one that has gone.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use bytes::Bytes;
use mehman::parse::{Input, Limits, parse};
use mehman::policy::normalise::recognised;
use mehman::policy::surt::surt_key;
use mehman::types::{CrawlUrl, Headers, HostKey, Reason};
use serde_json::Value;
use url::Url;

use disagreements::{Vector, listed};

#[path = "support/disagreements.rs"]
mod disagreements;

const LIST: &str = "docs/url-disagreements.md";
/// What both sides say of a URL that is none, or none of ours.
const REFUSED: &str = "refused";
const CREDENTIALS: &str = "refused for its credentials";

fn file(name: &str) -> String {
    String::from_utf8(disagreements::read(name)).unwrap()
}

/// The items of a corpus; what stands between them as a remark is left out.
fn corpus(name: &str) -> Vec<Value> {
    let items: Value = serde_json::from_str(&file(&format!("tests/data/urls/{name}"))).unwrap();
    let Value::Array(items) = items else { panic!("{name} is no list") };
    items.into_iter().filter(Value::is_object).collect()
}

/// A corpus: its name, and the vectors of it that were run.
type Set<'s> = (&'s str, Vec<Vector>);

/// How many vectors of a set are run and on how many we differ, as the document has it.
fn counted(set: &str) -> Option<(usize, usize)> {
    let text = file("docs/urls.md");
    let row = text.lines().find_map(|line| line.strip_prefix(&format!("| `{set}` | ")))?;
    let mut cells = row.trim_end_matches('|').rsplit(" | ");
    let differ = cells.next()?.trim().parse().ok()?;
    Some((cells.next()?.trim().parse().ok()?, differ))
}

/// Every difference is listed, and everything listed is one.
fn agree<const N: usize>(sets: [Set<'_>; N]) {
    let wrong: String = sets.into_iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

fn difference((set, vectors): Set<'_>) -> Option<String> {
    let numbers = disagreements::count(&vectors);
    assert_eq!(counted(set), Some(numbers), "{set}: run and different, in docs/urls.md");
    disagreements::difference(LIST, set, &vectors)
}

fn read(input: &str, base: Option<&str>) -> Result<CrawlUrl, Reason> {
    let Some(base) = base else { return CrawlUrl::parse(input) };
    if let Ok(base) = CrawlUrl::parse(base) {
        return base.join(input);
    }
    let not_a_url = |why: url::ParseError| Reason::NotAUrl { why: why.to_string() };
    let url = Url::parse(base).and_then(|base| base.join(input)).map_err(not_a_url)?;
    CrawlUrl::from_url(url)
}

fn ours(read: Result<CrawlUrl, Reason>) -> String {
    match read {
        Ok(url) => url.to_string(),
        Err(Reason::Credentials) => CREDENTIALS.to_owned(),
        Err(_) => REFUSED.to_owned(),
    }
}

fn without_fragment(url: &str) -> &str {
    url.split_once('#').map_or(url, |(url, _)| url)
}

/// What another crawler expects, as far as we claim the same: no fragment, http and https.
fn expected(url: Option<&str>) -> String {
    let Some(url) = url else { return REFUSED.to_owned() };
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    if !matches!(scheme, "http" | "https") {
        return REFUSED.to_owned();
    }
    match Url::parse(url) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => CREDENTIALS.to_owned(),
        Ok(_) | Err(_) => without_fragment(url).to_owned(),
    }
}

fn shown(input: &str, base: Option<&str>) -> String {
    base.map_or(input.to_owned(), |base| format!("{input} from {base}"))
}

/// WPT's own form, which others extend.
fn parsing(name: &str) -> Vec<Vector> {
    let vector = |case: Value| {
        let input = case["input"].as_str()?;
        let base = case["base"].as_str();
        let theirs = if case["failure"].as_bool() == Some(true) {
            REFUSED.to_owned()
        } else {
            let is = |field: &str| case[field].as_str().is_some_and(|value| !value.is_empty());
            match case["protocol"].as_str() {
                Some("http:" | "https:") if is("username") || is("password") => {
                    CREDENTIALS.to_owned()
                }
                Some("http:" | "https:") => without_fragment(case["href"].as_str()?).to_owned(),
                Some(_) | None => REFUSED.to_owned(),
            }
        };
        Some(Vector::new(shown(input, base), ours(read(input, base)), theirs))
    };
    corpus(name).into_iter().filter_map(vector).collect()
}

#[test]
fn urls_are_parsed_as_the_standard_says() {
    agree([
        ("urltestdata", parsing("wpt/urltestdata.json")),
        ("ada", parsing("wpt/ada_extra_urltestdata.json")),
        ("ada-long", parsing("wpt/ada_long_urltestdata.json")),
    ]);
}

/// Names as the standard's "domain to ASCII" has them.
fn names(name: &str) -> Vec<Vector> {
    let vector = |case: Value| {
        let input = case["input"].as_str().filter(|input| !input.is_empty())?;
        let url = CrawlUrl::parse(&format!("https://{input}/x")).ok();
        let host = url.as_ref().and_then(|url| url.as_url().host_str());
        let theirs = case["output"].as_str().unwrap_or(REFUSED);
        Some(Vector::new(input, host.unwrap_or(REFUSED), theirs))
    };
    corpus(name).into_iter().filter_map(vector).collect()
}

/// The standard lets a name of ASCII through although a label of it begins like Punycode and is
/// none; the `url` crate refuses it. These many are a list of their own.
fn is_no_punycode(vector: &Vector) -> bool {
    let Vector { input, ours, theirs } = vector;
    ours == REFUSED && input.is_ascii() && input.eq_ignore_ascii_case(theirs)
}

#[test]
fn international_names_are_encoded_as_the_standard_says() {
    let (toascii, long) = (names("wpt/toascii.json"), names("wpt/IdnaTestV2.json"));
    let refused: BTreeSet<&str> = toascii
        .iter()
        .chain(&long)
        .filter(|vector| is_no_punycode(vector))
        .map(|vector| vector.input.as_str())
        .collect();
    let listed = file("tests/data/urls/no_punycode.txt");
    let listed: BTreeSet<&str> = listed.lines().collect();
    assert!(refused.iter().all(|name| name.to_ascii_lowercase().contains("xn--")));
    let changed: Vec<_> = refused.symmetric_difference(&listed).collect();
    assert!(changed.is_empty(), "not as in no_punycode.txt: {changed:#?}");

    let others = |mut vectors: Vec<Vector>| {
        vectors.retain(|vector| !is_no_punycode(vector));
        vectors
    };
    agree([("toascii", others(toascii)), ("IdnaTestV2", others(long))]);
}

/// A query is encoded in the charset of its page, whatever the path is encoded in.
#[test]
fn queries_are_encoded_in_the_charset_of_their_page() {
    let mut vectors = Vec::new();
    for case in corpus("wpt/percent-encoding.json") {
        let input = case["input"].as_str().unwrap();
        for (charset, theirs) in case["output"].as_object().unwrap() {
            let page = format!("<a href=\"/x?{input}#\">x</a>");
            let encoding = encoding_rs::Encoding::for_label(charset.as_bytes()).unwrap();
            let (body, _, lossy) = encoding.encode(&page);
            // What the page cannot carry as it is stands there as a reference.
            let body = if lossy {
                encoding.encode(&escaped(&page)).0.into_owned()
            } else {
                body.into_owned()
            };
            let content_type = Bytes::from(format!("text/html; charset={charset}"));
            let headers: Headers = vec![("content-type".to_owned(), content_type)];
            let input_of = Input {
                url: &CrawlUrl::parse("https://a.test/").unwrap(),
                headers: &headers,
                body: &Bytes::from(body),
                product: "mehman",
                extractors: &[],
                out_of_time: &|| false,
            };
            let parsed = parse(&input_of, &Limits::default());
            let found = parsed.links.iter().next().map(|link| link.url.to_owned());
            let ours = found.unwrap_or_default().replace("https://a.test/x?", "");
            vectors.push(Vector::new(
                format!("{input} in {charset}"),
                ours,
                theirs.as_str().unwrap(),
            ));
        }
    }
    agree([("percent-encoding", vectors)]);
}

/// Everything but ASCII as a character reference.
fn escaped(page: &str) -> String {
    page.chars()
        .map(|c| if c.is_ascii() { c.to_string() } else { format!("&#{};", u32::from(c)) })
        .collect()
}

#[test]
fn references_are_resolved_as_browsers_do() {
    let vectors = |name: &str| -> Vec<Vector> {
        let vector = |case: &Value| {
            let input = case["input"].as_str()?;
            let base = case["base"].as_str();
            let theirs = expected(case["expected"].as_str());
            Some(Vector::new(shown(input, base), ours(read(input, base)), theirs))
        };
        corpus(name).iter().filter_map(vector).collect()
    };
    agree([("resolve", vectors("resolve.json")), ("heritrix", vectors("heritrix_usableuri.json"))]);
}

/// The form by which we recognise a URL, against another form.
fn recognising(cases: Vec<Value>) -> Vec<Vector> {
    let vector = |case: Value| {
        let input = case["input"].as_str()?;
        let ours = match CrawlUrl::parse(input) {
            Ok(url) => recognised(&url).into_owned(),
            Err(Reason::Credentials) => CREDENTIALS.to_owned(),
            Err(_) => REFUSED.to_owned(),
        };
        Some(Vector::new(input, ours, expected(case["expected"].as_str())))
    };
    cases.into_iter().filter_map(vector).collect()
}

#[test]
fn other_normalisers_have_the_same_form_but_for_what_is_listed() {
    agree([
        ("crawler-commons", recognising(corpus("crawler_commons_normalizer.json"))),
        ("nutch", recognising(corpus("nutch_normalizer.json"))),
        ("semantic_precise", recognising(urlcanon(&["semantic_precise"]))),
    ]);
}

fn urlcanon(kinds: &[&str]) -> Vec<Value> {
    let is_of = |case: &Value| kinds.contains(&case["canonicalizer"].as_str().unwrap());
    corpus("urlcanon.json").into_iter().filter(is_of).collect()
}

#[test]
fn other_parsers_read_what_we_read_but_for_what_is_listed() {
    let vectors = |cases: Vec<Value>| -> Vec<Vector> {
        let vector = |case: Value| {
            let input = case["input"].as_str()?;
            let is_path = case["canonicalizer"] == "path_dots/special";
            let start = if is_path { "http://h" } else { "" };
            let [url, theirs] = [input, case["expected"].as_str().unwrap_or_default()]
                .map(|rest| format!("{start}{rest}"));
            Some(Vector::new(input, ours(read(&url, None)), expected(Some(&theirs))))
        };
        cases.into_iter().filter_map(vector).collect()
    };
    agree([
        ("urlcanon", vectors(urlcanon(&["whatwg", "path_dots/special"]))),
        ("w3lib", vectors(corpus("w3lib_safe_url.json"))),
    ]);
}

#[test]
fn addresses_in_every_spelling_are_one() {
    let vectors = |cases: Vec<Value>| -> Vec<Vector> {
        let vector = |case: Value| {
            let input = case["input"].as_str()?;
            let url = CrawlUrl::parse(&format!("http://{input}/")).ok();
            let host = url.as_ref().and_then(|url| url.as_url().host());
            let address = match host {
                Some(url::Host::Ipv4(address)) => address.to_string(),
                Some(url::Host::Domain(_) | url::Host::Ipv6(_)) | None => "no address".to_owned(),
            };
            let theirs = case["expected"].as_str().unwrap_or("no address");
            Some(Vector::new(input, address, theirs))
        };
        cases.into_iter().filter_map(vector).collect()
    };
    agree([("ip-forms", vectors(corpus("ip_forms.json"))), ("ipv4", vectors(urlcanon(&["ipv4"])))]);
}

#[test]
fn registered_domains_are_those_of_the_list() {
    let vector = |case: Value| {
        let input = case["host"].as_str()?;
        let Some(key) = HostKey::parse(&format!("http://{input}")) else {
            return Some(Vector::new(
                input,
                REFUSED,
                case["registrable"].as_str().unwrap_or(REFUSED),
            ));
        };
        // A host without a registered domain stands for itself.
        let theirs = case["registrable"].as_str().map_or(key.host().to_owned(), |name| {
            let name = HostKey::parse(&format!("http://{name}"));
            name.map_or(REFUSED.to_owned(), |name| name.host().to_owned())
        });
        Some(Vector::new(input, key.domain(), theirs))
    };
    let vectors: Vec<_> =
        corpus("psl_registrable_domain.json").into_iter().filter_map(vector).collect();
    agree([("psl", vectors)]);
}

fn key(url: &str) -> String {
    CrawlUrl::parse(url).map_or(REFUSED.to_owned(), |url| surt_key(&url))
}

#[test]
fn keys_of_captures_are_those_of_other_tools() {
    let vectors = |cases: Vec<Value>| -> Vec<Vector> {
        let vector = |case: Value| {
            let input = case["input"].as_str()?;
            let is_http = input.starts_with("http://") || input.starts_with("https://");
            is_http.then(|| Vector::new(input, key(input), case["expected"].as_str().unwrap()))
        };
        cases.into_iter().filter_map(vector).collect()
    };
    agree([
        ("surt", vectors(corpus("surt.json"))),
        ("defaultIASurt", vectors(urlcanon(&["defaultIASurt"]))),
    ]);
}

/// What another canonicaliser makes one must have one key.
#[test]
fn keys_fold_what_other_canonicalisers_fold() {
    let vectors = |cases: Vec<Value>| -> Vec<Vector> {
        let vector = |case: Value| {
            let input = case["input"].as_str()?;
            let form = case["expected"].as_str()?;
            // Other schemes have no key; a scheme that is missing is for others to guess.
            let is_http = |url: &str| url.starts_with("http://") || url.starts_with("https://");
            (is_http(input.trim()) && is_http(form))
                .then(|| Vector::new(input, key(input), key(form)))
        };
        cases.into_iter().filter_map(vector).collect()
    };
    let kinds = ["google", "aggressive", "Canonicalizer.DefaultIA", "Canonicalizer.IA"];

    let session = |case: Value| {
        let (input, form) = (case["input"].as_str()?, case["expected"].as_str()?);
        let start = if case["op"] == "stripPathSessionID" { "http://h" } else { "http://h/?" };
        let [input, form] = [input, form].map(|rest| format!("{start}{rest}"));
        Some(Vector::new(&input, key(&input), key(&form)))
    };
    let sessions: Vec<_> = corpus("session_ids.json").into_iter().filter_map(session).collect();
    agree([
        ("safe-browsing", vectors(corpus("google_safebrowsing_canon.json"))),
        ("ia-canon", vectors(corpus("ia_canon.json"))),
        ("urlcanon-keys", vectors(urlcanon(&kinds))),
        ("session-ids", sessions),
    ]);
}

#[test]
fn every_disagreement_has_a_reason() {
    let text = file(LIST);
    let reasons: BTreeSet<&str> = text
        .lines()
        .skip_while(|line| *line != "## Reasons")
        .take_while(|line| !line.starts_with("## ") || *line == "## Reasons")
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(key, _)| key))
        .collect();
    let sets =
        text.lines().filter_map(|line| line.strip_prefix("## ")).filter(|set| *set != "Reasons");
    let used: BTreeSet<String> = sets.flat_map(|set| listed(&text, set).into_values()).collect();
    assert_eq!(used, reasons.into_iter().map(str::to_owned).collect());
}

/// Every row of the documents about URLs and sitemaps names tests that are there.
#[test]
fn every_row_is_held_by_a_test_that_is_there() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("src"), root.join("tests")];
    let mut code = String::new();
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            code.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
    let mut named = 0;
    for document in ["docs/urls.md", "docs/sitemaps.md"] {
        let text = file(document);
        for row in text.lines().filter(|line| line.contains("::")) {
            let tests = row.rsplit(" | ").next().unwrap().split('`').skip(1).step_by(2);
            for test in tests {
                let name = test.rsplit("::").next().unwrap();
                assert!(code.contains(&format!("fn {name}(")), "{document}: {test}");
                named += 1;
            }
        }
    }
    assert!(named > 50, "{named}");
}
