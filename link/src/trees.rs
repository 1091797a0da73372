//! Which tree of files a folder belongs to: that of the nearest `.git`, as git sees it.

use std::path::{Path, PathBuf};

/// A folder with it, whether a folder or a file, is the top of a tree.
const GIT: &str = ".git";

/// Whether a folder is the top of a tree: of a repository, a worktree, a submodule, or a repository without files of its
/// own, as servers have them.
pub fn is_top(folder: &Path) -> bool {
    let is_bare =
        || folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir();
    let is_git = folder.file_name().is_some_and(|name| name == GIT);
    !is_git && (folder.join(GIT).symlink_metadata().is_ok() || is_bare())
}

/// The root of the tree that `folder` is in: the nearest top, itself or above. The user's home folder and what is above
/// it are no tree, whatever they hold: they are where desktop applications are started.
pub fn root_of(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|above| !is_nowhere(above) && is_top(above)).map(Path::to_owned)
}

/// The tree that the folder of a window is in. Of one that is gone nobody knows it: it is a tree of its own, so that no
/// other one's files count as its.
pub fn tree_of(folder: &Path) -> Option<PathBuf> {
    if folder.exists() { root_of(folder) } else { Some(folder.to_owned()) }
}

/// Whether a program that was started in `folder` was started nowhere in particular: the root of the disk, the home folder,
/// or one above it.
pub fn is_nowhere(folder: &Path) -> bool {
    folder.parent().is_none() || std::env::home_dir().is_some_and(|home| home.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_nearest_git_ends_a_tree() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        fs::create_dir_all(root.join("repo/.git")).unwrap();
        fs::create_dir_all(root.join("repo/src/deep")).unwrap();
        fs::create_dir_all(root.join("repo/worktree/src")).unwrap();
        fs::write(root.join("repo/worktree/.git"), "gitdir: ../.git/worktrees/worktree").unwrap();
        fs::create_dir_all(root.join("bare.git/objects")).unwrap();
        fs::create_dir_all(root.join("bare.git/refs/heads")).unwrap();
        fs::write(root.join("bare.git/HEAD"), "ref: refs/heads/main").unwrap();
        fs::create_dir_all(root.join("plain")).unwrap();
        let found = |folder: &str| {
            let found = root_of(&root.join(folder))?;
            Some(found.strip_prefix(root).ok()?.to_string_lossy().into_owned())
        };
        assert_eq!(found("repo").as_deref(), Some("repo"));
        assert_eq!(found("repo/src/deep").as_deref(), Some("repo"));
        assert_eq!(found("repo/.git").as_deref(), Some("repo"), "it is no bare repository");
        assert_eq!(found("repo/worktree/src").as_deref(), Some("repo/worktree"));
        assert_eq!(found("bare.git/refs/heads").as_deref(), Some("bare.git"));
        assert_eq!(found("repo/src/gone/away").as_deref(), Some("repo"), "a folder that was deleted");
        assert_eq!(found("plain"), None);
        assert_eq!(tree_of(&root.join("repo/src")), Some(root.join("repo")));
        assert_eq!(tree_of(&root.join("repo/gone")), Some(root.join("repo/gone")));
        assert!(is_nowhere(Path::new("/")) && !is_nowhere(root));
    }
}
