//! What must hold, whatever goes wrong; decided by what was granted, run and answered, not by what was logged.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_link::sim::Event;
use baton_proto::control::{FENCE_MS, HEARTBEAT_MS, LEASE_MS};
use baton_proto::ids::Term;

use crate::client::{Answered, Program, Told, is_bound, is_gone, remembers};
use crate::faults::QUIET;
use crate::parts::Verb;
use crate::world::{CLIENTS, WINDOWS};

/// A call is answered within: the longest hold, the longest tool, and what it takes until a process counts as hung.
const ANSWERED_WITHIN: Duration = Duration::from_secs(45);
/// A window that has lost touch runs nothing after its fence; a step and the travel of a heartbeat are given.
const FENCED_AFTER: Duration = Duration::from_millis(FENCE_MS + 200);
/// A change of place may have its reason so long before: a window that was stopped is waited for, an order travels.
const REASON_WITHIN: Duration = Duration::from_secs(20);
/// A window that was gone for longer than a hold, and comes back within this time, has its place again when only a rule
/// gave it away; a hold, and a step, are given.
const RETURNS_WITHIN: Duration = Duration::from_secs(40);
/// A window that says nothing for less than this keeps its place, whatever happens to coordinators: a lease, without a
/// heartbeat and the time in which what was held up arrives.
const MISSED_AFTER: Duration = Duration::from_millis(LEASE_MS - HEARTBEAT_MS - 500);
/// What a coordinator knows is in its file after so long.
const WRITTEN_WITHIN: Duration = Duration::from_millis(1_200);
/// In the last of the quiet time every call must have what it wants.
const SETTLED: Duration = Duration::from_secs(10);

/// A call of a client.
#[derive(Debug, Default)]
struct Call {
    sent_at: Duration,
    bound: Option<usize>,
    /// Its tool changes something.
    acts: bool,
    /// It is about this program.
    session: Option<String>,
    ran: Vec<(Duration, String)>,
    told: Option<Told>,
}

/// The window that is live, as it was granted.
#[derive(Clone, Debug)]
struct Live {
    window: String,
    since: Duration,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// What happened, for people.
    pub(crate) story: Vec<(Duration, String)>,
    /// What was broken, and when.
    pub(crate) broken: Vec<(Duration, String)>,
    calls: BTreeMap<String, Call>,
    /// The window of each program that was started, and when its start was called.
    programs: BTreeMap<String, (String, Duration)>,
    granted: BTreeMap<Term, (Duration, String)>,
    live: Option<Live>,
    /// When something last happened to a window that is a reason to give its place away.
    suffered: BTreeMap<String, Duration>,
    /// From when until when nothing of a window was heard, the last time.
    silent: BTreeMap<String, (Duration, Duration)>,
    /// When a process of a window last started.
    started: BTreeMap<String, Duration>,
    /// When a window was last seen at work.
    seen: BTreeMap<String, Duration>,
    taken: BTreeMap<String, Duration>,
    /// Whose place a rule gave away, and when.
    displaced: Option<(String, Duration)>,
    /// When the user last ordered that a window stop.
    stop_ordered: Option<Duration>,
    /// When such an order was last carried out.
    stop_carried_out: Option<Duration>,
    /// Since when nobody is to be live, because the user stopped who was.
    emptied: Option<Duration>,
    /// The window that each client that follows the live one heard of last, where that is certain.
    heard: BTreeMap<usize, String>,
    /// When a coordinator last began to answer.
    coordinator_serves: Duration,
    /// Coordinators that run now: of two that follow each other, the first still answers what it was asked.
    pub(crate) n_coordinators: usize,
    /// Until when files cannot be written: what happens before is not known to a successor.
    unwritable_until: Duration,
}

impl Oracle {
    /// One more line of the story.
    pub(crate) fn tell(&mut self, now: Duration, line: String) {
        self.story.push((now, line));
    }

    /// Something that must hold does not.
    pub(crate) fn violate(&mut self, now: Duration, what: String) {
        self.tell(now, format!("BROKEN: {what}"));
        self.broken.push((now, what));
    }

    /// A process of a window starts.
    pub(crate) fn on_window_starts(&mut self, now: Duration, window: usize) {
        self.started.insert(format!("w{window}"), now);
        self.on_window_suffers(now, window);
    }

    /// A process of a window has ended.
    pub(crate) fn on_window_ends(&mut self, now: Duration, window: usize) {
        self.on_window_suffers(now, window);
    }

    /// Something happens to a window that may cost it its place.
    pub(crate) fn on_window_suffers(&mut self, now: Duration, window: usize) {
        let at = self.suffered.entry(format!("w{window}")).or_default();
        *at = now.max(*at);
    }

    /// Nothing of a window is heard from then until then.
    pub(crate) fn on_window_silent(&mut self, from: Duration, until: Duration, window: usize) {
        let heartbeat = Duration::from_millis(HEARTBEAT_MS);
        let silent = self.silent.entry(format!("w{window}")).or_insert((from, until));
        // Between two silences one heartbeat at least.
        let is_one = from < silent.1 + heartbeat;
        *silent = if is_one { (silent.0, silent.1.max(until)) } else { (from, until) };
        let (since, until) = *silent;
        if until.saturating_sub(since) > MISSED_AFTER {
            self.on_window_suffers(until, window);
        }
    }

    /// A client has ended: nobody waits for what it asked, and whoever begins in its place has heard nothing.
    pub(crate) fn on_client_ends(&mut self, client: usize) {
        self.heard.remove(&client);
        let its = self.calls.iter_mut().filter(|(call, _)| client_of(call) == client);
        its.for_each(|(_, call)| call.told = call.told.take().or(Some(Told::Lost)));
    }

    /// The user orders something.
    pub(crate) fn on_order(&mut self, now: Duration, window: usize, verb: Verb) {
        let window = format!("w{window}");
        match verb {
            Verb::Take | Verb::Start => {
                self.taken.insert(window, now);
            }
            Verb::Stop | Verb::Restart => {
                self.suffered.insert(window.clone(), now);
            }
        }
        if verb == Verb::Stop {
            self.stop_ordered = Some(now);
        }
    }

    /// An order of the user was carried out.
    fn on_ordered(&mut self, now: Duration, window: usize, verb: Verb) {
        self.tell(now, format!("the order is carried out: {verb:?} w{window}"));
        if verb == Verb::Stop {
            self.stop_carried_out = Some(now);
        }
        let is_live = self.live.as_ref().is_some_and(|live| live.window == format!("w{window}"));
        if verb == Verb::Stop && is_live {
            self.emptied = Some(now);
        }
    }

    /// What a coordinator knew is lost, or may be.
    pub(crate) fn on_coordinator_suffers(&mut self, now: Duration, has_lost_files: bool) {
        // What the user wanted a moment ago is not written yet; what is lost is lost.
        let could_write_since = self.emptied.map(|at| at.max(self.unwritable_until));
        let is_new = could_write_since.is_some_and(|since| now.saturating_sub(since) < WRITTEN_WITHIN);
        if is_new || has_lost_files {
            self.emptied = None;
        }
    }

    /// Nothing in the state folder tells of a coordinator before: the next one is the first there ever was, and the
    /// window that comes first is live.
    pub(crate) fn on_memory_lost(&mut self, now: Duration) {
        if let Some(window) = self.live_window() {
            self.on_window_suffers(now, window);
        }
    }

    /// Files cannot be written for so long.
    pub(crate) fn on_full_disk(&mut self, until: Duration) {
        self.unwritable_until = self.unwritable_until.max(until);
    }

    /// The window that is live, as far as is known.
    pub(crate) fn live_window(&self) -> Option<usize> {
        self.live.as_ref()?.window.strip_prefix('w')?.parse().ok()
    }

    /// Something happened in the product.
    pub(crate) fn on_event(&mut self, now: Duration, pid: u32, event: &Event) {
        match event {
            Event::Granted { window, term } => self.on_granted(now, (window.as_str(), *term), pid),
            Event::Ran { window, call, term } => self.on_ran(now, window.as_str(), call, *term),
        }
    }

    fn on_granted(&mut self, now: Duration, (window, term): (&str, Term), pid: u32) {
        self.tell(now, format!("{window} is granted term {term} by process {pid}"));
        if let Some((_, other)) = self.granted.get(&term).filter(|(_, other)| other != window) {
            self.violate(now, format!("term {term} is granted to {window} and to {other}"));
        }
        if let Some((last, _)) = self.granted.last_key_value().filter(|(last, _)| **last > term) {
            self.violate(now, format!("term {term} is granted after {last}"));
        }
        self.check_reason(now, window);
        self.seen.insert(window.to_owned(), now);
        self.granted.insert(term, (now, window.to_owned()));
        self.live = Some(Live { window: window.to_owned(), since: now });
    }

    /// The place moves, or is filled, for a reason.
    fn check_reason(&mut self, now: Duration, window: &str) {
        let is_recent = |at: Option<&Duration>, since: Duration| {
            at.is_some_and(|at| *at >= since || now.saturating_sub(*at) <= REASON_WITHIN)
        };
        if let Some(emptied) = self.emptied {
            // Ordered after the stop was, which is carried out later.
            let since = self.stop_ordered.unwrap_or(emptied).min(emptied);
            let is_taken = self.taken.values().any(|at| *at >= since);
            // Also one that was stopped before it came to a coordinator.
            let is_unseen = self.seen.get(window).max(self.started.get(window)) == self.started.get(window);
            let is_new = is_unseen || self.started.values().any(|at| *at >= emptied);
            if is_taken || is_new {
                self.emptied = None;
            } else {
                self.violate(now, format!("{window} is live although the user stopped the live window"));
            }
        }
        let Some(live) = self.live.clone().filter(|live| live.window != window) else { return };
        let has_suffered = is_recent(self.suffered.get(&live.window), live.since);
        let is_taken = self.taken.values().any(|at| is_recent(Some(at), live.since));
        let is_back =
            |(gone, at): &(String, Duration)| gone == window && now.saturating_sub(*at) <= RETURNS_WITHIN;
        let comes_back = self.displaced.take().is_some_and(|displaced| is_back(&displaced));
        if has_suffered && !comes_back {
            self.displaced = Some((live.window.clone(), now));
        }
        if !has_suffered && !is_taken && !comes_back {
            self.violate(now, format!("the place moves from {} to {window} without a reason", live.window));
        }
    }

    fn on_ran(&mut self, now: Duration, window: &str, call: &str, term: Option<Term>) {
        self.seen.insert(window.to_owned(), now);
        let granted = term.and_then(|term| self.granted.get(&term).cloned());
        let known = self.calls.entry(call.to_owned()).or_default();
        known.ran.push((now, window.to_owned()));
        let (bound, acts, n_runs, ran) = (known.bound, known.acts, known.ran.len(), known.ran.clone());
        if let Some(bound) = bound.filter(|bound| format!("w{bound}") != window) {
            self.violate(now, format!("{window} runs {call}, whose client is bound to w{bound}"));
        }
        let heard = self.heard.get(&client_of(call)).filter(|heard| *heard != window);
        if let Some(heard) = heard.cloned().filter(|_| acts && bound.is_none()) {
            self.violate(
                now,
                format!("{call} changes something in {window}, and its client knows of {heard}"),
            );
        }
        if n_runs > 1 {
            self.violate(now, format!("{call} runs {n_runs} times: {ran:?}"));
        }
        match (term, granted) {
            (None, _) if bound.is_none() => self.violate(now, format!("{window} runs {call} for no term")),
            (None, _) => {}
            (Some(term), None) => {
                self.violate(now, format!("{window} runs {call} for term {term}, which nobody granted"));
            }
            (Some(term), Some((_, owner))) if owner != window => {
                self.violate(now, format!("{window} runs {call} for term {term}, which is {owner}'s"));
            }
            (Some(term), Some(_)) => {
                let mut later = self.granted.range(term..).skip(1).map(|(later, (at, _))| (*later, *at));
                let over = later.find(|(_, at)| now.saturating_sub(*at) > FENCED_AFTER);
                if let Some((later, at)) = over {
                    let why = format!("term {later} was granted at {:.3} s", at.as_secs_f64());
                    self.violate(now, format!("{window} runs {call} for term {term}, but {why}"));
                }
            }
        }
    }

    /// A client did something or was told something.
    pub(crate) fn on_answered(&mut self, now: Duration, answered: &Answered) {
        match answered {
            Answered::Sent { call, bound, acts, session } => {
                let (bound, acts, session) = (*bound, *acts, session.clone());
                let sent = Call { sent_at: now, bound, acts, session, ..Call::default() };
                self.calls.insert(call.clone(), sent);
            }
            Answered::Told { call, told } => self.on_told(now, call, told),
            Answered::Ordered { window, verb } => self.on_ordered(now, *window, *verb),
            Answered::Serves => self.on_coordinator_serves(now),
            Answered::Replaced => self.tell(now, "another version has taken over".to_owned()),
            Answered::Moved(port) => self.tell(now, format!("the coordinator is at port {port} now")),
            Answered::Set => self.tell(now, "the setting is changed".to_owned()),
        }
    }

    fn on_told(&mut self, now: Duration, call: &str, told: &Told) {
        let Some(known) = self.calls.get_mut(call) else { return };
        known.told = Some(told.clone());
        let (n_runs, waited) = (known.ran.len(), now.saturating_sub(known.sent_at));
        self.check_program(now, call, told);
        match told {
            Told::Done { window, is_told, .. } => {
                self.check_heard(now, call, window, *is_told);
                let by = self.calls[call].ran.first().map(|(_, by)| by.clone());
                if by.as_ref() != Some(window) {
                    self.violate(now, format!("{call} is answered by {window}, and was run by {by:?}"));
                }
            }
            Told::Unrun(why) if n_runs > 0 => {
                self.violate(now, format!("{call} ran, and its client was told that it did not: {why}"));
            }
            Told::SessionEnded => self.violate(now, format!("{call}: the session of the client has ended")),
            Told::Unrun(why) if why == "window_changed" => {
                self.heard.remove(&client_of(call));
            }
            Told::Unrun(_) => {}
            // An answer may have been on its way.
            Told::Unknown | Told::Lost | Told::GivenUp => {
                self.heard.remove(&client_of(call));
            }
        }
        if !matches!(told, Told::Done { .. } | Told::Lost | Told::GivenUp) {
            self.tell(now, format!("{call} is answered: {told:?}"));
        }
        if waited > ANSWERED_WITHIN {
            self.violate(now, format!("{call} was answered after {} s", waited.as_secs()));
        }
    }

    /// A program lives as long as its window, or until its end was told.
    fn check_program(&mut self, now: Duration, call: &str, told: &Told) {
        let (session, sent_at) = (self.calls[call].session.clone(), self.calls[call].sent_at);
        let why = match (&session, told) {
            (None, Told::Done { window, program: Program::There(session), .. }) => {
                self.programs.insert(session.clone(), (window.clone(), sent_at));
                return;
            }
            (Some(_), Told::Done { program: Program::Failed(why), .. } | Told::Unrun(why)) => why,
            _ => return,
        };
        let program = session.and_then(|session| self.programs.get(&session)).filter(|_| is_gone(why));
        let Some((window, began)) = program.cloned() else { return };
        if self.suffered.get(&window).is_none_or(|at| *at < began) {
            self.violate(
                now,
                format!("{call} is told {why}, and nothing happened to its program in {window}"),
            );
        }
    }

    /// An answer of another window than the one before says so.
    fn check_heard(&mut self, now: Duration, call: &str, window: &str, is_told: bool) {
        let client = client_of(call);
        if is_bound(client) || self.calls[call].bound.is_some() {
            return;
        }
        // The coordinator of before answered; the one of now knows nothing of it.
        let is_old = self.n_coordinators != 1 || self.calls[call].sent_at <= self.coordinator_serves;
        let is_forgotten = !remembers(client) && is_old;
        let before = match is_forgotten {
            true => self.heard.remove(&client),
            false => self.heard.insert(client, window.to_owned()),
        };
        if let Some(before) = before.filter(|before| before != window && !is_told) {
            self.violate(
                now,
                format!("{call} is answered by {window} without a word; before, it was {before}"),
            );
        }
    }

    /// A new coordinator remembers nothing of what clients heard.
    fn on_coordinator_serves(&mut self, now: Duration) {
        self.coordinator_serves = now;
        self.heard.retain(|client, _| remembers(*client));
    }

    /// For people: calls that were answered, and of those the ones that were done.
    pub(crate) fn n_answered(&self) -> (usize, usize) {
        let told = self.calls.values().filter_map(|call| call.told.as_ref());
        let (done, others): (Vec<&Told>, Vec<&Told>) =
            told.partition(|told| matches!(told, Told::Done { .. }));
        (done.len() + others.len(), done.len())
    }

    /// The end of the world, after a time in which nothing went wrong.
    pub(crate) fn finish(&mut self, now: Duration) {
        let settled_at = now.saturating_sub(SETTLED);
        let late = |call: &Call| call.told.is_none() && now.saturating_sub(call.sent_at) > ANSWERED_WITHIN;
        let late: Vec<String> =
            self.calls.iter().filter(|(_, call)| late(call)).map(|(name, _)| name.clone()).collect();
        for name in late {
            self.violate(now, format!("{name} has no answer"));
        }
        if now < QUIET {
            return;
        }
        // In the quiet time every client is served, and each window can be reached.
        let mut served = [0; CLIENTS];
        // Calls that were done, and calls that were answered: of one window there may be none.
        let mut reached = [(0, 0); WINDOWS];
        let mut refused = Vec::new();
        for (name, call) in self.calls.iter().filter(|(_, call)| call.sent_at >= settled_at) {
            let is_done = matches!(call.told, Some(Told::Done { .. }));
            let client = client_of(name);
            // One that the user has stopped says so.
            let is_off = matches!(&call.told, Some(Told::Unrun(why)) if why == "window_off");
            served[client] += usize::from(is_done || (is_off && call.bound.is_some()));
            match call.bound {
                // Its window is another one after each start.
                Some(_) if !is_bound(client) => {}
                Some(window) => {
                    reached[window].0 += usize::from(is_done || is_off);
                    let has_heard = call.told.as_ref().is_some_and(|told| *told != Told::GivenUp);
                    reached[window].1 += usize::from(has_heard);
                }
                None if !is_done => refused.push(format!("{name}: {:?}", call.told)),
                None => {}
            }
        }
        // With nobody live, by wish, those who follow the live window have none.
        let last_grant = self.live.as_ref().map(|live| live.since);
        let last_stop = self.stop_ordered.max(self.stop_carried_out);
        let is_empty_by_wish = last_stop.is_some() && last_stop >= last_grant;
        for (client, n_served) in served.iter().enumerate() {
            if *n_served == 0 && (is_bound(client) || !is_empty_by_wish) {
                self.violate(now, format!("all is quiet, and c{client} is not served: {refused:?}"));
            }
        }
        for (window, (n_done, n_answered)) in reached.into_iter().enumerate() {
            if n_done == 0 && n_answered > 0 {
                self.violate(now, format!("all is quiet, and w{window} cannot be reached"));
            }
        }
    }
}

/// The client whose call it is.
fn client_of(call: &str) -> usize {
    call[1..2].parse::<usize>().unwrap_or(0).min(CLIENTS - 1)
}
