//! CORE: files of a project that no tool changes unless the user allows it: what git, an editor or a package manager keeps
//! for itself, and what says which programs are run.

use std::path::{Component, Path, PathBuf};

use super::plan::Plan;

/// Folders that belong to a tool, with what they hold.
const FOLDERS: [(&str, &str); 8] = [
    (".git", "git"),
    (".hg", "Mercurial"),
    (".jj", "Jujutsu"),
    (".svn", "Subversion"),
    (".idea", "the IDE"),
    ("node_modules", "the package manager"),
    (".venv", "the Python environment"),
    ("site-packages", "the Python environment"),
];
/// Files of an editor that name programs to run.
const EDITORS: [&str; 2] = [".vscode/tasks.json", ".vscode/launch.json"];

/// The first file that a plan changes and must not, with whose it is.
pub(crate) fn first(plan: &Plan, folders: &[PathBuf]) -> Option<(PathBuf, &'static str)> {
    let places = plan.edits.iter().flat_map(|edit| [Some(&edit.path), edit.from.as_ref(), edit.to.as_ref()]);
    let moved = plan.folders.iter().flat_map(|folder| [Some(&folder.from), Some(&folder.to)]);
    places.chain(moved).flatten().find_map(|path| Some((path.clone(), whose(path, folders)?)))
}

/// Whose a file is, when a tool has it for itself. What lies above the window's folder is no matter: the user opened it.
fn whose(path: &Path, folders: &[PathBuf]) -> Option<&'static str> {
    let inside = folders.iter().filter_map(|folder| path.strip_prefix(folder).ok());
    let inside = inside.min_by_key(|inside| inside.components().count()).unwrap_or(path);
    if EDITORS.iter().any(|file| inside.ends_with(file)) {
        return Some("VS Code");
    }
    let is = |part: Component<'_>, name: &str| part.as_os_str().eq_ignore_ascii_case(name);
    FOLDERS.iter().find(|(name, _)| inside.components().any(|part| is(part, name))).map(|(_, whose)| *whose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_keeps_for_itself_is_known() {
        let folders = [PathBuf::from("/home/u/.git/odd/app")];
        let of = |path: &str| whose(&folders[0].join(path), &folders);
        for (path, expected) in [
            ("src/a.py", None),
            (".gitignore", None),
            (".github/workflows/ci.yml", None),
            (".vscode/settings.json", None),
            (".git", Some("git")),
            (".git/config", Some("git")),
            (".GIT/hooks/pre-commit", Some("git")),
            ("nested/.git/config", Some("git")),
            (".vscode/launch.json", Some("VS Code")),
            ("pkg/.vscode/tasks.json", Some("VS Code")),
            (".idea/workspace.xml", Some("the IDE")),
            ("web/node_modules/x/index.js", Some("the package manager")),
            (".venv/bin/activate", Some("the Python environment")),
            ("env/lib/python3.11/site-packages/x.py", Some("the Python environment")),
        ] {
            assert_eq!(of(path), expected, "{path}");
        }
    }
}
