//! One tool call: held while nobody is live, routed, forwarded, and never lost.

use std::sync::Arc;
use std::time::Duration;

use baton_election::resolve::REGISTRATION;
use baton_election::roster::Roster;
use baton_election::stand::Stand;
use baton_http::body::Body;
use baton_http::respond;
use baton_link::plant::{self, Plant};
use baton_mcp::envelope::{self, CommonParams, Request};
use baton_mcp::fault::{RpcError, ToolFailure, code};
use baton_mcp::message;
use baton_mcp::revision::Era;
use baton_proto::edge::{
    BOUND_HEADER, CALL_HEADER, CALLER_HEADER, CLIENT_HEADER, FOLDER_HEADER, HEARD_HEADER, Heard,
    LABEL_HEADER, NOTICE_HEADER, TREE_HEADER,
};
use baton_proto::percent;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::caller::Caller;
use super::cancel::Running;
use super::endpoint::Endpoint;
use super::exchange::Call;
use super::forward::{self, Attempt};
use super::heard;
use super::route::{self, Decision, Deed, Pin, Target, Wish};
use super::seen::{CANCELLED, Seen};
use super::windows_tools;
use super::{Edge, Unrun};

/// Pauses between two attempts at a window that refuses, when the roster says nothing new.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// How a tool is counted that no window of this build has.
const OTHER_TOOL: &str = "other";

/// Longer than anybody waits, see [`Plant::HeldForEver`].
const FOR_EVER: Duration = Duration::from_secs(3_600);
/// [`REGISTRATION`] on a machine that has no time for it: for a client who knows that its window, or its session, was
/// there.
const LATE_REGISTRATION: Duration = Duration::from_secs(5);

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
        return invalid(&RpcError::new(code::INVALID_PARAMS, "tools/call needs the name of a tool"));
    };
    let is_known = edge.0.catalogue.has_tool(name);
    let tool = if is_known { name } else { OTHER_TOOL };
    let seen = begin(edge, &body, (tool, &caller.client), params.arguments);
    let invalid = |error: &RpcError| {
        seen.refuse(error);
        invalid(error)
    };
    if !params.arguments.is_none_or(is_object) {
        return invalid(&RpcError::new(code::INVALID_PARAMS, "\"arguments\" must be an object"));
    }
    if !envelope::is_window_id(request.id.get()) {
        let why = "\"id\" of a tool call must be a string or a 64-bit integer";
        return invalid(&RpcError::new(code::INVALID_REQUEST, why));
    }
    let arguments = match envelope::routing_arguments(params.arguments) {
        Ok(arguments) => arguments,
        Err(error) => return invalid(&error),
    };
    let ear = Ear::of(endpoint, caller, headers);
    let asked = (name, params.arguments);
    if let Some(response) = answer_about_windows(edge, endpoint, (caller, request), asked, &ear, &seen).await
    {
        return response;
    }
    let wish = Wish {
        window: arguments.window.as_deref(),
        session: arguments.session.as_deref(),
        pin: &endpoint.pin,
        deed: edge.0.catalogue.deed(name, arguments.action.as_deref()),
    };
    if let Some(failure) = debug_disabled(edge, name, wish.deed) {
        seen.fail(&failure);
        return respond::tool_failure(caller.era, request.id, &failure);
    }
    // A newer window may have tools that this build has not heard of, but nothing is worth waiting for then.
    if !is_known && matches!(route::route(&edge.roster(), wish), Decision::Hold(_)) {
        return invalid(&unknown_tool(edge, name));
    }
    let running = match caller.session {
        Some(session) => match edge.0.cancellations.enter(session, request.id.get()) {
            Some(running) => Some(running),
            None => {
                let why = format!("a request with the ID {} is already running", request.id);
                return invalid(&RpcError::new(code::INVALID_REQUEST, why));
            }
        },
        None => None,
    };
    let mut headers = passed_headers(endpoint, caller, headers);
    insert(&mut headers, CALL_HEADER, seen.id());
    let call = Arc::new(Call { body, headers, id: request.id.to_owned(), era: caller.era, running, seen });
    await_window(edge, wish).await;
    send(edge, &call, wish, &ear).await
}

/// The answer of a tool of the coordinator's own, which no window has.
async fn answer_about_windows(
    edge: &Edge,
    endpoint: &Endpoint,
    (caller, request): (&Caller, &Request<'_>),
    (name, arguments): (&str, Option<&RawValue>),
    ear: &Ear,
    seen: &Seen,
) -> Option<Response<Body>> {
    let client = windows_tools::Client { name: &caller.client, pin: &endpoint.pin };
    let windows_tools::Said { content, live } =
        match windows_tools::call(edge, name, arguments, &client).await? {
            Ok(said) => said,
            Err(failure) => {
                seen.fail(&failure);
                return Some(respond::tool_failure(caller.era, request.id, &failure));
            }
        };
    seen.end_with_own(&content);
    let content = message::tool_content(caller.era, &content, false);
    let mut response = respond::rpc_result(request.id, &content);
    if let (Pin::Live, Some(live)) = (&endpoint.pin, live) {
        ear.note(edge, live, &mut response);
    }
    Some(response)
}

/// The call begins for whoever watches, with its arguments if the user lets them be shown.
fn begin(edge: &Edge, body: &Bytes, named: (&str, &str), arguments: Option<&RawValue>) -> Seen {
    let shown = arguments.filter(|_| edge.0.roster.borrow().settings.show_arguments);
    Seen::begin(edge.watches(body), edge.next_call_id(), named, shown.map(RawValue::get))
}

/// Whether these are arguments, or none.
fn is_object(arguments: &RawValue) -> bool {
    arguments.get().starts_with('{') || arguments.get() == "null"
}

/// What the window is told of the call beside its message.
fn passed_headers(endpoint: &Endpoint, caller: &Caller, headers: &HeaderMap) -> HeaderMap {
    let mut passed = if caller.era == Era::Stateless { mcp_headers(headers) } else { HeaderMap::new() };
    if let Some(client) = client_header(&caller.client) {
        passed.insert(HeaderName::from_static(CLIENT_HEADER), client);
    }
    if let Some(caller) = caller_header(caller) {
        passed.insert(HeaderName::from_static(CALLER_HEADER), caller);
    }
    if let Pin::Folder(stand) = &endpoint.pin {
        describe(stand, &mut passed);
    }
    passed
}

/// Tells an agent what paths mean to the client.
fn describe(stand: &Stand, headers: &mut HeaderMap) {
    insert(headers, FOLDER_HEADER, &percent::encode(&stand.folder));
    if let Some(tree) = &stand.tree {
        insert(headers, TREE_HEADER, &percent::encode(tree));
    }
}

/// What a client heard of windows: whoever remembers it.
struct Ear {
    /// The edge, by this key.
    key: String,
    /// `baton stdio`, which said so.
    bridge: Option<Option<Heard>>,
    follows_live: bool,
}

impl Ear {
    fn of(endpoint: &Endpoint, caller: &Caller, headers: &HeaderMap) -> Self {
        let told = headers.get(HEARD_HEADER);
        let bridge = told.map(|told| told.to_str().ok().and_then(Heard::from_header));
        let client = match caller.session {
            Some(session) => session_text(&session),
            None => caller.client.clone(),
        };
        // A client that is bound in two ways has two places.
        let key = match &endpoint.pin {
            Pin::Window(named) => format!("{client} {}", named.text),
            Pin::Folder(stand) => format!("{client} {}", stand.folder),
            Pin::Live => client,
        };
        Self { key, bridge, follows_live: endpoint.pin == Pin::Live }
    }

    fn last(&self, edge: &Edge) -> Option<Heard> {
        match &self.bridge {
            Some(heard) => heard.clone(),
            None => edge.0.heard.lock().last(&self.key),
        }
    }

    /// The client hears of this window with `response`.
    fn note(&self, edge: &Edge, heard: Heard, response: &mut Response<Body>) {
        match &self.bridge {
            Some(_) => insert(response.headers_mut(), HEARD_HEADER, &heard.to_header()),
            None => edge.0.heard.lock().note(&self.key, heard),
        }
    }

    /// What the window tells in its answer; or why the call is not run.
    fn told(
        &self,
        edge: &Edge,
        roster: &Roster,
        wish: Wish<'_>,
        target: &Target,
    ) -> Result<HeaderMap, ToolFailure> {
        let (mut told, window) = (HeaderMap::new(), &target.window);
        if let Some(label) = heard::label(roster, window) {
            insert(&mut told, LABEL_HEADER, &percent::encode(&label));
        }
        if wish.is_explicit() {
            return Ok(told);
        }
        let last = self.last(edge);
        match heard::refusal(last.as_ref(), window, wish.deed) {
            Some(failure) if !plant::has(Plant::Unrefused) => return Err(failure),
            _ => {}
        }
        // Whoever follows the live window without knowing it is told where it is.
        let is_told_first = self.follows_live && (self.bridge.is_some() || roster.windows.len() > 1);
        let notice = heard::notice(last.as_ref(), window, is_told_first);
        if let Some(notice) = notice.filter(|_| !plant::has(Plant::Untold)) {
            insert(&mut told, NOTICE_HEADER, &percent::encode(&notice));
        }
        Ok(told)
    }

    /// The client has an answer that names this window.
    fn answered(&self, edge: &Edge, wish: Wish<'_>, target: &Target, response: &mut Response<Body>) {
        if !wish.is_explicit() {
            self.note(edge, heard::heard(&target.window), response);
        }
        if let (Some(_), Some(folder)) = (&self.bridge, &target.folder) {
            insert(response.headers_mut(), BOUND_HEADER, &percent::encode(folder));
        }
    }
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// Right after a restart of the coordinator, a window that nobody knows may be one that has not registered again:
/// its calls must not be refused, or go to another one, meanwhile.
async fn await_window(edge: &Edge, wish: Wish<'_>) {
    let is_bound = match wish.pin {
        Pin::Window(named) => named.bound.is_some(),
        Pin::Folder(stand) => stand.bound.is_some(),
        Pin::Live => false,
    };
    let knows = is_bound || wish.session.is_some();
    let within = if knows { LATE_REGISTRATION } else { REGISTRATION };
    edge.settle(within, |roster| !route::is_unheard_of(roster, wish)).await;
}

fn decide(roster: &Roster, wish: Wish<'_>) -> Decision {
    let session = wish.session.filter(|_| !plant::has(Plant::Disowned));
    let wish = Wish { session, ..wish };
    match route::route(roster, wish) {
        Decision::Hold(_) | Decision::Refuse(_) if plant::has(Plant::Stray) => {
            route::route(roster, Wish { pin: &Pin::Live, ..wish })
        }
        decision => decision,
    }
}

/// Routes and sends a call until it is answered, or has waited long enough.
async fn send(edge: &Edge, call: &Arc<Call>, wish: Wish<'_>, ear: &Ear) -> Response<Body> {
    let mut roster = edge.0.roster.clone();
    let mut pause = RETRY.0;
    let (mut deadline, mut held) = (None, None);
    loop {
        if call.running.as_ref().is_some_and(Running::is_cancelled) {
            call.seen.end(Some(CANCELLED));
            return respond::json(http::StatusCode::OK, message::interrupted_bytes(call.era, &call.id));
        }
        if edge.successor().is_appointed() {
            call.seen.pass_on();
            return unrun();
        }
        let current = roster.borrow_and_update().clone();
        let (failure, is_retry) = match decide(&current, wish) {
            Decision::Send(target) => {
                let told = match ear.told(edge, &current, wish, &target) {
                    Ok(told) => told,
                    Err(failure) => {
                        let mut response = call.fail(&failure);
                        ear.note(edge, heard::heard(&target.window), &mut response);
                        return response;
                    }
                };
                held = None;
                call.seen.send(&target.window.id);
                match forward::send(&edge.0.windows, &target, call, told).await {
                    Attempt::Answered(mut response) => {
                        ear.answered(edge, wish, &target, &mut response);
                        return response;
                    }
                    Attempt::Unheard(response) => return response,
                    Attempt::NotRun(why) => {
                        let (call, window) = (call.seen.id(), &target.window.id);
                        tracing::debug!(%call, %window, why, "a call did not run; waiting");
                        (unreachable_window(&target.window.name, why), true)
                    }
                }
            }
            Decision::Hold(failure) => (failure, false),
            Decision::Refuse(failure) => return call.fail(&failure),
        };
        let hold = match plant::has(Plant::HeldForEver) {
            true => FOR_EVER,
            false => Duration::from_millis(current.settings.hold_calls_ms),
        };
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + hold);
        held.get_or_insert_with(|| call.seen.hold());
        tokio::select! {
            changed = roster.changed() => if changed.is_err() {
                return call.fail(&failure);
            },
            () = tokio::time::sleep(pause), if is_retry => pause = (pause * 2).min(RETRY.1),
            // Answered above.
            () = call.cancelled() => {}
            () = edge.successor().appointed() => {}
            () = edge.0.ending.begun.cancelled() => {
                return call.fail(&failure);
            }
            () = tokio::time::sleep_until(deadline) => {
                return call.fail(&failure);
            }
        }
        if Instant::now() >= deadline {
            return call.fail(&failure);
        }
    }
}

/// The call did not run, and the coordinator that could still run it is another one.
fn unrun() -> Response<Body> {
    let mut response = respond::empty(http::StatusCode::OK);
    response.extensions_mut().insert(Unrun);
    response
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

/// A client's name, as far as a header takes it: the window logs it.
fn client_header(client: &str) -> Option<HeaderValue> {
    const LEN_MAX: usize = 64;
    let shown =
        client.chars().take(LEN_MAX).map(|one| if one.is_ascii_graphic() || one == ' ' { one } else { '?' });
    let shown: String = shown.collect();
    let shown = shown.trim();
    (!shown.is_empty()).then(|| HeaderValue::from_str(shown).ok()).flatten()
}

/// What tells a client's calls from those of others.
fn caller_header(caller: &Caller) -> Option<HeaderValue> {
    let Some(session) = caller.session else { return client_header(&caller.client) };
    HeaderValue::from_str(&session_text(&session)).ok()
}

fn session_text(session: &[u8; 16]) -> String {
    session.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unknown_tool(edge: &Edge, name: &str) -> RpcError {
    let shortened: String = name.chars().take(80).collect();
    let similar = edge.0.catalogue.similar(name);
    let hint = if similar.is_empty() {
        "see tools/list".to_owned()
    } else {
        format!("did you mean {}?", similar.join(" or "))
    };
    RpcError::new(code::INVALID_PARAMS, format!("unknown tool {shortened:?}; {hint}"))
}

/// Why a call that debugs is not run, when the user wants none. What a client started before it can still end.
fn debug_disabled(edge: &Edge, name: &str, deed: Deed) -> Option<ToolFailure> {
    let is_wanted = edge.0.roster.borrow().settings.debug_enabled || deed == Deed::Ends;
    (!is_wanted && edge.0.catalogue.debugs(name)).then(|| ToolFailure {
        code: "debug_disabled",
        message: "The call was not run: debugging is turned off by the setting debug_enabled.".to_owned(),
        hint: "Ask the user to turn it on: `baton settings debug_enabled true`.".to_owned(),
        candidates: Vec::new(),
    })
}

fn unreachable_window(name: &str, why: &str) -> ToolFailure {
    ToolFailure {
        code: "window_unreachable",
        message: format!("The call was not run: window {name:?} is unreachable ({why})."),
        hint: "Try again, or ask the user to restart the window: `baton restart WINDOW`.".to_owned(),
        candidates: Vec::new(),
    }
}
