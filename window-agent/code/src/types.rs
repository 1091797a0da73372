//! CORE: what the verbs of [`crate::CodeIndex`] give: plain data.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::documents::Snapshot;
use super::lsp::Diagnostic;
use super::symbols::Symbol;

/// How far an answer can be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It is about everything that was written before the call.
    Settled,
    /// The server is still reading the project: something may be missing.
    Indexing(String),
    /// The server could not take all of the project in: something may be missing until that is mended.
    Incomplete(String),
    /// The server has not looked at the newest text yet.
    Stale,
}

impl Freshness {
    /// Of an answer that both parts make up: the first one that is not settled.
    pub(super) fn and(self, other: Self) -> Self {
        if self == Self::Settled { other } else { self }
    }
}

/// Where an answer comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A language server.
    Server(Arc<str>),
    /// A search in the text, because no server can; the sentence says why.
    TextSearch(String),
}

/// A file that a call is about.
#[derive(Clone, Debug)]
pub struct Subject {
    /// As it is now: on disk, or in VS Code when it is not saved.
    pub snapshot: Snapshot,
    /// The window's folder that it is in.
    pub folder: PathBuf,
    /// What VS Code makes of it, in a window of it.
    pub view: View,
}

impl Subject {
    /// What a server has to see for a question about the file: itself, and everything that is not saved.
    pub(super) fn shown(&self) -> Vec<Snapshot> {
        let others = self.view.unsaved.all().iter().filter(|other| other.path != self.snapshot.path);
        std::iter::once(&self.snapshot).chain(others).cloned().collect()
    }

    /// What was `settled` is not when VS Code has not read the file yet.
    pub(super) fn freshness(&self, freshness: Freshness) -> Freshness {
        if self.view.is_stale { Freshness::Stale } else { freshness }
    }
}

/// What VS Code makes of a file.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Everything that is not saved.
    pub unsaved: Unsaved,
    /// Whether VS Code answers for the file; otherwise language servers of our own do.
    pub is_served: bool,
    /// Whether VS Code has extensions for the file's language of which none answers, or none yet.
    pub is_awaited: bool,
    /// Whether VS Code has not read yet what the disk holds.
    pub is_stale: bool,
    /// Whether a tab shows it.
    pub in_tab: bool,
}

/// Texts that are in VS Code and not on disk; most often none.
#[derive(Clone, Debug, Default)]
pub struct Unsaved(pub(super) Arc<[Snapshot]>);

impl Unsaved {
    /// The text of a file that is not saved.
    pub fn find(&self, path: &Path) -> Option<&Snapshot> {
        self.0.iter().find(|snapshot| snapshot.path == path)
    }

    /// All of them.
    pub fn all(&self) -> &[Snapshot] {
        &self.0
    }
}

/// The symbols of a file; ranges count lines and code points from 0.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The file.
    pub subject: Subject,
    /// Its symbols.
    pub symbols: Vec<Symbol>,
    /// Who says so.
    pub source: Source,
    /// How far it can be trusted.
    pub freshness: Freshness,
}

/// One symbol, chosen by name.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The definitions of that name in one place, mostly one.
    pub symbols: Vec<Symbol>,
    /// Its full name.
    pub path: String,
    /// Whether the name was not quite right.
    pub is_corrected: bool,
}

/// One use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The file.
    pub file: PathBuf,
    /// From 1.
    pub line: u32,
    /// From 1, in code points.
    pub column: u32,
    /// The line's text and the header of what it is in; only of the first ones.
    pub text: Option<(String, Option<String>)>,
}

/// All uses.
#[derive(Clone, Debug)]
pub struct References {
    /// The symbol's full name.
    pub symbol: String,
    /// Whether the name was not quite right.
    pub is_corrected: bool,
    /// By file and line.
    pub all: Vec<Reference>,
    /// Who says so.
    pub source: Source,
    /// How far it can be trusted.
    pub freshness: Freshness,
    /// What is not searched, if anything.
    pub note: Option<String>,
}

/// A place that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The file.
    pub file: PathBuf,
    /// From 1.
    pub line: u32,
    /// From 1, in code points.
    pub column: u32,
    /// Of the symbol, when it is one.
    pub name: Option<String>,
    /// Of the symbol, when it is one.
    pub kind: Option<&'static str>,
    /// What holds the symbol.
    pub container: Option<String>,
    /// The line's text.
    pub text: String,
    /// Lines of calls, from 1.
    pub calls: Vec<u32>,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Spots {
    /// The places.
    pub all: Vec<Spot>,
    /// The symbol's full name, or what was searched.
    pub symbol: String,
    /// Whether the name was not quite right.
    pub is_corrected: bool,
    /// Who says so.
    pub server: Arc<str>,
    /// How far it can be trusted.
    pub freshness: Freshness,
}

/// A problem, with its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// As the server told it; only the line is used of its place.
    pub diagnostic: Diagnostic,
}

/// What was found wrong.
#[derive(Clone, Debug)]
pub struct Problems {
    /// By file and line.
    pub all: Vec<Problem>,
    /// Who was asked.
    pub servers: Vec<Arc<str>>,
    /// How far it can be trusted.
    pub freshness: Freshness,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What would stand there.
    pub name: String,
    /// What it is.
    pub kind: Option<&'static str>,
    /// Its type or signature.
    pub detail: Option<String>,
    /// Its documentation, of the first ones.
    pub documentation: Option<String>,
}

/// All of them, the best first.
#[derive(Clone, Debug)]
pub struct Completions {
    /// No more than wanted.
    pub all: Vec<Completion>,
    /// How many there are.
    pub total: usize,
    /// Who says so.
    pub server: Arc<str>,
    /// How far it can be trusted.
    pub freshness: Freshness,
}

/// An action that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// In the server's words.
    pub title: String,
    /// `quickfix`, `refactor.extract`, ...
    pub kind: Option<String>,
    /// Whether the server would choose it.
    pub is_preferred: bool,
}

/// What is offered for some lines.
#[derive(Clone, Debug)]
pub struct Offers {
    /// In the server's order.
    pub all: Vec<Action>,
    /// Who offers it.
    pub server: Arc<str>,
    /// How far it can be trusted.
    pub freshness: Freshness,
}

/// A change on disk, in the protocol's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// 1
    Created = 1,
    /// 2
    Changed = 2,
    /// 3
    Deleted = 3,
}

/// A file that changed on disk.
pub type FileChange = (PathBuf, ChangeKind);
