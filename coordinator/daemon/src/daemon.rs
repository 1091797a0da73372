//! The life of a coordinator: lock, generation, port, parts, and a graceful end.
//!
//! | module | what belongs there |
//! |---|---|
//! | `configure` | settings: what the user wrote, what a command changes |
//! | `ports` | where it answers, and who keeps the port when it is killed |
//! | `token` | the token of MCP clients: rotated, revoked |
//! | `remember` | `state.json`: what the next one is left |

mod configure;
mod ports;
mod remember;
mod token;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use baton_control::{Control, ControlState, Order};
use baton_edge::{Edge, HandoverRequest};
use baton_election::election::Start;
use baton_election::keeper::{Keeper, Saved};
use baton_http::guard::TokenNews;
use baton_http::passes::Passes;
use baton_link::explain::Explanation;
use baton_link::home::{Home, HomeError, random_hex};
use baton_link::{logging, socket};
use baton_metrics::Push;
use baton_page::Page;
use baton_page::streams::Streams;
use baton_proto::discovery::Secret;
use baton_proto::ids::InstanceId;
use baton_proto::start::Handshake;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::app::App;
use crate::configuration::Configuration;
use crate::holder::Lease;
use crate::presence::Presence;
use crate::singleton::{self, BindError, Lock, LockError, PortChoice};
use crate::state::{State, StateFile};
use crate::succession::{self, Inheritance};
use crate::watchers::Watchers;
use ports::bind_patiently;
use remember::{begin, mend, remember, save, to_start, write_saved};

/// Generations are told apart by the millisecond in which they are made.
const GENERATION_STEP: Duration = Duration::from_millis(1);

/// Files of the state folder that are replaced as a whole.
const WRITTEN: [&str; 5] =
    ["state.json", "discovery.json", "waiting.json", "config.toml", "config.schema.json"];

/// Orders of the control API that wait.
const ORDERS: usize = 8;

/// Requests of AI clients to hand over that wait for the keeper.
const HANDOVERS: usize = 16;

/// How long a coordinator that ends goes on answering, so that nobody who calls all the time loses a call.
const LAST_CALLS: Duration = Duration::from_millis(200);

/// How often it is looked whether others still find us.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long calls may go on after a successor has taken over: the longest that one may take, and a little.
const DRAIN_LIMIT: Duration = Duration::from_secs(310);

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
    #[error("another coordinator is already running")]
    AlreadyRunning,
    /// The user ended the one that this was to succeed.
    #[error("the coordinator was stopped with `baton down`")]
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

impl RunError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::AlreadyRunning | Self::Lock(LockError::Held) => Some("see `baton status`".to_owned()),
            Self::Stopped => Some("start it with `baton up`".to_owned()),
            Self::Home(error) => error.hint(),
            Self::Lock(LockError::Io { .. }) => {
                Some("make the state folder writable and keep it on a local file system".to_owned())
            }
            Self::Bind(_) => None,
        }
    }
}

/// Runs a coordinator until `ending`, an order to end, or the loss of its lock. `announce` is told how the start
/// went: once that a stranger holds the port, if so, and once that the coordinator answers.
pub async fn run(
    options: Options,
    mut announce: impl FnMut(Handshake),
    ending: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let mut ending = std::pin::pin!(ending);
    let home = &options.home;
    let (lock, inherited, socket) = match options.inheritance {
        Some(left) => {
            let lock = Lock::adopt(home, left.lock).map_err(RunError::Lock)?;
            (lock, Some((left.port, left.listeners)), left.socket)
        }
        None => (Lock::acquire(home).await?, None, None),
    };
    let lock = Arc::new(lock);
    // These are written under the lock alone.
    home.remove_leftovers(&WRITTEN);
    let secret = home.secret()?;
    let state = StateFile::load(home, lock.clone());
    let before = state.current();
    let mut configuration = Configuration::new(home);
    let before = State { settings: configuration.begin(&before), ..before };
    logging::change(&before.settings);
    // Whoever remembers a port lost a coordinator; its starter may have been slower than the user's `baton down`.
    if before.stopped && options.fallback_port.is_some() {
        return Err(RunError::Stopped);
    }
    let instance =
        InstanceId(random_hex().map_err(|source| HomeError::Io { path: home.path().into(), source })?);
    let beginning = begin(home, &instance, &state, &before, options.fallback_port);
    let generation = beginning.generation;

    // The predecessor's own word, when the file is lost.
    let stored = before.port.or_else(|| Some(home.discovery()?.port));
    let choice = PortChoice::new(options.port, stored, options.fallback_port);
    let bind = async {
        let left = Lease::take(home).await;
        match (inherited, left) {
            (Some(inherited), left) => Ok((inherited, left.map(|left| left.lease))),
            (None, Some(left)) if choice.allows(left.port) => {
                Ok(((left.port, left.listeners), Some(left.lease)))
            }
            (None, left) => {
                if let Some(left) = left {
                    left.lease.release();
                }
                Ok((bind_patiently(home, choice, &mut announce).await?, None))
            }
        }
    };
    let ((port, listeners), lease) = tokio::select! {
        bound = bind => bound.map_err(RunError::Bind)?,
        () = lock.lost() => return Ok(()),
        () = &mut ending => {
            singleton::withdraw_waiting(home);
            return Ok(());
        }
    };
    singleton::withdraw_waiting(home);
    save(&state, |state| state.port = Some(port));

    // Nobody else can have made the same generation by the clock.
    sleep_until(beginning.at + GENERATION_STEP).await;
    let start = to_start(&instance, &beginning, before);
    let mut daemon = Daemon::start(home.clone(), secret, state, instance, start);
    (daemon.lease, daemon.configuration) = (lease, configuration);
    daemon.note_configuration();
    daemon.tell_warnings();
    daemon.serve(port, listeners);
    daemon.serve_socket(socket);
    daemon.publish(generation);
    info!(port, generation, instance = %daemon.instance.0, "the coordinator is ready");
    announce(Handshake::Ready { port });
    daemon.hold_port();
    socket::sweep(home);
    let why = daemon.run_until(&lock, ending).await;
    finish(daemon, why).await;
    Ok(())
}

/// Ends a coordinator so that whoever is to learn of it does.
async fn finish(daemon: Daemon, why: Why) {
    info!(?why, "the coordinator is shutting down");
    if why == Why::Wished {
        // For the bridge, and for a window that misses the notice; before any connection ends.
        save(&daemon.state, |state| state.stopped = true);
        // Fails only when the keeper is gone, and with it everybody to be told.
        let _ = daemon.keeper.announce_down().await;
    }
    match why {
        Why::Replaced => daemon.retire().await,
        _ => daemon.end(why).await,
    }
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
    /// The file with the secret is gone, or holds another one: whoever comes from now on has that.
    SecretLost,
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
    secret: Secret,
    instance: InstanceId,
    app: Arc<App>,
    ports: watch::Sender<Vec<u16>>,
    saved: watch::Receiver<Saved>,
    orders: mpsc::Receiver<Order>,
    state: StateFile,
    /// Those of the current port once more, for a successor and for the holder.
    listeners: Vec<OwnedFd>,
    /// The listeners of each port, and how to end them.
    servers: Vec<(u16, CancellationToken, JoinHandle<()>)>,
    presence: Presence,
    /// The listener of our socket, and how to end it.
    socket: Option<(CancellationToken, JoinHandle<()>)>,
    /// Keeps the port over our sudden end.
    lease: Option<Lease>,
    /// When a holder was started last.
    held_at: Option<Instant>,
    token_news: mpsc::Receiver<TokenNews>,
    closing: CancellationToken,
    /// Ends the streams that clients keep open.
    ending_streams: CancellationToken,
    writer: JoinHandle<()>,
    /// What `baton status` warns of.
    warnings: watch::Sender<Vec<String>>,
    configuration: Configuration,
    /// Sends what is counted to whom the settings name.
    push: Push,
}

impl Daemon {
    fn start(home: Home, secret: Secret, state: StateFile, instance: InstanceId, start: Start) -> Self {
        let client_epoch = state.current().client_epoch;
        let (keeper, saved) = Keeper::spawn(start, client_epoch);
        let (ports_sender, ports_reader) = watch::channel(Vec::new());
        let (order_sender, orders) = mpsc::channel(ORDERS);
        let (warnings, warnings_reader) = watch::channel(Vec::new());
        let ending_streams = CancellationToken::new();
        let (passes, watchers) = (Passes::new(&secret, &instance), Watchers::new());
        let (handovers, handover_requests) = mpsc::channel(HANDOVERS);
        let at = (&secret, Some(home.clone()));
        let (metrics, mut seen) = (watchers.metrics.clone(), watchers.seen(&home));
        let push = Push::new(metrics.clone(), &instance.0);
        let edge = Edge::new(at, keeper.watch(), handovers, ending_streams.clone(), Arc::new(watchers));
        let of_streams = edge.clone();
        seen.streams = Streams::new(move |wish| of_streams.raw(wish));
        let (closing, ports) = (ending_streams.clone(), ports_reader.clone());
        let page = Page::new(keeper.clone(), passes.clone(), ports, seen, closing);
        let control = ControlState::new(
            keeper.clone(),
            secret.clone(),
            ports_reader.clone(),
            order_sender,
            warnings_reader,
            page.clone(),
        );
        let (news_sender, token_news) = mpsc::channel(1);
        let app = App::new(
            secret.clone(),
            keeper.watch(),
            (edge, metrics),
            Control::new(control),
            (page, passes),
            news_sender,
            ports_reader,
        );
        tokio::spawn(hand_over(keeper.clone(), handover_requests));
        let writer = tokio::spawn(write_saved(saved.clone(), state.clone()));
        Self {
            configuration: Configuration::new(&home),
            push,
            keeper,
            presence: Presence::new(home.clone()),
            home,
            secret,
            instance,
            app,
            ports: ports_sender,
            saved,
            orders,
            state,
            listeners: Vec::new(),
            servers: Vec::new(),
            socket: None,
            lease: None,
            held_at: None,
            token_news,
            closing: CancellationToken::new(),
            ending_streams,
            writer,
            warnings,
        }
    }

    /// Says where we are; without the file we run, and are found by our socket.
    fn publish(&mut self, generation: u64) {
        let Some(port) = self.ports.borrow().first().copied() else { return };
        self.presence.publish(singleton::discovery(&self.instance, generation, port));
    }

    /// Runs until there is a reason to end.
    async fn run_until(&mut self, lock: &Lock, mut ending: Pin<&mut impl Future<Output = ()>>) -> Why {
        let mut generation = self.saved.borrow_and_update().generation;
        let mut lost = std::pin::pin!(lock.lost());
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut lost => return Why::LockLost,
                () = &mut ending => return Why::Wished,
                _ = look.tick() => if lock.is_intact() {
                    if !self.home.holds(&self.secret) {
                        return Why::SecretLost;
                    }
                    self.serve_socket(None);
                    self.hold_port();
                    self.look_at_configuration().await;
                    self.push_figures();
                    mend(&self.state).await;
                },
                () = gone(&mut self.lease) => {
                    self.lease = None;
                    if lock.is_intact() {
                        self.hold_port();
                    }
                }
                Some(news) = self.token_news.recv() => self.on_token_news(news).await,
                order = self.orders.recv() => match order {
                    Some(Order::ChangePort(port, reply)) => {
                        let changed = self.change_port(port);
                        self.publish(generation);
                        // The asker may have gone; the port has changed all the same.
                        let _ = reply.send(changed);
                    }
                    Some(Order::ChangeSettings(change, reply)) => {
                        let _ = reply.send(self.change_settings(*change).await);
                    }
                    Some(Order::Edge(order)) => self.app.carry_out(order),
                    Some(Order::RotateToken(reply)) => {
                        // The asker may have gone; the old token is worthless all the same.
                        let _ = reply.send(self.rotate_as_told().await);
                    }
                    Some(Order::TokenHeard(heard, reply)) => {
                        self.on_heard(heard.uid, heard.epoch).await;
                        // The asker may have gone; the token is worthless all the same.
                        let _ = reply.send(());
                    }
                    Some(Order::Replace(program, reply)) => {
                        let replaced = self.replace(lock, &program).await;
                        let is_done = replaced.is_ok();
                        if let Err(why) = &replaced {
                            warn!(%why, program = %program.display(), "cannot start the new coordinator");
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
                    let newer = self.take_over_saved();
                    if newer != generation {
                        generation = newer;
                        self.publish(generation);
                    }
                }
            }
        }
    }

    /// Logs as the newest settings say, and says of which generation they are.
    fn take_over_saved(&mut self) -> u64 {
        let saved = self.saved.borrow_and_update();
        logging::change(&saved.settings);
        saved.generation
    }

    /// Starts a successor on our lock and listeners; we go on as before when it does not answer.
    async fn replace(&mut self, lock: &Lock, program: &Path) -> Result<u16, Explanation> {
        let Some(port) = self.ports.borrow().first().copied() else {
            return Err(Explanation::new("the coordinator has no port"));
        };
        // From here on the file is the successor's.
        self.writer.abort();
        save(&self.state, |state| remember(state, &self.saved.borrow()));
        let socket = self.presence.socket().map(AsFd::as_fd);
        let ports = (port, self.listeners.as_slice());
        let started = succession::start(&self.home, program, lock.as_fd(), ports, socket).await;
        match started {
            Ok(()) => lock.pass_on(),
            Err(_) => self.writer = tokio::spawn(write_saved(self.saved.clone(), self.state.clone())),
        }
        started.map(|()| port)
    }

    /// Whoever gave an order that nobody carries out any more hears so now.
    fn answer_orders(&mut self, successor: Option<u16>) {
        self.orders.close();
        while let Ok(order) = self.orders.try_recv() {
            if let (Order::Replace(_, reply), Some(port)) = (order, successor) {
                // Another one has just followed; the asker finds it, and may ask that.
                let _ = reply.send(Ok(port));
            }
        }
    }

    /// The windows go to the successor, and so do new calls; those that we have are finished to their ends.
    async fn retire(mut self) {
        // What still comes on open connections is the successor's; so is the next connection of a window.
        let port = self.ports.borrow().first().copied();
        self.answer_orders(port);
        if let Some(port) = port {
            self.app.retire(port);
        }
        for (_, shutdown, _) in &self.servers {
            shutdown.cancel();
        }
        if let Some((shutdown, _)) = &self.socket {
            shutdown.cancel();
        }
        // Fails only when the keeper is gone, and its streams with it.
        let _ = self.keeper.end_streams().await;
        self.ending_streams.cancel();
        let mut servers: Vec<_> = self.servers.drain(..).map(|(_, _, server)| server).collect();
        servers.extend(self.socket.take().map(|(_, server)| server));
        let drained = async {
            for server in servers {
                // A server that panicked has nothing more to end.
                let _ = server.await;
            }
        };
        if tokio::time::timeout(DRAIN_LIMIT, drained).await.is_err() {
            warn!("canceled calls that took longer than {} s", DRAIN_LIMIT.as_secs());
        }
        self.push_last().await;
        self.writer.abort();
    }

    /// Nobody finds us any more, calls in flight get a moment, what is to be remembered is written.
    async fn end(mut self, why: Why) {
        self.answer_orders(None);
        self.app.leave();
        tokio::time::sleep(LAST_CALLS).await;
        self.presence.withdraw();
        socket::sweep(&self.home);
        let is_holder_lost = socket::identity(&self.home, socket::PORT_HOLDER).is_none();
        match self.lease.take() {
            Some(lease) if why == Why::Wished || is_holder_lost => lease.end().await,
            // Dropped, it tells the holder to wait for the next coordinator.
            Some(_lost) => self.app.hand_on(),
            None => {}
        }
        self.listeners.clear();
        self.ending_streams.cancel();
        self.app.end();
        self.closing.cancel();
        let servers = self.servers.drain(..).map(|(_, _, server)| server);
        for server in servers.chain(self.socket.take().map(|(_, server)| server)) {
            // A server that panicked has nothing more to end.
            let _ = server.await;
        }
        self.push_last().await;
        self.writer.abort();
        save(&self.state, |state| remember(state, &self.saved.borrow()));
    }
}

/// Ends when the process that keeps the port has ended.
async fn gone(lease: &mut Option<Lease>) {
    match lease {
        Some(lease) => lease.gone().await,
        None => std::future::pending().await,
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
