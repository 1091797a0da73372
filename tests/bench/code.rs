//! Reading code: what the parts share. Each part is measured by `cargo xtask bench code` and has a table of its own.
//!
//! | module | what it measures |
//! |---|---|
//! | `projects` | the trees that are read, one for each server |
//! | `warm`, `cold` | outline, symbol and references beside the server itself |
//! | `tokens` | what answers cost a model; hundreds of references |
//! | `servers` | the servers of one language beside each other |
//! | `tree` | ten thousand files |
//! | `peers` | other MCP servers that read code |

pub(crate) mod cold;
pub(crate) mod peers;
mod projects;
pub(crate) mod servers;
pub(crate) mod tokens;
pub(crate) mod tree;
pub(crate) mod warm;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use baton_tests::process::{rss_kib, tree as processes};
use baton_tests::world::{WindowOptions, World};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::adapters::since;
use crate::load::{Caller, Target};
use crate::lsp::{self, Server, Spec, Spot};

/// What a call may take at most: a cold server reads its project first.
const TIMEOUT_S: u64 = 120;

/// A world whose processes find the servers, and the tools that those start.
fn world() -> World {
    let servers = lsp::servers();
    let mut world = World::new().with_env("BATON_SERVERS", &servers.to_string_lossy());
    // The world has a home folder of its own.
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    for (name, folder) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
        let given = std::env::var_os(name).map_or_else(|| home.join(folder), PathBuf::from);
        world = world.with_env(name, &given.to_string_lossy());
    }
    world
}

/// A client of the stable URL that makes one call at a time.
struct Client {
    runtime: Runtime,
    target: Target,
}

/// An answer of a tool: what it says, and milliseconds.
struct Told {
    result: Value,
    ms: f64,
}

impl Client {
    fn new(world: &World) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let target = runtime.block_on(Target::edge(world.port(), &world.token()).in_session())?;
        Ok(Self { runtime, target })
    }

    /// The same, for one window whichever is live.
    fn of_window(world: &World, name: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut target = Target::edge(world.port(), &world.token());
        target.path = format!("/mcp/windows/{name}");
        let target = runtime.block_on(target.in_session())?;
        Ok(Self { runtime, target })
    }

    /// Calls a tool, which must succeed. The connection is there before the clock starts.
    fn call(&self, tool: &str, arguments: &Value) -> Result<Told> {
        self.runtime.block_on(async {
            let mut caller = Caller::connect(&self.target).await?;
            let begun = Instant::now();
            let result = caller.call(tool, arguments).await?;
            let ms = since(begun);
            ensure!(result["structuredContent"]["success"] == true, "{tool} {arguments}: {result}");
            Ok(Told { result, ms })
        })
    }

    fn outline(&self, file: &str) -> Result<Told> {
        self.call("lcp_get_outline", &json!({ "file_path": file, "timeout": TIMEOUT_S }))
    }

    fn read(&self, file: &str, symbol: &str) -> Result<Told> {
        let arguments = json!({ "file_path": file, "symbol_name": symbol, "timeout": TIMEOUT_S });
        self.call("lcp_read_symbol", &arguments)
    }

    fn references(&self, used: &Used) -> Result<Told> {
        let arguments = json!({ "symbol_name": used.name, "context_file": used.file, "timeout": TIMEOUT_S });
        self.call("lcp_find_references", &arguments)
    }
}

impl Told {
    fn structure(&self) -> &Value {
        &self.result["structuredContent"]
    }

    /// What a model is shown.
    fn text(&self) -> &str {
        self.result["content"][0]["text"].as_str().unwrap_or_default()
    }
}

/// A symbol whose uses are looked for: the first line of the file that starts like `start` defines it.
#[derive(Clone, Copy, Debug)]
struct Used {
    file: &'static str,
    start: &'static str,
    name: &'static str,
}

/// A tree, and what is asked about it.
struct Project {
    server: &'static str,
    what: &'static str,
    folder: PathBuf,
    /// Is outlined.
    file: &'static str,
    /// Is read.
    symbol: &'static str,
    used: Used,
}

impl Project {
    fn spot(&self) -> Result<Spot> {
        spot(&self.folder, &self.used)
    }

    /// A server of this project's kind without Baton, in the environment of a world.
    fn straight(&self, world: &World) -> Result<Server> {
        straight(world, self.server, &self.folder)
    }

    /// Everything that earlier servers left in the tree.
    fn forget(&self) {
        // It is there or not.
        let _ = std::fs::remove_dir_all(self.folder.join(".cache"));
    }
}

fn spot(folder: &Path, used: &Used) -> Result<Spot> {
    Spot::find(&folder.join(used.file), used.start, used.name)
}

fn straight(world: &World, server: &str, folder: &Path) -> Result<Server> {
    let spec = Spec::find(server)?;
    let command = world.command(&spec.words()[0]);
    Server::start(&spec, command, folder).with_context(|| format!("{server}, straight"))
}

/// Opens a window and waits until it is known.
fn open(world: &mut World, name: &str, folder: &Path) {
    world.window_with(name, WindowOptions { folder: Some(folder.to_owned()), ..WindowOptions::default() });
}

/// How many tokens a model reads.
fn n_tokens(text: &str) -> usize {
    tiktoken_rs::cl100k_base_singleton().encode_ordinary(text).len()
}

/// Resident memory of a process and all that it started, in MB.
fn tree_mb(pid: u32) -> f64 {
    processes(pid).into_iter().map(rss_kib).sum::<u64>() as f64 / 1024.0
}

/// The value that 95 of 100 do not exceed; differences can be negative.
fn p95(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * 95 / 100).min(last)).copied().unwrap_or(f64::NAN)
}
