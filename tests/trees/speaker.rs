//! A client, what it means, and what it heard.

use std::path::PathBuf;

use baton_tests::bridge::{Bridge, Shown};
use baton_tests::client::{Client, ClientKind};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::forest::{FILE, Forest};
use crate::windows::Windows;

/// What a client asks for.
#[derive(Debug)]
pub(crate) enum Act {
    /// The configurations of launch.json.
    Look,
    /// The same, of a window that is named.
    LookAt(&'static str),
    /// The text of a file by its outline.
    Read,
    /// A mark in the text of a file.
    Edit(u64),
    /// The same, of a window that is named.
    EditIn(&'static str, u64),
    /// A program, by its configuration.
    Run(&'static str),
}

impl Act {
    pub(crate) fn any(rng: &mut Rng, windows: &Windows, forest: &Forest) -> Self {
        let names: Vec<&'static str> = forest.names().collect();
        let open = windows.names();
        let named = |rng: &mut Rng| {
            let all = if open.is_empty() || rng.u32(..4) == 0 { &names } else { &open };
            all[rng.usize(..all.len())]
        };
        match rng.u32(..40) {
            0..=15 => Self::Look,
            16..=17 => Self::LookAt(named(rng)),
            18..=23 => Self::Read,
            24 => Self::Run(named(rng)),
            25 => Self::EditIn(named(rng), rng.u64(..)),
            _ => Self::Edit(rng.u64(..)),
        }
    }

    /// Whether it does something.
    pub(crate) fn acts(&self) -> bool {
        matches!(self, Self::Edit(_) | Self::EditIn(..) | Self::Run(_))
    }

    /// The window that it names.
    pub(crate) fn window(&self) -> Option<&'static str> {
        match self {
            Self::LookAt(name) | Self::EditIn(name, _) => Some(name),
            Self::Look | Self::Read | Self::Edit(_) | Self::Run(_) => None,
        }
    }

    fn call(&self) -> (&'static str, Value) {
        let edit = |mark: &u64| {
            let edit = json!({ "start_line": 2, "end_line": 2, "new_text": format!("MARK = {mark}\n") });
            json!({ "file_path": FILE, "edits": [edit] })
        };
        let (tool, mut arguments) = match self {
            Self::Look | Self::LookAt(_) => ("get_debugger_configurations", json!({})),
            Self::Read => ("lcp_get_outline", json!({ "file_path": FILE })),
            Self::Edit(mark) | Self::EditIn(_, mark) => ("lcp_apply_edit", edit(mark)),
            Self::Run(name) => ("start_debugging", json!({ "configuration_name": format!("run {name}") })),
        };
        if let Some(window) = self.window() {
            arguments["window"] = window.into();
        }
        (tool, arguments)
    }
}

/// How it is connected.
enum Line {
    /// `baton stdio` in a folder.
    Bridge(Bridge),
    /// `baton stdio --live`.
    LiveBridge(Bridge),
    /// By URL; an official client.
    Url(ClientKind, Box<Client>),
}

/// See the module.
pub(crate) struct Speaker {
    line: Line,
    /// Where it stands, and the tree that the folder was of when the client was started.
    pub(crate) stand: Option<(&'static str, Option<PathBuf>)>,
    /// The window that it was told of last.
    pub(crate) heard: Option<String>,
}

impl Speaker {
    /// Two by URL, one that follows the live window, and three that stand somewhere.
    pub(crate) fn first(windows: &Windows, forest: &Forest) -> Vec<Self> {
        vec![
            Self::by_url(windows, ClientKind::Python1),
            Self::by_url(windows, ClientKind::Python2),
            Self::live(windows),
            Self::standing(windows, forest, "shop"),
            Self::standing(windows, forest, "inside"),
            Self::standing(windows, forest, "one"),
        ]
    }

    fn by_url(windows: &Windows, kind: ClientKind) -> Self {
        let url = format!("{}?toolsets=debugger,code,refactor,windows", windows.world.url());
        let client = Box::new(Client::connect(&windows.world, kind, &url));
        Self { line: Line::Url(kind, client), stand: None, heard: None }
    }

    fn live(windows: &Windows) -> Self {
        let bridge = Bridge::start(&windows.world, windows.world.scratch(), &["--live"]);
        Self { line: Line::LiveBridge(bridge), stand: None, heard: None }
    }

    fn standing(windows: &Windows, forest: &Forest, name: &'static str) -> Self {
        let folder = forest.path(name);
        let tree = forest.top(&folder);
        let bridge = Bridge::start(&windows.world, &folder, &[]);
        Self { line: Line::Bridge(bridge), stand: Some((name, tree)), heard: None }
    }

    /// A new one of its kind.
    pub(crate) fn again(&self, rng: &mut Rng, windows: &Windows, forest: &Forest) -> Self {
        match &self.line {
            Line::Url(kind, _) => Self::by_url(windows, *kind),
            Line::LiveBridge(_) => Self::live(windows),
            Line::Bridge(_) => {
                let there: Vec<&'static str> = forest.names().filter(|name| forest.is_there(name)).collect();
                Self::standing(windows, forest, there[rng.usize(..there.len())])
            }
        }
    }

    pub(crate) fn shown(&self) -> String {
        match (&self.line, &self.stand) {
            (Line::Url(kind, _), _) => format!("{kind:?}"),
            (Line::Bridge(_), Some((name, _))) => format!("in {name}"),
            (Line::LiveBridge(_) | Line::Bridge(_), _) => "live".to_owned(),
        }
    }

    /// Whether what it heard of is known to the edge for certain: that of one by URL ends with the coordinator.
    pub(crate) fn remembers(&self) -> bool {
        !matches!(self.line, Line::Url(..))
    }

    pub(crate) fn call(&mut self, act: &Act) -> Shown {
        let (tool, arguments) = act.call();
        match &mut self.line {
            Line::Bridge(bridge) | Line::LiveBridge(bridge) => bridge.call(tool, arguments),
            Line::Url(_, client) => match client.try_call(tool, arguments) {
                Ok(result) => Shown::of(&result),
                Err(error) => Shown {
                    text: error,
                    content: json!({ "code": "outcome_unknown" }),
                    window: String::new(),
                },
            },
        }
    }
}
