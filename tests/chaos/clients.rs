//! Clients that call without pause: both eras over HTTP, `baton stdio`, one that is pinned to a window, one that gives up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use baton_proto::edge::META_WINDOW;
use baton_proto::ids::Term;
use serde_json::{Value, json};

use crate::checker::CALL_BOUND;
use crate::effects::Marks;
use crate::history::{Call, History, Moment, Told};
use crate::world::World;

mod http;
mod stdio;

/// Longest wait of a client: past the bound, so that a late answer is seen to be late and not missing.
const PATIENCE: Duration = CALL_BOUND.saturating_add(Duration::from_secs(20));
/// A client thinks for so long between two calls.
const PAUSE_MS: std::ops::Range<u64> = 5..40;
/// And after a refusal.
const PAUSE_REFUSED: Duration = Duration::from_millis(50);

/// What kind of client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 2025-11-25 over HTTP: a session, a stream of notices, one connection that is kept.
    Session,
    /// 2026-07-28 over HTTP.
    Stateless,
    /// `baton stdio`, 2025-11-25.
    Stdio,
    /// `baton stdio`, 2026-07-28.
    StdioStateless,
    /// 2025-11-25 on the endpoint of one window.
    Pinned,
    /// 2026-07-28, and now and then it hangs up in mid-call.
    Fickle,
}

/// The clients of a world; each has a connection and a session of its own.
pub(crate) const CLIENTS: [Kind; 7] = [
    Kind::Session,
    Kind::Session,
    Kind::Stateless,
    Kind::Stdio,
    Kind::StdioStateless,
    Kind::Pinned,
    Kind::Fickle,
];

impl Kind {
    /// For people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Stateless => "stateless",
            Self::Stdio => "stdio",
            Self::StdioStateless => "stdio stateless",
            Self::Pinned => "pinned",
            Self::Fickle => "fickle",
        }
    }

    fn is_stateless(self) -> bool {
        matches!(self, Self::Stateless | Self::StdioStateless | Self::Fickle)
    }
}

/// All clients of a world, running.
pub(crate) struct Clients {
    is_over: Arc<AtomicBool>,
    /// When the last call that was done was sent, in ms, for each client.
    done: Vec<Arc<AtomicU64>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Clients {
    /// Starts them.
    pub(crate) fn start(world: &Arc<World>, history: &Arc<History>, marks: &Marks, seed: u64) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (mut done, mut tasks) = (Vec::new(), Vec::new());
        for (index, kind) in CLIENTS.into_iter().enumerate() {
            let last_done = Arc::new(AtomicU64::new(0));
            let client = Client {
                index,
                kind,
                world: world.clone(),
                history: history.clone(),
                marks: marks.clone(),
                is_over: is_over.clone(),
                done: last_done.clone(),
                rng: fastrand::Rng::with_seed(seed.wrapping_add(index as u64)),
                n_calls: 0,
            };
            done.push(last_done);
            tasks.push(match kind {
                Kind::Stdio | Kind::StdioStateless => tokio::spawn(stdio::run(client)),
                _ => tokio::spawn(http::run(client)),
            });
        }
        Self { is_over, done, tasks }
    }

    /// Clients whose last call that was sent after `since` is not done yet.
    pub(crate) fn waiting(&self, since: Moment) -> Vec<&'static str> {
        let since = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let late = self.done.iter().zip(CLIENTS).filter(|(done, _)| done.load(Ordering::Relaxed) <= since);
        late.map(|(_, kind)| kind.word()).collect()
    }

    /// Ends them, each after its call.
    pub(crate) async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for task in self.tasks {
            // A client that panicked has said so on standard error.
            let _ = tokio::time::timeout(PATIENCE, task).await;
        }
    }
}

/// One client: what both transports share.
pub(crate) struct Client {
    pub(crate) index: usize,
    pub(crate) kind: Kind,
    pub(crate) world: Arc<World>,
    pub(crate) history: Arc<History>,
    marks: Marks,
    is_over: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    pub(crate) rng: fastrand::Rng,
    n_calls: u64,
}

/// How a call went, before it is recorded.
pub(crate) struct Heard {
    pub(crate) told: Told,
    pub(crate) words: String,
    pub(crate) window: Option<String>,
    pub(crate) term: Option<Term>,
}

impl Heard {
    pub(crate) fn new(told: Told, words: impl Into<String>) -> Self {
        Self { told, words: words.into(), window: None, term: None }
    }
}

impl Client {
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// The next call: its number and its message.
    pub(crate) fn next_call(&mut self) -> (u64, Value) {
        let id = self.history.next_id();
        let arguments = self.marks.arguments(self.index, self.n_calls, id);
        self.n_calls += 1;
        (id, self.message(id, "tools/call", json!({ "name": "lcp_apply_edit", "arguments": arguments })))
    }

    /// A request in the words of the client's era.
    pub(crate) fn message(&self, id: u64, method: &str, mut params: Value) -> Value {
        if self.kind.is_stateless() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "chaos", "version": "1" },
            });
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    pub(crate) fn initialize(&self, id: u64) -> Value {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "chaos", "version": "1" } });
        self.message(id, "initialize", params)
    }

    /// Records a call.
    pub(crate) fn record(&self, id: u64, method: &'static str, sent: Moment, heard: Heard) {
        if heard.told == Told::Done && method == "call" {
            self.done.fetch_max(u64::try_from(sent.as_millis()).unwrap_or_default(), Ordering::Relaxed);
        }
        let Heard { told, words, window, term } = heard;
        let answered = self.history.now();
        let is_pinned = self.kind == Kind::Pinned;
        let call =
            Call { id, client: self.index, method, sent, answered, told, window, term, words, is_pinned };
        self.history.call(call);
    }

    /// Thinks.
    pub(crate) async fn pause(&mut self, told: Told) {
        let pause = match told {
            Told::Refused | Told::Torn | Told::Unauthorized | Told::SessionLost => PAUSE_REFUSED,
            _ => Duration::from_millis(self.rng.u64(PAUSE_MS)),
        };
        tokio::time::sleep(pause).await;
    }
}

/// Codes of errors of calls that were not run.
const NOT_RUN: [&str; 6] =
    ["no_live_window", "no_window", "window_changed", "window_unreachable", "no_coordinator", "not_live"];

/// What a message of the server says about the call.
pub(crate) fn classify(message: &Value) -> Heard {
    if let Some(error) = message.get("error") {
        return Heard::new(Told::Failed, error.to_string());
    }
    let result = &message["result"];
    let content = &result["structuredContent"];
    let text = |name: &str| content[name].as_str().unwrap_or_default().to_owned();
    let (code, hint, sentence) = (text("code"), text("hint").to_lowercase(), text("message"));
    let told = if content["success"] == true {
        Told::Done
    } else if code == "outcome_unknown" || content["status"] == "interrupted" {
        Told::Unknown
    } else if hint.contains("try again") || hint.contains("repeat") {
        Told::Again
    } else if NOT_RUN.contains(&code.as_str()) {
        Told::NotRun
    } else if result["isError"] == true {
        Told::Failed
    } else {
        return Heard::new(Told::Odd, shortened(&message.to_string()));
    };
    let meta = &result["_meta"][META_WINDOW];
    Heard {
        told,
        words: shortened(&if code.is_empty() { text("error") } else { format!("{code}: {sentence}") }),
        window: meta["name"].as_str().map(str::to_owned),
        term: serde_json::from_value(meta["term"].clone()).ok(),
    }
}

/// The beginning of a text, on one line.
pub(crate) fn shortened(text: &str) -> String {
    let one_line = text.replace(['\n', '\r'], " ");
    one_line.chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(content: Value) -> Told {
        classify(
            &json!({ "result": { "isError": content.get("code").is_some(), "structuredContent": content } }),
        )
        .told
    }

    #[test]
    fn answers_are_told_apart() {
        assert_eq!(told(json!({ "success": true })), Told::Done);
        let code = |code: &str, hint: &str| told(json!({ "code": code, "hint": hint }));
        assert_eq!(code("outcome_unknown", "Repeat it if it only reads."), Told::Unknown);
        assert_eq!(code("window_error", "Try again, or restart."), Told::Again);
        assert_eq!(code("drained", "then repeat the call there."), Told::Again);
        assert_eq!(code("no_live_window", "Take one."), Told::NotRun);
        assert_eq!(code("text_not_found", ""), Told::Failed);
        assert_eq!(told(json!({})), Told::Odd);
        assert_eq!(classify(&json!({ "error": { "code": -32603 } })).told, Told::Failed);
    }

    #[test]
    fn the_window_and_its_term_are_read() {
        let meta = json!({ META_WINDOW: { "id": "w-1", "name": "one", "term": [2, 3] } });
        let heard =
            classify(&json!({ "result": { "structuredContent": { "success": true }, "_meta": meta } }));
        assert_eq!(heard.window.as_deref(), Some("one"));
        assert_eq!(heard.term, Some(Term { generation: 2, seq: 3 }));
    }
}
