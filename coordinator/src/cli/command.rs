//! `baton take|start|stop|restart WINDOW`.

use baton_proto::control::{Outcome, WindowState};
use serde_json::json;

use super::{Done, output, running};

pub(super) async fn run(verb: &str, window: &str) -> Done {
    // A folder may be given relative to where the user stands; ids and names have no separators or dots first.
    let is_path = window.contains(std::path::MAIN_SEPARATOR) || window == "." || window == "..";
    let canonical = if is_path { std::fs::canonicalize(window).ok() } else { None };
    let target = canonical.map_or_else(|| window.to_owned(), |path| path.to_string_lossy().into_owned());
    let path = format!("/v1/windows/{}/{verb}", percent_encode(&target));
    let outcome: Outcome = running().await?.post(&path, &json!({})).await?;
    let state = match outcome.state {
        WindowState::Off if verb == "restart" => "restarts and stays off; `baton start` makes it live",
        // Its place is held until its new agent is there.
        _ if verb == "restart" => "restarts",
        WindowState::Live => "is live",
        WindowState::Standby => "is standby",
        WindowState::Off => "is off",
    };
    output::line(format!("{} {state}", outcome.window.name));
    Ok(())
}

/// Everything but unreserved characters is encoded, so that any name or folder is one segment of a path.
fn percent_encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_one_segment() {
        assert_eq!(percent_encode("a-b_c~1"), "a-b_c~1");
        assert_eq!(percent_encode("/x y/.."), "%2Fx%20y%2F%2E%2E");
        assert_eq!(percent_encode("é?#"), "%C3%A9%3F%23");
    }
}
