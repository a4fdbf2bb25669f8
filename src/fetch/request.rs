//! A request as it is written, and as it is archived.
//!
//! RQ-1: nothing in it can end a line early. Names, values and target are checked here, whoever
//! made them.

use bytes::Bytes;
use http_body_util::Empty;
use hyper::{Request, Uri};

use super::failure::{self, Failed};
use crate::types::{CrawlUrl, Outcome, Reason};
use crate::world::ExchangeRequest;

/// The head of a request over HTTP/1.1: what is written is what is archived. Host comes first
/// (RFC 9110 7.2), then the headers as given.
pub(super) fn http1(request: &ExchangeRequest) -> Result<Bytes, Failed> {
    checked(request)?;
    let target = request.url.path_and_query();
    let mut head = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n", authority(&request.url));
    for (name, value) in &request.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    Ok(Bytes::from(head))
}

/// A request over HTTP/2, and the head that stands for it: names in lower case, as that protocol
/// has them, and `:authority` as Host.
pub(super) fn http2(request: &ExchangeRequest) -> Result<(Request<Empty<Bytes>>, Bytes), Failed> {
    checked(request)?;
    let url = &request.url;
    let (target, authority) = (url.path_and_query(), authority(url));
    let not_a_url =
        |why: &dyn ToString| (Outcome::Protocol, Reason::NotAUrl { why: why.to_string() });
    let uri = Uri::builder().scheme("https").authority(authority).path_and_query(target);
    let uri = uri.build().map_err(|why| not_a_url(&why))?;
    let mut built = Request::get(uri);
    let mut head = format!("GET {target} HTTP/2\r\nhost: {authority}\r\n");
    for (name, value) in &request.headers {
        built = built.header(name, value);
        head.extend([&name.to_ascii_lowercase(), ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    let built = built.body(Empty::new()).map_err(|why| failure::protocol(why.to_string()))?;
    Ok((built, Bytes::from(head)))
}

/// RQ-1.
fn checked(request: &ExchangeRequest) -> Result<(), Failed> {
    let url = &request.url;
    let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_visible(url.path_and_query()) || !is_visible(authority(url)) {
        let why = "it holds what no request line may".to_owned();
        return Err((Outcome::Protocol, Reason::NotAUrl { why }));
    }
    let is_header = |(name, value): &(String, String)| {
        !name.is_empty()
            && name.bytes().all(is_token)
            && value.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control())
    };
    match request.headers.iter().find(|header| !is_header(header)) {
        Some((name, _)) => {
            let name = name.escape_debug();
            Err(failure::protocol(format!("our own header `{name}` cannot be sent")))
        }
        None => Ok(()),
    }
}

/// RFC 9110 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn authority(url: &CrawlUrl) -> &str {
    &url.as_url()[url::Position::BeforeHost..url::Position::AfterPort]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::client::tests::request;

    const URL: &str = "http://site.test:81/a?b=c";

    fn with(name: &str, value: &str) -> ExchangeRequest {
        let mut request = request(URL, "127.0.0.1:81".parse().unwrap());
        request.headers = vec![(name.to_owned(), value.to_owned())];
        request
    }

    #[test]
    fn host_comes_first_and_names_are_as_given() {
        let head = http1(&with("If-None-Match", "\"caf\u{e9}\"")).unwrap();
        let expected =
            "GET /a?b=c HTTP/1.1\r\nHost: site.test:81\r\nIf-None-Match: \"caf\u{e9}\"\r\n\r\n";
        assert_eq!(head, expected);
        let (request, head) = http2(&with("If-None-Match", "x")).unwrap();
        assert_eq!(head, "GET /a?b=c HTTP/2\r\nhost: site.test:81\r\nif-none-match: x\r\n\r\n");
        assert_eq!(request.uri(), "https://site.test:81/a?b=c");
    }

    #[test]
    fn nothing_can_end_a_line_early() {
        let wrong = [
            ("X", "a\r\nY: b"),
            ("X", "a\nb"),
            ("X", "a\rb"),
            ("X", "a\0b"),
            ("X\r\nY", "a"),
            ("X Y", "a"),
            ("X:", "a"),
            ("", "a"),
            ("\u{e9}", "a"),
        ];
        for (name, value) in wrong {
            let request = with(name, value);
            assert_eq!(http1(&request).unwrap_err().0, Outcome::Protocol, "{name:?} {value:?}");
            assert_eq!(http2(&request).unwrap_err().0, Outcome::Protocol, "{name:?} {value:?}");
        }
    }
}
