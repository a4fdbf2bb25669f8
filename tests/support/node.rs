//! The real binary in a directory of its own: its output, its exit status, killed when dropped.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::http::Client;
use super::until;

/// The contact that every crawl of a test names.
pub(crate) const CONTACT: &str = "https://operator.test/crawler";

/// What a crawl of this machine needs, and delays that let a test end.
pub(crate) const LOCAL: &str = r#"
[identity]
contact_url = "https://operator.test/crawler"
[fetch]
allow_networks = ["127.0.0.0/8"]
workers = 50
[politeness]
min_delay = "20ms"
delay_factor = 0.0
per_address_min_delay = "0s"
[retry]
base = "500ms"
[admin]
listen = "127.0.0.1:0"
"#;

/// A directory with a configuration and a data directory.
pub(crate) struct Home {
    root: tempfile::TempDir,
}

impl Home {
    /// With this configuration.
    pub(crate) fn new(config: &str) -> Self {
        let home = Self { root: super::directory() };
        home.configure(config);
        home
    }

    /// With [`LOCAL`].
    pub(crate) fn local() -> Self {
        Self::new(LOCAL)
    }

    /// Replaces the configuration.
    pub(crate) fn configure(&self, config: &str) {
        std::fs::write(self.path("mehman.toml"), config).unwrap();
    }

    /// A file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Starts the binary here, with the configuration and the data directory.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut line = arguments.to_vec();
        line.extend(["--config", "mehman.toml", "--data", "data"]);
        self.start_plain(&line)
    }

    /// Starts the binary here, with these arguments alone.
    pub(crate) fn start_plain(&self, arguments: &[&str]) -> Running {
        self.start_with(arguments, &[])
    }

    /// The same, with variables in its environment.
    pub(crate) fn start_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
        let log = tempfile::Builder::new().prefix("run-").tempdir_in(self.root.path()).unwrap();
        let log = log.keep();
        let file = |name: &str| File::create(log.join(name)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mehman"));
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("MEHMAN_")) {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .envs(variables.iter().copied())
            .current_dir(self.root.path())
            .stdin(Stdio::null())
            .stdout(file("out"))
            .stderr(file("err"));
        let what = arguments.join(" ");
        Running { child: command.spawn().unwrap(), log, what, ended: false }
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, arguments: &[&str], seconds: u64) -> Ended {
        self.start(arguments).ended(seconds).await
    }

    /// Starts a daemon and waits for its address.
    pub(crate) async fn serve(&self) -> Daemon {
        let running = self.start(&["serve", "-v"]);
        let address = running.address().await;
        Daemon { running, client: Client::new(address), address }
    }
}

/// A daemon and a client of it.
pub(crate) struct Daemon {
    /// The process.
    pub(crate) running: Running,
    /// Asks it.
    pub(crate) client: Client,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

/// A process of the binary.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
    what: String,
    ended: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// How a process ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// The exit status; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl Ended {
    /// Fails unless it ended so.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "out: {}\nerr: {}", self.out, self.err);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {}", self.out))
    }
}

impl Running {
    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        format!("{}\n{}", read(&self.log.join("out")), read(&self.log.join("err")))
    }

    /// The address that is the first line of its output.
    pub(crate) async fn address(&self) -> SocketAddr {
        let out = self.log.join("out");
        until("the address on the first line", 30, async || {
            let text = read(&out);
            let (line, _) = text.split_once('\n')?;
            Some(line.parse().unwrap_or_else(|_| panic!("no address: {line}")))
        })
        .await
    }

    /// Sends a signal: `-INT`, `-TERM`, `-HUP`.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// kill -9, and waits until it is gone.
    pub(crate) fn kill(mut self) -> Ended {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        self.over(status.code())
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self, seconds: u64) -> Ended {
        let (child, log) = (&mut self.child, &self.log);
        let what = &self.what;
        let clock = super::now();
        let status = until(&format!("the end of `{what}`"), seconds + 1, async || {
            let status = child.try_wait().unwrap();
            if status.is_none() && clock.elapsed().as_secs() >= seconds {
                let said = [read(&log.join("out")), read(&log.join("err"))].join("\n");
                panic!("`{what}` has not ended after {seconds} s:\n{said}");
            }
            status
        })
        .await;
        self.over(status.code())
    }

    fn over(&mut self, code: Option<i32>) -> Ended {
        self.ended = true;
        let (out, err) = (read(&self.log.join("out")), read(&self.log.join("err")));
        Ended { code, out, err }
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}
