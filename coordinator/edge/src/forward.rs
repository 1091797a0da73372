//! Passes one call to a window and its bytes back.
//!
//! **Invariant:** a call is sent a second time only when it provably did not run. Once its bytes were accepted
//! there is an answer: the window's own, or one that says that its outcome is unknown.

use std::sync::Arc;

use baton_http::body::Body;
use baton_http::respond;
use baton_http::sender::Sender;
use baton_link::plant::{self, Plant};
use baton_mcp::fault::{RpcError, ToolFailure, code};
use baton_mcp::revision::Era;
use baton_proto::edge::REFUSED_HEADER;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::answer::Events;
use super::exchange::{Call, Exchange, Stop};
use super::route::{Right, Target};
use super::upstream::Windows;

/// Largest answer that is not a stream.
const ANSWER_MAX: usize = 64 * 1024 * 1024;

/// What became of sending a call.
pub(crate) enum Attempt {
    /// There is an answer for the client, in which it hears of the window.
    Answered(Response<Body>),
    /// There is an answer, and no word of the window in it: the client cancelled, or the answer could not be passed on.
    Unheard(Response<Body>),
    /// It provably did not run, for this reason.
    NotRun(&'static str),
}

/// Sends `call` to `target`, with what is to be told in the answer.
pub(crate) async fn send(windows: &Windows, target: &Target, call: &Arc<Call>, told: HeaderMap) -> Attempt {
    let upstream = windows.upstream(&target.window);
    let drained = match target.right {
        Right::Term(_) => upstream.drained_as_live(),
        Right::Pin => upstream.gone.clone(),
    };
    let cut = windows.cut.clone();
    let (window, call) = (target.window.clone(), call.clone());
    let exchange = Exchange { upstream, window, call, right: target.right, told, drained, cut };
    match exchange.call.era {
        Era::Stateless => run(exchange).await,
        // In the older eras a lost connection cancels nothing.
        Era::Sessions(_) => super::detach::finish(run(exchange)).await,
    }
}

async fn run(exchange: Exchange) -> Attempt {
    let (call, window) = exchange.names();
    tracing::debug!(%call, %window, "passes a call on");
    loop {
        let (mut sender, is_used) = match exchange.upstream.connection().await {
            Ok(connection) => connection,
            Err(why) => return Attempt::NotRun(why),
        };
        let result = tokio::select! {
            biased;
            result = sender.send(exchange.request()) => result,
            stop = exchange.stopped() => return stopped_answer(&exchange, stop),
        };
        match result {
            Ok(response) => return on_response(exchange, response, sender).await,
            Err(mut error) => {
                if error.take_message().is_none() {
                    if plant::has(Plant::SentAgain) {
                        return Attempt::NotRun("connection lost");
                    }
                    let (call, window) = exchange.names();
                    tracing::info!(%call, %window, error = %error.error(), "a window died during a call");
                    return stopped_answer(&exchange, Stop::Gone);
                }
                // The message came back: not a byte of it was written.
                if !is_used {
                    return Attempt::NotRun("connection closed");
                }
            }
        }
    }
}

async fn on_response(exchange: Exchange, response: Response<Incoming>, sender: Sender) -> Attempt {
    let (parts, incoming) = response.into_parts();
    if parts.status == StatusCode::CONFLICT && parts.headers.contains_key(REFUSED_HEADER) {
        let (call, window) = exchange.names();
        tracing::debug!(%call, %window, why = ?parts.headers.get(REFUSED_HEADER), "a window refused a call");
        return Attempt::NotRun("refused by the window");
    }
    if parts.status == StatusCode::UNAUTHORIZED {
        // Somebody removed the secret, and one of us two has another one: both are about to notice.
        return Attempt::NotRun("it has another token");
    }
    let kind = parts.headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if kind.starts_with(b"text/event-stream") {
        let keep = Box::new(|exchange: &Exchange| exchange.upstream.keep(sender));
        return Attempt::Answered(respond::events(Body::stream(
            Events::new(exchange, incoming, keep).stream(),
        )));
    }
    let is_json = kind.starts_with(b"application/json");
    let bytes = tokio::select! {
        biased;
        bytes = collect(incoming) => bytes,
        stop = exchange.stopped() => return stopped_answer(&exchange, stop),
    };
    match bytes {
        Ok(Some(bytes)) => {
            exchange.upstream.keep(sender);
            if is_json {
                exchange.call.seen.end_with(&bytes);
                Attempt::Answered(respond::json(parts.status, bytes))
            } else {
                on_odd_answer(&exchange, parts.status, &bytes)
            }
        }
        Ok(None) => Attempt::Unheard(exchange.call.fail(&too_large())),
        Err(error) => {
            let (call, window) = exchange.names();
            tracing::info!(%call, %window, %error, "a window died while answering");
            stopped_answer(&exchange, Stop::Gone)
        }
    }
}

/// An agent answers text when it could not read the message, which our own reading was too coarse to see.
fn on_odd_answer(exchange: &Exchange, status: StatusCode, bytes: &Bytes) -> Attempt {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(500)]).into_owned();
    if status.is_client_error() {
        let why = format!("cannot read the message: {text}");
        let error = RpcError::new(code::PARSE_ERROR, why);
        exchange.call.seen.refuse(&error);
        return Attempt::Unheard(respond::rpc_error(exchange.call.era, Some(&exchange.call.id), &error));
    }
    // It had the call, and nothing says how far it came: an agent that ends answers so.
    let (call, window) = exchange.names();
    tracing::warn!(%call, %window, %status, "a window's answer is not valid MCP");
    stopped_answer(exchange, Stop::Gone)
}

fn stopped_answer(exchange: &Exchange, stop: Stop) -> Attempt {
    let response = respond::json(StatusCode::OK, exchange.stopped_bytes(stop));
    if stop == Stop::Cancelled { Attempt::Unheard(response) } else { Attempt::Answered(response) }
}

/// The whole answer; `None` when it is too large.
async fn collect(mut incoming: Incoming) -> Result<Option<Bytes>, hyper::Error> {
    let mut whole = Bytes::new();
    let mut rest = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if whole.is_empty() {
            whole = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&whole);
            }
            rest.extend_from_slice(&data);
        }
        if rest.len() > ANSWER_MAX {
            return Ok(None);
        }
    }
    Ok(Some(if rest.is_empty() { whole } else { rest.into() }))
}

fn too_large() -> ToolFailure {
    ToolFailure {
        code: "answer_too_large",
        message: format!("The call ran, but its answer exceeds {} MiB.", ANSWER_MAX / 1024 / 1024),
        hint: "If it only reads, ask for less. Any changes it made remain.".to_owned(),
        candidates: Vec::new(),
    }
}
