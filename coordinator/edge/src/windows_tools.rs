//! The toolset `windows`: what a client can do without any window.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_election::resolve::{REGISTRATION, Unresolved, resolve};
use baton_election::roster::Roster;
use baton_link::logs::AUDIT;
use baton_mcp::envelope;
use baton_mcp::fault::{RpcError, ToolFailure};
use baton_proto::control::{AiHandover, WindowKind, WindowRef, WindowState};
use baton_proto::edge::Heard;
use baton_proto::ids::WindowId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tracing::info;

use super::Edge;
use super::heard::heard;
use super::route::{self, Pin, shown};

/// Name of the toolset.
pub(crate) const TOOLSET: &str = "windows";
/// How long `activate_window` waits for the window to become live, or for the user to answer.
const ACTIVATE_TIMEOUT: Duration = Duration::from_secs(30);

/// What the edge asks of the keeper for a client.
#[derive(Debug)]
pub struct HandoverRequest {
    /// The window that is to become live.
    pub window: WindowId,
    /// The client's own name, when the user must be asked in that window; `None` makes it live at once.
    pub ask_for: Option<String>,
    /// Whether it was done (or asked), or why it was not.
    pub reply: oneshot::Sender<Result<(), String>>,
}

/// Where [`HandoverRequest`]s go.
pub type Handovers = mpsc::Sender<HandoverRequest>;

/// The tools as clients see them.
pub(crate) fn definitions() -> [Value; 2] {
    [
        json!({
            "name": "list_windows",
            "title": "List windows",
            "description": "Lists the open windows with their folders and debug sessions, and says which one is live.",
            "inputSchema": { "type": "object", "properties": {} },
            "outputSchema": with_failure(json!({
                "live": { "type": ["string", "null"] },
                "windows": { "type": "array" }
            })),
            "annotations": { "readOnlyHint": true, "openWorldHint": false }
        }),
        json!({
            "name": "activate_window",
            "title": "Make a window live",
            "description": "Makes another window live, so that it answers tool calls from now on. The user \
                            may be asked in that window first.",
            "inputSchema": {
                "type": "object",
                "properties": { "window": { "type": "string", "description": "ID, name, or folder" } },
                "required": ["window"]
            },
            "outputSchema": with_failure(json!({
                "window": { "type": "object" }
            })),
            "annotations": { "readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false }
        }),
    ]
}

/// An output schema: a status, and the fields of a success. Those of an error are told in the instructions; a list
/// of tools is read with every conversation.
fn with_failure(mut properties: Value) -> Value {
    properties["status"] = json!({ "enum": ["success", "error"] });
    json!({ "type": "object", "properties": properties, "required": ["status"] })
}

/// Who calls.
pub(crate) struct Client<'a> {
    /// Its own name.
    pub(crate) name: &'a str,
    /// What it is bound to.
    pub(crate) pin: &'a Pin,
}

/// What a tool answers.
pub(crate) struct Said {
    pub(crate) content: Value,
    /// The window that it calls live.
    pub(crate) live: Option<Heard>,
}

/// Runs one of the tools; `None` when `name` is not one.
pub(crate) async fn call(
    edge: &Edge,
    name: &str,
    arguments: Option<&serde_json::value::RawValue>,
    client: &Client<'_>,
) -> Option<Result<Said, ToolFailure>> {
    match name {
        "list_windows" => Some(Ok(list(&edge.roster()))),
        "activate_window" => {
            let audit = Audit::begin(arguments, client.name);
            let result = activate(edge, arguments, client.name).await;
            audit.end(&result);
            Some(result.map(|said| Said { content: with_binding(said.content, client.pin), ..said }))
        }
        _ => None,
    }
}

/// A client that is bound hears that the live window is not its own.
fn with_binding(mut content: Value, pin: &Pin) -> Value {
    let own = match pin {
        Pin::Live => return content,
        Pin::Window(named) => format!("window {:?}", named.text.chars().take(80).collect::<String>()),
        Pin::Folder(stand) => {
            format!("the window of {}", shown(stand.bound.as_ref().unwrap_or(&stand.folder)))
        }
    };
    content["note"] =
        format!("This client stays with {own}; its own calls do not go to the live window.").into();
    content
}

/// One line in the log for each call that may change where calls go, as the agents write for theirs; one that is dropped
/// before it ended was cancelled.
struct Audit {
    window: String,
    client: String,
    since: Instant,
    outcome: &'static str,
}

impl Audit {
    fn begin(arguments: Option<&serde_json::value::RawValue>, client: &str) -> Self {
        const MAX_TEXT: usize = 200;
        #[derive(Default, Deserialize)]
        struct Named {
            #[serde(default)]
            window: String,
        }
        // Quoted: no line end is left in it.
        let quoted = |text: &str| format!("{:?}", text.chars().take(MAX_TEXT).collect::<String>());
        let named: Named = envelope::params(arguments).unwrap_or_default();
        let (window, client) = (quoted(&named.window), quoted(client));
        Self { window, client, since: Instant::now(), outcome: "cancelled" }
    }

    fn end(mut self, result: &Result<Said, ToolFailure>) {
        self.outcome = result.as_ref().map_or_else(|failure| failure.code, |_| "success");
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        let Self { window, client, since, outcome } = self;
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        info!(target: AUDIT, parent: None, tool = %"activate_window", %window, %client, %outcome, ms);
    }
}

#[derive(Serialize)]
struct ListedWindow<'a> {
    id: &'a WindowId,
    name: &'a str,
    folders: &'a [String],
    kind: WindowKind,
    state: WindowState,
    responsive: bool,
    debug_sessions: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    users_sessions: Vec<&'a str>,
}

fn list(roster: &Roster) -> Said {
    let windows = roster.windows.values().map(|window| ListedWindow {
        id: &window.id,
        name: &window.name,
        folders: &window.folders,
        kind: window.kind,
        state: window.state,
        responsive: window.responsive,
        debug_sessions: window.debug_sessions.iter().map(|session| session.id.as_str()).collect(),
        users_sessions: {
            let users = window.debug_sessions.iter().filter(|session| session.by_user);
            users.map(|session| session.id.as_str()).collect()
        },
    });
    let live = roster.live_window().map(|(window, _)| window);
    let content = json!({
        "status": "success",
        "live": live.map(|window| &window.id),
        "windows": windows.collect::<Vec<_>>(),
    });
    Said { content, live: live.map(|window| heard(window)) }
}

async fn activate(
    edge: &Edge,
    arguments: Option<&serde_json::value::RawValue>,
    client: &str,
) -> Result<Said, ToolFailure> {
    #[derive(Deserialize)]
    struct Arguments {
        window: String,
    }
    let arguments: Arguments = envelope::params(arguments).map_err(|error: RpcError| ToolFailure {
        code: "invalid_arguments",
        message: error.message,
        hint: "Pass {\"window\": ID}; call list_windows for the IDs.".to_owned(),
        candidates: Vec::new(),
    })?;
    let is_heard_of =
        |roster: &Arc<Roster>| !matches!(resolve(roster, &arguments.window), Err(Unresolved::Unknown { .. }));
    edge.settle(REGISTRATION, is_heard_of).await;
    let roster = edge.roster();
    let window =
        resolve(&roster, &arguments.window).map_err(|unresolved| unresolved_failure(&roster, unresolved))?;
    let target = window.to_ref();
    let is_live =
        || Said { content: json!({ "status": "success", "window": target }), live: Some(heard(window)) };
    if roster.live_window().is_some_and(|(live, _)| live.id == target.id) {
        return Ok(is_live());
    }
    let ask_for = match (roster.settings.ai_handover, window.kind) {
        (AiHandover::Always, _) => None,
        (AiHandover::Ask, WindowKind::Vscode) => Some(client.to_owned()),
        (AiHandover::Ask, WindowKind::Headless) => {
            let why = "needs the user's consent, and nobody can be asked in a headless window";
            return Err(refused(&target, why));
        }
        (AiHandover::Never, _) => {
            return Err(refused(&target, "is up to the user (setting ai_handover=never)"));
        }
    };
    let was_asked = ask_for.is_some();
    edge.hand_over(&target.id, ask_for).await.map_err(|why| ToolFailure {
        code: "handover_failed",
        message: format!("{:?} did not become live: {why}.", target.name),
        hint: "Call list_windows to see the windows.".to_owned(),
        candidates: vec![target.clone()],
    })?;
    if edge.is_live_within(&target.id, ACTIVATE_TIMEOUT).await {
        return Ok(is_live());
    }
    let why = if was_asked { "the user did not agree in time" } else { "it did not become live in time" };
    Err(ToolFailure {
        code: "not_confirmed",
        message: format!("{:?} is not live: {why}.", target.name),
        hint: format!("Ask the user to run `baton take {}`.", target.id),
        candidates: vec![target],
    })
}

fn refused(target: &WindowRef, why: &str) -> ToolFailure {
    ToolFailure {
        code: "handover_refused",
        message: format!("Making {:?} live {why}.", target.name),
        hint: format!(
            "Ask the user to run `baton take {}`, or `baton settings ai_handover always` to always allow it.",
            target.id
        ),
        candidates: vec![target.clone()],
    }
}

fn unresolved_failure(roster: &Roster, unresolved: Unresolved) -> ToolFailure {
    let hint = "Call list_windows, and use the ID of one window.".to_owned();
    ToolFailure { hint, ..route::unknown(roster, unresolved) }
}

#[cfg(test)]
mod tests {
    use baton_proto::discovery::{KEY_LEN, Secret};
    use tokio::sync::watch;
    use tokio_util::sync::CancellationToken;

    use super::super::seen::{End, Named, Observer};
    use super::*;

    struct Nobody;

    impl Observer for Nobody {
        fn came(&self, _: &Named<'_>, _: Option<&str>) {}
        fn held(&self, _: &str, _: bool) {}
        fn sent(&self, _: &str, _: &WindowId) {}
        fn over(&self, _: &Named<'_>, _: Option<End>) {}
    }

    /// A client that names a window right after a restart is not told that there is none.
    #[tokio::test(start_paused = true)]
    async fn a_window_that_registers_again_is_waited_for_after_a_restart() {
        let all = Arc::new(route::tests::roster());
        let (roster, seen) =
            watch::channel(Arc::new(Roster { windows: Default::default(), ..(*all).clone() }));
        let (secret, closing) = (Secret::new([5; KEY_LEN]), CancellationToken::new());
        let edge = Edge::new((&secret, None), seen, mpsc::channel(1).0, closing, Arc::new(Nobody));
        let asks = async |window: &str| {
            let arguments = serde_json::value::to_raw_value(&json!({ "window": window })).unwrap();
            let since = tokio::time::Instant::now();
            let said = activate(&edge, Some(&arguments), "test").await;
            (said.map(|said| said.content["window"]["id"].clone()), since.elapsed())
        };
        let late = Duration::from_millis(900);
        let (asked, ()) = tokio::join!(asks("a"), async {
            tokio::time::sleep(late).await;
            roster.send_replace(all);
        });
        assert_eq!((asked.0.unwrap(), asked.1), (json!("a"), late));
        let (refused, waited) = asks("nope").await;
        assert_eq!((refused.unwrap_err().code, waited), ("unknown_window", REGISTRATION - late));
        assert_eq!(asks("nope").await.1, Duration::ZERO, "later nobody waits");
    }
}
