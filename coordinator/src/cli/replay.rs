//! `baton replay`: the calls of a record once more, and where the answers differ.
//!
//! | module | what |
//! |---|---|
//! | `compare` | CORE: two answers beside each other |

mod compare;

use std::collections::BTreeMap;

use baton_bridge::Options;
use baton_bridge::client::Client;
use baton_link::find::{FindOptions, find};
use baton_link::home::Home;
use baton_proto::control::WindowStatus;
use baton_proto::ids::WindowId;
use baton_proto::record::{Call, Line};
use clap::Args;
use serde_json::json;

use self::compare::{Difference, Known};
use super::outcome::{Done, Failed, exit};
use super::{output, record};

/// Tools that are about the windows, and not of one.
const OF_NO_WINDOW: [&str; 2] = ["list_windows", "activate_window"];

#[derive(Debug, Args)]
#[command(after_help = "\
The calls run in the window as they did then: programs are started, files are changed. All run in this one window, also
those that named another. IDs that an answer gives are used in the calls after it, and paths in the folder of the recorded
window are those of the window's own folder.
The exit code is 1 when an answer differs.")]
pub(crate) struct ReplayOptions {
    /// Name of a record, or a file
    record: String,
    /// ID, unique ID prefix, name, or folder of the window that is called [default: the live one]
    #[arg(long)]
    window: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What became of one call.
enum Fate {
    Same,
    Different(Vec<Difference>),
    /// Not made, for this reason.
    Skipped(&'static str),
}

pub(super) async fn run(options: ReplayOptions) -> Done {
    let home = Home::from_env()?;
    let lines = record::read(&record::find(&home, Some(&options.record))?)?;
    let folders = folders(&lines);
    let meant = meant(&home, options.window.as_deref()).await?;
    let own = meant.as_ref().and_then(|window| window.folders.first().cloned()).unwrap_or_default();
    let pinned = options.window.and(meant).map(|window| window.id.to_string());
    let mut client =
        Client::new("baton replay", Options { find: FindOptions::new(home), window: pinned, stand: None });
    let mut known = Known::default();
    let (mut n_same, mut n_different, mut n_skipped) = (0, 0, 0);
    let mut told = Vec::new();
    for line in &lines {
        let Line::Call(call) = line else { continue };
        let folder = call.window.as_ref().and_then(|id| folders.get(id));
        if let Some(folder) = folder {
            known.moved(folder, &own);
        }
        let fate = again(&mut client, call, &mut known).await?;
        match fate {
            Fate::Same => n_same += 1,
            Fate::Different(_) => n_different += 1,
            Fate::Skipped(_) => n_skipped += 1,
        }
        if options.json {
            told.push(as_json(call, &fate));
        } else {
            show(call, &fate);
        }
    }
    if options.json {
        output::json(&json!({"same": n_same, "different": n_different, "skipped": n_skipped, "calls": told}));
    } else {
        output::line(format!(
            "{}: {n_same} same, {n_different} different, {n_skipped} skipped",
            record::calls(n_same + n_different + n_skipped)
        ));
    }
    if n_different == 0 { Ok(()) } else { Err(Failed::silently(exit::FAILED)) }
}

async fn again(client: &mut Client, call: &Call, known: &mut Known) -> Result<Fate, Failed> {
    if OF_NO_WINDOW.contains(&call.tool.as_str()) {
        return Ok(Fate::Skipped("it is about the windows"));
    }
    if call.is_redacted {
        return Ok(Fate::Skipped("its arguments held what looks like a secret, which is not in the record"));
    }
    if call.is_cut {
        return Ok(Fate::Skipped("it was too long for the record"));
    }
    let result = client.call(&call.tool, &known.arguments(&call.arguments)).await;
    let mut result = result.map_err(|why| Failed { code: exit::UNAVAILABLE, why })?;
    baton_proto::redact::answer(&mut result);
    let differences = compare::differences(&call.result, &result, known);
    Ok(if differences.is_empty() { Fate::Same } else { Fate::Different(differences) })
}

/// The first folder of each window of the record.
fn folders(lines: &[Line]) -> BTreeMap<&WindowId, String> {
    let windows = lines.iter().filter_map(|line| match line {
        Line::Window { id, folders, .. } => Some((id, folders.first()?.clone())),
        _ => None,
    });
    windows.collect()
}

/// The window that is called; none when that is the live one, and there is none.
async fn meant(home: &Home, window: Option<&str>) -> Result<Option<WindowStatus>, Failed> {
    let mut coordinator = find(home).await?;
    let status = match window {
        Some(named) => return Ok(Some(coordinator.window(named).await?)),
        None => coordinator.status().await?,
    };
    Ok(status.windows.into_iter().find(|known| status.live.as_ref() == Some(&known.id)))
}

fn show(call: &Call, fate: &Fate) {
    let what = described(call);
    match fate {
        Fate::Same => output::line(format!("same       {what}")),
        Fate::Skipped(why) => output::line(format!("skipped    {what}: {why}")),
        Fate::Different(differences) => {
            output::line(format!("different  {what}"));
            for Difference { at, then, now } in differences {
                output::line(format!("  {at}"));
                output::line(format!("    then  {then}"));
                output::line(format!("    now   {now}"));
            }
        }
    }
}

/// A call in a few words.
fn described(call: &Call) -> String {
    let action = call.arguments.get("action").and_then(serde_json::Value::as_str);
    action.map_or_else(|| call.tool.clone(), |action| format!("{} {action}", call.tool))
}

fn as_json(call: &Call, fate: &Fate) -> serde_json::Value {
    let (outcome, more) = match fate {
        Fate::Same => ("same", json!(null)),
        Fate::Skipped(why) => ("skipped", json!(why)),
        Fate::Different(differences) => {
            let told = differences.iter().map(|one| json!({"at": one.at, "then": one.then, "now": one.now}));
            ("different", told.collect())
        }
    };
    json!({"id": call.id, "tool": call.tool, "outcome": outcome, "why": more})
}
