//! The agent's place among the windows: finds or starts the coordinator, registers, beats, hears notices, and
//! does it all again whenever the coordinator goes.

mod touch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_link::connection::{CallError, Connection, Events};
use baton_link::find::{FindError, FindOptions, find, find_or_start};
use baton_link::logging;
use baton_link::plant::{self, Plant};
use baton_link::process::{own_id, own_start_time, since_boot};
use baton_proto::PROTOCOL;
use baton_proto::control::{
    DRAIN_MS, DebugSession, Heartbeat, Leave, Notice, Register, Registered, Settings, WindowState,
};
use baton_proto::discovery::Token;
use baton_proto::ids::{InstanceId, Term};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use self::touch::{Beat, Lost, Sent};
use crate::heart::Turns;
use crate::pulse::Pulse;
use crate::report::{Problem, Report, Reporter};
use baton_agent_debug::types::SessionSummary;
use baton_agent_mcp::listening::{Address, Listening};
use baton_agent_tools::window::{Window, to_name};

/// What a member of the coordinator's windows is made of.
#[derive(Debug)]
pub struct Membership {
    window: Arc<Window>,
    find: FindOptions,
    reporter: Reporter,
    pulse: Pulse,
    turns: Turns,
    listening: Listening,
    /// What the coordinator presents to call this agent.
    tokens: watch::Sender<Token>,
    incarnation: u64,
    /// Of the last heartbeat.
    seq: u64,
    /// Of client tokens; the highest that was heard of.
    client_epoch: u32,
    /// The port that was reported last.
    told_port: Option<u16>,
    /// What was reported last of where this window stands.
    told: Option<Notice>,
    /// The user stopped this window (R5).
    is_stopped: bool,
    /// Another window has been live since, so that this one's stop is no reason for nobody to be.
    live_since: bool,
    /// The user ended the coordinator; it is not for this agent to start another.
    is_down: bool,
    /// The user restarts this window (R7).
    restart: CancellationToken,
    /// A run of the coordinator that does not answer any more.
    suspect: Option<InstanceId>,
    n_failures: u32,
}

/// Why membership ended for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// This process is to end.
    Shutdown,
    /// The user restarts the window (R7).
    Restart,
    /// An agent with a higher incarnation took the window's place.
    Superseded,
}

/// Above all that earlier versions took from the wall clock, in milliseconds.
const INCARNATIONS: u64 = 1 << 43;
/// First pause after a failed attempt; doubles up to [`MAX_BACK_OFF`].
const MIN_BACK_OFF: Duration = Duration::from_millis(50);
/// Longest pause between two attempts.
const MAX_BACK_OFF: Duration = Duration::from_secs(2);
/// A coordinator that was there for this long was a good one; the next attempt is at once.
const STABLE_AFTER: Duration = Duration::from_secs(1);
/// How often a window looks for a coordinator that it must not start.
const SUCCESSOR_EVERY: Duration = Duration::from_millis(250);
/// How long the calls that run may go on when the window is restarted.
const DRAIN_LIMIT: Duration = Duration::from_millis(DRAIN_MS);
/// How often waits are interrupted meanwhile, for those that have begun since.
const INTERRUPT_EVERY: Duration = Duration::from_millis(100);
/// The coordinator answers a leave at once, or not at all.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);
/// Calls that were on their way when the coordinator heard that this agent leaves: they are refused, and go to the next
/// one, instead of being lost with the connection.
const LAST_CALLS: Duration = Duration::from_millis(20);

/// What a coordinator took this agent with.
struct Member {
    connection: Connection,
    events: Events,
    /// The sessions that it knows of.
    told: Vec<DebugSession>,
}

/// Of two runs the later one has the higher number. The clock of the machine, not of the wall, which can be set
/// back between a crash and the next run; no coordinator outlives the machine.
fn incarnation() -> u64 {
    INCARNATIONS.saturating_add(u64::try_from(since_boot().as_millis()).unwrap_or_default())
}

impl Membership {
    /// A member that serves MCP there to whoever has the newest of `tokens`. Made on the runtime of the calls; it
    /// may run on another.
    pub fn new(
        window: Arc<Window>,
        find: FindOptions,
        reporter: Reporter,
        pulse: Pulse,
        (listening, tokens): (Listening, watch::Sender<Token>),
    ) -> Self {
        Self {
            window,
            find,
            reporter,
            pulse,
            turns: Turns::of_this_runtime(),
            listening,
            tokens,
            incarnation: incarnation(),
            seq: 0,
            client_epoch: 0,
            told_port: None,
            told: None,
            is_stopped: false,
            live_since: false,
            is_down: false,
            restart: CancellationToken::new(),
            suspect: None,
            n_failures: 0,
        }
    }

    /// Runs until `shutdown`, or until the coordinator says that this agent must end.
    pub async fn run(mut self, shutdown: CancellationToken) -> Ended {
        let mut restarted = std::pin::pin!(drained(self.window.clone(), self.restart.clone()));
        loop {
            let ended = tokio::select! {
                ended = self.attend() => ended,
                () = &mut restarted => {
                    self.leave().await;
                    return Ended::Restart;
                }
                () = shutdown.cancelled() => {
                    self.window.calls.close();
                    self.leave().await;
                    return Ended::Shutdown;
                }
            };
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// One coordinator, from finding it to losing it.
    async fn attend(&mut self) -> Option<Ended> {
        if std::mem::take(&mut self.is_down) {
            self.await_successor().await;
        }
        self.pulse.await_sign().await;
        self.turns.await_turn().await;
        self.find.suspect = self.suspect.take();
        let connection = match find_or_start(&self.find).await {
            Ok(connection) => connection,
            Err(error) => {
                self.report_unreachable(&error);
                self.back_off().await;
                return None;
            }
        };
        let instance = connection.hello().instance.clone();
        self.tell_port(connection.hello().port);
        let registered_at = Instant::now();
        let lost = match self.register(connection).await {
            Ok(member) => self.stay(member, &instance).await,
            Err(error) => Lost::from(error),
        };
        match lost {
            Lost::Ended(ended) => return Some(ended),
            Lost::Silent => {
                warn!("the coordinator is not responding");
                self.suspect = Some(instance);
            }
            Lost::Gone if plant::has(Plant::NoReturn) => std::future::pending().await,
            Lost::Gone => info!("the coordinator is gone"),
            Lost::Evicted => info!("the coordinator no longer knows this window"),
            Lost::Refused(why) => {
                warn!(%why, "the coordinator refused this window");
                self.report_problem(Problem::new("refused", why));
            }
        }
        if registered_at.elapsed() > STABLE_AFTER {
            self.n_failures = 0;
        } else {
            self.back_off().await;
        }
        None
    }

    /// Waits until somebody has started a coordinator again.
    async fn await_successor(&mut self) {
        info!("the user ended the coordinator");
        self.report_problem(Problem::stopped());
        while find(&self.find.home).await.is_err() {
            tokio::time::sleep(SUCCESSOR_EVERY).await;
        }
    }

    fn take_settings(&self, settings: &Settings) {
        self.window.take_settings(settings);
        logging::change(settings);
    }

    /// Tells the coordinator everything it needs to know, and opens the stream of its notices.
    async fn register(&mut self, mut connection: Connection) -> Result<Member, CallError> {
        let newest = connection.hello().protocol.1;
        let unfit = |error: &dyn std::fmt::Display| CallError::Malformed(error.to_string());
        let address = self.listening.address(newest).map_err(|error| unfit(&error))?;
        // The secret can be another one than at the start: somebody removed it, and this coordinator made it anew.
        let secret = self.find.home.secret().map_err(|error| unfit(&error))?;
        let incarnation = Some(self.incarnation).filter(|_| Listening::knows_incarnations(newest));
        self.tokens.send_replace(secret.window_token(&self.window.id, incarnation));
        let (sent_at, register) = (Instant::now(), self.registration(newest, address));
        let registered = connection.register(&self.window.id, &register).await?;
        // At once: a call that waited for this window is on its way by now.
        self.client_epoch = self.client_epoch.max(registered.client_epoch);
        self.take_settings(&registered.settings);
        self.window.fence().handle_coordinator(registered.generation);
        self.apply_state(registered.state, registered.term, registered.awaited);
        self.window.fence().handle_acknowledgement(sent_at);
        // The events come on a connection of their own, whose end says at once that one of the two died.
        let events = connection.open_again().await.map_err(|_| CallError::Lost)?;
        let events = events.events(&self.window.id, self.incarnation).await?;
        info!(instance = %registered.instance.0, generation = registered.generation, "registered");
        Ok(Member { connection, events, told: register.debug_sessions })
    }

    fn registration(&self, newest: u32, address: Address) -> Register {
        let claim = self.window.fence().handle_registration(Instant::now());
        let folders = self.window.workspace().folder_paths();
        Register {
            // An older coordinator takes nobody who speaks what it does not know.
            protocol: newest.min(PROTOCOL),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.window.name(),
            kind: self.window.kind,
            trees: trees_of(&folders),
            folders,
            auto_start: self.window.auto_start(),
            pid: own_id(),
            pid_start: own_start_time(),
            port: address.port,
            socket: address.socket,
            incarnation: self.incarnation,
            highest_term: claim.highest,
            held_term: claim.held,
            fenced: claim.held.is_some() && claim.is_fenced,
            stopped: self.is_stopped,
            live_since: self.live_since,
            debug_sessions: debug_sessions(&self.window.debugger.sessions()),
            focused_ms_ago: self.pulse.is_focused().then_some(0),
            client_epoch: self.client_epoch,
            breakpoints_kept: Some(self.window.debugger.n_restored()),
        }
    }

    /// Beats and hears notices until the coordinator goes.
    async fn stay(&mut self, member: Member, instance: &InstanceId) -> Lost {
        let Member { connection, mut events, mut told } = member;
        let mut beat = Beat::new(connection, self.window.id.clone());
        let mut sessions = self.window.debugger.watch_sessions();
        let now = debug_sessions(&sessions.borrow_and_update());
        // A program can have been started by the first call, which came before the answer to the registration.
        if now != told {
            told = now;
            beat.send(self.heartbeat(&told));
        }
        self.pulse.reset();
        loop {
            tokio::select! {
                notice = events.next() => match notice {
                    Ok(Some(notice)) => if let Some(ended) = self.on_notice(notice).await {
                        return Lost::Ended(ended);
                    },
                    Ok(None) => return Lost::Gone,
                    Err(error) => return Lost::from(error),
                },
                answer = beat.answer() => match answer {
                    Ok((sent, registered)) => self.on_acknowledged(sent, &registered),
                    // The port was changed, or this connection broke alone: as long as its events come, the
                    // coordinator is there, and to let go of those would make this window vanish.
                    Err(Lost::Gone) => match self.reconnect(instance).await {
                        Some(connection) => {
                            beat = Beat::new(connection, self.window.id.clone());
                            beat.send(self.heartbeat(&told));
                        }
                        None => return Lost::Gone,
                    },
                    Err(lost) => return lost,
                },
                () = self.pulse.next(&self.window) => if !self.turns.is_stuck() {
                    beat.send(self.heartbeat(&told));
                },
                changed = changed(&mut sessions) => if changed != told {
                    told = changed;
                    beat.send(self.heartbeat(&told));
                    self.pulse.reset();
                },
            }
        }
    }

    /// Another connection to the same run of the coordinator.
    async fn reconnect(&self, instance: &InstanceId) -> Option<Connection> {
        let connection = find(&self.find.home).await.ok()?;
        (connection.hello().instance == *instance).then_some(connection)
    }

    /// The next heartbeat, and the highest term that is known with it.
    fn heartbeat(&mut self, sessions: &[DebugSession]) -> (Heartbeat, Option<Term>) {
        self.seq += 1;
        let (breakpoints, more_breakpoints) = self.window.breakpoints();
        let heartbeat = Heartbeat {
            incarnation: self.incarnation,
            seq: self.seq,
            focused: self.pulse.is_focused(),
            debug_sessions: sessions.to_vec(),
            folders: self.pulse.is_editor().then(|| self.window.workspace().folder_paths()),
            name: self.pulse.is_editor().then(|| self.window.name()),
            tallies: self.window.tallies(),
            breakpoints,
            more_breakpoints,
        };
        (heartbeat, self.window.fence().highest())
    }

    /// An answer to a heartbeat may have been overtaken by a notice, so it ends no term that came after the heartbeat.
    fn on_acknowledged(&mut self, sent: Sent, registered: &Registered) {
        self.client_epoch = self.client_epoch.max(registered.client_epoch);
        if let Some(port) = registered.port {
            self.tell_port(port);
        }
        let mut fence = self.window.fence();
        fence.handle_coordinator(registered.generation);
        fence.handle_acknowledgement(sent.at);
        match (registered.state, registered.term) {
            (WindowState::Live, Some(term)) => fence.handle_early_grant(term),
            _ => fence.handle_late_revocation(sent.known, registered.awaited),
        }
    }

    async fn on_notice(&mut self, notice: Notice) -> Option<Ended> {
        debug!(?notice, "notice");
        match &notice {
            Notice::State { state, term, live, why, awaited } => {
                self.apply_state(*state, *term, *awaited);
                self.live_since |= self.is_stopped && live.is_some();
                if self.told.as_ref() != Some(&notice) {
                    info!(?state, term = term.map(|term| term.to_string()), %why, "where this window stands");
                    self.reporter.send(Report::State(serde_json::to_value(&notice).unwrap_or(Value::Null)));
                    self.told = Some(notice);
                }
            }
            Notice::AutoStart { auto_start } => self.window.set_auto_start(*auto_start),
            Notice::Settings { settings } => self.take_settings(settings),
            Notice::Stop => {
                (self.is_stopped, self.live_since) = (true, false);
                // Not here: the engine may be busy.
                let window = self.window.clone();
                tokio::spawn(async move { window.debugger.interrupt_waits().await });
            }
            Notice::Down => self.is_down = true,
            Notice::Restart => self.restart.cancel(),
            Notice::Superseded => return Some(Ended::Superseded),
            // A headless window has nobody to ask; the coordinator knows.
            Notice::AskHandover { client } => {
                self.reporter.send(Report::AskHandover { client: client.clone() });
            }
            Notice::Tick => {}
        }
        None
    }

    fn apply_state(&mut self, state: WindowState, term: Option<Term>, awaited: bool) {
        match (state, term) {
            (WindowState::Live, Some(term)) => self.window.fence().handle_grant(term),
            _ => self.window.fence().handle_revocation(awaited),
        }
        // Off although it may start by itself: the user stopped it. An agent that was started again hears it so, and
        // tells the next coordinator.
        self.is_stopped = state == WindowState::Off && (self.is_stopped || self.window.auto_start());
        self.live_since &= self.is_stopped;
    }

    /// Tells the coordinator that this agent ends; calls are closed already.
    async fn leave(&self) {
        let leave = async {
            let mut connection = find(&self.find.home).await.ok()?;
            let leave = Leave { incarnation: self.incarnation };
            connection.leave(&self.window.id, &leave).await.ok()
        };
        // Without a coordinator there is nothing to leave.
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, leave).await;
        tokio::time::sleep(LAST_CALLS).await;
    }

    fn report_unreachable(&mut self, error: &FindError) {
        warn!("no coordinator: {error}");
        self.report_problem(Problem::from(error));
    }

    fn tell_port(&mut self, port: u16) {
        if self.told_port.replace(port) != Some(port) {
            self.find.home.remember_port(port);
            self.reporter.send(Report::Connected { port });
        }
    }

    fn report_problem(&mut self, problem: Problem) {
        self.reporter.send(Report::Problem(problem));
        // Where the window stands is news again after it.
        self.told = None;
    }

    async fn back_off(&mut self) {
        let pause = MIN_BACK_OFF * 2_u32.saturating_pow(self.n_failures.min(8));
        self.n_failures += 1;
        tokio::time::sleep(pause.min(MAX_BACK_OFF)).await;
    }
}

/// Once `restart` is wished: finishes the calls that run, and takes no more. Waits for programs end at once, because
/// the programs end with this agent.
async fn drained(window: Arc<Window>, restart: CancellationToken) {
    restart.cancelled().await;
    info!("the window is restarted");
    window.calls.close();
    let interrupting = async {
        loop {
            window.debugger.interrupt_waits().await;
            tokio::time::sleep(INTERRUPT_EVERY).await;
        }
    };
    tokio::select! {
        is_done = window.calls.ended(DRAIN_LIMIT) => if !is_done {
            warn!("calls are cut that took longer than {} s", DRAIN_LIMIT.as_secs());
        },
        () = interrupting => {}
    }
}

/// The sessions after the next change.
async fn changed(sessions: &mut watch::Receiver<Vec<SessionSummary>>) -> Vec<DebugSession> {
    if sessions.changed().await.is_err() {
        // The debugger is gone, and with it all change.
        return std::future::pending().await;
    }
    debug_sessions(&sessions.borrow_and_update())
}

/// The root of each folder's tree, as [`Register::trees`] has them.
fn trees_of(folders: &[String]) -> Vec<String> {
    let root = |folder: &String| baton_link::trees::tree_of(Path::new(folder));
    let to_text = |root: PathBuf| root.to_string_lossy().into_owned();
    folders.iter().map(|folder| root(folder).map(to_text).unwrap_or_default()).collect()
}

fn debug_sessions(sessions: &[SessionSummary]) -> Vec<DebugSession> {
    let to_wire = |session: &SessionSummary| DebugSession {
        id: session.id.0.clone(),
        name: to_name(&session.name, session.id.as_str()),
        by_user: session.by_user,
    };
    sessions.iter().map(to_wire).collect()
}
