//! The open connections: how many there are, what each is doing, and which of them give way.
//!
//! hyper's own head timeout also ends connections that idle between two requests, and a client that reuses one
//! at that very moment loses its call. So the clock here starts with the first byte of a head, not with the end
//! of the previous answer.

mod share;
pub(crate) mod stream;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use baton_link::peer::{is_trusted_user, peer_uid};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::either::Either;

use self::share::Share;
use self::stream::Stream;
use crate::guard::{Holder, Way};
use crate::linger::Lingering;

/// How long a head may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections that may be open without having sent a head: the oldest gives way to a new one, so that a crowd
/// of silent clients cannot keep a heartbeat out.
const GREETING_MAX: usize = 256;
/// Connections in all; each has been authenticated, or is one of the above.
pub(super) const CONNECTIONS_MAX: usize = 4096;
/// Connections of strangers at once. They are heard at all only because one of them may say a token of ours.
const STRANGERS_MAX: usize = 16;

/// [`Connection::stranger`] of one that is no stranger's.
const NOBODY: u32 = u32::MAX;

/// Nothing of the next head has arrived.
const IDLE: u8 = 0;
/// Bytes of a head have arrived.
const STARTED: u8 = 1;
/// The head is awaited under the time limit.
const GREETING: u8 = 2;
/// A request is being answered.
const BUSY: u8 = 3;

/// All open connections.
pub(crate) struct Connections {
    /// Those whose head is awaited, oldest first.
    greeting: Mutex<BTreeMap<u64, (Instant, Arc<Connection>)>>,
    n_open: AtomicUsize,
    /// Those that have been answered for the last time.
    lingering: Lingering,
    n_strangers: AtomicUsize,
    /// Those of MCP clients.
    share: Share,
    started: Instant,
    /// Next key of `greeting`.
    next: AtomicU64,
}

/// One open connection.
pub(crate) struct Connection {
    /// How it came in.
    pub(crate) way: Way,
    /// Another user of this machine, who has no business here.
    stranger: AtomicU32,
    /// Tells connections apart.
    pub(crate) key: u64,
    phase: AtomicU8,
    /// When the last answer was complete, in ms since [`Connections::started`].
    idle_since_ms: AtomicU64,
    /// Which of the MCP clients' shares it is counted in, once it is.
    holder: OnceLock<Holder>,
    /// Key in [`Connections::greeting`], while it is there.
    greeting: AtomicU64,
    /// Bytes of the next head have arrived.
    is_heard: AtomicBool,
    /// A part of an answer waits for the client to read.
    is_stuck: AtomicBool,
    /// The last answer said that it is the last.
    is_told: AtomicBool,
    closing: OnceLock<Farewell>,
    close: Notify,
    connections: Arc<Connections>,
}

/// Why we end a connection that could go on. The client is told, in the place of an answer to what it may be writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// This coordinator ends, or is another one by now.
    Ended,
    /// There are too many, and this one is idle.
    Crowded,
    /// The head of a request did not arrive in time.
    Late,
}

/// Ends the busy phase of a connection when the answer is complete.
pub(crate) struct Busy(Arc<Connection>);

/// Takes a connection off the books when its task ends, however it does.
pub(super) struct Open(Arc<Connection>);

impl Connections {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            greeting: Mutex::default(),
            n_open: AtomicUsize::new(0),
            lingering: Lingering::default(),
            n_strangers: AtomicUsize::new(0),
            share: Share::default(),
            started: Instant::now(),
            next: AtomicU64::new(1),
        })
    }

    /// One more is too many.
    pub(super) fn is_full(&self) -> bool {
        self.n_open.load(Ordering::Relaxed) >= CONNECTIONS_MAX
    }

    /// There is no room for one more: the connection of an MCP client that has idled longest makes it. False when none
    /// idles.
    pub(super) fn give_way(&self) -> bool {
        self.share.give_way()
    }

    /// Closes what has been sending its head for too long; returns when the next one can be due.
    fn close_late(&self, now: Instant) {
        let mut greeting = self.greeting.lock();
        while let Some(entry) = greeting.first_entry()
            && now.duration_since(entry.get().0) >= HEAD_TIMEOUT
        {
            entry.remove().1.close(Farewell::Late);
        }
    }
}

impl Connection {
    pub(super) fn open(way: Way, connections: &Arc<Connections>) -> Arc<Self> {
        connections.n_open.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Self {
            way,
            stranger: AtomicU32::new(NOBODY),
            key: connections.next.fetch_add(1, Ordering::Relaxed),
            phase: AtomicU8::new(IDLE),
            idle_since_ms: AtomicU64::new(0),
            holder: OnceLock::new(),
            greeting: AtomicU64::new(0),
            is_heard: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
            closing: OnceLock::new(),
            close: Notify::new(),
            connections: connections.clone(),
        });
        connection.greet();
        connection
    }

    /// It is on the books until this is dropped.
    pub(super) fn keep_open(self: &Arc<Self>) -> Open {
        Open(self.clone())
    }

    /// The other user of this machine whose connection this is, if it is.
    pub(crate) fn stranger(&self) -> Option<u32> {
        Some(self.stranger.load(Ordering::Relaxed)).filter(|uid| *uid != NOBODY)
    }

    /// Looks whose connection it is; false when there is no use in serving it.
    pub(super) fn identify(&self, stream: &Stream) -> bool {
        let uid = match stream {
            Either::Left(stream) => peer_uid(stream).ok(),
            Either::Right(stream) => stream.peer_cred().ok().map(|peer| Some(peer.uid())),
        };
        // The error: it is closed already, and the kernel does not know any more whose it was.
        let Some(uid) = uid else { return false };
        let Some(uid) = uid.filter(|uid| !is_trusted_user(*uid)) else { return true };
        self.stranger.store(uid, Ordering::Relaxed);
        self.connections.n_strangers.fetch_add(1, Ordering::Relaxed) < STRANGERS_MAX
    }

    /// Starts the time limit for a head.
    fn greet(self: &Arc<Self>) {
        let key = self.connections.next.fetch_add(1, Ordering::Relaxed);
        self.phase.store(GREETING, Ordering::Relaxed);
        self.greeting.store(key, Ordering::Relaxed);
        let mut greeting = self.connections.greeting.lock();
        greeting.insert(key, (Instant::now(), self.clone()));
        if greeting.len() > GREETING_MAX
            && let Some((_, (_, oldest))) = greeting.pop_first()
        {
            oldest.close(Farewell::Crowded);
        }
    }

    fn greeted(&self) {
        let key = self.greeting.swap(0, Ordering::Relaxed);
        if key != 0 {
            self.connections.greeting.lock().remove(&key);
        }
    }

    /// Counts it among those of `holder`, from its first request on; false when there are too many.
    pub(crate) fn is_counted(self: &Arc<Self>, holder: Holder) -> bool {
        if self.holder.get().is_some() {
            return true;
        }
        let is_counted = self.connections.share.enter(holder, self);
        if is_counted {
            // Requests of one connection come one after the other: nobody else has set it.
            let _ = self.holder.set(holder);
        }
        is_counted
    }

    /// How long it has been idle; `None` while it is not.
    pub(crate) fn idle_for(&self) -> Option<Duration> {
        let since = Duration::from_millis(self.idle_since_ms.load(Ordering::Relaxed));
        let is_idle = self.phase.load(Ordering::Relaxed) == IDLE;
        is_idle.then(|| self.connections.started.elapsed().saturating_sub(since))
    }

    /// Ends it as soon as it is not busy.
    pub(crate) fn close(&self, why: Farewell) {
        // Only the first reason counts.
        let _ = self.closing.set(why);
        self.close.notify_one();
    }

    /// Ends when it is to be closed.
    pub(super) async fn closed(&self) -> Farewell {
        self.close.notified().await;
        self.closing.get().copied().unwrap_or(Farewell::Ended)
    }

    /// Whether the client can take the farewell for nothing but an answer to what it is writing, or for none.
    pub(super) fn can_hear(&self, why: Farewell) -> bool {
        let is = |what: &AtomicBool| what.load(Ordering::Relaxed);
        let is_concerned = match why {
            // A window or a command takes nothing but a good answer for one of ours.
            Farewell::Ended | Farewell::Crowded => self.holder.get().is_some(),
            Farewell::Late => is(&self.is_heard),
        };
        is_concerned && !is(&self.is_told) && !is(&self.is_stuck)
    }

    /// An answer says that it is the last.
    pub(super) fn on_last(&self) {
        self.is_told.store(true, Ordering::Relaxed);
    }

    /// Something was written, or waits for the client to read.
    pub(super) fn on_write(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Ordering::Relaxed);
    }

    /// Reads what the client still sends after the end.
    pub(super) async fn read_out(&self, stream: Stream) {
        self.connections.lingering.read_out(stream).await;
    }

    /// The rest of a head is on its way, or a first one.
    pub(super) fn is_greeting(&self) -> bool {
        matches!(self.phase.load(Ordering::Relaxed), GREETING | STARTED)
    }

    /// A request is being answered.
    pub(super) fn is_busy(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == BUSY
    }

    /// The client has not read so much of an answer that the rest could leave us.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }

    /// The head is complete: the answer begins.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        if self.phase.swap(BUSY, Ordering::Relaxed) == GREETING {
            self.greeted();
        }
        self.is_heard.store(false, Ordering::Relaxed);
        Busy(self.clone())
    }

    pub(super) fn on_read(self: &Arc<Self>, n_bytes: Option<usize>) {
        if n_bytes > Some(0) {
            self.is_heard.store(true, Ordering::Relaxed);
        }
        match (self.phase.load(Ordering::Relaxed), n_bytes) {
            (IDLE, Some(1..)) => self.phase.store(STARTED, Ordering::Relaxed),
            (STARTED, None) => self.greet(),
            _ => {}
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let now = self.0.connections.started.elapsed().as_millis();
        self.0.idle_since_ms.store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.0.phase.store(IDLE, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.greeted();
        if let Some(holder) = self.0.holder.get() {
            self.0.connections.share.leave(*holder, &self.0);
        }
        self.0.connections.n_open.fetch_sub(1, Ordering::Relaxed);
        if self.0.stranger().is_some() {
            self.0.connections.n_strangers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Closes late connections once a second, for ever.
pub(crate) async fn sweep(connections: &Connections) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        connections.close_late(tick.tick().await);
    }
}
