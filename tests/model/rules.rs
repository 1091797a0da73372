//! What must hold in every state, as `docs/election.md` states it, and that everything comes right when nothing breaks.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use baton_proto::control::WindowState;
use baton_proto::ids::Term;

use crate::setup::Setup;
use crate::world::agent::Link;
use crate::world::{World, id};

/// Longer than a lease, a hold and a fence together, and than a window that has gone is remembered.
const CONVERGENCE_TICKS: u32 = 40;

/// What a grant must not do; called after every input of an election.
pub(crate) fn check_grant(
    world: &mut World,
    setup: &Setup,
    coordinator: usize,
    before: Option<(usize, Term)>,
    by_user: bool,
) {
    let after = world.live_of(coordinator);
    let Some((live, term)) = after.filter(|_| after != before) else { return };
    let newest = world.granted.last_key_value().map(|(term, window)| (*term, *window));
    // One that was live stays so when its auto-start is switched off (R8), also with a new coordinator (R9).
    let was_live_once = world.granted.values().any(|window| *window == live);
    match world.granted.insert(term, live) {
        Some(other) if other != live => world.break_rule("a term was granted to two windows"),
        // The one whose connection broke for a moment keeps its term.
        Some(_) => {}
        // Where the folder is lost and the clock set back, terms exceed what an agent knows, and nothing else is there
        // to be known.
        None if known_by_agents(world) > term && world.coordinators.len() == 1 && !by_user => {
            world.break_rule("a granted term does not exceed all before it");
        }
        None => {}
    }
    // R6: it was gone for longer than a hold, and nobody but a rule has moved the place since.
    let comes_back = world.coordinators[coordinator].displaced == Some(live);
    if by_user {
        return;
    }
    let wishes = world.windows[live].wishes;
    world.windows[live].wishes.stopped = false;
    let may_start = world.windows[live].auto_start || wishes.auto_start || wishes.was_taken;
    if !may_start && !was_live_once {
        world.break_rule("R3: a window without auto-start was made live by a rule");
    }
    if let Some((was_live, _)) = before
        && was_live != live
        && setup.debugs
        && was_live == 0
        && world.coordinators[coordinator].election.registered(&id(0)).is_ok()
    {
        world.break_rule("R11: a rule moved the place from a window in which a client debugs");
    }
    // One that lost its lock ends within a second, and its terms are below those of the other.
    if world.coordinators.len() > 1 && !world.coordinators[coordinator].has_lock {
        return;
    }
    if comes_back {
        return;
    }
    // R12.
    let roster = world.coordinators[coordinator].election.roster(world.now().into(), 0);
    if setup.follows && roster.windows.get(&id(live)).is_some_and(|seen| seen.last_focus.is_some()) {
        return;
    }
    let Some((newest, holder)) = newest.filter(|(_, holder)| *holder != live) else { return };
    let (now, other) = (world.now(), &world.windows[holder]);
    let is_there = other.is_open && !other.is_stalled && !other.is_stopped && !other.wishes.stopped;
    let admits = other.fence.held() == Some(newest) && !other.fence.is_fenced(now);
    // A window that was with no coordinator is live at once where nothing tells of an earlier one.
    let is_new = world.windows[live].fence.claim(now).highest.is_none();
    // In the moment of a takeover the one before it is not told yet: when the coordinator dies in it, that one may be
    // granted before the other has said so.
    let own = &world.windows[live].fence;
    let was_not_told = own.held().is_some() && !own.is_fenced(now);
    // And then the other comes, and was live after it as far as the two know.
    let was_live_later = world.windows[live].claimed > other.claimed;
    // Until the one that was granted last registers, nobody knows of it where the file was not written any more.
    let it = &world.coordinators[coordinator];
    let is_unheard = it.is_behind && other.link.number() != Some(it.number);
    if is_there && admits && !is_new && !was_not_told && !was_live_later && !is_unheard {
        world.break_rule("R9: a rule moved the place from a window that was live and in touch");
    }
}

/// The highest term that an agent has heard of.
fn known_by_agents(world: &World) -> Term {
    let open = world.windows.iter().filter(|window| window.is_open);
    open.filter_map(|window| window.fence.highest()).max().unwrap_or_default()
}

/// Worlds that come right, with the seconds that they take. Most states lead to one that is known, within a second.
#[derive(Clone, Default)]
pub(crate) struct Settling(Arc<Mutex<HashMap<u64, u32>>>);

impl Settling {
    fn of(&self, world: u64) -> Option<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&world).copied()
    }

    /// The last of `worlds` takes `seconds`.
    fn learn(&self, worlds: &[u64], seconds: u32) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(worlds.iter().rev().copied().zip(seconds..));
    }
}

impl fmt::Debug for Settling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settling").finish_non_exhaustive()
    }
}

/// True when, from here on without faults and wishes, the place is soon in order.
pub(crate) fn converges(setup: &Setup, world: &World) -> bool {
    if !world.windows.iter().any(|window| window.is_open) {
        return true;
    }
    let mut passed = Vec::new();
    for mut world in quiet_times(setup, world) {
        let now = world.fingerprint();
        let rest = setup.settling.of(now);
        // Nothing moves any more.
        let is_settled = passed.last() == Some(&now);
        passed.push(now);
        if is_settled && !is_in_order(setup, &mut world) {
            return false;
        }
        if let Some(rest) = rest.or(is_settled.then_some(0)) {
            setup.settling.learn(&passed, rest);
            return u32::try_from(passed.len()).is_ok_and(|seconds| seconds + rest <= CONVERGENCE_TICKS);
        }
    }
    false
}

/// What becomes of it when nothing breaks any more, second by second.
pub(crate) fn quiet_times(setup: &Setup, world: &World) -> impl Iterator<Item = World> {
    let mut world = world.clone();
    // What may still break or be wished is over.
    (world.n_faults, world.n_wishes) = (0, 0);
    for window in &mut world.windows {
        window.is_stalled = false;
    }
    while let Some(at) = world.coordinators.iter().position(|one| one.is_stalled || !one.has_lock) {
        world.end(at);
    }
    (0..CONVERGENCE_TICKS).map(move |_| {
        quiet_tick(setup, &mut world);
        world.clone()
    })
}

/// Whatever is under way arrives, then a second passes.
pub(crate) fn quiet_tick(setup: &Setup, world: &mut World) {
    if world.coordinators.is_empty() {
        world.start(setup, true);
    }
    while !world.calls.is_empty() {
        world.run_call(setup, 0);
    }
    for window in 0..world.windows.len() {
        if !world.windows[window].is_open {
            continue;
        }
        if matches!(world.windows[window].link, Link::None) {
            world.register(setup, window, 0, false);
        }
        world.read_answer(setup, window);
        world.read_beat(setup, window);
    }
    hear_all(setup, world);
    if world.can_save(0) {
        world.save(0);
    }
    world.tick(setup);
    (0..world.windows.len()).for_each(|window| world.read_beat(setup, window));
    hear_all(setup, world);
}

fn hear_all(setup: &Setup, world: &mut World) {
    for window in 0..world.windows.len() {
        while world.next_notice(window).is_some() {
            world.hear(setup, window);
        }
    }
}

fn is_in_order(setup: &Setup, world: &mut World) -> bool {
    let Some(coordinator) = world.serving() else { return false };
    let roster = coordinator.election.roster(world.now().into(), 0);
    let is_empty_by_wish = coordinator.election.vacated().is_some();
    let open: Vec<usize> = (0..world.windows.len()).filter(|window| world.windows[*window].is_open).collect();
    if roster.awaiting.is_some() || roster.windows.len() != open.len() {
        return false;
    }
    let knows_setting = |window: &usize| {
        roster
            .windows
            .get(&id(*window))
            .is_some_and(|seen| seen.auto_start == world.windows[*window].auto_start)
    };
    if !open.iter().all(knows_setting) {
        return false;
    }
    match world.live_of(0) {
        None => {
            let standby = roster.windows.values().any(|window| window.state == WindowState::Standby);
            is_empty_by_wish || !standby
        }
        Some((live, term)) => {
            let holders = open.iter().filter(|window| world.windows[**window].fence.held().is_some());
            let is_alone = holders.eq([&live]);
            world.send_call();
            world.run_call(setup, 0);
            let was_run = world.violation.is_none() && world.windows[live].fence.held() == Some(term);
            is_alone && was_run
        }
    }
}
