//! CORE: how a session ends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{End, Ending, Output, Phase, Purpose, Session, StartKind};

/// How long `exited` may come after `terminated`.
const EXIT_CODE_GRACE: Duration = Duration::from_millis(150);
/// How long the end of a terminal may come after that of the program in it.
const TERMINAL_GRACE: Duration = Duration::from_millis(500);
/// How long an adapter may take to end the program when asked to.
const STOP_GRACE: Duration = Duration::from_millis(700);

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
        } else {
            self.end(Ending::Plain);
        }
    }

    /// An `exited` that comes says it better; some never send one.
    pub(super) fn on_terminal_ended(&mut self, exit_code: Option<i64>) {
        self.exit_code = self.exit_code.or(exit_code);
        self.runs_in_terminal = false;
        if self.terminated {
            self.end(Ending::Plain);
        }
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
                let result = Err("the session has ended".to_owned());
                self.outputs.push_back(Output::Answer { ticket, result });
            }
        }
        let signal = self.signal.take();
        // Some tell a plain end of a program that a signal has ended.
        let exit_code = self.exit_code.filter(|code| signal.is_none() || *code != 0);
        self.outputs.push_back(Output::Ended(End { exit_code, signal, how }));
    }
}
