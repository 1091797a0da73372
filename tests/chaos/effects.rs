//! Effects that are countable in the world: each call appends its own number to a file of the window that runs it.
//!
//! `lcp_apply_edit` is the cheapest tool that leaves such a mark: it replaces the last line, `END`, by the number and `END`.
//! A second execution finds `END` again and leaves a second mark. Each client has files of its own, so that no two calls of
//! a good history ever edit the same file at once.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::checker::Effects;

/// Calls for which one file is used; a short file is quick to edit.
const CALLS_PER_FILE: u64 = 200;

/// Where marks are left: the folders of all windows.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    folders: Vec<(String, PathBuf)>,
}

impl Marks {
    pub(crate) fn new(folders: Vec<(String, PathBuf)>) -> Self {
        Self { folders }
    }

    /// The arguments of a call that leaves the mark `id`; `nth` counts the calls of the client.
    pub(crate) fn arguments(&self, client: usize, nth: u64, id: u64) -> Value {
        let file = format!("client-{client}-{}.txt", nth / CALLS_PER_FILE);
        if nth.is_multiple_of(CALLS_PER_FILE) {
            for (_, folder) in &self.folders {
                // A window whose folder cannot be written to answers that the file is not there.
                let _ = std::fs::write(folder.join(&file), "END\n");
            }
        }
        json!({ "file_path": file, "edits": [{ "old_text": "END", "new_text": format!("{id}\nEND") }] })
    }

    /// All marks there are.
    pub(crate) fn read(&self) -> Effects {
        let mut effects = Effects::new();
        for (name, folder) in &self.folders {
            for (_, text) in files(folder) {
                for id in text.lines().filter_map(|line| line.parse().ok()) {
                    effects.entry(id).or_default().push(name.clone());
                }
            }
        }
        effects
    }

    /// What lies in the folders of windows beside the marks: files that a killed edit left.
    pub(crate) fn strangers(&self) -> Vec<String> {
        let folders =
            self.folders.iter().flat_map(|(_, folder)| std::fs::read_dir(folder).into_iter().flatten());
        let names = folders.flatten().map(|entry| entry.path().display().to_string());
        names.filter(|name| !is_mark(Path::new(name))).collect()
    }
}

fn is_mark(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("client-") && name.ends_with(".txt")
}

fn files(folder: &Path) -> impl Iterator<Item = (PathBuf, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| is_mark(path));
    paths.filter_map(|path| Some((path.clone(), std::fs::read_to_string(&path).ok()?)))
}
