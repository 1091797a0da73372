//! debugpy: runs in a Python interpreter, the program's own if possible; a program that listens is an adapter itself.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::adapter::Adapter;
use crate::adapters::configuration::{add_defaults, bad, check_paths, program_of, request_kind};
use crate::dap::configuration::{Configuration, Connect};
use crate::error::DebugError;
use crate::host::reach::{Host, Plan, Reach};
use crate::options::{DebuggerOptions, program_on_path};
use crate::session::plan::{SessionPlan, StartKind};
use crate::types::Start;
use baton_agent_base::process::Program;

/// The file that runs `debugpy.adapter` without the 40 ms.
const QUICKACK: &str = include_str!("quickack.py");

/// What is evaluated before expressions and texts of values, so that they end.
const LIMITS: &str = include_str!("debugpy_limits.py");

/// Makes debugpy interrupt an expression that takes longer, and a text of a value; in its own Python.
pub(crate) fn limits(expression: Duration) -> String {
    format!("exec({}, {{'SECONDS': {}}})", Value::from(LIMITS), expression.as_secs_f64())
}

/// Plans a session of a configuration.
pub(crate) fn plan(
    adapter: &'static Adapter,
    start: &Start,
    options: &DebuggerOptions,
) -> Result<Plan, DebugError> {
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
                let mut programs = adapter_programs(&arguments, options)?;
                lend_gdb(&mut programs, Configuration::of(&arguments).process_id.as_u64(), options)?;
                Reach::Stdio(programs)
            }
            None => {
                return Err(bad("attach needs `connect` with `host` and `port`, or `processId`".to_owned()));
            }
        },
    };
    add_defaults(adapter, kind, &mut arguments);
    if start.no_debug {
        arguments.insert("noDebug".to_owned(), Value::Bool(true));
    }
    let python = match &reach {
        Reach::Stdio(programs) => programs.first().map(|program| program.path.display().to_string()),
        Reach::Tcp { .. } | Reach::Unix(_) | Reach::Server(_) => None,
    };
    let session = SessionPlan {
        no_debug: start.no_debug && kind == StartKind::Launch,
        stops_at_entry: Configuration::of(&start.configuration).stop_on_entry,
        ..SessionPlan::new(adapter, kind, Value::Object(arguments))
    };
    Ok(Plan {
        session,
        host: Host::Direct(reach),
        install_hint: format!(
            "Run `baton adapters install debugpy`, or install it into the interpreter that runs the program: {} -m pip install debugpy",
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
    if let Some(folder) = &folder {
        set(arguments, "cwd", json!(folder));
    }
    check_paths(arguments)?;
    // debugpy expands a text in a shell, which needs a client that has one.
    if Configuration::of(arguments).args.is_some_and(|args| !args.is_array()) {
        return Err(bad("`args` of the configuration must be a list of strings".to_owned()));
    }
    if !["program", "module", "code"].iter().any(|field| arguments.contains_key(*field)) {
        return Err(bad("a launch needs `program`, `module` or `code`".to_owned()));
    }
    let python = match chosen_python(arguments, options)? {
        Some(python) => python,
        None => {
            let own = own_python(&Configuration::of(arguments), options);
            let python = own.or_else(|| find_pythons(options).into_iter().next());
            vec![json!(python.ok_or_else(no_python)?)]
        }
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
    let Configuration { python, python_path, .. } = Configuration::of(arguments);
    let mut python = match python.or(python_path) {
        None => return Ok(None),
        Some(Value::Array(parts)) => parts,
        Some(one) => vec![one],
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
    let Configuration { connect, host, port, .. } = Configuration::of(arguments);
    let connect = connect.unwrap_or(Connect { host, port });
    if !connect.port.is_given() {
        return Ok(None);
    }
    let port = connect.port.as_port();
    let port = port.ok_or_else(|| bad("`port` must be a number from 1 to 65535".to_owned()))?;
    Ok(Some((connect.host.unwrap_or_else(|| "127.0.0.1".to_owned()), port)))
}

/// The interpreters that may have debugpy: the program's own first. The adapter brings debugpy into the program,
/// so that it need not be the same one.
fn adapter_programs(
    arguments: &Map<String, Value>,
    options: &DebuggerOptions,
) -> Result<Vec<Program>, DebugError> {
    let mut pythons: Vec<PathBuf> = Vec::new();
    match Configuration::of(arguments).debug_adapter_python {
        Some(name) => pythons.push(find_python(&name, options)?),
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
    let folder = options.folders.first();
    Ok(pythons.into_iter().map(|path| program(path, folder.cloned())).collect())
}

/// debugpy has gdb bring it into a running program: the one that Baton installed, or the machine's.
fn lend_gdb(programs: &mut [Program], pid: Option<u64>, options: &DebuggerOptions) -> Result<(), DebugError> {
    let search_path = options.search_path.clone().unwrap_or_default();
    let installed = options.shelf.folder_of("gdb").map(|folder| folder.join("bin"));
    let installed = installed.filter(|folder| folder.join("gdb").is_file());
    if installed.is_none() && (program_on_path("gdb", Some(&search_path)).is_some() || takes_code_in(pid)) {
        return Ok(());
    }
    let installed = installed.ok_or_else(|| {
        let message = "attaching to a running process needs gdb, which is not installed".to_owned();
        let hint = "Run `baton adapters install gdb`; or start the program with `python3 -m debugpy --listen 127.0.0.1:5678` and attach by port.".to_owned();
        DebugError::AdapterMissing { message, hint }
    })?;
    // Before the system's: gdb 13 calls nothing in a process on a processor with AMX.
    let folders = [installed].into_iter().chain(std::env::split_paths(&search_path));
    if let Ok(path) = std::env::join_paths(folders) {
        programs.iter_mut().for_each(|program| program.env.push(("PATH".into(), Some(path.clone()))));
    }
    Ok(())
}

/// Whether the process is a Python that runs what another one gives it (`sys.remote_exec`): 3.14 and later.
fn takes_code_in(pid: Option<u64>) -> bool {
    let program = pid.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/exe")).ok());
    let name = program.and_then(|program| Some(program.file_name()?.to_str()?.to_owned()));
    let minor = name.and_then(|name| name.strip_prefix("python3.")?.parse::<u32>().ok());
    minor.is_some_and(|minor| minor >= 14)
}

/// debugpy's adapter in an interpreter.
pub(crate) fn program(python: PathBuf, cwd: Option<PathBuf>) -> Program {
    Program {
        path: python,
        args: vec![OsString::from("-c"), OsString::from(QUICKACK)],
        cwd,
        // The program inherits it: without it each start prints four lines about frozen modules.
        env: vec![("PYDEVD_DISABLE_FILE_VALIDATION".into(), Some("1".into()))],
    }
}

/// Where a virtual environment of a project lies in its folder.
const ENVIRONMENTS: [&str; 2] = [".venv/bin/python", "venv/bin/python"];

/// The interpreter that a program's first line names by its path, or the one of the nearest virtual environment above the
/// program, or above where a module runs, in the window's folders.
fn own_python(given: &Configuration, options: &DebuggerOptions) -> Option<PathBuf> {
    let program = program_of(given);
    let named = program.as_deref().and_then(python_of_first_line);
    named.or_else(|| {
        let start = program.as_deref().and_then(Path::parent).or(given.cwd.as_deref().map(Path::new))?;
        let folder = options.folders.iter().find(|folder| start.starts_with(folder))?;
        let inside = start.ancestors().take_while(|above| above.starts_with(folder));
        inside.flat_map(|above| ENVIRONMENTS.map(|python| above.join(python))).find(|path| path.is_file())
    })
}

/// `#!/opt/tool/bin/python3 -u`; `#!/usr/bin/env python3` means whichever is the window's.
fn python_of_first_line(program: &Path) -> Option<PathBuf> {
    const MAX_LEN: u64 = 1_024;
    let mut line = Vec::new();
    BufReader::new(File::open(program).ok()?.take(MAX_LEN)).read_until(b'\n', &mut line).ok()?;
    let python = Path::new(std::str::from_utf8(&line).ok()?.strip_prefix("#!")?.split_whitespace().next()?);
    let is_python = python.file_name()?.to_str()?.starts_with("python");
    (is_python && python.is_absolute() && python.is_file()).then(|| python.to_owned())
}

/// Interpreters in the order of preference: the folders' virtual environments, `BATON_PYTHON`, the search path, the
/// environment that Baton installed debugpy into.
pub fn find_pythons(options: &DebuggerOptions) -> Vec<PathBuf> {
    let in_folders =
        options.folders.iter().flat_map(|folder| ENVIRONMENTS.map(|relative| folder.join(relative)));
    let in_path = ["python3", "python"]
        .into_iter()
        .filter_map(|name| program_on_path(name, options.search_path.as_deref()));
    let installed = options.shelf.folder_of("debugpy").map(|folder| folder.join("bin/python"));
    let installed = installed.filter(|path| path.is_file());
    let mut found: Vec<PathBuf> = Vec::new();
    let named = in_folders.chain(options.python.clone()).filter(|path| path.is_file());
    for path in named.chain(in_path).chain(installed) {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

fn no_python() -> DebugError {
    DebugError::AdapterMissing {
        message: "cannot find a Python interpreter".to_owned(),
        hint: "Install Python 3, or name one in the configuration's `python` or in BATON_PYTHON.".to_owned(),
    }
}
