//! What the terminal and the system want of a long command: stop, or read the configuration again.

use std::io;

/// A wish from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal went away, or a daemon is to reload.
    HangUp,
}

/// The signals of this process, taken over from the system's defaults.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Takes them over.
    pub(super) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hang_up.recv() => Signal::HangUp,
        }
    }
}

/// Ctrl-C alone: the others do not exist here.
#[cfg(not(unix))]
pub(super) struct Signals(());

#[cfg(not(unix))]
impl Signals {
    /// Takes it over.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self(()))
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            // There is no way to hear of it, so the system's default stays.
            Err(_) => std::future::pending().await,
        }
    }
}
