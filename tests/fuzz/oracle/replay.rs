//! Runs every file of the corpus through its target once, without a fuzzer: what was found stays found.

use std::path::{Path, PathBuf};

use super::Target;

/// Runs what lies in `tests/fuzz/corpus/TARGET`.
pub(crate) fn replay(targets: &[Target]) {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let corpus = above.map(|folder| folder.join("tests/fuzz/corpus")).find(|corpus| corpus.is_dir());
    let corpus = corpus.expect("the crate lies in the repository");
    for (name, run) in targets {
        let folder = corpus.join(name);
        let entries =
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{name} has no corpus: {error}"));
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{name} has an empty corpus");
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            let result = std::panic::catch_unwind(|| run(&bytes));
            assert!(result.is_ok(), "{} breaks a property, see above", file.display());
        }
    }
}
