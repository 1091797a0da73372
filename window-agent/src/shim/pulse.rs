//! What makes the heart of an agent beat.

use std::path::PathBuf;
use std::time::Duration;

use baton_proto::control::HEARTBEAT_MS;
use baton_proto::shim::WindowBeat;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::window::Window;

/// A headless window beats by a timer. One of an editor beats when the extension host's event loop turns: when it
/// hangs, the window does not answer, and its agent must not pretend that it does (R10).
#[derive(Debug)]
pub enum Pulse {
    /// A timer of this process.
    Timer(Interval),
    /// The extension.
    Editor {
        /// What it said last.
        beats: watch::Receiver<Option<WindowBeat>>,
        /// The folders it said last.
        folders: Vec<String>,
    },
}

impl Pulse {
    /// A timer of this process.
    pub fn timer() -> Self {
        let mut timer = interval(Duration::from_millis(HEARTBEAT_MS));
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self::Timer(timer)
    }

    /// The extension, which started this agent with these folders.
    pub fn editor(beats: watch::Receiver<Option<WindowBeat>>, folders: &[PathBuf]) -> Self {
        let folders = folders.iter().map(|folder| folder.to_string_lossy().into_owned()).collect();
        Self::Editor { beats, folders }
    }

    /// A heartbeat was sent just now.
    pub(crate) fn reset(&mut self) {
        if let Self::Timer(timer) = self {
            timer.reset();
        }
    }

    /// The next beat; takes over what the extension says of the window. May be cancelled.
    pub(crate) async fn next(&mut self, window: &Window) {
        match self {
            Self::Timer(timer) => {
                timer.tick().await;
            }
            Self::Editor { beats, folders } => {
                if beats.changed().await.is_err() {
                    // The extension is gone, and this agent soon too.
                    std::future::pending::<()>().await;
                }
                let beat = beats.borrow_and_update();
                if let Some(beat) = beat.as_ref() {
                    window.set_name(&beat.name);
                }
                if let Some(beat) = beat.as_ref().filter(|beat| beat.folders != *folders) {
                    folders.clone_from(&beat.folders);
                    let paths: Vec<PathBuf> = beat.folders.iter().map(PathBuf::from).collect();
                    if let Err(error) = window.set_folders(&paths) {
                        tracing::warn!(%error, "a folder of the window cannot be opened");
                    }
                }
            }
        }
    }

    /// Whether the window is focused.
    pub(crate) fn is_focused(&self) -> bool {
        match self {
            Self::Timer(_) => false,
            Self::Editor { beats, .. } => beats.borrow().as_ref().is_some_and(|beat| beat.focused),
        }
    }

    /// Whether the window is an editor's.
    pub(crate) fn is_editor(&self) -> bool {
        matches!(self, Self::Editor { .. })
    }
}
