//! What all that can be installed has in common.

use serde::Serialize;

/// A kind of what can be installed.
pub(super) trait Kind {
    /// One of them.
    type Item;
    /// What `list --json` says of one.
    type Entry: Serialize;
    /// What one is called: `debug adapter`.
    const NOUN: &'static str;
    /// The verb of the command line.
    const VERB: &'static str;

    /// All of them, in the order in which they are listed.
    fn items(&self) -> Vec<Self::Item>;
    fn name(item: &Self::Item) -> &str;
    async fn entry(&self, item: &Self::Item) -> Self::Entry;
    /// What `list` says of one behind its name.
    fn line(entry: &Self::Entry) -> String;
    async fn is_there(&self, item: &Self::Item) -> bool;
    /// The version of the one that is there, when it is known.
    async fn version(&self, item: &Self::Item) -> Option<String>;
    /// Whether the one that is there is kept although it was asked for.
    async fn is_kept(&self, item: &Self::Item) -> bool;
    /// Installs it, also when it is there already.
    async fn fetch(&self, item: &Self::Item) -> Result<(), String>;
    /// Starts it and hears its first answer.
    async fn start(&self, item: &Self::Item) -> Result<(), String>;
    /// Tries it as a user would; says what was seen.
    async fn check(&self, item: &Self::Item) -> Result<String, String>;
}
