//! CORE: what must hold of a history, whatever was broken meanwhile. No IO, no clock.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use baton_proto::ids::Term;

use crate::history::{Call, Moment, Record, Told};

/// A call is held 10 s for a window; a window that hangs is evicted after 6 s, and its call ends within 1 s. The rest is
/// for a coordinator that is found hung (4 s) and a busy machine.
pub(crate) const CALL_BOUND: Duration = Duration::from_secs(22);

/// What is taken away on purpose is noticed at the latest when all is well again.
const TAKEN_AWAY: Duration = Duration::from_secs(12);

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Name of the rule.
    pub(crate) rule: &'static str,
    /// The call that shows it.
    pub(crate) call: Option<u64>,
    /// When.
    pub(crate) at: Moment,
    /// One sentence.
    pub(crate) text: String,
}

/// Windows in which the call of a number left its mark, once for each execution.
pub(crate) type Effects = HashMap<u64, Vec<String>>;

/// All violations, in time order.
pub(crate) fn check(record: &Record, effects: &Effects) -> Vec<Violation> {
    let mut found = Vec::new();
    for call in &record.calls {
        check_executions(call, effects, &mut found);
        check_answer(record, call, &mut found);
    }
    check_windows_of_terms(record, &mut found);
    check_order(record, &mut found);
    check_sessions(record, &mut found);
    check_strangers(record, effects, &mut found);
    found.extend(record.strangers.iter().map(|(at, has_token)| {
        let text = if *has_token {
            "another user held the port, and heard a token"
        } else {
            "another user held the port"
        };
        Violation { rule: "the port stays ours", call: None, at: *at, text: text.to_owned() }
    }));
    found.sort_by_key(|violation| violation.at);
    found
}

fn violation(rule: &'static str, call: &Call, text: String) -> Violation {
    Violation { rule, call: Some(call.id), at: call.answered, text }
}

/// At most one execution; exactly one when the client was told so; none when it was told not, or to repeat it.
fn check_executions(call: &Call, effects: &Effects, found: &mut Vec<Violation>) {
    let windows = effects.get(&call.id).map_or(&[][..], Vec::as_slice);
    if call.method != "call" {
        return;
    }
    if windows.len() > 1 {
        let text = format!("call {} ran {} times, in {}", call.id, windows.len(), windows.join(", "));
        found.push(violation("at most one execution", call, text));
    }
    match call.told {
        Told::Done if windows.is_empty() => {
            let text = format!("call {} was answered as done and left no mark", call.id);
            found.push(violation("what is told as done ran", call, text));
        }
        Told::Done if call.window.as_ref().is_some_and(|name| !windows.contains(name)) => {
            let name = call.window.as_deref().unwrap_or_default();
            let text = format!("call {} ran in {}, and {name} says it did", call.id, windows.join(", "));
            found.push(violation("the window that answers is the one that ran it", call, text));
        }
        Told::NotRun | Told::Refused | Told::Unauthorized | Told::SessionLost | Told::Failed
            if !windows.is_empty() =>
        {
            let text = format!("call {} was told as not run ({}), and ran", call.id, call.words);
            found.push(violation("none runs that is told not to have run", call, text));
        }
        Told::Again if !windows.is_empty() => {
            let text = format!("call {} was told to be repeated ({}), and had run", call.id, call.words);
            found.push(violation("none is to be repeated that ran", call, text));
        }
        _ => {}
    }
}

/// Every call is answered, in its bound, in words that are known, on a connection that lasts.
fn check_answer(record: &Record, call: &Call, found: &mut Vec<Violation>) {
    let took = call.answered.saturating_sub(call.sent);
    let bound = CALL_BOUND + lateness(record, call.sent, call.answered);
    if call.told == Told::Nothing || took > bound {
        let text = format!("call {} was not answered within {bound:.1?} ({took:.1?})", call.id);
        found.push(violation("every call is answered in its bound", call, text));
    }
    let may_tear = record.deaths.iter().any(|death| death.meets(call.sent, call.answered));
    if call.told == Told::Torn && !may_tear {
        let text =
            format!("call {} lost its connection ({}); nobody killed the coordinator", call.id, call.words);
        found.push(violation("no connection is torn", call, text));
    }
    if call.told == Told::Odd {
        let text = format!("call {} was answered {}", call.id, call.words);
        found.push(violation("every answer is understood", call, text));
    }
}

/// How late the machine was in that time, all in all and twice over.
pub(crate) fn lateness(record: &Record, from: Moment, to: Moment) -> Duration {
    let late = record.lateness.iter().filter(|(at, by)| *at >= from && at.saturating_sub(*by) <= to);
    late.map(|(_, by)| *by * 2).sum()
}

fn with_terms(record: &Record) -> impl Iterator<Item = (&Call, Term, &String)> {
    let calls = record.calls.iter().filter(|call| !call.is_pinned && call.told == Told::Done);
    calls.filter_map(|call| Some((call, call.term?, call.window.as_ref()?)))
}

/// One window per term.
fn check_windows_of_terms(record: &Record, found: &mut Vec<Violation>) {
    let mut holders: BTreeMap<Term, &String> = BTreeMap::new();
    for (call, term, window) in with_terms(record) {
        let holder = *holders.entry(term).or_insert(window);
        if holder != window {
            let text = format!("term {term} was answered by {holder} and by {window} (call {})", call.id);
            found.push(violation("one window per term", call, text));
        }
    }
}

/// What is sent after an answer was there has no lower term than that answer, for whatever client.
fn check_order(record: &Record, found: &mut Vec<Violation>) {
    let mut by_answer: Vec<(&Call, Term)> = with_terms(record).map(|(call, term, _)| (call, term)).collect();
    let mut by_sending = by_answer.clone();
    by_answer.sort_by_key(|(call, _)| call.answered);
    by_sending.sort_by_key(|(call, _)| call.sent);
    let mut answers = by_answer.into_iter().peekable();
    let mut highest: Option<(&Call, Term)> = None;
    for (call, term) in by_sending {
        while let Some((answer, seen)) = answers.next_if(|(answer, _)| answer.answered <= call.sent) {
            if highest.is_none_or(|(_, known)| seen > known) {
                highest = Some((answer, seen));
            }
        }
        if let Some((answer, known)) = highest.filter(|(_, known)| term < *known) {
            let whose = if answer.client == call.client { "the same client" } else { "another client" };
            let text = format!(
                "call {} was answered under term {term}, after call {} of {whose} under {known}",
                call.id, answer.id
            );
            found.push(violation("terms do not go back", call, text));
        }
    }
}

/// A session and a token are good for ever, unless they were taken away on purpose since the client got them.
fn check_sessions(record: &Record, found: &mut Vec<Violation>) {
    let mut since: HashMap<usize, Moment> = HashMap::new();
    let mut calls: Vec<&Call> = record.calls.iter().collect();
    calls.sort_by_key(|call| call.answered);
    for call in calls {
        let got = since.get(&call.client).copied().unwrap_or_default();
        match call.told {
            Told::SessionLost | Told::Unauthorized
                if !record.credentials.iter().any(|at| (got..=call.answered + TAKEN_AWAY).contains(at)) =>
            {
                let text = format!("call {}: {} ({})", call.id, call.told.word(), call.words);
                found.push(violation("the same session for ever", call, text));
            }
            Told::Done if call.method == "initialize" => {
                since.insert(call.client, call.sent);
            }
            _ => {}
        }
    }
}

/// No mark of a call that nobody made.
fn check_strangers(record: &Record, effects: &Effects, found: &mut Vec<Violation>) {
    let known: std::collections::HashSet<u64> = record.calls.iter().map(|call| call.id).collect();
    let strangers = effects.keys().filter(|id| !known.contains(id));
    found.extend(strangers.map(|id| Violation {
        rule: "every mark has its call",
        call: None,
        at: Moment::default(),
        text: format!("there is a mark {id} and no such call"),
    }));
}

#[cfg(test)]
mod tests;
