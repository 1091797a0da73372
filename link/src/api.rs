//! The control API, written once: its routes, and a typed call for each that a process of Baton makes.
//!
//! The coordinator's router takes methods and paths from here, so that a caller and the daemon cannot spell one
//! differently. What goes in and comes out are types of [`baton_proto::control`]; every call fails as
//! [`Connection::post`] does. The hello, the sign of life, and the stream of events are calls of [`Connection`] itself.

use std::path::Path;

use baton_proto::control::{
    Done, Heartbeat, Leave, Outcome, PortChange, PortChanged, Register, Registered, Replace, Replaced,
    Rotated, Settings, SettingsChange, Status, WindowSettings,
};
use baton_proto::ids::WindowId;
use baton_proto::percent;
use baton_proto::shim::Verb;
use serde::{Serialize, de::DeserializeOwned};

use crate::connection::{CallError, Connection};

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
/// Move to another port.
pub const CHANGE_PORT: Route = post("/v1/port");
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

/// A body without content.
#[derive(Serialize)]
struct Nothing {}

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

impl Connection {
    /// [`REGISTER`].
    pub async fn register(
        &mut self,
        window: &WindowId,
        register: &Register,
    ) -> Result<Registered, CallError> {
        self.ask_for(REGISTER, window.as_str(), register).await
    }

    /// [`HEARTBEAT`].
    pub async fn heartbeat(
        &mut self,
        window: &WindowId,
        heartbeat: &Heartbeat,
    ) -> Result<Registered, CallError> {
        self.ask_for(HEARTBEAT, window.as_str(), heartbeat).await
    }

    /// [`LEAVE`].
    pub async fn leave(&mut self, window: &WindowId, leave: &Leave) -> Result<Done, CallError> {
        self.ask_for(LEAVE, window.as_str(), leave).await
    }

    /// Does to a window what the user wants; `window` is an id, the beginning of one, a name, or a folder.
    pub async fn order(&mut self, window: &str, verb: Verb) -> Result<Outcome, CallError> {
        self.ask_for(Route::of_verb(verb), window, &Nothing {}).await
    }

    /// [`CHANGE_WINDOW`].
    pub async fn change_window(
        &mut self,
        window: &WindowId,
        change: &WindowSettings,
    ) -> Result<Outcome, CallError> {
        self.ask_for(CHANGE_WINDOW, window.as_str(), change).await
    }

    /// [`SETTINGS`].
    pub async fn settings(&mut self) -> Result<Settings, CallError> {
        self.get(SETTINGS.path).await
    }

    /// [`CHANGE_SETTINGS`]; answered with the settings in force.
    pub async fn change_settings(&mut self, change: &SettingsChange) -> Result<Settings, CallError> {
        self.ask(CHANGE_SETTINGS, change).await
    }

    /// [`STATUS`].
    pub async fn status(&mut self) -> Result<Status, CallError> {
        self.get(STATUS.path).await
    }

    /// [`ROTATE_TOKEN`].
    pub async fn rotate_token(&mut self) -> Result<Rotated, CallError> {
        self.ask(ROTATE_TOKEN, &Nothing {}).await
    }

    /// [`CHANGE_PORT`].
    pub async fn change_port(&mut self, change: &PortChange) -> Result<PortChanged, CallError> {
        self.ask(CHANGE_PORT, change).await
    }

    /// [`REPLACE`]: lets `program` follow. The connection is of no use afterwards.
    pub async fn replace(&mut self, program: &Path) -> Result<Replaced, CallError> {
        let replace = Replace { program: program.to_string_lossy().into_owned() };
        self.ask(REPLACE, &replace).await
    }

    /// [`SHUTDOWN`]; the answer comes first.
    pub async fn shutdown(&mut self) -> Result<Done, CallError> {
        self.ask(SHUTDOWN, &Nothing {}).await
    }

    async fn ask<A: DeserializeOwned>(
        &mut self,
        route: Route,
        body: &impl Serialize,
    ) -> Result<A, CallError> {
        self.ask_for(route, "", body).await
    }

    async fn ask_for<A: DeserializeOwned>(
        &mut self,
        route: Route,
        window: &str,
        body: &impl Serialize,
    ) -> Result<A, CallError> {
        let path = route.path_for(window);
        match route.method {
            Method::Get => self.get(&path).await,
            Method::Post => self.post(&path, body).await,
            Method::Patch => self.patch(&path, body).await,
        }
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
