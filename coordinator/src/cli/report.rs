//! `baton report`: one file with what a person who helps needs to know, and nothing that is nobody's business.
//!
//! **Invariant:** no token, no body of a message, no source text and no value of a variable gets into it. What is read
//! for it holds none; lines of messages, which are logged on request, are left out, and tokens are looked for once more.

mod system;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use baton_link::find::find;
use baton_link::home::Home;
use baton_link::logs::{BODIES, LogFolder};
use baton_proto::control::ProfileWish;
use baton_proto::discovery::Role;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::outcome::{Done, Failed, exit, with_sources};
use super::{adapters, doctor, memory, output, settings};

/// Most of a log file that is read, from its end.
const MAX_LOG_BYTES: u64 = 2 * 1024 * 1024;
/// Most lines of a log file, from its end.
const MAX_LOG_LINES: usize = 1_000;
/// Log files of each kind, the newest ones.
const MAX_LOG_FILES: usize = 3;

const ABOUT: &str = "\
A report of Baton, for the person who helps you with it. Read it before you send it.

It holds: versions, status, settings and counts of calls; what memory is taken; what `baton doctor` found; the system, names of environment
variables and the values of a few; names, sizes and permissions in the state folder; the ends of the newest log files.
These name windows, folders, files and AI clients. Your home folder is written as ~.

It holds no tokens, no messages of clients, no source text and no values of variables.
";

#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// File or folder to write to [default: baton-report-TIME.tar.gz in the current folder]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Add where the coordinator and all windows spend their processor time, in so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u64>::new().range(1..=300))]
    profile: Option<u64>,
}

pub(super) async fn run(options: ReportOptions) -> Done {
    let name = format!("baton-report-{}", Timestamp::now().strftime("%Y-%m-%d-%H%M%S"));
    let file_name = format!("{name}.tar.gz");
    let path = match options.output {
        Some(path) if path.is_dir() => path.join(file_name),
        Some(path) => path,
        None => PathBuf::from(file_name),
    };
    let mut parts = gather().await;
    if let Some(seconds) = options.profile {
        output::note(format!("Looks at the coordinator and all windows for {seconds} s"));
        parts.extend(profiles(seconds).await);
    }
    write(&path, &name, &parts).map_err(|error| {
        let failed = Failed::new(exit::FAILED, format!("cannot write {}: {error}", path.display()));
        failed.with_hint("write it elsewhere with `--output PATH`")
    })?;
    output::line(path.display().to_string());
    output::note("It names windows, folders and files. Read it before you send it.");
    Ok(())
}

/// A file of the report.
struct Part {
    name: String,
    text: String,
}

/// Everything that is known; what cannot be read says why.
async fn gather() -> Vec<Part> {
    let mut parts = vec![Part { name: "about.txt".to_owned(), text: ABOUT.to_owned() }];
    let mut add = |name: &str, value: &Value| {
        let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
        parts.push(Part { name: name.to_owned(), text });
    };
    add("system.json", &system::describe());
    add("environment.json", &system::environment(std::env::vars_os()));
    add("adapters.json", &adapters::listed("adapters").await);
    add("servers.json", &adapters::listed("servers").await);
    add("doctor.json", &doctor::examined().await);
    let home = match Home::from_env() {
        Ok(home) => home,
        Err(error) => {
            add("state-folder.json", &json!({ "error": with_sources(&error) }));
            return parts;
        }
    };
    add("state-folder.json", &listing(home.path()));
    add("status.json", &status(&home).await);
    add("memory.json", &memory::told(&home).await);
    let settings = settings::current(&home).await;
    let told =
        settings.as_ref().map(|settings| [&settings.error_dsn, &settings.otlp_endpoint].map(String::clone));
    let told = told.unwrap_or_default();
    add(
        "settings.json",
        &settings
            .map(|settings| json!(settings))
            .unwrap_or_else(|failed| json!({ "error": failed.why.message })),
    );
    let metrics = metrics(&home).await.unwrap_or_else(|failed| format!("{}\n", failed.why.message));
    parts.push(Part { name: "metrics.txt".to_owned(), text: metrics });
    parts.extend(logs(&home));
    let discretion = Discretion::of(&home, &told);
    parts.iter_mut().for_each(|part| part.text = discretion.apply(&part.text));
    parts
}

async fn status(home: &Home) -> Value {
    let asked = async { Ok::<_, Failed>(find(home).await?.status().await?) };
    let mut status =
        asked.await.map_or_else(|failed| json!({ "error": failed.why.message }), |status| json!(status));
    status["this_program"] = env!("CARGO_PKG_VERSION").into();
    status
}

/// Where the coordinator and all windows spend their time: flame graphs, or why there is none.
async fn profiles(seconds: u64) -> Vec<Part> {
    let asked = async { Ok::<_, Failed>(find(&Home::from_env()?).await?.status().await?.windows) };
    let windows = asked.await.unwrap_or_default();
    let named = windows.into_iter().map(|window| Some(window.id.to_string()));
    let mut all = JoinSet::new();
    for window in std::iter::once(None).chain(named) {
        all.spawn(profile(ProfileWish { seconds, window }));
    }
    all.join_all().await
}

async fn profile(wish: ProfileWish) -> Part {
    let name = format!("profiles/{}", wish.window.as_deref().unwrap_or("coordinator"));
    let taken = async { Ok::<_, Failed>(find(&Home::from_env()?).await?.profile(&wish).await?) };
    match taken.await {
        Ok(profile) if profile.n_samples > 0 => Part { name: format!("{name}.svg"), text: profile.svg },
        Ok(_) => Part { name: format!("{name}.txt"), text: "no processor time\n".to_owned() },
        Err(failed) => Part { name: format!("{name}.txt"), text: failed.why.message + "\n" },
    }
}

/// What the coordinator counts.
async fn metrics(home: &Home) -> Result<String, Failed> {
    let mut connection = find(home).await?;
    connection.set_role(Role::Metrics);
    Ok(connection.text("/metrics").await?)
}

/// Names, sizes and permissions of what lies in the state folder, two levels deep.
fn listing(folder: &Path) -> Value {
    let mut found = Vec::new();
    let mut folders = vec![(String::new(), folder.to_owned(), 0)];
    while let Some((prefix, folder, depth)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() && depth == 0 {
                folders.push((format!("{name}/"), entry.path(), depth + 1));
            }
            let modified = meta.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            found.push(json!({
                "name": name, "bytes": meta.len(), "mode": format!("{:o}", meta.permissions().mode()),
                "user": meta.uid(), "changed_seconds_ago": modified.map(|since| since.as_secs()),
            }));
        }
    }
    found.sort_by_key(|entry| entry["name"].as_str().map(str::to_owned));
    json!(found)
}

/// The ends of the newest log files of each kind.
fn logs(home: &Home) -> Vec<Part> {
    let Ok(folder) = LogFolder::open(&home.logs_path()) else { return Vec::new() };
    let newest = |kind: &str| {
        let names = folder.names(kind).unwrap_or_default();
        names.into_iter().rev().take(MAX_LOG_FILES).collect::<Vec<_>>()
    };
    let names = ["baton", "agent"].into_iter().flat_map(newest);
    names
        .map(|name| {
            let text = folder
                .read(&name)
                .and_then(end_of)
                .unwrap_or_else(|error| format!("cannot be read: {error}\n"));
            Part { name: format!("logs/{name}"), text }
        })
        .collect()
}

/// The last lines of a log file, without those that hold messages.
fn end_of(mut file: File) -> io::Result<String> {
    let len = file.metadata()?.len();
    let start = len.saturating_sub(MAX_LOG_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_LOG_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The first line is a part of one, unless the file begins there.
    let whole = text.lines().skip(usize::from(start > 0)).filter(|line| !is_body(line));
    let lines: Vec<&str> = whole.collect();
    let n_before = lines.len().saturating_sub(MAX_LOG_LINES);
    Ok(lines[n_before..].iter().flat_map(|line| [*line, "\n"]).collect())
}

/// Whether a line tells of a message: wherever the word stands, as spans come before the target.
fn is_body(line: &str) -> bool {
    line.contains(BODIES)
}

/// What must not be read, and what it is written as.
struct Discretion(Vec<(String, &'static str)>);

impl Discretion {
    /// `told` are the settings `error_dsn` and `otlp_endpoint`: who knows them can write there.
    fn of(home: &Home, told: &[String; 2]) -> Self {
        let mut hidden: Vec<(String, &str)> = told.iter().cloned().zip(["[dsn]", "[collector]"]).collect();
        hidden.retain(|(told, _)| !told.is_empty());
        if let Ok(secret) = home.secret() {
            let epoch = home.stored_state().client_epoch;
            for role in [Role::Client { epoch }, Role::Member, Role::Metrics] {
                hidden.push((secret.token(role).expose().to_owned(), "[token]"));
            }
        }
        if let Some(user) = std::env::home_dir().filter(|user| user.components().count() > 1) {
            hidden.push((user.display().to_string(), "~"));
        }
        Self(hidden)
    }

    fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (hidden, shown)| text.replace(hidden.as_str(), shown))
    }
}

/// Writes all of it, or leaves nothing.
fn write(path: &Path, name: &str, parts: &[Part]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = pack(file, name, parts);
    if written.is_err() {
        // Half a report is none.
        let _ = std::fs::remove_file(path);
    }
    written
}

fn pack(file: File, name: &str, parts: &[Part]) -> io::Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    let now = u64::try_from(Timestamp::now().as_second()).unwrap_or(0);
    for part in parts {
        let mut header = tar::Header::new_gnu();
        header.set_size(part.text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(now);
        archive.append_data(&mut header, format!("{name}/{}", part.name), part.text.as_bytes())?;
    }
    let mut file = archive.into_inner()?.finish()?;
    file.flush()?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_whole_lines_without_messages() {
        let mut file = tempfile::tempfile().unwrap();
        writeln!(file, "{}", "x".repeat(usize::try_from(MAX_LOG_BYTES).unwrap())).unwrap();
        writeln!(file, "2026-11-26T00:00:00Z TRACE call{{id=1}}: {BODIES}: source text").unwrap();
        for number in 0..=MAX_LOG_LINES {
            writeln!(file, "line {number}").unwrap();
        }
        let end = end_of(file).unwrap();
        let lines: Vec<&str> = end.lines().collect();
        assert_eq!((lines.len(), lines[0]), (MAX_LOG_LINES, "line 1"));
    }

    #[test]
    fn what_is_hidden_is_written_otherwise() {
        let discretion = Discretion(vec![("abc".to_owned(), "[token]"), ("/home/ada".to_owned(), "~")]);
        assert_eq!(discretion.apply("Bearer abc in /home/ada/x"), "Bearer [token] in ~/x");
    }

    #[test]
    fn half_a_report_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.tar.gz");
        write(&path, "report", &[Part { name: "a".to_owned(), text: "b".to_owned() }]).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = write(&path, "report", &[]).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert!(path.exists(), "an earlier one stays");
        let none = write(&folder.path().join("none/report.tar.gz"), "report", &[]).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }
}
