//! CORE: the engine's errors in the words of the toolset `debugger`.

use baton_agent_base::fault::{Fault, sentence};
use baton_agent_debug::error::DebugError;

/// What is wrong, and what to try.
pub(super) fn told(error: DebugError) -> Fault {
    let hint = match &error {
        DebugError::NoSuchBreakpoint { .. } => "Call get_breakpoints to list them.",
        DebugError::Untrusted { .. } => {
            "Call start_debugging again when the user has said that they trust it."
        }
        DebugError::TooManySessions { .. } => "Stop one with stop_debugging.",
        DebugError::NoSession | DebugError::SessionEnded { .. } => "Call start_debugging to start one.",
        DebugError::NoSuchSession { .. } => "Use the session_id of the latest stop_event_data, or omit it.",
        DebugError::AdapterDied { .. } => {
            "The session is over and its processes are gone; call start_debugging."
        }
        DebugError::NoSuchThread { .. } => "Use the thread_id of the latest stop_event_data.",
        DebugError::NotStopped { .. } => {
            "Call continue_debugging to wait for its next stop, or stop_debugging."
        }
        DebugError::StaleFrame { .. } | DebugError::NoSuchFrame { .. } => {
            "Use a frame_id of call_stack in the latest stop_event_data."
        }
        DebugError::StaleReference { .. } | DebugError::NoSuchReference { .. } => {
            "Call get_scopes with a frame_id of the latest stop_event_data."
        }
        DebugError::Refused { .. } => "Check the arguments against the latest stop_event_data.",
        DebugError::NoAnswer { .. } => "The program may be busy; try again, or call stop_debugging.",
        _ => error.hint().unwrap_or_default(),
    };
    let fault = Fault::new(error.kind(), sentence(&error.to_string()));
    if hint.is_empty() { fault } else { fault.hint(hint) }
}
