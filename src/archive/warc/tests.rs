//! What a record looks like, and that it comes back as it went in.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::super::record::{HttpBlock, Record};
use super::super::samples::{START, headers, not_modified, page, response};
use super::*;
use crate::types::{ArchivePointer, CrawlUrl, Headers, Truncation};
use crate::world::SeededDice;

fn records(response: &Response, earlier: Option<&ContentRecord>) -> [Vec<u8>; 2] {
    let digest = sha1_of(&[&response.body]);
    let records = ExchangeRecords { response, payload_digest: &digest, earlier };
    records.build(&SeededDice::new(1)).map(|record| record.parts().concat())
}

fn stored(response: &Response) -> HttpBlock {
    let [_, bytes] = records(response, None);
    let record = Record::parse(bytes.into()).unwrap();
    record.check_digests().unwrap();
    record.http().unwrap()
}

fn check(bytes: &[u8], expected: &Expect) {
    expected.assert_eq(&String::from_utf8_lossy(bytes).replace('\r', ""));
}

fn earlier() -> ContentRecord {
    ContentRecord {
        url: CrawlUrl::parse("http://first.test/").unwrap(),
        fetched_at: Timestamp::from_millis(START),
        archive: ArchivePointer { file: "a.warc.gz".into(), offset: 12, length: 34 },
    }
}

#[test]
fn an_exchange_is_a_request_and_a_response() {
    let mut response = page("http://example.com/", b"<p>hello");
    response.truncated = Some(Truncation::Length);
    let [request, response] = records(&response, None);
    check(
        &request,
        &expect![[r#"
            WARC/1.1
            WARC-Type: request
            WARC-Record-ID: <urn:uuid:f9681a64-d330-4861-ac3d-344973035a52>
            WARC-Date: 2026-01-01T00:00:01Z
            WARC-Target-URI: http://example.com/
            WARC-IP-Address: 127.0.0.1
            WARC-Protocol: http/1.1
            WARC-Concurrent-To: <urn:uuid:6d8fc15a-3248-49da-8b3c-cd45cdd90974>
            WARC-Block-Digest: sha1:XJOODOST4UEKQVGKAOMDH2ZTZBZORFON
            Content-Type: application/http;msgtype=request
            Content-Length: 37

            GET / HTTP/1.1
            Host: example.com



        "#]],
    );
    check(
        &response,
        &expect![[r#"
        WARC/1.1
        WARC-Type: response
        WARC-Record-ID: <urn:uuid:6d8fc15a-3248-49da-8b3c-cd45cdd90974>
        WARC-Date: 2026-01-01T00:00:01Z
        WARC-Target-URI: http://example.com/
        WARC-IP-Address: 127.0.0.1
        WARC-Protocol: http/1.1
        WARC-Concurrent-To: <urn:uuid:f9681a64-d330-4861-ac3d-344973035a52>
        WARC-Payload-Digest: sha1:6VMT7HTE2K745SIQUUYG3CKPEJVFD5GH
        Content-Type: application/http;msgtype=response
        WARC-Block-Digest: sha1:NB2JOAO44KBCTE6AZAULL3GU2ZJJRVGP
        WARC-Truncated: length
        Content-Length: 67

        HTTP/1.1 200 OK
        Content-Type: text/html; charset=utf-8

        <p>hello

    "#]],
    );
}

#[test]
fn a_known_payload_is_a_revisit() {
    let response = page("http://example.com/", b"<p>hello");
    let [_, revisit] = records(&response, Some(&earlier()));
    check(
        &revisit,
        &expect![[r#"
        WARC/1.1
        WARC-Type: revisit
        WARC-Record-ID: <urn:uuid:6d8fc15a-3248-49da-8b3c-cd45cdd90974>
        WARC-Date: 2026-01-01T00:00:01Z
        WARC-Target-URI: http://example.com/
        WARC-IP-Address: 127.0.0.1
        WARC-Protocol: http/1.1
        WARC-Concurrent-To: <urn:uuid:f9681a64-d330-4861-ac3d-344973035a52>
        WARC-Payload-Digest: sha1:6VMT7HTE2K745SIQUUYG3CKPEJVFD5GH
        Content-Type: application/http;msgtype=response
        WARC-Block-Digest: sha1:CZ6E5LXK37HHABZFKRF4PMJFHUGAGIOG
        WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest
        WARC-Refers-To-Target-URI: http://first.test/
        WARC-Refers-To-Date: 2026-01-01T00:00:00Z
        WARC-Refers-To-Filename: a.warc.gz
        WARC-Refers-To-File-Offset: 12
        WARC-Refers-To-File-Length: 34
        Content-Length: 59

        HTTP/1.1 200 OK
        Content-Type: text/html; charset=utf-8



    "#]],
    );
}

#[test]
fn a_304_is_a_revisit_of_what_it_stands_for() {
    let [_, revisit] = records(&not_modified("http://a.test/", "sha1:OLD"), Some(&earlier()));
    let record = Record::parse(revisit.into()).unwrap();
    assert_eq!(record.kind(), "revisit");
    assert_eq!(record.field("warc-profile"), Some(NOT_MODIFIED));
    record.check_digests().unwrap();
}

#[test]
fn a_304_without_an_original_is_a_response_with_its_own_digest() {
    let response = not_modified("http://a.test/", "sha1:OLD");
    let records =
        ExchangeRecords { response: &response, payload_digest: "sha1:OLD", earlier: None };
    let [_, record] = records.build(&SeededDice::new(1));
    let record = Record::parse(record.parts().concat().into()).unwrap();
    assert_eq!(record.kind(), "response");
    record.check_digests().unwrap();
}

#[test]
fn status_lines_are_kept_as_received_where_readers_know_them() {
    for (line, status, expected) in [
        ("HTTP/1.1 200 All fine", 200, "HTTP/1.1 200 All fine"),
        ("HTTP/1.0 404 weg", 404, "HTTP/1.0 404 weg"),
        ("HTTP/1.1 200 ", 200, "HTTP/1.1 200 "),
        ("HTTP/1.1 200", 200, "HTTP/1.1 200"),
        ("HTTP/1.1 404 N\u{e9}", 404, "HTTP/1.1 404 N\u{e9}"),
        ("HTTP/1.1 405 405", 405, "HTTP/1.1 405 405"),
        ("HTTP/1.1   200   OK", 200, "HTTP/1.1 200 OK"),
        ("HTTP/1.1 200  OK", 200, "HTTP/1.1 200 OK"),
        ("HTTP/1.1 200 a\r\nb", 200, "HTTP/1.1 200 OK"),
        ("HTTP/1.1 2000", 200, "HTTP/1.1 200 OK"),
        ("HTTP/1.1 201 OK", 200, "HTTP/1.1 200 OK"),
        ("HTTP/2 200", 200, "HTTP/1.1 200 OK"),
        ("", 999, "HTTP/1.1 999 "),
    ] {
        let latin = |text: &str| {
            let byte = |c| u8::try_from(u32::from(c)).unwrap();
            text.chars().map(byte).collect::<Vec<u8>>()
        };
        let mut response = response("http://a.test/", status, Vec::new(), b"abc");
        response.status_line = Some(latin(line).into());
        let [_, bytes] = records(&response, None);
        let record = Record::parse(bytes.into()).unwrap();
        assert!(record.block.starts_with(&[&latin(expected)[..], b"\r\n"].concat()), "{line:?}");
        assert_eq!(record.http().unwrap().status, status, "{line:?}");
        record.check_digests().unwrap();
    }
}

#[test]
fn headers_are_kept_in_their_order_and_spelling() {
    let sent = headers(&[("X-b", "1"), ("set-COOKIE", "a"), ("X-B", "2"), ("x-b", "1")]);
    assert_eq!(stored(&response("http://a.test/", 200, sent.clone(), b"abc")).headers, sent);
}

#[test]
fn the_protocol_is_said_by_its_registered_name() {
    for (protocol, name) in [("HTTP/1.0", "http/1.0"), ("HTTP/1.1", "http/1.1"), ("HTTP/2", "h2")] {
        let response = Response { protocol, ..page("http://a.test/", b"abc") };
        let [_, bytes] = records(&response, None);
        assert_eq!(Record::parse(bytes.into()).unwrap().field("WARC-Protocol"), Some(name));
    }
}

#[test]
fn chunking_is_undone_and_said() {
    let sent = headers(&[("Transfer-Encoding", "chunked"), ("Content-Encoding", "br")]);
    let expected = headers(&[
        ("X-Crawler-Transfer-Encoding", "chunked"),
        ("Content-Encoding", "br"),
        ("Content-Length", "3"),
    ]);
    assert_eq!(stored(&response("http://a.test/", 200, sent, b"abc")).headers, expected);
}

#[test]
fn a_wrong_content_length_is_made_right_and_kept() {
    let sent = headers(&[("content-length", "99"), ("Content-Length", "3")]);
    let expected = headers(&[("X-Crawler-Content-Length", "99"), ("content-length", "3")]);
    assert_eq!(stored(&response("http://a.test/", 200, sent, b"abc")).headers, expected);
    let sent = headers(&[("Content-Length", "99")]);
    assert_eq!(stored(&response("http://a.test/", 304, sent.clone(), b"")).headers, sent);
}

#[test]
fn http2_is_shown_as_http1() {
    let mut response = page("http://a.test/", b"");
    response.protocol = "HTTP/2";
    response.request_head = Bytes::from_static(b"GET /x HTTP/2\r\nHost: a.test\r\n\r\n");
    let [request, response] = records(&response, None);
    let (request, response) = (String::from_utf8(request), String::from_utf8(response));
    let (request, response) = (request.unwrap(), response.unwrap());
    assert!(request.contains("\r\n\r\nGET /x HTTP/1.1\r\nHost: a.test\r\n\r\n\r\n\r\n"));
    assert!(response.contains("\r\n\r\nHTTP/1.1 200 OK\r\n"));
    assert!(request.contains("\r\nWARC-Protocol: h2\r\n"));
}

#[test]
fn record_ids_are_random_uuids() {
    let dice = SeededDice::new(3);
    let (one, two) = (record_id(&dice), record_id(&dice));
    assert_ne!(one, two);
    assert_eq!(one.len(), "<urn:uuid:>".len() + 36);
    let versions: Vec<_> = [one, two].iter().map(|id| id.chars().nth(24)).collect();
    assert_eq!(versions, [Some('4'), Some('4')]);
}

#[test]
fn the_first_record_says_who_and_how() {
    let info = CrawlerInfo {
        software: "mehman/1\r\nX: injected".to_owned(),
        user_agent: "mehman/1 (+http://me.test/)".to_owned(),
        operator: "http://me.test/".to_owned(),
    };
    let at = Timestamp::from_millis(START);
    let record = warcinfo(&info, "a.warc.gz", at, &SeededDice::new(1)).parts().concat();
    check(
        &record,
        &expect![[r#"
            WARC/1.1
            WARC-Type: warcinfo
            WARC-Record-ID: <urn:uuid:f9681a64-d330-4861-ac3d-344973035a52>
            WARC-Date: 2026-01-01T00:00:00Z
            WARC-Filename: a.warc.gz
            WARC-Block-Digest: sha1:L6OJC6PM3QE2ACTI2FEMBMSKWG7UPB6O
            Content-Type: application/warc-fields
            Content-Length: 502

            software: mehman/1  X: injected
            format: WARC File Format 1.1
            conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/
            http-header-user-agent: mehman/1 (+http://me.test/)
            operator: http://me.test/
            robots: obey
            description: HTTP blocks hold status line and headers as received, in order and case, one line each: chunked transfer coding is undone, lines that are no header are left out, folded ones joined, HTTP/2 is shown as HTTP/1.1 with the usual reason phrase


        "#]],
    );
    Record::parse(record.into()).unwrap().check_digests().unwrap();
}

/// What may be expected back: line ends become spaces, the ends of a value are trimmed, names keep
/// what may stand in a name.
fn as_stored(sent: &Headers) -> Headers {
    let clean = |byte: &u8| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { *byte };
    let kept = sent.iter().map(|(name, value)| {
        let name: String = name.chars().filter(|c| c.is_ascii_graphic() && *c != ':').collect();
        let value: Vec<u8> = value.iter().map(clean).collect();
        (name, Bytes::copy_from_slice(value.trim_ascii()))
    });
    kept.filter(|(name, _)| !name.is_empty()).collect()
}

proptest! {
    #[test]
    fn any_headers_and_body_survive(
        pairs in proptest::collection::vec((any::<String>(), any::<Vec<u8>>()), 0..6),
        body in any::<Vec<u8>>(),
    ) {
        let sent: Headers =
            pairs.into_iter().map(|(name, value)| (name, Bytes::from(value))).collect();
        let known = ["content-length", "transfer-encoding"];
        prop_assume!(!sent.iter().any(|(name, _)| known.contains(&name.to_lowercase().as_str())));
        let http = stored(&response("http://a.test/", 200, sent.clone(), &body));
        prop_assert_eq!(http.status, 200);
        prop_assert_eq!(http.headers, as_stored(&sent));
        prop_assert_eq!(http.body, body);
    }

    #[test]
    fn no_header_ends_its_line_early(name in "[a-z\r\n :]{1,12}", value in "[a-z\r\n :]{0,20}") {
        let sent = vec![(name, Bytes::from(value))];
        let http = stored(&response("http://a.test/", 200, sent.clone(), b"body"));
        prop_assert!(http.headers.len() <= 1);
        prop_assert_eq!(http.headers, as_stored(&sent));
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in any::<Vec<u8>>(), head in any::<bool>()) {
        let bytes = if head { [b"WARC/1.1\r\n".as_slice(), &bytes].concat() } else { bytes };
        if let Ok(record) = Record::parse(bytes.into()) {
            record.http();
        }
    }
}
