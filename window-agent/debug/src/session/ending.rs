//! CORE: how a session ends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::types::control::Category;

use super::capture::name_of_signal;
use super::motion::is_fatal;
use super::{End, Ending, OVER, Output, Phase, Purpose, Session, StartKind};

/// How long `exited` may come after `terminated`.
const EXIT_CODE_GRACE: Duration = Duration::from_millis(150);
/// How long the end of a terminal may come after that of the program in it.
const TERMINAL_GRACE: Duration = Duration::from_millis(500);
/// How long the answer to the start may come after the end of a program.
const START_ANSWER_GRACE: Duration = Duration::from_millis(500);
/// How long what a program printed before that answer may come after it.
const EARLY_OUTPUT_GRACE: Duration = Duration::from_millis(100);
/// How long an adapter may take to end the program when asked to.
const STOP_GRACE: Duration = Duration::from_millis(700);

/// The number that follows `sign`.
pub(super) fn code_after(sign: &str, text: &str) -> Option<i64> {
    let (_, rest) = text.rsplit_once(sign)?;
    let n_digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'-').count();
    rest[..n_digits].parse().ok()
}

impl Session {
    pub(super) fn on_terminated(&mut self, now: Instant) {
        let may_exit_code_come =
            self.exit_code.is_none() && self.adapter.tells_exit_code && self.kind == StartKind::Launch;
        if self.phase == Phase::Terminating {
            // The answer to `disconnect` is still to come.
        } else if self.phase == Phase::Starting && self.exit_code.is_none() {
            // The reason is among what was printed.
            self.end(Ending::NotStarted("the debug adapter gave up before the program began".to_owned()));
        } else if self.adapter.exit_code_on_disconnect && self.kind == StartKind::Launch && !self.terminated {
            self.terminated = true;
            self.deadline = Some((now + EXIT_CODE_GRACE, Ending::Plain));
            let arguments = self.disconnect_arguments();
            self.send("disconnect", arguments, Purpose::Nothing);
        } else if self.terminated {
            // It comes once more with the answer to `disconnect`.
        } else if self.runs_in_terminal && self.kind == StartKind::Launch {
            // The last of its output is still to be read there, and its exit code.
            self.terminated = true;
            self.deadline = Some((now + TERMINAL_GRACE, Ending::Plain));
        } else if may_exit_code_come {
            self.terminated = true;
            self.deadline = Some((now + EXIT_CODE_GRACE, Ending::Plain));
        } else if !self.awaits_early_output(now) {
            self.end(Ending::Plain);
        }
    }

    /// Holds an end back that came before what the adapter kept until it had answered the start.
    pub(super) fn awaits_early_output(&mut self, now: Instant) -> bool {
        let end = self.started.map_or(now + START_ANSWER_GRACE, |at| at + EARLY_OUTPUT_GRACE);
        let awaits = self.adapter.keeps_early_output && now < end;
        if awaits {
            self.terminated = true;
            self.deadline = Some((end, Ending::Plain));
        }
        awaits
    }

    /// An `exited` that comes says it better; some never send one.
    pub(super) fn on_terminal_ended(&mut self, exit_code: Option<i64>) {
        self.exit_code = self.exit_code.or(exit_code);
        self.runs_in_terminal = false;
        if self.terminated {
            self.end(Ending::Plain);
        }
    }

    /// Whether this adapter, which loses ends, has just told of output that its end may follow.
    pub(super) fn end_may_be_lost(&self, category: Category) -> bool {
        self.adapter.end_question.is_some() && category != Category::Console && self.phase == Phase::Running
    }

    /// Asks whether the program has ended, once after it fell silent.
    pub(super) fn ask_for_the_end(&mut self, now: Instant) {
        let Some(question) = self.adapter.end_question.as_ref() else { return };
        if self.silence.take_if(|at| *at <= now).is_some() && self.phase == Phase::Running {
            let arguments = json!({"expression": question.expression, "context": "repl"});
            self.send("evaluate", arguments, Purpose::Nothing);
            self.awaits_status = true;
        }
    }

    /// Whether this is the answer to that question. The program may have ended.
    pub(super) fn is_about_the_end(&mut self, text: &str) -> bool {
        let Some(question) = self.adapter.end_question.as_ref() else { return false };
        if !self.awaits_status || !text.starts_with(&question.answer) {
            return false;
        }
        self.awaits_status = false;
        let code = code_after(&question.sign, text);
        if code.is_some() && self.phase == Phase::Running {
            self.exit_code = self.exit_code.or(code);
            self.end(Ending::Plain);
        }
        true
    }

    pub(super) fn on_closed(&mut self, how: String) {
        let ending = match (self.phase, self.deadline.take()) {
            (_, Some((_, ending))) => ending,
            (Phase::Terminating, _) => Ending::Asked,
            (Phase::Starting | Phase::Configuring, _) => {
                Ending::NotStarted(format!("the debug adapter {how}"))
            }
            _ if self.exit_code.is_some() => Ending::Plain,
            _ => Ending::Lost(how),
        };
        self.end(ending);
    }

    pub(super) fn on_stop(&mut self, now: Instant) {
        if self.phase == Phase::Starting && self.last_seq == 0 {
            self.end(Ending::Asked);
        } else if self.phase != Phase::Terminating {
            self.phase = Phase::Terminating;
            self.captures.clear();
            self.deadline = Some((now + STOP_GRACE, Ending::Asked));
            let arguments = self.disconnect_arguments();
            self.send("disconnect", arguments, Purpose::Disconnect);
        }
    }

    /// A launched program ends with its session; one that was attached to lives on.
    fn disconnect_arguments(&self) -> Value {
        json!({"restart": false, "terminateDebuggee": self.kind == StartKind::Launch})
    }

    pub(super) fn end(&mut self, how: Ending) {
        let is_farewell_said =
            self.phase == Phase::Terminating || (self.terminated && self.adapter.exit_code_on_disconnect);
        let is_farewell_due = self.owns_adapter && !is_farewell_said && self.last_seq > 0;
        if is_farewell_due && !matches!(how, Ending::Lost(_)) {
            let arguments = self.disconnect_arguments();
            self.send("disconnect", arguments, Purpose::Nothing);
        }
        self.phase = Phase::Terminated;
        self.deadline = None;
        self.captures.clear();
        for purpose in std::mem::take(&mut self.pending).into_values() {
            if let Purpose::Ticket(ticket) | Purpose::Breakpoints { ticket: Some(ticket), .. } = purpose {
                let result = Err(OVER.to_owned());
                self.outputs.push_back(Output::Answer { ticket, result });
            }
        }
        let signal = self.ended_by();
        // Some tell a plain end of a program that a signal has ended.
        let exit_code = self.exit_code.filter(|code| signal.is_none() || *code != 0);
        self.outputs.push_back(Output::Ended(End { exit_code, signal, how }));
    }

    /// The signal that ended the program, surely or most likely.
    fn ended_by(&mut self) -> Option<String> {
        let last = self.signal.take();
        let Some(code) = self.exit_code else { return last };
        // No program has a code below 0.
        if let Some(name) = name_of_signal(-code) {
            self.exit_code = None;
            return Some(name.to_owned());
        }
        // One that the program handles does not end it.
        let is_other = self.adapter.tells_signals_as_codes && last.as_deref() != name_of_signal(code);
        if let Some(last) = last.filter(|_| !is_other) {
            return Some(last);
        }
        let name = match code {
            9 if self.adapter.tells_signals_as_codes => name_of_signal(code),
            // -1 to -3 are what programs say themselves.
            ..=252 if self.adapter.masks_signals => name_of_signal(256 - code).filter(|name| is_fatal(name)),
            _ => None,
        }?;
        Some(format!("{name}, or exited with code {code} itself"))
    }
}
