//! One tool call: held while nobody is live, routed, forwarded, and never lost.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response};
use tokio::time::Instant;

use super::Edge;
use super::cancel::Running;
use super::endpoint::Endpoint;
use super::envelope::{self, CommonParams, Request};
use super::forward::{Attempt, Call, Stop, stopped_bytes};
use super::post::Caller;
use super::revision::Era;
use super::route::{self, Decision, Wish};
use super::windows_tools;
use crate::http::body::Body;
use crate::http::respond::{self, RpcError, ToolFailure, code};
use crate::roster::Roster;

/// Pauses between two attempts at a window that refuses, when the roster says nothing new.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// All windows register again within this time after the coordinator was restarted.
const REGISTRATION: Duration = Duration::from_secs(1);

/// Answers `tools/call`.
pub(crate) async fn answer(
    edge: &Edge,
    endpoint: &Endpoint,
    caller: &Caller,
    request: &Request<'_>,
    headers: &HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let invalid = |error: &RpcError| respond::rpc_error(caller.era, Some(request.id), error);
    let params: CommonParams<'_> = match envelope::params(request.params) {
        Ok(params) => params,
        Err(error) => return invalid(&error),
    };
    let Some(name) = params.name.as_deref() else {
        return invalid(&RpcError::new(code::INVALID_PARAMS, "tools/call wants the name of a tool"));
    };
    let arguments = match envelope::routing_arguments(params.arguments) {
        Ok(arguments) => arguments,
        Err(error) => return invalid(&error),
    };
    if let Some(result) = windows_tools::call(edge, name, params.arguments, &caller.client).await {
        return match result {
            Ok(content) => {
                respond::rpc_result(request.id, &respond::tool_content(caller.era, &content, false))
            }
            Err(failure) => respond::tool_failure(caller.era, request.id, &failure),
        };
    }
    let wish = Wish {
        window: arguments.window.as_deref(),
        session: arguments.session.as_deref(),
        pin: &endpoint.pin,
    };
    // A newer window may have tools that this build has not heard of, but nothing is worth waiting for then.
    if !edge.0.catalogue.has_tool(name) && matches!(route::route(&edge.roster(), wish), Decision::Hold(_)) {
        return invalid(&unknown_tool(edge, name));
    }
    let running = match caller.session {
        Some(session) => match edge.0.cancellations.enter(session, request.id.get()) {
            Some(running) => Some(running),
            None => {
                let why = format!("a request with the id {} is running already", request.id);
                return invalid(&RpcError::new(code::INVALID_REQUEST, why));
            }
        },
        None => None,
    };
    let headers = if caller.era == Era::Stateless { mcp_headers(headers) } else { HeaderMap::new() };
    let call = Arc::new(Call { body, headers, id: request.id.to_owned(), era: caller.era, running });
    await_window(edge, wish).await;
    send(edge, &call, wish).await
}

/// Right after a restart of the coordinator, a window that nobody knows may be one that has not registered again:
/// its calls must not be refused, or go to another one, meanwhile.
async fn await_window(edge: &Edge, wish: Wish<'_>) {
    let until = edge.0.started + REGISTRATION;
    let mut roster = edge.0.roster.clone();
    let is_missing = |roster: &Roster| roster.generation > 1 && route::is_unheard_of(roster, wish);
    while Instant::now() < until && is_missing(&roster.borrow_and_update().clone()) {
        tokio::select! {
            changed = roster.changed() => if changed.is_err() { return },
            () = tokio::time::sleep_until(until) => {}
        }
    }
}

/// Routes and sends a call until it is answered, or has waited long enough.
async fn send(edge: &Edge, call: &Arc<Call>, wish: Wish<'_>) -> Response<Body> {
    let mut roster = edge.0.roster.clone();
    let mut pause = RETRY.0;
    let mut deadline = None;
    loop {
        if call.running.as_ref().is_some_and(Running::is_cancelled) {
            return respond::json(http::StatusCode::OK, stopped_bytes(call, Stop::Cancelled));
        }
        let current = roster.borrow_and_update().clone();
        let (failure, is_retry) = match route::route(&current, wish) {
            Decision::Send(target) => match edge.0.windows.send(&target, call).await {
                Attempt::Answered(response) => return response,
                Attempt::NotRun(why) => {
                    tracing::debug!(window = %target.window.id, why, "a call did not run; it waits");
                    (unreachable_window(&target.window.name, why), true)
                }
            },
            Decision::Hold(failure) => (failure, false),
            Decision::Refuse(failure) => return respond::tool_failure(call.era, &call.id, &failure),
        };
        let hold = Duration::from_millis(current.settings.hold_calls_ms);
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + hold);
        let cancelled = async {
            match &call.running {
                Some(running) => running.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = roster.changed() => if changed.is_err() {
                return respond::tool_failure(call.era, &call.id, &failure);
            },
            () = tokio::time::sleep(pause), if is_retry => pause = (pause * 2).min(RETRY.1),
            // Answered above.
            () = cancelled => {}
            () = tokio::time::sleep_until(deadline) => {
                return respond::tool_failure(call.era, &call.id, &failure);
            }
        }
        if Instant::now() >= deadline {
            return respond::tool_failure(call.era, &call.id, &failure);
        }
    }
}

/// The headers that a window shall see: those that describe the message itself.
fn mcp_headers(headers: &HeaderMap) -> HeaderMap {
    let is_passed = |name: &HeaderName| {
        let name = name.as_str();
        name == "mcp-method" || name == "mcp-name" || name.starts_with("mcp-param-")
    };
    let passed = headers.iter().filter(|(name, _)| is_passed(name));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn unknown_tool(edge: &Edge, name: &str) -> RpcError {
    let shortened: String = name.chars().take(80).collect();
    let similar = edge.0.catalogue.similar(name);
    let hint = if similar.is_empty() {
        "tools/list lists them".to_owned()
    } else {
        format!("did you mean {}?", similar.join(" or "))
    };
    RpcError::new(code::INVALID_PARAMS, format!("unknown tool {shortened:?}; {hint}"))
}

fn unreachable_window(name: &str, why: &str) -> ToolFailure {
    ToolFailure {
        code: "window_unreachable",
        message: format!("The window {name:?} could not take the call ({why}); it was not run."),
        hint: "Try again, or ask the user to restart the window: `baton restart WINDOW`.".to_owned(),
        candidates: Vec::new(),
    }
}
