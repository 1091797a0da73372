//! CORE: from the first message to the running program, and breakpoints of all kinds.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use super::{Output, Phase, Purpose, Session, Ticket};
use crate::breakpoints::triggers::{self, Able, WantedOfKind};
use crate::breakpoints::{Binding, Wanted};
use crate::dap::Response;
use crate::dap::body::{self, NewBreakpoint, read};
use crate::types::triggers::TriggerKind;

/// Of a breakpoint that waits.
const NOT_LOADED: &str = "no code of this place is loaded yet";
/// Of a breakpoint that the adapter found no place for.
const NO_CODE: &str = "the debugger found no code at this place";

impl Session {
    pub(super) fn on_connected(&mut self) {
        let arguments = json!({
            "clientID": "baton",
            "clientName": "Baton",
            "adapterID": self.adapter.types[0],
            "locale": "en-US",
            "linesStartAt1": true,
            "columnsStartAt1": true,
            "pathFormat": "path",
            "supportsVariableType": true,
            "supportsVariablePaging": true,
            "supportsRunInTerminalRequest": true,
            "supportsArgsCanBeInterpretedByShell": false,
            "supportsStartDebuggingRequest": true,
            "supportsMemoryReferences": true,
        });
        self.send("initialize", arguments, Purpose::Initialize);
    }

    pub(super) fn on_started(&mut self, now: Instant) {
        self.started = Some(now);
        if self.terminated {
            self.awaits_early_output(now);
        }
        if let Some(thread_id) = self.pause_wanted.take() {
            self.on_pause(now, thread_id);
        }
        // Without debugging some adapters skip the configuration altogether.
        if self.no_debug && !self.initialized && self.phase == Phase::Starting {
            self.phase = Phase::Running;
        }
    }

    pub(super) fn on_initialized(&mut self) {
        // js-debug sends it twice.
        if self.initialized {
            return;
        }
        self.initialized = true;
        self.phase = Phase::Configuring;
        self.n_configuring = 1;
        for path in self.wanted.keys().cloned().collect::<Vec<_>>() {
            self.n_configuring += 1;
            self.send_breakpoints(&path, None);
        }
        if let Some(extra) = &self.adapter.extra_request {
            self.send(&extra.command, extra.arguments.clone(), Purpose::Nothing);
        }
        for kind in TriggerKind::ALL {
            // The adapters wait for their exceptions, even when there are none.
            let has_own = self.entry_function.is_some() || !self.crash_functions.is_empty();
            let has_own = kind == TriggerKind::Function && has_own;
            if kind == TriggerKind::Exception || has_own || self.triggers.contains_key(&kind) {
                self.n_configuring += usize::from(kind != TriggerKind::Exception);
                self.send_triggers(kind, Purpose::of_breakpoints(None));
            }
        }
    }

    /// One more answer of the configuration came.
    fn drive_configuration(&mut self) {
        self.n_configuring = self.n_configuring.saturating_sub(1);
        if self.n_configuring > 0 || self.phase != Phase::Configuring {
            return;
        }
        self.phase = Phase::Running;
        if self.can("supportsConfigurationDoneRequest") {
            self.send("configurationDone", json!({}), Purpose::ConfigurationDone);
        }
    }

    pub(super) fn on_breakpoints(&mut self, ticket: Ticket, path: PathBuf, wanted: Vec<Wanted>) {
        let is_served = self.adapter.serves_source(&path) && !self.no_debug;
        if is_served {
            self.wanted.insert(path.clone(), wanted);
        }
        if !is_served || !self.initialized {
            // Told with the configuration, or never.
            self.outputs.push_back(Output::Answer { ticket, result: Ok(Value::Null) });
            return;
        }
        self.send_breakpoints(&path, Some(ticket));
    }

    fn send_breakpoints(&mut self, path: &PathBuf, ticket: Option<Ticket>) {
        let (mut ids, mut sources) = (Vec::new(), Vec::<NewBreakpoint>::new());
        for wanted in self.wanted.get(path).into_iter().flatten() {
            match wanted.to_source_breakpoint(&self.capabilities, self.adapter.hits) {
                Ok(mut source) => {
                    if let Some(end) = &self.adapter.log_end
                        && let Some(message) = &mut source.log_message
                    {
                        message.push_str(end);
                    }
                    ids.push(wanted.id);
                    sources.push(source);
                }
                Err(message) => {
                    let binding = Binding::refused(message);
                    self.outputs.push_back(Output::Bound { id: wanted.id, binding });
                }
            }
        }
        let lines: Vec<u32> = sources.iter().filter_map(|source| source.line).collect();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let arguments = json!({
            "source": {"path": path, "name": name},
            "breakpoints": sources,
            "lines": lines,
            "sourceModified": false,
        });
        self.send("setBreakpoints", arguments, Purpose::Breakpoints { ids, ticket });
    }

    pub(super) fn on_breakpoints_answer(&mut self, response: &Response, ids: &[i64], ticket: Option<Ticket>) {
        if response.success {
            // The list can be shorter than ours: an adapter may leave out what did not change.
            let Some(bound) = read::<body::Breakpoints>(&response.body).breakpoints else {
                // Of exceptions nothing is told.
                for &id in ids {
                    let binding = Binding { verified: true, ..Binding::default() };
                    self.outputs.push_back(Output::Bound { id, binding });
                }
                return self.on_taken(ticket);
            };
            for (&id, body) in ids.iter().zip(bound) {
                if let Some(theirs) = body.id {
                    self.ours.insert(theirs, id);
                }
                self.outputs.push_back(Output::Bound { id, binding: to_binding(body) });
            }
        } else {
            for &id in ids {
                let binding = Binding::refused(response.error_text());
                self.outputs.push_back(Output::Bound { id, binding });
            }
        }
        self.on_taken(ticket);
    }

    /// The adapter has taken the breakpoints of a file, or the triggers of a kind.
    fn on_taken(&mut self, ticket: Option<Ticket>) {
        match ticket {
            Some(ticket) => self.outputs.push_back(Output::Answer { ticket, result: Ok(Value::Null) }),
            None => self.drive_configuration(),
        }
    }

    pub(super) fn on_triggers(&mut self, ticket: Ticket, wanted: WantedOfKind) {
        let WantedOfKind { kind, wanted } = wanted;
        match wanted {
            Some(wanted) => self.triggers.insert(kind, wanted),
            None => self.triggers.remove(&kind),
        };
        if self.no_debug || !self.initialized {
            // Told with the configuration, or never.
            self.outputs.push_back(Output::Answer { ticket, result: Ok(Value::Null) });
            return;
        }
        self.send_triggers(kind, Purpose::of_breakpoints(Some(ticket)));
    }

    pub(super) fn send_triggers(&mut self, kind: TriggerKind, mut purpose: Purpose) {
        let mut wanted = if self.no_debug { Some(Vec::new()) } else { self.triggers.get(&kind).cloned() };
        // Who chose the exceptions to stop at did not choose panics.
        if kind == TriggerKind::Function && !self.triggers.contains_key(&TriggerKind::Exception) {
            wanted.get_or_insert_default().extend(self.crash_functions.iter().cloned());
        }
        let able = Able {
            capabilities: &self.capabilities,
            hits: self.adapter.hits,
            entry: self.entry_function.as_deref(),
            exceptions: &self.adapter.exceptions,
        };
        let told = triggers::tell(kind, wanted.as_deref(), able);
        for (id, message) in told.refused {
            let binding = Binding::refused(message);
            self.outputs.push_back(Output::Bound { id, binding });
        }
        if let Purpose::Breakpoints { ids, .. } = &mut purpose {
            *ids = told.ids;
        }
        match (told.arguments, purpose) {
            (Some(arguments), purpose) => self.send(triggers::command(kind), arguments, purpose),
            (None, Purpose::Breakpoints { ticket, .. }) => self.on_taken(ticket),
            (None, _) => {}
        }
    }

    pub(super) fn on_breakpoint_event(&mut self, body: &Value) {
        let event: body::BreakpointEvent = read(body);
        let id = event.breakpoint.id.and_then(|id| self.ours.get(&id));
        if let Some(&id) = id
            && event.reason.as_deref() != Some("removed")
        {
            let binding = to_binding(event.breakpoint);
            self.outputs.push_back(Output::Bound { id, binding });
        }
    }
}

fn to_binding(told: body::Breakpoint) -> Binding {
    /// What codelldb says of one that it calls verified.
    const NOWHERE: &str = "Resolved locations: 0";
    let message = told.message.as_deref();
    let is_verified = told.verified && message != Some(NOWHERE);
    Binding {
        verified: is_verified,
        message: match (is_verified, message, told.reason.as_deref()) {
            // A place to stop says enough.
            (true, Some(message), _) if message.starts_with("Resolved locations") => None,
            (false, Some("breakpoint.provisionalBreakpoint") | None, Some("pending") | None) => {
                Some(NOT_LOADED.to_owned())
            }
            (false, Some(NOWHERE | "Unbound breakpoint"), _) => Some(NO_CODE.to_owned()),
            (false, Some("breakpoint.provisionalBreakpoint") | None, _) => Some(NO_CODE.to_owned()),
            (_, message, _) => message.map(str::to_owned),
        },
        is_refused: !is_verified && message.is_some() && told.reason.as_deref() == Some("failed"),
        path: told.source.path,
        line: told.line,
    }
}
