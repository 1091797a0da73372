//! One message of a client: whose it is, whether its headers agree with it, and who answers it.

use baton_http::body::Body;
use baton_http::guard::Holder;
use baton_http::respond;
use baton_http::successor::PassError;
use baton_mcp::envelope::{self, CommonParams, InitializeParams, ListenParams, Message, Request};
use baton_mcp::fault::{RpcError, ToolFailure, code, outcome_unknown};
use baton_mcp::header::{PROTOCOL_VERSION, SESSION_ID, unwrapped};
use baton_mcp::revision::{Era, Revision, STATELESS, SUPPORTED};
use baton_mcp::session::Session;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::caller::Caller;
use super::endpoint::Endpoint;
use super::long::{self, Refused};
use super::streams::{Script, event};
use super::{Edge, call};

/// What a model is told.
const INSTRUCTIONS: &str = "\
Baton connects you to the user's editor windows. Your calls go to the window of the folder that you were started in, or \
else to the live window; the optional argument `window` names another one. list_windows shows the windows, their folders \
and which one is live; activate_window makes another one live (the user may be asked). An answer says when it comes from \
another window than before. Files and debug sessions belong to their window. To find a bug, use `debug`: set_breakpoint, \
launch, step, evaluate. To read code by symbol, use the lcp_ tools. An error's `hint` says what to try.";

/// Key of the subscription in `_meta`.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Key of the server's name in `_meta`.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Answers the message in `body`.
pub(crate) async fn answer(
    edge: &Edge,
    endpoint: &Endpoint,
    holder: Holder,
    headers: &HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let look = match long::look(&body).await {
        Ok(look) => look,
        Err(Refused(id, error)) => return bad_request(id.as_deref(), &error),
    };
    let mut message = match envelope::parse(&look.message) {
        Ok(message) => message,
        Err(error) => return bad_request(None, &error),
    };
    if let Message::Request(request) = &mut message {
        request.excess = request.excess.or(look.excess);
    }
    match message {
        // The stateless revision has no such method.
        Message::Request(request) if request.method == "initialize" && !super::is_stateless(headers) => {
            initialize(edge, headers, &request)
        }
        Message::Request(request) => match caller(edge, headers, &request) {
            Ok(caller) => on_request(edge, endpoint, holder, &caller, &request, headers, body.clone()).await,
            Err(response) => *response,
        },
        Message::Notification { method, params } => on_notification(edge, headers, &method, params),
        Message::Answer => respond::empty(StatusCode::ACCEPTED),
    }
}

/// The answer when there was none of the successor.
pub(crate) fn not_passed(era: Era, body: &[u8], why: PassError) -> Response<Body> {
    let Ok(Message::Request(request)) = envelope::parse(body) else {
        return respond::plain(StatusCode::SERVICE_UNAVAILABLE, "the coordinator was replaced\n");
    };
    let failure = match why {
        PassError::Lost => outcome_unknown("The coordinator exited during this call"),
        PassError::Unreachable => ToolFailure {
            code: "no_coordinator",
            message: "The call was not run: the coordinator was replaced, and the new one is not responding."
                .to_owned(),
            hint: "Try again, or ask the user to run `baton up`.".to_owned(),
            candidates: Vec::new(),
        },
    };
    if request.method == "tools/call" {
        return respond::tool_failure(era, request.id, &failure);
    }
    respond::rpc_error(era, Some(request.id), &RpcError::new(code::INTERNAL_ERROR, failure.message))
}

async fn on_request(
    edge: &Edge,
    endpoint: &Endpoint,
    holder: Holder,
    caller: &Caller,
    request: &Request<'_>,
    headers: &HeaderMap,
    body: Bytes,
) -> Response<Body> {
    if let Some(excess) = request.excess {
        let error = RpcError::new(code::INVALID_PARAMS, excess.to_string());
        return respond::rpc_error(caller.era, Some(request.id), &error);
    }
    let result = match (request.method.as_ref(), caller.era) {
        ("tools/call", _) => return call::answer(edge, endpoint, caller, request, headers, body).await,
        ("tools/list", era) => tools(edge, endpoint, era, request),
        ("ping", Era::Sessions(_)) => Ok(json!({})),
        ("server/discover", Era::Stateless) => Ok(discover()),
        ("subscriptions/listen", Era::Stateless) => match listen(edge, holder, request) {
            Ok(response) => return response,
            Err(error) => Err(error),
        },
        (method, _) => {
            let method: String = method.chars().take(80).collect();
            Err(RpcError::new(code::METHOD_NOT_FOUND, format!("unknown method {method:?}")))
        }
    };
    match result {
        Ok(result) => respond::rpc_result(request.id, &result),
        Err(error) => respond::rpc_error(caller.era, Some(request.id), &error),
    }
}

fn on_notification(
    edge: &Edge,
    headers: &HeaderMap,
    method: &str,
    params: Option<&RawValue>,
) -> Response<Body> {
    if super::is_stateless(headers) {
        return match check_standard_headers(headers, method, None) {
            Ok(()) => respond::empty(StatusCode::ACCEPTED),
            Err(error) => bad_request(None, &error),
        };
    }
    let session = match edge.session_of(headers) {
        Some(Ok(session)) => session,
        Some(Err(error)) => return respond::rpc_error(Era::Sessions(Revision::ASSUMED), None, &error),
        None => return respond::empty(StatusCode::ACCEPTED),
    };
    if method == "notifications/cancelled" {
        match envelope::params::<envelope::CancelledParams<'_>>(params) {
            Ok(cancelled) => edge.0.cancellations.cancel(session.number, cancelled.request_id.get()),
            Err(error) => tracing::debug!(error = error.message, "a cancellation for an unknown request"),
        }
    }
    respond::empty(StatusCode::ACCEPTED)
}

/// Whose request it is.
fn caller(edge: &Edge, headers: &HeaderMap, request: &Request<'_>) -> Result<Caller, Box<Response<Body>>> {
    let refuse = |error: RpcError| Box::new(bad_request(Some(request.id), &error));
    let version = single(headers, PROTOCOL_VERSION).map_err(refuse)?;
    if version == Some(STATELESS) || request.method == "server/discover" {
        return stateless_caller(headers, version, request).map_err(refuse);
    }
    let session = match edge.session_of(headers) {
        Some(Ok(session)) => Some(session),
        Some(Err(error)) => {
            return Err(Box::new(respond::rpc_error(
                Era::Sessions(Revision::ASSUMED),
                Some(request.id),
                &error,
            )));
        }
        None => None,
    };
    let named = match version {
        Some(version) => Some(Revision::from_text(version).ok_or_else(|| refuse(unsupported(version)))?),
        None => None,
    };
    if session.is_none() {
        // A client of the stateless era that forgot the header must not be taken for an older one.
        let params: CommonParams<'_> = envelope::params(request.params).unwrap_or_default();
        if let Some(revision) = params.meta.and_then(|meta| meta.revision)
            && Some(&*revision) != version
        {
            let why = format!(
                "_meta specifies revision {revision}, but the header MCP-Protocol-Version is \
                               missing or different"
            );
            return Err(refuse(RpcError::new(code::HEADER_MISMATCH, why)));
        }
    }
    let revision = session.as_ref().map(|session| session.revision).or(named).unwrap_or(Revision::ASSUMED);
    let (number, client) = match session {
        Some(session) => (Some(session.number), session.client),
        None => (None, String::new()),
    };
    Ok(Caller { era: Era::Sessions(revision), session: number, client })
}

/// Checks what a request of 2026-07-28 must say, in its headers and in its body alike.
fn stateless_caller(
    headers: &HeaderMap,
    version: Option<&str>,
    request: &Request<'_>,
) -> Result<Caller, RpcError> {
    let params: CommonParams<'_> = envelope::params(request.params)?;
    check_standard_headers(headers, &request.method, name_in(&request.method, &params))?;
    let meta = params.meta.as_ref();
    let revision = meta.and_then(|meta| meta.revision.as_deref());
    let has_capabilities = meta
        .and_then(|meta| meta.capabilities)
        .is_some_and(|capabilities| capabilities.get().starts_with('{'));
    let fields = [
        ("io.modelcontextprotocol/protocolVersion", revision.is_some()),
        ("io.modelcontextprotocol/clientCapabilities", has_capabilities),
    ];
    let missing: Vec<_> = fields.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| *name).collect();
    let (Some(revision), true) = (revision, missing.is_empty()) else {
        let why = format!("invalid params: _meta is missing or has an invalid {}", missing.join(", "));
        return Err(RpcError::new(code::INVALID_PARAMS, why));
    };
    if version != Some(revision) {
        let header = version.unwrap_or("nothing");
        let why = format!("the header MCP-Protocol-Version is {header}, but _meta has {revision}");
        return Err(RpcError::new(code::HEADER_MISMATCH, why));
    }
    if revision != STATELESS {
        return Err(unsupported(revision));
    }
    let client = meta.and_then(|meta| meta.client.as_ref()).and_then(|client| client.name.as_deref());
    let client = client.unwrap_or_default().chars().take(64).collect();
    Ok(Caller { era: Era::Stateless, session: None, client })
}

/// What `Mcp-Name` must say.
fn name_in<'a>(method: &str, params: &'a CommonParams<'_>) -> Option<&'a str> {
    match method {
        "tools/call" | "prompts/get" => params.name.as_deref(),
        "resources/read" => params.uri.as_deref(),
        _ => None,
    }
}

fn check_standard_headers(headers: &HeaderMap, method: &str, name: Option<&str>) -> Result<(), RpcError> {
    let mismatch = |why: String| Err(RpcError::new(code::HEADER_MISMATCH, why));
    match single(headers, "mcp-method")? {
        Some(header) if header == method => {}
        Some(header) => {
            return mismatch(format!("the header Mcp-Method is {header:?}, but the body has {method:?}"));
        }
        None => return mismatch("the header Mcp-Method is missing".to_owned()),
    }
    let Some(name) = name else { return Ok(()) };
    match single(headers, "mcp-name")? {
        Some(header) if unwrapped(header).as_deref() == Some(name) => Ok(()),
        Some(header) => mismatch(format!("the header Mcp-Name is {header:?}, but the body has {name:?}")),
        None => mismatch("the header Mcp-Name is missing".to_owned()),
    }
}

/// The only value of a header.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(RpcError::new(code::HEADER_MISMATCH, format!("the header {name} is repeated")));
    }
    let not_text = |_| RpcError::new(code::HEADER_MISMATCH, format!("the header {name} is not text"));
    value.to_str().map(Some).map_err(not_text)
}

fn unsupported(revision: &str) -> RpcError {
    let requested: String = revision.chars().take(80).collect();
    let data = json!({ "requested": requested, "supported": SUPPORTED });
    RpcError { data: Some(data), ..RpcError::new(code::UNSUPPORTED_REVISION, "Unsupported protocol version") }
}

fn bad_request(id: Option<&RawValue>, error: &RpcError) -> Response<Body> {
    let mut response = respond::rpc_error(Era::Stateless, id, error);
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

/// Opens a session.
fn initialize(edge: &Edge, headers: &HeaderMap, request: &Request<'_>) -> Response<Body> {
    let params: InitializeParams<'_> = match envelope::params(request.params) {
        Ok(params) => params,
        Err(error) => return respond::rpc_error(Era::Sessions(Revision::NEWEST), Some(request.id), &error),
    };
    let asked = &*params.protocol_version;
    if let Ok(Some(header)) = single(headers, PROTOCOL_VERSION)
        && header != asked
    {
        let why = format!("the header MCP-Protocol-Version is {header}, but initialize has {asked}");
        return bad_request(Some(request.id), &RpcError::new(code::INVALID_REQUEST, why));
    }
    let revision = Revision::from_text(asked).unwrap_or(Revision::NEWEST);
    let mut random = [0; 40];
    if let Err(error) = getrandom::fill(&mut random) {
        tracing::error!(%error, "cannot get random numbers");
        return respond::empty(StatusCode::SERVICE_UNAVAILABLE);
    }
    let (mut number, mut nonce) = ([0; 16], [0; 24]);
    number.copy_from_slice(&random[..16]);
    nonce.copy_from_slice(&random[16..]);
    let client = params.client_info.and_then(|client| client.name).unwrap_or_default().into_owned();
    let epoch = edge.0.roster.borrow().client_epoch;
    let id = edge.0.sealer.seal(&Session { revision, epoch, number, client }, nonce);
    let mut response = respond::rpc_result(
        request.id,
        &json!({
            "protocolVersion": revision.as_str(),
            "capabilities": capabilities(),
            "serverInfo": server_info(),
            "instructions": INSTRUCTIONS,
        }),
    );
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HeaderName::from_static(SESSION_ID), id);
    }
    response
}

fn discover() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": SUPPORTED,
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { SERVER_INFO: server_info() },
    })
}

fn capabilities() -> Value {
    json!({ "tools": { "listChanged": true } })
}

fn server_info() -> Value {
    json!({ "name": "baton", "title": "Baton", "version": env!("CARGO_PKG_VERSION") })
}

fn tools(edge: &Edge, endpoint: &Endpoint, era: Era, request: &Request<'_>) -> Result<Value, RpcError> {
    let params: CommonParams<'_> = envelope::params(request.params)?;
    if params.cursor.is_some() {
        return Err(RpcError::new(code::INVALID_PARAMS, "unknown cursor; the list of tools has one page"));
    }
    let settings = edge.0.roster.borrow().settings.clone();
    let toolsets = endpoint.toolsets.as_ref().unwrap_or(&settings.toolsets);
    let tools = edge.0.catalogue.tools(toolsets, settings.debug_enabled);
    let tools = tools.map_err(|error| RpcError::new(code::INVALID_PARAMS, error.to_string()))?;
    let mut result = json!({ "tools": tools });
    if era == Era::Stateless {
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    Ok(result)
}

/// Opens a stream of notices that belongs to this request.
fn listen(edge: &Edge, holder: Holder, request: &Request<'_>) -> Result<Response<Body>, RpcError> {
    let params: ListenParams = envelope::params(request.params)?;
    let meta = json!({ SUBSCRIPTION_ID: request.id });
    let is_wanted = params.notifications.tools_list_changed == Some(true);
    let accepted = if is_wanted { json!({ "toolsListChanged": true }) } else { json!({}) };
    let message = |value: Value| event(value.to_string().as_bytes());
    let change = json!({
        "jsonrpc": "2.0",
        "method": "notifications/tools/list_changed",
        "params": { "_meta": meta },
    });
    let script = Script {
        opening: message(json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": meta, "notifications": accepted },
        })),
        change: if is_wanted { message(change) } else { Bytes::new() },
        closing: message(json!({
            "jsonrpc": "2.0",
            "id": request.id,
            "result": {
                "resultType": "complete",
                "_meta": { SUBSCRIPTION_ID: request.id, SERVER_INFO: server_info() },
            },
        })),
    };
    Ok(respond::events(Body::stream(edge.0.streams.listen(holder, script))))
}
