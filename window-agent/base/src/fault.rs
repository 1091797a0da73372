//! CORE: an error as a client reads it.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use crate::object::Object;

/// What is wrong; its name in snake case is the stable code that a program reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the codes, and the message beside one says the rest")]
pub enum Kind {
    ActionNotFound,
    AdapterDied,
    AdapterMissing,
    AdapterRefused,
    AdapterTimeout,
    AmbiguousAction,
    AmbiguousConfiguration,
    AmbiguousPath,
    AmbiguousSymbol,
    AmbiguousText,
    BadCondition,
    BadConfiguration,
    BadHitCondition,
    Busy,
    CannotWrite,
    ChangedMeanwhile,
    Compound,
    EvaluationFailed,
    FileExists,
    FileMissing,
    FileNotFound,
    FileTooLarge,
    FolderNotFound,
    ForeignId,
    InternalError,
    Interrupted,
    InvalidArguments,
    InvalidName,
    InvalidPath,
    InvalidRange,
    LaunchJsonBroken,
    LaunchJsonMissing,
    LineOutsideFile,
    NeedsInput,
    NoFolder,
    NoFrame,
    NoPlace,
    NoServer,
    NoSession,
    NoSuchBreakpoint,
    NoSuchFrame,
    NoSuchReference,
    NoSuchSession,
    NoSuchThread,
    NoTerminal,
    NoThreads,
    NotAFile,
    NotARequest,
    NotCallable,
    NotRenamable,
    NotStopped,
    NotText,
    NothingToChange,
    NothingToRename,
    NothingToUndo,
    OthersBreakpoint,
    OutsideWindow,
    OverlappingEdits,
    ProtectedPath,
    ServerRefused,
    ServerUnavailable,
    SessionEnded,
    ShuttingDown,
    StaleFrame,
    StaleReference,
    StartFailed,
    StdinFull,
    SymbolNotFound,
    TaskFailed,
    TextNotFound,
    Timeout,
    TooManySessions,
    UnknownConfiguration,
    UnknownTool,
    UnknownType,
    UnreadableFile,
    UnresolvedVariable,
    Unsupported,
    UnsupportedEdit,
    Untrusted,
    WhichSession,
}

impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(to)
    }
}

/// An error as a client reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// For programs.
    pub kind: Kind,
    /// One sentence: what is wrong.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
    /// Further fields, such as `candidates`.
    pub details: Object,
}

impl Fault {
    /// An error without a hint.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, details: Object::new() }
    }

    /// Adds what to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a field.
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// As a client reads it.
    pub fn into_object(self) -> Object {
        let mut object = Object::new();
        object.insert("status".to_owned(), "error".into());
        object.insert("code".to_owned(), json!(self.kind));
        object.insert("message".to_owned(), self.message.into());
        if let Some(hint) = self.hint {
            object.insert("hint".to_owned(), hint.into());
        }
        object.extend(self.details);
        object
    }
}

/// The same text with a capital letter and a full stop.
pub fn sentence(text: &str) -> String {
    let mut chars = text.trim_end().chars();
    let mut sentence: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    if !sentence.ends_with(['.', '!', '?', '。', '！']) {
        sentence.push('.');
    }
    sentence
}
