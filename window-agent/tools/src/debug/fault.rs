//! CORE: the engine's errors in the words of the tool `debug`.

use std::time::Duration;

use baton_agent_base::fault::{Fault, Kind, sentence};
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::SessionSummary;

/// The sentence of the document where it has one, else the engine's.
pub(super) fn told(error: DebugError, sessions: &[SessionSummary]) -> Fault {
    let (message, hint) = match &error {
        DebugError::NoSession => {
            ("No active debug session. Launch or attach first.".to_owned(), String::new())
        }
        DebugError::TooManySessions { .. } => {
            let oldest = sessions.first().map_or("?", |session| session.id.as_str());
            let message =
                format!("Debug session {oldest} is still active. Terminate it before launching another.");
            (message, sentence(&error.to_string()))
        }
        DebugError::NoAnswer { command, seconds } => (
            format!("DAP request {command} timed out after {}ms", seconds * 1_000),
            "The program may be busy: try again, pause it, or terminate.".to_owned(),
        ),
        DebugError::AdapterDied { how, output, .. } => (
            adapter_exited(how, output),
            "The session is over, its breakpoints are kept: launch again, or send the custom_request `restart`.".to_owned(),
        ),
        DebugError::Unsupported { what, .. } => return unsupported(what),
        DebugError::NoTerminal => (sentence(&error.to_string()), "Launch it with `stdin`.".to_owned()),
        DebugError::NoThreads => ("Debugger reported no threads.".to_owned(), String::new()),
        DebugError::OfVerb { command, .. } => (
            format!("{command} cannot be a custom request: it changes where the session stands."),
            "Use the action for it.".to_owned(),
        ),
        DebugError::Refused { message, .. } | DebugError::EvaluationFailed { message } => {
            (message.clone(), String::new())
        }
        DebugError::NoSuchThread { .. } => {
            (sentence(&error.to_string()), "Run threads to list them.".to_owned())
        }
        DebugError::NotStopped { .. } => (
            sentence(&error.to_string()),
            "Run pause to stop it, or continue to wait for its next stop.".to_owned(),
        ),
        DebugError::StaleFrame { frame_id } => (
            format!("Frame {frame_id} is from an earlier stop."),
            "Run stack_trace for the frames of this one.".to_owned(),
        ),
        DebugError::NoSuchFrame { .. } => {
            (sentence(&error.to_string()), "Run stack_trace to list them.".to_owned())
        }
        DebugError::StaleReference { reference } => (
            format!("Variables reference {reference} is from an earlier stop."),
            "Run scopes for the ones of this stop.".to_owned(),
        ),
        DebugError::NoSuchReference { reference } => {
            (format!("There is no variables reference {reference}."), "Run scopes to list them.".to_owned())
        }
        DebugError::NoSuchSession { .. } => {
            (sentence(&error.to_string()), "Run sessions to list them.".to_owned())
        }
        DebugError::SessionEnded { .. } => {
            (sentence(&error.to_string()), "Launch or attach for a new one.".to_owned())
        }
        DebugError::NoSuchBreakpoint { .. } => (sentence(&error.to_string()), String::new()),
        DebugError::BadConfiguration { .. } | DebugError::StartFailed { .. } => {
            (sentence(&error.to_string()), String::new())
        }
        DebugError::Untrusted { .. } => (
            sentence(&error.to_string()),
            "Launch again when the user has said that they trust it.".to_owned(),
        ),
        _ => (sentence(&error.to_string()), error.hint().unwrap_or_default().to_owned()),
    };
    let told = Fault::new(error.kind(), message);
    if hint.is_empty() { told } else { told.hint(hint) }
}

/// An action wants a stopped program.
pub(super) fn no_frame() -> Fault {
    Fault::new(Kind::NoFrame, "No active stack frame. Run stack_trace first or supply frame_id.")
}

/// The adapter never came so far that it could be configured.
pub(super) fn never_initialized(waited: Duration) -> Fault {
    let message = format!("DAP event initialized timed out after {}ms", waited.as_millis());
    Fault::new(Kind::AdapterTimeout, message)
        .hint("The session was ended. A build or a slow start may need a longer timeout.")
}

/// The session that is meant has ended because its adapter did.
pub(super) fn not_running(adapter: &str) -> Fault {
    Fault::new(Kind::SessionEnded, format!("DAP adapter {adapter} is not running"))
        .hint("Its session is over, its breakpoints are kept: launch again.")
}

/// The adapter cannot do that at all.
pub(super) fn unsupported(what: &str) -> Fault {
    Fault::new(Kind::Unsupported, format!("Active adapter does not support {what}"))
}

/// The client gave up; the program and its session go on.
pub(super) fn interrupted(command: &str) -> Fault {
    Fault::new(Kind::Interrupted, format!("The wait for {command} was interrupted."))
}

fn adapter_exited(how: &str, output: &str) -> String {
    // What it said on its standard error last is told with how it ended.
    let (how, words) = how.split_once(": ").unwrap_or((how, ""));
    let code = how.rsplit("code ").next().and_then(|code| code.trim().parse::<i32>().ok());
    let words = if words.is_empty() { output } else { words };
    match (code, words.trim()) {
        (Some(code), "") => format!("DAP adapter exited unexpectedly (code {code})"),
        (Some(code), output) => format!("DAP adapter exited (code {code}): {output}"),
        (None, "") => format!("DAP adapter exited unexpectedly ({how})"),
        (None, output) => format!("DAP adapter exited unexpectedly ({how}): {output}"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use baton_agent_debug::types::{Phase, SessionId};

    fn check(error: DebugError, expected: Expect) {
        let session = SessionSummary {
            id: SessionId("a1b2c3d4-1".to_owned()),
            name: "main.py".to_owned(),
            phase: Phase::Running,
            parent: None,
            by_user: false,
        };
        expected.assert_eq(&told(error, &[session]).message);
    }

    #[test]
    fn the_documents_sentences() {
        check(DebugError::NoSession, expect!["No active debug session. Launch or attach first."]);
        check(
            DebugError::TooManySessions { limit: 8 },
            expect!["Debug session a1b2c3d4-1 is still active. Terminate it before launching another."],
        );
        check(
            DebugError::NoAnswer { command: "evaluate".to_owned(), seconds: 30 },
            expect!["DAP request evaluate timed out after 30000ms"],
        );
        let died = |how: &str, output: &str| DebugError::AdapterDied {
            session: SessionId("a1b2c3d4-1".to_owned()),
            how: how.to_owned(),
            output: output.to_owned(),
        };
        check(died("exited with code 3", ""), expect!["DAP adapter exited unexpectedly (code 3)"]);
        check(died("exited with code 3", "boom\n"), expect!["DAP adapter exited (code 3): boom"]);
        check(died("exited with code 3: boom", "x"), expect!["DAP adapter exited (code 3): boom"]);
        check(
            died("was killed by signal 9", ""),
            expect!["DAP adapter exited unexpectedly (was killed by signal 9)"],
        );
        check(
            DebugError::EvaluationFailed { message: "NameError: name 'x' is not defined".to_owned() },
            expect!["NameError: name 'x' is not defined"],
        );
        assert_eq!(no_frame().message, "No active stack frame. Run stack_trace first or supply frame_id.");
    }
}
