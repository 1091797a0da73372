//! Programs as clients name them, started without a configuration.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::caller::Caller;
use crate::outside;
use crate::window::Window;
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::launch_config;
use baton_agent_base::launch_config::inputs::Answers;
use baton_agent_base::object::Object;
use baton_agent_base::paths::Given;
use baton_agent_base::tasks::Step;
use baton_agent_base::workspace::{Compound, Prepared};
use baton_agent_debug::Wait;
use baton_agent_debug::types::control::Status;
use baton_agent_debug::types::triggers::TriggerBreakpoint;
use baton_agent_debug::types::{Breakpoint, Phase, SessionId, Start};

/// Waits until a session that is being started runs, or did not come to it: before that nothing can be paused.
pub(super) async fn begun(window: &Window, session: Option<&SessionId>, timeout: Duration) {
    let Ok(status) = window.debugger.status(session).await else { return };
    let is_starting = |phase| matches!(phase, Phase::Starting | Phase::Configuring);
    if !is_starting(status.phase) {
        return;
    }
    let mut sessions = window.debugger.watch_sessions();
    let begun = sessions.wait_for(|all| all.iter().all(|one| one.id != status.id || !is_starting(one.phase)));
    let _ = tokio::time::timeout(timeout, begun).await;
}

/// That a file changed since this program was started or built: what the debugger knows are its old lines.
pub(super) async fn changed(window: &Window, path: &Path, session: &SessionId) -> Option<String> {
    changed_for(window, path, |status| status.id == *session).await
}

async fn changed_for(window: &Window, path: &Path, is_meant: impl Fn(&Status) -> bool) -> Option<String> {
    let modified = modified(path)?;
    let mut all = window.debugger.serving(path.to_owned()).await;
    all.retain(is_meant);
    let is_older = all.iter().any(|status| SystemTime::from(status.started_at) < modified);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if is_older {
        return Some(format!("{name} changed since the program started; lines are those of the old text"));
    }
    let mut programs = all.iter().filter_map(|status| status.program.as_deref()).map(Path::new);
    let outdated = programs.find(|program| was_built_before(program, modified))?;
    let program = outdated.file_name().unwrap_or_default().to_string_lossy();
    Some(format!(
        "{name} changed since {program} was built; lines may be those of the old text: build it again"
    ))
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

/// Whether it is a compiled program, and older.
fn was_built_before(program: &Path, time: SystemTime) -> bool {
    is_compiled(program) && modified(program).is_some_and(|built| built < time)
}

fn is_compiled(program: &Path) -> bool {
    const SIGNS: [&[u8]; 3] = [b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ"];
    let mut begin = [0; 4];
    let read = std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && SIGNS.iter().any(|sign| begin.starts_with(sign))
}

/// Breakpoints with a word about files that changed.
pub(super) async fn with_changes(window: &Window, mut all: Vec<Breakpoint>) -> Vec<Breakpoint> {
    for breakpoint in &mut all {
        // Where it is not bound, another client's program knows nothing of it.
        let knows = |status: &Status| breakpoint.verified || status.owner == breakpoint.owner;
        if let Some(note) = changed_for(window, &breakpoint.path, knows).await {
            let message = breakpoint.message.take();
            breakpoint.message = Some(message.map_or(note.clone(), |message| format!("{message}; {note}")));
        }
    }
    all
}

/// The file of a breakpoint that a client names: it may have been deleted since.
pub(super) async fn file_of_breakpoint(
    window: &Window,
    caller: &Caller,
    given: &str,
) -> Result<PathBuf, Fault> {
    let fault = match window.workspace().resolve_file(given).await {
        Ok(path) => return Ok(path),
        Err(fault) => fault,
    };
    let named = match window.workspace().parse(given) {
        Ok(Given::Absolute(path) | Given::Relative(path)) => path,
        Err(_) => return Err(fault),
    };
    let all = breakpoints_of(window, caller).await.into_iter().map(|breakpoint| breakpoint.path);
    let known: BTreeSet<PathBuf> = all.filter(|path| path.ends_with(&named)).collect();
    let mut known = known.into_iter();
    match (known.next(), known.next()) {
        (Some(path), None) => Ok(path),
        _ => Err(fault),
    }
}

/// The breakpoints on lines that stop this client's programs.
pub(super) async fn breakpoints_of(window: &Window, caller: &Caller) -> Vec<Breakpoint> {
    let mut all = window.debugger.breakpoints().await;
    all.retain(|known| caller.is_stopped_by(window, &known.owner));
    all
}

/// The same for all others.
pub(super) async fn triggers_of(window: &Window, caller: &Caller) -> Vec<TriggerBreakpoint> {
    let mut all = window.debugger.triggers().await;
    all.retain(|known| caller.is_stopped_by(window, &known.owner));
    all
}

/// The folder that `cwd` names: absolute, or relative to a folder of the window.
pub(super) async fn folder(window: &Window, cwd: &str) -> Result<PathBuf, Fault> {
    let workspace = window.workspace();
    let found = match workspace.parse(cwd)? {
        Given::Absolute(path) => Some(path),
        Given::Relative(path) => {
            let joined =
                |folder: &baton_agent_base::launch_config::variables::Folder| folder.path.join(&path);
            workspace.folders().iter().map(joined).find(|path| path.is_dir())
        }
    };
    let found = found.filter(|path| path.is_dir()).ok_or_else(|| {
        let shown: String = cwd.chars().take(200).collect();
        Fault::new(Kind::FolderNotFound, format!("There is no folder {shown:?} in this window."))
            .hint("Give an absolute path, or one relative to the window's folder.")
    })?;
    is_own(window, &found).await?;
    Ok(found)
}

/// Refuses what another window has, also by a link.
async fn is_own(window: &Window, path: &Path) -> Result<(), Fault> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    outside::own(window, real).await.map(drop)
}

/// What a client adds to a configuration: a program and a folder are no other window's.
pub(super) async fn added(window: &Window, fields: Option<&Object>) -> Result<Object, Fault> {
    let fields = fields.cloned().unwrap_or_default();
    for path in ["program", "cwd"].iter().filter_map(|name| fields.get(*name)?.as_str()) {
        if Path::new(path).is_absolute() {
            is_own(window, Path::new(path)).await?;
        }
    }
    Ok(fields)
}

/// What a configuration of launch.json starts.
pub(super) struct Configured {
    pub(super) start: Start,
    /// What is worth knowing about it.
    pub(super) notes: Vec<String>,
    /// What is run once its session has ended.
    pub(super) after: Vec<Step>,
}

/// What a configuration of launch.json starts. `file` stands for the file that is open in an editor.
/// Its tasks are run within `tasks`, or not at all; an editor runs them itself. Nobody is asked for what is not among
/// `answers`.
pub(super) async fn configured(
    window: &Window,
    name: &str,
    file: Option<&str>,
    tasks: Option<Wait>,
    answers: &Answers,
) -> Result<Configured, Fault> {
    let file = match file {
        Some(file) => Some(outside::file(window, file).await?),
        None => None,
    };
    // An editor completes a configuration itself, but it has no say in which file an AI client means.
    let mut left_to_editor = window.debugger.has_editor() && file.is_none();
    let (folder, configuration, notes, after) = if left_to_editor {
        let written = window.workspace().written_configuration(name, answers).await?;
        left_to_editor = !written.is_changed;
        (Some(written.folder), written.configuration, Vec::new(), Vec::new())
    } else {
        let mut prepared = window.workspace().configuration(name, file, answers).await?;
        run_tasks(window, &mut prepared, tasks).await?;
        (None, prepared.configuration, prepared.notes, prepared.after)
    };
    let name = launch_config::name_of(&configuration).unwrap_or(name).to_owned();
    let start = Start { configuration, name, folder, left_to_editor, ..Start::default() };
    Ok(Configured { start, notes, after })
}

/// The compound of launch.json of that name; `None` when there is none. Its task has been run; an editor starts compounds
/// itself.
async fn compound(
    window: &Window,
    name: &str,
    file: Option<&str>,
    tasks: Option<Wait>,
) -> Result<Option<Compound>, Fault> {
    if window.debugger.has_editor() {
        return Ok(None);
    }
    let file = match file {
        Some(file) => Some(outside::file(window, file).await?),
        None => None,
    };
    let Some(mut compound) = window.workspace().compound(name, file).await? else { return Ok(None) };
    run_tasks(window, &mut compound.before, tasks).await?;
    Ok(Some(compound))
}

/// How long it is waited for the first stop of a part of a compound before the next one is started.
pub(super) const BETWEEN_PARTS: Duration = Duration::from_secs(1);

/// What one name in launch.json starts: a configuration, or all parts of a compound, one after the other.
pub(super) struct Parts {
    /// Names of configurations; at least one.
    pub(super) names: Vec<String>,
    /// What is worth knowing about them.
    pub(super) notes: Vec<String>,
    /// Whether all end when a client ends one.
    pub(super) stop_together: bool,
}

impl Parts {
    /// Of that name. The task of a compound has been run.
    pub(super) async fn of(
        window: &Window,
        name: &str,
        file: Option<&str>,
        tasks: Option<Wait>,
    ) -> Result<Self, Fault> {
        match compound(window, name, file, tasks).await? {
            Some(Compound { parts, .. }) if parts.is_empty() => {
                Err(Fault::new(Kind::Compound, format!("The compound {name:?} has no configurations.")))
            }
            Some(Compound { parts: names, before, stops_all: stop_together }) => {
                Ok(Self { names, notes: before.notes, stop_together })
            }
            None => Ok(Self { names: vec![name.to_owned()], notes: Vec::new(), stop_together: false }),
        }
    }
}

/// A part did not start: ends those that have, and says so.
pub(super) async fn part_failed(
    window: &Window,
    part: &str,
    begun: Vec<SessionId>,
    mut fault: Fault,
) -> Fault {
    for session in &begun {
        // One that has ended by itself is no problem.
        let _ = window.debugger.stop(Some(session)).await;
    }
    if !begun.is_empty() {
        fault.message = format!("{part:?} did not start, the others were ended. {}", fault.message);
    }
    fault
}

/// Runs what is to be run before, when there is `wait` for it.
async fn run_tasks(window: &Window, prepared: &mut Prepared, wait: Option<Wait>) -> Result<(), Fault> {
    let Some(wait) = wait else { return Ok(()) };
    match window.tasks.run(&prepared.steps, wait).await {
        Err(fault) if prepared.goes_on => prepared.notes.push(fault.message),
        ran => prepared.notes.extend(ran?),
    }
    Ok(())
}

/// The program that a client names: in `cwd`, else as any file of the window. A folder can be one (Go's packages).
pub(super) async fn program(window: &Window, given: &str, cwd: Option<&Path>) -> Result<PathBuf, Fault> {
    let bases = || {
        let folders =
            window.workspace().folders().iter().map(|folder| folder.path.clone()).collect::<Vec<_>>();
        cwd.map(Path::to_owned).into_iter().chain(folders)
    };
    match window.workspace().parse(given)? {
        Given::Relative(path) => {
            let in_cwd = cwd.map(|cwd| cwd.join(&path)).filter(|path| path.is_file());
            let package = || bases().map(|base| base.join(&path)).find(|path| path.is_dir());
            if let Some(found) = in_cwd.or_else(package) {
                return outside::own(window, std::fs::canonicalize(&found).unwrap_or(found)).await;
            }
        }
        Given::Absolute(path) if path.is_dir() => {
            is_own(window, &path).await?;
            return Ok(path);
        }
        Given::Absolute(_) => {}
    }
    let found = outside::file(window, given).await?;
    // A file is found without its extension too, but `words.bak` is not the program `words`.
    let is_whole = Path::new(given).extension().is_some() || found.extension().is_none();
    if !is_whole && is_compiled(&found) && window.workspace().resolve_exactly(given).await.is_err() {
        let name = found.file_name().unwrap_or_default().to_string_lossy();
        let fault = Fault::new(Kind::FileNotFound, format!("There is no file {given:?} in this window."));
        return Err(fault.hint(format!("{name} is merely called alike: give its whole name if you mean it.")));
    }
    Ok(found)
}
