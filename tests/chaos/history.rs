//! What happened, in time order: every call of every client, and every event around them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_proto::ids::Term;

/// Time since the run began.
pub(crate) type Moment = Duration;

/// How long after `baton down` the coordinator is up again.
const AROUND_DOWN: Duration = Duration::from_secs(10);
/// A death of the coordinator tears connections that are open in this time around it.
const AROUND_DEATH: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(1_500));

/// What a client was told about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Told {
    /// It ran.
    Done,
    /// It may have run: `outcome_unknown`, `interrupted`.
    Unknown,
    /// Provably not run, without an invitation to repeat it.
    NotRun,
    /// An invitation to repeat it.
    Again,
    /// The tool's own error, without an invitation.
    Failed,
    /// The token is not known.
    Unauthorized,
    /// The session is not known.
    SessionLost,
    /// No connection was made.
    Refused,
    /// The connection ended after the call was sent and before its answer.
    Torn,
    /// The client itself went away.
    Dropped,
    /// No answer within the client's patience.
    Nothing,
    /// Anything else.
    Odd,
}

impl Told {
    /// The word for tables.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Unknown => "outcome unknown",
            Self::NotRun => "not run",
            Self::Again => "try again",
            Self::Failed => "failed",
            Self::Unauthorized => "unauthorized",
            Self::SessionLost => "session lost",
            Self::Refused => "connection refused",
            Self::Torn => "connection torn",
            Self::Dropped => "given up by the client",
            Self::Nothing => "no answer",
            Self::Odd => "odd",
        }
    }
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Unique; what its effect writes.
    pub(crate) id: u64,
    /// Index of the client.
    pub(crate) client: usize,
    /// What was asked for: `call`, `initialize`, `stream`.
    pub(crate) method: &'static str,
    pub(crate) sent: Moment,
    pub(crate) answered: Moment,
    pub(crate) told: Told,
    /// The window that answered.
    pub(crate) window: Option<String>,
    /// The term under which it says it answered.
    pub(crate) term: Option<Term>,
    /// The code or the words of the answer, short.
    pub(crate) words: String,
    /// Whether the client always asks for the same window, so that terms say nothing.
    pub(crate) is_pinned: bool,
}

/// Something that happened beside the calls.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: Moment,
    pub(crate) text: String,
}

/// From when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Moment,
    pub(crate) to: Moment,
}

impl Span {
    pub(crate) fn meets(self, from: Moment, to: Moment) -> bool {
        from <= self.to && self.from <= to
    }
}

/// Everything that was recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) calls: Vec<Call>,
    pub(crate) events: Vec<Event>,
    /// When the coordinator may have been killed with -9.
    pub(crate) deaths: Vec<Span>,
    /// When tokens or sessions may have been lost for good: rotation, lost secret.
    pub(crate) credentials: Vec<Moment>,
    /// When the user ended the coordinator, which lets go of the port.
    pub(crate) downs: Vec<Moment>,
    /// When another user of the machine held the port, and whether a token was heard there.
    pub(crate) strangers: Vec<(Moment, bool)>,
    /// When the machine was late, and by how much.
    pub(crate) lateness: Vec<(Moment, Duration)>,
}

/// The recorder.
pub(crate) struct History {
    began: Instant,
    next_id: AtomicU64,
    record: Mutex<Record>,
}

impl History {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), next_id: AtomicU64::new(1), record: Mutex::default() }
    }

    pub(crate) fn now(&self) -> Moment {
        self.began.elapsed()
    }

    /// A number that no other call has.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn call(&self, call: Call) {
        self.record().calls.push(call);
    }

    /// Notes an event.
    pub(crate) fn note(&self, text: impl Into<String>) {
        let at = self.now();
        self.record().events.push(Event { at, text: text.into() });
    }

    /// The coordinator is killed now.
    pub(crate) fn death(&self) {
        self.deaths_since(self.now());
    }

    /// The coordinator may have been killed at any time between `from` and now.
    pub(crate) fn deaths_since(&self, from: Moment) {
        let span = Span { from: from.saturating_sub(AROUND_DEATH.0), to: self.now() + AROUND_DEATH.1 };
        self.record().deaths.push(span);
    }

    /// Tokens and sessions may be lost from now on.
    pub(crate) fn credentials_lost(&self) {
        let now = self.now();
        self.record().credentials.push(now);
    }

    /// The user ends the coordinator.
    pub(crate) fn down(&self) {
        let now = self.now();
        self.record().downs.push(now);
    }

    /// Another user of the machine held the port, at some time since `from`. After `baton down` anybody may, see
    /// docs/security.md.
    pub(crate) fn stranger(&self, from: Moment, has_token: bool) {
        let now = self.now();
        let mut record = self.record();
        if !record.downs.iter().any(|down| *down + AROUND_DOWN >= from) {
            record.strangers.push((now, has_token));
        }
    }

    /// The machine was late by so much.
    pub(crate) fn late(&self, by: Duration) {
        let now = self.now();
        self.record().lateness.push((now, by));
    }
}
