//! `baton take|start|stop|restart WINDOW`.

use baton_proto::control::WindowState;
use baton_proto::shim::Verb;

use super::outcome::Done;
use super::output;
use super::reach::running;

pub(super) async fn run(verb: Verb, window: &str) -> Done {
    // A folder may be given relative to where the user stands; ids and names have no separators or dots first.
    let is_path = window.contains(std::path::MAIN_SEPARATOR) || window == "." || window == "..";
    let canonical = if is_path { std::fs::canonicalize(window).ok() } else { None };
    let target = canonical.map_or_else(|| window.to_owned(), |path| path.to_string_lossy().into_owned());
    let outcome = running().await?.order(&target, verb).await?;
    let state = match outcome.state {
        WindowState::Off if verb == Verb::Restart => "is restarting and stays off",
        // Its place is held until its new agent is there.
        _ if verb == Verb::Restart => "is restarting",
        WindowState::Live => "is live",
        WindowState::Standby => "is standby",
        WindowState::Off => "is off",
    };
    output::line(format!("{} {state}", outcome.window.name));
    if verb == Verb::Restart && outcome.state == WindowState::Off {
        output::hint("make it live with `baton start`");
    }
    Ok(())
}
