//! What runs in a process: the product's own parts, put together as its programs do.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use baton_agent_base::workspace::Workspace;
use baton_agent_debug::{Debugger, DebuggerOptions, Shelf};
use baton_agent_mcp::listening::Listening;
use baton_agent_mcp::{Access, Server};
use baton_agent_tools::window::Window;
use baton_daemon::daemon::{self, Options, RunError};
use baton_daemon::succession;
use baton_link::find::{FindOptions, find};
use baton_link::home::Home;
use baton_link::net;
use baton_proto::control::{PortChange, SettingsChange, WindowKind};
use baton_proto::ids::WindowId;
pub(crate) use baton_proto::shim::Verb;
use baton_proto::start::Handshake;
use baton_window_agent::membership::Membership;
use baton_window_agent::pulse::Pulse;
use baton_window_agent::report::{self, Reporter};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::client::{self, Answered};

/// `baton serve --detached`.
pub(crate) async fn coordinator(
    home: PathBuf,
    (port, fallback_port): (Option<u16>, Option<u16>),
    left: Option<OwnedFd>,
    said: oneshot::Sender<Handshake>,
) {
    let mut said = Some(said);
    // Its starter may have gone.
    let mut say = |handshake: Handshake| said.take().map(|said| said.send(handshake));
    let Ok(home) = Home::open(home) else { return };
    let inheritance = match left.map(|left| succession::receive_from(left.as_fd())).transpose() {
        Ok(inheritance) => inheritance,
        Err(error) => {
            let _ = say(Handshake::Error { message: error.to_string(), hint: None });
            return;
        }
    };
    let options = Options { home, port, fallback_port, inheritance };
    let announce = |handshake: Handshake| {
        if matches!(handshake, Handshake::Ready { .. }) {
            client::note(Answered::Serves);
        }
        let _ = say(handshake);
    };
    if let Err(error) = Box::pin(daemon::run(options, announce, std::future::pending())).await {
        let _ = say(match error {
            RunError::AlreadyRunning => Handshake::AlreadyRunning,
            error => Handshake::Error { message: error.to_string(), hint: error.hint() },
        });
    }
}

/// `baton-agent`, of a window without an editor.
pub(crate) async fn window(home: PathBuf, folder: PathBuf, number: usize) {
    let id = window_id(number);
    let Ok(home) = Home::open(home) else { return };
    let Ok(secret) = home.secret() else { return };
    let (tokens, token) = watch::channel(secret.window_token(&id, None));
    let shelf = Shelf { config: home.path().parent().map(adapters), ..Shelf::default() };
    let options = DebuggerOptions { folders: vec![folder.clone()], shelf, ..DebuggerOptions::default() };
    let Ok(workspace) = Workspace::open(&[folder]) else { return };
    let debugger = Debugger::spawn(options);
    let window = Arc::new(Window::new(id.clone(), id.to_string(), WindowKind::Headless, workspace, debugger));
    let closing = CancellationToken::new();
    let server = Server::new(window.clone(), token, Access::Coordinator, closing.clone());
    let Ok(listening) = Listening::open(&home, &id, 0, server) else { return };
    let (reporter, _reports) = mpsc::channel(report::MAX_WAITING);
    let find = FindOptions::new(home);
    let (reporter, pulse) = (Reporter::to(reporter), Pulse::timer());
    let membership = Membership::new(window, find, reporter, pulse, (listening, tokens));
    membership.run(CancellationToken::new()).await;
    closing.cancel();
}

/// A program that is none of ours: it has a port for a while, and never answers.
pub(crate) async fn stranger(port: u16, time: Duration) {
    let Ok(listener) = net::listen(Ipv4Addr::LOCALHOST.into(), port, 16) else { return };
    let mut heard = Vec::new();
    let listening = async {
        while let Ok((stream, _)) = listener.accept().await {
            heard.push(stream);
        }
    };
    // It leaves when its time has come.
    let _ = tokio::time::timeout(time, listening).await;
}

/// An order of the user, as the command line gives it.
pub(crate) async fn order(home: PathBuf, window: usize, verb: Verb) {
    let Ok(home) = Home::open(home) else { return };
    let Ok(mut connection) = find(&home).await else { return };
    if connection.order(window_id(window).as_str(), verb).await.is_ok() {
        client::note(Answered::Ordered { window, verb });
    }
}

/// `baton up --replace`: another version follows.
pub(crate) async fn replace(home: PathBuf, program: PathBuf) {
    let Ok(home) = Home::open(home) else { return };
    let Ok(mut connection) = find(&home).await else { return };
    if connection.replace(&program).await.is_ok() {
        client::note(Answered::Replaced);
    }
}

/// `baton port`.
pub(crate) async fn change_port(home: PathBuf, port: u16) {
    let Ok(home) = Home::open(home) else { return };
    let Ok(mut connection) = find(&home).await else { return };
    if connection.change_port(&PortChange { port }).await.is_ok() {
        client::note(Answered::Moved(port));
    }
}

/// `baton settings hold_calls_ms`.
pub(crate) async fn set_hold(home: PathBuf, ms: u64) {
    let Ok(home) = Home::open(home) else { return };
    let Ok(mut connection) = find(&home).await else { return };
    let change = SettingsChange { hold_calls_ms: Some(ms), ..SettingsChange::default() };
    if connection.change_settings(&change).await.is_ok() {
        client::note(Answered::Set);
    }
}

/// Where a world keeps what is known of its debug adapter.
pub(crate) fn adapters(folder: &Path) -> PathBuf {
    folder.join("adapters.json")
}

/// `w0`, `w1` ...
pub(crate) fn window_id(number: usize) -> WindowId {
    WindowId::try_from(format!("w{number}")).expect("letters and digits are an id")
}
