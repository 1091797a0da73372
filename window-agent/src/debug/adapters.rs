//! Debug adapters as data: which one serves a configuration or a program, and how to reach it.
//!
//! | module | what |
//! |---|---|
//! | `table` | what is known of each adapter: `table.json`, and the user's own file in the same form |
//! | `shelf` | where adapters are found: installed by us, on the search path, named by the user |
//! | [`wish`] | CORE: a program or a process to debug, without a configuration |
//! | `select` | which adapter serves a wish |
//! | `general`, `java`, `debugpy` | a configuration becomes a plan |
//! | `node` | a running program is made ready to be attached to |

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};

use baton_proto::shim::{EditorSession, EditorStart};
use serde_json::{Map, Value};

use crate::debug::DebuggerOptions;
use crate::debug::adapters::table::{Adapter, Dialect, Table};
use crate::debug::editor::Editor;
use crate::debug::error::DebugError;
use crate::debug::host::direct;
use crate::debug::host::vscode::Target;
use crate::debug::types::Start;
use crate::process::Program;

pub(crate) mod debugpy;
pub(crate) mod general;
mod java;
mod node;
pub(crate) mod select;
pub mod shelf;
pub(crate) mod table;
pub mod wish;

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
    /// Spawn it and connect to it; child sessions connect to it again.
    Server(Server),
    /// Connect to it.
    Tcp { host: String, port: u16 },
    /// Let the editor do it.
    Editor(Editor, Target),
}

/// An adapter that is a server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) program: Program,
    pub(crate) listening: Listening,
    /// What the server prints is what the debugged program prints.
    pub(crate) prints_program_output: bool,
    /// See [`Adapter::late_output`].
    pub(crate) late_output: bool,
    /// See [`Adapter::answers_after_end`].
    pub(crate) answers_after_end: bool,
    /// Where sources lie that the server names by relative paths.
    pub(crate) source_roots: Vec<PathBuf>,
    /// Where it listens; set by the host once it is known, read for child sessions.
    pub(crate) address: Arc<OnceLock<Address>>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// How it is learned where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listening {
    /// It prints a line, on either stream, in which the port follows this text.
    Announced(String),
    /// It was told; it can be connected to a moment later. [`PORT`] stands in its arguments for a free port.
    Given,
    /// It was told a path, for which [`SOCKET`] stands in its arguments.
    Unix,
}

/// Stands in a server's arguments for the port to listen on; the host chooses it.
pub(crate) const PORT: &str = "{port}";
/// Stands in a server's arguments for the path of the unix socket to listen on; the host chooses it.
pub(crate) const SOCKET: &str = "{socket}";

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
    /// The program is to stop at its first line.
    pub(crate) stops_at_entry: bool,
    /// That is the first line of this function; the adapter itself cannot do it well.
    pub(crate) entry_function: Option<String>,
    /// A program that fails calls one of these functions, and the adapter knows nothing of it.
    pub(crate) crash_functions: Vec<String>,
    /// What to say when none of the programs had the adapter.
    pub(crate) install_hint: String,
}

/// What VS Code's debugger is to the engine: it finds the adapter itself.
static EDITOR: LazyLock<Adapter> = LazyLock::new(Adapter::editor);

/// Finds the adapter of a configuration and plans its session.
pub(crate) fn plan(start: &Start, options: &DebuggerOptions) -> Result<Plan, DebugError> {
    if options.editor.is_some() {
        return plan_editor(start, options);
    }
    let table = Table::load(&options.shelf)?;
    let adapter = select::by_type(table, &start.configuration, options)?;
    match adapter.dialect {
        Dialect::Debugpy => debugpy::plan(adapter, start, options),
        _ => general::plan(adapter, start, options),
    }
}

/// Brings what is attached to into a state in which its adapter can reach it.
pub(crate) async fn prepare(start: &mut Start, options: &DebuggerOptions) -> Result<(), DebugError> {
    let configuration = &mut start.configuration;
    let is_attach = configuration.get("request").is_some_and(|request| request == "attach");
    let [by_pid, by_port] = ["processId", "port"].map(|field| configuration.contains_key(field));
    if !is_attach || !(by_pid || by_port) || options.editor.is_some() {
        return Ok(());
    }
    let adapter = select::by_type(Table::load(&options.shelf)?, configuration, options)?;
    if adapter.dialect != Dialect::JsDebug {
        return Ok(());
    }
    if by_port {
        // js-debug itself tries for 10 s, and then tells its own stack.
        let host = configuration.get("address").and_then(Value::as_str).unwrap_or("localhost");
        let port = configuration["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| bad("`port` must be a number from 1 to 65535".to_owned()))?;
        direct::open(host, port).await?;
    } else {
        let pid = &configuration["processId"];
        let pid = pid.as_u64().or_else(|| pid.as_str()?.trim().parse().ok());
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| bad("`processId` must be the number of a process".to_owned()))?;
        let port = node::open_inspector(pid).await?;
        configuration.remove("processId");
        configuration.insert("port".to_owned(), port.into());
    }
    Ok(())
}

/// The plan of a child session that a running one asked for.
pub(crate) fn plan_child(parent: &Plan, request: &str, configuration: Value) -> Option<Plan> {
    if let Reach::Editor(editor, _) = &parent.reach {
        let session = configuration["__session"].as_str()?.to_owned();
        let is_child = configuration["__child"] == true;
        let is_users = parent.is_users();
        let reach = Reach::Editor(editor.clone(), Target::Begun { session, is_child, is_users });
        // js-debug's first child is the program of its parent.
        let is_program = !configuration["__pendingTargetId"].is_null();
        let arguments = if is_program { parent.arguments.clone() } else { configuration };
        return Some(Plan { arguments, reach, ..parent.clone() });
    }
    let kind = if request == "launch" { StartKind::Launch } else { StartKind::Attach };
    let connect = &configuration["connect"];
    let address = match connect["port"].as_u64() {
        Some(port) => {
            let host = connect["host"].as_str().unwrap_or("127.0.0.1").to_owned();
            Some(Reach::Tcp { host, port: u16::try_from(port).ok()? })
        }
        // The same server, which knows its child by what it put into the configuration.
        None => None,
    };
    let reach = match (address, &parent.reach) {
        (Some(reach), _) => reach,
        (None, Reach::Server(server)) => match server.address.get()? {
            Address::Tcp(host, port) => Reach::Tcp { host: host.clone(), port: *port },
            Address::Unix(_) => return None,
        },
        (None, Reach::Tcp { host, port }) => Reach::Tcp { host: host.clone(), port: *port },
        (None, Reach::Stdio(_) | Reach::Editor(..)) => return None,
    };
    // js-debug's first child is the program itself.
    let stops_at_entry = parent.stops_at_entry && parent.adapter.dialect == Dialect::JsDebug;
    Some(Plan {
        kind,
        arguments: configuration,
        reach,
        stops_at_entry,
        entry_function: None,
        crash_functions: Vec::new(),
        ..parent.clone()
    })
}

/// The configuration of a launch.json for a program or a process, with the adapter that serves it best.
pub(crate) fn configure(wish: &wish::Wish, options: &DebuggerOptions) -> Result<Start, DebugError> {
    let table = Table::load(&options.shelf)?;
    let adapter = select::by_wish(table, wish, options)?;
    general::configure(adapter, wish, options)
}

/// The plan of a session that the user started in the editor.
pub(crate) fn plan_users(editor: Editor, session: &EditorSession, options: &DebuggerOptions) -> Plan {
    let target = Target::Begun { session: session.session.clone(), is_child: false, is_users: true };
    Plan {
        adapter: editor_of(&session.kind, options),
        kind: if session.request == "attach" { StartKind::Attach } else { StartKind::Launch },
        arguments: Value::Null,
        reach: Reach::Editor(editor, target),
        no_debug: false,
        stops_at_entry: false,
        entry_function: None,
        crash_functions: Vec::new(),
        install_hint: String::new(),
    }
}

impl Plan {
    /// Whether the user started it, and no client.
    pub(crate) fn is_users(&self) -> bool {
        matches!(&self.reach, Reach::Editor(_, target) if target.is_users())
    }

    /// The port of this machine that an attach of js-debug is to.
    pub(crate) fn attached_port(&self) -> Option<u16> {
        /// Where node listens when nobody says otherwise.
        const USUAL: u16 = 9229;
        let host = self.arguments["address"].as_str().unwrap_or("localhost");
        let is_here = ["localhost", "127.0.0.1", "::1", "[::1]"].contains(&host);
        let port = self.arguments["port"].as_u64().map_or(Some(USUAL), |port| u16::try_from(port).ok());
        port.filter(|_| is_here && self.kind == StartKind::Attach)
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

/// What VS Code's debugger of this type is to the engine.
fn editor_of(kind: &str, options: &DebuggerOptions) -> &'static Adapter {
    let table = Table::load(&options.shelf).ok();
    table.and_then(|table| table.editor_of(kind)).unwrap_or(&EDITOR)
}

fn plan_editor(start: &Start, options: &DebuggerOptions) -> Result<Plan, DebugError> {
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
    // What is looked up in launch.json has variables in it, which VS Code replaces.
    let arguments =
        if start.left_to_editor { Value::Null } else { Value::Object(start.configuration.clone()) };
    let kind_of_adapter = start.configuration.get("type").and_then(Value::as_str).unwrap_or_default();
    Ok(Plan {
        adapter: editor_of(kind_of_adapter, options),
        kind,
        arguments,
        reach: Reach::Editor(editor, Target::Start(Box::new(wish))),
        no_debug: start.no_debug && kind == StartKind::Launch,
        stops_at_entry: false,
        entry_function: None,
        crash_functions: Vec::new(),
        install_hint: String::new(),
    })
}

fn bad(message: String) -> DebugError {
    DebugError::BadConfiguration { message }
}

/// Refuses what cannot work before anything is started; the program becomes an absolute path.
fn check_paths(arguments: &mut Map<String, Value>) -> Result<(), DebugError> {
    let is_no_text =
        |field: &&str| arguments.get(*field).is_some_and(|value| !value.is_string() && !value.is_null());
    if let Some(field) = ["cwd", "program"].iter().find(|field| is_no_text(field)) {
        return Err(bad(format!("`{field}` of the configuration must be a text")));
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
        arguments.insert("program".to_owned(), Value::String(path.to_string_lossy().into_owned()));
    }
    Ok(())
}
