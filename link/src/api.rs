//! The control API, as a process of Baton calls it: a typed call for each route that one makes.
//!
//! What goes in and comes out are types of [`baton_proto::control`]; every call fails as
//! [`Connection::post`] does. The hello, the sign of life, and the stream of events are calls of [`Connection`] itself.

use std::path::Path;

use baton_proto::control::{
    Done, Heartbeat, Leave, Outcome, PageLink, PortChange, PortChanged, Profile, ProfileWish, RawLook,
    RawWish, RecordWish, Recorded, Recording, Register, Registered, Replace, Replaced, Rotated, Settings,
    SettingsChange, Status, TokenHeard, WindowSettings, WindowStatus,
};
use baton_proto::ids::WindowId;
use baton_proto::page::Look;
use baton_proto::shim::Verb;
use serde::{Serialize, de::DeserializeOwned};

use crate::connection::{CallError, Connection};
use crate::routes::{
    CHANGE_PORT, CHANGE_SETTINGS, CHANGE_WINDOW, HEARTBEAT, LEAVE, LOOK, Method, PAGE, PROFILE, RAW, RECORD,
    RECORDING, REGISTER, REPLACE, ROTATE_TOKEN, Route, SETTINGS, SHUTDOWN, STATUS, TOKEN_HEARD, WINDOW,
};

/// A body without content.
#[derive(Serialize)]
struct Nothing {}

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

    /// [`WINDOW`]: the one that a text names.
    pub async fn window(&mut self, named: &str) -> Result<WindowStatus, CallError> {
        self.get(&WINDOW.path_for(named)).await
    }

    /// [`ROTATE_TOKEN`].
    pub async fn rotate_token(&mut self) -> Result<Rotated, CallError> {
        self.ask(ROTATE_TOKEN, &Nothing {}).await
    }

    /// [`TOKEN_HEARD`].
    pub async fn token_heard(&mut self, heard: TokenHeard) -> Result<Done, CallError> {
        self.ask(TOKEN_HEARD, &heard).await
    }

    /// [`CHANGE_PORT`].
    pub async fn change_port(&mut self, change: &PortChange) -> Result<PortChanged, CallError> {
        self.ask(CHANGE_PORT, change).await
    }

    /// [`LOOK`].
    pub async fn look(&mut self) -> Result<Look, CallError> {
        self.get(LOOK.path).await
    }

    /// [`PAGE`].
    pub async fn page_link(&mut self) -> Result<PageLink, CallError> {
        self.ask(PAGE, &Nothing {}).await
    }

    /// [`PROFILE`]; answered when the time has passed.
    pub async fn profile(&mut self, wish: &ProfileWish) -> Result<Profile, CallError> {
        self.ask(PROFILE, wish).await
    }

    /// [`RECORD`]: starts a record, or ends the one that runs; answered with that.
    pub async fn record(&mut self, wish: &RecordWish) -> Result<Recorded, CallError> {
        self.ask(RECORD, wish).await
    }

    /// [`RECORDING`].
    pub async fn recording(&mut self) -> Result<Recording, CallError> {
        self.get(RECORDING.path).await
    }

    /// [`RAW`].
    pub async fn raw(&mut self, wish: &RawWish) -> Result<RawLook, CallError> {
        self.ask(RAW, wish).await
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
