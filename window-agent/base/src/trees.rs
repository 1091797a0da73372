//! Which tree of sources a path is of. A window has the trees of its folders, and none that lies inside of one: no
//! worktree, no nested repository, no submodule. A folder that is in no tree itself has the trees in it, and none that lies
//! inside of one of those.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use baton_link::trees::{is_top, root_of};

/// Whose a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// In a tree of the window, which begins at this folder of it.
    Own(PathBuf),
    /// In another tree inside of the window's folders, with this top.
    Other(PathBuf),
    /// In no folder of the window.
    Outside,
}

/// The trees of a window as they are now. Worktrees come and go, so it is made anew for each call.
#[derive(Clone, Debug)]
pub struct Trees {
    /// The outermost first.
    folders: Vec<PathBuf>,
    /// See [`Trees::about`].
    base: Option<PathBuf>,
    tops: HashMap<PathBuf, bool>,
    /// What [`Trees::other`] found.
    others: HashMap<PathBuf, Option<PathBuf>>,
}

impl Trees {
    /// The trees of these folders.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut folders: Vec<PathBuf> = folders.into_iter().collect();
        folders.sort_by_key(|folder| folder.components().count());
        Self { folders, base: None, tops: HashMap::new(), others: HashMap::new() }
    }

    /// For a question about a file of one folder: another tree inside of it is another one for this question even
    /// when the window has it as a folder.
    pub fn about(mut self, folder: &Path) -> Self {
        self.base = self.folders.iter().find(|known| folder.starts_with(known)).map(|_| folder.to_owned());
        self
    }

    /// Where a path without links is.
    pub fn whose(&mut self, path: &Path) -> Whose {
        let holds = |folder: &PathBuf| path.starts_with(folder);
        let folders: Vec<PathBuf> = match self.base.clone().filter(holds) {
            Some(base) => vec![base],
            None => self.folders.iter().filter(|folder| holds(folder)).cloned().collect(),
        };
        let mut whose = Whose::Outside;
        for folder in folders {
            match self.top_below(&folder, path) {
                None => return Whose::Own(folder),
                Some(top) => whose = Whose::Other(top),
            }
        }
        whose
    }

    /// The top of the other tree that a path is in, whatever links lead there.
    pub fn other(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.others.get(path) {
            return known.clone();
        }
        let real = real(path).filter(|real| real != path);
        let other = std::iter::once(path.to_owned()).chain(real).find_map(|path| match self.whose(&path) {
            Whose::Other(top) => Some(top),
            Whose::Own(_) | Whose::Outside => None,
        });
        self.others.insert(path.to_owned(), other.clone());
        other
    }

    fn top_below(&mut self, folder: &Path, path: &Path) -> Option<PathBuf> {
        let inside = path.ancestors().take_while(|above| *above != folder);
        let is_top = |above: &&Path| match self.tops.get(*above) {
            Some(known) => *known,
            None => *self.tops.entry(above.to_path_buf()).or_insert_with(|| is_top(above)),
        };
        let mut tops = inside.filter(is_top);
        let nearest = tops.next()?.to_owned();
        let is_first = tops.next().is_none();
        (!is_first || root_of(folder).is_some()).then_some(nearest)
    }
}

/// Whether a folder in one of `roots` is the top of another tree than theirs.
pub(crate) fn is_other_top(folder: &Path, roots: &[PathBuf]) -> bool {
    if !is_top(folder) {
        return false;
    }
    let holding = roots.iter().filter(|root| folder.starts_with(root));
    let Some(root) = holding.max_by_key(|root| root.components().count()) else { return true };
    let mut between = folder.ancestors().skip(1).take_while(|above| above != root);
    root_of(root).is_some() || between.any(is_top)
}

/// A path without its links. What is not there yet will be in the first folder above it that is.
fn real(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|above| {
        let real = above.canonicalize().ok()?;
        let rest = path.strip_prefix(above).ok()?;
        // Not with a slash at the end.
        Some(real.join(rest).components().collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_inside_of_a_folder_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for made in [".git/hooks", "src", "sub/.git", "sub/pkg", "bare/objects", "bare/refs", "lib/x"] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        std::fs::create_dir_all(root.join(".claude/worktrees/w/src")).unwrap();
        for made in [".claude/worktrees/w/.git", "bare/HEAD", "sub/pkg/a.py", "src/a.py"] {
            std::fs::write(root.join(made), "").unwrap();
        }
        std::os::unix::fs::symlink(root.join("sub/pkg"), root.join("link")).unwrap();
        let roots = [root.clone()];
        assert!(is_other_top(&root.join("sub"), &roots) && !is_other_top(&root.join("sub/pkg"), &roots));
        let mut trees = Trees::new([root.clone()]);
        let own = Whose::Own(root.clone());
        let other = |top: &str| Whose::Other(root.join(top));
        for (path, whose) in [
            ("src/a.py", own.clone()),
            ("lib/x/a.py", own.clone()),
            (".git/hooks/a.py", own.clone()),
            ("not/there.py", own.clone()),
            ("sub/pkg/a.py", other("sub")),
            ("sub", other("sub")),
            ("bare/refs/a.py", other("bare")),
            (".claude/a.py", own.clone()),
            (".claude/worktrees/w/src/a.py", other(".claude/worktrees/w")),
            ("../elsewhere.py", Whose::Outside),
        ] {
            let path: PathBuf = crate::paths::clean(&root.join(path));
            assert_eq!(trees.whose(&path), whose, "{}", path.display());
        }
        assert_eq!(trees.whose(&root.join("link/a.py")), own);
        assert_eq!(trees.other(&root.join("link/a.py")), Some(root.join("sub")));
        assert_eq!(trees.other(&root.join("link/new/b.py")), Some(root.join("sub")));
        assert_eq!(trees.other(&root.join("src/new.py")), None);
    }

    #[test]
    fn a_folder_of_repositories_has_them_all_but_not_what_is_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for made in ["one/.git", "one/worktree/.git", "two/.git", "plain"] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        let (mut trees, roots) = (Trees::new([root.clone()]), [root.clone()]);
        for (path, is_own) in [("one", true), ("two", true), ("plain", true), ("one/worktree", false)] {
            let path = root.join(path);
            let whose = if is_own { Whose::Own(root.clone()) } else { Whose::Other(path.clone()) };
            assert_eq!((trees.whose(&path.join("a.py")), is_other_top(&path, &roots)), (whose, !is_own));
        }
    }

    #[test]
    fn a_tree_that_the_window_has_is_its_own_but_not_for_the_one_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let sub = root.join("sub");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(sub.join(".git")).unwrap();
        let (inner, outer) = (sub.join("a.py"), root.join("a.py"));
        let trees = Trees::new([sub.clone(), root.clone()]);
        assert_eq!(trees.clone().whose(&inner), Whose::Own(sub.clone()));
        assert_eq!(trees.clone().about(&root).whose(&inner), Whose::Other(sub.clone()));
        assert_eq!(trees.clone().about(&sub).whose(&outer), Whose::Own(root.clone()));
        assert_eq!(trees.about(Path::new("/")).whose(&outer), Whose::Own(root));
        // The folder of a window has its own `.git`.
        assert_eq!(Trees::new([sub.clone()]).whose(&inner), Whose::Own(sub));
    }
}
