//! The calls: those that run, and the last thousand.
//!
//! It is told in the way of each call, and so does little: a look into a short list, and two words copied.

use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use baton_proto::ids::WindowId;
use baton_proto::page::{Call, CallState, ClientView};
use baton_proto::redact;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::watch;

use crate::since_1970;

/// Calls that have ended, and are remembered.
const DONE_MAX: usize = 1_000;
/// Clients that are remembered, by name.
const CLIENTS_MAX: usize = 64;
/// Characters of a call's arguments that are kept, where they are.
const ARGUMENTS_MAX: usize = 500;
/// Characters of a client's name that are kept.
const NAME_MAX: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct Journal {
    calls: Mutex<Calls>,
    /// The last change.
    seq: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Calls {
    seq: u64,
    running: BTreeMap<Box<str>, Call>,
    /// Oldest first, by the change that was their end.
    done: VecDeque<Call>,
    clients: BTreeMap<Box<str>, Client>,
}

#[derive(Debug, Default)]
struct Client {
    n_calls: u64,
    last_ms: u64,
}

impl Default for Journal {
    /// Nobody has called yet.
    fn default() -> Self {
        Self { calls: Mutex::default(), seq: watch::Sender::new(0) }
    }
}

impl Journal {
    /// A call has come, with `arguments` that are to be seen.
    pub fn came(&self, id: &str, tool: &str, client: &str, arguments: Option<&str>) {
        let at_ms = since_1970(SystemTime::now());
        let (client, arguments) = (&*plain(client), arguments.and_then(shown));
        let mut calls = self.calls();
        let seq = calls.next();
        calls.meet(client, at_ms);
        let (tool, client) = (tool.to_owned(), client.to_owned());
        let state = CallState::Running;
        let call = Call { id: id.to_owned(), seq, at_ms, tool, client, arguments, window: None, state };
        calls.running.insert(id.into(), call);
        self.tell(calls);
    }

    /// A call waits for a window, or does so no longer.
    pub fn held(&self, id: &str, is_held: bool) {
        self.change(id, |call| call.state = if is_held { CallState::Held } else { CallState::Running });
    }

    /// A call is passed to that window.
    pub fn sent(&self, id: &str, window: &WindowId) {
        self.change(id, |call| call.window = Some(window.clone()));
    }

    /// A call is over.
    pub fn over(&self, id: &str, end: CallState) {
        let mut calls = self.calls();
        let Some(mut call) = calls.running.remove(id) else { return };
        (call.seq, call.state) = (calls.next(), end);
        if calls.done.len() >= DONE_MAX {
            calls.done.pop_front();
        }
        calls.done.push_back(call);
        self.tell(calls);
    }

    /// Tells of each change.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.seq.subscribe()
    }

    /// What has changed after `seq`, the oldest first, of those that have ended the last `most`; and the last change.
    pub fn changed_after(&self, seq: u64, most: usize) -> (Vec<Call>, u64) {
        let calls = self.calls();
        let ended = calls.done.iter().rev().take_while(|call| call.seq > seq).take(most);
        let running = calls.running.values().filter(|call| call.seq > seq);
        let mut changed: Vec<Call> = ended.chain(running).cloned().collect();
        changed.sort_by_key(|call| call.seq);
        (changed, calls.seq)
    }

    /// Those that ended before the change `seq`, the latest first.
    pub fn done_before(&self, seq: u64, most: usize) -> Vec<Call> {
        let calls = self.calls();
        let end = calls.done.partition_point(|call| call.seq < seq);
        calls.done.range(..end).rev().take(most).cloned().collect()
    }

    /// Who has called, the last one first.
    pub fn clients(&self) -> Vec<ClientView> {
        let calls = self.calls();
        let view = |name: &str, client: &Client| ClientView {
            name: name.to_owned(),
            n_calls: client.n_calls,
            last_ms: client.last_ms,
        };
        let mut clients: Vec<ClientView> =
            calls.clients.iter().map(|(name, client)| view(name, client)).collect();
        clients.sort_by_key(|client| std::cmp::Reverse(client.last_ms));
        clients
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Call)) {
        let mut calls = self.calls();
        let seq = calls.seq + 1;
        let Some(call) = calls.running.get_mut(id) else { return };
        change(call);
        (call.seq, calls.seq) = (seq, seq);
        self.tell(calls);
    }

    /// Lets go of the lock first: whoever is woken wants it.
    fn tell(&self, calls: MutexGuard<'_, Calls>) {
        let seq = calls.seq;
        drop(calls);
        // Two that change at once may come here in any order.
        self.seq.send_if_modified(|last| {
            let is_later = seq > *last;
            *last = seq.max(*last);
            is_later
        });
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock()
    }
}

impl Calls {
    fn next(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn meet(&mut self, name: &str, at_ms: u64) {
        if let Some(client) = self.clients.get_mut(name) {
            (client.n_calls, client.last_ms) = (client.n_calls + 1, at_ms);
            return;
        }
        if self.clients.len() >= CLIENTS_MAX {
            let oldest = self.clients.iter().min_by_key(|(_, client)| client.last_ms);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.clients.remove(&oldest);
            }
        }
        self.clients.insert(name.into(), Client { n_calls: 1, last_ms: at_ms });
    }
}

/// Arguments without secrets, and no longer than a person reads.
fn shown(arguments: &str) -> Option<String> {
    let mut arguments: Value = serde_json::from_str(arguments).ok()?;
    redact::json(&mut arguments);
    let text = arguments.to_string();
    let mut short: String = text.chars().take(ARGUMENTS_MAX).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    Some(short).filter(|text| text != "{}")
}

/// A name that fills neither a memory nor a screen, and does nothing to a terminal.
fn plain(name: &str) -> String {
    name.chars().take(NAME_MAX).map(|one| if one.is_control() { '?' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(ms: u64) -> CallState {
        CallState::Done { ms, error: None, n_bytes: 0 }
    }

    fn ids(calls: &[Call]) -> Vec<&str> {
        calls.iter().map(|call| call.id.as_str()).collect()
    }

    #[test]
    fn a_page_that_follows_the_changes_knows_what_there_is() {
        let journal = Journal::default();
        journal.came("a", "debug", "claude-code", None);
        journal.came("b", "code", "cursor", None);
        let (first, seq) = journal.changed_after(0, 100);
        assert_eq!(ids(&first), ["a", "b"]);
        assert!(journal.changed_after(seq, 100).0.is_empty());
        journal.held("a", true);
        journal.over("b", done(7));
        let (second, seq) = journal.changed_after(seq, 100);
        assert_eq!(ids(&second), ["a", "b"]);
        assert_eq!((&second[0].state, &second[1].state), (&CallState::Held, &done(7)));
        journal.held("a", false);
        journal.sent("a", &"w1".parse().unwrap());
        let (third, _) = journal.changed_after(seq, 100);
        assert_eq!((ids(&third), &third[0].state), (vec!["a"], &CallState::Running));
        assert_eq!(third[0].window.as_ref().map(WindowId::as_str), Some("w1"));
    }

    #[test]
    fn the_last_thousand_are_kept_and_told_page_by_page() {
        let journal = Journal::default();
        for number in 0..DONE_MAX + 50 {
            let id = number.to_string();
            journal.came(&id, "debug", "client", None);
            journal.over(&id, done(1));
        }
        let (mut seen, mut before) = (Vec::new(), u64::MAX);
        loop {
            let older = journal.done_before(before, 100);
            let Some(last) = older.last() else { break };
            before = last.seq;
            seen.extend(older.into_iter().map(|call| call.id));
        }
        let expected: Vec<String> = (50..DONE_MAX + 50).rev().map(|number| number.to_string()).collect();
        assert_eq!(seen, expected);
        assert_eq!(journal.changed_after(0, 100).0.len(), 100);
    }

    #[test]
    fn what_a_client_calls_itself_fills_no_memory() {
        let journal = Journal::default();
        for number in 0..1_000 {
            journal.came(&number.to_string(), "debug", &format!("{number}{}", "é".repeat(10_000)), None);
        }
        let clients = journal.clients();
        assert_eq!(clients.len(), CLIENTS_MAX);
        assert!(clients.iter().all(|client| client.name.chars().count() == NAME_MAX));
    }

    #[test]
    fn arguments_are_short_and_without_secrets() {
        let told = r#"{"env": {"API_KEY": "k"}, "expression": "x"}"#;
        assert_eq!(shown(told).unwrap(), r#"{"env":{"API_KEY":"[redacted]"},"expression":"x"}"#);
        assert_eq!(shown("{}"), None);
        assert_eq!(shown("no JSON"), None);
        let long = shown(&format!(r#"{{"code": "{}"}}"#, "é".repeat(10_000))).unwrap();
        assert_eq!(long.chars().count(), ARGUMENTS_MAX + 3);
    }

    #[test]
    fn an_end_that_nobody_began_is_not_noted() {
        let journal = Journal::default();
        journal.over("a", done(1));
        journal.sent("a", &"w1".parse().unwrap());
        assert_eq!(journal.changed_after(0, 100), (Vec::new(), 0));
    }
}
