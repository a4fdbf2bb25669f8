//! Where the admin interface listens: bound, said on standard output, left in the data directory.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::net::TcpListener;

use super::client::ADDRESS_FILE;
use super::output::Output;

/// Binds the address; port 0 takes any free one.
pub(super) async fn bind(wanted: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(wanted)
        .await
        .with_context(|| format!("failed to listen on {wanted} for the admin interface"))
}

/// The address that was said, until the daemon stops.
pub(super) struct Announced(PathBuf);

impl Announced {
    /// The first line of standard output, and `DATA/admin.addr`.
    pub(super) fn announce(
        listener: &TcpListener,
        data: &Path,
        output: &Output,
    ) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        let path = data.join(ADDRESS_FILE);
        write(&path, &format!("{address}\n"))
            .with_context(|| format!("failed to write {}", path.display()))?;
        output.line(&address.to_string());
        Ok(Self(path))
    }

    /// Takes it back.
    pub(super) fn withdraw(self) -> anyhow::Result<()> {
        match fs::remove_file(&self.0) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                Err(why).with_context(|| format!("failed to remove {}", self.0.display()))
            }
            _ => Ok(()),
        }
    }
}

/// Whole or not at all: whoever waits for the file reads it as soon as it is there.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("addr.new");
    fs::write(&new, text)?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::{Form, capture};

    #[tokio::test]
    async fn the_bound_address_is_said_and_left_until_withdrawn() {
        let directory = tempfile::tempdir().unwrap();
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let (output, results, _) = capture::output(Form::Json);
        let said = Announced::announce(&listener, directory.path(), &output).unwrap();
        let expected = format!("{}\n", listener.local_addr().unwrap());
        let file = directory.path().join("admin.addr");
        assert_eq!(results.text(), expected);
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        said.withdraw().unwrap();
        assert!(!file.exists());
    }
}
