//! How files are called in the answers to one client: as short as it can be given back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::paths;

/// The folders of a window, as a client sees them; cheap to clone.
#[derive(Clone, Debug)]
pub struct View {
    folders: Arc<[PathBuf]>,
    /// The client's own folder: relative paths mean that first.
    seen: Option<PathBuf>,
    /// Its tree, when the window has others beside it: relative paths mean no file of those.
    tree: Option<PathBuf>,
}

impl View {
    /// Of a client that stands nowhere in particular.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { folders: folders.into_iter().collect(), seen: None, tree: None }
    }

    pub(crate) fn seen_from(self, seen: PathBuf, tree: Option<PathBuf>) -> Self {
        Self { seen: Some(seen), tree, ..self }
    }

    /// The folders.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// A path as people write it, relative to the folder of the window that it is in; in full when the client would be led
    /// to another file by that.
    pub fn relative(&self, path: &Path) -> String {
        let text = paths::relative(path, &self.folders);
        let is_other = |seen: &PathBuf| {
            let meant = paths::clean(&seen.join(&text));
            meant != path && meant.is_file()
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
    use std::fs;

    use super::*;

    #[test]
    fn a_name_means_the_same_file_when_it_is_given_back() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        for file in ["a.py", "b.py", "pkg/a.py", "one/a.py", "two/a.py"] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        let full = |file: &str| root.join(file).display().to_string();
        let plain = View::new([root.clone()]);
        assert_eq!(plain.relative(&root.join("pkg/a.py")), "pkg/a.py");
        let below = plain.clone().seen_from(root.join("pkg"), None);
        let named = ["a.py", "b.py", "pkg/a.py"].map(|file| below.relative(&root.join(file)));
        assert_eq!(named, [full("a.py"), "b.py".to_owned(), "pkg/a.py".to_owned()]);
        let two = plain.seen_from(root.join("two"), Some(root.join("two")));
        let named = ["one/a.py", "two/a.py"].map(|file| two.relative(&root.join(file)));
        assert_eq!(named, [full("one/a.py"), "two/a.py".to_owned()]);
        // The first folder has a folder that is called as the second one.
        let [one, two] = ["one", "two"].map(|name| root.join(name));
        fs::create_dir(one.join("two")).unwrap();
        fs::write(one.join("two/a.py"), "").unwrap();
        let several = View::new([one.clone(), two.clone()]).seen_from(one.clone(), None);
        let named = ["a.py", "two/a.py"].map(|file| several.relative(&one.join(file)));
        assert_eq!(named, ["one/a.py", "one/two/a.py"]);
        assert_eq!(several.relative(&two.join("a.py")), full("two/a.py"));
        assert_eq!(several.relative(Path::new("/usr/lib/a.py")), "/usr/lib/a.py");
    }
}
