//! A configuration becomes a plan, for all adapters that are described by data; what differs beyond that is a few
//! functions, one for each dialect.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::adapter::{Adapter, Dialect, Transport};
use crate::adapters::configuration::{add_defaults, bad, check_paths, request_kind};
use crate::adapters::shelf::{self, Found};
use crate::adapters::table::Table;
use crate::adapters::wish::Wish;
use crate::adapters::{gdb, go, java, js_debug, rust, select};
use crate::dap::body::read;
use crate::dap::configuration::{Configuration, Variable};
use crate::error::DebugError;
use crate::host::reach::{Host, Listening, Plan, Reach, Server};
use crate::options::DebuggerOptions;
use crate::session::plan::{SessionPlan, StartKind};
use crate::types::Start;
use baton_agent_base::process::Program;

/// Fields by which configurations ask for a stop at the first line.
const ENTRY_FIELDS: [&str; 2] = ["stopOnEntry", "stopAtEntry"];

/// The configuration of a launch.json for a program or a process.
pub(crate) fn configure(
    adapter: &Adapter,
    wish: &Wish,
    options: &DebuggerOptions,
) -> Result<Start, DebugError> {
    let kind = match &options.editor {
        Some(editor) => {
            let is_there = adapter.editor_types().find(|kind| editor.debugs(kind));
            is_there.or(adapter.editor_types().next()).unwrap_or_default()
        }
        None => &adapter.types[0],
    };
    let mut configuration = Map::new();
    configuration.insert("type".to_owned(), json!(kind));
    let name = match wish {
        Wish::Launch(launch) => {
            let file = launch.program.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = launch.module.clone().or(file);
            configuration.insert("request".to_owned(), json!("launch"));
            match &launch.module {
                Some(module) => configuration.insert("module".to_owned(), json!(module)),
                None => configuration.insert("program".to_owned(), json!(launch.program)),
            };
            configuration.insert("args".to_owned(), json!(launch.args));
            if let Some(cwd) = &launch.cwd {
                configuration.insert("cwd".to_owned(), json!(cwd));
            }
            if !launch.env.is_empty() {
                configuration.insert("env".to_owned(), json!(launch.env));
            }
            configuration.insert("stopOnEntry".to_owned(), json!(launch.stop_on_entry));
            if launch.terminal {
                configuration.insert("console".to_owned(), json!("integratedTerminal"));
            }
            name.unwrap_or_else(|| adapter.name.clone())
        }
        Wish::Attach(attach) => {
            configuration.insert("request".to_owned(), json!("attach"));
            let (template, name) = match (attach.pid, attach.port) {
                (Some(pid), _) => (&adapter.attach_by_pid, format!("process {pid}")),
                (None, Some(port)) => (&adapter.attach_by_port, format!("port {port}")),
                (None, None) => return Err(bad("attach requires pid or port".to_owned())),
            };
            let Some(template) = template else {
                let way = if attach.pid.is_some() { "process id" } else { "port" };
                return Err(bad(format!("{} cannot attach by {way}", adapter.name)));
            };
            let host = attach.host.as_deref().unwrap_or("127.0.0.1");
            let fill = |value: &Value| fill(value, attach.pid, host, attach.port);
            configuration.extend(template.iter().map(|(name, value)| (name.clone(), fill(value))));
            if let Some(cwd) = &attach.cwd {
                configuration.insert("cwd".to_owned(), json!(cwd));
            }
            name
        }
    };
    if options.editor.is_some() {
        suit_editor(adapter, wish, &mut configuration);
    }
    configuration.insert("name".to_owned(), json!(name));
    Ok(Start { configuration, name, ..Start::default() })
}

/// What suits a client's session of an adapter suits it in the editor, where that has the adapter itself.
fn suit_editor(adapter: &Adapter, wish: &Wish, configuration: &mut Map<String, Value>) {
    if matches!(adapter.dialect, Dialect::JsDebug | Dialect::Debugpy) {
        let kind = match wish {
            Wish::Launch(_) => StartKind::Launch,
            Wish::Attach(_) => StartKind::Attach,
        };
        add_defaults(adapter, kind, configuration);
    }
    // js-debug's extension looks a process up by a text.
    if let (Dialect::JsDebug, Some(pid)) = (adapter.dialect, configuration.get_mut("processId")) {
        *pid = json!(pid.to_string());
    }
    let is_own = Configuration::of(configuration).kind == adapter.types[0];
    if is_own && !adapter.stop_on_entry.is_empty() && take_entry_wish(configuration) {
        merge(configuration, &adapter.stop_on_entry);
    }
}

/// A template's value with its placeholders replaced; one that is nothing but a number's becomes the number.
fn fill(template: &Value, pid: Option<u32>, host: &str, port: Option<u16>) -> Value {
    match template {
        Value::String(text) if text == "{pid}" => json!(pid),
        Value::String(text) if text == "{port}" => json!(port),
        Value::String(text) => {
            let port = port.map(|port| port.to_string()).unwrap_or_default();
            json!(text.replace("{host}", host).replace("{port}", &port))
        }
        Value::Object(fields) => {
            let filled = fields.iter().map(|(name, value)| (name.clone(), fill(value, pid, host, port)));
            Value::Object(filled.collect())
        }
        Value::Array(items) => items.iter().map(|item| fill(item, pid, host, port)).collect(),
        other => other.clone(),
    }
}

/// Plans a session of a configuration.
pub(crate) fn plan(
    adapter: &'static Adapter,
    start: &Start,
    options: &DebuggerOptions,
) -> Result<Plan, DebugError> {
    let mut kind = request_kind(&start.configuration)?;
    let mut arguments = start.configuration.clone();
    arguments.insert("type".to_owned(), json!(adapter.types[0]));
    let mut stops_at_entry = take_entry_wish(&mut arguments) && !start.no_debug;
    rename(adapter, &mut arguments);
    let is_core = arguments.contains_key("coreFile");
    if is_core {
        (kind, stops_at_entry) = (StartKind::Attach, false);
        open_core(adapter, &mut arguments, options)?;
    }
    add_defaults(adapter, kind, &mut arguments);
    let is_native = adapter.executables && (kind == StartKind::Launch || is_core);
    let is_rust = is_native && rust::is_rust(&arguments);
    let formatters = if is_rust { rust::formatters(&arguments, options) } else { None };
    merge(&mut arguments, &gdb::fields(&adapter.fields));
    if is_rust {
        merge(&mut arguments, &rust::launch(&adapter.launch_rust, formatters.as_deref()));
    }
    if stops_at_entry {
        let own = adapter.stop_on_entry_rust.as_ref().filter(|_| is_rust);
        merge(&mut arguments, own.unwrap_or(&adapter.stop_on_entry));
    }
    let has_cwd = arguments.contains_key("cwd");
    if let Some(folder) = options.folders.first()
        && kind == StartKind::Launch
    {
        arguments.entry("cwd").or_insert_with(|| json!(folder));
    }
    check_paths(&mut arguments)?;
    let connect = address_of(adapter, kind, &arguments)?;
    match (kind, adapter.dialect) {
        (StartKind::Launch, _) => complete_launch(adapter, &mut arguments, has_cwd, options)?,
        (StartKind::Attach, Dialect::JsDebug) => js_debug::complete_attach(&mut arguments),
        (StartKind::Attach, _) => {}
    }
    if start.no_debug {
        arguments.insert("noDebug".to_owned(), Value::Bool(true));
    }
    let reach = match connect {
        Some((host, port)) => Reach::Tcp { host, port },
        None => {
            let mut more = gdb::args(&adapter.args);
            more.extend(gdb::source_map(&adapter.args_source_map, &mut arguments));
            if is_rust {
                more.extend(rust::args(&adapter.args_rust, formatters.as_deref()));
            }
            spawned(adapter, &arguments, more, options)?
        }
    };
    let main_class = Configuration::of(&arguments).main_class;
    let entry_function = match adapter.dialect {
        Dialect::Java => main_class.map(|class| format!("{class}.main")),
        _ => adapter.entry_function.clone(),
    };
    let is_launch = kind == StartKind::Launch;
    let session = SessionPlan {
        adapter,
        kind: if is_launch && adapter.launch_attaches { StartKind::Attach } else { kind },
        arguments: Value::Object(arguments),
        no_debug: start.no_debug && is_launch,
        stops_at_entry,
        entry_function: entry_function.filter(|_| stops_at_entry),
        crash_functions: if is_rust { adapter.rust_panics.clone() } else { Vec::new() },
    };
    Ok(Plan { session, host: Host::Direct(reach), install_hint: select::install_hint(adapter) })
}

/// What a program left behind when it crashed is attached to, whatever the configuration says: nothing runs.
fn open_core(
    adapter: &Adapter,
    arguments: &mut Map<String, Value>,
    options: &DebuggerOptions,
) -> Result<(), DebugError> {
    if !adapter.reads_cores {
        return Err(bad(format!("{} reads no core dumps; use adapter gdb or lldb-dap", adapter.name)));
    }
    let given = Configuration::of(arguments);
    let folder = given.cwd.map(PathBuf::from).or(options.folders.first().cloned()).unwrap_or_default();
    let path = folder.join(given.core_file.unwrap_or_default());
    if !path.is_file() {
        return Err(bad(format!("the core dump {} does not exist", path.display())));
    }
    if !is_core(&path) {
        return Err(bad(format!("{} is not a core dump", path.display())));
    }
    arguments.insert("coreFile".to_owned(), json!(path));
    arguments.insert("request".to_owned(), json!(StartKind::Attach.command()));
    Ok(())
}

/// By its first bytes: an ELF file of the type `ET_CORE`. Of another system's files nothing is known.
fn is_core(path: &Path) -> bool {
    let mut head = [0; 18];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    let kind = if head[5] == 2 { [0, 4] } else { [4, 0] };
    !cfg!(target_os = "linux") || (read.is_ok() && head.starts_with(b"\x7fELF") && head[16..] == kind)
}

/// Takes the wish to stop at the first line out of a configuration: each adapter has its own way.
fn take_entry_wish(arguments: &mut Map<String, Value>) -> bool {
    let mut is_wanted = false;
    for field in ENTRY_FIELDS {
        is_wanted |= arguments.remove(field).is_some_and(|value| value == true);
    }
    is_wanted
}

/// Brings the fields that another debugger of the same type calls otherwise to this adapter's names.
fn rename(adapter: &Adapter, arguments: &mut Map<String, Value>) {
    for (theirs, ours) in &adapter.renames {
        if arguments.contains_key(ours) {
            continue;
        }
        if let Some(value) = arguments.remove(theirs) {
            arguments.insert(ours.clone(), if ours == "env" { to_environment(value) } else { value });
        }
    }
}

/// `[{"name": "A", "value": "b"}]` is `{"A": "b"}` in another form.
fn to_environment(value: Value) -> Value {
    let Value::Array(entries) = value else { return value };
    let variables = entries.iter().map(read::<Variable>);
    Value::Object(variables.filter_map(|variable| Some((variable.name?, variable.value))).collect())
}

/// Adds fields; lists grow at their beginning, because what the user's commands set goes before.
fn merge(arguments: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, value) in more {
        match (arguments.get_mut(name), value) {
            (Some(Value::Array(list)), Value::Array(items)) => drop(list.splice(0..0, items.iter().cloned())),
            (Some(own @ Value::String(_)), Value::Array(items)) => {
                *own = items.iter().cloned().chain([own.take()]).collect();
            }
            _ => drop(arguments.insert(name.clone(), value.clone())),
        }
    }
}

/// Where to connect, when what is attached to is an adapter itself.
fn address_of(
    adapter: &Adapter,
    kind: StartKind,
    arguments: &Map<String, Value>,
) -> Result<Option<(String, u16)>, DebugError> {
    if kind != StartKind::Attach || !adapter.attach_connects || !arguments.contains_key("port") {
        return Ok(None);
    }
    let Configuration { host, port, .. } = Configuration::of(arguments);
    let port = port.as_port().ok_or_else(|| bad("`port` must be a number from 1 to 65535".to_owned()))?;
    Ok(Some((host.unwrap_or_else(|| "127.0.0.1".to_owned()), port)))
}

/// Fills in what an adapter's own extension would, and refuses what cannot work.
fn complete_launch(
    adapter: &Adapter,
    arguments: &mut Map<String, Value>,
    has_cwd: bool,
    options: &DebuggerOptions,
) -> Result<(), DebugError> {
    let program = Configuration::of(arguments).program.map(PathBuf::from);
    match adapter.dialect {
        Dialect::Plain | Dialect::Debugpy if adapter.executables => {
            if let Some(program) = &program {
                refuse_source(adapter, program)?;
            }
        }
        Dialect::Plain | Dialect::Debugpy => {}
        Dialect::JsDebug => js_debug::complete(arguments, program.as_deref(), options),
        Dialect::Delve => go::complete(adapter, arguments, has_cwd, program.as_deref())?,
        Dialect::Java => java::complete(arguments, program.as_deref(), options)?,
    }
    let has_program = ["program", "mainClass", "runtimeExecutable", "launchCommands", "targetCreateCommands"];
    if !has_program.iter().any(|field| arguments.contains_key(*field)) {
        return Err(bad("a launch needs `program`".to_owned()));
    }
    Ok(())
}

/// A compiled program is wanted; its source is an easy mistake.
fn refuse_source(adapter: &Adapter, program: &Path) -> Result<(), DebugError> {
    let extension = program.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let shown = program.display();
    if !adapter.extensions.iter().any(|known| known == extension) {
        if program.is_dir() {
            return Err(bad(format!("{shown} is a folder; give the compiled program in it")));
        }
        return Ok(());
    }
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    let build = match extension {
        "rs" => format!("cargo build, or rustc -g -o {stem} {shown}"),
        "c" | "h" | "s" => format!("cc -g -O0 -o {stem} {shown}"),
        _ => format!("c++ -g -O0 -o {stem} {shown}"),
    };
    Err(bad(format!(
        "{shown} is source code; build it with debug information ({build}) and give the compiled program"
    )))
}

/// An adapter that is started for the session.
fn spawned(
    adapter: &'static Adapter,
    arguments: &Map<String, Value>,
    more: Vec<String>,
    options: &DebuggerOptions,
) -> Result<Reach, DebugError> {
    let found = shelf::find(adapter, options);
    let Found { program, args, .. } = match found {
        Ok(found) => found,
        Err(why) => {
            let table = Table::load(&options.shelf)?;
            return Err(select::missing(Some(adapter), &why, table, options));
        }
    };
    let given = Configuration::of(arguments);
    let program_path = given.program.unwrap_or_default();
    let args = args.into_iter().map(|arg| match arg.to_str() {
        Some(text) if text.contains("{program}") => text.replace("{program}", &program_path).into(),
        _ => arg,
    });
    let args = args.chain(more.into_iter().map(Into::into)).collect();
    let folder = options.folders.first().cloned();
    let own = given.dlv_cwd.filter(|_| adapter.starts_in_project).map(PathBuf::from);
    let cwd = own.or(folder);
    let program = Program { path: program, args, cwd, env: Vec::new() };
    let mut reach = reach(adapter, program);
    if let Reach::Server(server) = &mut reach
        && adapter.dialect == Dialect::Java
    {
        server.source_roots = java::source_roots(arguments, options);
    }
    Ok(reach)
}

/// How to reach an adapter that is spawned.
pub(crate) fn reach(adapter: &Adapter, program: Program) -> Reach {
    let listening = match &adapter.transport {
        // It names sources by relative paths, which a server's host completes.
        Transport::Stdio if adapter.dialect == Dialect::Java => Listening::Pipes,
        Transport::Stdio => return Reach::Stdio(vec![program]),
        Transport::TcpAnnounced(before) => Listening::Announced(before.clone()),
        Transport::TcpGiven => Listening::Given,
        Transport::TcpBack => Listening::Back,
        Transport::Unix => Listening::Unix,
    };
    let is_js_debug = adapter.dialect == Dialect::JsDebug && listening == Listening::Unix;
    let program = if is_js_debug { js_debug::guarded(program) } else { program };
    Reach::Server(Server {
        program,
        listening,
        prints_program_output: adapter.prints_program_output,
        exit_code_sign: adapter.exit_code_sign.clone(),
        late_output: adapter.late_output,
        answers_after_end: adapter.answers_after_end,
        source_roots: Vec::new(),
        address: Arc::default(),
    })
}
