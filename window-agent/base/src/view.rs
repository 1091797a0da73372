//! CORE: how files are called in the answers to one client: as short as it can be given back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::paths;

/// The folders of a window, as a client sees them; cheap to clone.
#[derive(Clone, Debug)]
pub struct View {
    folders: Arc<[PathBuf]>,
    /// The client's own folder: relative paths mean that first.
    seen: Option<PathBuf>,
    /// Whether a file is there.
    is_file: fn(&Path) -> bool,
    /// Its tree, when the window has others beside it: relative paths mean no file of those.
    tree: Option<PathBuf>,
}

impl View {
    /// Of a client that stands nowhere in particular.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { folders: folders.into_iter().collect(), seen: None, is_file: |_| false, tree: None }
    }

    /// Of one that stands in `seen`, and in `tree`, when the window has others beside that; `is_file` tells whether a file
    /// is there.
    pub fn seen_from(self, seen: PathBuf, tree: Option<PathBuf>, is_file: fn(&Path) -> bool) -> Self {
        Self { seen: Some(seen), is_file, tree, ..self }
    }

    /// The folders.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Whether a file is the window's own, and not of a package that lies in its folders.
    pub fn is_own(&self, path: &Path) -> bool {
        paths::is_own(path, self.folders.iter().map(PathBuf::as_path))
    }

    /// A path as people write it, relative to the folder of the window that it is in; in full when the client would be led
    /// to another file by that.
    pub fn relative(&self, path: &Path) -> String {
        let text = paths::relative(path, &self.folders);
        let is_other = |seen: &PathBuf| {
            let meant = paths::clean(&seen.join(&text));
            meant != path && (self.is_file)(&meant)
        };
        let is_elsewhere = self.tree.as_ref().is_some_and(|tree| !path.starts_with(tree));
        match is_elsewhere || self.seen.as_ref().is_some_and(is_other) {
            true => path.display().to_string(),
            false => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_packages_bring_is_not_the_windows_own() {
        let view = View::new(["/w".into(), "/home/node_modules/shop".into()]);
        for own in ["/w/a.py", "/home/node_modules/shop/a.js", "/w/node_modules.js"] {
            assert!(view.is_own(Path::new(own)), "{own}");
        }
        for other in
            ["/w/node_modules/x/a.js", "/w/.venv/lib/python3/site-packages/x.py", "/usr/lib/a.py", ""]
        {
            assert!(!view.is_own(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn a_name_means_the_same_file_when_it_is_given_back() {
        let root = PathBuf::from("/w");
        let is_file = |path: &Path| {
            let files =
                ["/w/a.py", "/w/b.py", "/w/pkg/a.py", "/w/one/a.py", "/w/two/a.py", "/w/one/two/a.py"];
            files.iter().any(|file| path == Path::new(file))
        };
        let full = |file: &str| root.join(file).display().to_string();
        let plain = View::new([root.clone()]);
        assert_eq!(plain.relative(&root.join("pkg/a.py")), "pkg/a.py");
        let below = plain.clone().seen_from(root.join("pkg"), None, is_file);
        let named = ["a.py", "b.py", "pkg/a.py"].map(|file| below.relative(&root.join(file)));
        assert_eq!(named, [full("a.py"), "b.py".to_owned(), "pkg/a.py".to_owned()]);
        let two = plain.seen_from(root.join("two"), Some(root.join("two")), is_file);
        let named = ["one/a.py", "two/a.py"].map(|file| two.relative(&root.join(file)));
        assert_eq!(named, [full("one/a.py"), "two/a.py".to_owned()]);
        // The first folder has a folder that is called as the second one.
        let [one, two] = ["one", "two"].map(|name| root.join(name));
        let several = View::new([one.clone(), two.clone()]).seen_from(one.clone(), None, is_file);
        let named = ["a.py", "two/a.py"].map(|file| several.relative(&one.join(file)));
        assert_eq!(named, ["one/a.py", "one/two/a.py"]);
        assert_eq!(several.relative(&two.join("a.py")), full("two/a.py"));
        assert_eq!(several.relative(Path::new("/usr/lib/a.py")), "/usr/lib/a.py");
    }
}
