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
