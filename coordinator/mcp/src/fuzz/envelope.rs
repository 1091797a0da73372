//! Messages of clients: taken or refused as a plain reader of JSON would, and the same parts read out of them.

use baton_proto::bounds::DEPTH_MAX;
use serde_json::value::RawValue;

use super::json::{Json, read};
use crate::envelope::{CommonParams, Message, params, parse, routing_arguments};

const NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// What a message is.
enum Expected<'a> {
    Request { id: &'a Json, method: &'a str, params: Option<&'a Json> },
    Notification { method: &'a str, params: Option<&'a Json> },
    Answer,
    Refused,
}

pub(super) fn run(bytes: &[u8]) {
    let found = parse(bytes);
    let value = std::str::from_utf8(bytes).ok().and_then(|text| read(text, false));
    if let (Some(value), Ok(other)) = (&value, serde_json::from_slice::<serde_json::Value>(bytes)) {
        assert!(!value.is_plain() || value.is_same(&other), "the plain reader itself is wrong: {value:?}");
    }
    match (found, expected(value.as_ref())) {
        (Ok(Message::Request(request)), Expected::Request { id, method, params }) => {
            assert_eq!(request.method, method);
            assert_eq!(read(request.id.get(), false).as_ref(), Some(id));
            check_params(request.params, params);
        }
        (
            Ok(Message::Notification { method, params }),
            Expected::Notification { method: wanted, params: all },
        ) => {
            assert_eq!(method, wanted);
            check_params(params, all);
        }
        (Ok(Message::Answer), Expected::Answer) | (Err(_), Expected::Refused) => {}
        // Numbers that not every reader can hold may be refused.
        (Err(_), Expected::Request { id: Json::Number(id), .. }) if id.parse::<i64>().is_err() => {}
        (found, _) => panic!("{found:?} of {:?}", String::from_utf8_lossy(bytes)),
    }
}

fn expected(value: Option<&Json>) -> Expected<'_> {
    let Some(Json::Object(members)) = value else { return Expected::Refused };
    let value = value.expect("it is an object");
    let names: Option<Vec<&String>> = members.iter().map(|(name, _)| name.as_ref()).collect();
    let Some(names) = names else { return Expected::Refused };
    let is_twin =
        |name: &&&String| NAMES.iter().any(|known| *known != **name && name.eq_ignore_ascii_case(known));
    if value.depth() > DEPTH_MAX
        || names.iter().any(|name| is_twin(&name))
        || NAMES.iter().any(|known| names.iter().filter(|name| **name == known).count() > 1)
    {
        return Expected::Refused;
    }
    let one = |name: &str| value.all(name).first().copied();
    let Some(Json::Text(Some(version))) = one("jsonrpc") else { return Expected::Refused };
    let method = match one("method") {
        Some(Json::Text(Some(method))) => Some(method),
        None => None,
        _ => return Expected::Refused,
    };
    let is_answer = one("result").is_some() || one("error").is_some();
    // Null parameters are none.
    let params = one("params").filter(|params| **params != Json::Null);
    match (method, is_answer, one("id")) {
        _ if version != "2.0" => Expected::Refused,
        (None, true, _) => Expected::Answer,
        (Some(method), false, None) => Expected::Notification { method, params },
        (Some(method), false, Some(id)) if is_id(id) => Expected::Request { id, method, params },
        _ => Expected::Refused,
    }
}

fn is_id(id: &Json) -> bool {
    match id {
        Json::Text(text) => text.is_some(),
        Json::Number(text) => !text.contains(['.', 'e', 'E']),
        _ => false,
    }
}

/// Parameters are the bytes that were sent; what routing reads of them stands there once.
fn check_params(found: Option<&RawValue>, expected: Option<&Json>) {
    let value = found.and_then(|found| read(found.get(), false)).filter(|value| *value != Json::Null);
    assert_eq!(value.as_ref(), expected);
    let Some(value) = value else { return };
    let Ok(common) = params::<CommonParams<'_>>(found) else { return };
    assert!(value.all("name").len() <= 1 && value.all("arguments").len() <= 1, "read twice: {value:?}");
    let name = value.all("name").first().and_then(|name| text(name));
    assert_eq!(common.name.as_deref(), name.as_deref());
    let arguments = value.all("arguments").first().copied().filter(|arguments| **arguments != Json::Null);
    check_arguments(common.arguments, arguments);
}

fn check_arguments(found: Option<&RawValue>, value: Option<&Json>) {
    let routing = routing_arguments(found);
    let is_object = matches!(value, Some(Json::Object(_)));
    let all = |name: &str| value.map(|value| value.all(name)).unwrap_or_default();
    if ["window", "session", "session_id"].iter().any(|name| all(name).len() > 1) {
        assert!(routing.is_err(), "{value:?} names two windows");
        return;
    }
    let Ok(routing) = routing else {
        assert!(is_object, "only an object can be refused");
        return;
    };
    assert_eq!(routing.window.as_deref(), all("window").first().and_then(|value| text(value)).as_deref());
    let is_named =
        ["session", "session_id"].iter().any(|name| all(name).iter().any(|value| text(value).is_some()));
    assert_eq!(routing.session.is_some(), is_named);
}

fn text(value: &Json) -> Option<String> {
    match value {
        Json::Text(text) => text.clone(),
        _ => None,
    }
}
