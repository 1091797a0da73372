//! The one task that owns [`Election`]: commands in, roster out, event streams, one timer.

mod streams;
#[cfg(test)]
mod tests;
#[cfg_attr(sim, path = "sim/witness.rs")]
pub mod witness;

use std::sync::Arc;
use std::time::Duration;

use baton_proto::control::{
    Heartbeat, Notice, Outcome, Register, Registered, Settings, SettingsChange, WindowKind,
};
use baton_proto::ids::{Term, WindowId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::{debug, info};

use crate::election::{Election, Input, Output, Preferred, Refused, Start};
use crate::roster::Roster;
pub use streams::Events;
use streams::Streams;

/// Commands that wait while one is worked on; a sender beyond it waits its turn.
const COMMANDS: usize = 256;
/// How often a silent event stream gets a [`Notice::Tick`].
const STREAM_TICK: Duration = Duration::from_secs(15);

/// The handle to the task; the task ends with the last one.
#[derive(Clone, Debug)]
pub struct Keeper {
    commands: mpsc::Sender<Command>,
    roster: watch::Receiver<Arc<Roster>>,
}

/// What the next coordinator must find in `state.json`; a new value is published after every change.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// Generation of the terms granted from now on; grows when agents report a higher one.
    pub generation: u64,
    /// The window whose place the next coordinator holds (R9).
    pub preferred: Option<Preferred>,
    /// Whether nobody is live because the user wanted it so (R5).
    pub vacated: Option<Term>,
    /// Whether it is not known yet who was live before this coordinator.
    pub unsure: bool,
    /// Settings in force.
    pub settings: Settings,
    /// Rotations of the client token.
    pub client_epoch: u32,
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeeperError {
    /// The election refused it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The window has nobody who could be asked.
    #[error("nobody can be asked in this window")]
    NobodyToAsk,
    /// The coordinator ends.
    #[error("the coordinator is shutting down")]
    Ended,
}

impl KeeperError {
    /// What to try, on a command line.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Refused(Refused::TooManyWindows) => Some("close some windows"),
            Self::Refused(Refused::NotRegistered) => Some("register it first"),
            Self::Refused(Refused::StaleIncarnation | Refused::ImpossibleTerm) => None,
            Self::NobodyToAsk => {
                Some("hand over with `baton take`, or run `baton settings ai_handover always`")
            }
            Self::Ended => Some("try again in a second"),
        }
    }
}

type Reply<T> = oneshot::Sender<Result<T, KeeperError>>;

/// What a user does to a window.
#[derive(Clone, Copy, Debug)]
enum Verb {
    Take,
    Stop,
    Restart,
    SetAutoStart(bool),
}

/// Everything the task can be asked for.
#[derive(Debug)]
enum Command {
    Register(WindowId, Box<Register>, Reply<Registered>),
    Heartbeat(WindowId, Heartbeat, Reply<Registered>),
    Leave(WindowId, u64, Reply<()>),
    OpenEvents(WindowId, u64, Reply<Events>),
    Do(Verb, WindowId, Reply<Outcome>),
    ChangeSettings(SettingsChange, Reply<Settings>),
    AskHandover(WindowId, String, Reply<()>),
    SetClientEpoch(u32, Reply<()>),
    Snapshot(Reply<Arc<Roster>>),
    AnnounceDown(Reply<()>),
    EndStreams(Reply<()>),
}

impl Keeper {
    /// Starts the task. `Saved` is to be written down by whoever owns the file, never in the way of a takeover.
    pub fn spawn(start: Start, client_epoch: u32) -> (Self, watch::Receiver<Saved>) {
        let election = Election::new(Instant::now(), start);
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (roster, roster_reader) = watch::channel(Arc::new(election.roster(Instant::now(), client_epoch)));
        let (saved, saved_reader) = watch::channel(to_saved(&election, client_epoch));
        let task =
            Task { election, client_epoch, streams: Streams::default(), roster, saved, is_retired: false };
        tokio::spawn(task.run(inbox));
        (Self { commands, roster: roster_reader }, saved_reader)
    }

    /// All windows as of now.
    pub fn roster(&self) -> Arc<Roster> {
        self.roster.borrow().clone()
    }

    /// All windows, with every change.
    pub fn watch(&self) -> watch::Receiver<Arc<Roster>> {
        self.roster.clone()
    }

    /// All windows as of now, exact also in what is not worth a change: since when the focused one is focused.
    pub async fn snapshot(&self) -> Result<Arc<Roster>, KeeperError> {
        self.ask(Command::Snapshot).await
    }

    /// Tells all windows that the user ends this coordinator, so that none of them starts a successor.
    pub async fn announce_down(&self) -> Result<(), KeeperError> {
        self.ask(Command::AnnounceDown).await
    }

    /// Ends all event streams: the windows look for a coordinator again, and find the successor.
    pub async fn end_streams(&self) -> Result<(), KeeperError> {
        self.ask(Command::EndStreams).await
    }

    /// A window announces itself.
    pub async fn register(&self, id: WindowId, register: Register) -> Result<Registered, KeeperError> {
        self.ask(|reply| Command::Register(id, Box::new(register), reply)).await
    }

    /// A sign of life.
    pub async fn heartbeat(&self, id: WindowId, heartbeat: Heartbeat) -> Result<Registered, KeeperError> {
        self.ask(|reply| Command::Heartbeat(id, heartbeat, reply)).await
    }

    /// A window ends on purpose.
    pub async fn leave(&self, id: WindowId, incarnation: u64) -> Result<(), KeeperError> {
        self.ask(|reply| Command::Leave(id, incarnation, reply)).await
    }

    /// Opens the event stream of a window; dropping it means that the window vanished.
    pub async fn open_events(&self, id: WindowId, incarnation: u64) -> Result<Events, KeeperError> {
        self.ask(|reply| Command::OpenEvents(id, incarnation, reply)).await
    }

    /// The user takes the live place for a window (R4).
    pub async fn take(&self, id: WindowId) -> Result<Outcome, KeeperError> {
        self.ask(|reply| Command::Do(Verb::Take, id, reply)).await
    }

    /// The user starts a window: the same as taking it (R4).
    pub async fn start(&self, id: WindowId) -> Result<Outcome, KeeperError> {
        self.take(id).await
    }

    /// The user stops a window (R5).
    pub async fn stop(&self, id: WindowId) -> Result<Outcome, KeeperError> {
        self.ask(|reply| Command::Do(Verb::Stop, id, reply)).await
    }

    /// The user restarts a window (R7).
    pub async fn restart(&self, id: WindowId) -> Result<Outcome, KeeperError> {
        self.ask(|reply| Command::Do(Verb::Restart, id, reply)).await
    }

    /// The user switches auto-start (R8).
    pub async fn set_auto_start(&self, id: WindowId, on: bool) -> Result<Outcome, KeeperError> {
        self.ask(|reply| Command::Do(Verb::SetAutoStart(on), id, reply)).await
    }

    /// The user changes settings.
    pub async fn change_settings(&self, change: SettingsChange) -> Result<Settings, KeeperError> {
        self.ask(|reply| Command::ChangeSettings(change, reply)).await
    }

    /// Asks the user, in the window, whether it may become live; `client` is who wants that.
    pub async fn ask_handover(&self, id: WindowId, client: String) -> Result<(), KeeperError> {
        self.ask(|reply| Command::AskHandover(id, client, reply)).await
    }

    /// Makes the client tokens of earlier epochs worthless. The caller has written `epoch` down already, or learns of
    /// it when the state was lost.
    pub async fn set_client_epoch(&self, epoch: u32) -> Result<(), KeeperError> {
        self.ask(|reply| Command::SetClientEpoch(epoch, reply)).await
    }

    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, KeeperError> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| KeeperError::Ended)?;
        answer.await.map_err(|_| KeeperError::Ended)?
    }
}

struct Task {
    election: Election,
    client_epoch: u32,
    streams: Streams,
    roster: watch::Sender<Arc<Roster>>,
    saved: watch::Sender<Saved>,
    /// The windows are the successor's: that they are silent here means nothing to the calls that still run.
    is_retired: bool,
}

impl Task {
    async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        let mut next_tick = Instant::now() + STREAM_TICK;
        loop {
            let due = self.election.poll_timeout().filter(|_| !self.is_retired);
            let deadline = due.map_or(next_tick, |due| due.min(next_tick));
            tokio::select! {
                // A flood of commands must not keep the sweeper from running.
                biased;
                () = tokio::time::sleep_until(deadline) => if !self.is_retired {
                    self.election.handle_timeout(Instant::now());
                },
                (window, incarnation) = self.streams.next_closed() => {
                    self.on_stream_closed(window, incarnation);
                }
                command = inbox.recv() => match command {
                    Some(command) => self.on_command(command),
                    None => break,
                },
            }
            self.drive_outputs();
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + STREAM_TICK;
                self.streams.send_to_all(&Notice::Tick);
            }
        }
    }

    fn on_stream_closed(&mut self, window: WindowId, incarnation: u64) {
        info!(%window, incarnation, "its event stream ended");
        // Refused when a newer agent has taken over, which is as good.
        let _ = self.handle(Input::EventsClosed(window, incarnation));
    }

    /// Answers are sent after the outputs: who was told of a grant finds it in the roster.
    fn on_command(&mut self, command: Command) {
        match command {
            Command::Register(window, register, reply) => {
                info!(%window, name = register.name, incarnation = register.incarnation, "registers");
                let incarnation = register.incarnation;
                self.client_epoch = self.client_epoch.max(register.client_epoch);
                let result = self.handle(Input::Register(window.clone(), register));
                if result.is_ok() {
                    self.streams.expect(&window, incarnation);
                }
                answer(reply, result.and_then(|()| self.registered(&window)));
            }
            Command::Heartbeat(window, heartbeat, reply) => {
                let result = self.handle(Input::Heartbeat(window.clone(), heartbeat));
                answer(reply, result.and_then(|()| self.registered(&window)));
            }
            Command::Leave(window, incarnation, reply) => {
                info!(%window, incarnation, "leaves");
                let result = self.handle(Input::Leave(window.clone(), incarnation));
                self.streams.close(&window, Some(incarnation));
                answer(reply, result);
            }
            Command::OpenEvents(window, incarnation, reply) => {
                answer(reply, self.open_events(window, incarnation));
            }
            Command::Do(verb, window, reply) => {
                info!(%window, ?verb, "the user commands");
                let result = self.handle(verb.input(window.clone()));
                answer(reply, result.and_then(|()| Ok(self.election.outcome(&window)?)));
            }
            Command::ChangeSettings(change, reply) => {
                let settings = self.election.settings().clone().changed(change);
                let result = self.handle(Input::SetSettings(settings));
                answer(reply, result.map(|()| self.election.settings().clone()));
            }
            Command::AskHandover(window, client, reply) => answer(reply, self.ask_handover(&window, client)),
            Command::SetClientEpoch(epoch, reply) => {
                self.client_epoch = self.client_epoch.max(epoch);
                self.publish();
                answer(reply, Ok(()));
            }
            Command::AnnounceDown(reply) => {
                self.streams.send_to_all(&Notice::Down);
                answer(reply, Ok(()));
            }
            Command::EndStreams(reply) => {
                self.is_retired = true;
                self.streams.close_all();
                answer(reply, Ok(()));
            }
            Command::Snapshot(reply) => {
                answer(reply, Ok(Arc::new(self.election.roster(Instant::now(), self.client_epoch))));
            }
        }
    }

    fn registered(&self, window: &WindowId) -> Result<Registered, KeeperError> {
        Ok(Registered { client_epoch: self.client_epoch, ..self.election.registered(window)? })
    }

    fn handle(&mut self, input: Input) -> Result<(), KeeperError> {
        let result = self.election.handle(Instant::now(), input);
        self.drive_outputs();
        Ok(result?)
    }

    fn open_events(&mut self, window: WindowId, incarnation: u64) -> Result<Events, KeeperError> {
        let known = self.roster.borrow().windows.get(&window).map(|window| window.incarnation);
        let events = match known {
            // Opened first: what the election says at once must find it.
            Some(known) if known == incarnation => self.streams.open(window.clone(), incarnation),
            Some(known) if known > incarnation => return Err(Refused::StaleIncarnation.into()),
            _ => return Err(Refused::NotRegistered.into()),
        };
        self.handle(Input::EventsOpened(window.clone(), incarnation))?;
        let settings = Box::new(self.election.settings().clone());
        self.streams.send(&window, Notice::Settings { settings });
        Ok(events)
    }

    fn ask_handover(&mut self, window: &WindowId, client: String) -> Result<(), KeeperError> {
        let kind = self.roster.borrow().windows.get(window).map(|window| window.kind);
        match kind {
            None => Err(Refused::NotRegistered.into()),
            Some(WindowKind::Headless) => Err(KeeperError::NobodyToAsk),
            Some(WindowKind::Vscode) => match self.streams.send(window, Notice::AskHandover { client }) {
                true => Ok(()),
                false => Err(KeeperError::NobodyToAsk),
            },
        }
    }

    fn drive_outputs(&mut self) {
        while let Some(output) = self.election.poll_output() {
            match output {
                Output::Changed => self.publish(),
                Output::Notify(window, notice) => {
                    debug!(%window, ?notice, "notice");
                    self.streams.send(&window, notice);
                }
                Output::CloseEvents(window) => self.streams.close(&window, None),
            }
        }
    }

    fn publish(&mut self) {
        let roster = Arc::new(self.election.roster(Instant::now(), self.client_epoch));
        let before = self.roster.send_replace(roster.clone());
        if before.live != roster.live {
            match &roster.live {
                Some((window, term)) => {
                    witness::granted(window, *term);
                    info!(%window, %term, "became live");
                }
                None => {
                    info!(awaiting = ?roster.awaiting.as_ref().map(|(id, _)| id.as_str()), "nobody is live")
                }
            }
        }
        let saved = to_saved(&self.election, self.client_epoch);
        self.saved.send_if_modified(|current| {
            let is_new = *current != saved;
            *current = saved;
            is_new
        });
    }
}

impl Verb {
    fn input(self, window: WindowId) -> Input {
        match self {
            Self::Take => Input::Take(window),
            Self::Stop => Input::Stop(window),
            Self::Restart => Input::Restart(window),
            Self::SetAutoStart(on) => Input::SetAutoStart(window, on),
        }
    }
}

/// Nobody waits for the answer when the caller's connection has gone; what was done stays done.
fn answer<T>(reply: Reply<T>, result: Result<T, KeeperError>) {
    let _ = reply.send(result);
}

fn to_saved(election: &Election, client_epoch: u32) -> Saved {
    Saved {
        generation: election.generation(),
        preferred: election.preferred().cloned(),
        vacated: election.vacated(),
        unsure: election.is_unsure(),
        settings: election.settings().clone(),
        client_epoch,
    }
}
