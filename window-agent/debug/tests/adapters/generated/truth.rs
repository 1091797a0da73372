//! What a debugger without Baton tells of a program.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::languages::workspace_root;
use crate::programs::shelf;

use super::play::PATIENCE;

/// Who plays a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    Delve,
    Gdb,
    Node,
}

/// What is done with a program.
#[derive(Debug, Serialize)]
pub(crate) struct Plan {
    pub(crate) source: PathBuf,
    pub(crate) points: Vec<Point>,
    /// After each stop.
    pub(crate) moves: Vec<&'static str>,
    /// An expression at each stop.
    pub(crate) asked: Vec<&'static str>,
    /// Of the variables that are looked at.
    pub(crate) names: [&'static str; 3],
    /// Where what the program printed is written to.
    pub(crate) output: PathBuf,
    /// Where what came of it is written to.
    pub(crate) told: PathBuf,
}

/// A breakpoint.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Point {
    pub(crate) line: u32,
    pub(crate) condition: Option<&'static str>,
    pub(crate) hits: Option<Hits>,
    /// Says its line and `a` instead of stopping.
    pub(crate) logs: bool,
}

/// Which hits of a breakpoint count.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Hits {
    pub(crate) operator: &'static str,
    pub(crate) count: u32,
}

/// A stop: frames of the program's own file, and what its newest frame holds when it is one of them.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Function and line, innermost first.
    pub(crate) stack: Vec<(String, i64)>,
    /// Lines of the breakpoints that were hit; `None` where a debugger and its adapter each have their own opinion.
    pub(crate) hit: Option<Vec<u32>>,
    pub(crate) locals: std::collections::BTreeMap<String, String>,
    /// Of the expression; none when it fails.
    pub(crate) value: Option<String>,
}

/// All that came of a plan.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Told {
    pub(crate) stops: Vec<Seen>,
    /// Of them those at which an interrupted step waits to go on: no other is taken.
    #[serde(default)]
    pub(crate) waiting: Vec<usize>,
    /// The program has ended by itself.
    pub(crate) over: bool,
    pub(crate) exit: Option<i64>,
    /// Lines that the program says, of whatever is printed.
    #[serde(skip)]
    pub(crate) said: Vec<String>,
    /// All that was printed.
    #[serde(skip)]
    pub(crate) printed: String,
}

impl Driver {
    /// Plays a plan; `program` is what was built of its source.
    pub(crate) async fn play(self, plan: &Plan, program: &Path) -> Result<Told> {
        let file = plan.told.with_extension("plan");
        std::fs::write(&file, serde_json::to_vec(plan)?)?;
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adapters/generated");
        let mut command = match self {
            Self::Gdb => {
                let mut gdb = Command::new(shelf().join("gdb/bin/gdb"));
                gdb.args(["-batch", "-nx", "-x"]).arg(here.join("gdb.py")).arg(program);
                gdb
            }
            Self::Node => {
                let mut node = Command::new("node");
                node.arg("--experimental-websocket").arg(here.join("node.mjs")).arg(&file);
                node
            }
            Self::Delve => {
                let mut python = Command::new(python());
                python.arg(here.join("delve.py")).arg(&file);
                python
            }
        };
        let folder = plan.source.parent().context("a folder")?;
        let command =
            command.env("BATON_PLAN", &file).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output()).await.context("the oracle hangs")??;
        let words = [output.stdout, output.stderr].concat();
        ensure!(
            output.status.success() && plan.told.exists(),
            "{self:?}: {}",
            String::from_utf8_lossy(&words)
        );
        let mut told: Told = serde_json::from_slice(&std::fs::read(&plan.told)?)?;
        told.printed = std::fs::read_to_string(&plan.output)?;
        told.said = said(&told.printed);
        for stop in &mut told.stops {
            for (name, _) in &mut stop.stack {
                *name = plain(name);
            }
        }
        Ok(told)
    }
}

/// The lines that a program of ours says.
pub(crate) fn said(text: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with("say ")).map(str::to_owned).collect()
}

/// A function's name without its module; JavaScript's top level has none.
pub(crate) fn plain(name: &str) -> String {
    let name = name.split('(').next().unwrap_or_default();
    let name = name.rsplit(['.', ':']).next().unwrap_or_default();
    name.trim_matches(['<', '>']).replace("anonymous", "")
}

/// An interpreter, to drive delve with.
fn python() -> PathBuf {
    let given = std::env::var_os("BATON_TEST_PYTHON").map(PathBuf::from);
    given.unwrap_or_else(|| workspace_root().join(".cache/py/bin/python"))
}
