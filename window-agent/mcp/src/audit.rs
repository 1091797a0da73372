//! One line in the log for each call of a tool that changes or runs something: who asked for what, and what came of it.
//!
//! **Invariant:** no content gets into it. Of names, paths and programs the beginning is told; of every other text its
//! length, and a hash that means something within this run of the agent alone.

use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;
use std::time::Instant;

use baton_link::logs::AUDIT;
use baton_proto::edge::SESSION_ARGUMENT;
use baton_proto::ids::WindowId;
use serde_json::Value;
use tracing::info;

use baton_agent_base::object::Object;
use baton_agent_base::wire::{bodies, read};
use baton_agent_tools::answer::Answer;
use baton_agent_tools::definition::Definition;

/// Arguments that say what a call is about, and hold no content.
const TOLD: [&str; 26] = [
    "action",
    "adapter",
    "apply",
    "breakpointId",
    "configuration_name",
    "context_file",
    "cwd",
    "file",
    "file_path",
    "format",
    "function",
    "host",
    "kind",
    "name",
    "new_name",
    "program",
    "request",
    "runtimeExecutable",
    "session",
    "session_id",
    "sessionId",
    "step_type",
    "symbol_name",
    "to",
    "type",
    "window",
];
/// Characters of a text that is told.
const MAX_TEXT: usize = 200;
/// Members that are told at each level.
const MAX_MEMBERS: usize = 20;
/// Levels that are told: a breakpoint's place, a launch configuration.
const MAX_LEVELS: usize = 2;
/// Files of a result that are told.
const MAX_FILES: usize = 10;

bodies! { pub(super),
    /// What a result says of a file.
    Touched {
        file: String,
    }
}

/// A call that is under way; one that is dropped before it ended was cancelled.
#[derive(Debug)]
pub(super) struct Audit {
    window: WindowId,
    tool: String,
    client: String,
    /// What the logs call it.
    call: Option<String>,
    session: String,
    touches: String,
    since: Instant,
    outcome: String,
}

impl Audit {
    /// `None` for a tool that only reads.
    pub(super) fn begin(
        window: &WindowId,
        definition: &Definition,
        arguments: Option<&Object>,
        (client, call): (Option<&str>, Option<&str>),
    ) -> Option<Self> {
        if definition.annotations().read_only_hint == Some(true) {
            return None;
        }
        let session = arguments.and_then(|arguments| {
            let named =
                [SESSION_ARGUMENT, "session", "sessionId"].iter().find_map(|name| arguments.get(*name));
            named.and_then(Value::as_str)
        });
        let mut touches = String::new();
        tell_members(&mut touches, "", arguments.unwrap_or(&Object::new()), MAX_LEVELS);
        Some(Self {
            window: window.clone(),
            tool: definition.name.to_owned(),
            client: shortened(client.unwrap_or_default()),
            call: call.map(str::to_owned),
            session: shortened(session.unwrap_or_default()),
            touches,
            since: Instant::now(),
            outcome: "cancelled".to_owned(),
        })
    }

    /// The call has its answer.
    pub(super) fn end(mut self, answer: &Answer) {
        let (object, is_error) = match answer {
            Answer::Error(error) => {
                self.outcome = format!("error:{}", error.kind);
                return;
            }
            Answer::Result(object) => (object, false),
            Answer::Spoken(spoken) => (&spoken.object, spoken.is_error),
        };
        let word = |name: &str| object.get(name).and_then(Value::as_str).filter(|word| is_word(word));
        self.outcome = match (is_error, word("code"), word("status")) {
            (true, Some(code), _) => format!("error:{code}"),
            (true, None, _) => "error".to_owned(),
            (false, _, Some(status)) => status.to_owned(),
            (false, _, None) => "success".to_owned(),
        };
        let touched: Vec<Touched> = object.get("data").map(read).unwrap_or_default();
        for Touched { file } in touched.iter().filter(|touched| !touched.file.is_empty()).take(MAX_FILES) {
            let _ = write!(self.touches, " file={}", shortened(file));
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        let Self { window, tool, client, call, session, touches, since, outcome } = self;
        let call = call.as_ref().map(tracing::field::display);
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let touches = touches.trim();
        info!(target: AUDIT, parent: None, %tool, %window, call, %client, %session, %outcome, ms, %touches);
    }
}

/// Each member as `name=value`.
fn tell_members(told: &mut String, before: &str, members: &Object, n_levels: usize) {
    let known = members.iter().filter(|(name, value)| is_word(name) && !value.is_null());
    for (name, value) in known.take(MAX_MEMBERS) {
        let path = format!("{before}{name}");
        let _ = match value {
            Value::Object(inner) if n_levels > 1 => {
                tell_members(told, &format!("{path}."), inner, n_levels - 1);
                Ok(())
            }
            Value::Object(inner) => write!(told, " {path}={{{}}}", inner.len()),
            Value::Array(list) => write!(told, " {path}=[{}]", list.len()),
            Value::String(text) if TOLD.contains(&name.as_str()) => {
                write!(told, " {path}={}", shortened(text))
            }
            Value::String(text) => {
                write!(told, " {path}={} characters #{:08x}", text.chars().count(), hash(text))
            }
            other => write!(told, " {path}={other}"),
        };
    }
    if members.len() > MAX_MEMBERS {
        let _ = write!(told, " and {} more", members.len() - MAX_MEMBERS);
    }
}

/// A name of ours, of letters and digits.
fn is_word(text: &str) -> bool {
    const MAX_LEN: usize = 40;
    text.len() <= MAX_LEN && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The beginning of a text, quoted: no line end and no other control character is left in it.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The same for the same text within this run; without its key nobody can try out what the text was.
fn hash(text: &str) -> u32 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    u32::try_from(KEY.hash_one(text) >> 32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use baton_agent_base::object::object;
    use baton_agent_tools::CATALOGUE;

    fn told(arguments: Value) -> String {
        let mut told = String::new();
        tell_members(&mut told, "", &object(arguments), MAX_LEVELS);
        told.trim().to_owned()
    }

    #[test]
    fn names_and_paths_are_told_and_content_is_not() {
        let text = told(json!({
            "file_path": "a\nINFO audit: forged\u{1b}[31m",
            "line_number": 3,
            "condition": "password == 'hunter2'",
            "edits": [{"new_text": "hunter2"}],
            "bad name\n": "hunter2",
            "location": {"file_path": "b.py", "line_number": 4, "deep": {"file_path": "hunter2"}},
        }));
        assert!(!text.contains("hunter2") && !text.contains('\n') && !text.contains('\u{1b}'), "{text}");
        for part in [r#"file_path="a\nINFO audit"#, "line_number=3", "condition=21 characters #", "edits=[1]"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains(r#"location.file_path="b.py" location.line_number=4"#), "{text}");
        assert_eq!(told(json!({"expression": "a"})), told(json!({"expression": "a"})));
        assert_ne!(told(json!({"expression": "a"})), told(json!({"expression": "b"})));
        let long = told(json!({"program": "p".repeat(10_000)}));
        assert!(long.len() < 300 && long.ends_with("..."), "{long}");
    }

    #[test]
    fn tools_that_only_read_are_not_audited() {
        let window: WindowId = "w".parse().unwrap();
        let audited =
            |tool: &str| Audit::begin(&window, CATALOGUE.find(tool).unwrap(), None, (None, None)).is_some();
        assert!(!audited("get_breakpoints") && !audited("lcp_get_outline"));
        assert!(audited("set_breakpoint") && audited("evaluate_expression") && audited("lcp_apply_edit"));
    }
}
