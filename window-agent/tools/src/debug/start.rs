//! Actions that begin and end sessions, and list them.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::arguments::given;
use super::{Call, Reply, details, fault, text};
use crate::programs::{self, BETWEEN_PARTS, Configured, Parts};
use crate::window::Stopped;
use crate::words;
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::launch_config::inputs::Answers;
use baton_agent_base::object::Object;
use baton_agent_base::wire::{bodies, read};
use baton_agent_debug::Wait;
use baton_agent_debug::adapters::wish::{Attach, Launch, Wish};
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::Stdin;
use baton_agent_debug::types::{Phase, SessionId, Start, Waited};

/// A session that no action is about for so long is ended.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// What to do about a task that fails.
const SKIP_TASKS: &str =
    "Fix what it says, or launch with `arguments` {\"preLaunchTask\": null} to debug what is there.";

bodies! { pub(crate),
    /// What a start lacks, as its fault tells it.
    Needed {
        inputs: Object,
        #[serde(rename = "needs_process")]
        needs_process: bool,
    }
}

/// What this tool can do about a start that came to nothing.
fn with_advice(fault: Fault) -> Fault {
    match fault.kind {
        Kind::TaskFailed => fault.hint(SKIP_TASKS),
        Kind::NeedsInput => {
            let Needed { inputs, needs_process } = read(&Value::Object(fault.details.clone()));
            let inputs = Some(inputs).filter(|inputs| !inputs.is_empty());
            let inputs = inputs.map(|inputs| format!("`inputs`, for example {}", json!(inputs)));
            let pid = needs_process.then(|| "`pid`".to_owned());
            let passed: Vec<String> = [inputs, pid].into_iter().flatten().collect();
            fault.hint(format!("Launch again with {}.", passed.join(", and ")))
        }
        _ => fault,
    }
}

fn for_one(compound: &str, n_parts: usize) -> Fault {
    let why = format!("`stdin` is for one program, and the compound {compound:?} starts {n_parts}.");
    Fault::new(Kind::InvalidArguments, why).hint("Launch the part that reads by its own name.")
}

impl Call<'_> {
    pub(super) async fn launch(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        if let Some(name) = given(&arguments.configuration) {
            return self.launch_named(&name).await;
        }
        let cwd = match given(&arguments.cwd) {
            Some(cwd) => Some(programs::folder(self.window, &cwd).await?),
            None => None,
        };
        let module = given(&arguments.module);
        let program = match given(&arguments.program) {
            Some(_) if module.is_some() => {
                return Err(Fault::new(Kind::InvalidArguments, "launch takes program or module, not both."));
            }
            Some(program) => programs::program(self.window, &program, cwd.as_deref()).await?,
            None => PathBuf::new(),
        };
        let stop_on_entry = match arguments.stop_on_entry {
            Some(stop_on_entry) => stop_on_entry,
            None => !self.has_breakpoints().await,
        };
        let wish = Wish::Launch(Launch {
            adapter: given(&arguments.adapter),
            program,
            module,
            args: arguments.args.clone().unwrap_or_default(),
            cwd,
            env: arguments.env.clone().unwrap_or_default(),
            stop_on_entry,
            terminal: arguments.stdin.is_some(),
        });
        self.begin_wish(wish, arguments.first_wait(stop_on_entry)).await
    }

    /// Starts a configuration of launch.json, or all parts of a compound, one after the other.
    async fn launch_named(&self, name: &str) -> Result<Reply, Fault> {
        let mut added = programs::added(self.window, self.arguments.arguments.as_ref()).await?;
        let is_none = |task: &Value| task.is_null() || task == "";
        let has_tasks = !added.get("preLaunchTask").is_some_and(is_none);
        // An editor is told so in the configuration.
        if !has_tasks && !self.window.debugger.has_editor() {
            added.remove("preLaunchTask");
        }
        let file = given(&self.arguments.file);
        let inputs = self.arguments.inputs.clone().unwrap_or_default();
        let answers = Answers { inputs, pid: self.arguments.pid };
        let tasks = || has_tasks.then(|| self.wait());
        let parts = Parts::of(self.window, name, file.as_deref(), tasks()).await.map_err(with_advice)?;
        let Parts { names, mut notes, stop_together } = parts;
        if names.len() > 1 && self.arguments.stdin.is_some() {
            return Err(for_one(name, names.len()));
        }
        let mut begun: Vec<Reply> = Vec::new();
        for (idx, part) in names.iter().enumerate() {
            let is_last = idx + 1 == names.len();
            let first = if is_last { self.arguments.first_wait(false) } else { BETWEEN_PARTS };
            let started = async {
                let configured =
                    programs::configured(self.window, part, file.as_deref(), tasks(), &answers).await;
                let Configured { mut start, notes: more, after } = configured.map_err(with_advice)?;
                // What an editor starts by its name alone is as it is written.
                let is_compound = start.configuration.contains_key("configurations");
                start.left_to_editor &= added.is_empty() || is_compound;
                start.configuration.extend(added.clone());
                notes.extend(more);
                let reply = self.begin(start, first).await?;
                if let Some(session) = &reply.session {
                    self.window.run_after(session, after);
                }
                Ok(reply)
            };
            match started.await {
                Ok(reply) => begun.push(reply),
                Err(fault) => {
                    let begun = begun.into_iter().filter_map(|reply| reply.session).collect();
                    return Err(programs::part_failed(self.window, part, begun, fault).await);
                }
            }
        }
        if stop_together {
            self.window.bind(begun.iter().filter_map(|reply| reply.session.clone()).collect());
        }
        let texts: Vec<&str> = begun.iter().map(|reply| reply.text.as_str()).collect();
        let text = texts.into_iter().chain(notes.iter().map(String::as_str)).collect::<Vec<_>>().join("\n");
        let last = begun.pop().unwrap_or_else(|| Reply::new(String::new(), json!({})));
        Ok(Reply { text, ..last })
    }

    /// Whether anything was set that will stop a program.
    async fn has_breakpoints(&self) -> bool {
        let lines = programs::breakpoints_of(self.window, &self.caller).await;
        lines.iter().any(|breakpoint| breakpoint.log_message.is_none())
            || !programs::triggers_of(self.window, &self.caller).await.is_empty()
    }

    pub(super) async fn attach(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        let cwd = match given(&arguments.cwd) {
            Some(cwd) => Some(programs::folder(self.window, &cwd).await?),
            None => None,
        };
        let wish = Wish::Attach(Attach {
            adapter: given(&arguments.adapter),
            pid: arguments.pid,
            host: given(&arguments.host),
            port: arguments.port,
            cwd,
        });
        self.begin_wish(wish, arguments.first_wait(false)).await
    }

    async fn begin_wish(&self, wish: Wish, first: Duration) -> Result<Reply, Fault> {
        let start = self.window.debugger.configure(&wish).await;
        let mut start = start.map_err(|error| self.fault(error))?;
        let added = programs::added(self.window, self.arguments.arguments.as_ref()).await?;
        start.configuration.extend(added);
        self.begin(start, first).await
    }

    async fn begin(&self, start: Start, first: Duration) -> Result<Reply, Fault> {
        let debugger = &self.window.debugger;
        let stdin = self.arguments.stdin.clone().map(|text| Stdin { text, is_last: true });
        let start = Start { idle_limit: Some(IDLE), owner: self.caller.id.clone(), stdin, ..start };
        let first = first.min(self.arguments.timeout());
        let wait = Wait { timeout: first, ..self.wait() };
        let mut waited = debugger.start(start, wait).await.map_err(|error| self.fault(error))?;
        // A program that runs is an answer; what has not settled yet is none, as long as there is time.
        if let Waited::TimedOut { session, .. } = &waited
            && self.is_unsettled(session).await
        {
            let rest = self.arguments.timeout().saturating_sub(first);
            let wait = Wait { timeout: rest, ..self.wait() };
            let session = session.clone();
            waited = debugger.wait_stop(Some(&session), wait).await.map_err(|error| self.fault(error))?;
            if matches!(waited, Waited::TimedOut { .. }) && self.is_starting(&session).await {
                // A client could do nothing with it.
                let _ = debugger.stop(Some(&session)).await;
                return Err(fault::never_initialized(self.arguments.timeout()));
            }
        }
        let id = waited.session().clone();
        // The end of a program tells this of all that were not hit.
        let is_over = matches!(waited, Waited::Completed(_));
        let mut reply = self.about_wait(waited).await?;
        if !is_over {
            let lines = programs::breakpoints_of(self.window, &self.caller).await;
            let refused = words::refused(&lines, &self.speaker.view);
            reply.text.extend(refused.map(|refused| format!("\n{refused}")));
        }
        let status = debugger.status(Some(&id)).await;
        let adapter = status.map(|status| status.adapter).unwrap_or_default();
        reply.text = format!("Session {id} ({adapter}). {}", reply.text);
        reply.details.insert("adapter".to_owned(), adapter.into());
        Ok(reply)
    }

    /// Whether it is not known yet where a session will stand: its adapter still starts or attaches, or the
    /// surroundings of a stop are being fetched.
    async fn is_unsettled(&self, session: &SessionId) -> bool {
        let status = self.window.debugger.status(Some(session)).await;
        status.is_ok_and(|status| match status.phase {
            Phase::Starting | Phase::Configuring | Phase::Stopped => true,
            Phase::Running => status.is_attached && !status.is_started,
            Phase::Terminating | Phase::Terminated => false,
        })
    }

    /// Whether the adapter of a session has not come to the program yet.
    async fn is_starting(&self, session: &SessionId) -> bool {
        let status = self.window.debugger.status(Some(session)).await;
        status.is_ok_and(|status| matches!(status.phase, Phase::Starting | Phase::Configuring))
    }

    pub(super) async fn terminate(&self) -> Result<Reply, Fault> {
        let debugger = &self.window.debugger;
        let session = self.session();
        let status = match debugger.status(session.as_ref()).await {
            Ok(status) if status.phase != Phase::Terminated => status,
            Ok(_) | Err(DebugError::NoSession) => {
                return Ok(Reply::new("No debug session to terminate.", json!({})));
            }
            Err(error) => return Err(self.fault(error)),
        };
        // Errors of the adapter do not matter any more: the engine ends the session in any case.
        let stopped = self.window.stop(Some(&status.id)).await;
        let status = debugger.status(Some(&status.id)).await.unwrap_or(status);
        let note = match stopped {
            Ok(Stopped { with_it, .. }) if with_it.is_empty() => String::new(),
            Ok(Stopped { with_it, .. }) => {
                let others: Vec<&str> = with_it.iter().map(|session| session.0.as_str()).collect();
                format!(" with all of its compound ({})", others.join(", "))
            }
            Err(error) => format!(" ({error})"),
        };
        let program = status.pid.map_or("the program".to_owned(), |pid| format!("process {pid}"));
        let what = if status.is_attached {
            format!("Detached from {program}; it keeps running")
        } else {
            "Terminated".to_owned()
        };
        let told = format!("{what}{note}. {}", self.speaker.session(&status));
        Ok(Reply::new(told, json!({})).with_snapshot(&self.shown(status)))
    }

    pub(super) async fn sessions(&self) -> Result<Reply, Fault> {
        let (all, n_more) = text::listed(self.window.debugger.statuses().await);
        let lines: Vec<String> = all.iter().map(|status| self.speaker.session(status)).collect();
        let entries: Vec<Value> =
            all.into_iter().map(|status| Value::Object(details::summary(&self.shown(status)))).collect();
        let mut told = text::list("Sessions", &lines, "No debug sessions.");
        if n_more > 0 {
            told.push_str(&format!("\n{n_more} more ended."));
        }
        Ok(Reply::new(told, json!({"sessions": entries})))
    }
}
