//! Debug adapters as data: which one serves a configuration or a program, and how to reach it.
//!
//! | module | what |
//! |---|---|
//! | `adapter` | CORE: what is known of an adapter |
//! | `table` | all adapters: `table.json`, and the user's own file in the same form |
//! | `shelf` | where adapters are found: installed by us, on the search path, named by the user |
//! | [`wish`] | CORE: a program or a process to debug, without a configuration |
//! | `select` | which adapter serves a wish |
//! | `general`, `gdb`, `go`, `java`, `js_debug`, `debugpy` | a configuration becomes a plan |
//! | `input` | what a start gives the program to read, and which adapters can |
//! | `configuration` | what every configuration is checked for |
//! | `typescript` | whether the program's node runs it uncompiled |
//! | `node` | a running program is made ready to be attached to |

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use baton_link::process::has_listener;
use baton_proto::shim::{EditorSession, EditorStart};
use serde_json::Value;

use crate::adapter::{Adapter, Dialect};
use crate::adapters::configuration::bad;
use crate::adapters::table::Table;
use crate::dap::body::read;
use crate::dap::configuration::{Configuration, Connect};
use crate::editor::{Editor, Target};
use crate::error::DebugError;
use crate::host::reach::{Address, HERE, Host, Plan, Reach};
use crate::host::tcp;
use crate::options::DebuggerOptions;
use crate::session::plan::{SessionPlan, StartKind};
use crate::types::Start;

mod configuration;
pub mod debugpy;
pub(crate) mod gdb;
pub(crate) mod general;
pub(crate) mod go;
pub(crate) mod input;
pub mod java;
pub(crate) mod js_debug;
mod node;
pub(crate) mod rust;
pub mod select;
pub mod shelf;
pub mod table;
mod typescript;
pub mod wish;

/// How the types of js-debug's own sessions begin: the first child of one is the program itself.
const JS_DEBUG_TYPES: &str = "pwa-";

/// What VS Code's debugger is to the engine: it finds the adapter itself.
static EDITOR: LazyLock<Adapter> = LazyLock::new(Adapter::editor);

/// Finds the adapter of a configuration and plans its session.
pub(crate) fn plan(start: &Start, options: &DebuggerOptions) -> Result<Plan, DebugError> {
    if options.editor.is_some() {
        input::refuse_in_editor(start)?;
        return plan_editor(start, options);
    }
    let table = Table::load(&options.shelf)?;
    let adapter = select::by_type(table, &start.configuration, options)?;
    let start = &*input::prepare(start, adapter, table, options)?;
    if adapter.dialect == Dialect::JsDebug {
        typescript::refuse_uncompiled(start, options)?;
    }
    match adapter.dialect {
        Dialect::Debugpy => debugpy::plan(adapter, start, options),
        _ => general::plan(adapter, start, options),
    }
}

/// Brings what is attached to into a state in which its adapter can reach it.
pub(crate) async fn prepare(start: &mut Start, options: &DebuggerOptions) -> Result<(), DebugError> {
    let configuration = &mut start.configuration;
    let given = Configuration::of(configuration);
    let [by_pid, by_port] = ["processId", "port"].map(|field| configuration.contains_key(field));
    if !given.attaches() || !(by_pid || by_port) || options.editor.is_some() {
        return Ok(());
    }
    let adapter = select::by_type(Table::load(&options.shelf)?, configuration, options)?;
    if adapter.dialect != Dialect::JsDebug {
        return Ok(());
    }
    if by_port {
        // js-debug itself tries for 10 s, and then tells its own stack.
        let host = given.address.as_deref().unwrap_or("localhost");
        let port =
            given.port.as_port().ok_or_else(|| bad("`port` must be a number from 1 to 65535".to_owned()))?;
        tcp::open(host, port).await?;
    } else {
        let pid = given.process_id.as_u64().and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| bad("`processId` must be the number of a process".to_owned()))?;
        let port = node::open_inspector(pid).await?;
        configuration.remove("processId");
        configuration.insert("port".to_owned(), port.into());
    }
    Ok(())
}

/// The plan of a child session that a running one asked for.
pub(crate) fn plan_child(parent: &Plan, request: &str, configuration: Value) -> Option<Plan> {
    let Host::Direct(reach) = &parent.host else { return None };
    let kind = if request == "launch" { StartKind::Launch } else { StartKind::Attach };
    let connect = read::<Configuration>(&configuration).connect.unwrap_or_default();
    let reach = match (connect.port.as_port(), reach) {
        (Some(port), _) => Reach::Tcp { host: connect.host.unwrap_or_else(|| "127.0.0.1".to_owned()), port },
        // The same server, which knows its child by what it put into the configuration.
        (None, Reach::Server(server)) => match server.address.get()? {
            Address::Tcp(host, port) => Reach::Tcp { host: host.clone(), port: *port },
            Address::Unix(path) => Reach::Unix(path.clone()),
        },
        (None, reach @ (Reach::Tcp { .. } | Reach::Unix(_))) => reach.clone(),
        (None, Reach::Stdio(_)) => return None,
    };
    // js-debug's first child is the program itself.
    let stops_at_entry = parent.session.stops_at_entry && parent.session.adapter.dialect == Dialect::JsDebug;
    let session = SessionPlan {
        kind,
        arguments: configuration,
        stops_at_entry,
        entry_function: None,
        crash_functions: Vec::new(),
        ..parent.session.clone()
    };
    Some(Plan { session, host: Host::Direct(reach), ..parent.clone() })
}

/// The plan of a session that begins in the editor beside a running one.
pub(crate) fn plan_editors(parent: &Plan, child: &EditorSession) -> Option<Plan> {
    let Host::Editor(editor, _) = &parent.host else { return None };
    let is_child = child.parent.is_some();
    let is_users = parent.is_users();
    let target = Target::Begun { session: child.session.clone(), is_child, is_users, start: None };
    let arguments = if is_program(child) { parent.session.arguments.clone() } else { Value::Null };
    let session = SessionPlan { arguments, ..parent.session.clone() };
    Some(Plan { session, host: Host::Editor(editor.clone(), target), ..parent.clone() })
}

/// Whether it is the program of its parent, as the first child of js-debug's is.
pub(crate) fn is_program(child: &EditorSession) -> bool {
    child.parent.is_some() && child.kind.starts_with(JS_DEBUG_TYPES)
}

/// The configuration of a launch.json for a program or a process, with the adapter that serves it best.
pub(crate) fn configure(wish: &wish::Wish, options: &DebuggerOptions) -> Result<Start, DebugError> {
    let table = Table::load(&options.shelf)?;
    let adapter = select::by_wish(table, wish, options)?;
    general::configure(adapter, wish, options)
}

/// The plan of a session that the user started in the editor.
pub(crate) fn plan_users(editor: Editor, session: &EditorSession, options: &DebuggerOptions) -> Plan {
    let target =
        Target::Begun { session: session.session.clone(), is_child: false, is_users: true, start: None };
    let kind = if session.request == "attach" { StartKind::Attach } else { StartKind::Launch };
    let session = SessionPlan::new(editor_of(&session.kind, options), kind, Value::Null);
    Plan { session, host: Host::Editor(editor, target), install_hint: String::new() }
}

/// What VS Code's debugger of this type is to the engine.
fn editor_of(kind: &str, options: &DebuggerOptions) -> &'static Adapter {
    let table = Table::load(&options.shelf).ok();
    table.and_then(|table| table.editor_of(kind)).unwrap_or(&EDITOR)
}

/// An address of this machine answers at once, or is no such.
const ANSWERS_WITHIN: Duration = Duration::from_millis(200);

fn plan_editor(start: &Start, options: &DebuggerOptions) -> Result<Plan, DebugError> {
    let Some(editor) = options.editor.clone() else {
        return Err(bad("there is no editor to start it".to_owned()));
    };
    let given = Configuration::of(&start.configuration);
    let kind = if given.attaches() { StartKind::Attach } else { StartKind::Launch };
    let adapter = editor_of(&given.kind, options);
    expect_debug_server(&given)?;
    if adapter.known_in_editor == Some(Dialect::JsDebug) {
        typescript::refuse_uncompiled(start, options)?;
    }
    if kind == StartKind::Attach && adapter.known_in_editor == Some(Dialect::Debugpy) {
        expect_listener(&given)?;
    }
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
    let session = SessionPlan {
        no_debug: start.no_debug && kind == StartKind::Launch,
        ..SessionPlan::new(adapter, kind, arguments)
    };
    let host = Host::Editor(editor, Target::Start(Box::new(wish)));
    Ok(Plan { session, host, install_hint: String::new() })
}

/// Somebody must listen where a program is to be attached to: else VS Code would say so in a dialog. A task before it may
/// start what listens; of another machine's ports nothing is known; js-debug looks for a while by itself.
fn expect_listener(given: &Configuration) -> Result<(), DebugError> {
    let connect = given.connect.clone();
    let Connect { host, port } =
        connect.unwrap_or_else(|| Connect { host: given.host.clone(), port: given.port.clone() });
    let host = host.as_deref().unwrap_or("127.0.0.1");
    match port.as_port().filter(|_| HERE.contains(&host)).and_then(|port| refused(given, port)) {
        Some((port, error)) => {
            Err(DebugError::StartFailed { message: tcp::nothing_at(host, port, &error.to_string()) })
        }
        None => Ok(()),
    }
}

/// An adapter that runs already, which VS Code connects to, must be there, likewise.
fn expect_debug_server(given: &Configuration) -> Result<(), DebugError> {
    match given.debug_server.as_port().and_then(|port| refused(given, port)) {
        Some((port, error)) => {
            let message = format!(
                "`debugServer` names port {port}, where no adapter listens ({error}); start it first"
            );
            Err(DebugError::StartFailed { message })
        }
        None => Ok(()),
    }
}

/// How a port of this machine refuses whoever connects to it.
fn refused(given: &Configuration, port: u16) -> Option<(u16, std::io::Error)> {
    if given.pre_launch_task.is_some() || has_listener(port) != Some(false) {
        return None;
    }
    // A port can lead into a container without anybody who listens here. A debugger that listens is not disturbed: it
    // would have been seen.
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let error = TcpStream::connect_timeout(&address, ANSWERS_WITHIN).err()?;
    (error.kind() == ErrorKind::ConnectionRefused).then_some((port, error))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use serde_json::json;
    use tokio::net::TcpSocket;

    use super::*;

    #[test]
    fn an_attach_that_meets_nobody_is_refused_before_the_editor_is_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // It has its port, and listens not.
        let held = TcpSocket::new_v4().unwrap();
        held.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let port = held.local_addr().unwrap().port();
        let refused = |configuration: Value| expect_listener(&read(&configuration)).err();
        let listening = listener.local_addr().unwrap().port();
        assert_eq!(refused(json!({ "connect": { "port": listening } })), None);
        let told = refused(json!({ "connect": { "host": "localhost", "port": port } })).unwrap().to_string();
        assert!(told.starts_with(&format!("nothing to attach to at localhost:{port} (")), "{told}");
        assert!(refused(json!({ "port": port })).is_some());
        // Its task may start what listens, and of another machine nothing is known here.
        assert_eq!(refused(json!({ "port": port, "preLaunchTask": "serve" })), None);
        assert_eq!(refused(json!({ "port": port, "host": "10.0.0.9" })), None);
        assert_eq!(refused(json!({ "listen": { "port": port } })), None);
        let server = |port: u16| expect_debug_server(&read(&json!({ "debugServer": port }))).err();
        assert_eq!(server(listening), None);
        let told = server(port).unwrap().to_string();
        assert!(
            told.contains(&format!("`debugServer` names port {port}, where no adapter listens (")),
            "{told}"
        );
    }
}
