//! What all parts of the agent share about its window.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baton_proto::control::WindowKind;
use baton_proto::edge::META_WINDOW;
use baton_proto::ids::{Term, WindowId};
use serde_json::{Value, json};

use crate::debug::Debugger;
use crate::fence::{Fence, Refusal};
use crate::tools::Object;
use crate::workspace::Workspace;

/// The window of this agent.
#[derive(Debug)]
pub struct Window {
    /// Its id.
    pub id: WindowId,
    /// Its name.
    pub name: String,
    /// VS Code or headless.
    pub kind: WindowKind,
    /// Its debug engine.
    pub debugger: Debugger,
    workspace: Mutex<Workspace>,
    auto_start: AtomicBool,
    fence: Mutex<Fence>,
    toolsets: Mutex<Vec<String>>,
}

impl Window {
    /// A window that is not live yet and offers all toolsets.
    pub fn new(
        id: WindowId,
        name: String,
        kind: WindowKind,
        workspace: Workspace,
        debugger: Debugger,
    ) -> Self {
        let toolsets = baton_proto::control::Settings::default().toolsets;
        Self {
            id,
            name,
            kind,
            debugger,
            workspace: Mutex::new(workspace),
            auto_start: AtomicBool::new(true),
            fence: Mutex::default(),
            toolsets: Mutex::new(toolsets),
        }
    }

    /// Its folders.
    pub fn workspace(&self) -> Workspace {
        self.workspace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The user added or removed folders.
    pub fn set_folders(&self, folders: &[PathBuf]) -> std::io::Result<()> {
        let changed = Workspace::open(folders)?;
        *self.workspace.lock().unwrap_or_else(PoisonError::into_inner) = changed;
        Ok(())
    }

    /// Whether it may become live by itself.
    pub fn auto_start(&self) -> bool {
        self.auto_start.load(Ordering::Relaxed)
    }

    /// See [`Window::auto_start`].
    pub fn set_auto_start(&self, is_on: bool) {
        self.auto_start.store(is_on, Ordering::Relaxed);
    }

    /// Terms and fencing; a leaf lock.
    pub fn fence(&self) -> MutexGuard<'_, Fence> {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call of `term` may run now.
    pub fn admit(&self, term: Term) -> Result<(), Refusal> {
        self.fence().admit(Instant::now(), term)
    }

    /// The toolsets that `tools/list` shows.
    pub fn set_toolsets(&self, toolsets: Vec<String>) {
        *self.toolsets.lock().unwrap_or_else(PoisonError::into_inner) = toolsets;
    }

    /// Whether `tools/list` shows that toolset.
    pub fn offers(&self, toolset: &str) -> bool {
        let toolsets = self.toolsets.lock().unwrap_or_else(PoisonError::into_inner);
        toolsets.iter().any(|offered| offered == toolset)
    }

    /// `_meta` of every result.
    pub fn meta(&self) -> Object {
        let term = self.fence().held();
        let mut meta = Object::new();
        let window =
            json!({"id": self.id, "name": self.name, "term": term.map_or(Value::Null, |term| json!(term))});
        meta.insert(META_WINDOW.to_owned(), window);
        meta
    }
}
