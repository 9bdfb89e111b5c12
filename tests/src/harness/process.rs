//! The programs under test: started with their output in a file, ended when dropped, told about when a test fails.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use super::wait::eventually;

/// How much of a log is shown when a test fails.
const TAIL: u64 = 8 * 1024;

/// Where the workspace's programs are: `EVENKEEL_BIN_DIR`, or beside the test itself.
///
/// Panics with what to do when the program was not built.
pub fn program(name: &str) -> PathBuf {
    let folder = std::env::var_os("EVENKEEL_BIN_DIR").map_or_else(
        || {
            let own = std::env::current_exe().unwrap_or_default();
            let folder = own.parent().unwrap_or(Path::new("."));
            if folder.ends_with("deps") {
                folder.join("..")
            } else {
                folder.to_owned()
            }
        },
        PathBuf::from,
    );
    let path = folder.join(name);
    assert!(
        path.is_file(),
        "{} is not there: run `cargo build --workspace --bins` first",
        path.display()
    );
    path
}

/// A running program.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with its output appended to `log`.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> io::Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()?;
        Ok(Self {
            name: name.into(),
            child,
            log: log.into(),
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status once it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    pub fn log(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// kill -9.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal by name: `TERM`, `STOP`, `CONT`.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(self.pid().to_string())
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "cannot send {signal} to {}",
            self.name
        );
    }

    /// Asks it to end and waits until it has.
    pub async fn terminate(&mut self, deadline: Duration) -> ExitStatus {
        self.signal("TERM");
        let name = self.name.clone();
        eventually(
            &format!("{name} ends after SIGTERM"),
            deadline,
            async || self.ended().ok_or("still running"),
        )
        .await
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> u64 {
        resident(self.pid()).unwrap_or(0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!(
                "--- {} (end of its log)\n{}",
                self.name,
                tail(&self.log).unwrap_or_default()
            );
        }
    }
}

fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Resident memory of a process in bytes.
pub fn resident(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kilobytes| kilobytes * 1024)
}

/// Processor time that a process has used.
pub fn processor_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold spaces: count from behind it. Fields 14 and 15 are ticks of 10 ms.
    let fields = stat
        .rsplit_once(')')?
        .1
        .split_whitespace()
        .collect::<Vec<_>>();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}
