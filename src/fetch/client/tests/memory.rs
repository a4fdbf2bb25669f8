//! What an exchange that waits holds: its futures, and no buffer.

use super::*;

/// Bytes of the future that waits for all of an exchange.
const EXCHANGE_BYTES_MAX: usize = 400;
/// Bytes of what it holds beside, while a body comes, without what came.
const BEGUN_BYTES_MAX: usize = 560;

#[tokio::test]
async fn a_waiting_exchange_is_small() {
    let (address, _accepted) =
        canned("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nslow", false).await;
    let client = client();
    let request = request(&format!("http://site.test:{}/", address.port()), address);
    let whole = size_of_val(&*client.exchange(request.clone()));
    assert!(whole <= EXCHANGE_BYTES_MAX, "{whole}");
    let begun = client.begin(request).await.unwrap();
    assert!(size_of_val(&*begun) <= BEGUN_BYTES_MAX, "{}", size_of_val(&*begun));
}
