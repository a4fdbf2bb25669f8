//! What a process has used, and what lies in a directory. Linux says; elsewhere all is zero.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// The kernel counts CPU time in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// What this process has used since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time, user and system, of all threads.
    pub cpu: Duration,
    /// The most memory it had resident, in bytes.
    pub memory_bytes_max: u64,
}

impl Usage {
    /// Now.
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The second field is the command in brackets; the 14th and 15th are user and system time.
        let fields =
            stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_ascii_whitespace();
        let ticks: u32 =
            fields.skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak =
            peak.and_then(|text| text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        Self { cpu: TICK * ticks, memory_bytes_max: peak.unwrap_or(0) * 1024 }
    }
}

/// What lies in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Files of the log that a start replays.
    pub log_files: u64,
    /// All files.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

impl Space {
    /// Adds up a directory and all below it; what cannot be read counts nothing.
    pub fn of(path: &Path) -> Self {
        let mut space = Self::default();
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                let below = Self::of(&entry.path());
                space.files += below.files;
                space.bytes += below.bytes;
                space.log_files += below.log_files;
            } else {
                space.files += 1;
                space.bytes += found.len();
                space.log_files += u64::from(path.ends_with("wal"));
            }
        }
        space
    }
}
