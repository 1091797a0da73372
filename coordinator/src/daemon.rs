//! The life of a coordinator: lock, generation, port, parts, and a graceful end.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_link::home::{Home, HomeError, random_hex};
use baton_link::process::{is_running, port_owner};
use baton_proto::discovery::Secret;
use baton_proto::ids::InstanceId;
use baton_proto::start::Handshake;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::control::{self, ControlState, Order, PortRefused};
use crate::election::Start;
use crate::http::{self, App};
use crate::keeper::{Keeper, Saved};
use crate::mcp::{Edge, HandoverRequest};
use crate::singleton::{self, BindError, Lock, LockError, PortChoice};
use crate::state::{State, StateFile};
use crate::succession::{self, Inheritance};

/// How often a taken port is tried again.
const BIND_EVERY: Duration = Duration::from_millis(500);

/// Orders of the control API that wait.
const ORDERS: usize = 8;

/// Requests of AI clients to hand over that wait for the keeper.
const HANDOVERS: usize = 16;

/// After a change of the port, clients of the old one have this long to notice; their calls may take longer.
const OLD_PORT_GRACE: Duration = Duration::from_secs(60);

/// How long calls may go on after a successor has taken over (R4).
const DRAIN_LIMIT: Duration = Duration::from_secs(30);

/// How to run a coordinator.
#[derive(Debug)]
pub struct Options {
    /// The state folder.
    pub home: Home,
    /// The port the user asked for.
    pub port: Option<u16>,
    /// The port that agents remember, for a state folder that knows none.
    pub fallback_port: Option<u16>,
    /// What a predecessor leaves us.
    pub inheritance: Option<Inheritance>,
}

/// Why the coordinator did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Another one does.
    #[error("another coordinator is already running; `baton status` shows it")]
    AlreadyRunning,
    /// The user ended the one that this was to succeed.
    #[error("the coordinator was stopped with `baton down`; start it with `baton up`")]
    Stopped,
    /// The state folder cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The lock cannot be taken.
    #[error(transparent)]
    Lock(LockError),
    /// The port cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// Runs a coordinator until `ending`, an order to end, or the loss of its lock. `announce` is told how the start
/// went: once that a stranger holds the port, if so, and once that the coordinator answers.
pub async fn run(
    options: Options,
    mut announce: impl FnMut(Handshake),
    ending: CancellationToken,
) -> Result<(), RunError> {
    let home = &options.home;
    let (lock, inherited) = match options.inheritance {
        Some(left) => {
            (Lock::adopt(home, left.lock).map_err(RunError::Lock)?, Some((left.port, left.listeners)))
        }
        None => (Lock::acquire(home).await?, None),
    };
    let lock = Arc::new(lock);
    // These are written under the lock alone.
    home.remove_leftovers(&["state.json", "discovery.json", "waiting.json"]);
    let secret = home.secret()?;
    let state = StateFile::load(home, lock.clone());
    let before = state.current();
    // Whoever remembers a port lost a coordinator; its starter may have been slower than the user's `baton down`.
    if before.stopped && options.fallback_port.is_some() {
        return Err(RunError::Stopped);
    }
    let instance =
        InstanceId(random_hex().map_err(|source| HomeError::Io { path: home.path().into(), source })?);
    // **Invariant:** the generation is written, under the lock, before the port answers.
    let known = home.discovery().map_or(0, |discovery| discovery.generation);
    let generation = before.generation.max(known) + 1;
    save(&state, |state| (state.generation, state.stopped) = (generation, false));

    let choice = PortChoice::new(options.port, before.port, options.fallback_port);
    let bind = async {
        match inherited {
            Some(inherited) => Ok(inherited),
            None => bind_patiently(home, choice, &mut announce).await,
        }
    };
    let (port, listeners) = tokio::select! {
        bound = bind => bound?,
        () = lock.lost() => return Ok(()),
        () = ending.cancelled() => {
            singleton::withdraw_waiting(home);
            return Ok(());
        }
    };
    singleton::withdraw_waiting(home);
    save(&state, |state| state.port = Some(port));

    let start = to_start(&instance, generation, before);
    let mut daemon = Daemon::start(home.clone(), secret, state, instance, start);
    daemon.serve(port, listeners);
    daemon.publish(generation);
    info!(port, generation, instance = %daemon.instance.0, "the coordinator answers");
    announce(Handshake::Ready { port });
    let why = daemon.run_until(&lock, &ending).await;
    info!(?why, "the coordinator ends");
    if why == Why::Wished {
        // For the bridge, and for a window that misses the notice; before any connection ends.
        save(&daemon.state, |state| state.stopped = true);
        // Fails only when the keeper is gone, and with it everybody to be told.
        let _ = daemon.keeper.announce_down().await;
    }
    match why {
        Why::Replaced => daemon.retire().await,
        _ => daemon.end().await,
    }
    Ok(())
}

/// Why a coordinator ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The user, or a signal, wants it: no successor is to be started for the windows that are open.
    Wished,
    /// A successor has the lock and answers on the port.
    Replaced,
    /// The lock file is gone or was replaced.
    LockLost,
    /// The keeper ended, which it never does by itself.
    KeeperEnded,
}

impl From<LockError> for RunError {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held => Self::AlreadyRunning,
            error => Self::Lock(error),
        }
    }
}

/// Everything that runs once the port is ours.
struct Daemon {
    keeper: Keeper,
    home: Home,
    instance: InstanceId,
    app: Arc<App>,
    ports: watch::Sender<Vec<u16>>,
    saved: watch::Receiver<Saved>,
    orders: mpsc::Receiver<Order>,
    state: StateFile,
    /// Those of the current port once more, for a successor.
    listeners: Vec<OwnedFd>,
    /// The listeners of each port, and how to end them.
    servers: Vec<(u16, CancellationToken, JoinHandle<()>)>,
    closing: CancellationToken,
    /// Ends the streams that clients keep open.
    ending_streams: CancellationToken,
    writer: JoinHandle<()>,
}

impl Daemon {
    fn start(home: Home, secret: Secret, state: StateFile, instance: InstanceId, start: Start) -> Self {
        let client_epoch = state.current().client_epoch;
        let (keeper, saved) = Keeper::spawn(start, client_epoch);
        let (ports, ports_reader) = watch::channel(Vec::new());
        let (order_sender, orders) = mpsc::channel(ORDERS);
        let control = ControlState::new(keeper.clone(), secret.clone(), ports_reader, order_sender);
        let (handovers, handover_requests) = mpsc::channel(HANDOVERS);
        let ending_streams = CancellationToken::new();
        let edge = Edge::new(&secret, keeper.watch(), handovers, ending_streams.clone());
        let app = App::new(secret, keeper.watch(), edge, control::router(control));
        tokio::spawn(hand_over(keeper.clone(), handover_requests));
        let writer = tokio::spawn(write_saved(saved.clone(), state.clone()));
        Self {
            keeper,
            home,
            instance,
            app,
            ports,
            saved,
            orders,
            state,
            listeners: Vec::new(),
            servers: Vec::new(),
            closing: CancellationToken::new(),
            ending_streams,
            writer,
        }
    }

    /// Answers on one more port, which is the current one from now on.
    fn serve(&mut self, port: u16, listeners: Vec<TcpListener>) {
        // Without them nobody can follow without a pause; everything else goes on.
        self.listeners = listeners.iter().filter_map(|one| one.as_fd().try_clone_to_owned().ok()).collect();
        let shutdown = self.closing.child_token();
        let server =
            tokio::spawn(http::serve(listeners, self.app.clone(), shutdown.clone(), self.closing.clone()));
        self.servers.push((port, shutdown, server));
        self.ports.send_modify(|ports| ports.insert(0, port));
    }

    /// Writes where we are; without the file we run, but nobody finds us.
    fn publish(&self, generation: u64) {
        let Some(port) = self.ports.borrow().first().copied() else { return };
        let discovery = singleton::discovery(&self.instance, generation, port);
        if let Err(error) = singleton::publish(&self.home, &discovery) {
            warn!(
                "cannot write discovery.json: {error}; free some disk space or make the state folder writable"
            );
        }
    }

    /// Runs until there is a reason to end.
    async fn run_until(&mut self, lock: &Lock, ending: &CancellationToken) -> Why {
        let mut generation = self.saved.borrow_and_update().generation;
        let mut lost = std::pin::pin!(lock.lost());
        loop {
            tokio::select! {
                () = &mut lost => return Why::LockLost,
                () = ending.cancelled() => return Why::Wished,
                order = self.orders.recv() => match order {
                    Some(Order::ChangePort(port, reply)) => {
                        let changed = self.change_port(port);
                        self.publish(generation);
                        // The asker may have gone; the port has changed all the same.
                        let _ = reply.send(changed);
                    }
                    Some(Order::RotateToken(reply)) => {
                        let rotated = self.rotate_token().await;
                        // The asker may have gone; the old token is worthless all the same.
                        let _ = reply.send(rotated);
                    }
                    Some(Order::Replace(program, reply)) => {
                        let replaced = self.replace(lock, &program).await;
                        let is_done = replaced.is_ok();
                        if let Err(why) = &replaced {
                            warn!(%why, program = %program.display(), "no successor");
                            self.publish(generation);
                        }
                        // The asker may have gone; the successor is there all the same.
                        let _ = reply.send(replaced);
                        if is_done {
                            return Why::Replaced;
                        }
                    }
                    Some(Order::Shutdown) | None => return Why::Wished,
                },
                changed = self.saved.changed() => {
                    if changed.is_err() {
                        return Why::KeeperEnded;
                    }
                    let newer = self.saved.borrow_and_update().generation;
                    if newer != generation {
                        generation = newer;
                        self.publish(generation);
                    }
                }
            }
        }
    }

    /// Written before it is in force: whoever is refused with the old token finds the new epoch in the file.
    async fn rotate_token(&self) -> Result<u32, String> {
        let before = self.state.current().client_epoch;
        let epoch = before.saturating_add(1);
        if let Err(error) = self.state.update(|state| state.client_epoch = epoch) {
            // It never was in force, and must not be written with the next change.
            let _ = self.state.update(|state| state.client_epoch = before);
            return Err(format!(
                "the token is the old one still, because state.json cannot be written ({error}); free some disk \
                 space or make the state folder writable, and try again"
            ));
        }
        self.keeper.set_client_epoch(epoch).await.map_err(|error| error.to_string())?;
        info!(epoch, "the client token was rotated");
        Ok(epoch)
    }

    /// The old URL answers until clients had time to learn the new one.
    fn change_port(&mut self, port: u16) -> Result<(), PortRefused> {
        if self.ports.borrow().first() == Some(&port) {
            return Ok(());
        }
        let old = self.servers.last().map(|(port, shutdown, _)| (*port, shutdown.clone()));
        if self.ports.borrow().contains(&port) {
            let message = format!("port {port} was left a moment ago; try again in a minute");
            return Err(PortRefused(message));
        }
        let (port, listeners) = singleton::bind(port).map_err(|error| {
            let by = matches!(error, BindError::Taken { .. }).then(|| port_owner(port));
            let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
            PortRefused(format!("{error}{by}; choose another port"))
        })?;
        save(&self.state, |state| state.port = Some(port));
        self.serve(port, listeners);
        info!(port, "answers on another port");
        if let Some((old, shutdown)) = old {
            let ports = self.ports.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = sleep(OLD_PORT_GRACE) => {}
                    () = shutdown.cancelled() => {}
                }
                shutdown.cancel();
                ports.send_modify(|ports| ports.retain(|port| *port != old));
            });
        }
        Ok(())
    }

    /// Starts a successor on our lock and listeners; we go on as before when it does not answer.
    async fn replace(&mut self, lock: &Lock, program: &Path) -> Result<u16, String> {
        let Some(port) = self.ports.borrow().first().copied() else { return Err("no port".to_owned()) };
        // From here on the file is the successor's.
        self.writer.abort();
        save(&self.state, |state| remember(state, &self.saved.borrow()));
        let started = succession::start(&self.home, program, lock.as_fd(), (port, &self.listeners)).await;
        match started {
            Ok(()) => lock.pass_on(),
            Err(_) => self.writer = tokio::spawn(write_saved(self.saved.clone(), self.state.clone())),
        }
        started.map(|()| port)
    }

    /// The windows go to the successor, and so do new calls; those that we have are finished (R4's drain limit).
    async fn retire(mut self) {
        // Fails only when the keeper is gone, and its streams with it.
        let _ = self.keeper.end_streams().await;
        self.ending_streams.cancel();
        for (_, shutdown, _) in &self.servers {
            shutdown.cancel();
        }
        let servers = std::mem::take(&mut self.servers);
        let drained = async {
            for (_, _, server) in servers {
                // A server that panicked has nothing more to end.
                let _ = server.await;
            }
        };
        if tokio::time::timeout(DRAIN_LIMIT, drained).await.is_err() {
            warn!("calls were cut that took longer than {} s", DRAIN_LIMIT.as_secs());
        }
        self.writer.abort();
    }

    /// Nobody finds us any more, calls in flight get a moment, what is to be remembered is written.
    async fn end(mut self) {
        singleton::withdraw(&self.home, &self.instance);
        self.listeners.clear();
        self.ending_streams.cancel();
        self.closing.cancel();
        for (_, _, server) in self.servers.drain(..) {
            // A server that panicked has nothing more to end.
            let _ = server.await;
        }
        drop(self.app);
        self.writer.abort();
        save(&self.state, |state| remember(state, &self.saved.borrow()));
    }
}

/// Carries out what AI clients ask for.
async fn hand_over(keeper: Keeper, mut requests: mpsc::Receiver<HandoverRequest>) {
    while let Some(HandoverRequest { window, ask_for, reply }) = requests.recv().await {
        let done = match ask_for {
            Some(client) => keeper.ask_handover(window, client).await,
            None => keeper.take(window).await.map(drop),
        };
        // The client may have gone meanwhile.
        let _ = reply.send(done.map_err(|error| error.to_string()));
    }
}

/// Listens on the port of our choice; as long as a stranger has it, says so once and keeps trying.
async fn bind_patiently(
    home: &Home,
    choice: PortChoice,
    announce: &mut impl FnMut(Handshake),
) -> Result<(u16, Vec<TcpListener>), BindError> {
    let mut is_announced = false;
    loop {
        match (choice.bind(), choice) {
            (Err(BindError::Taken { port }), PortChoice::Fixed(_)) => {
                if !is_announced {
                    is_announced = true;
                    let by = port_owner(port);
                    warn!(port, by, "the port is taken; trying until it is free");
                    if let Err(error) = singleton::publish_waiting(home, port) {
                        warn!("cannot write waiting.json: {error}");
                    }
                    announce(Handshake::PortTaken { port, by });
                }
                sleep(BIND_EVERY).await;
            }
            (result, _) => return result,
        }
    }
}

/// Keeps the file in step with the keeper, never in the way of a takeover.
async fn write_saved(mut saved: watch::Receiver<Saved>, state: StateFile) {
    while saved.changed().await.is_ok() {
        saved.mark_unchanged();
        let (latest, state) = (saved.clone(), state.clone());
        // Read under the lock of the file: a write that was late would undo a later one.
        let written =
            tokio::task::spawn_blocking(move || save(&state, |state| remember(state, &latest.borrow())));
        if written.await.is_err() {
            return;
        }
    }
}

fn remember(state: &mut State, saved: &Saved) {
    state.generation = state.generation.max(saved.generation);
    state.preferred = saved.preferred.as_ref().map(|preferred| crate::state::Preferred {
        window: preferred.window.clone(),
        pid: preferred.pid,
        pid_start: preferred.pid_start,
        term: preferred.term,
    });
    state.vacated = saved.vacated;
    state.settings = saved.settings.clone();
    // The file comes first when the token is rotated.
    state.client_epoch = state.client_epoch.max(saved.client_epoch);
}

/// A full disk or a read-only folder does not stop the coordinator: agents report the terms they have seen.
fn save(state: &StateFile, change: impl FnOnce(&mut State)) {
    if let Err(error) = state.update(change) {
        warn!("cannot write state.json: {error}; free some disk space or make the state folder writable");
    }
}

fn to_start(instance: &InstanceId, generation: u64, state: State) -> Start {
    let previous = state.preferred.map(|preferred| crate::election::Preferred {
        window: preferred.window,
        pid: preferred.pid,
        pid_start: preferred.pid_start,
        term: preferred.term,
    });
    let is_dead = |previous: &crate::election::Preferred| {
        previous.pid_start != 0 && !is_running(previous.pid, previous.pid_start)
    };
    Start {
        instance: instance.clone(),
        generation,
        settings: state.settings,
        previous_is_dead: previous.as_ref().is_some_and(is_dead),
        previous,
        vacated: state.vacated,
    }
}
