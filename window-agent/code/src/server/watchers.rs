//! CORE: which changes on disk a server wants to hear of, as it registered for them.
//!
//! What it did not ask for is not told: rust-analyzer checks the project after every change, and the check itself
//! writes files.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::lsp;
use crate::lsp::answers::TextDocument;
use crate::lsp::lenient::Or;
use crate::lsp::notices::{Options, RelativePattern, Watcher};
use crate::types::ChangeKind;

/// The protocol's sum of all kinds of change.
const ALL_KINDS: u64 = 7;

/// The patterns of one server.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    /// `None` until it registers for any; then it hears of everything.
    patterns: Option<Vec<Pattern>>,
}

#[derive(Debug)]
struct Pattern {
    /// Folder that the pattern is relative to; without one it holds for whole paths.
    base: Option<PathBuf>,
    glob: GlobMatcher,
    kinds: u64,
}

impl Watchers {
    /// From the options of all registrations for changed files.
    pub(super) fn new<'a>(registrations: impl Iterator<Item = &'a Options>) -> Self {
        let mut all = registrations.peekable();
        if all.peek().is_none() {
            return Self::default();
        }
        let watchers = all.flat_map(|options| &options.watchers.0);
        Self { patterns: Some(watchers.filter_map(pattern).collect()) }
    }

    /// Whether the server wants to hear of this change.
    pub(super) fn want(&self, path: &Path, kind: ChangeKind) -> bool {
        let Some(patterns) = &self.patterns else { return true };
        let bit = 1 << (kind as u64 - 1);
        patterns.iter().filter(|pattern| pattern.kinds & bit != 0).any(|pattern| match &pattern.base {
            Some(base) => path.strip_prefix(base).is_ok_and(|inside| pattern.glob.is_match(inside)),
            None => pattern.glob.is_match(path),
        })
    }
}

/// A pattern that cannot be read matches everything: rather too much is told than too little.
fn pattern(watcher: &Watcher) -> Option<Pattern> {
    let (base, text) = match watcher.glob_pattern.as_ref()? {
        Or::Plain(pattern) => (None, pattern),
        Or::More(RelativePattern { base_uri, pattern }) => (base_uri.as_ref(), pattern),
    };
    let base = base.and_then(|(Or::Plain(uri) | Or::More(TextDocument { uri }))| lsp::path(uri));
    let built = |text: &str| GlobBuilder::new(text).literal_separator(true).build();
    let glob = built(text).or_else(|_| built("**")).ok()?.compile_matcher();
    Some(Pattern { base, glob, kinds: watcher.kind.unwrap_or(ALL_KINDS) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use baton_agent_base::wire::read;

    #[test]
    fn a_server_hears_of_what_it_asked_for() {
        let options = json!({"watchers": [
            {"globPattern": {"baseUri": "file:///w/a", "pattern": "**/*.rs"}},
            {"globPattern": {"baseUri": {"uri": "file:///w/a", "name": "a"}, "pattern": "**/Cargo.{toml,lock}"}, "kind": 2},
            {"globPattern": "**/*.py"},
            {"globPattern": "**/[broken", "kind": 4},
        ]});
        let watchers = Watchers::new(std::iter::once(&read(&options)));
        let wants = |path: &str, kind: ChangeKind| watchers.want(Path::new(path), kind);
        assert!(wants("/w/a/src/x.rs", ChangeKind::Changed));
        assert!(wants("/w/a/x.rs", ChangeKind::Created));
        assert!(!wants("/w/b/x.rs", ChangeKind::Changed));
        assert!(!wants("/w/a/target/debug/x.o", ChangeKind::Changed));
        assert!(wants("/w/a/Cargo.lock", ChangeKind::Changed));
        assert!(!wants("/w/a/Cargo.lock", ChangeKind::Created));
        assert!(wants("/anywhere/x.py", ChangeKind::Created));
        assert!(wants("/anywhere/x.txt", ChangeKind::Deleted), "the broken one");
    }

    #[test]
    fn one_that_never_asked_hears_of_everything() {
        let watchers = Watchers::new(std::iter::empty());
        assert!(watchers.want(Path::new("/w/x"), ChangeKind::Changed));
    }
}
