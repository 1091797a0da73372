//! Performs what a tool does. A simulation (`--cfg sim`) has tools of its own in the place of all others.

use baton_agent_base::object::Object;
use baton_agent_tools::answer::Answer;
use baton_agent_tools::caller::Caller;
use baton_agent_tools::definition::Definition;
use baton_agent_tools::window::Window;
use hyper::HeaderMap;

/// Runs a tool, when its schema allows the arguments; the head of the request is of no meaning to it.
pub(super) fn call<'a>(
    window: &'a Window,
    definition: &'a Definition,
    arguments: Option<Object>,
    caller: Caller,
    _head: Option<&HeaderMap>,
) -> impl Future<Output = Answer> + 'a {
    baton_agent_tools::call(window, definition, arguments, caller)
}
