//! Serving: a bounded number of connections, each with time limits, ended in order.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::debug;

use super::router::router;
use super::state::AdminState;
use super::status::collect;
use crate::world::Clock;

/// Connections at once; more wait to be accepted (I8).
const CONNECTIONS_MAX: usize = 256;

/// The head of a request must have come by then; an idle connection is closed after it.
const HEAD_DEADLINE: Duration = Duration::from_secs(15);

/// The age at which a connection is closed after its answer.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(600);

/// What an answer under way has left when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// The wait after a connection could not be accepted: usually there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How often the rate of pages is sampled, so that it is right at the first question.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

/// Bytes of a request's head held in memory.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Why it could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener's own address cannot be asked for.
    #[error("failed to read the address of the admin listener")]
    Address(#[source] std::io::Error),
    /// It would be open to the network without a token.
    #[error("`admin.token` must be set, since the admin interface listens on {0}")]
    TokenNeeded(std::net::SocketAddr),
}

/// Serves until `shutdown` is ready; then answers what is under way, for a few seconds at most.
///
/// # Errors
/// The listener is not on loopback and there is no token (U2).
pub async fn serve(
    listener: TcpListener,
    state: AdminState,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::Address)?;
    if !address.ip().is_loopback() && state.settings.token.is_none() {
        return Err(ServeError::TokenNeeded(address));
    }
    let clock = Arc::clone(&state.clock);
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::select! {
        biased;
        () = shutdown => {}
        () = sample(&state) => {}
        () = accept(&listener, &state, &stopped, &mut connections) => {}
    }
    drop(listener);
    stop.send_replace(true);
    tokio::select! {
        biased;
        () = async { while connections.join_next().await.is_some() {} } => {}
        () = clock.sleep(GRACE) => connections.shutdown().await,
    }
    Ok(())
}

/// Keeps the samples of the rate fresh.
async fn sample(state: &AdminState) {
    loop {
        collect(state).await;
        state.clock.sleep(SAMPLE_INTERVAL).await;
    }
}

async fn accept(
    listener: &TcpListener,
    state: &AdminState,
    stopped: &watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let router = router(state.clone());
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        // Those that have ended are taken out, so that the set stays as small as its bound.
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _peer)) => {
                let served =
                    connection(stream, router.clone(), Arc::clone(&state.clock), stopped.clone());
                connections.spawn(async move {
                    served.await;
                    drop(place);
                });
            }
            Err(why) => {
                debug!(%why, "admin connection not accepted");
                state.clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    clock: Arc<dyn Clock>,
    mut stopped: watch::Receiver<bool>,
) {
    let service = TowerToHyperService::new(router);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        biased;
        ended = serving.as_mut() => Some(ended),
        _stopped = stopped.wait_for(|stopped| *stopped) => None,
        () = clock.sleep(CONNECTION_AGE_MAX) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            serving.as_mut().graceful_shutdown();
            tokio::select! {
                biased;
                ended = serving => ended,
                () = clock.sleep(GRACE) => Ok(()),
            }
        }
    };
    if let Err(why) = ended {
        debug!(%why, "admin connection ended early");
    }
}
