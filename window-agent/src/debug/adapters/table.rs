//! What is known of each adapter: the table that comes with Baton, and the user's file, which has the same form and
//! adds adapters to it or changes some.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::debug::adapters::shelf::Shelf;
use crate::debug::error::DebugError;
use crate::launch_config::parse_jsonc;

/// All adapters, the preferred ones first.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) adapters: Vec<Adapter>,
    /// What VS Code's debuggers of the same languages are to the engine.
    editors: Vec<Adapter>,
}

/// A debug adapter. `docs/debugging.md` describes each field for users.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Adapter {
    /// Its name for people.
    pub(crate) name: String,
    /// `type`s of configurations it serves; the first is sent as `adapterID`.
    pub(crate) types: Vec<String>,
    /// The type that VS Code's extension for its languages goes by, when it is not the first.
    pub(crate) editor_type: Option<String>,
    /// For people.
    pub(crate) languages: Vec<String>,
    /// Extensions of the sources it debugs. Breakpoints in those of another adapter are kept from it.
    pub(crate) extensions: Vec<String>,
    /// Files that mark a project of its languages; a `*.` stands for any name.
    pub(crate) root_markers: Vec<String>,
    /// Programs that run its sources, as a script's first line or a process names them.
    pub(crate) interpreters: Vec<String>,
    /// It debugs compiled programs.
    pub(crate) executables: bool,
    /// What of it cannot be said as data.
    pub(crate) dialect: Dialect,
    /// Command lines to try, in order. See [`crate::debug::adapters::shelf`] for what may stand in them.
    pub(crate) commands: Vec<Vec<String>>,
    /// Where it is started: in the project that its program belongs to.
    pub(crate) starts_in_project: bool,
    pub(crate) transport: Transport,
    /// Arguments that make it print its version.
    pub(crate) version_args: Vec<String>,
    /// Older ones cannot be used.
    pub(crate) oldest: Option<String>,
    /// Put into a launch that does not say otherwise.
    pub(crate) launch: Map<String, Value>,
    /// Put into an attach that does not say otherwise.
    pub(crate) attach: Map<String, Value>,
    /// An attach by process id; `{pid}` stands for it.
    pub(crate) attach_by_pid: Option<Map<String, Value>>,
    /// An attach by address; `{host}` and `{port}` stand for it.
    pub(crate) attach_by_port: Option<Map<String, Value>>,
    /// Ports on which its programs usually wait for it.
    pub(crate) usual_ports: Vec<u16>,
    /// What is attached to by address speaks the protocol itself: nothing is spawned.
    pub(crate) attach_connects: bool,
    /// It starts the program by itself: a launch is sent as an attach.
    pub(crate) launch_attaches: bool,
    /// Put into a launch that is to stop at its first line.
    pub(crate) stop_on_entry: Map<String, Value>,
    /// The same for a program in Rust, whose `main` is not the system's.
    pub(crate) stop_on_entry_rust: Option<Map<String, Value>>,
    /// The function whose first line that is, for an adapter that cannot do it by an argument.
    pub(crate) entry_function: Option<String>,
    /// At the entry there is no stack yet; a step leads to the first line.
    pub(crate) entry_is_before_first_line: bool,
    /// Functions that a panic of a Rust program calls, as this debugger names them.
    pub(crate) rust_panics: Vec<String>,
    /// Filters of exceptions that are on when nobody chose, for one that has none on by itself.
    pub(crate) exceptions: Vec<String>,
    /// Fields of configurations that it calls otherwise.
    pub(crate) renames: BTreeMap<String, String>,
    /// A pause that comes while a program begins can be lost.
    pub(crate) loses_pauses: bool,
    /// How it wants hit conditions.
    pub(crate) hits: HitStyle,
    /// The context in which expressions are evaluated as expressions.
    pub(crate) evaluate_context: Option<String>,
    /// Put before an expression that was refused: another evaluator then tries.
    pub(crate) evaluate_prefix: Option<String>,
    /// The first time it is asked for threads it tells those of the beginning.
    pub(crate) first_threads_are_old: bool,
    /// Put at the end of log messages: it prints one after the other otherwise.
    pub(crate) log_end: Option<String>,
    /// Whether an `exited` event comes; when not, nobody waits for one.
    pub(crate) tells_exit_code: bool,
    /// Printed before the exit code, by one that sends no `exited`.
    pub(crate) exit_code_sign: Option<String>,
    /// It prints that only when it is told to disconnect.
    pub(crate) exit_code_on_disconnect: bool,
    /// What a program printed can come after `terminated`.
    pub(crate) late_output: bool,
    /// It answers after `terminated`, and reads what a program printed in one loop with what it is asked: what was
    /// printed before has come with its second answer.
    pub(crate) answers_after_end: bool,
    /// What it prints itself is what the program prints.
    pub(crate) prints_program_output: bool,
    /// Evaluated once in a program that was attached to, to take a delay out of its answers.
    pub(crate) attach_tuning: Option<String>,
    /// Printed before a start that fails without any other sign.
    pub(crate) failure_sign: Option<String>,
    /// How messages of its own begin that tell nothing: they are not told with what the program prints.
    pub(crate) noise: Vec<String>,
    /// What lines begin with and hold that it prints on the program's standard output, at any time.
    pub(crate) stdout_noise: Vec<(String, String)>,
    /// How lines begin that the debugged runtime puts on the program's standard error.
    pub(crate) stderr_noise: Vec<String>,
    /// Its first words are the command line of the program.
    pub(crate) tells_command_line: bool,
    /// A request of its own, sent with the configuration.
    pub(crate) extra_request: Option<ExtraRequest>,
    pub(crate) install: Option<Install>,
    /// Extensions that others debug and it does not.
    #[serde(skip)]
    foreign: BTreeSet<String>,
}

/// How an adapter wants hit conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HitStyle {
    /// `>5`, `==3`, `%2`: an operator and a number.
    #[default]
    Operators,
    /// A number: it stops at that hit and all later ones.
    AtLeast,
    /// A number: so many hits are passed over.
    Skipped,
    /// It has none.
    None,
}

/// What of an adapter cannot be said as data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Dialect {
    #[default]
    Plain,
    /// Runs in a Python interpreter, the program's own if possible; attaches to itself.
    Debugpy,
    /// Wants to know the workspace, and finds the file that a TypeScript source was compiled to.
    JsDebug,
    /// Builds packages, runs binaries.
    Delve,
    /// Wants a class and a class path instead of a file.
    Java,
}

/// How one speaks to an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Transport {
    /// Over its standard streams.
    #[default]
    Stdio,
    /// It listens on a port that it announces in a line: the text before the port.
    TcpAnnounced(String),
    /// It listens on the port that stands in its arguments as `{port}`.
    TcpGiven,
    /// It listens on the socket that stands in its arguments as `{socket}`.
    Unix,
}

/// See [`Adapter::extra_request`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtraRequest {
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) arguments: Value,
}

/// How an adapter gets onto the shelf.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Install {
    /// Python packages, into an environment of their own.
    Pip(Vec<String>),
    /// A folder of an npm package.
    Npm(NpmInstall),
    /// Packages of the system.
    Apt(Vec<String>),
    /// Nothing that Baton can do; a sentence for people.
    Manual(String),
}

/// See [`Install::Npm`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NpmInstall {
    /// Name and version.
    pub(crate) package: String,
    /// What to keep of it. `{platform}` stands for `linux-x64` and the like.
    pub(crate) folder: String,
    /// Version of what is in the folder.
    pub(crate) version: String,
    /// Files that are to be executable, below the folder; all of a folder when it ends in `/`.
    #[serde(default)]
    pub(crate) executable: Vec<String>,
    /// Java sources to compile, below the folder.
    #[serde(default)]
    pub(crate) javac: Vec<String>,
}

/// The user's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserFile {
    adapters: Vec<Map<String, Value>>,
}

/// The adapters that come with Baton.
const BUILT_IN: &str = include_str!("table.json");

impl Table {
    /// The table with what the user's file says now.
    ///
    /// A table lives as long as the process, because sessions refer to its adapters; there is one for each content
    /// the file had.
    pub(crate) fn load(shelf: &Shelf) -> Result<&'static Self, DebugError> {
        static LOADED: Mutex<BTreeMap<Option<String>, &'static Table>> = Mutex::new(BTreeMap::new());
        let text = shelf.config.as_deref().and_then(|path| std::fs::read_to_string(path).ok());
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = loaded.get(&text) {
            return Ok(table);
        }
        let table = Self::parse(BUILT_IN, text.as_deref()).map_err(|problem| {
            let path = shelf.config.as_deref().unwrap_or(Path::new("adapters.json")).display();
            DebugError::BadConfiguration { message: format!("{path} cannot be used: {problem}") }
        })?;
        let table: &'static Self = Box::leak(Box::new(table));
        loaded.insert(text, table);
        Ok(table)
    }

    /// The built-in table with the user's changes: an entry with a known name replaces the fields it has, one with
    /// a new name comes first.
    fn parse(built_in: &str, user: Option<&str>) -> Result<Self, String> {
        let mut entries = read_entries(built_in)?;
        for change in user.map(read_entries).transpose()?.unwrap_or_default().into_iter().rev() {
            let name = change.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            if name.is_empty() {
                return Err("an adapter has no `name`".to_owned());
            }
            match entries.iter_mut().find(|entry| entry.get("name").is_some_and(|known| *known == name)) {
                Some(entry) => entry.extend(change),
                None => entries.insert(0, change),
            }
        }
        let mut adapters = entries.into_iter().map(to_adapter).collect::<Result<Vec<_>, _>>()?;
        let all: BTreeSet<String> =
            adapters.iter().flat_map(|adapter| &adapter.extensions).cloned().collect();
        for adapter in &mut adapters {
            let own: BTreeSet<String> = adapter.extensions.iter().cloned().collect();
            adapter.foreign = all.difference(&own).cloned().collect();
        }
        let editors = adapters.iter().map(Adapter::editor_of).collect();
        Ok(Self { adapters, editors })
    }

    /// The adapter with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Adapter> {
        self.adapters.iter().find(|adapter| adapter.name == name)
    }

    /// What VS Code's debugger for configurations of this type is, when its ways are known.
    pub(crate) fn editor_of(&self, kind: &str) -> Option<&Adapter> {
        let is_first = |adapter: &Adapter| adapter.editor_types().next() == Some(kind);
        let serves = |adapter: &Adapter| adapter.editor_types().any(|known| known == kind);
        let adapters = &self.adapters;
        let index = adapters.iter().position(is_first).or_else(|| adapters.iter().position(serves))?;
        self.editors.get(index)
    }

    /// Names of all, for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.adapters.iter().map(|adapter| adapter.name.as_str()).collect();
        names.join(", ")
    }
}

impl Adapter {
    /// Whether it says this itself, and it tells nothing.
    pub(crate) fn is_noise(&self, text: &str) -> bool {
        self.noise.iter().any(|beginning| text.starts_with(beginning))
    }

    /// What the program itself put on its standard error.
    pub(crate) fn without_stderr_noise(&self, text: String) -> String {
        let is_noise =
            |line: &str| self.stderr_noise.iter().any(|beginning| line.starts_with(beginning.as_str()));
        if !text.lines().any(is_noise) {
            return text;
        }
        text.split_inclusive('\n').filter(|line| !is_noise(line)).collect()
    }

    /// What the program itself put on its standard output.
    pub(crate) fn without_stdout_noise(&self, text: String) -> String {
        let is_noise = |line: &str| {
            self.stdout_noise.iter().any(|(beginning, more)| {
                line.strip_prefix(beginning.as_str()).is_some_and(|rest| rest.contains(more.as_str()))
            })
        };
        if !text.lines().any(is_noise) {
            return text;
        }
        text.split_inclusive('\n').filter(|line| !is_noise(line)).collect()
    }

    /// What VS Code may call it, its own name first.
    pub(crate) fn editor_types(&self) -> impl Iterator<Item = &str> {
        self.editor_type.iter().chain(&self.types).map(String::as_str)
    }

    /// What VS Code's debugger is to the engine.
    pub(crate) fn editor() -> Self {
        Self { name: "VS Code".to_owned(), types: vec!["vscode".to_owned()], ..Self::default() }
    }

    /// The same for an adapter whose ways are known, in any window.
    fn editor_of(known: &Self) -> Self {
        Self {
            evaluate_context: known.evaluate_context.clone(),
            evaluate_prefix: known.evaluate_prefix.clone(),
            stdout_noise: known.stdout_noise.clone(),
            stderr_noise: known.stderr_noise.clone(),
            tells_command_line: known.tells_command_line,
            loses_pauses: known.loses_pauses,
            ..Self::editor()
        }
    }

    /// Whether breakpoints in this file are its business.
    pub(crate) fn serves_source(&self, path: &Path) -> bool {
        let extension = path.extension().and_then(|extension| extension.to_str());
        self.extensions.is_empty() || extension.is_none_or(|extension| !self.foreign.contains(extension))
    }
}

fn read_entries(text: &str) -> Result<Vec<Map<String, Value>>, String> {
    let value = parse_jsonc(text).map_err(|problem| problem.to_string())?;
    let file: UserFile = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(file.adapters)
}

fn to_adapter(entry: Map<String, Value>) -> Result<Adapter, String> {
    let name = entry.get("name").and_then(Value::as_str).unwrap_or("?").to_owned();
    let adapter: Adapter =
        serde_json::from_value(Value::Object(entry)).map_err(|error| format!("adapter {name}: {error}"))?;
    if adapter.types.is_empty() {
        return Err(format!("adapter {name}: `types` must name at least one type of configuration"));
    }
    if adapter.dialect != Dialect::Debugpy && adapter.commands.iter().all(Vec::is_empty) {
        return Err(format!("adapter {name}: `commands` must hold at least one command line"));
    }
    let has = |placeholder: &str| {
        adapter.commands.iter().all(|command| command.iter().any(|part| part.contains(placeholder)))
    };
    match adapter.transport {
        Transport::TcpGiven if !has("{port}") => {
            Err(format!("adapter {name}: its commands need a `{{port}}`"))
        }
        Transport::Unix if !has("{socket}") => {
            Err(format!("adapter {name}: its commands need a `{{socket}}`"))
        }
        _ => Ok(adapter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_is_sound() {
        let table = Table::parse(BUILT_IN, None).unwrap();
        let mut names = BTreeSet::new();
        for adapter in &table.adapters {
            assert!(names.insert(&adapter.name), "{} stands there twice", adapter.name);
            assert!(!adapter.languages.is_empty(), "{} names no language", adapter.name);
            assert!(adapter.install.is_some(), "{} says nothing of its installation", adapter.name);
        }
        assert_eq!(names.len(), 8, "{}", table.names());
    }

    #[test]
    fn vs_codes_debuggers_evaluate_as_the_same_ones_do_elsewhere() {
        let table = Table::parse(BUILT_IN, None).unwrap();
        let context = |kind| table.editor_of(kind).unwrap().evaluate_context.as_deref();
        assert_eq!((context("debugpy"), context("pwa-node")), (Some("repl"), Some("repl")));
        assert_eq!((context("cppdbg"), context("lldb-dap"), context("lldb")), (None, None, None));
        assert_eq!(table.editor_of("lldb").unwrap().evaluate_prefix.as_deref(), Some("/nat "));
        assert!(table.editor_of("dart").is_none());
    }

    #[test]
    fn what_gdb_says_of_breakpoints_is_not_what_the_program_prints() {
        let table = Table::parse(BUILT_IN, None).unwrap();
        let printed = |text: &str| table.find("gdb").unwrap().without_stdout_noise(text.to_owned());
        let pending = "No source file named /w/b.c.\nBreakpoint 1 (-source /w/b.c -line 4) pending.\n";
        assert_eq!(printed(pending), "");
        assert_eq!(printed("\u{274c}\u{fe0f} No source file named /w/b.c.\nsum 3\n"), "sum 3\n");
        assert_eq!(printed("Function \"price\" not defined.\n"), "");
        assert_eq!(printed("Breakpoint 2 at 0x555555555251: file a.c, line 4.\n"), "");
        assert_eq!(printed("Breakpoint 2, he said\n"), "Breakpoint 2, he said\n");
        assert_eq!(printed("sum 3\n"), "sum 3\n");
    }

    #[test]
    fn the_users_file_adds_and_changes() {
        let user = r#"{
            // comments are allowed
            "adapters": [
                {"name": "rdbg", "types": ["ruby"], "extensions": ["rb"], "commands": [["rdbg", "{port}"]], "transport": "tcp_given"},
                {"name": "gdb", "oldest": "15"},
            ]
        }"#;
        let table = Table::parse(BUILT_IN, Some(user)).unwrap();
        assert_eq!(table.adapters[0].name, "rdbg");
        let gdb = table.find("gdb").unwrap();
        assert_eq!(gdb.oldest.as_deref(), Some("15"));
        assert!(gdb.types.contains(&"gdb".to_owned()));
        assert!(!gdb.serves_source(Path::new("/a.rb")), "others' files are not its business");
        assert!(gdb.serves_source(Path::new("/a.c")) && gdb.serves_source(Path::new("/README")));
    }

    #[test]
    fn the_documented_example_loads_and_every_field_is_documented() {
        let text = include_str!("../../../../docs/debugging.md");
        let example = text.split("```json").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let table = Table::parse(BUILT_IN, Some(example)).unwrap();
        assert_eq!(table.adapters[0].name, "rdbg");
        assert_eq!(table.find("gdb").unwrap().commands[0][0], "/opt/gdb/bin/gdb");
        let error = serde_json::from_str::<Adapter>(r#"{"?": 1}"#).unwrap_err().to_string();
        let fields: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        assert!(fields.len() > 25, "{error}");
        for field in fields {
            assert!(text.contains(&format!("`{field}`")), "docs/debugging.md does not tell of `{field}`");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (user, expected) in [
            (r#"{"adapters": [{"types": ["x"]}]}"#, "has no `name`"),
            (r#"{"adapters": [{"name": "x", "typs": []}]}"#, "adapter x: unknown field `typs`"),
            (r#"{"adapters": [{"name": "x", "commands": [["y"]]}]}"#, "adapter x: `types`"),
            (r#"{"adapters": [{"name": "x", "types": ["x"]}]}"#, "adapter x: `commands`"),
            (
                r#"{"adapters": [{"name": "x", "types": ["x"], "commands": [["y"]], "transport": "tcp_given"}]}"#,
                "`{port}`",
            ),
            (r#"{"adapters": 1}"#, "invalid type"),
            ("{\n\"adapters\": [,]}", "line 2"),
        ] {
            let problem = Table::parse(BUILT_IN, Some(user)).unwrap_err();
            assert!(problem.contains(expected), "{user}: {problem}");
        }
    }
}
