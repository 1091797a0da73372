//! Finds the coordinator, or starts one; replaces one that hangs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_proto::control::{Replace, Replaced};
use baton_proto::discovery::Discovery;
use baton_proto::ids::InstanceId;
use baton_proto::start::Handshake;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::connection::{CallError, Connection, OpenError};
use crate::home::{Home, HomeError};
use crate::process::{is_running, kill_verified, port_owner};
use crate::spawn::{self, Spawn, SpawnError};

/// Missed pings after which a coordinator counts as hung.
pub const MAX_MISSED_PINGS: u32 = 3;

/// How long the winner of a race has until it answers.
const WINNER_TIMEOUT: Duration = Duration::from_secs(1);

/// How often the discovery file is read again while somebody else starts.
const RETRY_EVERY: Duration = Duration::from_millis(10);

/// Upper bound of the whole search; each step has its own.
const FIND_TIMEOUT: Duration = Duration::from_secs(20);

/// Many agents lose their coordinator at the same moment; they do not start successors at the same moment.
const MAX_JITTER_MS: u64 = 50;

/// How to find or start the coordinator.
#[derive(Clone, Debug)]
pub struct FindOptions {
    /// The state folder.
    pub home: Home,
    /// The port a new coordinator must use; `None`: the stored one, else the default.
    pub port: Option<u16>,
    /// The port of the very first coordinator: it counts as long as none is stored.
    pub first_port: Option<u16>,
    /// The program to start; `None`: see [`spawn::program`].
    pub program: Option<PathBuf>,
    /// A run of the coordinator that has already missed [`MAX_MISSED_PINGS`]: it is replaced without further ado.
    pub suspect: Option<InstanceId>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No coordinator runs (and none was to be started).
    #[error("no coordinator runs; start one with `baton up`")]
    NotRunning,
    /// The user stopped it while this process was connected: only the user, or a new process, starts another.
    #[error("the coordinator was stopped with `baton down`; start it with `baton up`")]
    Stopped,
    /// It runs but does not answer.
    #[error("the coordinator (process {pid}) does not answer; run `baton up` to replace it")]
    Hung {
        /// Its process id.
        pid: u32,
    },
    /// A stranger holds its port.
    #[error("port {port} is held by {by}; end that program, or move Baton with `baton port N`")]
    PortTaken {
        /// The port.
        port: u16,
        /// Who, for people.
        by: String,
    },
    /// The state folder cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// No coordinator could be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It started and ended, or this process cannot connect.
    #[error("{0}")]
    Failed(String),
}

impl FindOptions {
    /// The usual options.
    pub fn new(home: Home) -> Self {
        Self { home, port: None, first_port: None, program: None, suspect: None }
    }
}

/// A proven connection to the coordinator that runs; starts none and kills none.
pub async fn find(home: &Home) -> Result<Connection, FindError> {
    let secret = home.secret()?;
    if let Some(waiting) = home.waiting() {
        return Err(port_taken(waiting.port));
    }
    let Some(discovery) = home.discovery() else { return Err(FindError::NotRunning) };
    for _ in 0..MAX_MISSED_PINGS {
        match Connection::open(&secret, discovery.port).await {
            Ok(connection) => return Ok(found(home, connection)),
            Err(OpenError::Silent { .. }) => continue,
            Err(OpenError::Refused { .. }) => return Err(FindError::NotRunning),
            Err(OpenError::Stranger { port }) => return Err(port_taken(port)),
            Err(error @ OpenError::Local(_)) => return Err(FindError::Failed(error.to_string())),
        }
    }
    if is_running(discovery.pid, discovery.pid_start) {
        return Err(FindError::Hung { pid: discovery.pid });
    }
    Err(port_taken(discovery.port))
}

/// Ends a coordinator that waits for its port; false when there is none.
pub async fn end_waiting(home: &Home) -> bool {
    match home.waiting() {
        Some(waiting) => end(waiting.pid, waiting.pid_start).await,
        None => false,
    }
}

/// A proven connection to the coordinator; starts one when there is none, replaces one that hangs.
pub async fn find_or_start(options: &FindOptions) -> Result<Connection, FindError> {
    let home = &options.home;
    let deadline = Instant::now() + FIND_TIMEOUT;
    let mut suspect = options.suspect.clone();
    // What was there before the jitter: another process may have started a successor meanwhile.
    let mut seen = None;
    let mut lost_race_at: Option<Instant> = None;
    while Instant::now() < deadline {
        home.check().or_else(|_| Home::open(home.path()).map(drop))?;
        let secret = home.secret()?;
        let discovery = home.discovery();
        if let Some(discovery) = &discovery {
            match try_open(&secret, discovery, suspect.as_ref()).await {
                Attempt::Connected(connection) => match newer_program(&connection, options) {
                    Some(program) => succeed(connection, &program).await,
                    None => return Ok(found(home, connection)),
                },
                Attempt::Hung => {
                    end_hung(home, discovery).await;
                    suspect = Some(discovery.instance.clone());
                }
                Attempt::Gone => {}
                Attempt::Failed(error) => return Err(error),
            }
        }
        if let Some(waiting) = home.waiting() {
            let is_elsewhere = options.port.is_some_and(|port| port != 0 && port != waiting.port);
            if !is_elsewhere || !end(waiting.pid, waiting.pid_start).await {
                return Err(port_taken(waiting.port));
            }
        }
        if home.last_port().is_some() && home.stored_state().stopped {
            return Err(FindError::Stopped);
        }
        let instance = discovery.map(|discovery| discovery.instance);
        if let Some(since) = lost_race_at {
            if since.elapsed() < WINNER_TIMEOUT {
                sleep(RETRY_EVERY).await;
                continue;
            }
            if let Some(error) = stranger_on_port(home).await {
                return Err(error);
            }
        }
        if seen.as_ref() != Some(&instance) {
            seen = Some(instance);
            sleep(jitter()).await;
            continue;
        }
        lost_race_at = start(options).await?;
    }
    Err(FindError::Failed(format!(
        "a coordinator holds {} but does not answer; end it and try again",
        home.lock_path().display()
    )))
}

/// Asks a coordinator to let `program` follow it. The connection is of no use afterwards.
pub async fn replace(connection: &mut Connection, program: &Path) -> Result<Replaced, CallError> {
    let replace = Replace { program: program.to_string_lossy().into_owned() };
    connection.post("/v1/replace", &replace).await
}

/// The program to follow a coordinator that is older than this process; each process tries that once.
fn newer_program(connection: &Connection, options: &FindOptions) -> Option<PathBuf> {
    static TRIED: AtomicBool = AtomicBool::new(false);
    let is_older = is_older(&connection.hello().version, env!("CARGO_PKG_VERSION"));
    if !is_older || TRIED.swap(true, Ordering::Relaxed) {
        return None;
    }
    options.program.clone().or_else(|| spawn::program().ok())
}

/// What is no version is left alone.
fn is_older(theirs: &str, ours: &str) -> bool {
    match (semver::Version::parse(theirs), semver::Version::parse(ours)) {
        (Ok(theirs), Ok(ours)) => theirs < ours,
        _ => false,
    }
}

/// Whatever comes of it, the search goes on: the older one is good enough.
async fn succeed(mut connection: Connection, program: &Path) {
    let version = connection.hello().version.clone();
    match replace(&mut connection, program).await {
        Ok(_) => info!(version, program = %program.display(), "an older coordinator was replaced"),
        Err(error) => warn!(version, %error, "an older coordinator stays"),
    }
}

/// Starts a coordinator; the moment of defeat when another one was quicker.
async fn start(options: &FindOptions) -> Result<Option<Instant>, FindError> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => spawn::program().map_err(|error| FindError::Failed(error.to_string()))?,
    };
    let first_port = options.first_port.filter(|_| options.home.stored_state().port.is_none());
    let port = options.port.or(first_port);
    let spawn = Spawn { home: &options.home, program: &program, port, inheritance: None };
    match spawn::spawn(spawn).await? {
        Handshake::Ready { port } => {
            info!(port, "started a coordinator");
            Ok(None)
        }
        Handshake::AlreadyRunning => {
            spawn::forgive_last_spawn();
            Ok(Some(Instant::now()))
        }
        Handshake::PortTaken { port, by } => Err(FindError::PortTaken { port, by }),
        Handshake::Error { message } => Err(FindError::Failed(message)),
    }
}

/// True while some coordinator lives: without one, a discovery file names nobody, whatever it says.
fn is_locked(home: &Home) -> bool {
    let Ok(file) = std::fs::File::open(home.lock_path()) else { return false };
    // A coordinator that starts at this very moment tries again.
    matches!(fs4::FileExt::try_lock_shared(&file), Err(fs4::TryLockError::WouldBlock))
}

/// Ends a hung coordinator, when it is still the one that is meant, and waits until its lock is free.
async fn end_hung(home: &Home, discovery: &Discovery) {
    if is_locked(home) && end(discovery.pid, discovery.pid_start).await {
        warn!(pid = discovery.pid, "the coordinator hung and was ended");
    }
}

/// Ends a process and waits until it has let go of everything; false when it is not the one that is meant.
async fn end(pid: u32, pid_start: u64) -> bool {
    if !kill_verified(pid, pid_start) {
        return false;
    }
    let since = Instant::now();
    while is_running(pid, pid_start) && since.elapsed() < WINNER_TIMEOUT {
        sleep(RETRY_EVERY).await;
    }
    true
}

enum Attempt {
    Connected(Connection),
    /// It accepts connections, or would, and says nothing.
    Hung,
    /// Nobody there, or somebody else.
    Gone,
    Failed(FindError),
}

async fn try_open(
    secret: &baton_proto::discovery::Secret,
    discovery: &Discovery,
    suspect: Option<&InstanceId>,
) -> Attempt {
    if suspect == Some(&discovery.instance) {
        return Attempt::Hung;
    }
    for _ in 0..MAX_MISSED_PINGS {
        match Connection::open(secret, discovery.port).await {
            Ok(connection) => return Attempt::Connected(connection),
            Err(OpenError::Silent { .. }) => continue,
            Err(OpenError::Refused { .. } | OpenError::Stranger { .. }) => return Attempt::Gone,
            Err(error @ OpenError::Local(_)) => {
                return Attempt::Failed(FindError::Failed(error.to_string()));
            }
        }
    }
    Attempt::Hung
}

fn found(home: &Home, connection: Connection) -> Connection {
    home.remember_port(connection.hello().port);
    connection
}

/// A stranger on the port that a coordinator would use, when there is one.
async fn stranger_on_port(home: &Home) -> Option<FindError> {
    let port = home.expected_port(None);
    match Connection::open(&home.secret().ok()?, port).await {
        Err(OpenError::Stranger { port } | OpenError::Silent { port }) => Some(port_taken(port)),
        _ => None,
    }
}

fn port_taken(port: u16) -> FindError {
    FindError::PortTaken { port, by: port_owner(port) }
}

fn jitter() -> Duration {
    let mut byte = [0; 8];
    // Without randomness there is no jitter, and the lock decides all the same.
    let _ = getrandom::fill(&mut byte);
    Duration::from_millis(u64::from_ne_bytes(byte) % (MAX_JITTER_MS + 1))
}

#[cfg(test)]
mod tests {
    use super::is_older;

    #[test]
    fn only_what_is_surely_older_is_replaced() {
        assert!(is_older("0.1.0", "0.2.0") && is_older("0.9.9", "0.10.0") && is_older("1.0.0-rc.1", "1.0.0"));
        for (theirs, ours) in [("0.1.0", "0.1.0"), ("0.2.0", "0.1.0"), ("", "0.1.0"), ("new", "0.1.0")] {
            assert!(!is_older(theirs, ours), "{theirs} {ours}");
        }
    }
}
