//! `baton profile`: where the coordinator or a window spends its processor time, as a flame graph and for pprof.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use baton_proto::control::{Profile, ProfileWish};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use jiff::Timestamp;

use super::outcome::{Done, Failed, exit};
use super::output;
use super::reach::running;

#[derive(Debug, Args)]
#[command(after_help = "\
The `.svg` is a flame graph, which any browser shows; the `.pb` is for `pprof` and for https://www.speedscope.app.
Both hold names of functions and nothing else.")]
pub(crate) struct ProfileOptions {
    /// ID, unique ID prefix, name, or folder of a window [default: the coordinator]
    #[arg(long, short)]
    window: Option<String>,
    /// For how long
    #[arg(long, short, default_value_t = 30, value_parser = RangedU64ValueParser::<u64>::new().range(1..=300))]
    seconds: u64,
    /// Folder to write to [default: the current folder]
    #[arg(long, short, value_name = "DIR", default_value = ".", hide_default_value = true)]
    output: PathBuf,
}

pub(super) async fn run(options: ProfileOptions) -> Done {
    let ProfileOptions { window, seconds, output } = options;
    let mut coordinator = running().await?;
    let who = window.clone().map_or("the coordinator".to_owned(), |window| format!("window {window}"));
    output::note(format!("Looks at {who} for {seconds} s"));
    let profile = coordinator.profile(&ProfileWish { seconds, window: window.clone() }).await?;
    if profile.n_samples == 0 {
        output::line(format!("In {seconds} s, {who} spent no processor time that could be measured."));
        return Ok(());
    }
    let name = format!(
        "baton-profile-{}-{}",
        window.as_deref().map_or("coordinator".to_owned(), plain),
        Timestamp::now().strftime("%Y-%m-%d-%H%M%S")
    );
    for path in write(&output, &name, &profile).map_err(|(path, error)| {
        let failed = Failed::new(exit::FAILED, format!("cannot write {}: {error}", path.display()));
        failed.with_hint("write it elsewhere with `--output DIR`")
    })? {
        output::line(path.display().to_string());
    }
    Ok(())
}

/// Writes both files, or leaves none; gives their paths.
fn write(folder: &Path, name: &str, profile: &Profile) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut written: Vec<PathBuf> = Vec::new();
    for (ending, bytes) in [("svg", profile.svg.as_bytes()), ("pb", &profile.pprof[..])] {
        let path = folder.join(format!("{name}.{ending}"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let done = match file {
            Ok(mut file) => {
                written.push(path.clone());
                file.write_all(bytes).and_then(|()| file.sync_all())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            // Half of it is none.
            written.iter().for_each(|path| drop(std::fs::remove_file(path)));
            return Err((path, error));
        }
    }
    Ok(written)
}

/// What a person calls a window, as a part of a file's name.
fn plain(window: &str) -> String {
    let last = window.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let plain = last.chars().map(|char| if char.is_alphanumeric() || char == '-' { char } else { '_' });
    plain.take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_there_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let profile = Profile { seconds: 1, n_samples: 1, svg: "<svg/>".to_owned(), pprof: vec![1, 2] };
        let written = write(folder.path(), "p", &profile).unwrap();
        assert_eq!(std::fs::read(&written[1]).unwrap(), [1, 2]);
        std::fs::remove_file(&written[0]).unwrap();
        let (path, _) = write(folder.path(), "p", &profile).unwrap_err();
        assert!(path.ends_with("p.pb") && !written[0].exists(), "one of an earlier profile is left alone");
    }

    #[test]
    fn a_window_is_named_by_the_last_part_of_its_folder() {
        let names = ["shop", "/src/my shop/", "../\u{e9}"].map(plain);
        assert_eq!(names, ["shop", "my_shop", "\u{e9}"]);
    }
}
