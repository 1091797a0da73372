//! What makes the heart of an agent beat.

use std::path::PathBuf;
use std::time::Duration;

use baton_proto::control::{HEARTBEAT_MS, SUSPECT_MS};
use baton_proto::shim::WindowBeat;
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use baton_agent_base::workspace::Workspace;
use baton_agent_tools::window::Window;

/// A headless window beats by a timer. One of an editor beats when the extension host's event loop turns: when it
/// hangs, the window is not responding, and its agent must not pretend that it does (R10).
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
        /// Those of them that could not be opened; they are tried again with every beat.
        missing: Vec<PathBuf>,
        /// When it said something last.
        last_at: Instant,
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
        let (_, missing) = Workspace::open_some(folders);
        if !missing.is_empty() {
            tracing::warn!(?missing, "cannot open these folders; ignoring them");
        }
        let folders = folders.iter().map(|folder| folder.to_string_lossy().into_owned()).collect();
        Self::Editor { beats, folders, missing, last_at: Instant::now() }
    }

    /// Returns when the window answers, or did so just now: one that hangs must not be registered, where it would
    /// count as well and could be live again.
    pub(crate) async fn await_sign(&mut self) {
        let Self::Editor { beats, last_at, .. } = self else { return };
        if last_at.elapsed() > Duration::from_millis(SUSPECT_MS) {
            tracing::info!("the window is not responding");
            if beats.changed().await.is_err() {
                // The extension is gone, and this agent soon too.
                std::future::pending::<()>().await;
            }
            // What it said is still to be taken over.
            beats.mark_changed();
        }
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
            Self::Editor { beats, folders, missing, last_at } => {
                if beats.changed().await.is_err() {
                    // The extension is gone, and this agent soon too.
                    std::future::pending::<()>().await;
                }
                *last_at = Instant::now();
                let beat = beats.borrow_and_update();
                let Some(beat) = beat.as_ref() else { return };
                window.set_name(&beat.name);
                let is_changed = beat.folders != *folders;
                if is_changed || !missing.is_empty() {
                    let paths: Vec<PathBuf> = beat.folders.iter().map(PathBuf::from).collect();
                    let (workspace, still_missing) = Workspace::open_some(&paths);
                    if is_changed || still_missing != *missing {
                        tracing::info!(missing = ?still_missing, "the window has other folders");
                        window.set_workspace(workspace);
                        folders.clone_from(&beat.folders);
                        *missing = still_missing;
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use baton_proto::control::WindowKind;
    use baton_proto::ids::WindowId;

    use baton_agent_debug::{Debugger, DebuggerOptions};

    use super::*;

    /// Whether it waits for a sign just now.
    async fn waits(pulse: &mut Pulse) -> bool {
        let mut sign = Box::pin(pulse.await_sign());
        poll_fn(|context| Poll::Ready(sign.as_mut().poll(context).is_pending())).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_that_hangs_is_waited_for() {
        let beat = WindowBeat { focused: true, name: "shop".to_owned(), folders: Vec::new(), trusted: true };
        let (sender, beats) = watch::channel(None);
        let mut pulse = Pulse::editor(beats, &[]);
        assert!(!waits(&mut pulse).await, "it was started just now");
        tokio::time::advance(Duration::from_millis(SUSPECT_MS + 1)).await;
        assert!(waits(&mut pulse).await);
        assert!(waits(&mut pulse).await, "time alone changes nothing");
        sender.send_replace(Some(beat));
        assert!(!waits(&mut pulse).await);
        let Pulse::Editor { beats, .. } = &pulse else { unreachable!() };
        assert!(beats.has_changed().unwrap(), "what it said is still to be heard");
    }

    #[tokio::test]
    async fn a_folder_that_goes_and_comes_back_takes_no_other_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        let (one, two) = (root.join("one"), root.join("two"));
        std::fs::create_dir(&one).unwrap();
        let (workspace, _) = Workspace::open_some(&[]);
        let id = WindowId::try_from("w".to_owned()).unwrap();
        let debugger = Debugger::spawn(DebuggerOptions::default());
        let window = Window::new(id, "shop".to_owned(), WindowKind::Vscode, workspace, debugger);
        let (beats, last_beat) = watch::channel(None);
        let mut pulse = Pulse::editor(last_beat, &[]);
        let folders: Vec<String> = [&one, &two].map(|path| path.display().to_string()).into();
        let beat =
            WindowBeat { name: "shop".to_owned(), focused: true, folders: folders.clone(), trusted: true };
        beats.send_replace(Some(beat.clone()));
        pulse.next(&window).await;
        assert_eq!(window.workspace().folder_paths(), folders[..1]);
        std::fs::create_dir(&two).unwrap();
        beats.send_replace(Some(beat));
        pulse.next(&window).await;
        assert_eq!(window.workspace().folder_paths(), folders);
    }
}
