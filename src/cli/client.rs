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
use crate::config::Config;

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
    #[error("no daemon answers at {url}; start one with `mehman serve`{or}")]
    NoDaemon {
        /// Where.
        url: Url,
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
    /// Takes `--admin`, else the address in the directory that `--data` names, else `admin.listen`
    /// of the configuration.
    pub(super) fn of(common: &Common, remote: &Remote) -> anyhow::Result<Self> {
        let config = settings::load(common, &Overrides::default())?;
        let named = common.data.is_some();
        Ok(Self { config, given: remote.admin.clone(), named })
    }

    /// The daemon, for what only a daemon can do.
    pub(super) fn daemon(&self) -> anyhow::Result<Client> {
        let base = self.address()?.with_context(|| {
            let dir = self.config.data.dir.display();
            format!("no daemon serves {dir}; start one with `mehman serve --data {dir}`")
        })?;
        self.client(base, "")
    }

    /// Whoever can answer: the daemon that has the data, or the data.
    pub(super) async fn source(&self) -> anyhow::Result<Source> {
        let directory = || Source::Directory(self.config.data.dir.clone());
        let Some(base) = self.address()? else { return Ok(directory()) };
        let client = self.client(base, " or give --data")?;
        if self.named && !client.is_there().await {
            Ok(directory())
        } else {
            Ok(Source::Daemon(client))
        }
    }

    /// The configuration that led here.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Where to ask; `None` when a directory was named and no daemon has it.
    fn address(&self) -> anyhow::Result<Option<Url>> {
        if let Some(url) = &self.given {
            return Ok(Some(url.clone()));
        }
        let listen = self.config.admin.listen;
        match written_address(&self.config.data.dir)? {
            Some(address) if self.named || listen.port() == 0 => url_of(&address).map(Some),
            None if self.named => Ok(None),
            Some(_) | None => {
                let ip = listen.ip();
                let local = if ip.is_ipv4() { "127.0.0.1" } else { "[::1]" };
                let address = match ip.is_unspecified() {
                    true => format!("{local}:{}", listen.port()),
                    false => listen.to_string(),
                };
                url_of(&address).map(Some)
            }
        }
    }

    fn client(&self, base: Url, or: &'static str) -> anyhow::Result<Client> {
        let variable = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let configured = self.config.admin.token.as_ref().map(|token| token.reveal().to_owned());
        Client::new(base, variable.or(configured).as_deref(), or)
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
        Ok(Self { http, base, token: token.transpose()?, or })
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
                true => ClientError::NoDaemon { url, or: self.or },
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
