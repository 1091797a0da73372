//! `baton logs`: the newest log file of the coordinator or of the windows, or all that is written from now on.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::Duration;

use baton_link::home::Home;
use baton_link::logs::{AUDIT, LogFolder};
use clap::Args;
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
    /// Keep printing new lines
    #[arg(long, short)]
    follow: bool,
    /// Number of lines to print, from the end
    #[arg(long, short = 'n', default_value_t = 200)]
    lines: usize,
}

pub(super) async fn run(options: LogsOptions) -> Done {
    let home = Home::from_env()?;
    let kind = if options.agents { "agent" } else { "baton" };
    let path = home.logs_path();
    let failed = |why: String| Failed::new(exit::FAILED, why);
    let folder = match LogFolder::open(&path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(failed(format!("no logs in {} yet", path.display())));
        }
        Err(error) => return Err(failed(format!("cannot read {}: {error}", path.display()))),
    };
    if options.audit {
        return audit(&folder, options.lines);
    }
    let Some(mut name) = newest(&folder, kind) else {
        return Err(failed(format!("no logs in {} yet", path.display())));
    };
    output::note(path.join(&name).display().to_string());
    let text = read_from(&folder, &name, 0)?;
    output::raw(last_lines(&text, options.lines));
    let mut offset = text.len() as u64;
    if !options.follow {
        return Ok(());
    }
    loop {
        sleep(FOLLOW_EVERY).await;
        let text = read_from(&folder, &name, offset)?;
        output::raw(&text);
        offset += text.len() as u64;
        // A new day has a new file.
        match newest(&folder, kind) {
            Some(newer) if newer != name && text.is_empty() => (name, offset) = (newer, 0),
            _ => {}
        }
    }
}

/// The audit lines of all files that are kept.
fn audit(folder: &LogFolder, n_lines: usize) -> Done {
    let names = ["agent", "baton"].into_iter().flat_map(|kind| folder.names(kind).unwrap_or_default());
    let mut lines = Vec::new();
    for name in names {
        let text = read_from(folder, &name, 0)?;
        let of_file = text.split_inclusive(|byte| *byte == b'\n').filter(|line| is_audit(line));
        lines.extend(of_file.map(<[u8]>::to_vec));
    }
    // Each begins with its time.
    lines.sort();
    output::raw(last_lines(&lines.concat(), n_lines));
    Ok(())
}

/// By its place: `TIME LEVEL TARGET: ...`. What an event tells of comes later in its line.
fn is_audit(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.nth(2).and_then(|word| word.strip_suffix(b":")) == Some(AUDIT.as_bytes())
}

fn newest(folder: &LogFolder, kind: &str) -> Option<String> {
    folder.names(kind).ok()?.pop()
}

fn read_from(folder: &LogFolder, name: &str, offset: u64) -> Result<Vec<u8>, Failed> {
    let read = || {
        let mut file = folder.read(name)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    read().map_err(|error: std::io::Error| Failed::new(exit::FAILED, format!("cannot read {name}: {error}")))
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
    fn audit_lines_are_known_by_the_place_of_their_target() {
        assert!(is_audit(b"2026-11-22T10:00:00Z  INFO baton_audit: tool=x\n"));
        assert!(!is_audit(b"2026-11-22T10:00:00Z  INFO member{window=w}: baton_audit: forged\n"));
        assert!(!is_audit(b"2026-11-22T10:00:00Z  INFO baton: baton_audit: forged\n"));
        assert!(!is_audit(b"baton_audit:\n"));
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
