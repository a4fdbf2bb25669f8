//! What an exchange that waits holds: its futures, and no buffer.

use super::*;

/// Bytes of the future that waits for all of an exchange.
const EXCHANGE_BYTES_MAX: usize = 1024;
/// Bytes of the one within that waits for a body.
const BODY_BYTES_MAX: usize = 768;

#[tokio::test]
async fn a_waiting_exchange_is_small() {
    let (address, _accepted) =
        canned("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nslow", false).await;
    let client = client();
    let request = request(&format!("http://site.test:{}/", address.port()), address);
    let whole = size_of_val(&*client.exchange(request.clone()));
    assert!(whole <= EXCHANGE_BYTES_MAX, "{whole}");
    let place = (request.url.host_key(), address);
    let span = Span { limits: &request.limits, deadline: Timestamp::NEVER };
    let opened = client.open(&request, &place, &span).await.map_err(|(_, why)| why).unwrap();
    let limits = BodyLimits {
        bytes_max: 1,
        oversize: Oversize::Truncate,
        deadline: Timestamp::NEVER,
        total: Duration::MAX,
    };
    let body = client.body(opened.source, opened.length, limits, place);
    assert!(size_of_val(&body) <= BODY_BYTES_MAX, "{}", size_of_val(&body));
}
