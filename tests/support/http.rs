//! A small HTTP client for the admin interface.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// No answer takes longer.
const ANSWER_MAX: Duration = Duration::from_secs(90);

/// What the daemon answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: u16,
    /// The Content-Type.
    pub(crate) media: String,
    /// The body as text.
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {}", self.text))
    }

    /// The body as JSON Lines.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Asks a daemon.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    token: Option<String>,
}

impl Client {
    /// Of the daemon at this address.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, token: None }
    }

    /// With a token.
    pub(crate) fn with_token(self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self }
    }

    /// `GET`.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", String::new()).await
    }

    /// `POST` of JSON.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, "application/json", body.to_string()).await
    }

    /// Any request.
    pub(crate) async fn ask(&self, method: &str, path: &str, media: &str, body: String) -> Answer {
        let asked = tokio::time::timeout(ANSWER_MAX, self.exchange(method, path, media, body));
        asked.await.unwrap_or_else(|_| panic!("{method} {path}: no answer"))
    }

    async fn exchange(&self, method: &str, path: &str, media: &str, body: String) -> Answer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let driven = tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("Host", self.address.to_string())
            .header("Connection", "close");
        if !media.is_empty() {
            request = request.header("Content-Type", media);
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let media = response.headers().get("content-type");
        let media = media.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        driven.abort();
        Answer { status, media, text: String::from_utf8(body.to_vec()).unwrap() }
    }
}
