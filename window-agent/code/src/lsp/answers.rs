//! CORE: what servers answer to what the engine asks, in the forms that VS Code has for it, too.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::lenient::{Each, Kept, Or, list};
use super::{Diagnostic, Range, TextEdit};
use baton_agent_base::wire::bodies;

bodies! {
    pub(crate),

    /// A document.
    TextDocument { uri: String, }

    /// Something that a server offers to do. VS Code's kinds are objects; in the old form it is a command itself.
    CodeAction {
        title: String,
        kind: Option<Or<String, Valued>>,
        is_preferred: bool,
        disabled: Option<IgnoredAny>,
        edit: Option<Value>,
        data: Option<IgnoredAny>,
        command: Option<Or<String, Command>>,
        arguments: Value,
    }

    /// What a server would do.
    Command { command: String, arguments: Value, }

    /// What could stand at a place.
    CompletionItem {
        label: Option<Or<String, Label>>,
        label_details: Label,
        filter_text: Option<String>,
        sort_text: Option<String>,
        kind: Option<u64>,
        detail: String,
        documentation: Option<Marked>,
    }

    /// Parts of a label; VS Code has them all in one.
    Label { label: String, detail: String, description: String, }

    /// What is told of a symbol.
    Hover { contents: Option<Marked>, }

    /// A text with something beside it.
    Valued { value: String, }

    /// A symbol, as searches, calls and servers without a hierarchy tell of it: in calls by document and range.
    Named {
        name: String,
        kind: Option<u8>,
        container_name: String,
        location: Place,
        uri: String,
        selection_range: Option<Range>,
    }

    /// A document, and perhaps where in it. A link has other names for both.
    Place {
        #[serde(alias = "targetUri")]
        uri: String,
        range: Option<Range>,
        target_range: Option<Range>,
        target_selection_range: Option<Range>,
    }

    /// Who calls, or who is called, and the places.
    Call { #[serde(alias = "from", alias = "to")] other: Named, from_ranges: Each<Range>, }

    /// A place that means what was asked about.
    DocumentHighlight { range: Option<Range>, }

    /// The problems of a file, told or asked for.
    FileDiagnostics {
        uri: String,
        #[serde(alias = "diagnostics")]
        items: Each<Diagnostic>,
        version: Option<i64>,
    }

    /// Those of a project.
    ProjectDiagnostics { items: Each<FileDiagnostics>, }

    /// A diagnostic's code in VS Code, with a link to what it means.
    LinkedCode { value: Option<Value>, }
}

/// The answer to a completion: a list, or an object with one.
pub(crate) fn completions(result: &Value) -> Vec<Kept<CompletionItem>> {
    list(result.get("items").unwrap_or(result))
}

impl CompletionItem {
    pub(crate) fn label(&self) -> &str {
        match &self.label {
            Some(Or::Plain(label) | Or::More(Label { label, .. })) => label.trim(),
            None => "",
        }
    }

    /// By what it is sorted.
    pub(crate) fn order(&self) -> (&str, &str) {
        (self.sort_text.as_deref().unwrap_or(self.label()), self.label())
    }

    /// What is shown of it first, beside its label.
    pub(crate) fn detail(&self) -> Option<&str> {
        let Label { detail: beside, description, .. } = &self.label_details;
        let in_label = match &self.label {
            Some(Or::More(label)) => label.detail.as_str(),
            _ => "",
        };
        [self.detail.as_str(), beside, in_label, description].into_iter().find(|text| !text.is_empty())
    }
}

/// A description, in whichever of its forms.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Marked {
    Text(String),
    Parts(Vec<Marked>),
    Block(Valued),
    Other(IgnoredAny),
}

impl Marked {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) | Self::Block(Valued { value: text }) => text.clone(),
            Self::Parts(parts) => parts.iter().map(Self::text).collect::<Vec<_>>().join("\n\n"),
            Self::Other(_) => String::new(),
        }
    }
}

/// Edits of many files, made all or none: one that is odd makes the whole unreadable. Of the two forms the first
/// counts.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WorkspaceEdit {
    pub document_changes: Option<Vec<DocumentChange>>,
    pub changes: Option<BTreeMap<String, Vec<TextEdit>>>,
}

bodies! {
    pub(crate),

    /// With a kind it is something done to a file, without one new text in it.
    DocumentChange {
        kind: Option<String>,
        uri: String,
        old_uri: String,
        new_uri: String,
        options: FileOptions,
        text_document: TextDocument,
        edits: Option<Vec<TextEdit>>,
    }

    /// What becomes of what is there, or is not.
    FileOptions { overwrite: bool, ignore_if_exists: bool, ignore_if_not_exists: bool, }
}
