//! A window on a folder of its own, with the servers of `.cache/servers`.

use std::path::{Path, PathBuf};

use baton_proto::control::WindowKind;
use baton_window_agent::code::CodeIndex;
use baton_window_agent::code::servers::Places;
use baton_window_agent::debug::{Debugger, DebuggerOptions};
use baton_window_agent::tools::{CATALOGUE, arguments, code};
use baton_window_agent::window::Window;
use baton_window_agent::workspace::Workspace;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Where `cargo xtask test` installs the servers.
pub(crate) fn servers() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(".cache/servers");
    assert!(folder.join("ty/bin/ty").exists(), "no ty in {}: run `cargo xtask test` once", folder.display());
    folder
}

pub(crate) struct Place {
    pub(crate) window: Window,
    pub(crate) root: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Place {
    /// A window whose folder, `{ROOT}` in their texts, holds these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.replace("{ROOT}", root.to_str().unwrap())).unwrap();
        }
        Self { _folder: Some(folder), ..Self::on(&root) }
    }

    /// A window on a folder that is there.
    pub(crate) fn on(root: &Path) -> Self {
        let search_path = std::env::var_os("PATH");
        Self::with(root, Places { installed: Some(servers()), search_path, ..Places::default() })
    }

    pub(crate) fn with(root: &Path, places: Places) -> Self {
        let workspace = Workspace::open(&[root.to_owned()]).unwrap();
        let debugger = Debugger::spawn(DebuggerOptions::default());
        let id = "w-test".parse().unwrap();
        let mut window = Window::new(id, "test".to_owned(), WindowKind::Headless, workspace, debugger);
        window.code = CodeIndex::new(places);
        Self { window, root: root.to_owned(), _folder: None }
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.root.join(path), text).unwrap();
    }

    /// The structured answer; checked against the tool's own schema as far as the types go.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let definition = CATALOGUE.find(tool).unwrap();
        let arguments = arguments.as_object().cloned();
        let arguments = arguments::check(tool, &definition.input, arguments).unwrap();
        let cancelled = CancellationToken::new();
        let (object, _) = code::call(&self.window, tool, arguments, cancelled).await.into_object();
        let known = &definition.output["properties"];
        for name in object.keys() {
            let is_known = name == "candidates" || known.get(name).is_some();
            assert!(is_known, "{tool} does not document {name}");
        }
        Value::Object(object)
    }

    /// What a model is shown.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let arguments = arguments.as_object().cloned().unwrap();
        code::answer(&self.window, tool, arguments).await.unwrap().1
    }

    /// The answer, which must be a success.
    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments).await;
        assert_eq!(answer["success"], true, "{answer:#}");
        answer
    }
}
