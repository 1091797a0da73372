//! `baton cache`: what Baton keeps on this machine, and what of it can go.
//!
//! | module | what |
//! |---|---|
//! | `survey` | what there is, and what of it is needed |

mod survey;

use std::fs::{self, File};
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use baton_link::home::Home;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;

use self::survey::{Item, Kind, Need};
use super::outcome::{Done, Failed, exit};
use super::{logs, output};

#[derive(Debug, Args)]
pub(crate) struct CacheOptions {
    #[command(subcommand)]
    verb: Option<CacheVerb>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum CacheVerb {
    /// Remove what is no longer needed
    Clear(ClearOptions),
}

#[derive(Debug, Args)]
struct ClearOptions {
    /// Remove only what is older than this: 90s, 30m, 2h, 1d
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = logs::since)]
    older_than: Timestamp,
    /// Show what would be removed, and remove nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Also remove installed debug adapters and language servers of any age
    #[arg(long)]
    downloads: bool,
    /// Do not ask before removing them
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn run(options: CacheOptions) -> Done {
    let home = Home::from_env()?;
    let items = survey::all(&home);
    match options.verb {
        None if options.json => show_json(&items),
        None => show(&items),
        Some(CacheVerb::Clear(clear)) => return clear_all(&items, &clear),
    }
    Ok(())
}

/// Of one kind: where they lie, how many files, how many bytes, how many of those nothing needs.
fn summary(items: &[Item]) -> Vec<(Kind, PathBuf, u64, u64, u64)> {
    let of = |kind: Kind| {
        let of_kind = || items.iter().filter(move |item| item.kind == kind);
        let folder = of_kind().next()?.folder.clone();
        let unneeded = of_kind().filter(|item| item.need == Need::None).map(|item| item.n_bytes).sum();
        let (n_files, n_bytes) =
            (of_kind().map(|item| item.n_files).sum(), of_kind().map(|item| item.n_bytes).sum());
        Some((kind, folder, n_files, n_bytes, unneeded))
    };
    Kind::ALL.into_iter().filter_map(of).collect()
}

fn show(items: &[Item]) {
    let mut rows = vec![["what", "files", "size", "not needed", "where"].map(str::to_owned).to_vec()];
    for (kind, folder, n_files, n_bytes, unneeded) in summary(items) {
        let folder = folder.display().to_string();
        rows.push(vec![kind.name().to_owned(), n_files.to_string(), size(n_bytes), size(unneeded), folder]);
    }
    if rows.len() == 1 {
        return output::line("Baton keeps nothing here yet");
    }
    output::table(&rows);
    if items.iter().any(|item| item.need == Need::None) {
        output::hint("`baton cache clear --dry-run` shows what can go");
    }
}

fn show_json(items: &[Item]) {
    let summary = summary(items).into_iter().map(|(kind, folder, n_files, n_bytes, unneeded)| {
        json!({
            "what": kind.name(), "folder": folder, "files": n_files, "bytes": n_bytes, "bytes_not_needed": unneeded,
        })
    });
    output::json(&summary.collect::<Vec<_>>());
}

fn clear_all(items: &[Item], options: &ClearOptions) -> Done {
    let latest = SystemTime::from(options.older_than);
    let is_due = |item: &&Item| match item.need {
        Need::None => item.changed <= latest,
        Need::Installed => options.downloads,
        Need::Used => false,
    };
    let due: Vec<&Item> = items.iter().filter(is_due).collect();
    if due.is_empty() {
        output::line("Nothing to remove");
        return Ok(());
    }
    let installed: Vec<&&Item> = due.iter().filter(|item| item.need == Need::Installed).collect();
    if !installed.is_empty() && !options.dry_run && !options.yes {
        let n_bytes = installed.iter().map(|item| item.n_bytes).sum();
        consent(&format!("Remove {} installed adapters and servers ({})?", installed.len(), size(n_bytes)))?;
    }
    let (mut n_files, mut n_bytes, mut n_failed) = (0, 0, 0);
    for item in due {
        let what = format!("{} ({})", item.path.display(), size(item.n_bytes));
        match if options.dry_run { Ok(()) } else { remove(item) } {
            Ok(()) => {
                output::line(if options.dry_run {
                    format!("would remove {what}")
                } else {
                    format!("removed {what}")
                });
                n_files += item.n_files;
                n_bytes += item.n_bytes;
            }
            Err(error) => {
                output::warning(format!("cannot remove {}: {error}", item.path.display()));
                n_failed += 1;
            }
        }
    }
    let verb = if options.dry_run { "Would remove" } else { "Removed" };
    let files = if n_files == 1 { "file" } else { "files" };
    output::line(format!("{verb} {n_files} {files}, {}", size(n_bytes)));
    if n_failed == 0 { Ok(()) } else { Err(Failed::silently(exit::FAILED)) }
}

/// Asks the person at the terminal.
fn consent(question: &str) -> Result<(), Failed> {
    let refused =
        |why: &str| Failed::new(exit::FAILED, why).with_hint("pass `--yes` to remove them without asking");
    if !io::stdin().is_terminal() {
        return Err(refused("nobody is there to ask before installed adapters and servers are removed"));
    }
    let mut stderr = io::stderr().lock();
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let heard = asked.and_then(|()| io::stdin().lock().read_line(&mut answer));
    let is_yes = heard.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if is_yes { Ok(()) } else { Err(refused("nothing was removed")) }
}

/// Removes it unless it has come into use meanwhile. No link is followed.
fn remove(item: &Item) -> io::Result<()> {
    let _lock = item.lock.as_deref().map(locked).transpose()?;
    if !survey::is_as_it_was(item) {
        return Err(io::Error::other("it has come into use"));
    }
    for link in &item.links {
        fs::remove_file(link)?;
    }
    let is_folder = fs::symlink_metadata(&item.path)?.is_dir();
    if is_folder { fs::remove_dir_all(&item.path) } else { fs::remove_file(&item.path) }
}

fn locked(path: &Path) -> io::Result<File> {
    let lock = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    let busy = |_| io::Error::other("something is being installed; try again later");
    lock.try_lock().map_err(busy)?;
    Ok(lock)
}

/// A number of bytes for people.
pub(super) fn size(n_bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if n_bytes < 1_000 {
        return format!("{n_bytes} B");
    }
    let (mut amount, mut unit) = (n_bytes as f64 / 1_000.0, 0);
    while amount >= 999.95 && unit + 1 < UNITS.len() {
        (amount, unit) = (amount / 1_000.0, unit + 1);
    }
    format!("{amount:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let sizes = [0, 999, 1_000, 1_234_567, 999_960, 410_200_000_000, u64::MAX].map(size);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "1.2 MB", "1.0 MB", "410.2 GB", "18446744.1 TB"]);
    }
}
