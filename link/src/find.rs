//! Finds the coordinator, or starts one; replaces one that hangs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_proto::discovery::Discovery;
use baton_proto::ids::InstanceId;
use baton_proto::start::{Handshake, Waiting};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::connection::{Connection, MAX_MISSED_PINGS, OpenError};
use crate::explain::Explanation;
use crate::home::{Home, HomeError};
use crate::plant::{self, Plant};
use crate::process::{Process, is_running, kill_verified, lock_holder, port_owner, start_time};
use crate::spawn::{self, Spawn, SpawnError};

/// How long a process that was killed may take to let go of what it has.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// A coordinator that has the lock answers within this time, also when somebody removed what leads to it: it looks
/// every second.
const PUBLISHED_WITHIN: Duration = Duration::from_millis(2_500);

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
    #[error("the coordinator is not running")]
    NotRunning,
    /// The user stopped it while this process was connected: only the user, or a new process, starts another.
    #[error("the coordinator was stopped with `baton down`")]
    Stopped,
    /// It runs but does not answer.
    #[error("the coordinator (process {pid}) is not responding")]
    Hung {
        /// Its process id.
        pid: u32,
    },
    /// Its lock is held, and nothing answers: it has just started and is stuck, or lost all that leads to it.
    #[error("a coordinator{} holds {} but is not responding", named(*pid), lock.display())]
    Unreachable {
        /// Its process id, where the system tells who holds a lock.
        pid: Option<u32>,
        /// The lock.
        lock: PathBuf,
    },
    /// A stranger holds its port.
    #[error("port {port} is in use by {by}")]
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
    #[error("{}", .0.message)]
    Failed(Explanation),
}

impl FindError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotRunning | Self::Stopped => "start it with `baton up`",
            Self::Hung { .. } => "run `baton up` to replace it",
            Self::Unreachable { .. } => "stop it with `baton down`, then try again",
            Self::PortTaken { .. } => "stop that program, or change the port with `baton port N`",
            Self::Home(error) => return error.hint(),
            Self::Spawn(error) => return error.hint(),
            Self::Failed(why) => return why.hint.clone(),
        };
        Some(hint.to_owned())
    }

    /// For a place that has one line.
    pub fn explain(&self) -> Explanation {
        Explanation { message: self.to_string(), hint: self.hint() }
    }
}

impl FindOptions {
    /// The usual options.
    pub fn new(home: Home) -> Self {
        Self { home, port: None, first_port: None, program: None, suspect: None }
    }
}

/// A connection to the coordinator that runs; starts none and kills none.
pub async fn find(home: &Home) -> Result<Connection, FindError> {
    let since = Instant::now();
    loop {
        match reach(home, None).await? {
            Reached::Connected(connection) => return Ok(found(home, *connection)),
            Reached::Hung(process) => return Err(FindError::Hung { pid: process.pid }),
            Reached::Gone => {}
        }
        if !is_locked(home) {
            return Err(FindError::NotRunning);
        }
        if let Some(waiting) = waiting(home) {
            return Err(port_taken(waiting.port));
        }
        // It starts at this moment, or makes anew what leads to it.
        if since.elapsed() > PUBLISHED_WITHIN {
            let pid = lock_holder(&home.lock_path()).map(|process| process.pid);
            return Err(FindError::Unreachable { pid, lock: home.lock_path() });
        }
        sleep(RETRY_EVERY).await;
    }
}

/// Ends the coordinator that holds the lock, by its process: one that waits for its port, hangs, or cannot be
/// reached. False when there is none, or the system does not tell which it is.
pub async fn end_lock_holder(home: &Home) -> bool {
    let mut is_ended = false;
    // One that has handed its lock on holds it as well until it ends.
    while let Some(process) = lock_holder(&home.lock_path()) {
        if !end(process).await {
            break;
        }
        is_ended = true;
    }
    is_ended
}

/// A connection to the coordinator; starts one when there is none, replaces one that hangs.
pub async fn find_or_start(options: &FindOptions) -> Result<Connection, FindError> {
    let home = &options.home;
    let deadline = Instant::now() + FIND_TIMEOUT;
    let mut suspect = options.suspect.clone();
    // What was there before the jitter: another process may have started a successor meanwhile.
    let mut seen = None;
    let mut lost_race_at: Option<Instant> = None;
    while Instant::now() < deadline {
        home.check().or_else(|_| Home::open(home.path()).map(drop))?;
        // Remembered, for the case that the folder is lost; and a planted one is refused before anything is started.
        home.secret()?;
        match reach(home, suspect.take().as_ref()).await? {
            Reached::Connected(connection) => match newer_program(&connection, options) {
                Some(program) => succeed(*connection, &program).await,
                None => return Ok(found(home, *connection)),
            },
            Reached::Hung(process) => end_hung(home, process).await,
            Reached::Gone => {}
        }
        if let Some(waiting) = waiting(home) {
            let is_elsewhere = options.port.is_some_and(|port| port != 0 && port != waiting.port);
            if !is_elsewhere || !end_lock_holder(home).await {
                return Err(port_taken(waiting.port));
            }
        }
        if home.last_port().is_some() && home.stored_state().stopped {
            return Err(FindError::Stopped);
        }
        if lost_race_at.is_some_and(|since: Instant| since.elapsed() < PUBLISHED_WITHIN) && is_locked(home) {
            sleep(RETRY_EVERY).await;
            continue;
        }
        let instance = home.discovery().map(|discovery| discovery.instance);
        if seen.as_ref() != Some(&instance) {
            seen = Some(instance);
            sleep(jitter()).await;
            continue;
        }
        lost_race_at = start(options).await?;
    }
    let pid = lock_holder(&home.lock_path()).map(|process| process.pid);
    Err(FindError::Unreachable { pid, lock: home.lock_path() })
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
    match connection.replace(program).await {
        Ok(_) => info!(version, program = %program.display(), "an older coordinator was replaced"),
        Err(error) => warn!(version, %error, "an older coordinator stays"),
    }
}

/// Starts a coordinator; the moment of defeat when another one was quicker.
async fn start(options: &FindOptions) -> Result<Option<Instant>, FindError> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => spawn::program().map_err(|error| FindError::Failed(Explanation::new(error)))?,
    };
    if plant::has(Plant::NoSuccessor) && options.home.last_port().is_some() {
        return Err(FindError::NotRunning);
    }
    let first_port = options.first_port.filter(|_| options.home.known_port().is_none());
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
        Handshake::Error { message, hint } => Err(FindError::Failed(Explanation { message, hint })),
    }
}

/// True while some coordinator lives: without one, a discovery file names nobody, whatever it says.
fn is_locked(home: &Home) -> bool {
    let Ok(file) = std::fs::File::open(home.lock_path()) else { return false };
    // A coordinator that starts at this very moment tries again.
    matches!(file.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock))
}

/// Ends a hung coordinator, when there is one, and waits until its lock is free.
async fn end_hung(home: &Home, process: Process) {
    if is_locked(home) && end(process).await {
        warn!(pid = process.pid, "the coordinator hung and was ended");
    }
}

/// Ends a process and waits until it has let go of everything; false when it is not the one that is meant.
async fn end(Process { pid, pid_start }: Process) -> bool {
    if !kill_verified(pid, pid_start) {
        return false;
    }
    let since = Instant::now();
    while is_running(pid, pid_start) && since.elapsed() < END_TIMEOUT {
        sleep(RETRY_EVERY).await;
    }
    true
}

/// How far the search for a coordinator came.
enum Reached {
    Connected(Box<Connection>),
    /// It accepts connections, or would, and says nothing.
    Hung(Process),
    /// Nobody there, or somebody else.
    Gone,
}

/// Tries all that leads to a coordinator: its socket, the port that it published, the port that is known to be its.
/// Each of them can be lost while it runs. `suspect` has missed its pings already.
async fn reach(home: &Home, suspect: Option<&InstanceId>) -> Result<Reached, FindError> {
    let discovery = home.discovery();
    if let Some(found) = discovery.as_ref().filter(|found| suspect == Some(&found.instance)) {
        return Ok(Reached::Hung(Process { pid: found.pid, pid_start: found.pid_start }));
    }
    let mut hung = None;
    for _ in 0..MAX_MISSED_PINGS {
        match Connection::open_socket(home).await {
            Ok(connection) => return Ok(Reached::Connected(Box::new(connection))),
            Err(OpenError::Silent { pid }) => hung = Some(pid),
            Err(error @ OpenError::Local(_)) => return Err(FindError::Failed(Explanation::new(error))),
            Err(OpenError::Refused | OpenError::Stranger { .. }) => break,
        }
    }
    // Without the lock there is no coordinator, whatever the files say, and whoever keeps its port.
    if !is_locked(home) {
        return Ok(Reached::Gone);
    }
    if let Some(pid) = hung {
        return Ok(hung_process(home, pid, discovery));
    }
    reach_by_port(home, discovery).await
}

/// One whose socket is lost, or that is of a version without it.
async fn reach_by_port(home: &Home, discovery: Option<Discovery>) -> Result<Reached, FindError> {
    let secret = home.secret()?;
    let published = discovery.as_ref().map(|discovery| discovery.port);
    let mut ports: Vec<u16> = published.into_iter().chain(home.last_port()).collect();
    ports.push(home.expected_port(None));
    ports.dedup();
    let mut is_silent = false;
    for port in ports {
        match Connection::open(&secret, port).await {
            Ok(connection) => return Ok(Reached::Connected(Box::new(connection))),
            Err(OpenError::Silent { .. }) => is_silent |= published == Some(port),
            Err(OpenError::Refused | OpenError::Stranger { .. }) => {}
            Err(error @ OpenError::Local(_)) => return Err(FindError::Failed(Explanation::new(error))),
        }
    }
    if !is_silent {
        return Ok(Reached::Gone);
    }
    for _ in 1..MAX_MISSED_PINGS {
        if let Ok(connection) = Connection::open(&secret, published.unwrap_or_default()).await {
            return Ok(Reached::Connected(Box::new(connection)));
        }
    }
    Ok(hung_process(home, None, discovery))
}

/// Which process it is that hangs: the kernel's word for it, before the file's.
fn hung_process(home: &Home, pid: Option<u32>, discovery: Option<Discovery>) -> Reached {
    let told = pid.and_then(|pid| Some(Process { pid, pid_start: start_time(pid)? }));
    let told = told.or_else(|| lock_holder(&home.lock_path()));
    let published = discovery.map(|found| Process { pid: found.pid, pid_start: found.pid_start });
    told.or(published).map_or(Reached::Gone, Reached::Hung)
}

/// A coordinator that has the lock and waits for its port. The file alone is not believed: whoever it names must hold
/// the lock, or it may be an innocent process by now.
fn waiting(home: &Home) -> Option<Waiting> {
    let waiting = home.waiting()?;
    let is_holder = match lock_holder(&home.lock_path()) {
        Some(process) => process.pid == waiting.pid,
        // The system does not tell.
        None => is_locked(home) && cfg!(not(target_os = "linux")),
    };
    is_holder.then_some(waiting)
}

fn found(home: &Home, connection: Connection) -> Connection {
    // Clients keep their token when the whole folder is deleted, as long as anybody who was connected knows it.
    let _ = home.secret();
    home.remember_port(connection.hello().port);
    connection
}

fn port_taken(port: u16) -> FindError {
    FindError::PortTaken { port, by: port_owner(port) }
}

fn named(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
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
