//! The tools of a simulation: each call says who it is and how long it takes, and its effect is that it is counted.

use std::time::Duration;

use baton_agent_base::object::Object;
use baton_agent_tools::answer::Answer;
use baton_agent_tools::definition::Definition;
use baton_agent_tools::whose::Caller;
use baton_agent_tools::window::Window;
use baton_link::sim::{self, Event};
use baton_proto::edge::TERM_HEADER;
use hyper::HeaderMap;
use serde_json::{Value, json};

/// Counts the call, takes its time, and answers with its name.
pub(super) fn call<'a>(
    window: &'a Window,
    _definition: &'a Definition,
    arguments: Option<Object>,
    _caller: Caller,
    head: Option<&HeaderMap>,
) -> impl Future<Output = Answer> + 'a {
    let term = head.and_then(|head| head.get(TERM_HEADER)?.to_str().ok()?.parse().ok());
    let arguments = arguments.unwrap_or_default();
    async move {
        let call = arguments.get("call").and_then(Value::as_str).unwrap_or_default().to_owned();
        let time = arguments.get("ms").and_then(Value::as_u64).unwrap_or(0);
        sim::note(Event::Ran { window: window.id.clone(), call: call.clone(), term });
        tokio::time::sleep(Duration::from_millis(time)).await;
        let object = json!({ "status": "success", "call": call, "by": window.id.as_str() });
        match object {
            Value::Object(object) => Answer::Result(object),
            _ => Answer::Result(Object::new()),
        }
    }
}
