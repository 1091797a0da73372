//! `baton logs`: the last lines of the coordinator or of the windows, what is asked for of all files that are kept, or all
//! that is written from now on.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use baton_link::home::Home;
use baton_link::logs::LogFolder;
use baton_link::logs::lines::{Field, Filter, Head};
use clap::Args;
use jiff::Timestamp;
use tokio::time::sleep;

use super::outcome::{Done, Failed, exit};
use super::output;

/// How often a followed file is looked at.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct LogsOptions {
    /// Show the logs of the windows' agents instead of the coordinator's
    #[arg(long)]
    agents: bool,
    /// Show the audit log: everything that was changed or run, oldest first
    #[arg(long, conflicts_with_all = ["agents", "follow"])]
    audit: bool,
    /// Show what both logs say about one window, given by the beginning of its ID
    #[arg(long, value_name = "WINDOW", conflicts_with_all = ["agents", "follow"])]
    window: Option<String>,
    /// Show what both logs say about one call, given by the ID that a line of it names
    #[arg(long, value_name = "CALL", conflicts_with_all = ["agents", "follow"])]
    call: Option<String>,
    /// Show what one process logged
    #[arg(long, conflicts_with_all = ["agents", "follow"])]
    pid: Option<u32>,
    /// Show lines of this level and worse ones
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS)]
    level: Option<String>,
    /// Show lines of the last 90s, 30m, 2h, or 1d
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
    /// Keep printing new lines
    #[arg(long, short)]
    follow: bool,
    /// Number of lines to print, from the end
    #[arg(long, short = 'n', default_value_t = 200)]
    lines: usize,
}

/// The moment before which lines are too old.
pub(super) fn since(text: &str) -> Result<Timestamp, String> {
    let wrong = || format!("{text} is not a time, such as 90s, 30m, 2h, 1d");
    let (digits, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(wrong)?);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let ago = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(seconds)).ok_or_else(wrong)?;
    Timestamp::now().checked_sub(Duration::from_secs(ago)).map_err(|_| wrong())
}

/// Levels, the worst first.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

fn filter_of(options: &LogsOptions) -> Filter {
    let window = options.window.as_deref().map(|window| Field::new("window", window, false));
    let call = options.call.as_deref().map(|call| Field::new("call", call, true));
    Filter {
        is_audit: options.audit,
        fields: window.into_iter().chain(call).collect(),
        pid: options.pid,
        level: options.level.as_deref().and_then(|level| level.parse().ok()),
        since: options.since.map(|since| since.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()),
    }
}

fn shown(filter: &Filter, text: &[u8]) -> Vec<u8> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| filter.wants(&String::from_utf8_lossy(line))).flatten().copied().collect()
}

pub(super) async fn run(options: LogsOptions) -> Done {
    let home = Home::from_env()?;
    let path = home.logs_path();
    let failed = |why: String| Failed::new(exit::FAILED, why);
    let folder = match LogFolder::open(&path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(failed(format!("no logs in {} yet", path.display())));
        }
        Err(error) => return Err(failed(format!("cannot read {}: {error}", path.display()))),
    };
    let filter = filter_of(&options);
    let kind = if options.agents { "agent" } else { "baton" };
    if !options.follow && !filter.is_open() {
        let is_of_both = filter.is_audit || filter.pid.is_some() || !filter.fields.is_empty();
        let kinds = if is_of_both { &["agent", "baton"][..] } else { &[kind] };
        return search(&folder, kinds, &filter, options.lines);
    }
    let Some(name) = newest(&folder, kind) else {
        return Err(failed(format!("no logs in {} yet", path.display())));
    };
    output::note(path.join(&name).display().to_string());
    let cannot = |error: io::Error| failed(format!("cannot read {name}: {error}"));
    let mut file = folder.read(&name).map_err(cannot)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(cannot)?;
    output::raw(last_lines(&tail(&folder, kind, &filter, text, options.lines)?, options.lines));
    if options.follow { follow(&folder, kind, &filter, (name, file)).await } else { Ok(()) }
}

/// Prints what is written to the file from now on, and to those after it.
async fn follow(folder: &LogFolder, kind: &str, filter: &Filter, opened: (String, File)) -> Done {
    let (mut name, mut file) = opened;
    let failed = |error: io::Error| Failed::new(exit::FAILED, format!("cannot read the logs: {error}"));
    loop {
        sleep(FOLLOW_EVERY).await;
        // Asked for first: what was written before the next one began is in the text.
        let next = after(folder, kind, &name, &file);
        let mut text = Vec::new();
        if file.metadata().map_err(failed)?.len() < file.stream_position().map_err(failed)? {
            file.rewind().map_err(failed)?;
        }
        file.read_to_end(&mut text).map_err(failed)?;
        output::raw(&shown(filter, &text));
        if let Some(next) = next.filter(|_| text.is_empty()) {
            (name, file) = next;
        }
    }
}

/// The file after the one that was opened by this name, and may have another by now; when it was removed, the one that was
/// begun since.
fn after(folder: &LogFolder, kind: &str, name: &str, file: &File) -> Option<(String, File)> {
    let id = |file: &File| file.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    let mut names = names(folder, kind);
    let is_this = |name: &String| folder.read(name).is_ok_and(|other| id(&other) == id(file));
    let next = match names.iter().rposition(is_this) {
        Some(idx) => (idx + 1 < names.len()).then(|| names.swap_remove(idx + 1)),
        None => names.pop().filter(|newest| newest.as_str() >= name),
    };
    next.and_then(|next| folder.read(&next).ok().map(|file| (next, file)))
}

/// The last of the lines that are wanted, of all files that are kept.
fn search(folder: &LogFolder, kinds: &[&str], filter: &Filter, n_lines: usize) -> Done {
    let mut found = Vec::new();
    for kind in kinds {
        let mut last = VecDeque::new();
        for name in folder.names(kind).unwrap_or_default() {
            let cannot = |error: io::Error| Failed::new(exit::FAILED, format!("cannot read {name}: {error}"));
            let Some(file) = unless_gone(folder.read(&name)).map_err(cannot)? else { continue };
            let mut file = BufReader::new(file);
            let mut line = Vec::new();
            while file.read_until(b'\n', &mut line).map_err(cannot)? > 0 {
                if filter.wants(&String::from_utf8_lossy(&line)) {
                    last.push_back(line.clone());
                }
                if last.len() > n_lines {
                    last.pop_front();
                }
                line.clear();
            }
        }
        found.extend(last);
    }
    // Lines of two files, or of two processes, with the same time stay as they were.
    found.sort_by_cached_key(|line| Head::of(&String::from_utf8_lossy(line)).time.into_owned());
    output::raw(last_lines(&found.concat(), n_lines));
    Ok(())
}

/// All files of a kind, the newest last.
fn names(folder: &LogFolder, kind: &str) -> Vec<String> {
    folder.names(kind).unwrap_or_default()
}

fn newest(folder: &LogFolder, kind: &str) -> Option<String> {
    names(folder, kind).pop()
}

/// A file that was removed since it was listed holds nothing.
fn unless_gone<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// What is shown of the newest file, which holds `newest`, and of those before it when that is less than so many lines.
fn tail(
    folder: &LogFolder,
    kind: &str,
    filter: &Filter,
    newest: Vec<u8>,
    n_lines: usize,
) -> Result<Vec<u8>, Failed> {
    let mut told = shown(filter, &newest);
    for name in names(folder, kind).iter().rev().skip(1) {
        if told.iter().filter(|byte| **byte == b'\n').count() >= n_lines {
            break;
        }
        let cannot = |error: io::Error| Failed::new(exit::FAILED, format!("cannot read {name}: {error}"));
        let mut text = Vec::new();
        if let Some(mut file) = unless_gone(folder.read(name)).map_err(cannot)? {
            file.read_to_end(&mut text).map_err(cannot)?;
        }
        told.splice(0..0, shown(filter, &text));
    }
    Ok(told)
}

fn last_lines(text: &[u8], n_lines: usize) -> &[u8] {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let mut newlines = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match n_lines.checked_sub(1).map(|skipped| newlines.nth(skipped)) {
        None => &[],
        Some(None) => text,
        Some(Some((idx, _))) => &text[idx + 1..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("30m", 1_800), ("2h", 7_200), ("1d", 86_400)] {
            let then = since(text).unwrap();
            let ago = Timestamp::now().duration_since(then);
            assert!((0..=5).contains(&(ago.as_secs() - seconds)), "{text}: {ago}");
        }
        for text in ["", "5", "m", "5 m", "5w", "99999999999999999999s", "9999999999999d", "-5m"] {
            assert!(since(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_newest_is_that_of_the_last_day() {
        let folder = tempfile::tempdir().unwrap();
        let names =
            ["agent.2026-11-20.log", "baton.2026-11-20.log", "baton.2026-11-21.log", "baton.2026-11-22.txt"];
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let folder = LogFolder::open(folder.path()).unwrap();
        assert_eq!(newest(&folder, "baton").unwrap(), "baton.2026-11-21.log");
        assert_eq!(newest(&folder, "agent").unwrap(), "agent.2026-11-20.log");
        assert_eq!(newest(&folder, "other"), None);
    }

    #[test]
    fn the_last_lines_are_the_last_lines() {
        for (n_lines, expected) in [(0, ""), (1, "c\n"), (2, "b\nc\n"), (3, "a\nb\nc\n"), (9, "a\nb\nc\n")] {
            assert_eq!(last_lines(b"a\nb\nc\n", n_lines), expected.as_bytes(), "{n_lines}");
        }
        assert_eq!(last_lines(b"", 5), b"");
    }
}
