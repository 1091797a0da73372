//! A violation as a short story: what happened around it, in time order, and the command that tries it again.

use std::fmt::Write as _;
use std::time::Duration;

use crate::checker::Violation;
use crate::clients::CLIENTS;
use crate::history::{Call, Moment, Record, Told};

/// What happened so long before and after the call belongs to its story.
const AROUND: (Duration, Duration) = (Duration::from_secs(3), Duration::from_millis(500));
/// A story is read by people.
const MAX_LINES: usize = 45;

/// The story of a violation.
pub(crate) fn tell(violation: &Violation, record: &Record, again: &str) -> String {
    let call = violation.call.and_then(|id| record.calls.iter().find(|call| call.id == id));
    let (from, to) = match call {
        Some(call) => (call.sent.saturating_sub(AROUND.0), call.answered + AROUND.1),
        None => (violation.at.saturating_sub(AROUND.0 * 4), violation.at + AROUND.1),
    };
    let mut lines: Vec<(Moment, String)> = Vec::new();
    let events = record.events.iter().filter(|event| (from..=to).contains(&event.at));
    lines.extend(events.map(|event| (event.at, format!("      {}", event.text))));
    for client in 0..CLIENTS.len() {
        fold(client, violation.call, record, (from, to), &mut lines);
    }
    lines.sort();
    let mut text = format!("VIOLATION: {}\n  {}\n", violation.rule, violation.text);
    let n_skipped = lines.len().saturating_sub(MAX_LINES);
    if n_skipped > 0 {
        let _ = writeln!(text, "  ({n_skipped} earlier lines are left out)");
    }
    for (at, line) in lines.iter().skip(n_skipped) {
        let _ = writeln!(text, "  {:9.3} {line}", at.as_secs_f64());
    }
    let _ = writeln!(text, "  again: {again}");
    text
}

/// The calls of a client, with those that went the same way on one line.
fn fold(
    client: usize,
    marked: Option<u64>,
    record: &Record,
    span: (Moment, Moment),
    lines: &mut Vec<(Moment, String)>,
) {
    // A client that goes away on purpose says nothing about the others.
    let is_told = |call: &&Call| call.told != Told::Dropped || Some(call.id) == marked;
    let calls = record.calls.iter().filter(|call| call.client == client).filter(is_told);
    let mut calls = calls.filter(|call| call.answered >= span.0 && call.sent <= span.1).peekable();
    while let Some(first) = calls.next() {
        let (mut last, mut n_more) = (first, 0);
        if Some(first.id) != marked {
            while let Some(next) = calls.next_if(|next| is_alike(first, next) && Some(next.id) != marked) {
                (last, n_more) = (next, n_more + 1);
            }
        }
        lines.push((first.sent, describe(first, last, n_more, Some(first.id) == marked)));
    }
}

fn is_alike(one: &Call, other: &Call) -> bool {
    let key = |call: &Call| (call.told, call.method, call.window.clone(), call.term, call.words.clone());
    key(one) == key(other)
}

fn describe(first: &Call, last: &Call, n_more: usize, is_marked: bool) -> String {
    let kind = CLIENTS.get(first.client).map_or("?", |kind| kind.word());
    let mut text =
        format!("{} client {} ({kind}): ", if is_marked { ">>>>>" } else { "     " }, first.client);
    let _ = match n_more {
        0 => write!(text, "{} {} is {}", first.method, first.id, first.told.word()),
        _ => write!(
            text,
            "{} {}..{} ({}) are {}",
            first.method,
            first.id,
            last.id,
            n_more + 1,
            first.told.word()
        ),
    };
    if let (Some(window), Some(term)) = (&first.window, first.term) {
        let _ = write!(text, " by {window} under {term}");
    }
    if !first.words.is_empty() {
        let _ = write!(text, " [{}]", first.words);
    }
    let _ = write!(text, ", until {:.3}", last.answered.as_secs_f64());
    text
}
