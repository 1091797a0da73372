//! The toolset `windows`: what a client can do without any window.

use std::time::Duration;

use baton_proto::control::{AiHandover, WindowKind, WindowRef, WindowState};
use baton_proto::ids::WindowId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::Edge;
use super::envelope;
use crate::http::respond::{RpcError, ToolFailure};
use crate::resolve::{Unresolved, resolve};
use crate::roster::Roster;

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
            "description": "Makes another window the live one, which answers tool calls from then on. The user may be asked in that window first.",
            "inputSchema": {
                "type": "object",
                "properties": { "window": { "type": "string", "description": "Id, unique id prefix, name or folder" } },
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

/// Runs one of the tools; `None` when `name` is not one.
pub(crate) async fn call(
    edge: &Edge,
    name: &str,
    arguments: Option<&serde_json::value::RawValue>,
    client: &str,
) -> Option<Result<Value, ToolFailure>> {
    match name {
        "list_windows" => Some(Ok(list(&edge.roster()))),
        "activate_window" => Some(activate(edge, arguments, client).await),
        _ => None,
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

fn list(roster: &Roster) -> Value {
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
    json!({
        "status": "success",
        "live": roster.live_window().map(|(window, _)| &window.id),
        "windows": windows.collect::<Vec<_>>(),
    })
}

async fn activate(
    edge: &Edge,
    arguments: Option<&serde_json::value::RawValue>,
    client: &str,
) -> Result<Value, ToolFailure> {
    #[derive(Deserialize)]
    struct Arguments {
        window: String,
    }
    let arguments: Arguments = envelope::params(arguments).map_err(|error: RpcError| ToolFailure {
        code: "invalid_arguments",
        message: error.message,
        hint: "Give the window as {\"window\": ID}; list_windows lists them.".to_owned(),
        candidates: Vec::new(),
    })?;
    let roster = edge.roster();
    let window =
        resolve(&roster, &arguments.window).map_err(|unresolved| unresolved_failure(&roster, unresolved))?;
    let target = window.to_ref();
    if roster.live_window().is_some_and(|(live, _)| live.id == target.id) {
        return Ok(json!({ "status": "success", "window": target }));
    }
    let ask_for = match (roster.settings.ai_handover, window.kind) {
        (AiHandover::Always, _) => None,
        (AiHandover::Ask, WindowKind::Vscode) => Some(client.to_owned()),
        (AiHandover::Ask, WindowKind::Headless) => {
            let why = "needs the user's consent, and a headless window has nobody to ask";
            return Err(refused(&target, why));
        }
        (AiHandover::Never, _) => {
            return Err(refused(&target, "is for the user alone (setting ai_handover: never)"));
        }
    };
    let was_asked = ask_for.is_some();
    edge.hand_over(&target.id, ask_for).await.map_err(|why| ToolFailure {
        code: "handover_failed",
        message: format!("{:?} did not become live: {why}.", target.name),
        hint: "Call list_windows to see where the windows stand.".to_owned(),
        candidates: vec![target.clone()],
    })?;
    if edge.is_live_within(&target.id, ACTIVATE_TIMEOUT).await {
        return Ok(json!({ "status": "success", "window": target }));
    }
    let why = if was_asked { "the user did not agree in time" } else { "it did not become live in time" };
    Err(ToolFailure {
        code: "not_confirmed",
        message: format!("{:?} is not live: {why}.", target.name),
        hint: format!("Ask the user, who can also run `baton take {}`.", target.id),
        candidates: vec![target],
    })
}

fn refused(target: &WindowRef, why: &str) -> ToolFailure {
    ToolFailure {
        code: "handover_refused",
        message: format!("Making {:?} live {why}.", target.name),
        hint: format!(
            "Ask the user to run `baton take {}`, or `baton settings ai_handover always` to agree once and for all.",
            target.id
        ),
        candidates: vec![target.clone()],
    }
}

fn unresolved_failure(roster: &Roster, unresolved: Unresolved) -> ToolFailure {
    let (code, candidates) = match &unresolved {
        Unresolved::Unknown { .. } => {
            ("unknown_window", roster.windows.values().take(10).map(|window| window.to_ref()).collect())
        }
        Unresolved::Ambiguous { candidates, .. } => ("ambiguous_window", candidates.clone()),
    };
    let hint = "Call list_windows and give the id of one window.".to_owned();
    ToolFailure { code, message: format!("{unresolved}."), hint, candidates }
}
