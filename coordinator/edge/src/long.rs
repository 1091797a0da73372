//! Long messages: looked through on a thread of their own, and routed by the little that routing reads of them.

use std::borrow::Cow;
use std::fmt;

use baton_mcp::envelope::{self, Message, Request};
use baton_mcp::fault::{RpcError, code};
use baton_proto::bounds::Excess;
use bytes::Bytes;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

/// From this length on a message is long. The coordinator has one thread, and all windows beat on it.
const LONG: usize = 64 * 1024;
/// What routing reads of the parameters of a call.
const PARAMS: [&str; 3] = ["_meta", "name", "arguments"];
/// What it reads of the arguments.
const ARGUMENTS: [&str; 3] = ["window", "session_id", "session"];

/// What the edge reads of a message.
pub(crate) struct Look {
    /// The message itself while it is short; else one that is routed like it.
    pub(crate) message: Bytes,
    /// Why the message is refused, as far as this message does not tell any more.
    pub(crate) excess: Option<Excess>,
}

/// An error, and the request that it is about.
pub(crate) struct Refused(pub(crate) Option<Box<RawValue>>, pub(crate) RpcError);

/// Looks through a message without holding up anybody else.
pub(crate) async fn look(body: &Bytes) -> Result<Look, Refused> {
    if body.len() < LONG {
        return Ok(Look { message: body.clone(), excess: None });
    }
    // One at a time: there is one thread more for long messages, however many there are.
    static TURN: Semaphore = Semaphore::const_new(1);
    let _turn = TURN.acquire().await;
    let long = body.clone();
    match tokio::task::spawn_blocking(move || reduce(&long)).await {
        Ok(looked) => looked,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Refused(
                None,
                RpcError::new(
                    code::INTERNAL_ERROR,
                    "the coordinator is shutting \
                                                                             down",
                ),
            )),
        },
    }
}

fn reduce(body: &[u8]) -> Result<Look, Refused> {
    let request = match envelope::parse(body) {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification { method, .. }) => {
            // Of those that mean something none is long.
            let message = serde_json::json!({"jsonrpc": "2.0", "method": method});
            return Ok(Look { message: message.to_string().into(), excess: None });
        }
        Ok(Message::Answer) => {
            return Ok(Look {
                message: Bytes::from_static(br#"{"jsonrpc":"2.0","result":{}}"#),
                excess: None,
            });
        }
        Err(error) => return Err(Refused(None, error)),
    };
    let refuse = |why: String| Refused(Some(request.id.to_owned()), RpcError::new(code::INVALID_PARAMS, why));
    let params = reduced_params(&request).map_err(refuse)?;
    let method = serde_json::Value::from(request.method.as_ref());
    let message = format!(r#"{{"jsonrpc":"2.0","id":{},"method":{method},"params":{params}}}"#, request.id);
    if message.len() > 2 * LONG {
        return Err(refuse("the ID or method is too long".to_owned()));
    }
    Ok(Look { message: message.into(), excess: request.excess })
}

/// The parameters of a call, with those of its arguments by which it is routed.
fn reduced_params(request: &Request<'_>) -> Result<String, String> {
    let params = request.params.map_or("{}", RawValue::get);
    if params.len() < LONG {
        return Ok(params.to_owned());
    }
    if request.method != "tools/call" {
        return Err(format!("the parameters of this method exceed {LONG} bytes"));
    }
    let mut kept = Vec::new();
    for (name, value) in members(params, &PARAMS)? {
        let value = match name.as_ref() {
            "arguments" if value.get().starts_with('{') => object(&members(value.get(), &ARGUMENTS)?)?,
            // The tool says what it wants.
            "arguments" => "null".to_owned(),
            _ => short(&name, value)?.to_owned(),
        };
        kept.push(format!("{}:{value}", serde_json::Value::from(name)));
    }
    Ok(format!("{{{}}}", kept.join(",")))
}

fn object(members: &[(Cow<'_, str>, &RawValue)]) -> Result<String, String> {
    let members: Result<Vec<String>, String> = members
        .iter()
        .map(|(name, value)| {
            Ok(format!("{}:{}", serde_json::Value::from(name.as_ref()), short(name, value)?))
        })
        .collect();
    Ok(format!("{{{}}}", members?.join(",")))
}

fn short<'a>(name: &str, value: &'a RawValue) -> Result<&'a str, String> {
    const MAX: usize = 8 * 1024;
    if value.get().len() > MAX { Err(format!("{name:?} exceeds {MAX} bytes")) } else { Ok(value.get()) }
}

/// The members of an object that have one of these names, as they come: also those that come twice.
fn members<'a>(object: &'a str, wanted: &[&str]) -> Result<Vec<(Cow<'a, str>, &'a RawValue)>, String> {
    struct Members<'w>(&'w [&'w str]);
    impl<'de> Visitor<'de> for Members<'_> {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                if self.0.contains(&name.as_ref()) {
                    found.push((name, map.next_value()?));
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    serde_json::Deserializer::from_str(object)
        .deserialize_map(Members(wanted))
        .map_err(|error| format!("invalid params: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(text: &str) -> Result<String, String> {
        match reduce(text.as_bytes()) {
            Ok(look) => Ok(String::from_utf8(look.message.to_vec()).unwrap()),
            Err(Refused(_, error)) => Err(error.message),
        }
    }

    #[test]
    fn a_long_call_is_routed_by_the_same_members() {
        let text = "x".repeat(LONG);
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"_meta":{{"k":1}},"name":"t","arguments":{{"new_text":"{text}","window":"w","window":"v"}},"more":"{text}"}}}}"#
        );
        assert_eq!(
            reduced(&call).unwrap(),
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"_meta":{"k":1},"name":"t","arguments":{"window":"w","window":"v"}}}"#,
            "what comes twice is still refused"
        );
        let named =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{text}"}}}}"#);
        assert_eq!(reduced(&named).unwrap_err(), r#""name" exceeds 8192 bytes"#);
        let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":"{text}"}}}}"#);
        assert_eq!(reduced(&list).unwrap_err(), "the parameters of this method exceed 65536 bytes");
        let padded = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}{}"#, " ".repeat(LONG));
        assert_eq!(reduced(&padded).unwrap(), r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#);
        assert!(reduced(&format!("{{{text}")).unwrap_err().contains("not a JSON-RPC message"));
        let many =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[{}0]}}"#, "0,".repeat(LONG));
        assert!(matches!(reduce(many.as_bytes()), Err(Refused(Some(_), _))), "parameters are an object");
    }
}
