//! A window on a folder of its own, with the servers of `.cache/servers`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_agent_base::workspace::Workspace;
use baton_agent_code::CodeIndex;
use baton_agent_code::servers::{Places, Table};
use baton_agent_debug::{Debugger, DebuggerOptions};
use baton_agent_tools::caller::Caller;
use baton_agent_tools::window::Window;
use baton_agent_tools::{CATALOGUE, arguments, code};
use baton_proto::control::WindowKind;
use rustix::process::Signal;
use serde_json::Value;

/// Where `cargo xtask test` installs the servers.
pub(crate) fn servers() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(".cache/servers");
    assert!(folder.join("ty/bin/ty").exists(), "no ty in {}: run `cargo xtask test` once", folder.display());
    folder
}

pub(crate) struct Place {
    pub(crate) window: Window,
    pub(crate) root: PathBuf,
    _folder: Option<tempfile::TempDir>,
    /// The state folder's part.
    _changes: tempfile::TempDir,
}

impl Place {
    /// A window whose folder, `{ROOT}` in their texts, holds these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.replace("{ROOT}", root.to_str().unwrap())).unwrap();
        }
        Self { _folder: Some(folder), ..Self::on(&root) }
    }

    /// A window on a folder that is there.
    pub(crate) fn on(root: &Path) -> Self {
        let search_path = std::env::var_os("PATH");
        Self::with(root, Places { installed: Some(servers()), search_path, ..Places::default() })
    }

    pub(crate) fn with(root: &Path, mut places: Places) -> Self {
        let changes = tempfile::tempdir().unwrap();
        places.changes.get_or_insert(changes.path().to_owned());
        let workspace = Workspace::open(&[root.to_owned()]).unwrap();
        let debugger = Debugger::spawn(DebuggerOptions::default());
        let id = "w-test".parse().unwrap();
        let mut window = Window::new(id, "test".to_owned(), WindowKind::Headless, workspace, debugger);
        window.code = CodeIndex::new(places);
        Self { window, root: root.to_owned(), _folder: None, _changes: changes }
    }

    /// A window where that server goes before all others.
    pub(crate) fn of_server(server: &str, files: &[(&str, &str)]) -> Self {
        let place = Self::new(files);
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("servers.json");
        let table = Table::open(&Places::default());
        let spec = table.specs().iter().find(|spec| spec.name == server).unwrap();
        std::fs::write(&config, serde_json::to_string(&[spec]).unwrap()).unwrap();
        let search_path = std::env::var_os("PATH");
        let places = Places {
            installed: Some(servers()),
            config: Some(config),
            search_path,
            changes: None,
            ..Places::default()
        };
        // The table is read once.
        let with = Self::with(&place.root, places);
        with.window.code.table();
        Self { _folder: place._folder, ..with }
    }

    /// The processes of a server that run for the folder, with those that they started. pyright leaves
    /// the folder.
    pub(crate) fn server_pids(&self, server: &str) -> Vec<i32> {
        let leaves = server.ends_with("pyright");
        let is_here = |pid: &i32| {
            let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
            let is_pyright = |command: &str| {
                command.contains(server) && command.contains("based") == server.contains("based")
            };
            let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            cwd.is_ok_and(|cwd| cwd == self.root) || (leaves && is_child(*pid) && is_pyright(&command))
        };
        let mut pids: Vec<i32> = processes().filter(is_here).collect();
        // What it started does the work in some.
        while let Some(child) = processes().find(|pid| !pids.contains(pid) && pids.contains(&parent_of(*pid)))
        {
            pids.push(child);
        }
        pids
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.root.join(path), text).unwrap();
    }

    /// The structured answer; checked against the tool's own schema as far as the types go.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_of("one", tool, arguments).await
    }

    /// The same of a client by its name.
    pub(crate) async fn call_of(&self, client: &str, tool: &str, arguments: Value) -> Value {
        let definition = CATALOGUE.find(tool).unwrap();
        let arguments = arguments.as_object().cloned();
        let arguments = arguments::check(tool, definition.shape(), arguments).unwrap();
        let caller = Caller { id: Some(client.to_owned()), ..Caller::default() };
        let (object, _) = code::call(&self.window, tool, arguments, caller).await.into_object();
        let output = definition.whole().output_schema.unwrap();
        let known = &output["properties"];
        for name in object.keys() {
            let is_known = name == "candidates" || known.get(name).is_some();
            assert!(is_known, "{tool} does not document {name}");
        }
        Value::Object(object)
    }

    /// What a model is shown.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let arguments = arguments.as_object().cloned().unwrap();
        code::answer(&self.window, tool, arguments, "one").await.unwrap().1
    }

    /// The answer, which must be a success.
    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments).await;
        assert_eq!(answer["success"], true, "{answer:#}");
        answer
    }
}

fn is_child(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let parent = after_name.split_whitespace().nth(1).and_then(|parent| parent.parse::<u32>().ok());
    parent == Some(std::process::id())
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Fields of a `stat` file behind the name: state, parent, ...
fn stat(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let rest = text.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    rest.split(' ').map(str::to_owned).collect()
}

fn parent_of(pid: i32) -> i32 {
    stat(&format!("/proc/{pid}/stat")).get(1).and_then(|parent| parent.parse().ok()).unwrap_or_default()
}

pub(crate) fn signal(pids: &[i32], signal: Signal) {
    for pid in pids {
        // One that has ended meanwhile was nobody's server.
        let _ = rustix::process::kill_process(rustix::process::Pid::from_raw(*pid).unwrap(), signal);
    }
}

/// Stops these processes, and returns when they are.
pub(crate) async fn halt(pids: &[i32]) {
    let is_halted = |pid: &i32| {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        tasks
            .map(|task| stat(&task.path().join("stat").display().to_string()))
            // One that has ended stays until its parent, which is stopped, looks after it.
            .all(|stat| stat.first().is_none_or(|state| state == "T" || state == "Z"))
    };
    signal(pids, Signal::STOP);
    until("they are stopped", || pids.iter().all(is_halted)).await;
}

/// Waits until one of these stopped processes has been written to.
pub(crate) async fn until_asked(pids: &[i32]) {
    let has_mail = |pid: &i32| {
        let input = std::fs::File::open(format!("/proc/{pid}/fd/0"));
        input.is_ok_and(|input| rustix::io::ioctl_fionread(input).is_ok_and(|n_bytes| n_bytes > 0))
    };
    until("one is asked", || pids.iter().any(has_mail)).await;
}

/// Waits for what nobody tells.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
