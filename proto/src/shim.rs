//! Window agent <-> VS Code extension: JSON-RPC over the agent's standard input and output, `Content-Length` framed.
//!
//! The extension starts the agent as its child. The extension knows VS Code and nothing else; the agent knows
//! everything else and no VS Code. The TypeScript types are generated from this file into
//! `vscode-shim/src/protocol.ts`; a test of this crate fails when the two drift apart.
//!
//! An error that answers a request has a sentence for its message and, where that can be translated, a [`Problem`]
//! as its data.
//! Fields an older side does not know are ignored, and new ones are optional.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::control::{Outcome, PortChange, PortChanged, Status, WindowRef, WindowState};
use crate::ids::WindowId;

/// Exit code of an agent that is to be started again at once (R7).
pub const EXIT_RESTART: u8 = 75;

/// A call that is answered.
pub trait Request {
    /// Its name on the wire.
    const METHOD: &'static str;
    /// What it takes.
    type Params: Serialize + DeserializeOwned;
    /// What it gives.
    type Answer: Serialize + DeserializeOwned;
}

/// A message that is not answered.
pub trait Notification {
    /// Its name on the wire.
    const METHOD: &'static str;
    /// What it says.
    type Params: Serialize + DeserializeOwned;
}

/// One line of the contract, for the generator of TypeScript types.
#[derive(Debug)]
pub struct Method {
    /// Name of the marker type.
    pub name: &'static str,
    /// Name on the wire.
    pub method: &'static str,
    /// What it takes.
    pub params: Schema,
    /// What it gives; `None` for a notification.
    pub answer: Option<Schema>,
}

macro_rules! contract {
    (
        requests { $($(#[$request_doc:meta])* $request:ident = $request_method:literal: $take:ty => $give:ty;)* }
        notifications { $($(#[$notice_doc:meta])* $notice:ident = $notice_method:literal: $say:ty;)* }
    ) => {
        $(
            $(#[$request_doc])*
            #[derive(Debug)]
            pub enum $request {}
            impl Request for $request {
                const METHOD: &'static str = $request_method;
                type Params = $take;
                type Answer = $give;
            }
        )*
        $(
            $(#[$notice_doc])*
            #[derive(Debug)]
            pub enum $notice {}
            impl Notification for $notice {
                const METHOD: &'static str = $notice_method;
                type Params = $say;
            }
        )*
        /// The whole contract.
        pub fn contract(generator: &mut SchemaGenerator) -> Vec<Method> {
            vec![
                $(Method {
                    name: stringify!($request),
                    method: $request_method,
                    params: generator.subschema_for::<$take>(),
                    answer: Some(generator.subschema_for::<$give>()),
                },)*
                $(Method {
                    name: stringify!($notice),
                    method: $notice_method,
                    params: generator.subschema_for::<$say>(),
                    answer: None,
                },)*
            ]
        }
    };
}

contract! {
    requests {
        // Extension -> agent.
        /// The user presses take, start, stop or restart.
        Act = "window/act": Action => Outcome;
        /// R8.
        SetAutoStart = "window/setAutoStart": AutoStart => Outcome;
        /// Everything there is to list: windows, URL, port.
        GetStatus = "baton/status": Nothing => Status;
        /// The user moves the coordinator to another port.
        ChangePort = "baton/changePort": PortChange => PortChanged;
        /// Settings of the user's that are to be carried out.
        TakeSettings = "baton/settings": EditorSettings => SettingsTaken;
        /// The AI clients there are configurations for.
        ListClients = "baton/clients": Nothing => Clients;
        /// The configuration that one client wants.
        GetClientConfig = "baton/clientConfig": ClientConfigWish => ClientConfig;
        /// What clients do in this window.
        GetWork = "window/work": Nothing => Work;
        /// The coordinator's page, for a browser.
        OpenPage = "baton/openPage": Nothing => PagePlace;
        /// URL and token for VS Code's own MCP client.
        GetEndpoint = "baton/endpoint": Nothing => Endpoint;

        // Agent -> extension.
        /// An AI client asks for this window; the user is asked.
        AskHandover = "window/askHandover": HandoverQuestion => HandoverAnswer;
        /// Starts a launch configuration or a compound.
        StartInEditor = "debug/start": EditorStart => EditorStarted;
        /// Sends a DAP request to a session.
        RequestInEditor = "debug/request": EditorRequest => EditorResponse;
        /// Ends a session.
        StopInEditor = "debug/stop": EditorSessionRef => Nothing;
        /// Gives up a start that has led to no session yet: what still begins of it is ended.
        GiveUpInEditor = "debug/giveUp": EditorStartRef => Nothing;
        /// Adds a breakpoint to the editor's.
        AddEditorBreakpoint = "debug/addBreakpoint": EditorBreakpoint => EditorBreakpoint;
        /// Removes breakpoints of the editor.
        RemoveEditorBreakpoints = "debug/removeBreakpoints": EditorBreakpointIds => Nothing;
        /// Which exceptions stop the sessions that are to come.
        SetEditorExceptions = "debug/setExceptions": EditorExceptions => Nothing;
        /// Opens a file, starts what serves its language, and tells what is not saved.
        OpenInEditor = "code/open": CodeFile => CodeOpened;
        /// Runs a command of VS Code's.
        ExecuteInEditor = "code/execute": CodeCommand => CodeResult;
        /// What VS Code finds wrong.
        GetEditorProblems = "code/problems": CodeScope => CodeProblems;
        /// Changes files, all or none.
        ApplyInEditor = "code/apply": CodeEdits => CodeApplied;
    }
    notifications {
        // Extension -> agent.
        /// Sent by a timer of the extension host's event loop, and at once when something in it changed: it
        /// feeds the heartbeats, so that a host that hangs is noticed (R10).
        Beat = "window/beat": WindowBeat;
        /// A debug session of the editor began.
        EditorSessionBegan = "debug/sessionBegan": EditorSession;
        /// A message between the editor and an adapter.
        EditorSessionMessage = "debug/message": EditorMessage;
        /// A debug session of the editor is over.
        EditorSessionEnded = "debug/sessionEnded": EditorSessionRef;
        /// All breakpoints of the editor; at the start and after every change.
        EditorBreakpointsChanged = "debug/breakpoints": EditorBreakpoints;
        /// What the editor can debug; at the start and when extensions come and go.
        EditorDebuggersChanged = "debug/debuggers": EditorDebuggers;
        /// What can be started besides the launch.json of each folder; at the start and after every change.
        EditorLaunchChanged = "debug/launch": EditorLaunch;

        // Agent -> extension.
        /// At once for each beat, so that an agent that hangs is noticed. (A request could not be sent instead: one
        /// that cannot be written is thrown into the extension host.)
        BeatHeard = "window/beatHeard": Nothing;
        /// First message, and after every change: what the status bar shows.
        StandingChanged = "window/standing": Standing;
    }
}

/// No content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nothing {}

/// Where this window stands, as the status bar shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// Where it stands; null while the agent has no coordinator.
    pub state: Option<WindowState>,
    /// The live window.
    pub live: Option<WindowRef>,
    /// Why, in a few words.
    pub why: String,
    /// The URL for clients; null while it is not known.
    pub url: Option<String>,
    /// What a person has to do something about.
    pub problem: Option<Problem>,
    /// Version of the agent.
    #[serde(default)]
    pub version: String,
    /// This window.
    #[serde(default)]
    pub window: Option<WindowId>,
    /// Whether it may become live by itself.
    #[serde(default)]
    pub auto_start: bool,
}

/// Something that keeps Baton from working and that a person can mend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Stable: `port_taken`, `coordinator_unreachable`, ...
    pub code: String,
    /// One sentence that says what to try, in English; `{0}` stands for the first of `args`.
    pub message: String,
    /// What the sentence names (a port, a program); without it, the sentence can be translated.
    #[serde(default)]
    pub args: Vec<String>,
}

/// What the user can do to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// R4.
    Take,
    /// R4, for a window that is off.
    Start,
    /// R5.
    Stop,
    /// R7.
    Restart,
}

/// A verb and the window it is meant for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// What to do.
    pub verb: Verb,
    /// To which window; absent: to this one.
    #[serde(default)]
    pub window: Option<WindowId>,
}

/// The window's auto-start setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AutoStart {
    /// On or off.
    pub auto_start: bool,
}

/// Settings `baton.*` of the user's, by their names without `baton.`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditorSettings {
    /// Those that are to be carried out, as they stand in the user's file; the others stay as they are.
    pub values: Map<String, Value>,
}

/// They are carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsTaken {
    /// The new URL, when the port is another one now.
    pub moved_to: Option<String>,
}

/// A sign of life of the extension host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowBeat {
    /// Whether the window is focused.
    pub focused: bool,
    /// Name of the window.
    pub name: String,
    /// Its absolute folders.
    pub folders: Vec<String>,
    /// Whether the user trusts the workspace; without trust nothing is debugged.
    pub trusted: bool,
}

/// The AI clients there are configurations for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clients {
    /// In the order to show them.
    pub clients: Vec<ClientName>,
}

/// An AI client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientName {
    /// As `baton config` takes it.
    pub id: String,
    /// For people.
    pub label: String,
}

/// Which client's configuration is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientConfigWish {
    /// [`ClientName::id`].
    pub client: String,
    /// How the client reaches Baton; absent: what works best for it.
    #[serde(default)]
    pub transport: Option<Transport>,
    /// It is written into the client's own file.
    #[serde(default)]
    pub write: bool,
}

/// How a client reaches Baton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// By the URL, with the token.
    Http,
    /// By a command, without a secret.
    Stdio,
}

/// What to paste into a client's file; a sentence that says what was done, when it was to be written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientConfig {
    /// What `baton config` prints.
    pub text: String,
    /// The file that it is to be pasted into; absent when it was written there.
    #[serde(default)]
    pub file: Option<String>,
}

/// What clients do in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// Debug sessions, the user's too, oldest first.
    pub sessions: Vec<WorkSession>,
    /// Breakpoints on lines that clients set, by id.
    pub breakpoints: Vec<WorkBreakpoint>,
    /// Clients that called, the latest first.
    pub clients: Vec<WorkClient>,
}

/// A debug session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkSession {
    /// As clients name it.
    pub id: String,
    /// Name of its configuration.
    pub name: String,
    /// Whether its program is stopped.
    pub stopped: bool,
    /// The user started it.
    pub by_user: bool,
}

/// A breakpoint that a client set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkBreakpoint {
    /// Absolute.
    pub path: String,
    /// From 1.
    pub line: u32,
    /// As asked for.
    pub condition: Option<String>,
    /// What the client calls itself, as far as that is known.
    pub client: Option<String>,
}

/// A client that called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkClient {
    /// What it calls itself.
    pub name: String,
    /// Seconds since its last call began.
    pub seconds: u64,
}

/// The coordinator's page, good for one use within a minute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PagePlace {
    /// Where it is.
    pub url: String,
    /// A file that leads there, for a browser on the agent's machine: its arguments can be read by everybody there. Null
    /// when it cannot be written.
    pub file: Option<String>,
}

/// Where MCP is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// The stable URL.
    pub url: String,
    /// The client token; for the `Authorization` header.
    pub token: String,
}

/// Who asks for this window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoverQuestion {
    /// Name of the AI client.
    pub client: String,
}

/// What the user says to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoverAnswer {
    /// True: make this window live.
    pub agreed: bool,
}

/// What to start in the editor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditorStart {
    /// Handed back in [`EditorSession::start`] by the sessions that come of it.
    pub start: String,
    /// Name in launch.json; also of a compound.
    pub name: String,
    /// A configuration that is in no file; wins over `name`.
    #[serde(default)]
    pub configuration: Option<Map<String, Value>>,
    /// The folder whose launch.json is meant; absent: any folder that has the name.
    #[serde(default)]
    pub folder: Option<String>,
    /// Run without debugging.
    #[serde(default)]
    pub no_debug: bool,
}

/// How the start went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditorStarted {
    /// Why nothing runs; null when it does.
    pub failure: Option<Problem>,
}

/// A start, by its mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditorStartRef {
    /// [`EditorStart::start`].
    pub start: String,
}

/// A session of the editor, by its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditorSessionRef {
    /// VS Code's id of the session.
    pub session: String,
}

/// A debug session of the editor, whoever started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditorSession {
    /// VS Code's id of the session.
    pub session: String,
    /// The session it is a child of.
    pub parent: Option<String>,
    /// Name of its configuration.
    pub name: String,
    /// Type of its configuration.
    pub kind: String,
    /// [`EditorStart::start`], when it came of one.
    pub start: Option<String>,
    /// `launch` or `attach`.
    pub request: String,
}

/// A DAP request for an adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditorRequest {
    /// VS Code's id of the session.
    pub session: String,
    /// The DAP command.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: Value,
}

/// The answer of the adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditorResponse {
    /// Body of a successful response.
    #[serde(default)]
    pub body: Value,
    /// What the adapter said when it refused.
    #[serde(default)]
    pub refusal: Option<String>,
}

/// A DAP message between the editor and an adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditorMessage {
    /// VS Code's id of the session.
    pub session: String,
    /// True when the adapter sent it, false when the editor did.
    pub from_adapter: bool,
    /// The message.
    pub message: Value,
}

/// A breakpoint of the editor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditorBreakpoint {
    /// VS Code's id; empty for one that is to be added.
    #[serde(default)]
    pub id: String,
    /// Absolute path.
    pub path: String,
    /// 1-based.
    pub line: u32,
    /// 1-based.
    #[serde(default)]
    pub column: Option<u32>,
    /// False when the user switched it off.
    pub enabled: bool,
    /// Stop only when this expression is true.
    #[serde(default)]
    pub condition: Option<String>,
    /// Stop only at some hits.
    #[serde(default)]
    pub hit_condition: Option<String>,
    /// Log this instead of stopping.
    #[serde(default)]
    pub log_message: Option<String>,
    /// The function at whose beginning it is; path and line are nothing then.
    #[serde(default)]
    pub function: Option<String>,
}

/// All breakpoints of the editor that are in source files or on functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditorBreakpoints {
    /// In VS Code's order.
    pub breakpoints: Vec<EditorBreakpoint>,
}

/// What the editor can debug.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditorDebuggers {
    /// Types of configurations that an extension serves.
    pub types: Vec<String>,
}

/// What the workspace file and the user's settings say under `launch`, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditorLaunch {
    /// Configurations.
    pub configurations: Vec<Map<String, Value>>,
    /// Groups of configurations.
    pub compounds: Vec<Map<String, Value>>,
    /// What the configurations can ask the user for.
    pub inputs: Vec<Map<String, Value>>,
}

/// What a client chose instead of the user's own choice; sessions of the user's keep theirs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EditorExceptions {
    /// Arguments of `setExceptionBreakpoints`, of which an adapter gets what it offers; null: the user's choice.
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
}

/// Breakpoints of the editor, by their ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditorBreakpointIds {
    /// VS Code's ids.
    pub ids: Vec<String>,
}

/// A file, and what the agent knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeFile {
    /// Absolute path.
    pub path: String,
    /// SHA-256, in hex, of its text on disk with `\n` for every line break.
    pub hash: String,
}

/// A file as VS Code has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeOpened {
    /// VS Code's name of its language.
    pub language: String,
    /// Extensions that are started for that language; they run now.
    pub n_extensions: u32,
    /// False when VS Code has not yet read what the disk holds.
    pub is_current: bool,
    /// Whether a tab shows it.
    pub in_tab: bool,
    /// The files on disk whose text in VS Code is another.
    pub unsaved: Vec<CodeText>,
}

/// A text that is not on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeText {
    /// Absolute path.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// A command of VS Code's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeCommand {
    /// Its id.
    pub command: String,
    /// Its arguments. An object with the one member `$path`, `$position` (line, character) or `$range` (twice that)
    /// stands for VS Code's own; one with `$kept` (a number of [`CodeResult::kept`], an index) for what is kept.
    pub arguments: Vec<Value>,
    /// Whether later commands need the objects of the result.
    #[serde(default)]
    pub keep: bool,
}

/// What a command gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeResult {
    /// As plain objects; what the language server protocol has looks as it does there, but for numbers of kinds,
    /// which count from 0.
    #[serde(default)]
    pub result: Value,
    /// Where its objects are kept, for a while.
    #[serde(default)]
    pub kept: Option<u32>,
}

/// One file, or all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeScope {
    /// Absolute path.
    pub path: Option<String>,
}

/// What VS Code finds wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeProblems {
    /// By file.
    pub files: Vec<CodeFileProblems>,
    /// Milliseconds since the text of the file became what it is.
    pub text_age_ms: u64,
    /// Milliseconds since VS Code was told of problems of that text; null when it was not.
    pub told_age_ms: Option<u64>,
}

/// What VS Code finds wrong in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeFileProblems {
    /// Absolute path.
    pub path: String,
    /// VS Code's diagnostics; severities count from 0.
    pub problems: Vec<Value>,
}

/// Changes of several files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeEdits {
    /// By file, as they are called before the operations, with all that these touch.
    pub files: Vec<CodeFileEdits>,
    /// Before the edits, one after the other.
    #[serde(default)]
    pub operations: Vec<CodeFileOperation>,
}

/// A file or a folder that comes, goes or gets another name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeFileOperation {
    /// Absolute path; absent: it is created.
    #[serde(default)]
    pub from: Option<String>,
    /// Absolute path, where nothing is by then; absent: it is deleted.
    #[serde(default)]
    pub to: Option<String>,
    /// What is in a file that is created.
    #[serde(default)]
    pub text: Option<String>,
}

/// Changes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeFileEdits {
    /// Absolute path.
    pub path: String,
    /// SHA-256, in hex, of the text that the edits are for.
    pub hash: String,
    /// None touches another.
    pub edits: Vec<CodeEdit>,
}

/// A range, counted in UTF-16 from 0, and its new text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeEdit {
    /// Line, character, line, character.
    pub range: [u32; 4],
    /// What is there then.
    pub text: String,
}

/// Whether the changes were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeApplied {
    /// The file whose text is another one; nothing was changed then.
    pub changed: Option<String>,
    /// Why else nothing was changed.
    pub failure: Option<String>,
}
