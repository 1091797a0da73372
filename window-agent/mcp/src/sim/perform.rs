//! The tools of a simulation: each call says who it is and how long it takes, and its effect is that it is counted.
//! Those that start, move and end programs are the product's own.

use std::time::Duration;

use baton_agent_base::object::{Object, object};
use baton_agent_tools::answer::Answer;
use baton_agent_tools::caller::Caller;
use baton_agent_tools::definition::Definition;
use baton_agent_tools::window::Window;
use baton_link::sim::{self, Event};
use baton_proto::edge::TERM_HEADER;
use baton_proto::ids::Term;
use hyper::HeaderMap;
use serde_json::{Value, json};

/// Counts the call, takes its time, and answers with its name.
pub(super) fn call<'a>(
    window: &'a Window,
    definition: &'a Definition,
    arguments: Option<Object>,
    caller: Caller,
    head: Option<&HeaderMap>,
) -> impl Future<Output = Answer> + 'a {
    let term: Option<Term> = head.and_then(|head| head.get(TERM_HEADER)?.to_str().ok()?.parse().ok());
    let mut arguments = arguments.unwrap_or_default();
    async move {
        let call =
            arguments.remove("call").and_then(|call| Some(call.as_str()?.to_owned())).unwrap_or_default();
        let time = arguments.remove("ms").and_then(|ms| ms.as_u64()).unwrap_or(0);
        let ran = Event::Ran { window: window.id.clone(), call: call.clone(), term };
        if definition.name.ends_with("_debugging") {
            let answer = debugged(window, definition, arguments, caller, ran).await;
            return with_name(answer, window, &call);
        }
        sim::note(ran);
        tokio::time::sleep(Duration::from_millis(time)).await;
        with_name(Answer::Result(object(json!({ "status": "success" }))), window, &call)
    }
}

/// Counts only what has an effect: a call about a session of another window has none.
async fn debugged(
    window: &Window,
    definition: &Definition,
    arguments: Object,
    caller: Caller,
    ran: Event,
) -> Answer {
    let named = arguments.get("session_id").and_then(Value::as_str);
    let sessions = window.debugger.sessions();
    if named.is_some_and(|named| sessions.iter().all(|own| own.id.as_str() != named)) {
        return baton_agent_tools::call(window, definition, Some(arguments), caller).await;
    }
    sim::note(ran);
    match baton_agent_tools::call(window, definition, Some(arguments), caller).await {
        Answer::Error(fault) => Answer::Result(object(json!({ "status": "success", "failed": fault.kind }))),
        answer => answer,
    }
}

fn with_name(answer: Answer, window: &Window, call: &str) -> Answer {
    let Answer::Result(mut object) = answer else { return answer };
    object.insert("call".to_owned(), json!(call));
    object.insert("by".to_owned(), json!(window.id.as_str()));
    Answer::Result(object)
}
