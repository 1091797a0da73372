//! `baton-agent adapters`: what debug adapters there are, getting one, and seeing whether one works.
//!
//! | module | what |
//! |---|---|
//! | `step` | a program of an installation: progress, and what it said when it fails |
//! | `parts` | one adapter onto the shelf, whole or not at all |
//! | `probe` | starts an adapter and hears its first answer |
//! | `check` | a small program debugged with each adapter |
//! | [`servers`] | `baton-agent servers`: the same for language servers |

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::debug::DebuggerOptions;
use crate::debug::adapters::select;
use crate::debug::adapters::shelf::{self, Found, Origin};
use crate::debug::adapters::table::{Adapter, Dialect, Table};

mod check;
mod parts;
mod probe;
pub mod servers;
mod step;

/// Exit codes, the same as those of `baton`.
mod exit {
    pub(super) const FAILED: u8 = 1;
    pub(super) const USAGE: u8 = 64;
}

/// Debug adapters: which there are, and how to get them.
#[derive(Clone, Debug, Args)]
pub struct AdaptersOptions {
    #[command(subcommand)]
    verb: AdaptersVerb,
    /// Folder of installed adapters [default: that of the user, or BATON_ADAPTERS]
    #[arg(long, global = true, value_name = "DIR")]
    into: Option<std::path::PathBuf>,
}

#[derive(Clone, Debug, Subcommand)]
enum AdaptersVerb {
    /// List the debug adapters, and which are installed
    List {
        /// Print JSON, for scripts
        #[arg(long)]
        json: bool,
    },
    /// Install debug adapters
    Install {
        /// Names, as `list` shows them
        #[arg(required_unless_present = "all")]
        names: Vec<String>,
        /// All that there are
        #[arg(long)]
        all: bool,
        /// Also those that are there already
        #[arg(long)]
        force: bool,
    },
    /// Debug a small program with each adapter, or the named ones
    Check {
        /// Names; all that are installed when none is named
        names: Vec<String>,
    },
}

/// Runs the verb.
pub fn run(options: AdaptersOptions) -> ExitCode {
    let mut debugger = DebuggerOptions::from_env(std::env::current_dir().into_iter().collect());
    if let Some(folder) = options.into {
        debugger.shelf.folder = Some(std::path::absolute(&folder).unwrap_or(folder));
    }
    let table = match Table::load(&debugger.shelf) {
        Ok(table) => table,
        Err(error) => return fail(exit::FAILED, &error.to_string()),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(exit::FAILED, &format!("cannot start the runtime: {error}")),
    };
    let done = runtime.block_on(async {
        match options.verb {
            AdaptersVerb::List { json } => list(table, &debugger, json).await,
            AdaptersVerb::Install { names, all, force } => {
                let chosen = if all { table.adapters.iter().collect() } else { chosen(table, &names)? };
                install(&chosen, &debugger, force).await
            }
            AdaptersVerb::Check { names } => check(table, &names, &debugger).await,
        }
    });
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => fail(failed.code, &failed.message),
    }
}

/// A verb failed; nothing is left to say when the message is empty.
struct Failed {
    code: u8,
    message: String,
}

type Done = Result<(), Failed>;

fn chosen<'a>(table: &'a Table, names: &[String]) -> Result<Vec<&'a Adapter>, Failed> {
    let find = |name: &String| {
        let message = || match nearest(table, name) {
            Some(near) => format!("there is no debug adapter `{name}`, but {near}"),
            None => format!("there is no debug adapter `{name}`; there are {}", table.names()),
        };
        table.find(name).ok_or_else(|| Failed { code: exit::USAGE, message: message() })
    };
    names.iter().map(find).collect()
}

/// The adapter whose name differs from this in one place, or two neighbours that changed theirs.
fn nearest<'a>(table: &'a Table, name: &str) -> Option<&'a str> {
    let is_near = |known: &str| {
        let (a, b) = (known.as_bytes(), name.as_bytes());
        let n_before = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let n_after = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
        let longest = a.len().max(b.len());
        let is_swap = a.len() == b.len()
            && n_before + n_after + 2 == longest
            && a[n_before] == b[n_before + 1]
            && a[n_before + 1] == b[n_before];
        a.len().abs_diff(b.len()) <= 1 && (n_before + n_after + 1 >= longest || is_swap)
    };
    table.adapters.iter().map(|adapter| adapter.name.as_str()).find(|known| is_near(known))
}

/// What is known of an adapter on this machine.
struct Standing {
    found: Result<Found, String>,
    version: Option<String>,
}

async fn standing(adapter: &Adapter, options: &DebuggerOptions) -> Standing {
    if adapter.dialect == Dialect::Debugpy {
        return parts::debugpy_standing(options).await;
    }
    let found = shelf::find(adapter, options);
    let version = match &found {
        Ok(Found { origin: Origin::Installed, .. }) => parts::installed_version(adapter, &options.shelf),
        Ok(found) if !adapter.version_args.is_empty() => {
            shelf::version_of(&found.program, &adapter.version_args)
        }
        _ => None,
    };
    Standing { found, version }
}

async fn list(table: &Table, options: &DebuggerOptions, as_json: bool) -> Done {
    let mut entries = Vec::new();
    for adapter in &table.adapters {
        let standing = standing(adapter, options).await;
        entries.push(entry(adapter, &standing));
    }
    if as_json {
        line(&serde_json::to_string_pretty(&entries).unwrap_or_default());
        return Ok(());
    }
    let width = entries.iter().filter_map(|entry| Some(entry["name"].as_str()?.len())).max().unwrap_or(0);
    for entry in &entries {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let languages: Vec<&str> =
            entry["languages"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let rest = match entry["state"].as_str() {
            Some("missing") => format!("{}. {}", text("problem"), text("install")),
            state => {
                let version = text("version");
                let version = if version.is_empty() { "?".to_owned() } else { version };
                format!("{version} ({}) {}", state.unwrap_or_default(), text("path"))
            }
        };
        line(&format!("{:width$}  {:22}  {rest}", text("name"), languages.join(", ")));
    }
    Ok(())
}

fn entry(adapter: &Adapter, standing: &Standing) -> Value {
    let (state, path, problem) = match &standing.found {
        Ok(found) => {
            let state = match found.origin {
                Origin::Installed => "installed",
                Origin::Machine => "machine",
                Origin::Named => "named",
            };
            (state, Some(found.program.display().to_string()), None)
        }
        Err(problem) => ("missing", None, Some(problem.clone())),
    };
    json!({
        "name": adapter.name,
        "languages": adapter.languages,
        "types": adapter.types,
        "state": state,
        "version": standing.version,
        "path": path,
        "problem": problem,
        "install": select::install_hint(adapter),
    })
}

async fn install(adapters: &[&Adapter], options: &DebuggerOptions, force: bool) -> Done {
    let mut n_failed = 0;
    for adapter in adapters {
        let name = &adapter.name;
        let before = standing(adapter, options).await;
        if before.found.is_ok() && !force {
            note(&format!("{name} {} is there already", before.version.as_deref().unwrap_or_default()));
            continue;
        }
        let installed = match parts::install(adapter, options).await {
            Ok(()) => probe::probe(adapter, options).await.map_err(|problem| {
                format!("{name} was installed and does not start: {problem}. Try `baton adapters install --force {name}`")
            }),
            Err(problem) => Err(format!("{name} could not be installed: {problem}")),
        };
        match installed {
            Ok(()) => {
                let version = standing(adapter, options).await.version.unwrap_or_default();
                line(&format!("{name} {version} is installed"));
            }
            Err(problem) => {
                n_failed += 1;
                note(&format!("baton: {problem}"));
            }
        }
    }
    finish(n_failed)
}

async fn check(table: &Table, names: &[String], options: &DebuggerOptions) -> Done {
    let adapters: Vec<&Adapter> = if names.is_empty() {
        let mut there = Vec::new();
        for adapter in &table.adapters {
            if standing(adapter, options).await.found.is_ok() {
                there.push(adapter);
            }
        }
        there
    } else {
        chosen(table, names)?
    };
    if adapters.is_empty() {
        let message = "no debug adapter is installed; `baton adapters list` shows what there is".to_owned();
        return Err(Failed { code: exit::FAILED, message });
    }
    let mut n_failed = 0;
    for adapter in adapters {
        match check::check(adapter, options).await {
            Ok(how) => line(&format!("{}: ok, {how}", adapter.name)),
            Err(problem) => {
                n_failed += 1;
                line(&format!("{}: {problem}", adapter.name));
            }
        }
    }
    finish(n_failed)
}

/// What failed was told already.
fn finish(n_failed: usize) -> Done {
    if n_failed == 0 { Ok(()) } else { Err(Failed { code: exit::FAILED, message: String::new() }) }
}

fn fail(code: u8, message: &str) -> ExitCode {
    if !message.is_empty() {
        note(&format!("baton: {message}"));
    }
    ExitCode::from(code)
}

/// A line of the answer. A reader that went away is no fault.
fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// What happens meanwhile, for people.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
