//! CORE: sentences and short forms that several toolsets use.

use std::path::Path;

use serde_json::Value;

use baton_agent_base::fault::{Fault, sentence};
use baton_agent_base::view::View;
use baton_agent_debug::types::control::{Activity, Doing, News, UserAct, What};
use baton_agent_debug::types::triggers::TriggerBreakpoint;
use baton_agent_debug::types::{Breakpoint, Completed, Frame, OutputTail, StopEvent};

/// Lines of further breakpoints that it names.
const MAX_LINES: usize = 8;
/// Breakpoints that the end of a program tells about one by one.
const MAX_TOLD: usize = 5;
/// Breakpoints that it names of which an earlier end told more.
const MAX_AGAIN: usize = 3;

/// The start of a text, with a mark when there is more.
pub(super) fn shorten(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Candidates of an error, which are paths, as people write them.
pub(crate) fn with_relative_candidates(mut error: Fault, view: &View) -> Fault {
    let candidates = error.details.get_mut("candidates").and_then(Value::as_array_mut);
    for candidate in candidates.into_iter().flatten() {
        if let Some(path) = candidate.as_str().map(Path::new).filter(|path| path.is_absolute()) {
            *candidate = view.relative(path).into();
        }
    }
    error
}

/// What happened to a client's programs by another's doing.
pub(crate) fn news(news: &[News]) -> Option<String> {
    let told = news.iter().map(|News { session, name, what }| {
        let did = match what {
            What::Limit(text) => return format!("Debug session {session} ({name}) {text}."),
            What::Act(UserAct::Continued) => "continued",
            What::Act(UserAct::Stepped) => "stepped",
            What::Act(UserAct::Stopped) => "stopped",
            What::Act(UserAct::Restarted) => "restarted",
        };
        format!("The user {did} debug session {session} ({name}).")
    });
    Some(told.collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
}

/// How a program ended, and why it never stopped where it was asked to.
pub(super) fn end(completed: &Completed, view: &View) -> String {
    let mut text = match (&completed.note, completed.exit_code) {
        (Some(note), _) => sentence(note),
        (None, Some(code)) => format!("The program ended with exit code {code}."),
        (None, None) => "The program ended.".to_owned(),
    };
    let (old, new): (Vec<&Breakpoint>, Vec<&Breakpoint>) =
        completed.never_hit.iter().partition(|breakpoint| completed.told_before.contains(&breakpoint.id));
    let alike = alike(&new);
    for (first, others) in alike.iter().take(MAX_TOLD) {
        text.push_str(&format!(" {}", never_hit(first, view)));
        if !others.is_empty() {
            text.push_str(&format!(" Likewise on {}.", lines(others)));
        }
    }
    for breakpoint in completed.never_called.iter().take(MAX_TOLD) {
        text.push_str(&format!(" {}", never_called(breakpoint)));
    }
    let n_more = alike.iter().skip(MAX_TOLD).map(|(_, others)| 1 + others.len()).sum::<usize>()
        + completed.never_called.len().saturating_sub(MAX_TOLD);
    if n_more > 0 {
        text.push_str(&format!(" {n_more} more breakpoints were never hit."));
    }
    text.extend(never_hit_again(&old, view));
    text
}

/// Breakpoints of which an earlier end told why they are never hit.
pub(super) fn never_hit_again(all: &[&Breakpoint], view: &View) -> Option<String> {
    let place = |of: &&Breakpoint| format!("{}:{}", view.relative(&of.path), of.line);
    let places: Vec<String> = all.iter().take(MAX_AGAIN).map(place).collect();
    match all.len().saturating_sub(MAX_AGAIN) {
        _ if all.is_empty() => None,
        0 => Some(format!(" As before, not hit: {}.", places.join(", "))),
        n_more => Some(format!(" As before, not hit: {} and {n_more} more.", places.join(", "))),
    }
}

/// Breakpoints of one file with the same to be said of them, and the lines of all but the first.
fn alike<'a>(all: &[&'a Breakpoint]) -> Vec<(&'a Breakpoint, Vec<u32>)> {
    let mut groups: Vec<(&Breakpoint, Vec<u32>)> = Vec::new();
    for &breakpoint in all {
        let why = |of: &Breakpoint| without_number(&why_never_hit(of), of.line);
        let is_alike = |(first, _): &&mut (&Breakpoint, Vec<u32>)| {
            first.path == breakpoint.path && why(first) == why(breakpoint)
        };
        match groups.iter_mut().find(is_alike) {
            Some((_, others)) => others.push(breakpoint.line),
            None => groups.push((breakpoint, Vec::new())),
        }
    }
    groups
}

/// A sentence without that number; `13` is not 3.
fn without_number(text: &str, number: u32) -> String {
    let number = number.to_string();
    let is_other = |piece: &&str| *piece != number;
    let pieces = text.split_inclusive(|c: char| !c.is_ascii_digit());
    let pieces = pieces.flat_map(|piece| {
        let end = piece.trim_end_matches(|c: char| !c.is_ascii_digit()).len();
        [&piece[..end], &piece[end..]]
    });
    pieces.filter(is_other).collect()
}

/// `line 3`, `lines 3, 4 and 5`.
fn lines(all: &[u32]) -> String {
    let shown: Vec<String> = all.iter().take(MAX_LINES).map(u32::to_string).collect();
    match (shown.as_slice(), all.len() - shown.len()) {
        ([line], 0) => format!("line {line}"),
        ([first @ .., last], 0) => format!("lines {} and {last}", first.join(", ")),
        (shown, n_more) => format!("lines {} and {n_more} more", shown.join(", ")),
    }
}

/// What a reason alone does not say.
pub(super) fn why(stop: &StopEvent) -> Option<&String> {
    stop.text.as_ref().filter(|_| matches!(&*stop.reason, "exception" | "refused"))
}

/// Why a breakpoint did not stop the program.
pub(super) fn never_hit(breakpoint: &Breakpoint, view: &View) -> String {
    let place = format!("{}:{}", view.relative(&breakpoint.path), breakpoint.line);
    let why = why_never_hit(breakpoint);
    format!("Breakpoint {} ({place}) was never hit: {}", breakpoint.id, lower_first(&why))
}

/// Breakpoints that no debugger of a running program can have as they are.
pub(super) fn refused(all: &[Breakpoint], view: &View) -> Option<String> {
    let refused: Vec<&Breakpoint> = all.iter().filter(|breakpoint| breakpoint.is_refused).collect();
    let line = |breakpoint: &&Breakpoint| {
        let place = format!("{}:{}", view.relative(&breakpoint.path), breakpoint.line);
        let why = breakpoint.message.as_deref().unwrap_or_default().trim_start_matches("not set: ");
        format!("Breakpoint {} ({place}) is not set: {}", breakpoint.id, lower_first(&sentence(why)))
    };
    let mut lines: Vec<String> = refused.iter().take(MAX_TOLD).map(line).collect();
    match refused.len().saturating_sub(MAX_TOLD) {
        _ if refused.is_empty() => return None,
        0 => {}
        n_more => lines.push(format!("{n_more} more breakpoints are not set.")),
    }
    Some(lines.join("\n"))
}

fn why_never_hit(breakpoint: &Breakpoint) -> String {
    match (&breakpoint.message, breakpoint.actual_line, breakpoint.verified) {
        (Some(message), _, _) => sentence(message),
        (None, Some(line), _) if line != breakpoint.line => format!("The debugger moved it to line {line}."),
        (None, _, false) => "No debugger bound it to code.".to_owned(),
        (None, _, true) if breakpoint.condition.is_some() || breakpoint.hit_condition.is_some() => {
            "The line was not reached with its condition true.".to_owned()
        }
        (None, _, true) => "The line was not reached.".to_owned(),
    }
}

/// The same for one on a function.
pub(super) fn never_called(breakpoint: &TriggerBreakpoint) -> String {
    let what = breakpoint.trigger.describe();
    let told = format!("Breakpoint {} {what} was never hit", breakpoint.id);
    match breakpoint.message.as_ref().filter(|_| !breakpoint.verified) {
        Some(message) => format!("{told}: {}", lower_first(&sentence(message))),
        None => format!("{told}: it was not called."),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().into_iter().flat_map(char::to_lowercase).chain(chars).collect()
}

/// That a program still runs, and why it may not come any further.
pub(super) fn running(text: &str, waits_for_input: bool) -> String {
    if !waits_for_input {
        return text.to_owned();
    }
    format!(
        "{text} It is waiting on stdin. End it, and start it with its input in a file or in \
         its arguments."
    )
}

/// What a program that runs does.
pub(super) fn doing(doing: &Doing, view: &View) -> String {
    let (threads, n_more) = match doing {
        Doing::Stacks { threads, n_more } => (threads, *n_more),
        Doing::Idle => return "The program is idle in its event loop; there is no stack.".to_owned(),
        Doing::Native => {
            let why = "in a call of the system, or for a child process, or in a search that never ends";
            return format!("The program seems blocked in native code ({why}), which lets no debugger in.");
        }
    };
    let mut text = "Threads (running, values are not available):".to_owned();
    for (thread, frames) in threads {
        text.push_str(&format!("\n{} {}:", thread.id, thread.name));
        for frame in frames {
            text.push_str(&format!("\n  {}", running_frame(frame, view)));
        }
    }
    if n_more > 0 {
        text.push_str(&format!("\n{n_more} more threads."));
    }
    text
}

/// A frame of a thread that runs: `main.py:3 in price`.
pub(super) fn running_frame(frame: &Frame, view: &View) -> String {
    let file = match frame.file_path.as_str() {
        "" => "no source".to_owned(),
        path => view.relative(Path::new(path)),
    };
    format!("{file}:{} in {}", frame.line_number, frame.function_name)
}

/// A pause that has not stopped the program; `waits_on` is the tool that waits until it does.
pub(super) fn pending(activity: &Activity, view: &View, waits_on: &str) -> String {
    let what = doing(&activity.doing, view);
    match activity.doing {
        Doing::Stacks { .. } => format!(
            "Not stopped yet: the program is inside a call that cannot be interrupted. The pause takes effect when that \
             call returns; {waits_on} waits for it.\n{what}"
        ),
        Doing::Idle => {
            format!(
                "Not stopped yet. {what} The pause takes effect with its next callback; {waits_on} waits for it."
            )
        }
        Doing::Native => {
            format!(
                "Not stopped yet. {what} The pause takes effect when that call returns; {waits_on} waits for it."
            )
        }
    }
}

/// What a program printed in two pieces.
pub(super) fn joined(before: OutputTail, after: OutputTail) -> OutputTail {
    let omitted_bytes = before.omitted_bytes + after.omitted_bytes;
    OutputTail { text: before.text + &after.text, omitted_bytes }
}

/// What a program printed, with a mark where the beginning is left out.
pub(super) fn output(output: &OutputTail) -> String {
    match output.omitted_bytes {
        0 => output.text.clone(),
        omitted => format!("[{omitted} earlier bytes omitted]\n{}", output.text),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use baton_agent_debug::types::SessionId;

    fn check_end(never_hit: Vec<Breakpoint>, exit_code: Option<i64>, note: Option<&str>, expected: Expect) {
        let completed = Completed {
            session: SessionId("s".to_owned()),
            exit_code,
            output: OutputTail::default(),
            never_hit,
            told_before: [77].into(),
            never_called: Vec::new(),
            note: note.map(str::to_owned),
        };
        expected.assert_eq(&end(&completed, &View::new(["/w".into()])));
    }

    #[test]
    fn a_number_is_left_out_as_a_whole() {
        assert_eq!(
            without_number("Moved from 3 to line 13, not 33: 3", 3),
            "Moved from  to line 13, not 33: "
        );
        assert_eq!(without_number("", 3), "");
    }

    #[test]
    fn an_end_tells_why_a_program_did_not_stop() {
        let breakpoint =
            || Breakpoint { id: 3, path: "/w/src/main.py".into(), line: 9, ..Breakpoint::default() };
        check_end(vec![], Some(0), None, expect!["The program ended with exit code 0."]);
        check_end(
            vec![],
            Some(9),
            Some("the debug session was stopped"),
            expect!["The debug session was stopped."],
        );
        check_end(
            vec![breakpoint()],
            None,
            None,
            expect![
                "The program ended. Breakpoint 3 (src/main.py:9) was never hit: no debugger bound it to code."
            ],
        );
        check_end(
            vec![
                Breakpoint { verified: true, ..breakpoint() },
                Breakpoint { verified: true, condition: Some("x > 3".to_owned()), ..breakpoint() },
                Breakpoint { verified: true, actual_line: Some(12), ..breakpoint() },
                Breakpoint { message: Some("Line 9 has no code".to_owned()), ..breakpoint() },
            ],
            Some(1),
            None,
            expect![
                "The program ended with exit code 1. Breakpoint 3 (src/main.py:9) was never hit: the line was not reached. Breakpoint 3 (src/main.py:9) was never hit: the line was not reached with its condition true. Breakpoint 3 (src/main.py:9) was never hit: the debugger moved it to line 12. Breakpoint 3 (src/main.py:9) was never hit: line 9 has no code."
            ],
        );
    }

    #[test]
    fn what_a_debugger_refuses_is_told_and_what_may_still_be_loaded_is_not() {
        let at = |line: u32, is_refused| Breakpoint {
            id: i64::from(line),
            path: "/w/a.sh".into(),
            line,
            message: Some("not set: it cannot count".to_owned()),
            is_refused,
            ..Breakpoint::default()
        };
        let told = |all: &[Breakpoint]| refused(all, &View::new(["/w".into()]));
        assert_eq!(told(&[at(1, false)]), None);
        assert_eq!(
            told(&[at(1, false), at(2, true)]).unwrap(),
            "Breakpoint 2 (a.sh:2) is not set: it cannot count."
        );
        let many: Vec<Breakpoint> = (1..=7).map(|line| at(line, true)).collect();
        assert!(
            told(&many)
                .unwrap()
                .ends_with("(a.sh:5) is not set: it cannot count.\n2 more breakpoints are not set.")
        );
    }

    #[test]
    fn what_holds_of_many_breakpoints_is_told_once() {
        let at = |line: u32| Breakpoint {
            id: line.into(),
            path: "/w/a.py".into(),
            line,
            message: Some(format!("Line {line} was never reached")),
            ..Breakpoint::default()
        };
        check_end(
            (1..=3).map(at).chain([Breakpoint { path: "/w/b.py".into(), ..at(4) }]).collect(),
            Some(0),
            None,
            expect![
                "The program ended with exit code 0. Breakpoint 1 (a.py:1) was never hit: line 1 was never reached. Likewise on lines 2 and 3. Breakpoint 4 (b.py:4) was never hit: line 4 was never reached."
            ],
        );
        check_end(
            (1..=20).map(at).collect(),
            Some(0),
            None,
            expect![
                "The program ended with exit code 0. Breakpoint 1 (a.py:1) was never hit: line 1 was never reached. Likewise on lines 2, 3, 4, 5, 6, 7, 8, 9 and 11 more."
            ],
        );
    }

    #[test]
    fn what_an_earlier_end_told_is_told_in_short() {
        let at = |line: u32| Breakpoint { id: 77, path: "/w/other.py".into(), line, ..Breakpoint::default() };
        let new =
            Breakpoint { id: 1, path: "/w/a.py".into(), line: 2, verified: true, ..Breakpoint::default() };
        check_end(
            vec![at(3), new],
            Some(0),
            None,
            expect![
                "The program ended with exit code 0. Breakpoint 1 (a.py:2) was never hit: the line was not reached. As before, not hit: other.py:3."
            ],
        );
        check_end(
            (1..=5).map(at).collect(),
            Some(0),
            None,
            expect![
                "The program ended with exit code 0. As before, not hit: other.py:1, other.py:2, other.py:3 and 2 more."
            ],
        );
    }

    #[test]
    fn a_program_that_reads_is_told_with_a_way_out() {
        assert_eq!(running("It runs.", false), "It runs.");
        assert!(running("It runs.", true).ends_with("its arguments."));
    }

    #[test]
    fn long_texts_are_cut_at_characters() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöü", 2), "äö...");
    }
}
