//! The routes of the control API, each written once: the coordinator's router takes methods and paths from here, so that
//! a caller and the daemon cannot spell one differently.

use baton_proto::percent;
use baton_proto::shim::Verb;

/// How a route is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Changes nothing.
    Get,
    /// Does something.
    Post,
    /// Changes what is named, and nothing else.
    Patch,
}

/// A method and a path, in which `{id}` stands for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// How it is asked.
    pub method: Method,
    /// Where it is.
    pub path: &'static str,
}

/// Prove the coordinator to a holder of the secret.
pub const HELLO: Route = post("/v1/hello");
/// Whether the coordinator answers.
pub const PING: Route = get("/v1/ping");
/// Announce a window, again or newly.
pub const REGISTER: Route = post("/v1/windows/{id}/register");
/// A sign of life, and what changed.
pub const HEARTBEAT: Route = post("/v1/windows/{id}/heartbeat");
/// End a window on purpose.
pub const LEAVE: Route = post("/v1/windows/{id}/leave");
/// Notices to the window, one JSON a line.
pub const EVENTS: Route = get("/v1/windows/{id}/events");
/// Make a window live.
pub const TAKE: Route = post("/v1/windows/{id}/take");
/// The same as take.
pub const START: Route = post("/v1/windows/{id}/start");
/// Stop a window; nobody takes its place.
pub const STOP: Route = post("/v1/windows/{id}/stop");
/// Restart the agent of a window.
pub const RESTART: Route = post("/v1/windows/{id}/restart");
/// One window.
pub const WINDOW: Route = get("/v1/windows/{id}");
/// Change the settings of a window.
pub const CHANGE_WINDOW: Route = patch("/v1/windows/{id}");
/// Settings in force.
pub const SETTINGS: Route = get("/v1/settings");
/// Change settings.
pub const CHANGE_SETTINGS: Route = patch("/v1/settings");
/// The coordinator and all windows.
pub const STATUS: Route = get("/v1/status");
/// Make all client tokens worthless.
pub const ROTATE_TOKEN: Route = post("/v1/token/rotate");
/// Another user showed the client token.
pub const TOKEN_HEARD: Route = post("/v1/token/heard");
/// Move to another port.
pub const CHANGE_PORT: Route = post("/v1/port");
/// What the page shows.
pub const LOOK: Route = get("/v1/look");
/// A one-time link to the page.
pub const PAGE: Route = post("/v1/page");
/// Where a process spends its time.
pub const PROFILE: Route = post("/v1/profile");
/// The record of calls that runs.
pub const RECORDING: Route = get("/v1/record");
/// Start a record of calls, or end it.
pub const RECORD: Route = post("/v1/record");
/// The raw event streams.
pub const RAW: Route = post("/v1/raw");
/// Hand everything over to another version.
pub const REPLACE: Route = post("/v1/replace");
/// Answer, then end the coordinator.
pub const SHUTDOWN: Route = post("/v1/shutdown");

const fn get(path: &'static str) -> Route {
    Route { method: Method::Get, path }
}

const fn post(path: &'static str) -> Route {
    Route { method: Method::Post, path }
}

const fn patch(path: &'static str) -> Route {
    Route { method: Method::Patch, path }
}

impl Route {
    /// What a user can do to a window.
    pub const fn of_verb(verb: Verb) -> Self {
        match verb {
            Verb::Take => TAKE,
            Verb::Start => START,
            Verb::Stop => STOP,
            Verb::Restart => RESTART,
        }
    }

    /// The path for a window: an id, or any text that names one.
    pub fn path_for(self, window: &str) -> String {
        self.path.replace("{id}", &percent::encode(window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_one_segment() {
        assert_eq!(TAKE.path_for("a-b_c~1"), "/v1/windows/a-b_c~1/take");
        assert_eq!(CHANGE_WINDOW.path_for("/x y/.."), "/v1/windows/%2Fx%20y%2F%2E%2E");
        assert_eq!(STOP.path_for("é?#"), "/v1/windows/%C3%A9%3F%23/stop");
    }
}
