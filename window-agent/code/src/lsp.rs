//! CORE: the few messages of the language server protocol that the engine looks into.

pub(crate) mod answers;
pub(crate) mod lenient;
pub(crate) mod notices;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::answers::Place;
use self::lenient::list;
use baton_agent_base::paths::{self, Given, Remote};
use baton_agent_base::wire::read;

/// A place in a document, counted from 0; `character` in what was agreed upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Place in the line.
    pub character: u32,
}

/// From a place up to, but not including, another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Range {
    /// Where it begins.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
}

impl Range {
    /// Whether `other` lies inside.
    pub fn holds(&self, other: &Range) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A range in a document.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Location {
    /// The document.
    pub uri: String,
    /// Where in it.
    pub range: Range,
}

/// A symbol with those inside it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentSymbol {
    /// Its name.
    pub name: String,
    /// More about it.
    pub detail: Option<String>,
    /// What it is, as a number of the protocol.
    pub kind: u8,
    /// All of it.
    pub range: Range,
    /// Its name in the text.
    pub selection_range: Range,
    /// What it holds.
    pub children: Option<Vec<DocumentSymbol>>,
}

/// A problem that a server found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Where.
    pub range: Range,
    /// 1 is an error, 2 a warning, 3 information, 4 a hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<u8>,
    /// The server's code for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Value>,
    /// Which part of the server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What the server wants to hear again when it is asked for a fix.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

/// New text for a range.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextEdit {
    /// What is replaced.
    pub range: Range,
    /// By what.
    pub new_text: String,
}

/// A message of a server.
#[derive(Debug, Deserialize)]
pub struct Message<'a> {
    /// Of a request or an answer.
    pub id: Option<Value>,
    /// Of a request or a notice.
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    /// Of a request or a notice.
    #[serde(default)]
    pub params: Value,
    /// Of an answer.
    #[serde(default)]
    pub result: Value,
    /// Of an answer.
    pub error: Option<ResponseError>,
}

/// Why a server could not answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResponseError {
    /// A number of the protocol.
    pub code: i64,
    /// In words.
    #[serde(default)]
    pub message: String,
}

/// A server's answers to one place or to many come as one, a list, or links.
pub fn locations(result: &Value) -> Vec<Location> {
    let all = if result.is_array() { list(result) } else { vec![read(result)] };
    let one = |Place { uri, range, target_range, target_selection_range }: Place| {
        Some(Location { uri, range: target_selection_range.or(target_range).or(range)? })
    };
    all.into_iter().filter_map(one).collect()
}

/// The address of a file.
pub fn uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from("file://");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(byte.into())
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// The file at an address; `None` for what is no file.
pub fn path(uri: &str) -> Option<PathBuf> {
    match paths::parse(uri, Remote::Own) {
        Ok(Given::Absolute(path)) => Some(path),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_lead_back_to_their_files() {
        let odd = Path::new("/a b/ä#?%.py");
        assert_eq!(uri(odd), "file:///a%20b/%C3%A4%23%3F%25.py");
        assert_eq!(path(&uri(odd)).as_deref(), Some(odd));
        assert_eq!(path("untitled:x"), None);
    }

    #[test]
    fn locations_come_in_three_forms() {
        let range = json!({"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 3}});
        let one = json!({"uri": "file:///a", "range": range});
        let link = json!({"targetUri": "file:///a", "targetRange": range, "targetSelectionRange": range});
        for form in [one.clone(), json!([one]), json!([link])] {
            assert_eq!(locations(&form).len(), 1, "{form}");
            assert_eq!(locations(&form)[0].range.start.character, 2);
        }
        assert!(locations(&Value::Null).is_empty());
    }
}
