//! A client, what it means, and what it heard.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use baton_tests::bridge::{Bridge, Shown};
use baton_tests::client::{Client, ClientKind};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::forest::{FILE, Forest, HELD, title};
use crate::held::Programs;
use crate::windows::Windows;

/// A client that is silent for so long is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
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
    /// The same, cancelled before there is an answer.
    Cancel(u64),
    /// A program, by its configuration.
    Run(&'static str),
    /// A program that stops at its first line, and writes this number at each that follows.
    Hold(u64),
    /// A step of the client's own program, whichever that is.
    Step,
    /// Its end.
    Stop,
    /// Where a session's program stands.
    Inspect(String),
    /// A step of it.
    StepHeld(String),
    /// Its end.
    StopHeld(String),
}

impl Act {
    pub(crate) fn any(rng: &mut Rng, windows: &Windows, forest: &Forest, programs: &Programs) -> Self {
        let names: Vec<&'static str> = forest.names().collect();
        let open = windows.names();
        let named = |rng: &mut Rng| {
            let all = if open.is_empty() || rng.u32(..4) == 0 { &names } else { &open };
            all[rng.usize(..all.len())]
        };
        match rng.u32(..52) {
            40..=41 if !programs.is_full(windows) => Self::Hold(rng.u64(..1 << 40)),
            40..=42 => Self::Step,
            43 => Self::Stop,
            44..=50 => {
                let Some(held) = programs.any(rng, windows) else { return Self::Step };
                match rng.u32(..6) {
                    0..3 => Self::Inspect(held.id.clone()),
                    3..5 => Self::StepHeld(held.id.clone()),
                    _ => Self::StopHeld(held.id.clone()),
                }
            }
            51 => Self::Cancel(rng.u64(..)),
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
        !matches!(self, Self::Look | Self::LookAt(_) | Self::Read | Self::Inspect(_))
    }

    /// The session that it names.
    pub(crate) fn session(&self) -> Option<&str> {
        match self {
            Self::Inspect(id) | Self::StepHeld(id) | Self::StopHeld(id) => Some(id),
            _ => None,
        }
    }

    /// The window that it names.
    pub(crate) fn window(&self) -> Option<&'static str> {
        match self {
            Self::LookAt(name) | Self::EditIn(name, _) => Some(name),
            _ => None,
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
            Self::Cancel(mark) => ("lcp_apply_edit", edit(mark)),
            Self::Hold(number) => {
                let program = json!({ "program": HELD, "args": [number.to_string()], "stop_on_entry": true });
                ("debug", with_action("launch", program))
            }
            Self::Step => ("debug", with_action("step_over", json!({}))),
            Self::Stop => ("debug", with_action("terminate", json!({}))),
            Self::Inspect(id) => ("debug", with_action("stack_trace", json!({ "session": id }))),
            Self::StepHeld(id) => ("debug", with_action("step_over", json!({ "session": id }))),
            Self::StopHeld(id) => ("debug", with_action("terminate", json!({ "session": id }))),
        };
        if let Some(window) = self.window() {
            arguments["window"] = title(window).into();
        }
        (tool, arguments)
    }
}

fn with_action(action: &str, mut arguments: Value) -> Value {
    arguments["action"] = action.into();
    arguments
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
    pub(crate) heard: Option<&'static str>,
    /// No other client has it.
    pub(crate) number: u64,
    /// It does not answer any more.
    pub(crate) is_lost: bool,
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
        windows.await_coordinator();
        let mut client = Box::new(Client::connect(&windows.world, kind, &url));
        client.patience = PATIENCE;
        Self::new(Line::Url(kind, client), None)
    }

    fn new(line: Line, stand: Option<(&'static str, Option<PathBuf>)>) -> Self {
        static N_SPEAKERS: AtomicU64 = AtomicU64::new(0);
        let number = N_SPEAKERS.fetch_add(1, Ordering::Relaxed);
        Self { line, stand, heard: None, number, is_lost: false }
    }

    fn live(windows: &Windows) -> Self {
        let bridge = Bridge::start(&windows.world, windows.world.scratch(), &["--live"]);
        Self::new(Line::LiveBridge(bridge), None)
    }

    fn standing(windows: &Windows, forest: &Forest, name: &'static str) -> Self {
        let folder = forest.path(name);
        let tree = forest.top(&folder);
        let bridge = Bridge::start(&windows.world, &folder, &[]);
        Self::new(Line::Bridge(bridge), Some((name, tree)))
    }

    /// A new one of its kind.
    pub(crate) fn again(&self, rng: &mut Rng, windows: &Windows, forest: &Forest) -> Self {
        match &self.line {
            // Without a session it is known by its name, and still the same one.
            Line::Url(kind @ ClientKind::Python2, _) => {
                Self { number: self.number, ..Self::by_url(windows, *kind) }
            }
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
                // Of a connection that was cut some clients never hear again.
                Err(error) => {
                    self.is_lost = true;
                    Shown::unknown(&error)
                }
            },
        }
    }

    /// Calls, and cancels before there is an answer; what it heard of by that nobody knows.
    pub(crate) fn cancel(&mut self, act: &Act) {
        let (tool, arguments) = act.call();
        self.heard = None;
        match &mut self.line {
            Line::Bridge(bridge) | Line::LiveBridge(bridge) => bridge.call_and_cancel(tool, arguments),
            Line::Url(_, client) => {
                // Not every client ends the wait for an answer that it does not want.
                let call = client.send_call(tool, arguments);
                self.is_lost = client.try_cancel(call).is_err();
            }
        }
    }

    /// The folder that a relative path means in a window.
    pub(crate) fn place(&self, window: &'static str, windows: &Windows, forest: &Forest) -> &'static str {
        let holds =
            |name: &str| windows.get(window).is_some_and(|(folder, _)| forest.path(name).starts_with(folder));
        self.stand.as_ref().map(|(name, _)| *name).filter(|name| holds(name)).unwrap_or(window)
    }
}
