//! What all parts of the agent share about its window.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use baton_link::find::find;
use baton_link::home::Home;
use baton_proto::control::{MAX_BREAKPOINTS, MAX_TALLIES, ProgramKind, Routing, Settings, Tally, WindowKind};
use baton_proto::edge::META_WINDOW;
use baton_proto::ids::{Term, WindowId};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::calls::Calls;
use crate::claims::Claims;
use crate::guests::Guests;
use crate::tasks::Tasks;
use baton_agent_base::census::{Census, Counts};
use baton_agent_base::fence::{Fence, Refusal};
use baton_agent_base::launch_config::LaunchFile;
use baton_agent_base::object::Object;
use baton_agent_base::tasks::Step;
use baton_agent_base::trees::{Trees, Whose};
use baton_agent_base::workspace::{Stand, Workspace};
use baton_agent_base::{paths, process};
use baton_agent_code::servers::Places;
use baton_agent_code::{CodeIndex, ServerLimits};
use baton_agent_debug::Debugger;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::SessionId;
use baton_agent_debug::types::control::Limits;
use baton_agent_debug::types::triggers::Trigger;

tokio::task_local! {
    /// Where the client of the call that runs stands. Every tool that takes a path needs it, and none does anything with
    /// it but to hand it on to the workspace.
    pub(crate) static CALLER_STAND: Option<Stand>;
}

/// Another window, for those who want what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub name: String,
    /// Where clients reach it whichever window is live.
    pub url: String,
    /// Whether the argument `window` reaches it from everywhere.
    pub is_routed: bool,
}

/// What was ended.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// What was meant.
    pub(crate) session: SessionId,
    /// The others of its compound.
    pub(crate) with_it: Vec<SessionId>,
}

/// The window of this agent.
#[derive(Debug)]
pub struct Window {
    /// Its id.
    pub id: WindowId,
    /// VS Code or headless.
    pub kind: WindowKind,
    /// Its debug engine.
    pub debugger: Debugger,
    /// Its code engine.
    pub code: CodeIndex,
    /// The calls that run.
    pub calls: Calls,
    /// Which debug session each client was last about.
    pub claims: Claims,
    /// Which clients have called.
    pub guests: Guests,
    pub(crate) tasks: Tasks,
    /// Sessions that end together.
    bound: Mutex<Vec<Vec<SessionId>>>,
    name: Mutex<String>,
    workspace: Mutex<Workspace>,
    auto_start: AtomicBool,
    fence: Mutex<Fence>,
    toolsets: Mutex<Vec<String>>,
    redacts: AtomicBool,
    /// Where the coordinator is found, which knows the other windows.
    home: OnceLock<Home>,
    /// What an editor has to launch besides the launch.json of each folder.
    editor_launch: Mutex<Arc<LaunchFile>>,
}

impl Window {
    /// A window that is not live yet and offers all toolsets.
    pub fn new(
        id: WindowId,
        name: String,
        kind: WindowKind,
        workspace: Workspace,
        debugger: Debugger,
    ) -> Self {
        let toolsets = Settings::default().toolsets;
        Self {
            name: Mutex::new(to_name(&name, id.as_str())),
            id,
            kind,
            tasks: Tasks::new(debugger.prefix()),
            bound: Mutex::default(),
            debugger,
            code: CodeIndex::new(Places::from_env()),
            calls: Calls::default(),
            claims: Claims::default(),
            guests: Guests::default(),
            workspace: Mutex::new(workspace),
            auto_start: AtomicBool::new(true),
            fence: Mutex::default(),
            toolsets: Mutex::new(toolsets),
            redacts: AtomicBool::new(false),
            home: OnceLock::new(),
            editor_launch: Mutex::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.name.lock().clone()
    }

    /// The window is called something else now.
    pub fn set_name(&self, name: &str) {
        *self.name.lock() = to_name(name, self.id.as_str());
    }

    /// Its folders; within a call as they lie to its client.
    pub fn workspace(&self) -> Workspace {
        let editor_launch = self.editor_launch.lock().clone();
        let workspace = self.workspace.lock().clone();
        let workspace = workspace.with_editor_launch(editor_launch);
        match CALLER_STAND.try_with(Clone::clone) {
            Ok(Some(stand)) => workspace.seen_from(&stand),
            Ok(None) | Err(_) => workspace,
        }
    }

    /// The user added or removed folders.
    pub fn set_workspace(&self, changed: Workspace) {
        *self.workspace.lock() = changed;
    }

    /// An editor has this to launch besides the launch.json of each folder.
    pub fn set_editor_launch(&self, launch: LaunchFile) {
        *self.editor_launch.lock() = Arc::new(launch);
    }

    /// Whether it may become live by itself.
    pub fn auto_start(&self) -> bool {
        self.auto_start.load(Ordering::Relaxed)
    }

    /// See [`Window::auto_start`].
    pub fn set_auto_start(&self, is_on: bool) {
        self.auto_start.store(is_on, Ordering::Relaxed);
    }

    /// Terms and fencing; a leaf lock.
    pub fn fence(&self) -> MutexGuard<'_, Fence> {
        self.fence.lock()
    }

    /// Whether a call of `term` may run now.
    pub fn admit(&self, term: Term) -> Result<(), Refusal> {
        self.fence().admit(Instant::now(), term)
    }

    /// The coordinator's settings, as far as they are about tools.
    pub fn take_settings(&self, settings: &Settings) {
        *self.toolsets.lock() = settings.toolsets.clone();
        self.redacts.store(settings.redact, Ordering::Relaxed);
        self.code.allow_protected(settings.allow_protected);
        self.code.limit(&code_limits(settings));
        self.code.set_programs(&settings.programs);
        self.debugger.limit(limits(settings));
        self.debugger.set_programs(&settings.programs);
    }

    /// Ends a session, and those that it is bound to.
    pub(crate) async fn stop(&self, session: Option<&SessionId>) -> Result<Stopped, DebugError> {
        let session = self.debugger.stop(session).await?;
        let mut with_it = Vec::new();
        for other in self.unbind(&session) {
            // One that has ended by itself is no problem.
            if self.debugger.stop(Some(&other)).await.is_ok() {
                with_it.push(other);
            }
        }
        Ok(Stopped { session, with_it })
    }

    /// When a client ends one of these, all end.
    pub(crate) fn bind(&self, sessions: Vec<SessionId>) {
        let running = self.debugger.sessions();
        let is_running = |session: &SessionId| running.iter().any(|known| known.id == *session);
        let mut bound = self.bound.lock();
        bound.retain(|together| together.iter().any(is_running));
        bound.push(sessions);
    }

    /// The others, which are bound no longer.
    fn unbind(&self, session: &SessionId) -> Vec<SessionId> {
        let mut bound = self.bound.lock();
        let Some(at) = bound.iter().position(|together| together.contains(session)) else {
            return Vec::new();
        };
        let mut together = bound.swap_remove(at);
        together.retain(|other| other != session);
        together
    }

    /// Runs these once the session has ended.
    pub(crate) fn run_after(&self, session: &SessionId, steps: Vec<Step>) {
        if !steps.is_empty() {
            self.tasks.after(session.clone(), self.debugger.watch_sessions(), steps);
        }
    }

    /// Ends what runs for clients: debug sessions with the tasks that follow them, language servers, tasks in the background.
    pub async fn end_programs(&self) {
        tokio::join!(self.debugger.stop_all(), self.code.stop_all());
        self.tasks.end().await;
    }

    /// What became of the adapters and servers that it ran.
    pub fn tallies(&self) -> Vec<Tally> {
        let adapters = tallies(ProgramKind::Adapter, self.debugger.census());
        let servers = tallies(ProgramKind::Server, self.code.census());
        adapters.chain(servers).take(MAX_TALLIES).collect()
    }

    /// Where its breakpoints stand, as people write it: the first ones, and how many more there are.
    pub fn breakpoints(&self) -> (Vec<String>, u32) {
        let (kept, workspace) = (self.debugger.watch_kept(), self.workspace());
        let folders: Vec<PathBuf> = workspace.folder_paths().into_iter().map(PathBuf::from).collect();
        let kept = kept.borrow();
        let lines =
            kept.lines.iter().map(|set| format!("{}:{}", paths::relative(&set.path, &folders), set.line));
        let triggers = kept.triggers.iter().map(|set| match &set.trigger {
            Trigger::Function { name } => format!("{name}()"),
            Trigger::Exception { filter } => filter.clone(),
            Trigger::Instruction { reference, .. } => reference.clone(),
            Trigger::Data { data_id, .. } => data_id.clone(),
        });
        let first: Vec<String> =
            lines.chain(triggers).filter_map(|text| to_line(&text)).take(MAX_BREAKPOINTS).collect();
        let more = kept.len() - first.len();
        (first, u32::try_from(more).unwrap_or(u32::MAX))
    }

    /// Whether values that look like secrets are hidden.
    pub fn redacts(&self) -> bool {
        self.redacts.load(Ordering::Relaxed)
    }

    /// Whether `tools/list` shows that toolset.
    pub fn offers(&self, toolset: &str) -> bool {
        let toolsets = self.toolsets.lock();
        toolsets.iter().any(|offered| offered == toolset)
    }

    /// The window is one of several.
    pub fn set_home(&self, home: &Home) {
        let _ = self.home.set(home.clone());
    }

    /// Another window whose folders hold that path more closely than this one's do. A coordinator that is not
    /// responding names none.
    pub async fn owner_of(&self, path: &Path) -> Option<Owner> {
        tokio::time::timeout(ASK_TIMEOUT, self.ask_owner(path)).await.ok()?
    }

    async fn ask_owner(&self, path: &Path) -> Option<Owner> {
        let mut connection = find(self.home.get()?).await.ok()?;
        let status = connection.status().await.ok()?;
        let others = status.windows.into_iter().filter(|other| other.id != self.id);
        let holding = others.filter_map(|other| Some((held(path, &other.folders)?, other)));
        let (closeness, owner) = holding.max_by_key(|(closeness, _)| *closeness)?;
        if held(path, &self.workspace().folder_paths()).is_some_and(|own| own >= closeness) {
            return None;
        }
        let settings = connection.settings().await.ok();
        let is_routed = settings.is_some_and(|settings| settings.routing == Routing::Any);
        Some(Owner { name: owner.name, url: format!("{}/windows/{}", status.url, owner.id), is_routed })
    }

    /// `_meta` of every result.
    pub fn meta(&self) -> Object {
        let term = self.fence().held();
        let mut meta = Object::new();
        let window =
            json!({"id": self.id, "name": self.name(), "term": term.map_or(Value::Null, |term| json!(term))});
        meta.insert(META_WINDOW.to_owned(), window);
        meta
    }
}

/// What became of the programs of one kind, as the coordinator is told.
fn tallies(kind: ProgramKind, census: &Census) -> impl Iterator<Item = Tally> {
    let mut all: BTreeMap<String, Counts> = BTreeMap::new();
    for (name, of_name) in census.counts() {
        // The user's own tables may have any.
        let name = if Tally::is_name(&name) { name } else { "other".to_owned() };
        let counts = all.entry(name).or_default();
        counts.started += of_name.started;
        counts.died += of_name.died;
        counts.running += of_name.running;
    }
    let tally = move |(name, Counts { started, died, running })| Tally { kind, name, started, died, running };
    all.into_iter().map(tally)
}

/// Text of others, as it can stand in a line of a page and as a coordinator takes it; `None` when nothing is left.
fn to_line(text: &str) -> Option<String> {
    const MAX_CHARS: usize = 60;
    let plain: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let plain = plain.trim();
    // The end of a path says more than its beginning.
    let n_left_out = plain.chars().count().saturating_sub(MAX_CHARS);
    let end: String = plain.chars().skip(n_left_out).collect();
    let line = if n_left_out > 0 { format!("...{end}") } else { end };
    Some(line).filter(|line| !line.is_empty())
}

/// What debug sessions may take, as the user set it.
fn limits(settings: &Settings) -> Limits {
    let set = |number: u64| Some(number).filter(|number| *number > 0);
    let most_of_machine = || process::memory_of_machine().map(|bytes| bytes / 4 * 3);
    Limits {
        idle: set(settings.session_idle_s).map(Duration::from_secs),
        memory: set(settings.session_memory_mb)
            .map(|mb| mb.saturating_mul(1024 * 1024))
            .or_else(most_of_machine),
        processes: set(settings.session_processes),
        answer: set(settings.adapter_timeout_s).map(Duration::from_secs),
        expression: set(settings.expression_timeout_s).map(Duration::from_secs),
    }
}

/// What language servers may take, as the user set it.
fn code_limits(settings: &Settings) -> ServerLimits {
    ServerLimits {
        memory_mb: settings.server_memory_mb,
        start: Duration::from_secs(settings.server_timeout_s),
        idle: Duration::from_secs(settings.server_idle_s),
    }
}

/// How closely these folders hold a path of their own trees.
fn held(path: &Path, folders: &[String]) -> Option<usize> {
    let is_own = matches!(Trees::new(folders.iter().map(PathBuf::from)).whose(path), Whose::Own(_));
    paths::closeness(path, folders.iter().map(Path::new)).filter(|_| is_own)
}

/// What every coordinator takes for a name: bounded, on one line, and never empty.
pub fn to_name(text: &str, id: &str) -> String {
    let text: String = text.chars().filter(|character| !character.is_control()).collect();
    let text = text[..text.floor_char_boundary(MAX_NAME_LEN)].trim();
    if text.is_empty() { id.to_owned() } else { text.to_owned() }
}

/// How long the coordinator may take to tell the windows; afterwards a file counts as no other one's.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest name of a window or a debug session, in bytes.
const MAX_NAME_LEN: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_bounded_line() {
        let id = "w";
        assert_eq!(to_name("shop (Workspace)", id), "shop (Workspace)");
        assert_eq!(to_name(" a\nb\u{7f} ", id), "ab");
        assert_eq!(to_name("\t", id), "w");
        assert_eq!(to_name(&"ä".repeat(200), id).len(), MAX_NAME_LEN);
    }

    /// A coordinator refuses a heartbeat with any other, and the window with it.
    #[test]
    fn where_a_breakpoint_stands_is_one_bounded_line_or_nothing() {
        let line = |text: &str| to_line(text);
        assert_eq!(line("src/main.py:12").as_deref(), Some("src/main.py:12"));
        assert_eq!(line(" a\nb\u{7f}"), Some("a b".to_owned()));
        assert_eq!([line(""), line(" \n"), line("\0")], [None, None, None]);
        let long = line(&"\u{1f600}".repeat(5_000)).unwrap();
        assert!(long.starts_with("...") && long.len() <= 256, "{long}");
    }
}
