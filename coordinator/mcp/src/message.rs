//! CORE: the answers that Baton itself gives, as messages.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fault::{RpcError, ToolFailure};
use crate::revision::Era;

/// A tool result with the error `failure`.
pub fn tool_failure_bytes(era: Era, id: &RawValue, failure: &ToolFailure) -> Vec<u8> {
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
pub fn interrupted_bytes(era: Era, id: &RawValue) -> Vec<u8> {
    let content = json!({
        "status": "interrupted",
        "message": "The call was canceled; changes it already made remain. A program it was waiting for \
                    keeps running.",
    });
    rpc_result_bytes(id, &tool_content(era, &content, false))
}

/// A tool result: `content` as structure and as text.
pub fn tool_content(era: Era, content: &Value, is_error: bool) -> Value {
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

/// What an answer to a tool call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// A result.
    Well,
    /// A result that says that it is an error.
    ToolError,
    /// An error of JSON-RPC.
    RpcError,
}

/// What the answer in `bytes` is, a message as Baton's agents write it or an event with one. It is not parsed: a quote
/// in a text stands behind a backslash, so what is looked for stands in none.
pub fn answered(bytes: &[u8]) -> Answered {
    /// Where an error of JSON-RPC stands: behind version and id.
    const HEAD: usize = 512;
    let has = |bytes: &[u8], text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
    if has(bytes, r#""isError":true"#) {
        Answered::ToolError
    } else if has(&bytes[..bytes.len().min(HEAD)], r#","error":{"code":"#) {
        Answered::RpcError
    } else {
        Answered::Well
    }
}

/// A protocol error in answer to the request `id`, when it is known.
pub fn rpc_error_bytes(id: Option<&RawValue>, error: &RpcError) -> Vec<u8> {
    let mut object = json!({ "code": error.code, "message": error.message });
    if let Some(data) = &error.data {
        object["data"] = data.clone();
    }
    to_bytes(&ErrorMessage { jsonrpc: "2.0", id, error: object })
}

/// A result in answer to the request `id`.
pub fn rpc_result_bytes(id: &RawValue, result: &Value) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{code, outcome_unknown};

    #[test]
    fn an_answer_is_taken_for_what_it_is() {
        let id: Box<RawValue> = serde_json::from_str("7").unwrap();
        let era = Era::Stateless;
        let quoting = json!({ "text": r#""isError":true ,"error":{"code":"# });
        let well = rpc_result_bytes(&id, &tool_content(era, &quoting, false));
        assert_eq!(answered(&well), Answered::Well);
        let failed = tool_failure_bytes(era, &id, &outcome_unknown("It ended"));
        assert_eq!(answered(&failed), Answered::ToolError);
        let refused = RpcError::new(code::INVALID_PARAMS, r#""isError":true"#);
        assert_eq!(answered(&rpc_error_bytes(Some(&id), &refused)), Answered::RpcError);
        let event = [b"data: ", failed.as_slice(), b"\n\n"].concat();
        assert_eq!(answered(&event), Answered::ToolError);
    }
}
