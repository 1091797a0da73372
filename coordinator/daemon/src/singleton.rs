//! One coordinator per user: the OS lock, the port, the discovery file.
//!
//! **Invariant:** lock before port; the lock file is never deleted. It holds the generation of whoever had it last: when
//! all else is lost, that tells of the loss.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use baton_link::home::{DEFAULT_PORT, Home};
use baton_link::net::{self, TcpListener};
use baton_link::process::{own_id, own_start_time};
use baton_proto::discovery::Discovery;
use baton_proto::ids::{InstanceId, MAX_GENERATION};
use baton_proto::start::Waiting;
use baton_proto::{PROTOCOL, PROTOCOL_MIN};
use tokio::time::{Instant, sleep};

/// How often the lock file is looked at: its loss is noticed within two seconds.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A coordinator that was just killed lets go of its lock a moment later.
const LOCK_PATIENCE: Duration = Duration::from_millis(100);

/// What a generation takes in the lock file, with the end of its line: always the same, so that a later one replaces an
/// earlier one whole.
const GENERATION_LEN: usize = 16;

/// Last port that a first start tries.
const LAST_PORT: u16 = 7816;

/// Agents of 500 windows come back at the same moment.
const BACKLOG: u32 = 1024;

/// The lock, held as long as this lives.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
    /// A successor has it; we hold it too, and write nothing any more.
    is_passed_on: AtomicBool,
    /// What the file holds.
    generation: AtomicU64,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another coordinator runs.
    #[error("another coordinator is already running")]
    Held,
    /// The file cannot be opened or locked.
    #[error("cannot lock {}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Which port to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// This one and no other: clients have stored it, or the user asked for it. 0 lets the system choose.
    Fixed(u16),
    /// The first start of all: the first free one from the default on.
    FirstFree,
}

/// Why a port cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else does.
    #[error("port {port} is in use")]
    Taken {
        /// The port.
        port: u16,
    },
    /// Something else is wrong.
    #[error("cannot listen on port {port}")]
    Io {
        /// The port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
}

impl Lock {
    /// Takes the lock, or says that another coordinator has it.
    pub async fn acquire(home: &Home) -> Result<Self, LockError> {
        let since = Instant::now();
        loop {
            match Self::try_acquire(home) {
                Err(LockError::Held) if since.elapsed() < LOCK_PATIENCE => {
                    sleep(LOCK_PATIENCE / 10).await;
                }
                result => return result,
            }
        }
    }

    fn try_acquire(home: &Home) -> Result<Self, LockError> {
        let path = home.lock_path();
        let io_error = |source| LockError::Io { path: path.clone(), source };
        // Two rounds: the file may be replaced between open and lock, and then we hold nothing.
        for _ in 0..2 {
            let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
            let file = options.open(&path).map_err(io_error)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => return Err(LockError::Held),
                Err(std::fs::TryLockError::Error(error)) => return Err(io_error(error)),
            }
            let lock = Self::new(file, path.clone());
            if lock.is_intact() {
                return Ok(lock);
            }
        }
        Err(io_error(io::ErrorKind::NotFound.into()))
    }

    /// The lock of a predecessor, which holds the same open file until it ends.
    pub fn adopt(home: &Home, file: OwnedFd) -> Result<Self, LockError> {
        let lock = Self::new(file.into(), home.lock_path());
        if lock.is_intact() {
            return Ok(lock);
        }
        Err(LockError::Io { path: lock.path, source: io::ErrorKind::NotFound.into() })
    }

    fn new(file: File, path: PathBuf) -> Self {
        let mut noted = [0; GENERATION_LEN];
        let n_read = file.read_at(&mut noted, 0).unwrap_or(0);
        let noted =
            noted.get(..n_read).and_then(|noted| std::str::from_utf8(noted).ok()?.trim().parse().ok());
        // One beyond belief was written by nobody.
        let generation = noted.filter(|generation| *generation < MAX_GENERATION).unwrap_or(0);
        Self { file, path, is_passed_on: AtomicBool::new(false), generation: AtomicU64::new(generation) }
    }

    /// The generation of whoever had the lock last; 0 when none is known.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Notes our own generation, in place, as a full disk allows it. What cannot be noted is in `state.json` alone.
    pub fn note_generation(&self, generation: u64) {
        if generation == self.generation() || self.is_passed_on.load(Ordering::Relaxed) {
            return;
        }
        let text = format!("{generation:0width$}\n", width = GENERATION_LEN - 1);
        if self.file.write_all_at(text.as_bytes(), 0).is_ok() {
            self.generation.store(generation, Ordering::Relaxed);
        }
    }

    /// Leaves the lock to a successor that has adopted it: nothing is written under ours any more.
    pub fn pass_on(&self) {
        self.is_passed_on.store(true, Ordering::Relaxed);
    }

    /// True while the file we hold is the one that the next coordinator would open.
    pub fn is_intact(&self) -> bool {
        if self.is_passed_on.load(Ordering::Relaxed) {
            return false;
        }
        let (Ok(ours), Ok(there)) = (self.file.metadata(), std::fs::symlink_metadata(&self.path)) else {
            return false;
        };
        (ours.dev(), ours.ino()) == (there.dev(), there.ino())
    }

    /// Ends when the lock file is gone or replaced: from then on another coordinator may start.
    pub async fn lost(&self) {
        while self.is_intact() {
            sleep(CHECK_EVERY).await;
        }
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl PortChoice {
    /// What the user asked for, else what is stored, else what agents remember, else a first start.
    pub fn new(asked: Option<u16>, stored: Option<u16>, remembered: Option<u16>) -> Self {
        // Any port will do only as long as clients have stored none.
        let asked = asked.filter(|port| *port != 0 || stored.is_none());
        asked.or(stored).or(remembered).map_or(Self::FirstFree, Self::Fixed)
    }

    /// Whether a port that a holder has kept is one to listen on.
    pub fn allows(self, kept: u16) -> bool {
        match self {
            Self::Fixed(port) => port == 0 || port == kept,
            Self::FirstFree => true,
        }
    }

    /// Listens on 127.0.0.1 and, where the host has it, ::1.
    pub fn bind(self) -> Result<(u16, Vec<TcpListener>), BindError> {
        match self {
            Self::Fixed(port) => bind(port),
            Self::FirstFree => {
                let free = (DEFAULT_PORT..=LAST_PORT).find_map(|port| match bind(port) {
                    Err(BindError::Taken { .. }) => None,
                    result => Some(result),
                });
                free.unwrap_or(Err(BindError::Taken { port: DEFAULT_PORT }))
            }
        }
    }
}

/// Listens on both loopback addresses, or on none.
pub fn bind(port: u16) -> Result<(u16, Vec<TcpListener>), BindError> {
    let first = net::listen(IpAddr::V4(Ipv4Addr::LOCALHOST), port, BACKLOG);
    let first = first.map_err(|error| bind_error(error, port))?;
    let port = first.local_addr().map_err(|error| bind_error(error, port))?.port();
    match net::listen(IpAddr::V6(Ipv6Addr::LOCALHOST), port, BACKLOG) {
        Ok(second) => Ok((port, vec![first, second])),
        // Whoever holds ::1 would get the calls of clients that say `localhost`.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(BindError::Taken { port }),
        // The host has no IPv6.
        Err(_) => Ok((port, vec![first])),
    }
}

fn bind_error(source: io::Error, port: u16) -> BindError {
    match source.kind() {
        io::ErrorKind::AddrInUse => BindError::Taken { port },
        _ => BindError::Io { port, source },
    }
}

/// What others need to find this coordinator.
pub fn discovery(instance: &InstanceId, generation: u64, port: u16) -> Discovery {
    Discovery {
        instance: instance.clone(),
        pid: own_id(),
        pid_start: own_start_time(),
        generation,
        port,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: (PROTOCOL_MIN, PROTOCOL),
    }
}

/// Writes the discovery file.
pub fn publish(home: &Home, discovery: &Discovery) -> io::Result<()> {
    home.replace("discovery.json", &serde_json::to_vec(discovery)?)
}

/// Lets others know that we have the lock and wait for our port.
pub fn publish_waiting(home: &Home, port: u16) -> io::Result<()> {
    let waiting = Waiting { pid: own_id(), pid_start: own_start_time(), port };
    home.replace("waiting.json", &serde_json::to_vec(&waiting)?)
}

/// See [`publish_waiting`]; whatever an earlier coordinator left is removed as well.
pub fn withdraw_waiting(home: &Home) {
    // Mostly it is not there; a stale one is ignored by everybody.
    let _ = std::fs::remove_file(home.waiting_path());
}

/// Removes the discovery file when it is still ours: a successor may have written its own.
pub fn withdraw(home: &Home, instance: &InstanceId) {
    if home.discovery().is_some_and(|discovery| discovery.instance == *instance) {
        // A stale file is ignored by everybody.
        let _ = std::fs::remove_file(home.discovery_path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        (dir, home)
    }

    #[tokio::test(start_paused = true)]
    async fn the_second_one_does_not_get_the_lock() {
        let (_dir, home) = home();
        let first = Lock::acquire(&home).await.unwrap();
        assert!(matches!(Lock::acquire(&home).await, Err(LockError::Held)));
        drop(first);
        assert!(Lock::acquire(&home).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lock_that_was_passed_on_is_never_free() {
        let (_dir, home) = home();
        let ours = Lock::acquire(&home).await.unwrap();
        let adopted = Lock::adopt(&home, ours.as_fd().try_clone_to_owned().unwrap()).unwrap();
        ours.pass_on();
        assert!(!ours.is_intact() && adopted.is_intact());
        assert!(matches!(Lock::acquire(&home).await, Err(LockError::Held)));
        drop(ours);
        assert!(matches!(Lock::acquire(&home).await, Err(LockError::Held)));
        drop(adopted);
        assert!(Lock::acquire(&home).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_deleted_or_replaced_lock_file_is_noticed() {
        let (_dir, home) = home();
        let lock = Lock::acquire(&home).await.unwrap();
        assert!(lock.is_intact());
        std::fs::remove_file(home.lock_path()).unwrap();
        lock.lost().await;
        let successor = Lock::acquire(&home).await.unwrap();
        assert!(successor.is_intact() && !lock.is_intact());
    }

    #[tokio::test(start_paused = true)]
    async fn a_planted_lock_file_is_refused() {
        let (dir, home) = home();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), home.lock_path()).unwrap();
        assert!(matches!(Lock::acquire(&home).await, Err(LockError::Io { .. })));
        assert!(!dir.path().join("elsewhere").exists());
    }

    #[test]
    fn a_wish_beats_what_is_stored() {
        assert_eq!(PortChoice::new(Some(1), Some(2), Some(3)), PortChoice::Fixed(1));
        assert_eq!(PortChoice::new(Some(0), None, None), PortChoice::Fixed(0));
        assert_eq!(PortChoice::new(Some(0), Some(2), None), PortChoice::Fixed(2));
        assert_eq!(PortChoice::new(None, Some(2), Some(3)), PortChoice::Fixed(2));
        assert_eq!(PortChoice::new(None, None, Some(3)), PortChoice::Fixed(3));
        assert_eq!(PortChoice::new(None, None, None), PortChoice::FirstFree);
    }

    #[tokio::test]
    async fn a_port_that_is_taken_on_either_address_is_taken() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(stranger) = std::net::TcpListener::bind(address) else { continue };
            let port = stranger.local_addr().unwrap().port();
            assert!(matches!(bind(port), Err(BindError::Taken { .. })), "{address}");
        }
        let (port, listeners) = bind(0).unwrap();
        assert!(listeners.iter().all(|listener| listener.local_addr().unwrap().port() == port));
    }
}
