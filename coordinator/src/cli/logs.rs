//! `baton logs`: the newest log file of the coordinator or of the windows, or all that is written from now on.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_link::home::Home;
use clap::Args;
use tokio::time::sleep;

use super::{Done, Failed, exit, output};

/// How often a followed file is looked at.
const FOLLOW_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct LogsOptions {
    /// Those of the windows' agents, not the coordinator's
    #[arg(long)]
    agents: bool,
    /// Go on printing what is written
    #[arg(long, short)]
    follow: bool,
    /// Print only the last lines
    #[arg(long, short = 'n', default_value_t = 200)]
    lines: usize,
}

pub(super) async fn run(options: LogsOptions) -> Done {
    let home = Home::from_env()?;
    let whose = if options.agents { "agent." } else { "baton." };
    let Some(mut path) = newest(&home.logs_path(), whose) else {
        let message = format!("there are no logs yet in {}", home.logs_path().display());
        return Err(Failed::new(exit::FAILED, message));
    };
    output::note(path.display().to_string());
    let text = read_from(&path, 0)?;
    output::raw(last_lines(&text, options.lines));
    let mut offset = text.len() as u64;
    if !options.follow {
        return Ok(());
    }
    loop {
        sleep(FOLLOW_EVERY).await;
        let text = read_from(&path, offset)?;
        output::raw(&text);
        offset += text.len() as u64;
        // A new day has a new file.
        match newest(&home.logs_path(), whose) {
            Some(newer) if newer != path && text.is_empty() => (path, offset) = (newer, 0),
            _ => {}
        }
    }
}

/// After whose they are the names hold the date, so that their order is that of the days.
fn newest(folder: &Path, whose: &str) -> Option<PathBuf> {
    let is_log = |name: &str| name.starts_with(whose) && name.ends_with(".log");
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let logs = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_log));
    logs.map(|entry| entry.path()).max()
}

fn read_from(path: &Path, offset: u64) -> Result<Vec<u8>, Failed> {
    let read = || {
        let mut file = std::fs::File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    read().map_err(|error: std::io::Error| {
        Failed::new(exit::FAILED, format!("cannot read {}: {error}", path.display()))
    })
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
    fn the_newest_is_that_of_the_last_day() {
        let folder = tempfile::tempdir().unwrap();
        let names =
            ["agent.2026-11-20.log", "baton.2026-11-20.log", "baton.2026-11-21.log", "baton.2026-11-22.txt"];
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let of = |whose: &str| newest(folder.path(), whose).map(|path| path.file_name().unwrap().to_owned());
        assert_eq!(of("baton.").unwrap(), "baton.2026-11-21.log");
        assert_eq!(of("agent.").unwrap(), "agent.2026-11-20.log");
        assert_eq!(of("other."), None);
    }

    #[test]
    fn the_last_lines_are_the_last_lines() {
        for (n_lines, expected) in [(0, ""), (1, "c\n"), (2, "b\nc\n"), (3, "a\nb\nc\n"), (9, "a\nb\nc\n")] {
            assert_eq!(last_lines(b"a\nb\nc\n", n_lines), expected.as_bytes(), "{n_lines}");
        }
        assert_eq!(last_lines(b"", 5), b"");
    }
}
