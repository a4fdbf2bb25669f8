//! Who we are to site owners and to operators: `[identity]`, `[admin]` (R5, U2).

use std::net::{Ipv4Addr, SocketAddr};

use super::define::section;
use super::reader::{Check, Checked, Unfit};
use super::value::{MASK, Secret};
use crate::types::IpNetwork;

section! {
    /// Who the crawler says it is (R5).
    pub struct Identity {
        /// Product token in the User-Agent, and the name that robots.txt groups are chosen by.
        /// Letters, `_` and `-`.
        product: String = "mehman".to_owned(),
            that(|text| is_product(text), "of the letters a to z, `_` and `-`");
        /// Page that says who crawls and how to opt out; stands in the User-Agent. This or
        /// `contact_email` is required to crawl.
        contact_url: Option<String> = None,
            that(|url| url.as_deref().is_none_or(is_web_url), "that is an http or https URL");
        /// Address that site owners can write to; shown on `/about`. Stands in the User-Agent as
        /// `mailto:ADDRESS` where there is no `contact_url`.
        contact_email: Option<String> = None,
            that(|mail| mail.as_deref().is_none_or(is_email), "such as \"crawler@example.org\"");
        /// Networks that requests come from, in CIDR notation; shown on `/about` and listed at
        /// `/about/addresses.json`. Nothing is bound to them.
        addresses: Vec<IpNetwork> = Vec::new(), restart();
    }
}

impl Checked for Identity {}

impl Identity {
    /// R5: `mehman/VERSION (+URL)`; with an address alone `(+mailto:ADDRESS)`.
    pub fn user_agent(&self) -> String {
        let product = format!("{}/{}", self.product, env!("CARGO_PKG_VERSION"));
        match (&self.contact_url, &self.contact_email) {
            (Some(url), _) => format!("{product} (+{url})"),
            (None, Some(email)) => format!("{product} (+mailto:{email})"),
            (None, None) => product,
        }
    }

    /// Whether site owners can be sent there: a web URL or an address of mail.
    pub fn is_contact(contact: &str) -> bool {
        is_web_url(contact) || is_email(contact)
    }

    /// The key that a `--contact` sets: a URL or an address of mail.
    pub fn contact_key(contact: &str) -> &'static str {
        if contact.contains("://") || !contact.contains('@') {
            "identity.contact_url"
        } else {
            "identity.contact_email"
        }
    }
}

/// RFC 9309, section 2.2.1.
fn is_product(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
    !text.is_empty() && text.bytes().all(fits)
}

fn is_web_url(text: &str) -> bool {
    // What stands in a header must not end it.
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'(' | b')'));
    let web = |url: &url::Url| {
        matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|h| !h.is_empty())
    };
    plain && url::Url::parse(text).is_ok_and(|url| web(&url))
}

fn is_email(text: &str) -> bool {
    let plain =
        text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'(' | b')' | b',' | b'<'));
    let Some((user, host)) = text.split_once('@') else { return false };
    let labels = host.split('.').all(|label| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    });
    plain && !user.is_empty() && labels && !text.starts_with("mailto:")
}

section! {
    /// The admin HTTP server (U2).
    pub struct Admin {
        /// Address and port; port 0 takes any free one. Other than loopback asks for a token.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8070));
        /// Token that requests carry, `Authorization: Bearer …`. `/healthz`, `/readyz` and
        /// `/about` are open.
        token: Option<Secret> = None,
            secret(),
            that(
                |token| token.as_ref().is_none_or(|token| is_token(token.reveal())),
                "of printed ASCII without spaces"
            );
    }
}

impl Checked for Admin {
    fn check(&self, check: &mut Check<'_>) {
        let safe = self.listen.ip().to_canonical().is_loopback() || self.token.is_some();
        let fault = Unfit {
            found: None,
            problem: &format!("missing, and `admin.listen` is {}, not loopback", self.listen),
            remedy: "wanted a token, or `admin.listen` on 127.0.0.1",
        };
        check.refuse_unless(safe, &["token", "listen"], fault);
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text != MASK && text.bytes().all(|byte| byte.is_ascii_graphic())
}
