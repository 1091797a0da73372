//! `baton record`: what clients call and are answered, written down while the user wants it.
//!
//! | module | what |
//! |---|---|
//! | `markdown` | CORE: a record for people |

mod markdown;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use baton_link::home::Home;
use baton_proto::control::{RecordWish, Recorded};
use baton_proto::record::{ENDING, FOLDER, Line};
use clap::{Args, Subcommand, ValueEnum};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::json;

use super::outcome::{Done, Failed, exit};
use super::output;
use super::reach::running;

#[derive(Debug, Args)]
pub(crate) struct RecordOptions {
    #[command(subcommand)]
    verb: RecordVerb,
}

#[derive(Debug, Subcommand)]
enum RecordVerb {
    /// Start to record what clients call and are answered
    Start {
        /// Name of the record [default: date and time]
        name: Option<String>,
    },
    /// End the record
    Stop,
    /// List the records
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a record, or write it to a file
    Export(ExportOptions),
}

#[derive(Debug, Args)]
struct ExportOptions {
    /// Name of a record, or a file [default: the newest record]
    record: Option<String>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Markdown)]
    format: Format,
    /// File to write to [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// To read
    Markdown,
    /// One JSON a line, for programs and for `baton replay`
    Jsonl,
}

pub(super) async fn run(options: RecordOptions) -> Done {
    match options.verb {
        RecordVerb::Start { name } => start(name).await,
        RecordVerb::Stop => stop().await,
        RecordVerb::List { json } => list(json).await,
        RecordVerb::Export(options) => export(&options),
    }
}

async fn start(name: Option<String>) -> Done {
    let name = name.unwrap_or_else(|| local(Timestamp::now()).strftime("%Y-%m-%d-%H%M%S").to_string());
    let recorded = running().await?.record(&RecordWish { start: Some(name) }).await?;
    output::line(format!("Recording to {}", recorded.path));
    output::note(
        "It holds arguments and answers of all calls, source text and values among them, without what looks like a secret.",
    );
    output::hint("`baton record stop` ends it");
    Ok(())
}

async fn stop() -> Done {
    let recorded = running().await?.record(&RecordWish::default()).await?;
    output::line(format!("Recorded {}: {}", described(&recorded), recorded.path));
    if let Some(why) = &recorded.ended {
        output::warning(format!("the record ended earlier: {why}"));
    }
    if recorded.n_left_out > 0 {
        output::warning(format!(
            "{} were left out: more came than 250 in a second, or than could be written",
            calls(recorded.n_left_out)
        ));
    }
    output::hint(format!("`baton record export {}` shows it", recorded.name));
    Ok(())
}

/// For `baton status`: the record that runs.
pub(super) fn told(recorded: &Recorded) -> Option<String> {
    if let Some(why) = &recorded.ended {
        return Some(format!("the record {} ended: {why}", recorded.name));
    }
    let since = time(recorded.since_ms).strftime("%H:%M:%S");
    Some(format!(
        "all calls are being recorded since {since} ({}); `baton record stop` ends it",
        recorded.name
    ))
}

async fn list(as_json: bool) -> Done {
    let home = Home::from_env()?;
    let running = match running().await {
        Ok(mut coordinator) => coordinator.recording().await.ok().and_then(|recording| recording.record),
        Err(_) => None,
    };
    let running = running.filter(|record| record.ended.is_none()).map(|record| record.name);
    let records = records(&home);
    if as_json {
        let shown = records.iter().map(|(name, path, n_bytes)| {
            json!({"name": name, "path": path, "bytes": n_bytes, "running": running.as_ref() == Some(name)})
        });
        output::json(&shown.collect::<Vec<_>>());
        return Ok(());
    }
    if records.is_empty() {
        output::line("No records. Start one with `baton record start`.");
        return Ok(());
    }
    let rows = records.iter().map(|(name, path, n_bytes)| {
        let n_calls = read(path).map_or("damaged".to_owned(), |lines| calls(n_calls(&lines)));
        let state = if running.as_ref() == Some(name) { "running" } else { "" };
        vec![name.clone(), n_calls, size(*n_bytes), state.to_owned()]
    });
    output::table(&rows.collect::<Vec<_>>());
    Ok(())
}

fn export(options: &ExportOptions) -> Done {
    let path = find(&Home::from_env()?, options.record.as_deref())?;
    let text = match options.format {
        Format::Jsonl => fs::read(&path).map_err(|error| unreadable(&path, &error))?,
        Format::Markdown => {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            markdown::of(&name, &read(&path)?, &TimeZone::system()).into_bytes()
        }
    };
    let Some(to) = &options.output else {
        output::raw(&text);
        return Ok(());
    };
    // Whoever exports it decides who reads it; until then nobody else does.
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to);
    file.and_then(|mut file| file.write_all(&text))
        .map_err(|error| Failed::new(exit::FAILED, format!("cannot write {}: {error}", to.display())))?;
    output::line(to.display().to_string());
    output::note("It holds source text and values of your programs. Read it before you send it.");
    Ok(())
}

/// The file of a record: by its name, by a path, or the newest.
pub(super) fn find(home: &Home, record: Option<&str>) -> Result<PathBuf, Failed> {
    let missing = |message: String, hint: &str| Err(Failed::new(exit::FAILED, message).with_hint(hint));
    let Some(record) = record else {
        let newest = records(home)
            .into_iter()
            .map(|(_, path, _)| path)
            .max_by_key(|path| fs::metadata(path).and_then(|meta| meta.modified()).ok());
        return match newest {
            Some(path) => Ok(path),
            None => missing("there are no records".to_owned(), "start one with `baton record start`"),
        };
    };
    let own = home.path().join(FOLDER).join(format!("{record}{ENDING}"));
    let given = Path::new(record);
    match (record.contains('/'), own.is_file(), given.is_file()) {
        (false, true, _) => Ok(own),
        (_, _, true) => Ok(given.to_owned()),
        _ => missing(format!("there is no record named {record:?}"), "`baton record list` lists them"),
    }
}

/// What is in a record. One that was not ended may have half a line at its end.
pub(super) fn read(path: &Path) -> Result<Vec<Line>, Failed> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let lines: Vec<Line> = text.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
    match lines.first() {
        Some(Line::Begin { .. }) => Ok(lines),
        _ => Err(Failed::new(exit::FAILED, format!("{} is not a record of Baton", path.display()))),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failed {
    Failed::new(exit::FAILED, format!("cannot read {}: {error}", path.display()))
}

/// Name, path and size of each, by name.
fn records(home: &Home) -> Vec<(String, PathBuf, u64)> {
    let entries = fs::read_dir(home.path().join(FOLDER)).into_iter().flatten().flatten();
    let mut records: Vec<(String, PathBuf, u64)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.strip_suffix(ENDING)?.to_owned();
            let meta = entry.metadata().ok().filter(|meta| meta.is_file())?;
            Some((name, entry.path(), meta.len()))
        })
        .collect();
    records.sort();
    records
}

fn n_calls(lines: &[Line]) -> u64 {
    lines.iter().filter(|line| matches!(line, Line::Call(_))).count() as u64
}

fn described(recorded: &Recorded) -> String {
    format!("{} ({})", calls(recorded.n_calls), size(recorded.n_bytes))
}

/// A number of calls in words.
pub(super) fn calls(n: u64) -> String {
    if n == 1 { "1 call".to_owned() } else { format!("{n} calls") }
}

fn size(n_bytes: u64) -> String {
    super::cache::size(n_bytes)
}

fn local(at: Timestamp) -> jiff::Zoned {
    at.to_zoned(TimeZone::system())
}

/// A time of a coordinator, here.
pub(super) fn time(at_ms: u64) -> jiff::Zoned {
    let at = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    local(at.unwrap_or_default())
}
