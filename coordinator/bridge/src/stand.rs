//! Where a client stands: its folder, and the tree that the folder is in.

use std::path::{Path, PathBuf};

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
}

impl Stand {
    /// Of a client that was started in this folder; `None` when it was started nowhere in particular, as desktop
    /// applications are.
    pub fn of(folder: &Path) -> Option<Self> {
        (!trees::is_nowhere(folder)).then(|| Self { folder: folder.to_owned(), first: Tree::of(folder) })
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
        let tree = if self.folder.exists() { Tree::of(&self.folder) } else { self.first.clone() };
        if let Some(tree) = tree {
            insert(TREE_HEADER, &tree.root);
            if tree.is_nested {
                headers.insert(HeaderName::from_static(NESTED_HEADER), HeaderValue::from_static("1"));
            }
        }
    }
}
