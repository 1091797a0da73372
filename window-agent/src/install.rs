//! `baton-agent adapters` and `baton-agent servers`: what there is, getting one, and seeing whether one works.
//!
//! | module | what |
//! |---|---|
//! | `adapters`, `servers` | the two kinds of what can be installed |
//! | `kind` | what the two have in common |
//! | `depot` | one of them into its folder, whole or not at all |
//! | `step` | a program of an installation: progress, and what it said when it fails |
//! | `say` | lines for people |
//! | `check` | a small program debugged with each adapter |

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use baton_agent_base::names;

use self::adapters::Adapters;
use self::kind::Kind;
use self::say::{line, note};
use self::servers::Servers;

mod adapters;
mod check;
mod depot;
mod kind;
mod say;
mod servers;
mod step;

/// Exit codes, the same as those of `baton`.
mod exit {
    pub(super) const FAILED: u8 = 1;
    pub(super) const USAGE: u8 = 64;
}

/// What `adapters` and `servers` are told.
#[derive(Clone, Debug, Args)]
pub struct InstallOptions {
    #[command(subcommand)]
    verb: InstallVerb,
    /// Folder to install into [default: BATON_ADAPTERS or BATON_SERVERS, or the user's]
    #[arg(long, global = true, value_name = "DIR")]
    into: Option<PathBuf>,
}

#[derive(Clone, Debug, Subcommand)]
enum InstallVerb {
    /// List them and show which are installed
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Install some of them
    Install {
        /// Names from `list`
        #[arg(required_unless_present = "all")]
        names: Vec<String>,
        /// Install all of them
        #[arg(long)]
        all: bool,
        /// Reinstall those that are already installed
        #[arg(long)]
        force: bool,
    },
    /// Try each that is installed
    Check {
        /// Check only these
        names: Vec<String>,
    },
}

/// `baton-agent adapters`.
pub fn adapters(options: InstallOptions) -> ExitCode {
    match Adapters::open(options.into) {
        Ok(kind) => run(&kind, options.verb),
        Err(problem) => fail(exit::FAILED, &problem),
    }
}

/// `baton-agent servers`.
pub fn servers(options: InstallOptions) -> ExitCode {
    match Servers::open(options.into) {
        Ok(kind) => run(&kind, options.verb),
        Err(problem) => fail(exit::FAILED, &problem),
    }
}

fn run<K: Kind>(kind: &K, verb: InstallVerb) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(exit::FAILED, &format!("cannot start the runtime: {error}")),
    };
    let done = runtime.block_on(async {
        match verb {
            InstallVerb::List { json } => list(kind, json).await,
            InstallVerb::Install { names, all, force } => {
                install(kind, if all { kind.items() } else { chosen(kind, &names)? }, force).await
            }
            InstallVerb::Check { names } => check(kind, &names).await,
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

fn chosen<K: Kind>(kind: &K, wanted: &[String]) -> Result<Vec<K::Item>, Failed> {
    let find = |name: &String| {
        let items = kind.items();
        let known: Vec<&str> = items.iter().map(K::name).collect();
        let message = match names::closest(name, &known) {
            Some(near) => format!("unknown {} `{name}`\nhint: did you mean {near}?", K::NOUN),
            None => {
                format!("unknown {} `{name}`\nhint: available {}: {}", K::NOUN, K::VERB, known.join(", "))
            }
        };
        let found = items.into_iter().find(|item| K::name(item) == name);
        found.ok_or(Failed { code: exit::USAGE, message })
    };
    wanted.iter().map(find).collect()
}

async fn list<K: Kind>(kind: &K, as_json: bool) -> Done {
    let items = kind.items();
    let mut entries = Vec::new();
    for item in &items {
        entries.push(kind.entry(item).await);
    }
    if as_json {
        line(&serde_json::to_string_pretty(&entries).unwrap_or_default());
        return Ok(());
    }
    let width = items.iter().map(|item| K::name(item).len()).max().unwrap_or(0);
    for (item, entry) in items.iter().zip(&entries) {
        line(&format!("{:width$}  {}", K::name(item), K::line(entry)));
    }
    Ok(())
}

async fn install<K: Kind>(kind: &K, items: Vec<K::Item>, force: bool) -> Done {
    let mut n_failed = 0;
    for item in &items {
        let name = K::name(item);
        if !force && kind.is_there(item).await && kind.is_kept(item).await {
            note(&format!("{} is already installed", named(kind, item).await));
            continue;
        }
        let installed = match kind.fetch(item).await {
            Ok(()) => kind.start(item).await.map_err(|problem| {
                let again = format!("baton {} install --force {name}", K::VERB);
                format!(
                    "{name} is installed but does not start: {problem}\nhint: reinstall it with `{again}`"
                )
            }),
            Err(problem) => Err(format!("cannot install {name}: {problem}")),
        };
        match installed {
            Ok(()) => line(&format!("{} is installed", named(kind, item).await)),
            Err(problem) => {
                n_failed += 1;
                note(&format!("error: {problem}"));
            }
        }
    }
    finish(n_failed)
}

/// Its name, with its version when that is known.
async fn named<K: Kind>(kind: &K, item: &K::Item) -> String {
    match kind.version(item).await {
        Some(version) => format!("{} {version}", K::name(item)),
        None => K::name(item).to_owned(),
    }
}

async fn check<K: Kind>(kind: &K, names: &[String]) -> Done {
    let mut items = Vec::new();
    if names.is_empty() {
        for item in kind.items() {
            if kind.is_there(&item).await {
                items.push(item);
            }
        }
    } else {
        items = chosen(kind, names)?;
    }
    if items.is_empty() {
        let (noun, verb) = (K::NOUN, K::VERB);
        let message =
            format!("no {noun}s are installed\nhint: run `baton {verb} list` to see what is available");
        return Err(Failed { code: exit::FAILED, message });
    }
    let mut n_failed = 0;
    for item in &items {
        match kind.check(item).await {
            Ok(how) => line(&format!("{}: ok, {how}", K::name(item))),
            Err(problem) => {
                n_failed += 1;
                line(&format!("{}: {problem}", K::name(item)));
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
        note(&format!("error: {message}"));
    }
    ExitCode::from(code)
}
