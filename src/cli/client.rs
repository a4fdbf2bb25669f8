//! The admin interface of a daemon, asked over HTTP.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, redirect};
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::arguments::{Common, Remote};
use super::settings::{self, Overrides};
use super::text::shell_word;
use crate::config::Config;
use crate::storage::DataDir;

/// The variable that holds the bearer token.
const TOKEN_VARIABLE: &str = "MEHMAN_ADMIN_TOKEN";

/// A connection must stand by then.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// An answer must be there by then; the daemon gives itself a minute for a batch of seeds.
const ANSWER_DEADLINE: Duration = Duration::from_secs(120);

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The name of the file in which a daemon leaves its address.
pub(super) const ADDRESS_FILE: &str = "admin.addr";

/// Why a daemon did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    /// Nobody listens.
    #[error("no daemon answers at {place}; start one with `mehman serve`{or}")]
    NoDaemon {
        /// Where, and who says so.
        place: Box<Place>,
        /// What else would do.
        or: &'static str,
    },
    /// The exchange broke.
    #[error("the daemon at {url} did not answer as it should")]
    Exchange {
        /// Where.
        url: Url,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// More than anybody reads.
    #[error("the daemon at {url} answered with more than {ANSWER_BYTES_MAX} bytes")]
    TooLong {
        /// Where.
        url: Url,
    },
    /// It refused.
    #[error("{0}")]
    Refused(Problem),
    /// It answers with something else.
    #[error("what answers at {url} is not the admin interface of mehman")]
    Foreign {
        /// Where.
        url: Url,
        /// What does not fit.
        #[source]
        source: serde_json::Error,
    },
}

/// Where a daemon is asked, and who says that it is there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    url: Url,
    /// Empty where the user said it.
    said_by: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.url)?;
        if self.said_by.is_empty() { Ok(()) } else { write!(f, " (by {})", self.said_by) }
    }
}

/// A refusal of the daemon (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Problem {
    /// The HTTP status.
    pub(super) status: u16,
    /// What it is about.
    #[serde(default)]
    title: String,
    /// This very case.
    #[serde(default)]
    detail: String,
    /// The field or parameter at fault.
    #[serde(default)]
    key: Option<String>,
    /// The line at fault.
    #[serde(default)]
    line: Option<u64>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.detail.is_empty() { &self.title } else { &self.detail })?;
        // Names of fields are of the interface; which of several it was, nobody else says.
        if let Some(key) = self.key.as_ref().filter(|key| key.contains('[')) {
            write!(f, " (at {key})")?;
        }
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        if self.status == 401 {
            write!(f, "; the token is taken from {TOKEN_VARIABLE}")?;
        }
        Ok(())
    }
}

/// A daemon to ask.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    said_by: String,
    token: Option<HeaderValue>,
    or: &'static str,
}

/// Who answers a question.
pub(super) enum Source {
    /// A daemon.
    Daemon(Client),
    /// Nobody but the data itself.
    Directory(PathBuf),
}

/// What is known of where to ask.
pub(super) struct Whereabouts {
    config: Config,
    given: Option<Url>,
    /// A data directory was named, so the daemon of another one will not do.
    named: bool,
}

impl Whereabouts {
    /// Takes `--admin`; else the address that a daemon left in the data directory (`--data`, or
    /// that of the configuration); else `admin.listen`, unless a directory was named.
    pub(super) fn of(common: &Common, remote: &Remote) -> anyhow::Result<Self> {
        let config = settings::load(common, &Overrides::default())?;
        let named = common.data.is_some();
        Ok(Self { config, given: remote.admin.clone(), named })
    }

    /// The daemon, for what only a daemon can do.
    pub(super) async fn daemon(&self) -> anyhow::Result<Client> {
        match self.find("").await? {
            Some(client) => Ok(client),
            None => Err(self.nobody()),
        }
    }

    /// Whoever can answer: the daemon that has the data, or the data.
    pub(super) async fn source(&self) -> anyhow::Result<Source> {
        let found = self.find(" or give --data").await?;
        let directory = || Source::Directory(self.config.data.dir.clone());
        match found {
            Some(client) if self.given.is_some() || !self.named => Ok(Source::Daemon(client)),
            Some(client) if client.is_there().await => Ok(Source::Daemon(client)),
            Some(_) => Ok(directory()),
            None if self.named => Ok(directory()),
            None => Err(self.nobody()),
        }
    }

    /// The configuration that led here.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The first of the places that answers, the last one otherwise; `None` where there is none.
    async fn find(&self, or: &'static str) -> anyhow::Result<Option<Client>> {
        let mut last = None;
        let places = self.places()?;
        let several = places.len() > 1;
        for place in places {
            let client = self.client(place, or)?;
            if several && !client.is_there().await {
                last = Some(client);
                continue;
            }
            return Ok(Some(client));
        }
        Ok(last)
    }

    /// Where a daemon may be, the likeliest first. What a daemon that was killed has left behind
    /// does not hide the one that listens where the configuration says.
    fn places(&self) -> anyhow::Result<Vec<Place>> {
        if let Some(url) = &self.given {
            return Ok(vec![Place { url: url.clone(), said_by: String::new() }]);
        }
        let mut places = Vec::new();
        if let Some(address) = written_address(&self.config.data.dir)? {
            let said_by = self.config.data.dir.join(ADDRESS_FILE).display().to_string();
            places.push(Place { url: url_of(&address)?, said_by });
        }
        let listen = self.config.admin.listen;
        if !self.named && listen.port() != 0 {
            let local = if listen.is_ipv4() { "127.0.0.1" } else { "[::1]" };
            let address = match listen.ip().is_unspecified() {
                true => format!("{local}:{}", listen.port()),
                false => listen.to_string(),
            };
            let place = Place { url: url_of(&address)?, said_by: "admin.listen".to_owned() };
            if places.iter().all(|other| other.url != place.url) {
                places.push(place);
            }
        }
        Ok(places)
    }

    /// Nobody says where a daemon could be asked.
    fn nobody(&self) -> anyhow::Error {
        let dir = &self.config.data.dir;
        let shown = dir.display();
        if DataDir::is_in_use(dir) {
            return anyhow::anyhow!(
                "the process that has {shown} serves no admin interface, so nobody can be asked; \
                 `crawl` serves one with --admin-listen 127.0.0.1:0"
            );
        }
        let word = shell_word(&shown.to_string());
        anyhow::anyhow!(
            "no daemon serves {shown}; start one with `mehman serve --data {word}`, or read the \
             data without one: `mehman hosts --data {word}`"
        )
    }

    fn client(&self, place: Place, or: &'static str) -> anyhow::Result<Client> {
        let variable = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let configured = self.config.admin.token.as_ref().map(|token| token.reveal().to_owned());
        let client = Client::new(place.url, variable.or(configured).as_deref(), or)?;
        Ok(Client { said_by: place.said_by, ..client })
    }
}

fn url_of(address: &str) -> anyhow::Result<Url> {
    Url::parse(&format!("http://{address}")).with_context(|| format!("`{address}` is no address"))
}

/// The address that a daemon left in its data directory.
fn written_address(directory: &Path) -> anyhow::Result<Option<String>> {
    let path = directory.join(ADDRESS_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why).with_context(|| format!("failed to read {}", path.display())),
    }
}

impl Client {
    /// A client; `or` goes on the sentence that nobody answers.
    pub(super) fn new(base: Url, token: Option<&str>, or: &'static str) -> anyhow::Result<Self> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            // The daemon is a neighbour; a proxy for the web would not know it.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_DEADLINE)
            .timeout(ANSWER_DEADLINE)
            .build()?;
        let token = token.map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .with_context(|| format!("{TOKEN_VARIABLE} holds no token"))?;
            value.set_sensitive(true);
            Ok::<_, anyhow::Error>(value)
        });
        Ok(Self { http, base, said_by: String::new(), token: token.transpose()?, or })
    }

    /// Whom it asks.
    pub(super) fn place(&self) -> Place {
        Place { url: self.base.clone(), said_by: self.said_by.clone() }
    }

    /// Asks.
    pub(super) async fn get(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<Value, ClientError> {
        let mut url = self.url(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.exchange(Method::GET, url, None).await
    }

    /// Tells.
    pub(super) async fn post(&self, path: &[&str], body: &Value) -> Result<Value, ClientError> {
        self.exchange(Method::POST, self.url(path), Some(body.to_string())).await
    }

    /// Removes.
    pub(super) async fn delete(&self, path: &[&str]) -> Result<Value, ClientError> {
        self.exchange(Method::DELETE, self.url(path), None).await
    }

    /// Reads an answer as what it should be.
    pub(super) fn read<T: DeserializeOwned>(&self, answer: &Value) -> Result<T, ClientError> {
        T::deserialize(answer)
            .map_err(|source| ClientError::Foreign { url: self.base.clone(), source })
    }

    /// Whether anybody listens.
    async fn is_there(&self) -> bool {
        !matches!(self.get(&["healthz"], &[]).await, Err(ClientError::NoDaemon { .. }))
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        url.set_query(None);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    async fn exchange(
        &self,
        method: Method,
        url: Url,
        body: Option<String>,
    ) -> Result<Value, ClientError> {
        let failed = |source: reqwest::Error| {
            let url = self.base.clone();
            match source.is_connect() {
                true => ClientError::NoDaemon { place: Box::new(self.place()), or: self.or },
                false => ClientError::Exchange { url, source: source.without_url() },
            }
        };
        let mut request = self.http.request(method, url);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if bytes.len() + piece.len() > ANSWER_BYTES_MAX {
                return Err(ClientError::TooLong { url: self.base.clone() });
            }
            bytes.extend_from_slice(&piece);
        }
        let foreign = |source| ClientError::Foreign { url: self.base.clone(), source };
        if status.is_success() {
            return serde_json::from_slice(&bytes).map_err(foreign);
        }
        Err(ClientError::Refused(serde_json::from_slice(&bytes).map_err(foreign)?))
    }
}
