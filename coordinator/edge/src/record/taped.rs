//! CORE: a call and its answer as they came, and as a line of the record, without what looks like a secret.

use std::time::Duration;

use baton_mcp::fault::{RpcError, ToolFailure};
use baton_proto::ids::WindowId;
use baton_proto::record::{Call, MAX_PART};
use baton_proto::redact;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

/// A call that is recorded, as it came.
pub(crate) struct Taped {
    at_ms: u64,
    request: Bytes,
    /// What it is called in the logs.
    pub(crate) id: String,
    /// What the client calls itself.
    pub(crate) client: String,
    /// The window that it was passed to last.
    pub(crate) window: Option<WindowId>,
    pub(crate) answer: Answer,
    pub(crate) took: Duration,
    /// What went wrong, in a word of ours.
    pub(crate) error: Option<&'static str>,
}

/// What the client was answered.
pub(crate) enum Answer {
    /// Nothing yet.
    None,
    /// By Baton itself.
    Own(Value),
    /// By a window: a message, or events of which one has the answer.
    Window(Vec<u8>),
    /// By a window, and longer than what is written.
    TooLong,
}

impl Answer {
    pub(crate) fn of_window(bytes: &[u8]) -> Self {
        if bytes.len() > MAX_PART { Self::TooLong } else { Self::Window(bytes.to_vec()) }
    }

    pub(crate) fn of_failure(failure: &ToolFailure) -> Self {
        Self::Own(json!({"code": failure.code, "message": failure.message, "hint": failure.hint}))
    }

    pub(crate) fn of_error(error: &RpcError) -> Self {
        Self::Own(json!({"code": error.code, "message": error.message}))
    }
}

impl Taped {
    pub(crate) fn begin(at_ms: u64, request: Bytes) -> Self {
        Self {
            at_ms,
            request,
            id: String::new(),
            client: String::new(),
            window: None,
            answer: Answer::None,
            took: Duration::ZERO,
            error: None,
        }
    }

    /// How much it holds.
    pub(crate) fn n_bytes(&self) -> usize {
        let answer = match &self.answer {
            Answer::Window(bytes) => bytes.len(),
            Answer::None | Answer::Own(_) | Answer::TooLong => 0,
        };
        self.request.len() + answer
    }

    /// As it is written.
    pub(crate) fn into_call(self) -> Call {
        let is_request_whole = self.request.len() <= MAX_PART;
        let Params { name, mut arguments } = match is_request_whole {
            true => serde_json::from_slice::<Request>(&self.request).map(|request| request.params),
            // The name may stand behind what is too long.
            false => serde_json::from_slice::<Named>(&self.request).map(|named| named.params.into()),
        }
        .unwrap_or_default();
        let is_redacted = redact::json(&mut arguments);
        let (mut result, is_answer_whole) = match self.answer {
            Answer::None => (Value::Null, true),
            Answer::Own(value) => (value, true),
            Answer::Window(bytes) => (result_in(&bytes), true),
            Answer::TooLong => (Value::Null, false),
        };
        redact::answer(&mut result);
        Call {
            at_ms: self.at_ms,
            took_ms: (self.took.as_secs_f64() * 1e6).round() / 1e3,
            id: self.id,
            client: self.client,
            window: self.window,
            tool: name,
            arguments,
            error: self.error.map(str::to_owned),
            result,
            is_cut: !(is_request_whole && is_answer_whole),
            is_redacted,
        }
    }
}

#[derive(Deserialize)]
struct Request {
    params: Params,
}

#[derive(Default, Deserialize)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Of a request whose arguments are not wanted.
#[derive(Deserialize)]
struct Named {
    params: Name,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

impl From<Name> for Params {
    fn from(Name { name }: Name) -> Self {
        Self { name, arguments: Value::Null }
    }
}

/// The result or the error in a message, or in the last event that has one.
fn result_in(bytes: &[u8]) -> Value {
    #[derive(Deserialize)]
    struct Message {
        result: Option<Value>,
        error: Option<Value>,
    }
    let read = |bytes: &[u8]| {
        let message = serde_json::from_slice::<Message>(bytes).ok()?;
        message.result.or(message.error)
    };
    if let Some(result) = read(bytes) {
        return result;
    }
    // An agent writes a message as one line of data.
    let lines = bytes.split(|byte| *byte == b'\n').rev();
    lines.filter_map(|line| line.strip_prefix(b"data:")).find_map(read).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taped(request: &Value, answer: Answer) -> Call {
        let mut taped = Taped::begin(7, Bytes::from(request.to_string()));
        (taped.id, taped.client, taped.answer) = ("a-1".to_owned(), "c".to_owned(), answer);
        taped.took = Duration::from_micros(1_234);
        taped.into_call()
    }

    fn request(arguments: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": arguments}})
    }

    #[test]
    fn a_call_is_told_without_secrets() {
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "pwd = 'x'"}]}});
        let call = taped(
            &request(json!({"env": {"API_KEY": "k"}})),
            Answer::of_window(answer.to_string().as_bytes()),
        );
        assert_eq!(call.arguments, json!({"env": {"API_KEY": redact::HIDDEN}}));
        assert_eq!(call.result["content"][0]["text"], "pwd = [redacted]");
        assert!(call.is_redacted && !call.is_cut && call.tool == "t");
        assert_eq!((call.at_ms, call.took_ms), (7, 1.234));
    }

    #[test]
    fn an_answer_is_found_among_events() {
        let events = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n\
            id: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":1}}\n\n";
        assert_eq!(taped(&request(json!({})), Answer::of_window(events.as_bytes())).result, json!({"n": 1}));
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#;
        assert_eq!(taped(&request(json!({})), Answer::of_window(error.as_bytes())).result["code"], -1);
    }

    #[test]
    fn what_is_too_long_is_left_out_and_said() {
        let call = taped(&request(json!({"text": "x".repeat(MAX_PART)})), Answer::None);
        assert!(call.is_cut && call.arguments.is_null() && call.tool == "t", "{call:?}");
        let call = taped(&request(json!({"n": 1})), Answer::of_window(&vec![b'x'; MAX_PART + 1]));
        assert!(call.is_cut && call.result.is_null() && call.arguments == json!({"n": 1}), "{call:?}");
    }
}
