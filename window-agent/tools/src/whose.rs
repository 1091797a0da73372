//! Which debug session a call means that names none, when several clients debug in one window: the client's own,
//! never another's. No IO, no clock.

use serde_json::Value;

use crate::answer::Answer;
use crate::{debug, quick};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::object::Object;
use baton_agent_debug::types::control::Status;
use baton_agent_debug::types::{Given, Phase, SessionId};
use baton_proto::edge::Handle;

/// Sessions that a refusal lists.
const MAX_LISTED: usize = 8;

/// What a call has to do with a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bearing {
    /// Nothing, or it names it by what it is given.
    None,
    /// It names this one.
    Named(SessionId),
    /// It means one and does not name it.
    Unnamed,
    /// It can tell of one besides.
    Optional,
}

/// What a call on these arguments has to do with a session.
pub(crate) fn bearing(toolset: &str, tool: &str, arguments: &Object) -> Bearing {
    let text =
        |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let unnamed = |is_named_otherwise| if is_named_otherwise { Bearing::None } else { Bearing::Unnamed };
    match toolset {
        debug::schema::TOOLSET => match (text("session"), text(debug::ACTION).unwrap_or_default()) {
            (_, "launch" | "attach" | "sessions") => Bearing::None,
            (Some(session), _) => Bearing::Named(SessionId(session.to_owned())),
            (None, "set_breakpoint" | "remove_breakpoint") => Bearing::Optional,
            (None, "custom_request") if text("command") == Some("setExceptionBreakpoints") => {
                Bearing::Optional
            }
            (None, "custom_request") => Bearing::Unnamed,
            (None, _) if given_id(toolset, tool, arguments).is_some() => Bearing::Optional,
            (None, _) => Bearing::Unnamed,
        },
        quick::schemas::TOOLSET => match (tool, text(quick::schemas::SESSION)) {
            (
                "debug_start" | "debug_setBreakpoint" | "debug_removeBreakpoint" | "debug_listBreakpoints",
                _,
            ) => Bearing::None,
            (_, Some(session)) => Bearing::Named(SessionId(session.to_owned())),
            (_, None) => unnamed(given_id(toolset, tool, arguments).is_some()),
        },
        _ => match (tool, text("session_id")) {
            (_, Some(session)) => {
                let read = Handle::Session.read_uuid(session);
                Bearing::Named(SessionId(read.unwrap_or_else(|| session.to_owned())))
            }
            ("continue_debugging" | "step_execution" | "stop_debugging", None) => Bearing::Unnamed,
            _ => Bearing::None,
        },
    }
}

/// The frame or container of variables that a call on these arguments uses: it belongs to one session.
pub(crate) fn given_id(toolset: &str, tool: &str, arguments: &Object) -> Option<Given> {
    let number = |of: &Object, name: &str| of.get(name).and_then(Value::as_i64);
    let frame = |name: &str| number(arguments, name).map(Given::Frame);
    let reference = |name: &str| number(arguments, name).map(Given::Reference);
    let container = || reference("variable_ref").or_else(|| reference("scope_id"));
    match (toolset, tool) {
        (debug::schema::TOOLSET, _) => match arguments.get(debug::ACTION).and_then(Value::as_str)? {
            "evaluate" | "scopes" => frame("frame_id"),
            "variables" => container(),
            "data_breakpoint_info" => container().or_else(|| frame("frame_id")),
            "custom_request" => {
                let inside = arguments.get("arguments").and_then(Value::as_object);
                let inside = |name| inside.and_then(|inside| number(inside, name));
                let container = inside("variablesReference").filter(|reference| *reference != 0);
                let frame = inside("frameId").map(Given::Frame).or_else(|| frame("frame_id"));
                container.map(Given::Reference).or(frame)
            }
            _ => None,
        },
        (quick::schemas::TOOLSET, _) => frame("frameId"),
        (_, "get_scopes" | "evaluate_expression") => frame("frame_id"),
        (_, "get_variables") => reference("variables_reference"),
        _ => None,
    }
}

/// A call names one session, and what it is given is of another one.
pub(crate) fn foreign(id: Given, named: &SessionId, owner: &SessionId) -> Fault {
    let what = match id {
        Given::Frame(frame_id) => format!("Frame {frame_id}"),
        Given::Reference(reference) => format!("Variables reference {reference}"),
    };
    Fault::new(Kind::ForeignId, format!("{what} is of debug session {owner}, not of {named}."))
        .hint("Omit the session, or name that one.")
}

/// The session that a call means that names none; `Ok(None)` leaves it to the engine, which takes the one that stopped
/// or started last.
pub(crate) fn meant(
    caller: Option<&str>,
    last: Option<&SessionId>,
    all: &[Status],
) -> Result<Option<SessionId>, Fault> {
    let is_others = |status: &&Status| status.owner.is_some() && status.owner.as_deref() != caller;
    if !all.iter().any(|status| is_others(&status)) {
        return Ok(None);
    }
    let is_mine = |status: &&Status| caller.is_some() && status.owner.as_deref() == caller;
    let live: Vec<&Status> = all.iter().filter(|status| status.phase != Phase::Terminated).collect();
    let own_root = |status: &&&Status| is_mine(status) && status.parent.is_none();
    // To name another's once, and be it to look at it, does not make it the client's own.
    let is_last = |status: &&Status| last == Some(&status.id) && !is_others(status);
    let known = live.iter().find(|status| is_last(status)).or_else(|| live.iter().rev().find(own_root));
    if let Some(known) = known {
        return Ok(Some(known.id.clone()));
    }
    let mut nobodys = live.iter().filter(|status| status.owner.is_none() && status.parent.is_none());
    match (nobodys.next(), nobodys.next()) {
        (Some(only), None) => return Ok(Some(only.id.clone())),
        (Some(_), Some(_)) => return Err(unclear(&live)),
        (None, _) => {}
    }
    // What has ended may still have something to tell.
    let ended = all.iter().rev().find(|status| is_last(status) || is_mine(status));
    match ended {
        Some(ended) => Ok(Some(ended.id.clone())),
        None => Err(unclear(&live)),
    }
}

fn unclear(live: &[&Status]) -> Fault {
    let told: Vec<String> =
        live.iter().take(MAX_LISTED).map(|status| format!("{} ({})", status.id, status.name)).collect();
    if told.is_empty() {
        return Fault::new(Kind::NoSession, "No debug session of this client. Launch or attach first.");
    }
    let message = format!("No debug session of this client; others debug here: {}.", told.join(", "));
    Fault::new(Kind::WhichSession, message).hint("Pass the id of the session you mean, or start your own.")
}

/// The session that an answer tells.
pub(crate) fn told(answer: &Answer) -> Option<SessionId> {
    let object = match answer {
        Answer::Result(object) => object,
        Answer::Spoken(spoken) => &spoken.object,
        Answer::Error(_) => return None,
    };
    const PLACES: [(&str, Option<&str>); 5] = [
        ("snapshot", Some("id")),
        ("stop_event_data", Some("session_id")),
        ("data", Some("session_id")),
        ("session_id", None),
        ("sessionId", None),
    ];
    let at = |(name, inside): (&str, Option<&str>)| {
        let value = object.get(name)?;
        inside.map_or(Some(value), |inside| value.get(inside))?.as_str()
    };
    let id = PLACES.into_iter().find_map(at)?;
    Some(SessionId(Handle::Session.read_uuid(id).unwrap_or_else(|| id.to_owned())))
}

/// An answer that names its session, for a window in which there are several.
pub(crate) fn named(answer: Answer, toolset: &str, session: &SessionId) -> Answer {
    let field = if toolset == quick::schemas::TOOLSET { quick::schemas::SESSION } else { "session_id" };
    let is_told = told(&answer).is_some();
    match answer {
        Answer::Result(mut object) if !is_told => {
            object.insert(field.to_owned(), session.as_str().into());
            Answer::Result(object)
        }
        Answer::Spoken(mut spoken) if spoken.is_text_whole => {
            if let Some(text) = spoken.texts.first_mut().filter(|text| !text.contains(session.as_str())) {
                *text = format!("[session {session}] {text}");
            }
            Answer::Spoken(spoken)
        }
        Answer::Spoken(mut spoken) if !is_told && !spoken.is_error => {
            spoken.object.insert(field.to_owned(), session.as_str().into());
            Answer::Spoken(spoken)
        }
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(id: &str, owner: &str, phase: Phase) -> Status {
        let owner = Some(owner.to_owned()).filter(|owner| !owner.is_empty());
        Status { owner, ..Status::of(id, phase) }
    }

    fn of(caller: &str, last: Option<&str>, all: &[Status]) -> String {
        let last = last.map(|last| SessionId(last.to_owned()));
        match meant(Some(caller), last.as_ref(), all) {
            Ok(None) => "the engine's".to_owned(),
            Ok(Some(session)) => session.0,
            Err(fault) => fault.kind.to_string(),
        }
    }

    #[test]
    fn a_client_alone_leaves_it_to_the_engine() {
        assert_eq!(of("a", None, &[]), "the engine's");
        let own = [status("1", "a", Phase::Running), status("2", "", Phase::Stopped)];
        assert_eq!(of("a", Some("1"), &own), "the engine's");
    }

    #[test]
    fn among_several_clients_each_has_its_own() {
        let all = [
            status("1", "a", Phase::Running),
            status("2", "a", Phase::Stopped),
            status("3", "b", Phase::Stopped),
        ];
        assert_eq!((of("a", None, &all), of("a", Some("1"), &all)), ("2".to_owned(), "1".to_owned()));
        // That it looked at another's makes no difference.
        assert_eq!((of("b", None, &all), of("b", Some("2"), &all)), ("3".to_owned(), "3".to_owned()));
        assert_eq!(
            (of("c", None, &all), of("c", Some("3"), &all)),
            ("which_session".to_owned(), "which_session".to_owned())
        );
        assert_eq!(meant(None, None, &all).unwrap_err().kind, Kind::WhichSession);
    }

    #[test]
    fn what_ended_is_still_ones_own_and_nobodys_is_everybodys() {
        let ended = [status("1", "a", Phase::Terminated), status("2", "b", Phase::Running)];
        assert_eq!(
            (of("a", None, &ended), of("c", None, &ended)),
            ("1".to_owned(), "which_session".to_owned())
        );
        let users = [status("1", "b", Phase::Running), status("2", "", Phase::Stopped)];
        assert_eq!(of("a", None, &users), "2");
        assert_eq!(of("a", None, &[status("1", "b", Phase::Terminated)]), "no_session");
    }

    #[test]
    fn an_id_says_of_which_session_it_is_and_a_call_that_uses_none_is_of_ones_own() {
        let call = |toolset: &str, tool: &str, arguments: Value| {
            let Value::Object(arguments) = arguments else { panic!("not an object") };
            (bearing(toolset, tool, &arguments), given_id(toolset, tool, &arguments))
        };
        let debug = |arguments: Value| call(debug::schema::TOOLSET, "debug", arguments);
        let (frame, reference) = (Some(Given::Frame(7)), Some(Given::Reference(8)));
        for (arguments, expected) in [
            (json!({"action": "evaluate", "frame_id": 7}), (Bearing::Optional, frame)),
            (json!({"action": "scopes", "frame_id": 7}), (Bearing::Optional, frame)),
            (
                json!({"action": "variables", "scope_id": 9, "variable_ref": 8}),
                (Bearing::Optional, reference),
            ),
            (
                json!({"action": "data_breakpoint_info", "scope_id": 8, "frame_id": 7}),
                (Bearing::Optional, reference),
            ),
            (json!({"action": "custom_request", "arguments": {"frameId": 7}}), (Bearing::Unnamed, frame)),
            (
                json!({"action": "custom_request", "arguments": {"frameId": 7, "variablesReference": 8}}),
                (Bearing::Unnamed, reference),
            ),
            // It is about all sessions, also those to come.
            (
                json!({"action": "custom_request", "command": "setExceptionBreakpoints"}),
                (Bearing::Optional, None),
            ),
            // What takes no id is about the client's own, whatever stands beside it.
            (json!({"action": "continue", "frame_id": 7}), (Bearing::Unnamed, None)),
            (json!({"action": "terminate", "variable_ref": 8, "scope_id": 8}), (Bearing::Unnamed, None)),
            (json!({"action": "evaluate"}), (Bearing::Unnamed, None)),
        ] {
            assert_eq!(debug(arguments.clone()), expected, "{arguments}");
        }
        let quick = |arguments| call(quick::schemas::TOOLSET, "debug_evaluate", arguments);
        assert_eq!(quick(json!({"frameId": 7})), (Bearing::None, frame));
        let named = Bearing::Named(SessionId("p".to_owned()));
        assert_eq!(quick(json!({"frameId": 7, "sessionId": "p"})), (named, frame));
        assert_eq!(quick(json!({})), (Bearing::Unnamed, None));
        assert_eq!(
            call("debugger", "get_variables", json!({"variables_reference": 8})),
            (Bearing::None, reference)
        );
    }
}
