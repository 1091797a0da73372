//! A client of our own: it calls tools as any client does, and reads the answers.

use baton_link::explain::Explanation;
use baton_mcp::header::{PROTOCOL_VERSION, wrapped};
use baton_mcp::revision::STATELESS;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::Options;
use crate::events::Events;
use crate::upstream::{Incomplete, SendError, Upstream};

/// Calls tools of a window, one after another.
pub struct Client {
    name: &'static str,
    upstream: Upstream,
    n_calls: u64,
}

impl Client {
    /// It calls itself `name`.
    pub fn new(name: &'static str, options: Options) -> Self {
        Self { name, upstream: Upstream::new(options), n_calls: 0 }
    }

    /// Calls a tool. The result is MCP's `CallToolResult`, or the error of JSON-RPC.
    pub async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Explanation> {
        self.n_calls += 1;
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": env!("CARGO_PKG_VERSION")},
        });
        let request = json!({
            "jsonrpc": "2.0",
            "id": self.n_calls,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": meta},
        });
        let headers = [
            (PROTOCOL_VERSION, STATELESS.to_owned()),
            ("mcp-method", "tools/call".to_owned()),
            ("mcp-name", wrapped(tool)),
        ];
        let headers = headers.into_iter().filter_map(|(name, value)| {
            Some((HeaderName::from_static(name), HeaderValue::from_str(&value).ok()?))
        });
        let headers = HeaderMap::from_iter(headers);
        let sent = self.upstream.send(Method::POST, &headers, request.to_string().into(), true);
        let lost = || Explanation::new("the connection to the coordinator ended").with_hint("try again");
        let Incomplete { response, connection } = sent.await.map_err(|error| match error {
            SendError::NoCoordinator(error) => error.explain(),
            SendError::Lost => lost(),
        })?;
        let kind = response.headers().get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        if kind.starts_with(b"text/event-stream") {
            let mut events = Events::new(response.into_body());
            while let Some(message) = events.next().await {
                if let Some(answer) = answer_in(&message) {
                    return Ok(answer);
                }
            }
            return Err(lost());
        }
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|_| lost())?.to_bytes();
        self.upstream.keep(connection);
        answer_in(&body).ok_or_else(|| {
            let text = String::from_utf8_lossy(&body);
            Explanation::new(format!(
                "unexpected response from the coordinator ({}): {}",
                status.as_u16(),
                text.trim()
            ))
        })
    }
}

/// The result or the error in a message that is an answer.
fn answer_in(message: &[u8]) -> Option<Value> {
    let mut message: Value = serde_json::from_slice(message).ok()?;
    ["result", "error"].into_iter().find_map(|name| message.get_mut(name).map(Value::take))
}
