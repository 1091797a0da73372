//! Which debug adapter serves a configuration, and how to reach it: a table, and the few differences as functions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use baton_proto::shim::EditorStart;
use serde_json::{Map, Value, json};

use crate::debug::DebuggerOptions;
use crate::debug::editor::Editor;
use crate::debug::error::DebugError;
use crate::debug::host::vscode::Target;
use crate::debug::types::Start;
use crate::process::Program;

/// A debug adapter.
#[derive(Debug)]
pub(crate) struct Adapter {
    /// Its name for people.
    pub(crate) name: &'static str,
    /// `type`s of configurations it serves; the first is sent as `adapterID`.
    pub(crate) types: &'static [&'static str],
    /// Extensions of the sources it debugs. Breakpoints in those of another adapter are kept from it.
    pub(crate) extensions: &'static [&'static str],
    /// How it wants hit conditions.
    pub(crate) hits: HitStyle,
    /// Whether an `exited` event comes; when not, nobody waits for one.
    pub(crate) tells_exit_code: bool,
    /// Evaluated once in a program that was attached to, to take a delay out of its answers.
    pub(crate) attach_tuning: Option<&'static str>,
    /// Printed before a start that fails without any other sign.
    pub(crate) failure_sign: Option<&'static str>,
    /// A request of its own, sent with the configuration.
    pub(crate) extra_request: Option<(&'static str, &'static str)>,
    /// Makes a plan out of a configuration.
    plan: fn(&Adapter, &Start, &DebuggerOptions) -> Result<Plan, DebugError>,
}

/// How an adapter wants hit conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HitStyle {
    /// `>5`, `==3`, `%2`: an operator and a number.
    Operators,
}

/// `launch` or `attach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartKind {
    Launch,
    Attach,
}

impl StartKind {
    /// The request's name.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Attach => "attach",
        }
    }
}

/// How to reach an adapter.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// Spawn it and speak over its pipes. The programs are tried in order; one that exits with
    /// [`EXIT_ADAPTER_MISSING`] passes the turn to the next.
    Stdio(Vec<Program>),
    /// Connect to it.
    Tcp { host: String, port: u16 },
    /// Let the editor do it.
    Editor(Editor, Target),
}

/// Exit code of a bootstrap that found no adapter where it looked.
pub(crate) const EXIT_ADAPTER_MISSING: i32 = 86;

/// Everything needed to begin a session.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) adapter: &'static Adapter,
    pub(crate) kind: StartKind,
    pub(crate) arguments: Value,
    pub(crate) reach: Reach,
    pub(crate) no_debug: bool,
    /// What to say when none of the programs had the adapter.
    pub(crate) install_hint: String,
}

/// All adapters.
pub(crate) static ADAPTERS: &[Adapter] = &[Adapter {
    name: "debugpy",
    types: &["debugpy", "python"],
    extensions: &["py", "pyw", "pyi"],
    hits: HitStyle::Operators,
    tells_exit_code: true,
    // The debuggee's end of pydevd's socket writes head and body apart; without TCP_NODELAY the body waits
    // for an acknowledgement that is delayed by 40 ms.
    attach_tuning: Some(PYDEVD_NODELAY),
    // An attach by process id goes on waiting for the program after this.
    failure_sign: Some("Code injection into PID"),
    // By default a condition that fails when it is evaluated counts as false, and nobody is told.
    extra_request: Some((
        "setDebuggerProperty",
        r#"{"skipSuspendOnBreakpointException": [], "skipPrintBreakpointException": []}"#,
    )),
    plan: plan_debugpy,
}];

/// See [`Adapter::attach_tuning`] of debugpy. IPPROTO_TCP is 6 and TCP_NODELAY 1 wherever there is Python.
const PYDEVD_NODELAY: &str = "__import__('pydevd').get_global_debugger().writer.sock.setsockopt(6, 1, 1)";

/// The file that runs `debugpy.adapter` without the 40 ms.
const QUICKACK: &str = include_str!("quickack.py");

/// What VS Code's debugger is to the engine: it finds the adapter itself.
static EDITOR: Adapter = Adapter {
    name: "VS Code",
    types: &["vscode"],
    extensions: &[],
    hits: HitStyle::Operators,
    tells_exit_code: false,
    attach_tuning: None,
    failure_sign: None,
    extra_request: None,
    plan: plan_editor,
};

/// Finds the adapter of a configuration and plans its session.
pub(crate) fn plan(start: &Start, options: &DebuggerOptions) -> Result<Plan, DebugError> {
    if options.editor.is_some() {
        return plan_editor(&EDITOR, start, options);
    }
    let kind = start.configuration.get("type").and_then(Value::as_str).unwrap_or_default();
    let Some(adapter) = ADAPTERS.iter().find(|adapter| adapter.types.contains(&kind)) else {
        let known: Vec<&str> = ADAPTERS.iter().flat_map(|adapter| adapter.types).copied().collect();
        return Err(DebugError::UnknownType { kind: kind.to_owned(), known: known.join(", ") });
    };
    (adapter.plan)(adapter, start, options)
}

/// The plan of a child session that a running one asked for.
pub(crate) fn plan_child(parent: &Plan, request: &str, configuration: Value) -> Option<Plan> {
    if let Reach::Editor(editor, _) = &parent.reach {
        let session = configuration["__session"].as_str()?.to_owned();
        let is_child = configuration["__child"] == true;
        let reach = Reach::Editor(editor.clone(), Target::Begun { session, is_child });
        return Some(Plan { arguments: configuration, reach, ..parent.clone() });
    }
    let host = configuration["connect"]["host"].as_str().unwrap_or("127.0.0.1").to_owned();
    let port = u16::try_from(configuration["connect"]["port"].as_u64()?).ok()?;
    let kind = if request == "launch" { StartKind::Launch } else { StartKind::Attach };
    Some(Plan { kind, arguments: configuration, reach: Reach::Tcp { host, port }, ..parent.clone() })
}

impl Adapter {
    /// Whether breakpoints in this file are its business.
    pub(crate) fn serves_source(&self, path: &Path) -> bool {
        let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else { return true };
        let claims = |adapter: &Adapter| adapter.extensions.contains(&extension);
        self.extensions.is_empty() || claims(self) || !ADAPTERS.iter().any(claims)
    }
}

fn request_kind(configuration: &Map<String, Value>) -> Result<StartKind, DebugError> {
    match configuration.get("request").and_then(Value::as_str) {
        Some("launch") => Ok(StartKind::Launch),
        Some("attach") => Ok(StartKind::Attach),
        other => Err(bad(format!(
            "`request` of the configuration is {}, it must be \"launch\" or \"attach\"",
            other.map_or("missing".to_owned(), |other| format!("\"{other}\""))
        ))),
    }
}

fn plan_editor(_: &Adapter, start: &Start, options: &DebuggerOptions) -> Result<Plan, DebugError> {
    let Some(editor) = options.editor.clone() else {
        return Err(bad("there is no editor to start it".to_owned()));
    };
    let is_attach = start.configuration.get("request").is_some_and(|request| request == "attach");
    let kind = if is_attach { StartKind::Attach } else { StartKind::Launch };
    let wish = EditorStart {
        start: uuid::Uuid::new_v4().to_string(),
        name: start.name.clone(),
        configuration: (!start.left_to_editor).then(|| start.configuration.clone()),
        folder: start.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
        no_debug: start.no_debug,
    };
    Ok(Plan {
        adapter: &EDITOR,
        kind,
        arguments: Value::Null,
        reach: Reach::Editor(editor, Target::Start(Box::new(wish))),
        no_debug: start.no_debug && kind == StartKind::Launch,
        install_hint: String::new(),
    })
}

fn plan_debugpy(adapter: &Adapter, start: &Start, options: &DebuggerOptions) -> Result<Plan, DebugError> {
    let kind = request_kind(&start.configuration)?;
    let mut arguments = start.configuration.clone();
    let reach = match kind {
        StartKind::Launch => {
            complete_launch(&mut arguments, options)?;
            Reach::Stdio(adapter_programs(&arguments, options)?)
        }
        StartKind::Attach => match attach_address(&arguments)? {
            // `debugpy --listen` is an adapter already; one that is spawned would listen itself, for ever.
            Some((host, port)) => {
                arguments.remove("host");
                arguments.remove("port");
                arguments.insert("connect".to_owned(), json!({"host": host, "port": port}));
                Reach::Tcp { host, port }
            }
            None if arguments.contains_key("processId") => {
                Reach::Stdio(adapter_programs(&arguments, options)?)
            }
            None => {
                return Err(bad("attach needs `connect` with `host` and `port`, or `processId`".to_owned()));
            }
        },
    };
    if start.no_debug {
        arguments.insert("noDebug".to_owned(), Value::Bool(true));
    }
    let python = match &reach {
        Reach::Stdio(programs) => programs.first().map(|program| program.path.display().to_string()),
        Reach::Tcp { .. } | Reach::Editor(..) => None,
    };
    Ok(Plan {
        adapter: ADAPTERS.iter().find(|known| known.name == adapter.name).unwrap_or(&ADAPTERS[0]),
        kind,
        arguments: Value::Object(arguments),
        reach,
        no_debug: start.no_debug && kind == StartKind::Launch,
        install_hint: format!(
            "Install it into the interpreter that runs the program: {} -m pip install debugpy",
            python.unwrap_or_else(|| "python3".to_owned())
        ),
    })
}

/// Fills in what VS Code's own extension would, and refuses what cannot work before anything is started.
fn complete_launch(arguments: &mut Map<String, Value>, options: &DebuggerOptions) -> Result<(), DebugError> {
    let folder = options.folders.first().map(|folder| folder.display().to_string());
    let set = |arguments: &mut Map<String, Value>, name: &str, value: Value| {
        if !arguments.contains_key(name) {
            arguments.insert(name.to_owned(), value);
        }
    };
    set(arguments, "console", json!("internalConsole"));
    if let Some(folder) = &folder {
        set(arguments, "cwd", json!(folder));
    }
    if let Some(cwd) = arguments.get("cwd").and_then(Value::as_str)
        && !Path::new(cwd).is_dir()
    {
        return Err(bad(format!("the working directory {cwd} does not exist")));
    }
    if let Some(program) = arguments.get("program").and_then(Value::as_str) {
        let path = Path::new(arguments.get("cwd").and_then(Value::as_str).unwrap_or("/")).join(program);
        if !path.exists() {
            return Err(bad(format!("the program {} does not exist", path.display())));
        }
        arguments.insert("program".to_owned(), json!(path));
    } else if !arguments.contains_key("module") && !arguments.contains_key("code") {
        return Err(bad("a launch needs `program`, `module` or `code`".to_owned()));
    }
    let python = match chosen_python(arguments, options)? {
        Some(python) => python,
        None => vec![json!(find_pythons(options).into_iter().next().ok_or_else(no_python)?)],
    };
    arguments.remove("pythonPath");
    arguments.insert("python".to_owned(), Value::Array(python));
    Ok(())
}

/// The interpreter that the configuration names, as an absolute path, with its arguments.
fn chosen_python(
    arguments: &Map<String, Value>,
    options: &DebuggerOptions,
) -> Result<Option<Vec<Value>>, DebugError> {
    let Some(python) = arguments.get("python").or_else(|| arguments.get("pythonPath")) else {
        return Ok(None);
    };
    let mut python = match python {
        Value::Array(parts) => parts.clone(),
        one => vec![one.clone()],
    };
    let Some(name) = python.first().and_then(Value::as_str) else {
        return Err(bad("`python` must be a path, or a list of a path and arguments".to_owned()));
    };
    python[0] = json!(find_python(name, options)?);
    Ok(Some(python))
}

/// A name or path of an interpreter, as an absolute path; a relative one is relative to the window's folder.
fn find_python(name: &str, options: &DebuggerOptions) -> Result<PathBuf, DebugError> {
    let folder = options.folders.first().map_or(Path::new("/"), PathBuf::as_path);
    which::which_in(name, Some(options.search_path.clone().unwrap_or_default()), folder)
        .map_err(|_| bad(format!("the Python interpreter {name} does not exist or cannot be run")))
}

/// `connect: {host, port}`, or the older `host` and `port`.
fn attach_address(arguments: &Map<String, Value>) -> Result<Option<(String, u16)>, DebugError> {
    let connect = arguments.get("connect").and_then(Value::as_object).unwrap_or(arguments);
    let Some(port) = connect.get("port") else { return Ok(None) };
    let port = port.as_u64().or_else(|| port.as_str()?.trim().parse().ok());
    let Some(port) = port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0) else {
        return Err(bad("`port` must be a number from 1 to 65535".to_owned()));
    };
    let host = connect.get("host").and_then(Value::as_str).unwrap_or("127.0.0.1");
    Ok(Some((host.to_owned(), port)))
}

/// The interpreters that may have debugpy: the program's own first. The adapter brings debugpy into the program,
/// so that it need not be the same one.
fn adapter_programs(
    arguments: &Map<String, Value>,
    options: &DebuggerOptions,
) -> Result<Vec<Program>, DebugError> {
    let mut pythons: Vec<PathBuf> = Vec::new();
    match arguments.get("debugAdapterPython").and_then(Value::as_str) {
        Some(name) => pythons.push(find_python(name, options)?),
        None => {
            let chosen = chosen_python(arguments, options)?;
            pythons.extend(chosen.as_ref().and_then(|chosen| chosen.first()?.as_str()).map(PathBuf::from));
        }
    }
    for python in find_pythons(options) {
        if !pythons.contains(&python) {
            pythons.push(python);
        }
    }
    if pythons.is_empty() {
        return Err(no_python());
    }
    let program = |path: PathBuf| Program {
        path,
        args: vec![OsString::from("-c"), OsString::from(QUICKACK)],
        cwd: options.folders.first().cloned(),
        // The program inherits it: without it each start prints four lines about frozen modules.
        env: vec![("PYDEVD_DISABLE_FILE_VALIDATION".into(), Some("1".into()))],
    };
    Ok(pythons.into_iter().map(program).collect())
}

/// Interpreters in the order of preference: the folders' virtual environments, `BATON_PYTHON`, the search path.
pub(crate) fn find_pythons(options: &DebuggerOptions) -> Vec<PathBuf> {
    let in_folders = options
        .folders
        .iter()
        .flat_map(|folder| [".venv/bin/python", "venv/bin/python"].map(|relative| folder.join(relative)));
    let in_path = ["python3", "python"]
        .into_iter()
        .filter_map(|name| which::which_in(name, options.search_path.as_ref(), "/").ok());
    let mut found: Vec<PathBuf> = Vec::new();
    for path in in_folders.chain(options.python.clone()).filter(|path| path.is_file()).chain(in_path) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

fn no_python() -> DebugError {
    DebugError::AdapterMissing {
        message: "no Python interpreter was found".to_owned(),
        hint: "Install Python 3, or name one in the configuration's `python` or in BATON_PYTHON.".to_owned(),
    }
}

fn bad(message: String) -> DebugError {
    DebugError::BadConfiguration { message }
}
