//! SURT: a URL turned round so that neighbours sort together, `com,example)/path?query`.
//!
//! Two uses, two forms:
//! - [`surt_key`] is the key of CDXJ lines (O3), exactly as the replay tools make it: `www.` and
//!   session ids gone, lower case, escapes undone, query sorted, trailing slash gone. Many URLs
//!   share one key; it finds captures, and never identifies a URL (D1).
//! - [`SurtPrefixes`] holds scope rules. They speak of URLs as they are: host labels with a comma
//!   behind each (`com,example,www,)/Path/`), so that a rule can end between labels.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use url::{Host, Url};

use crate::types::CrawlUrl;

/// The key of `url` in a CDXJ index.
pub fn surt_key(url: &CrawlUrl) -> String {
    let url = url.as_url();
    let mut key = match url.host() {
        // Dots are folded once, as the tools do it.
        Some(Host::Domain(name)) => {
            let name = name.replace("..", ".");
            reversed(without_www(name.trim_matches('.')), "")
        }
        Some(Host::Ipv4(address)) => reversed(&address.to_string(), ""),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => String::new(),
    };
    if let Some(port) = url.port() {
        write!(key, ":{port}").expect("writing to a String cannot fail");
    }
    key.push(')');
    let path = key_path(url.path());
    key.push_str(if path.is_empty() { "/" } else { &path });
    if let Some(query) = url.query().map(key_query).filter(|query| !query.is_empty()) {
        key.push('?');
        key.push_str(&query);
    }
    key
}

/// SURT rules of a scope, looked up by binary search: a million of them cost twenty comparisons.
#[derive(Clone, Debug, Default)]
pub struct SurtPrefixes {
    /// Sorted; none begins with another.
    prefixes: Vec<Box<str>>,
}

impl SurtPrefixes {
    /// Takes rules in the form that [`parse_prefix`] makes.
    pub fn new(mut prefixes: Vec<Box<str>>) -> Self {
        prefixes.sort_unstable();
        prefixes.dedup_by(|next, kept| next.starts_with(&**kept));
        prefixes.shrink_to_fit();
        Self { prefixes }
    }

    /// The rule that `url` falls under, its host taken as it is or without `www.`.
    pub fn find(&self, url: &CrawlUrl) -> Option<&str> {
        if self.prefixes.is_empty() {
            return None;
        }
        let url = url.as_url();
        let name = url.host_str().unwrap_or_default().trim_end_matches('.');
        let bare = without_www(name);
        self.prefix_of(&scope_form(url, name))
            .or_else(|| if bare == name { None } else { self.prefix_of(&scope_form(url, bare)) })
    }

    fn prefix_of(&self, form: &str) -> Option<&str> {
        let after = self.prefixes.partition_point(|prefix| &**prefix <= form);
        let prefix = self.prefixes.get(after.checked_sub(1)?)?;
        form.starts_with(&**prefix).then_some(prefix)
    }
}

/// Reads a SURT prefix as people write it: `http://(com,example,`, `(com,example,)/path`,
/// `com,example)/path`. The scheme does not count, and a rule ends between labels, so
/// `com,example` does not mean `com,examples`.
///
/// # Errors
/// One sentence on what is wrong with it.
pub fn parse_prefix(text: &str) -> Result<String, String> {
    let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
    let bare = bare.strip_prefix('(').unwrap_or(bare);
    let (host, path) = match bare.split_once(')') {
        Some((host, path)) => (host, Some(path)),
        None => (bare, None),
    };
    let wrong = |why: &str| {
        let example = "`com,example,` or `com,example)/a`";
        Err(format!("`{text}` is not a SURT prefix such as {example}{why}"))
    };
    if host.is_empty() || host.contains(['/', '(', ' ']) {
        return wrong("");
    }
    if path.is_some_and(|path| !(path.is_empty() || path.starts_with('/'))) {
        return wrong(": behind `)` comes a path, which begins with `/`");
    }
    let is_address = host.starts_with('[');
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !is_address || name.ends_with([']', ',']) => (name, Some(port)),
        _ => (host, None),
    };
    let mut prefix = name.trim_end_matches(',').to_ascii_lowercase();
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return wrong(": behind `:` comes the number of a port");
    }
    let is_ip = is_address || prefix.parse::<Ipv4Addr>().is_ok();
    if prefix.is_empty() || prefix.starts_with(',') || (!is_ip && prefix.contains('.')) {
        return wrong(": the labels of a name come in reverse order, with commas between them");
    }
    let whole = path.is_some() || port.is_some() || is_ip || prefix.contains(',');
    if !whole && !psl::suffix(prefix.as_bytes()).is_some_and(|suffix| suffix.is_known()) {
        let why =
            format!("; no name is known to end in `{prefix}`, so `domain:{prefix}` is meant?");
        return wrong(&why);
    }
    prefix.push(',');
    if let Some(port) = port {
        prefix.push(':');
        prefix.push_str(port);
    }
    if let Some(path) = path {
        prefix.push(')');
        prefix.push_str(path);
    }
    Ok(prefix)
}

/// The forms of a URL that a prefix may begin: its host as it is, then without `www.`.
pub(super) fn scope_forms(url: &CrawlUrl) -> impl Iterator<Item = String> + use<> {
    let url = url.as_url();
    let name = url.host_str().unwrap_or_default().trim_end_matches('.');
    let bare = without_www(name);
    let without = (bare != name).then(|| scope_form(url, bare));
    [Some(scope_form(url, name)), without].into_iter().flatten()
}

/// `com,example,www,:8080)/Path/?query`: the form that prefixes are compared with.
fn scope_form(url: &Url, name: &str) -> String {
    let mut form = match url.host() {
        Some(Host::Domain(_)) => reversed(name, ","),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => format!("{name},"),
    };
    if let Some(port) = url.port() {
        write!(form, ":{port}").expect("writing to a String cannot fail");
    }
    form.push(')');
    form.push_str(url.path());
    if let Some(query) = url.query() {
        form.push('?');
        form.push_str(query);
    }
    form
}

/// `www.example.com` as `com,example,www`, then `end`.
fn reversed(name: &str, end: &str) -> String {
    let mut out = String::with_capacity(name.len() + end.len());
    for label in name.rsplit('.') {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(label);
    }
    out.push_str(end);
    out
}

/// `www.`, `www2.` and the like.
fn without_www(name: &str) -> &str {
    name.strip_prefix("www")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        .and_then(|rest| rest.strip_prefix('.'))
        .unwrap_or(name)
}

fn key_path(path: &str) -> String {
    let decoded = decoded(path.as_bytes());
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in decoded.split(|octet| *octet == b'/') {
        match segment {
            b"" | b"." => {}
            // At the root the tools keep the dots, once.
            b".." if !segments.is_empty() => drop(segments.pop()),
            _ => segments.push(segment),
        }
    }
    let mut out = String::with_capacity(path.len());
    for segment in segments {
        out.push('/');
        push_escaped(&mut out, segment);
    }
    without_path_session(out)
}

fn key_query(query: &str) -> String {
    let mut out = String::with_capacity(query.len());
    push_escaped(&mut out, &decoded(query.as_bytes()));
    let out = without_query_session(out);
    let mut parts: Vec<_> = out
        .split('&')
        .map(|part| part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value))))
        .collect();
    parts.sort();
    let joined: Vec<String> = parts
        .into_iter()
        .map(|(name, value)| value.map_or(name.to_owned(), |value| format!("{name}={value}")))
        .collect();
    joined.join("&")
}

/// Undoes percent-encoding until nothing is left to undo.
fn decoded(text: &[u8]) -> Vec<u8> {
    let mut octets = text.to_vec();
    loop {
        let next: Vec<u8> = percent_encoding::percent_decode(&octets).collect();
        if next.len() == octets.len() {
            return octets;
        }
        octets = next;
    }
}

/// Lower case, with the octets escaped that no URL can carry.
fn push_escaped(out: &mut String, octets: &[u8]) {
    for octet in octets {
        if octet.is_ascii_graphic() && !matches!(octet, b'%' | b'#') {
            out.push(char::from(octet.to_ascii_lowercase()));
        } else {
            write!(out, "%{octet:02x}").expect("writing to a String cannot fail");
        }
    }
}

/// ASP.NET puts its session into a segment: `/(s(24 characters))/page.aspx`, `/(24 characters)/…`.
fn without_path_session(path: String) -> String {
    let Some((kept, rest)) = path.split_once("/(") else {
        return path;
    };
    let Some((session, page)) = rest.split_once(")/") else {
        return path;
    };
    let is_id = |id: &str| id.len() == 24 && id.bytes().all(|octet| octet.is_ascii_alphanumeric());
    let keyed = || {
        !session.is_empty()
            && session.strip_suffix(')').is_some_and(|keys| {
                keys.split(')').all(|key| {
                    key.split_once('(').is_some_and(|(name, id)| name.len() == 1 && is_id(id))
                })
            })
    };
    if page.contains(".aspx") && (is_id(session) || keyed()) {
        format!("{kept}/{page}")
    } else {
        path
    }
}

/// Session parameters that replay tools drop, in the order they do.
fn without_query_session(mut query: String) -> String {
    for name in ["jsessionid=", "phpsessid=", "sid="] {
        query = without(&query, name, |rest| {
            let value = first(rest);
            let is_id = value.len() == 32 && value.bytes().all(|o| o.is_ascii_alphanumeric());
            is_id.then_some(32)
        });
    }
    query = without(&query, "aspsessionid", |rest| {
        let parameter = first(rest);
        let (key, value) = parameter.split_once('=')?;
        let letters = |text: &str| text.bytes().all(|octet| octet.is_ascii_alphabetic());
        let is_id = key.len() == 8 && value.len() == 24 && letters(key) && letters(value);
        is_id.then_some(parameter.len())
    });
    without(&query, "cfid=", |rest| {
        let (id, after) = rest.split_once('&')?;
        let token = first(after.strip_prefix("cftoken=")?);
        let is_id = !id.is_empty() && !token.is_empty();
        is_id.then_some(id.len() + "&cftoken=".len() + token.len())
    })
}

/// `text` up to its first `&`.
fn first(text: &str) -> &str {
    text.split('&').next().unwrap_or_default()
}

/// Takes out the last `name` whose rest `session` recognises, with the `&` behind it.
fn without(query: &str, name: &str, session: impl Fn(&str) -> Option<usize>) -> String {
    for (at, found) in query.rmatch_indices(name) {
        let (before, rest) = query.split_at(at);
        let rest = rest.get(found.len()..).unwrap_or_default();
        if let Some(after) = session(rest).and_then(|length| rest.get(length..)) {
            return format!("{before}{}", after.strip_prefix('&').unwrap_or(after));
        }
    }
    query.to_owned()
}

#[cfg(test)]
mod tests;
