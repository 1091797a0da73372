//! Answers what the extension asks, and tells it where the window stands.

mod sentences;
mod settings;
mod work;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_link::connection::{CallError, Connection};
use baton_link::find::{FindError, FindOptions, find, find_or_start};
use baton_link::lead;
use baton_proto::control::{Notice, Outcome, PortChange, PortChanged, WindowSettings};
use baton_proto::discovery::Role;
use baton_proto::shim::{
    Act, Action, AskHandover, AutoStart, Beat, BeatHeard, ChangePort, ClientConfig, ClientConfigWish,
    ClientName, Clients, EditorBreakpoints, EditorBreakpointsChanged, EditorDebuggers,
    EditorDebuggersChanged, EditorLaunch, EditorLaunchChanged, EditorSessionBegan, EditorSessionEnded,
    EditorSessionMessage, EditorSessionRef, Endpoint, GetClientConfig, GetEndpoint, GetStatus, GetWork,
    HandoverQuestion, ListClients, Nothing, Notification, OpenPage, PagePlace, Request, SetAutoStart,
    Standing, StandingChanged, TakeSettings, Transport, Verb, WindowBeat,
};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use self::sentences::{problem, to_wire};
use crate::identity::Identity;
use crate::report::{self, Report};
use baton_agent_base::launch_config::LaunchFile;
use baton_agent_base::process::{self, Program};
use baton_agent_base::shim::{FromExtension, INVALID_PARAMS, METHOD_NOT_FOUND, Refusal, Shim};
use baton_agent_debug::editor::Editor;
use baton_agent_tools::window::Window;

/// AI clients as people know them; the ids are those of `baton config`.
const CLIENTS: [(&str, &str); 10] = [
    ("claude-code", "Claude Code"),
    ("claude-desktop", "Claude Desktop"),
    ("cursor", "Cursor"),
    ("cline", "Cline"),
    ("roo", "Roo Code"),
    ("vscode", "VS Code"),
    ("windsurf", "Windsurf"),
    ("codex", "Codex"),
    ("gemini", "Gemini CLI"),
    ("zed", "Zed"),
];

/// `baton config` answers at once, or after it has started a coordinator.
const CONFIG_TIMEOUT: Duration = Duration::from_secs(20);

/// Notifications that wait for an engine which is busy; then the extension waits as well, and its beats with it.
const MAX_WAITING: usize = 4_096;

/// How long an answer to a client's question counts: the client has heard by then that nobody agreed.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(30);

/// One desk serves one extension.
#[derive(Clone, Debug)]
pub struct Desk {
    shim: Shim,
    window: Arc<Window>,
    identity: Arc<Identity>,
    find: FindOptions,
    editor: Editor,
    beats: watch::Sender<Option<WindowBeat>>,
    /// What the extension was told last.
    standing: Arc<Mutex<Standing>>,
    /// Held while the user is asked.
    asking: Arc<tokio::sync::Mutex<()>>,
}

impl Desk {
    /// A desk for the extension behind `shim`.
    pub fn new(
        shim: Shim,
        window: Arc<Window>,
        identity: Arc<Identity>,
        find: FindOptions,
        editor: Editor,
        beats: watch::Sender<Option<WindowBeat>>,
    ) -> Self {
        let standing = Standing {
            window: Some(window.id.clone()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Standing::default()
        };
        let standing = Arc::new(Mutex::new(standing));
        Self { shim, window, identity, find, editor, beats, standing, asking: Arc::default() }
    }

    /// Serves until the extension is gone, and then cancels `shutdown`.
    pub async fn run(self, mut messages: mpsc::Receiver<FromExtension>, shutdown: CancellationToken) {
        let (others, waiting) = mpsc::channel(MAX_WAITING);
        tokio::spawn(self.clone().take_notifications(waiting));
        while let Some(message) = messages.recv().await {
            match message {
                // Beats pass all others: those may wait for an engine that is busy.
                FromExtension::Notification { method, params } if method == Beat::METHOD => {
                    match serde_json::from_value::<WindowBeat>(params) {
                        Ok(beat) => {
                            self.window.code.set_trusted(beat.trusted);
                            self.beats.send_replace(Some(beat));
                        }
                        Err(error) => tracing::warn!(%error, "invalid beat"),
                    }
                    self.shim.tell::<BeatHeard>(&Nothing {}).await;
                }
                FromExtension::Notification { method, params } => {
                    let _ = others.send((method, params)).await;
                }
                FromExtension::Request { id, method, params } => {
                    let desk = self.clone();
                    tokio::spawn(async move {
                        let result = desk.answer(&method, params).await;
                        desk.shim.answer(id, result).await;
                    });
                }
            }
        }
        shutdown.cancel();
    }

    /// Shows the extension what the agent has to report.
    pub async fn show(self, mut reports: mpsc::Receiver<Report>) {
        while let Some(report) = reports.recv().await {
            match report {
                // The first of all: which agent speaks.
                Report::Ready { .. } => {}
                Report::Connected { port } => self.change_standing(|known| known.url = Some(to_url(port))),
                Report::State(notice) => {
                    let Ok(Notice::State { state, live, why, .. }) = serde_json::from_value(notice) else {
                        continue;
                    };
                    self.change_standing(|known| {
                        (known.state, known.live, known.why) = (Some(state), live, why);
                        known.problem = None;
                    });
                }
                Report::Problem(problem) => {
                    self.change_standing(|known| {
                        (known.state, known.live) = (None, None);
                        known.problem = Some(to_wire(problem));
                    });
                }
                Report::AskHandover { client } => {
                    tokio::spawn(self.clone().ask_handover(client));
                    continue;
                }
            }
            self.tell_standing().await;
        }
    }

    fn change_standing(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.standing.lock());
    }

    async fn tell_standing(&self) {
        self.change_standing(|known| known.auto_start = self.window.auto_start());
        let standing = self.standing.lock().clone();
        self.shim.tell::<StandingChanged>(&standing).await;
    }

    async fn take_notifications(self, mut waiting: mpsc::Receiver<(String, Value)>) {
        while let Some((method, params)) = waiting.recv().await {
            if let Err(error) = self.take_notification(&method, params).await {
                tracing::warn!(method, %error, "invalid message from the extension");
            }
        }
    }

    async fn take_notification(&self, method: &str, params: Value) -> serde_json::Result<()> {
        match method {
            EditorSessionBegan::METHOD => {
                // The user's own are there for clients to look at, too.
                if let Some(session) = self.editor.on_began(serde_json::from_value(params)?).await {
                    self.window.debugger.adopt(&session).await;
                }
            }
            EditorSessionMessage::METHOD => self.editor.on_message(serde_json::from_value(params)?).await,
            EditorSessionEnded::METHOD => {
                let ended: EditorSessionRef = serde_json::from_value(params)?;
                self.editor.on_ended(&ended.session).await;
            }
            EditorBreakpointsChanged::METHOD => {
                let all: EditorBreakpoints = serde_json::from_value(params)?;
                self.window.debugger.take_editor_breakpoints(all.breakpoints).await;
            }
            EditorDebuggersChanged::METHOD => {
                let debuggers: EditorDebuggers = serde_json::from_value(params)?;
                self.editor.on_debuggers(debuggers.types);
            }
            EditorLaunchChanged::METHOD => {
                let EditorLaunch { configurations, compounds, inputs } = serde_json::from_value(params)?;
                let inputs = inputs.into_iter().map(Value::Object).collect();
                self.window.set_editor_launch(LaunchFile::of(configurations, compounds, inputs));
            }
            _ => {}
        }
        Ok(())
    }

    async fn answer(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        match method {
            Act::METHOD => to_value(self.act(from_value(params)?).await?),
            SetAutoStart::METHOD => {
                let AutoStart { auto_start } = from_value(params)?;
                let outcome = self.set_auto_start(auto_start).await?;
                self.identity.set_auto_start(Some(auto_start));
                to_value(outcome)
            }
            GetStatus::METHOD => to_value(self.connect().await?.status().await.map_err(Refusal::new)?),
            ChangePort::METHOD => to_value(self.change_port(from_value(params)?).await?),
            TakeSettings::METHOD => to_value(self.take_settings(from_value(params)?).await?),
            ListClients::METHOD => {
                let to_client = |(id, label): (&str, &str)| ClientName { id: id.into(), label: label.into() };
                to_value(Clients { clients: CLIENTS.map(to_client).to_vec() })
            }
            GetClientConfig::METHOD => to_value(client_config(from_value(params)?).await?),
            GetWork::METHOD => to_value(work::of(&self.window).await),
            OpenPage::METHOD => to_value(self.page().await?),
            GetEndpoint::METHOD => to_value(self.endpoint().await?),
            _ => Err(Refusal::protocol(METHOD_NOT_FOUND, format!("there is no method {method}"))),
        }
    }

    async fn act(&self, action: Action) -> Result<Outcome, Refusal> {
        let window = action.window.unwrap_or_else(|| self.window.id.clone());
        self.connect().await?.order(window.as_str(), action.verb).await.map_err(Refusal::new)
    }

    async fn set_auto_start(&self, auto_start: bool) -> Result<Outcome, Refusal> {
        let change = WindowSettings { auto_start: Some(auto_start) };
        let outcome =
            self.connect().await?.change_window(&self.window.id, &change).await.map_err(Refusal::new)?;
        self.window.set_auto_start(auto_start);
        self.tell_standing().await;
        Ok(outcome)
    }

    async fn change_port(&self, change: PortChange) -> Result<PortChanged, Refusal> {
        let PortChange { port } = change;
        match find(&self.find.home).await {
            Ok(mut connection) => connection.change_port(&change).await.map_err(|error| match &error {
                CallError::Refused { failure, .. } if failure.code == "port_refused" => {
                    problem(&failure.code, vec![port.to_string()]).into()
                }
                _ => Refusal::new(error),
            }),
            // One that waits for a port which somebody else holds makes room for one on the new port.
            Err(_) => {
                let find = FindOptions { port: Some(port), ..self.find.clone() };
                let connection = find_or_start(&find).await.map_err(to_refusal)?;
                Ok(PortChanged { url: to_url(connection.hello().port) })
            }
        }
    }

    async fn page(&self) -> Result<PagePlace, Refusal> {
        let url = self.connect().await?.page_link().await.map_err(Refusal::new)?.url;
        let file = lead::write(&self.find.home, &url).inspect_err(|error| {
            tracing::warn!(%error, "the file that leads to the page cannot be written");
        });
        Ok(PagePlace { url, file: file.ok().map(|path| path.to_string_lossy().into_owned()) })
    }

    async fn endpoint(&self) -> Result<Endpoint, Refusal> {
        let connection = self.connect().await?;
        let role = Role::Client { epoch: self.find.home.stored_state().client_epoch };
        let secret = self.find.home.secret().map_err(Refusal::new)?;
        let token = secret.token(role).expose().to_owned();
        Ok(Endpoint { url: to_url(connection.hello().port), token })
    }

    async fn ask_handover(self, client: String) {
        if self.is_allowed(client).await {
            let take = Action { verb: Verb::Take, window: None };
            if let Err(Refusal { message, .. }) = self.act(take).await {
                tracing::warn!(message, "the user agreed, and the window could not be made live");
            }
        }
    }

    /// Asks the user. While one question is open no other is put: its answer is that of all who wait.
    async fn is_allowed(&self, client: String) -> bool {
        let Ok(_asking) = self.asking.try_lock() else {
            tracing::info!(client, "the user is being asked already");
            return false;
        };
        let asked = self.shim.ask::<AskHandover>(HandoverQuestion { client });
        match tokio::time::timeout(HANDOVER_TIMEOUT, asked).await {
            Ok(Ok(answer)) if answer.agreed => return true,
            Ok(Ok(_)) => tracing::info!("the user refused a handover"),
            Ok(Err(error)) => tracing::warn!(%error, "the user could not be asked"),
            Err(_) => tracing::info!("the user did not respond in time"),
        }
        false
    }

    async fn connect(&self) -> Result<Connection, Refusal> {
        find_or_start(&self.find).await.map_err(to_refusal)
    }
}

/// The same text that `baton config` prints, for it is `baton config` that prints it.
async fn client_config(wish: ClientConfigWish) -> Result<ClientConfig, Refusal> {
    let program: PathBuf = baton_link::spawn::program().map_err(Refusal::new)?;
    if !CLIENTS.iter().any(|(id, _)| *id == wish.client) {
        return Err(Refusal::new(format!("no client is called {}", wish.client)));
    }
    let transport = wish.transport.map(|transport| match transport {
        Transport::Http => "--http",
        Transport::Stdio => "--stdio",
    });
    let way = if wish.write { "--write" } else { "--json" };
    let args = ["config", &wish.client, way].into_iter().chain(transport).map(Into::into).collect();
    let program = Program { path: program, args, cwd: None, env: Vec::new() };
    let run = tokio::time::timeout(CONFIG_TIMEOUT, process::run_to_end(&program)).await;
    let failed = |why: &str| Refusal::new(format!("`baton config {}` failed{why}", wish.client));
    let output = run.ok().and_then(Result::ok).ok_or_else(|| failed("; run it for the reason"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default().to_owned();
    if !output.status.success() {
        return Err(failed(&format!(": {}", first.trim_start_matches("error: "))));
    }
    match wish.write {
        true => Ok(ClientConfig { text: first, file: None }),
        false => serde_json::from_slice(&output.stdout).map_err(|_| failed("; run it for the reason")),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn to_refusal(error: FindError) -> Refusal {
    to_wire(report::Problem::from(&error)).into()
}

fn to_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/mcp")
}

fn to_value(answer: impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(answer).map_err(Refusal::new)
}

fn from_value<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params).map_err(|error| Refusal::protocol(INVALID_PARAMS, error.to_string()))
}

#[cfg(test)]
mod tests {
    use baton_link::home::Home;
    use baton_proto::control::WindowKind;
    use baton_proto::ids::WindowId;
    use serde_json::json;

    use super::*;
    use baton_agent_base::workspace::Workspace;
    use baton_agent_debug::{Debugger, DebuggerOptions};

    #[tokio::test(start_paused = true)]
    async fn the_user_is_asked_one_question_at_a_time_whose_answer_counts_while_somebody_waits() {
        let ((shim, _keep), (extension, mut heard)) = Shim::pair();
        let dir = tempfile::tempdir().unwrap();
        let id = WindowId::try_from("w".to_owned()).unwrap();
        let debugger = Debugger::spawn(DebuggerOptions::default());
        let (workspace, _) = Workspace::open_some(&[]);
        let window = Window::new(id.clone(), "shop".to_owned(), WindowKind::Vscode, workspace, debugger);
        let identity = Arc::new(Identity::given(id));
        let find = FindOptions::new(Home::open(dir.path()).unwrap());
        let editor = Editor::new(shim.clone());
        let desk = Desk::new(shim, Arc::new(window), identity, find, editor, watch::Sender::default());

        let ask = |client: &str| {
            let (desk, client) = (desk.clone(), client.to_owned());
            tokio::spawn(async move { desk.is_allowed(client).await })
        };
        let mut next = async || match heard.recv().await {
            Some(FromExtension::Request { id, params, .. }) => (id, params["client"].clone()),
            other => panic!("{other:?}"),
        };
        let first = ask("one");
        let (late, client) = next().await;
        assert_eq!(client, "one");
        assert!(!ask("two").await.unwrap(), "the first question is open");
        // Nobody answers.
        assert!(!first.await.unwrap());
        extension.answer(late, Ok(json!({"agreed": true}))).await;
        for agreed in [true, false] {
            let again = ask("three");
            let (id, client) = next().await;
            assert_eq!(client, "three", "the second question was never put");
            extension.answer(id, Ok(json!({"agreed": agreed}))).await;
            assert_eq!(again.await.unwrap(), agreed);
        }
    }
}
