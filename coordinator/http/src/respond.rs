//! The only place where an error becomes a status; messages come from [`baton_mcp::message`].

use baton_mcp::fault::{RpcError, ToolFailure, code};
use baton_mcp::message::{rpc_error_bytes, rpc_result_bytes, tool_failure_bytes};
use baton_mcp::revision::Era;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::body::{Body, BodyError};
use crate::connection::Farewell;
use crate::guard::Refusal;

/// A refusal of the guard: the same bytes for everybody. Its connection ends, so that only those who know a
/// token hold connections.
pub fn refused(refusal: Refusal) -> Response<Body> {
    let (status, text) = match refusal {
        Refusal::Closed => return closed(),
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

/// Too many connections of MCP clients.
pub(crate) fn crowded() -> Response<Body> {
    let text = "too many MCP connections; close some and try again\n";
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, text);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// What is written on a connection that we end, and is the answer to whatever the client writes in that moment: a
/// request that comes now is not read.
pub(crate) fn farewell(why: Farewell) -> String {
    let (status, text) = match why {
        Farewell::Ended => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the coordinator has exited; the request was not run; try again\n",
        ),
        Farewell::Crowded => (
            StatusCode::SERVICE_UNAVAILABLE,
            "this idle connection was closed; the request was not run; try again\n",
        ),
        Farewell::Late => (StatusCode::REQUEST_TIMEOUT, "timed out waiting for the request headers\n"),
    };
    let retry = if status == StatusCode::SERVICE_UNAVAILABLE { "retry-after: 1\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\n{retry}connection: close\r\n\
         content-length: {}\r\n\r\n{text}",
        text.len()
    )
}

/// A body that could not be had; the connection cannot be used further.
pub fn body_error(error: &BodyError) -> Response<Body> {
    let status = match error {
        BodyError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::Late => StatusCode::REQUEST_TIMEOUT,
        BodyError::Crowded => StatusCode::SERVICE_UNAVAILABLE,
        BodyError::Broken(_) => StatusCode::BAD_REQUEST,
    };
    let rpc = RpcError::new(code::INVALID_REQUEST, error.to_string());
    let mut response = json(status, rpc_error_bytes(None, &rpc));
    if matches!(error, BodyError::Crowded) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A short text.
pub fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A part of the page, which runs nothing that is not ours, stands in no frame, and is kept by no browser.
pub fn document(status: StatusCode, content_type: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let mut response = Response::new(Body::whole(bytes));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

/// A page that is not open: the same bytes, whatever is wrong with its link or its cookie.
pub fn closed() -> Response<Body> {
    let page = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Baton</title>\n\
                <p>This page is closed: its link was used, has expired, or is of an earlier coordinator. \
                Run <code>baton open</code> for a new one.</p>\n\
                <p lang=\"zh-CN\">此页面已关闭：链接已被使用、已过期，或属于较早的协调器。请运行 <code>baton open</code> 获取新的链接。</p>\n";
    let mut response = document(StatusCode::UNAUTHORIZED, "text/html; charset=utf-8", page);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// No body.
pub fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// JSON.
pub fn json(status: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::whole(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A stream of server-sent events.
pub fn events(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// A protocol error in answer to the request `id`; the status is what the era wants.
pub fn rpc_error(era: Era, id: Option<&RawValue>, error: &RpcError) -> Response<Body> {
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
pub fn rpc_result(id: &RawValue, result: &Value) -> Response<Body> {
    json(StatusCode::OK, rpc_result_bytes(id, result))
}

/// A tool result with the error `failure`.
pub fn tool_failure(era: Era, id: &RawValue, failure: &ToolFailure) -> Response<Body> {
    json(StatusCode::OK, tool_failure_bytes(era, id, failure))
}
