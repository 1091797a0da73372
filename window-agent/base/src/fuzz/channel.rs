//! The extension's channel: every message that is one arrives, in its order, and every waiter is told of the end.

use baton_proto::shim::{AskHandover, HandoverQuestion};

use super::frames::bodies;
use super::json::{Json, read};
use crate::shim::{FromExtension, Shim, ShimError};

/// What a body is.
enum Expected {
    Message {
        id: Option<Json>,
        method: String,
        params: Json,
    },
    Answer,
    Junk,
    /// Where a plain reader does not know: a number beyond all bounds, a name that comes twice.
    Unknown,
}

pub(super) fn run(bytes: &[u8]) {
    let expected: Vec<Expected> = bodies(bytes).iter().map(|body| message(body)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (heard, asked) = runtime.block_on(async {
        let reader = std::io::Cursor::new(bytes.to_vec());
        let (shim, mut from_extension) = Shim::open(reader, tokio::io::sink());
        let question = HandoverQuestion { client: "a client".to_owned() };
        let asking = tokio::spawn(async move { shim.ask::<AskHandover>(question).await });
        let mut heard = Vec::new();
        while let Some(message) = from_extension.recv().await {
            heard.push(message);
        }
        (heard, asking.await.expect("an answer, or the end"))
    });
    if expected.iter().any(|one| matches!(one, Expected::Unknown)) {
        return;
    }
    if !expected.iter().any(|one| matches!(one, Expected::Answer)) {
        assert_eq!(asked, Err(ShimError::Closed));
    }
    let mut heard = heard.into_iter();
    for one in expected {
        let Expected::Message { id: wanted_id, method: wanted, params: wanted_params } = one else {
            continue;
        };
        let (id, method, params) = match heard.next() {
            Some(FromExtension::Request { id, method, params }) => (Some(id), method, params),
            Some(FromExtension::Notification { method, params }) => (None, method, params),
            None => panic!("{wanted} was not heard"),
        };
        assert_eq!(method, wanted);
        assert_eq!(id.is_some(), wanted_id.is_some(), "{wanted}");
        assert!(id.is_none_or(|id| wanted_id.is_some_and(|wanted| wanted.is_same(&id))));
        assert!(wanted_params.is_same(&params), "{params} is not {wanted_params:?}");
    }
    assert!(heard.next().is_none(), "nothing is heard that was not said");
}

fn message(body: &[u8]) -> Expected {
    let Some(value) = std::str::from_utf8(body).ok().and_then(|text| read(text, false)) else {
        return Expected::Junk;
    };
    if !is_known(&value) {
        return Expected::Unknown;
    }
    let Json::Object(_) = value else { return Expected::Junk };
    // Null is as good as nothing.
    let one = |name: &str| value.all(name).first().copied().filter(|value| **value != Json::Null);
    let method = match one("method") {
        Some(Json::Text(Some(method))) => Some(method.clone()),
        None => None,
        _ => return Expected::Junk,
    };
    let is_error = |error: &Json| matches!(error.all("message").as_slice(), [Json::Text(Some(_))]);
    if one("error").is_some_and(|error| !is_error(error)) {
        return Expected::Junk;
    }
    let Some(method) = method else { return Expected::Answer };
    let params = one("params").cloned().unwrap_or(Json::Null);
    Expected::Message { id: one("id").cloned(), method, params }
}

/// Lists for objects, depth and numbers are where serde has its own mind.
fn is_known(value: &Json) -> bool {
    let is_number = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    let are_fine = match value {
        Json::Number(text) => is_number(text),
        Json::List(items) => items.iter().all(is_known),
        Json::Object(members) => members.iter().all(|(_, value)| is_known(value)),
        _ => true,
    };
    are_fine && value.is_plain() && value.depth() < 100
}
