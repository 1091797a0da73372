//! The machine of a simulation (`--cfg sim`): its time, its dice, its processes, and what happened. One thread, one
//! machine; whoever drives it says which process runs now.
//!
//! See docs/simulation.md.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use baton_proto::ids::{Term, WindowId};
use baton_proto::start::Handshake;
use tokio::sync::oneshot;

/// Something that has to hold is decided by such facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A coordinator made a window live.
    Granted {
        /// The window.
        window: WindowId,
        /// Its term.
        term: Term,
    },
    /// A window began to run a call.
    Ran {
        /// The window.
        window: WindowId,
        /// The name of the call.
        call: String,
        /// The term for which it was sent; `None` when it was not sent to the live window.
        term: Option<Term>,
    },
}

/// What a process wants of whoever drives the simulation.
#[derive(Debug)]
pub enum Wish {
    /// A coordinator.
    Start {
        /// The port it must use.
        port: Option<u16>,
        /// The port that the starter remembers.
        fallback_port: Option<u16>,
        /// The socket with what a predecessor leaves it, and where its process id is to be told.
        inheritance: Option<(OwnedFd, Arc<AtomicU32>)>,
        /// Is told how the start went.
        said: oneshot::Sender<Handshake>,
    },
    /// The end of a process.
    Kill(u32),
}

/// A process that runs, or is stopped.
#[derive(Debug)]
struct Entry {
    start: u64,
    is_coordinator: bool,
}

#[derive(Debug, Default)]
struct Machine {
    processes: BTreeMap<u32, Entry>,
    wishes: Vec<(u32, Wish)>,
    events: Vec<(Duration, u32, Event)>,
    /// Until when what a process sends or is sent is held back, in ns.
    held: BTreeMap<u32, u64>,
}

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
    static CURRENT: Cell<u32> = const { Cell::new(0) };
    static IS_DYING: Cell<bool> = const { Cell::new(false) };
    static IS_DISK_FULL: Cell<bool> = const { Cell::new(false) };
    static DICE: Cell<u64> = const { Cell::new(0) };
    static WEATHER: Cell<u64> = const { Cell::new(0) };
    static LATEST: Cell<u64> = const { Cell::new(0) };
    static DIGEST: Cell<u64> = const { Cell::new(0xcbf2_9ce4_8422_2325) };
    static MACHINE: RefCell<Machine> = RefCell::default();
}

/// Sets everything that is random.
pub fn seed(seed: u64) {
    DICE.set(seed ^ 0x5eed);
    WEATHER.set(seed ^ 0x0ea7_4e12);
}

/// Time since the simulation began.
pub fn now() -> Duration {
    Duration::from_nanos(NOW.get())
}

/// It is so late now.
pub fn set_now(now: Duration) {
    NOW.set(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
}

/// The process that runs now; 0 is whoever drives the simulation.
pub fn current() -> u32 {
    CURRENT.get()
}

/// This process runs from now on.
pub fn enter(pid: u32) {
    CURRENT.set(pid);
}

/// While a process is killed, what it would do at its end is not done.
pub fn is_dying() -> bool {
    IS_DYING.get()
}

/// See [`is_dying`].
pub fn set_dying(is_dying: bool) {
    IS_DYING.set(is_dying);
}

/// Whether files can be written now.
pub(crate) fn is_disk_full() -> bool {
    IS_DISK_FULL.get()
}

/// From now on files can be written, or not.
pub fn set_disk_full(is_full: bool) {
    IS_DISK_FULL.set(is_full);
}

/// What the processes of this machine throw.
pub fn dice() -> u64 {
    throw(&DICE)
}

/// SplitMix64.
fn throw(state: &'static std::thread::LocalKey<Cell<u64>>) -> u64 {
    let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    state.set(next);
    let mut mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Takes bytes into the digest of all that happens (FNV-1a).
pub fn digest(bytes: &[u8]) {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    DIGEST.set(bytes.iter().fold(DIGEST.get(), fold));
}

/// The digest so far.
pub fn digested() -> u64 {
    DIGEST.get()
}

/// A process starts.
pub fn add_process(pid: u32, is_coordinator: bool) {
    let start = NOW.get() / 1_000_000 + 1;
    MACHINE.with_borrow_mut(|machine| machine.processes.insert(pid, Entry { start, is_coordinator }));
}

/// A process has ended.
pub fn end_process(pid: u32) {
    MACHINE.with_borrow_mut(|machine| machine.processes.remove(&pid));
}

pub(crate) fn start_of(pid: u32) -> Option<u64> {
    MACHINE.with_borrow(|machine| machine.processes.get(&pid).map(|process| process.start))
}

/// Whether a process is one of Baton's, and not a stranger.
pub(crate) fn is_coordinator(pid: u32) -> bool {
    MACHINE.with_borrow(|machine| machine.processes.get(&pid).is_some_and(|process| process.is_coordinator))
}

pub(crate) fn first_coordinator() -> Option<u32> {
    MACHINE.with_borrow(|machine| {
        machine.processes.iter().find(|(_, process)| process.is_coordinator).map(|(pid, _)| *pid)
    })
}

pub(crate) fn wish(wish: Wish) {
    MACHINE.with_borrow_mut(|machine| machine.wishes.push((current(), wish)));
}

/// What processes want, and which, since this was asked last.
pub fn take_wishes() -> Vec<(u32, Wish)> {
    MACHINE.with_borrow_mut(|machine| std::mem::take(&mut machine.wishes))
}

/// Something happened.
pub fn note(event: Event) {
    digest(format!("{} {} {event:?}", NOW.get(), current()).as_bytes());
    MACHINE.with_borrow_mut(|machine| machine.events.push((now(), current(), event)));
}

/// What happened, when, and in which process, since this was asked last.
pub fn take_events() -> Vec<(Duration, u32, Event)> {
    MACHINE.with_borrow_mut(|machine| std::mem::take(&mut machine.events))
}

/// What a process sends, or is sent, from now on does not arrive before `until`.
pub fn hold(pid: u32, until: Duration) {
    let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
    MACHINE.with_borrow_mut(|machine| machine.held.insert(pid, until));
}

/// How late any piece of traffic may be.
pub fn set_latest(latest: Duration) {
    LATEST.set(u64::try_from(latest.as_nanos()).unwrap_or(u64::MAX));
}

/// When what is sent now arrives, in ns.
pub(crate) fn arrival(from: u32, to: u32) -> u64 {
    let late = match LATEST.get() {
        0 => 0,
        latest => throw(&WEATHER) % latest,
    };
    let held = MACHINE.with_borrow(|machine| {
        let until = |pid: u32| machine.held.get(&pid).copied().unwrap_or(0);
        until(from).max(until(to))
    });
    (NOW.get() + late).max(held)
}

pub(crate) fn now_ns() -> u64 {
    NOW.get()
}
