//! How an exchange ended: the closed list that events, metrics and rows share.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The outcome of one exchange. Expected by the crawler, so a value and not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// 2xx with its whole body.
    Ok,
    /// 304 to a conditional request.
    NotModified,
    /// 3xx with a Location.
    Redirect,
    /// 4xx but 429.
    ClientError,
    /// 5xx but 503.
    ServerError,
    /// Not sent: the rules refuse it.
    RobotsRefused,
    /// 429 or 503.
    RateLimited,
    /// A time limit.
    Timeout,
    /// The name does not resolve.
    Dns,
    /// No connection.
    Connect,
    /// The handshake failed.
    Tls,
    /// Not HTTP.
    Protocol,
    /// 2xx, cut at a size limit, kept.
    Truncated,
    /// Beyond a size limit, not kept.
    TooLarge,
    /// A content type nobody handles; the body was not read.
    UnwantedType,
    /// The content encoding is broken.
    Decode,
    /// The address may not be connected to.
    EgressRefused,
    /// Withdrawn before it was sent or while it ran.
    Cancelled,
}

impl Outcome {
    /// Every outcome, in the order of docs/interface.md.
    pub const ALL: [Self; 18] = [
        Self::Ok,
        Self::NotModified,
        Self::Redirect,
        Self::ClientError,
        Self::ServerError,
        Self::RobotsRefused,
        Self::RateLimited,
        Self::Timeout,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Protocol,
        Self::Truncated,
        Self::TooLarge,
        Self::UnwantedType,
        Self::Decode,
        Self::EgressRefused,
        Self::Cancelled,
    ];

    /// The name in events, metrics and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotModified => "not_modified",
            Self::Redirect => "redirect",
            Self::ClientError => "client_error",
            Self::ServerError => "server_error",
            Self::RobotsRefused => "robots_refused",
            Self::RateLimited => "rate_limited",
            Self::Timeout => "timeout",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Protocol => "protocol",
            Self::Truncated => "truncated",
            Self::TooLarge => "too_large",
            Self::UnwantedType => "unwanted_type",
            Self::Decode => "decode",
            Self::EgressRefused => "egress_refused",
            Self::Cancelled => "cancelled",
        }
    }

    /// What a status says when the body came whole; `None` for a 1xx, which ends no exchange.
    pub fn of_status(status: u16) -> Option<Self> {
        match status {
            304 => Some(Self::NotModified),
            200..=299 => Some(Self::Ok),
            300..=399 => Some(Self::Redirect),
            429 | 503 => Some(Self::RateLimited),
            400..=499 => Some(Self::ClientError),
            500..=999 => Some(Self::ServerError),
            _ => None,
        }
    }

    /// F8: a passing failure, worth another try later.
    pub fn is_retried(self) -> bool {
        match self {
            Self::ServerError
            | Self::RateLimited
            | Self::Timeout
            | Self::Dns
            | Self::Connect
            | Self::Tls
            | Self::Protocol
            | Self::Decode
            | Self::Cancelled => true,
            Self::Ok
            | Self::NotModified
            | Self::Redirect
            | Self::ClientError
            | Self::RobotsRefused
            | Self::Truncated
            | Self::TooLarge
            | Self::UnwantedType
            | Self::EgressRefused => false,
        }
    }

    /// A response came: it counts as a page of the crawl (`scope.max_pages`).
    pub fn is_exchange(self) -> bool {
        match self {
            Self::Ok
            | Self::NotModified
            | Self::Redirect
            | Self::ClientError
            | Self::ServerError
            | Self::RateLimited
            | Self::Truncated
            | Self::TooLarge
            | Self::UnwantedType
            | Self::Decode => true,
            Self::RobotsRefused
            | Self::Timeout
            | Self::Dns
            | Self::Connect
            | Self::Tls
            | Self::Protocol
            | Self::EgressRefused
            | Self::Cancelled => false,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_json_shows() {
        for outcome in Outcome::ALL {
            let json = serde_json::to_string(&outcome).unwrap();
            assert_eq!(json, format!("\"{outcome}\""));
        }
    }

    #[test]
    fn every_final_status_has_an_outcome() {
        assert_eq!(Outcome::of_status(101), None);
        assert_eq!(Outcome::of_status(204), Some(Outcome::Ok));
        assert_eq!(Outcome::of_status(304), Some(Outcome::NotModified));
        assert_eq!(Outcome::of_status(308), Some(Outcome::Redirect));
        assert_eq!(Outcome::of_status(429), Some(Outcome::RateLimited));
        assert_eq!(Outcome::of_status(404), Some(Outcome::ClientError));
        assert_eq!(Outcome::of_status(599), Some(Outcome::ServerError));
    }
}
