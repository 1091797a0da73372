//! `baton memory`: what memory the coordinator, the windows and all that those started take, and what for.
//!
//! | module | what |
//! |---|---|
//! | `taken` | what the system says of a process |

mod taken;

use std::collections::BTreeMap;

use baton_link::find::find;
use baton_link::home::Home;
use baton_proto::control::{Status, WindowStatus};
use clap::Args;
use serde_json::{Value, json};

use self::taken::{Process, Taken};
use super::outcome::{Done, Failed, exit};
use super::output;
use super::reach::running;

#[derive(Debug, Args)]
#[command(after_help = "\
TAKES is what would be free without the process: what it shares with others counts as its part of that. OWN is what nobody
else has: HEAP, STACKS, and pages of files that it changed. Programs that a window debugs are the window's, too; in a
VS Code window they are VS Code's, and not shown.")]
pub(crate) struct MemoryOptions {
    /// ID, unique ID prefix, name, or folder of a window [default: all]
    #[arg(long, short)]
    window: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A process with all that it started.
struct Part {
    /// The window; none for the coordinator.
    window: Option<String>,
    processes: Vec<(Process, Taken)>,
}

pub(super) async fn run(options: MemoryOptions) -> Done {
    let mut coordinator = running().await?;
    let status = coordinator.status().await?;
    let parts = match &options.window {
        Some(named) => of_windows(status.pid, &[coordinator.window(named).await?]),
        None => all(&status),
    };
    if parts.iter().all(|part| part.processes.is_empty()) {
        return Err(Failed::new(exit::FAILED, "this system does not say what memory a process takes"));
    }
    if options.json {
        output::json(&as_json(&parts));
    } else {
        show(&parts);
    }
    Ok(())
}

/// For a report: the same, or nothing where no coordinator runs.
pub(super) async fn told(home: &Home) -> Value {
    let asked = async { Ok::<_, Failed>(find(home).await?.status().await?) };
    match asked.await {
        Ok(status) => as_json(&all(&status)),
        Err(failed) => json!({ "error": failed.why.message }),
    }
}

/// The coordinator and the windows.
fn all(status: &Status) -> Vec<Part> {
    let coordinator = Part { window: None, processes: family(&taken::processes(), status.pid, None) };
    std::iter::once(coordinator).chain(of_windows(status.pid, &status.windows)).collect()
}

/// The coordinator is everybody's, whichever window's agent has started it.
fn of_windows(coordinator: u32, windows: &[WindowStatus]) -> Vec<Part> {
    let processes = taken::processes();
    let of = |window: &WindowStatus| Part {
        window: Some(window.name.clone()),
        processes: family(&processes, window.pid, Some(coordinator)),
    };
    windows.iter().map(of).collect()
}

/// A process and all that it started, but for one of them, each after the one that started it.
fn family(processes: &BTreeMap<u32, Process>, first: u32, but: Option<u32>) -> Vec<(Process, Taken)> {
    let mut family = Vec::new();
    let mut to_do = vec![first];
    while let Some(pid) = to_do.pop() {
        let Some(process) = processes.get(&pid).filter(|_| but != Some(pid)) else { continue };
        if let Some(taken) = taken::of(pid) {
            family.push((process.clone(), taken));
        }
        to_do.extend(processes.values().filter(|other| other.parent == pid).map(|other| other.pid));
    }
    family
}

fn show(parts: &[Part]) {
    let mut rows = vec![["", "PID", "TAKES", "OWN", "HEAP", "STACKS"].map(str::to_owned).to_vec()];
    let mb = |bytes: u64| super::cache::size(bytes);
    for part in parts {
        if let Some(window) = &part.window {
            let whole: u64 = part.processes.iter().map(|(_, taken)| taken.share).sum();
            let own: u64 = part.processes.iter().map(|(_, taken)| taken.own).sum();
            rows.push(vec![format!("window {window}"), String::new(), mb(whole), mb(own)]);
        }
        for (process, taken) in &part.processes {
            let name = match &part.window {
                Some(_) => format!("  {}", process.name),
                None => "coordinator".to_owned(),
            };
            rows.push(vec![
                name,
                process.pid.to_string(),
                mb(taken.share),
                mb(taken.own),
                mb(taken.heap),
                mb(taken.stacks),
            ]);
        }
    }
    output::table(&rows);
}

fn as_json(parts: &[Part]) -> Value {
    let told = parts.iter().map(|part| {
        let processes = part.processes.iter().map(|(process, taken)| {
            json!({
                "name": process.name, "pid": process.pid, "parent": process.parent, "bytes": taken.share,
                "own_bytes": taken.own, "heap_bytes": taken.heap, "stack_bytes": taken.stacks,
            })
        });
        json!({"window": part.window, "processes": processes.collect::<Vec<_>>()})
    });
    told.collect()
}
