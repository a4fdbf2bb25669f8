//! The server itself, over loopback.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::fakes::{Stage, settings};
use crate::admin::{AdminSettings, ServeError, serve};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn it_answers_and_stops_in_order() {
    let stage = Stage::set().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let state = stage.state.clone();
    let serving = tokio::spawn(serve(listener, state, async {
        stopped.await.ok();
    }));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut head = [0; 15];
    timeout(SOON, stream.read_exact(&mut head)).await.unwrap().unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    stop.send(()).unwrap();
    timeout(SOON, serving).await.unwrap().unwrap().unwrap();
    let mut rest = Vec::new();
    timeout(SOON, stream.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn it_does_not_serve_the_network_without_a_token() {
    let stage =
        Stage::with(AdminSettings { listen: "0.0.0.0:0".parse().unwrap(), ..settings() }).await;
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = serve(listener, stage.state.clone(), std::future::pending()).await;
    assert!(matches!(refused, Err(ServeError::TokenNeeded(_))));
    assert_eq!(Arc::strong_count(&stage.state.shared), 1);
}
