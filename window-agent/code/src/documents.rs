//! CORE: the documents that a server has open: versions, changes, which to close, which to open again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lsp;
use crate::text::{Encoding, Text};

/// A document that nobody asked about so long is closed.
pub const IDLE_LIMIT: Duration = Duration::from_secs(5 * 60);
/// Open documents; the one used longest ago makes room.
pub const MAX_OPEN: usize = 200;
/// The method that opens one.
pub const DID_OPEN: &str = "textDocument/didOpen";

/// What tells that a file on disk is the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Last change, since 1970; none when it was a moment ago, so that it is looked at again.
    pub modified: Option<Duration>,
    /// Length in bytes.
    pub len: u64,
    /// The file itself: editors replace files.
    pub inode: u64,
}

/// A file as it was read.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Absolute.
    pub path: PathBuf,
    /// Its text.
    pub text: Arc<Text>,
    /// Taken before it was read.
    pub stamp: Stamp,
}

/// What a server is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Of the protocol.
    pub method: &'static str,
    /// Likewise.
    pub params: Value,
}

#[derive(Clone, Debug)]
struct Document {
    language: String,
    version: i32,
    text: Arc<Text>,
    stamp: Stamp,
    last_used: Instant,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    open: HashMap<PathBuf, Document>,
}

impl Documents {
    /// Brings the server's copy of a file to `snapshot`. `is_incremental`: the server takes changes of a range.
    pub fn show(
        &mut self,
        now: Instant,
        snapshot: &Snapshot,
        language: &str,
        encoding: Encoding,
        is_incremental: bool,
    ) -> Vec<Notice> {
        let uri = lsp::uri(&snapshot.path);
        if let Some(document) = self.open.get_mut(&snapshot.path) {
            document.last_used = now;
            document.stamp = snapshot.stamp;
            let Some((range, text)) = document.text.change_to(snapshot.text.as_str(), encoding) else {
                return Vec::new();
            };
            document.version += 1;
            document.text = snapshot.text.clone();
            let change = match is_incremental {
                true => json!({"range": range, "text": text}),
                false => json!({"text": snapshot.text.as_str()}),
            };
            let params = json!({
                "textDocument": {"uri": uri, "version": document.version},
                "contentChanges": [change],
            });
            let saved =
                Notice { method: "textDocument/didSave", params: json!({"textDocument": {"uri": uri}}) };
            return vec![Notice { method: "textDocument/didChange", params }, saved];
        }
        let mut notices = self.make_room();
        let document = Document {
            language: language.to_owned(),
            version: 1,
            text: snapshot.text.clone(),
            stamp: snapshot.stamp,
            last_used: now,
        };
        notices.push(did_open(&uri, &document));
        self.open.insert(snapshot.path.clone(), document);
        notices
    }

    /// Everything again, for a server that was started anew.
    pub fn reopen(&self) -> Vec<Notice> {
        self.open.iter().map(|(path, document)| did_open(&lsp::uri(path), document)).collect()
    }

    /// Closes a file, because it is gone.
    pub fn close(&mut self, path: &Path) -> Option<Notice> {
        self.open.remove(path)?;
        let params = json!({"textDocument": {"uri": lsp::uri(path)}});
        Some(Notice { method: "textDocument/didClose", params })
    }

    /// Closes what was not used for long.
    pub fn close_idle(&mut self, now: Instant) -> Vec<Notice> {
        let idle: Vec<PathBuf> = self
            .open
            .iter()
            .filter(|(_, document)| now >= document.last_used + IDLE_LIMIT)
            .map(|(path, _)| path.clone())
            .collect();
        idle.iter().filter_map(|path| self.close(path)).collect()
    }

    /// When [`Documents::close_idle`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.open.values().map(|document| document.last_used + IDLE_LIMIT).min()
    }

    /// The version that the server has of a file.
    pub fn version(&self, path: &Path) -> Option<i32> {
        Some(self.open.get(path)?.version)
    }

    /// What the disk held when each open file was read.
    pub fn stamps(&self) -> impl Iterator<Item = (&Path, Stamp)> {
        self.open.iter().map(|(path, document)| (path.as_path(), document.stamp))
    }

    /// The language under which a file was opened.
    pub fn language(&self, path: &Path) -> Option<&str> {
        Some(&self.open.get(path)?.language)
    }

    fn make_room(&mut self) -> Vec<Notice> {
        if self.open.len() < MAX_OPEN {
            return Vec::new();
        }
        let oldest = self.open.iter().min_by_key(|(_, document)| document.last_used);
        let oldest = oldest.map(|(path, _)| path.clone());
        oldest.and_then(|path| self.close(&path)).into_iter().collect()
    }
}

fn did_open(uri: &str, document: &Document) -> Notice {
    let params = json!({"textDocument": {
        "uri": uri,
        "languageId": document.language,
        "version": document.version,
        "text": document.text.as_str(),
    }});
    Notice { method: DID_OPEN, params }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(path: &str, text: &str) -> Snapshot {
        let stamp = Stamp { modified: None, len: text.len() as u64, inode: 1 };
        Snapshot { path: path.into(), text: Arc::new(Text::new(text.to_owned())), stamp }
    }

    fn methods(notices: &[Notice]) -> Vec<&str> {
        notices.iter().map(|notice| notice.method).collect()
    }

    #[test]
    fn a_document_follows_its_file() {
        let (mut documents, now) = (Documents::default(), Instant::now());
        let mut show = |text: &str, is_incremental| {
            documents.show(now, &snapshot("/a.py", text), "python", Encoding::Utf8, is_incremental)
        };
        let opened = show("one\ntwo\n", true);
        assert_eq!(methods(&opened), ["textDocument/didOpen"]);
        assert_eq!(opened[0].params["textDocument"]["text"], "one\ntwo\n");
        assert!(show("one\ntwo\n", true).is_empty(), "nothing changed");
        let changed = show("one\n2\n", true);
        assert_eq!(methods(&changed), ["textDocument/didChange", "textDocument/didSave"]);
        assert_eq!(changed[0].params["textDocument"]["version"], 2);
        assert_eq!(
            changed[0].params["contentChanges"][0],
            json!({"range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}, "text": "2"})
        );
        assert_eq!(show("x", false)[0].params["contentChanges"], json!([{"text": "x"}]));
        assert_eq!(documents.version(Path::new("/a.py")), Some(3));
        assert_eq!(documents.reopen()[0].params["textDocument"]["version"], 3);
    }

    #[test]
    fn what_is_not_used_is_closed() {
        let (mut documents, start) = (Documents::default(), Instant::now());
        let show = |documents: &mut Documents, seconds: u64, idx: usize| {
            let now = start + Duration::from_secs(seconds);
            let snapshot = snapshot(&format!("/{idx}.py"), "");
            documents.show(now, &snapshot, "python", Encoding::Utf8, true)
        };
        for idx in 0..MAX_OPEN {
            show(&mut documents, idx as u64, idx);
        }
        assert_eq!(documents.poll_timeout(), Some(start + IDLE_LIMIT));
        let made = show(&mut documents, 200, MAX_OPEN);
        assert_eq!(methods(&made), ["textDocument/didClose", "textDocument/didOpen"]);
        assert_eq!(made[0].params["textDocument"]["uri"], "file:///0.py");
        assert_eq!(documents.close_idle(start + IDLE_LIMIT).len(), 0);
        assert_eq!(documents.close_idle(start + IDLE_LIMIT + Duration::from_secs(1)).len(), 1);
        assert_eq!(documents.close_idle(start + 2 * IDLE_LIMIT).len(), MAX_OPEN - 1);
        assert_eq!(documents.poll_timeout(), None);
    }
}
