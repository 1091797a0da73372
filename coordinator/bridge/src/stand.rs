//! Where a client stands: its folder, and the tree that the folder is in.

use std::path::{Path, PathBuf};

use baton_link::plant::{self, Plant};
use baton_link::trees;
use baton_proto::edge::{FOLDER_HEADER, NESTED_HEADER, TREE_HEADER};
use baton_proto::percent;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// See the top of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    folder: PathBuf,
    /// The tree that the folder was in at first. When a worktree is removed, what is left around it is another one.
    first: Option<Tree>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tree {
    root: PathBuf,
    /// Another one is around it.
    is_nested: bool,
}

impl Tree {
    fn of(folder: &Path) -> Option<Self> {
        let root = trees::root_of(folder)?;
        let is_nested = root.parent().and_then(trees::root_of).is_some();
        Some(Self { root, is_nested })
    }

    /// The same of a folder that may be gone: nobody knows of which tree it was, so it is one of its own.
    fn at_first(folder: &Path) -> Option<Self> {
        let root = trees::tree_of(folder)?;
        let is_nested = !folder.exists() || root.parent().and_then(trees::root_of).is_some();
        Some(Self { root, is_nested })
    }
}

impl Stand {
    /// Of a client that was started in this folder; `None` when it was started nowhere in particular, as desktop
    /// applications are.
    pub fn of(folder: &Path) -> Option<Self> {
        (!trees::is_nowhere(folder))
            .then(|| Self { folder: folder.to_owned(), first: Tree::at_first(folder) })
    }

    /// Of this process, whose folder may have been deleted: then of the one that it is said to have been.
    pub fn of_process() -> Option<Self> {
        let said = || std::env::var_os("PWD").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let folder = std::env::current_dir().ok().or_else(said);
        Self::of(&folder.unwrap_or_else(|| PathBuf::from("a folder that was deleted")))
    }

    /// Says it to the edge. A tree may begin or end at any time, so it is looked for each time, unless the folder is gone.
    /// What is no text is no window's folder either.
    pub(crate) fn describe(&self, headers: &mut HeaderMap) {
        let mut insert = |name: &'static str, path: &Path| {
            if let Ok(value) = HeaderValue::from_str(&percent::encode(&path.to_string_lossy())) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        insert(FOLDER_HEADER, &self.folder);
        let is_there = self.folder.exists() || plant::has(Plant::OuterTree);
        let tree = if is_there { Tree::of(&self.folder) } else { self.first.clone() };
        if let Some(tree) = tree {
            insert(TREE_HEADER, &tree.root);
            if tree.is_nested {
                headers.insert(HeaderName::from_static(NESTED_HEADER), HeaderValue::from_static("1"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn said(stand: &Stand, root: &Path) -> [String; 2] {
        let mut headers = HeaderMap::new();
        stand.describe(&mut headers);
        let text = |name: &str| {
            let path = headers.get(name).and_then(|value| percent::decode(value.to_str().ok()?));
            path.map_or_else(|| "none".to_owned(), |path| path.replace(&*root.to_string_lossy(), "ROOT"))
        };
        [text(TREE_HEADER), text(NESTED_HEADER)]
    }

    #[test]
    fn a_folder_that_is_gone_is_of_the_tree_that_it_was_of() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        fs::create_dir_all(root.join("outer/.git")).unwrap();
        fs::create_dir_all(root.join("outer/nested/.git")).unwrap();
        fs::create_dir_all(root.join("outer/plain")).unwrap();
        let nested = Stand::of(&root.join("outer/nested")).unwrap();
        let plain = Stand::of(&root.join("outer/plain")).unwrap();
        let gone = Stand::of(&root.join("outer/gone")).unwrap();
        assert_eq!(said(&plain, root), ["ROOT/outer", "none"]);
        for _ in 0..2 {
            assert_eq!(said(&nested, root), ["ROOT/outer/nested", "1"]);
            assert_eq!(said(&gone, root), ["ROOT/outer/gone", "1"], "of which tree it was, nobody knows");
            fs::rename(root.join("outer/nested"), root.join("away")).unwrap();
            fs::rename(root.join("outer/plain"), root.join("elsewhere")).unwrap();
            assert_eq!(said(&nested, root), ["ROOT/outer/nested", "1"], "it was moved away");
            assert_eq!(said(&plain, root), ["ROOT/outer", "none"]);
            fs::rename(root.join("away"), root.join("outer/nested")).unwrap();
            fs::rename(root.join("elsewhere"), root.join("outer/plain")).unwrap();
        }
    }
}
