//! Who may (U2): a bearer token, always off loopback; and no web page of somebody else.
//!
//! On loopback without a token a browser of the operator could be made to send orders by any page
//! it visits, so requests from a foreign origin, or for a name that is not this machine's, are
//! refused.

use std::fmt;
use std::net::IpAddr;

use axum::http::{HeaderMap, Method, header};

use super::problem::{Kind, Problem};
use super::state::AdminSettings;

/// Whether a route needs the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// For everybody: probes, and the page for site owners.
    Open,
    /// With the token, where one is needed.
    Token,
}

/// A token of which only the hash is kept.
#[derive(Clone)]
pub struct Token(blake3::Hash);

impl Token {
    /// Keeps the hash of a token.
    pub fn new(token: &str) -> Self {
        Self(blake3::hash(token.as_bytes()))
    }

    /// Compares in constant time: two hashes of equal length, whatever was given.
    fn is(&self, given: &str) -> bool {
        self.0 == blake3::hash(given.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Lets a request pass or says why not.
pub(super) fn admit(
    access: Access,
    method: &Method,
    headers: &HeaderMap,
    settings: &AdminSettings,
) -> Result<(), Problem> {
    if access == Access::Open {
        return Ok(());
    }
    match &settings.token {
        Some(token) => check_token(token, method, headers)?,
        None if settings.listen.ip().is_loopback() => check_host(headers)?,
        None => {
            let detail = "the interface listens beyond this machine, so `admin.token` must be set";
            return Err(Problem::new(Kind::Unauthorized, detail));
        }
    }
    check_origin(method, headers)
}

fn check_token(token: &Token, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, rest)) = given.and_then(|value| value.split_once(' ')) else {
        return Err(Problem::new(Kind::Unauthorized, "send `Authorization: Bearer TOKEN`"));
    };
    let right = if scheme.eq_ignore_ascii_case("bearer") {
        token.is(rest.trim())
    } else {
        // A browser cannot send a bearer token by itself; it asks for a password, which is enough
        // to look at the dashboard. It would send it along with a foreign page's orders, too, so
        // nothing is changed on its word.
        let looks = matches!(*method, Method::GET | Method::HEAD);
        scheme.eq_ignore_ascii_case("basic")
            && looks
            && password(rest).is_some_and(|password| token.is(&password))
    };
    if right { Ok(()) } else { Err(Problem::new(Kind::Unauthorized, "the token is not right")) }
}

/// The password of Basic credentials.
fn password(encoded: &str) -> Option<String> {
    let bytes = decode_base64(encoded.trim())?;
    let text = String::from_utf8(bytes).ok()?;
    text.split_once(':').map(|(_user, password)| password.to_owned())
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut held, mut bits) = (0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = ((held << 6) | u32::from(six)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

/// A page that made its own name resolve to this machine still sends its own name.
fn check_host(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(host) = headers.get(header::HOST).and_then(|value| value.to_str().ok()) else {
        return Ok(());
    };
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
    });
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let here = bare.parse::<IpAddr>().is_ok()
        || bare.eq_ignore_ascii_case("localhost")
        || bare.to_ascii_lowercase().ends_with(".localhost");
    if here {
        return Ok(());
    }
    let detail = format!("`{host}` is not a name of this machine; set `admin.token` to allow it");
    Err(Problem::new(Kind::ForeignOrigin, detail).at_key("Host"))
}

fn check_origin(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return Ok(()) };
    let own = origin.split_once("://").map(|(_, authority)| authority);
    if own.is_some() && own == text(header::HOST) {
        return Ok(());
    }
    let detail = format!("a page of `{origin}` may not give orders here");
    Err(Problem::new(Kind::ForeignOrigin, detail).at_key("Origin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(listen: &str, token: Option<&str>) -> AdminSettings {
        AdminSettings {
            listen: listen.parse().unwrap(),
            token: token.map(Token::new),
            product: "mehman".into(),
            version: "0".into(),
            contact_url: None,
            contact_email: None,
            user_agent: "mehman/0".into(),
            addresses: Vec::new(),
            node: "local".into(),
        }
    }

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn allowed(method: &Method, given: &[(header::HeaderName, &str)], own: &AdminSettings) -> bool {
        admit(Access::Token, method, &headers(given), own).is_ok()
    }

    #[test]
    fn tokens_decide_where_there_is_one() {
        let own = settings("127.0.0.1:1", Some("secret"));
        let with = |value| allowed(&Method::POST, &[(header::AUTHORIZATION, value)], &own);
        assert!(with("Bearer secret"));
        assert!(with("bearer  secret"));
        for wrong in
            ["Bearer secre", "Bearer", "Bearer ", "secret", "Token secret", "Bearer Secret"]
        {
            assert!(!with(wrong), "{wrong}");
        }
        assert!(!allowed(&Method::GET, &[], &own));
        assert!(admit(Access::Open, &Method::GET, &HeaderMap::new(), &own).is_ok());
    }

    #[test]
    fn a_browser_may_look_with_the_token_as_password() {
        let own = settings("0.0.0.0:1", Some("secret"));
        let basic = [(header::AUTHORIZATION, "Basic YW55OnNlY3JldA==")];
        assert!(allowed(&Method::GET, &basic, &own));
        assert!(!allowed(&Method::POST, &basic, &own));
        assert!(!allowed(&Method::GET, &[(header::AUTHORIZATION, "Basic YW55Onh4")], &own));
        assert!(!allowed(&Method::GET, &[(header::AUTHORIZATION, "Basic %%%")], &own));
    }

    #[test]
    fn nothing_but_open_routes_without_a_token_beyond_loopback() {
        let own = settings("0.0.0.0:1", None);
        assert!(!allowed(&Method::GET, &[], &own));
        assert!(!allowed(&Method::GET, &[(header::AUTHORIZATION, "Bearer ")], &own));
        assert!(admit(Access::Open, &Method::GET, &HeaderMap::new(), &own).is_ok());
    }

    #[test]
    fn pages_of_others_are_refused() {
        let own = settings("127.0.0.1:8070", None);
        let host = (header::HOST, "127.0.0.1:8070");
        let from = |origin| allowed(&Method::POST, &[host.clone(), (header::ORIGIN, origin)], &own);
        assert!(from("http://127.0.0.1:8070"));
        assert!(!from("https://evil.test"));
        assert!(!from("null"));
        assert!(allowed(&Method::GET, &[host.clone(), (header::ORIGIN, "https://x.test")], &own));
        for (name, here) in [
            ("localhost:8070", true),
            ("[::1]:8070", true),
            ("127.0.0.1", true),
            ("evil.test:8070", false),
            ("localhost.evil.test", false),
        ] {
            assert_eq!(allowed(&Method::GET, &[(header::HOST, name)], &own), here, "{name}");
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        assert_eq!(format!("{:?}", Token::new("secret")), "Token");
    }
}
