//! CORE: the messages of the Debug Adapter Protocol, as far as the engine looks into them.

pub(crate) mod body;
pub(crate) mod configuration;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message from an adapter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    /// The answer to a request of ours.
    Response(Response),
    /// Something happened.
    Event { event: String, body: Value },
    /// The adapter wants something: `runInTerminal`, `startDebugging`.
    Request { seq: i64, command: String, arguments: Value },
}

/// The answer to a request of ours.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Response {
    pub(crate) request_seq: i64,
    pub(crate) success: bool,
    pub(crate) message: Option<String>,
    pub(crate) body: Value,
}

/// Any message, unsorted.
#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    seq: i64,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    request_seq: i64,
    #[serde(default)]
    success: bool,
    message: Option<Value>,
    command: Option<String>,
    event: Option<String>,
    #[serde(default)]
    body: Value,
    #[serde(default)]
    arguments: Value,
}

/// What a message of ours asks for, or answers.
pub(crate) fn command(message: &Value) -> &str {
    message.get("command").and_then(Value::as_str).unwrap_or_default()
}

impl Incoming {
    /// Parses a body; `None` when it is not a message of the protocol.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let raw: Raw = serde_json::from_slice(bytes).ok()?;
        match raw.kind.as_str() {
            "response" => Some(Self::Response(Response {
                request_seq: raw.request_seq,
                success: raw.success,
                message: raw.message.and_then(|message| message.as_str().map(str::to_owned)),
                body: raw.body,
            })),
            "event" => Some(Self::Event { event: raw.event?, body: raw.body }),
            "request" => {
                Some(Self::Request { seq: raw.seq, command: raw.command?, arguments: raw.arguments })
            }
            _ => None,
        }
    }
}

impl Response {
    /// The error text for people: `body.error.format` with its variables filled in, else `message`; without the
    /// adapter's own stack.
    pub(crate) fn error_text(&self) -> String {
        let error = &self.body["error"];
        let mut text = match error["format"].as_str() {
            Some(format) if !format.is_empty() => format.to_owned(),
            _ => self
                .message
                .clone()
                .filter(|message| !message.is_empty())
                .unwrap_or_else(|| NO_REASON.to_owned()),
        };
        if let Some(variables) = error["variables"].as_object() {
            for (name, value) in variables {
                text = text.replace(&format!("{{{name}}}"), value.as_str().unwrap_or_default());
            }
        }
        let is_stack = |line: &str| line.trim_start().starts_with("at ") && line.contains(".js:");
        let n_kept: usize = text.split_inclusive('\n').take_while(|line| !is_stack(line)).map(str::len).sum();
        text.truncate(n_kept);
        text.truncate(text.trim_end().len());
        text
    }
}

/// In place of an adapter's own words, when it has none.
pub(crate) const NO_REASON: &str = "no reason given";

/// A request to an adapter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Request {
    pub(crate) seq: i64,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) command: Cow<'static, str>,
    pub(crate) arguments: Value,
}

/// The answer to a request of an adapter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Reply {
    pub(crate) seq: i64,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) request_seq: i64,
    pub(crate) success: bool,
    pub(crate) command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) body: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_texts_come_from_wherever_the_adapter_put_them() {
        let text = |json: &str| match Incoming::parse(json.as_bytes()) {
            Some(Incoming::Response(response)) => response.error_text(),
            other => panic!("{other:?}"),
        };
        let format = r#"{"type":"response","request_seq":1,"success":false,"message":"short",
            "body":{"error":{"format":"cannot launch {path}","variables":{"path":"/x"}}}}"#;
        assert_eq!(text(format), "cannot launch /x");
        assert_eq!(text(r#"{"type":"response","request_seq":1,"success":false,"message":"m"}"#), "m");
        let stack = r#"{"type":"response","request_seq":1,"success":false,
            "body":{"error":{"format":"Error: no target\n\tat /x/extension.js:108:3\n\tat run (/x/extension.js:1:2)"}}}"#;
        assert_eq!(text(stack), "Error: no target");
        let null = r#"{"type":"response","request_seq":1,"success":false,"message":null}"#;
        assert_eq!(text(null), "no reason given");
        assert_eq!(text(&null.replace("null", "\"\"")), "no reason given");
    }

    #[test]
    fn what_is_not_a_message_is_none() {
        for junk in ["", "[]", "{}", r#"{"type":"event"}"#, r#"{"type":"wish"}"#, "{\"type\":1}"] {
            assert_eq!(Incoming::parse(junk.as_bytes()), None, "{junk}");
        }
    }
}
