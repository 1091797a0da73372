//! Which adapter serves a configuration, a program or a process.
//!
//! For a program: the adapter that is named, then the ones for its extension, then what the file itself says (its
//! first line, or that it is compiled), then the ones whose project it lies in, then those for compiled programs.
//! Of several the first in the table that is installed is taken.

use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::adapter::{Adapter, Install};
use crate::adapters::shelf;
use crate::adapters::table::Table;
use crate::adapters::wish::{Attach, Wish};
use crate::dap::configuration::Configuration;
use crate::error::DebugError;
use crate::options::DebuggerOptions;

/// The adapter for a configuration, by its `type`.
pub(crate) fn by_type(
    table: &'static Table,
    configuration: &Map<String, Value>,
    options: &DebuggerOptions,
) -> Result<&'static Adapter, DebugError> {
    let Configuration { kind, .. } = Configuration::of(configuration);
    let mut serving: Vec<&Adapter> =
        table.adapters.iter().filter(|adapter| adapter.types.contains(&kind)).collect();
    // The first type is an adapter's own.
    serving.sort_by_key(|adapter| adapter.types[0] != kind);
    if serving.is_empty() {
        let mut known: Vec<&str> = Vec::new();
        for kind in table.adapters.iter().flat_map(|adapter| &adapter.types) {
            if !known.contains(&kind.as_str()) {
                known.push(kind);
            }
        }
        return Err(DebugError::UnknownType { kind: kind.to_owned(), known: known.join(", ") });
    }
    // An attach may need no program; the plan tells when one is missing.
    if let [only] = serving[..] {
        return Ok(only);
    }
    first_installed(&serving, table, options)
}

/// The adapter for a program or a process.
pub(crate) fn by_wish(
    table: &'static Table,
    wish: &Wish,
    options: &DebuggerOptions,
) -> Result<&'static Adapter, DebugError> {
    if let Some(name) = wish.adapter() {
        let named: Vec<&Adapter> = match table.find(name) {
            Some(adapter) => vec![adapter],
            // `python` and `node` are what people call theirs.
            None => {
                let is_type = |adapter: &&Adapter| adapter.types.iter().any(|known| known == name);
                table.adapters.iter().filter(is_type).collect()
            }
        };
        if named.is_empty() {
            let message = format!("unknown debug adapter `{name}`; available: {}", table.names());
            return Err(DebugError::BadConfiguration { message });
        }
        return first_installed(&named, table, options);
    }
    let ranked = match wish {
        Wish::Launch(launch) => {
            refuse_unknown_language(table, &launch.program)?;
            let mut ranked = for_program(table, &launch.program);
            if launch.terminal {
                ranked.sort_by_key(|adapter| !adapter.runs_in_terminal);
            }
            ranked
        }
        Wish::Attach(attach) => for_process(table, attach)?,
    };
    first_installed(&ranked, table, options)
}

/// A source in a language that no adapter knows is not given to the one whose project it happens to lie in.
fn refuse_unknown_language(table: &Table, program: &Path) -> Result<(), DebugError> {
    let Some(extension) = program.extension().and_then(|extension| extension.to_str()) else { return Ok(()) };
    let is_known =
        table.adapters.iter().any(|adapter| adapter.extensions.iter().any(|known| known == extension));
    if is_known || !program.is_file() || is_executable(program) || kind_of(program) != FileKind::Other {
        return Ok(());
    }
    let mut languages: Vec<&str> =
        table.adapters.iter().flat_map(|adapter| &adapter.languages).map(String::as_str).collect();
    languages.sort_unstable();
    languages.dedup();
    Err(DebugError::AdapterMissing {
        message: format!("no debug adapter for .{extension} files; known are {}", languages.join(", ")),
        hint: "Name the adapter that debugs it, or add one to adapters.json.".to_owned(),
    })
}

fn is_executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    program.metadata().is_ok_and(|facts| facts.permissions().mode() & 0o111 != 0)
}

/// The first that is installed. An editor brings its own.
fn first_installed(
    ranked: &[&'static Adapter],
    table: &Table,
    options: &DebuggerOptions,
) -> Result<&'static Adapter, DebugError> {
    if let (Some(editor), Some(first)) = (&options.editor, ranked.first()) {
        let is_there = |adapter: &&&Adapter| adapter.editor_types().any(|kind| editor.debugs(kind));
        // The editor's own sentence names what is missing.
        return Ok(ranked.iter().find(is_there).unwrap_or(first));
    }
    let mut why = Vec::new();
    for adapter in ranked {
        match shelf::find(adapter, options) {
            Ok(_) => return Ok(adapter),
            Err(problem) => why.push(problem),
        }
    }
    Err(missing(ranked.first().copied(), &why.join("; "), table, options))
}

/// No adapter: what there is, and how to get the one that is wanted.
pub(crate) fn missing(
    wanted: Option<&Adapter>,
    why: &str,
    table: &Table,
    options: &DebuggerOptions,
) -> DebugError {
    let installed: Vec<&str> = table
        .adapters
        .iter()
        .filter(|adapter| shelf::find(adapter, options).is_ok())
        .map(|adapter| adapter.name.as_str())
        .collect();
    let installed = if installed.is_empty() { "none".to_owned() } else { installed.join(", ") };
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    DebugError::AdapterMissing {
        message: format!("No debugger adapter available. Installed adapters: {installed}.{why}"),
        hint: wanted.map_or_else(
            || "Run `baton adapters list` to see what can be installed.".to_owned(),
            install_hint,
        ),
    }
}

/// The command that installs an adapter.
pub fn install_hint(adapter: &Adapter) -> String {
    match &adapter.install {
        Some(Install::Manual(sentence)) => sentence.clone(),
        Some(_) => format!("Run `baton adapters install {}`.", adapter.name),
        None => format!("Install {} and add it to PATH.", adapter.name),
    }
}

/// Adapters that could debug a program, the best first.
fn for_program(table: &'static Table, program: &Path) -> Vec<&'static Adapter> {
    let all = || table.adapters.iter();
    let extension = program.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let by_extension: Vec<&Adapter> =
        all().filter(|adapter| adapter.extensions.iter().any(|known| known == extension)).collect();
    if !by_extension.is_empty() && !program.is_dir() {
        return by_project(by_extension, program);
    }
    match kind_of(program) {
        FileKind::Script(interpreter) => {
            let by_interpreter: Vec<&Adapter> =
                all().filter(|adapter| runs_in(adapter, &interpreter)).collect();
            if !by_interpreter.is_empty() {
                return by_interpreter;
            }
        }
        FileKind::Compiled => {
            // Go's programs are compiled too, and their project says that they are Go's.
            let in_project =
                |adapter: &&Adapter| adapter.executables || project_root(adapter, program).is_some();
            let compiles = |adapter: &&Adapter| adapter.executables || adapter.interpreters.is_empty();
            return by_project(all().filter(compiles).filter(in_project).collect(), program);
        }
        FileKind::Other => {}
    }
    let mut in_project: Vec<&Adapter> =
        all().filter(|adapter| project_root(adapter, program).is_some()).collect();
    in_project.sort_by_key(|adapter| depth_of_project(adapter, program));
    if in_project.is_empty() {
        return all().filter(|adapter| adapter.executables).collect();
    }
    in_project
}

/// The ones whose project a program lies in come first; of the rest, the table's order stands. One that debugs
/// compiled programs of any language stands behind one whose project it is.
fn by_project(mut adapters: Vec<&'static Adapter>, program: &Path) -> Vec<&'static Adapter> {
    adapters.sort_by_key(|adapter| depth_of_project(adapter, program));
    adapters
}

/// How far above a program the adapter's project begins; far away when it is in none.
fn depth_of_project(adapter: &Adapter, program: &Path) -> usize {
    let root = project_root(adapter, program);
    root.map_or(usize::MAX, |root| {
        program.strip_prefix(&root).map_or(usize::MAX, |rest| rest.components().count())
    })
}

/// The nearest folder above a program that has one of the adapter's root markers.
pub(crate) fn project_root(adapter: &Adapter, program: &Path) -> Option<PathBuf> {
    let from = if program.is_dir() { program } else { program.parent()? };
    let is_root = |folder: &&Path| adapter.root_markers.iter().any(|marker| has_marker(folder, marker));
    from.ancestors().find(is_root).map(Path::to_owned)
}

fn has_marker(folder: &Path, marker: &str) -> bool {
    let Some(suffix) = marker.strip_prefix('*') else { return folder.join(marker).exists() };
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(suffix))
}

/// What a file says about itself.
#[derive(Debug, PartialEq, Eq)]
enum FileKind {
    /// The interpreter of its first line.
    Script(String),
    Compiled,
    Other,
}

fn kind_of(program: &Path) -> FileKind {
    const MACH_O: [[u8; 4]; 3] =
        [[0xcf, 0xfa, 0xed, 0xfe], [0xce, 0xfa, 0xed, 0xfe], [0xca, 0xfe, 0xba, 0xbe]];
    let mut head = [0; 256];
    let n = std::fs::File::open(program).and_then(|mut file| file.read(&mut head)).unwrap_or(0);
    let head = &head[..n];
    if head.starts_with(b"\x7fELF") || MACH_O.iter().any(|magic| head.starts_with(magic)) {
        return FileKind::Compiled;
    }
    let first = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    match std::str::from_utf8(first).ok().and_then(|line| line.strip_prefix("#!")).and_then(interpreter) {
        Some(name) => FileKind::Script(name),
        None => FileKind::Other,
    }
}

/// `/usr/bin/env python3` and `/usr/bin/python3` name `python3`.
fn interpreter(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let is_option = |word: &&str| !word.starts_with('-') && !word.contains('=');
    match words.next()? {
        "env" => words.find(is_option).map(str::to_owned),
        name => Some(name.to_owned()),
    }
}

/// Whether this adapter debugs what runs in an interpreter; `python3.11` is `python3`.
fn runs_in(adapter: &Adapter, interpreter: &str) -> bool {
    let bare = interpreter.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    adapter.interpreters.iter().any(|known| known == interpreter || known == bare)
}

/// Adapters that could join a process, the best first.
fn for_process(table: &'static Table, attach: &Attach) -> Result<Vec<&'static Adapter>, DebugError> {
    let all = || table.adapters.iter();
    if let Some(pid) = attach.pid {
        let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
        if attach.port.is_none()
            && Path::new("/proc/self").exists()
            && !Path::new(&format!("/proc/{pid}")).exists()
        {
            let message = format!("there is no process {pid}");
            return Err(DebugError::BadConfiguration { message });
        }
        let name = exe.ok().map(|exe| program_name(&exe.to_string_lossy()).to_owned());
        let can = |adapter: &&Adapter| adapter.attach_by_pid.is_some();
        let in_interpreter: Vec<&Adapter> = all()
            .filter(can)
            .filter(|adapter| name.as_ref().is_some_and(|name| runs_in(adapter, name)))
            .collect();
        if !in_interpreter.is_empty() {
            return Ok(in_interpreter);
        }
        return Ok(all().filter(can).filter(|adapter| adapter.executables).collect());
    }
    if let Some(port) = attach.port {
        let mut can: Vec<&Adapter> = all().filter(|adapter| adapter.attach_by_port.is_some()).collect();
        can.sort_by_key(|adapter| !adapter.usual_ports.contains(&port));
        // A stable sort: who listens says more than the number.
        if let Some(name) = listener(attach.host.as_deref(), port) {
            can.sort_by_key(|adapter| !serves(adapter, &name));
        }
        return Ok(can);
    }
    Err(DebugError::BadConfiguration { message: "attach requires pid or port".to_owned() })
}

/// The program that listens on a port of this machine, as far as the system tells. Nobody connects to it: some take
/// one connection, and a stranger's would be the end of them.
fn listener(host: Option<&str>, port: u16) -> Option<String> {
    let address = host.filter(|host| *host != "localhost").unwrap_or("127.0.0.1").parse::<IpAddr>();
    address.ok().filter(IpAddr::is_loopback)?;
    let process = listeners::get_process_by_port(port, listeners::Protocol::TCP).ok()?;
    // Threads have names of their own, which go before the program's in the other field.
    Some(program_name(&process.path).to_owned())
}

/// The name of a running program. Linux marks the path of one whose file was replaced or removed.
fn program_name(path: &str) -> &str {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a program that is called so listens for this adapter.
fn serves(adapter: &Adapter, program: &str) -> bool {
    runs_in(adapter, program) || adapter.servers.iter().any(|known| known == program)
}
