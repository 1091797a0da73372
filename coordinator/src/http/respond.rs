//! The only place where an error becomes a status, a JSON-RPC error or a tool result.

use baton_proto::control::WindowRef;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::body::{Body, BodyError};
use super::guard::Refusal;
use crate::mcp::revision::Era;

/// JSON-RPC and MCP error codes.
pub(crate) mod code {
    pub(crate) const PARSE_ERROR: i32 = -32700;
    pub(crate) const INVALID_REQUEST: i32 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
    pub(crate) const INVALID_PARAMS: i32 = -32602;
    /// A session id that is not ours.
    pub(crate) const UNKNOWN_SESSION: i32 = -32001;
    pub(crate) const HEADER_MISMATCH: i32 = -32020;
    pub(crate) const UNSUPPORTED_REVISION: i32 = -32022;
}

/// A tool call that Baton itself answers with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolFailure {
    /// Stable, for programs.
    pub(crate) code: &'static str,
    /// What happened, one sentence.
    pub(crate) message: String,
    /// What to try, one sentence.
    pub(crate) hint: String,
    /// The windows it could be about.
    pub(crate) candidates: Vec<WindowRef>,
}

/// A protocol error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// A refusal of the guard: the same bytes for everybody. Its connection ends, so that only those who know a
/// token hold connections.
pub(crate) fn refused(refusal: Refusal) -> Response<Body> {
    let (status, text) = match refusal {
        Refusal::Forbidden => (StatusCode::FORBIDDEN, "forbidden\n"),
        Refusal::NotFound => (StatusCode::NOT_FOUND, "not found\n"),
        Refusal::Unauthorized => (
            StatusCode::UNAUTHORIZED,
            "unauthorized: send 'Authorization: Bearer TOKEN'; see 'baton token'\n",
        ),
        Refusal::NotJson => {
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported media type: send application/json\n")
        }
    };
    let mut response = plain(status, text);
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// A body that could not be had; the connection cannot be used further.
pub(crate) fn body_error(error: &BodyError) -> Response<Body> {
    let status = match error {
        BodyError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::Late => StatusCode::REQUEST_TIMEOUT,
        BodyError::Broken(_) => StatusCode::BAD_REQUEST,
    };
    let rpc = RpcError::new(code::INVALID_REQUEST, error.to_string());
    let mut response = json(status, rpc_error_bytes(None, &rpc));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A short text.
pub(crate) fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// No body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// JSON.
pub(crate) fn json(status: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A stream of server-sent events.
pub(crate) fn events(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// A protocol error in answer to the request `id`; the status is what the era wants.
pub(crate) fn rpc_error(era: Era, id: Option<&RawValue>, error: &RpcError) -> Response<Body> {
    let status = match (era, error.code) {
        (_, code::PARSE_ERROR | code::INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        (_, code::HEADER_MISMATCH | code::UNSUPPORTED_REVISION) => StatusCode::BAD_REQUEST,
        (_, code::UNKNOWN_SESSION) => StatusCode::NOT_FOUND,
        (Era::Stateless, code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    };
    json(status, rpc_error_bytes(id, error))
}

/// A result in answer to the request `id`.
pub(crate) fn rpc_result(id: &RawValue, result: &impl Serialize) -> Response<Body> {
    json(StatusCode::OK, rpc_result_bytes(id, result))
}

/// A tool result with the error `failure`.
pub(crate) fn tool_failure(era: Era, id: &RawValue, failure: &ToolFailure) -> Response<Body> {
    json(StatusCode::OK, tool_failure_bytes(era, id, failure))
}

/// The message of [`tool_failure`].
pub(crate) fn tool_failure_bytes(era: Era, id: &RawValue, failure: &ToolFailure) -> Vec<u8> {
    let mut content = json!({
        "status": "error",
        "code": failure.code,
        "message": failure.message,
        "hint": failure.hint,
    });
    if !failure.candidates.is_empty() {
        content["candidates"] = json!(failure.candidates);
    }
    rpc_result_bytes(id, &tool_content(era, &content, true))
}

/// The answer to a call that the client cancelled.
pub(crate) fn interrupted_bytes(era: Era, id: &RawValue) -> Vec<u8> {
    let content = json!({
        "status": "interrupted",
        "message": "The call was cancelled. A program that it waited for keeps running.",
    });
    rpc_result_bytes(id, &tool_content(era, &content, false))
}

/// A tool result: `content` as structure and as text.
pub(crate) fn tool_content(era: Era, content: &Value, is_error: bool) -> Value {
    let mut result = json!({
        "content": [{ "type": "text", "text": content.to_string() }],
        "structuredContent": content,
        "isError": is_error,
    });
    if era == Era::Stateless {
        result["resultType"] = json!("complete");
    }
    result
}

pub(crate) fn rpc_error_bytes(id: Option<&RawValue>, error: &RpcError) -> Vec<u8> {
    let mut object = json!({ "code": error.code, "message": error.message });
    if let Some(data) = &error.data {
        object["data"] = data.clone();
    }
    to_bytes(&ErrorMessage { jsonrpc: "2.0", id, error: object })
}

fn rpc_result_bytes(id: &RawValue, result: &impl Serialize) -> Vec<u8> {
    to_bytes(&ResultMessage { jsonrpc: "2.0", id, result })
}

fn to_bytes(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("invariant: values with text keys are JSON")
}

#[derive(Serialize)]
struct ErrorMessage<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    error: Value,
}

#[derive(Serialize)]
struct ResultMessage<'a, T> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: &'a T,
}
