//! CORE: two answers to one call beside each other. What is another thing in each run (IDs, times) is no difference, and
//! what an answer calls a thing now is what the calls after it are told.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Most differences of one answer that are told.
const MAX_TOLD: usize = 5;
/// Characters of a value that is told.
const MAX_SHOWN: usize = 200;
/// Ends of names, in lower case and without `_`, of what names a thing for one run only.
const NAMES: [&str; 9] =
    ["id", "ids", "session", "reference", "ref", "token", "instruction", "address", "timestamp"];
/// The same as a whole.
const WHOLE: [&str; 7] = ["pid", "at", "ms", "took", "elapsed", "hash", APPLY];
/// Words in a text, in lower case, behind which such a name stands.
const NAMED: [&str; 9] =
    ["pid", "process", "thread", "session", "id", "frame", "breakpoint", "reference", APPLY];
/// The argument that makes a change that was shown before: the token of what was shown.
const APPLY: &str = "apply";
/// The argument that names the window of one call.
const WINDOW: &str = "window";
/// Fields that say which window an answer is of, and which revision of MCP it speaks.
const BESIDE: [&str; 3] = ["in_window", "notice", "resultType"];
/// What is told beside a result.
const META: &str = "_meta";
/// In it: the structure of an answer that a model reads as text.
const DETAILS: &str = "baton/details";

/// Where two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The way to it: `content[0].text, line 3`.
    pub(super) at: String,
    pub(super) then: String,
    pub(super) now: String,
}

/// What things were called when they were recorded, and are called now.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Of the last word of the name under which it was told.
    names: BTreeMap<String, Value>,
    folders: Vec<(String, String)>,
}

impl Known {
    /// A window's folder then is another one now.
    pub(super) fn moved(&mut self, then: &str, now: &str) {
        let pair = (then.to_owned(), now.to_owned());
        if then != now && !then.is_empty() && !now.is_empty() && !self.folders.contains(&pair) {
            self.folders.push(pair);
        }
    }

    /// The arguments of a call, as they are to be now: for the window that is called, whichever they named.
    pub(super) fn arguments(&self, then: &Value) -> Value {
        let mut now = self.translated("", then);
        if let Some(members) = now.as_object_mut() {
            members.remove(WINDOW);
        }
        now
    }

    fn translated(&self, name: &str, then: &Value) -> Value {
        match then {
            Value::Object(members) => {
                let translated =
                    members.iter().map(|(name, value)| (name.clone(), self.translated(name, value)));
                Value::Object(translated.collect::<Map<_, _>>())
            }
            Value::Array(list) => list.iter().map(|value| self.translated(name, value)).collect(),
            Value::String(_) | Value::Number(_) if is_passing(name) => {
                self.names.get(&then.to_string()).cloned().unwrap_or_else(|| then.clone())
            }
            Value::String(text) => Value::String(self.placed(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => then.clone(),
        }
    }

    /// A text with the folder of now.
    fn placed(&self, text: &str) -> String {
        self.folders.iter().fold(text.to_owned(), |text, (then, now)| text.replace(then, now))
    }
}

/// Whether what stands under this name is another thing in each run.
fn is_passing(name: &str) -> bool {
    let plain: String = name.chars().filter(|char| *char != '_').collect::<String>().to_lowercase();
    WHOLE.contains(&plain.as_str()) || NAMES.iter().any(|end| plain.ends_with(end))
}

/// Where the answer of now differs from that of then.
pub(super) fn differences(then: &Value, now: &Value, known: &mut Known) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", "", then, now, known, &mut found);
    found.truncate(MAX_TOLD);
    found
}

fn compare(at: &str, name: &str, then: &Value, now: &Value, known: &mut Known, found: &mut Vec<Difference>) {
    match (then, now) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                if BESIDE.contains(&name.as_str()) {
                    continue;
                }
                if name == META {
                    names_in(old.get(name), new.get(name), known);
                    continue;
                }
                let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                let (old, new) = (old.get(name), new.get(name));
                compare(&at, name, old.unwrap_or(&Value::Null), new.unwrap_or(&Value::Null), known, found);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (idx, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{at}[{idx}]"), name, old, new, known, found);
            }
        }
        (Value::String(_) | Value::Number(_), Value::String(_) | Value::Number(_)) if is_passing(name) => {
            known.names.insert(then.to_string(), now.clone());
        }
        (Value::String(old), Value::String(new)) => texts(at, old, new, known, found),
        _ if then == now => {}
        _ => found.push(Difference { at: at.to_owned(), then: shown(then), now: shown(now) }),
    }
}

/// A text without what it says of the window that it comes from, see `heard` of the edge.
fn unlabelled(text: &str) -> &str {
    let is_notice = |line: &str| line.starts_with("This is window ") || line.starts_with("Window \"");
    let text = text.split_once('\n').filter(|(first, _)| is_notice(first)).map_or(text, |(_, rest)| rest);
    let label = text.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    label.filter(|(label, _)| !label.contains(['\n', ','])).map_or(text, |(_, rest)| rest)
}

/// Compares texts line by line.
fn texts(at: &str, then: &str, now: &str, known: &Known, found: &mut Vec<Difference>) {
    let (placed, now) = (known.placed(unlabelled(then)), unlabelled(now));
    let (old, new): (Vec<&str>, Vec<&str>) = (placed.lines().collect(), now.lines().collect());
    for idx in 0..old.len().max(new.len()) {
        let (old, new) = (old.get(idx).copied(), new.get(idx).copied());
        let is_same = old.map(steady) == new.map(steady);
        if !is_same {
            let shown = |line: Option<&str>| line.map_or("(no such line)".to_owned(), shortened);
            found.push(Difference {
                at: if placed.contains('\n') || now.contains('\n') {
                    format!("{at}, line {}", idx + 1)
                } else {
                    at.to_owned()
                },
                then: shown(old),
                now: shown(new),
            });
            return;
        }
    }
}

/// What the structure of an answer calls things whose text a model reads instead.
fn names_in(then: Option<&Value>, now: Option<&Value>, known: &mut Known) {
    let details = |meta: Option<&Value>| meta.and_then(|meta| meta.get(DETAILS)).cloned().unwrap_or_default();
    // The text says it all; that is compared.
    compare("", "", &details(then), &details(now), known, &mut Vec::new());
}

/// A line without what is another one in each run: addresses, IDs, times of a clock.
fn steady(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    for idx in 0..words.len() {
        let bare = words[idx].trim_matches(|char: char| !char.is_ascii_alphanumeric());
        let before = idx
            .checked_sub(1)
            .map(|before| words[before].trim_matches(|char: char| !char.is_ascii_alphabetic()));
        let is_named = before.is_some_and(|before| NAMED.contains(&before.to_lowercase().as_str()));
        let is_id = words[idx].contains('#') || is_named;
        let is_address = bare.starts_with("0x") && bare.len() > 4;
        let is_time = bare.strip_suffix("ms").is_some_and(|number| number.parse::<f64>().is_ok());
        if is_address || is_time || is_id && bare.contains(|char: char| char.is_ascii_digit()) {
            words[idx] = "*";
        }
    }
    words.join(" ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "(nothing)".to_owned(),
        Value::String(text) => shortened(text),
        Value::Array(list) if list.len() > 3 => format!("a list of {}", list.len()),
        value => shortened(&value.to_string()),
    }
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(then: &Value, now: &Value) -> Vec<String> {
        let found = differences(then, now, &mut Known::default());
        found.into_iter().map(|one| format!("{}: {} -> {}", one.at, one.then, one.now)).collect()
    }

    #[test]
    fn what_is_new_in_each_run_is_no_difference_and_is_used_from_then_on() {
        let then = json!({"session_id": "s1", "frames": [{"id": 1000, "line": 3}], "timestamp": "1"});
        let now = json!({"session_id": "s7", "frames": [{"id": 1004, "line": 3}], "timestamp": "2"});
        let mut known = Known::default();
        assert_eq!(differences(&then, &now, &mut known), []);
        let arguments =
            known.arguments(&json!({"session_id": "s1", "frame_id": 1000, "line": 1000, "expression": "s1"}));
        assert_eq!(
            arguments,
            json!({"session_id": "s7", "frame_id": 1004, "line": 1000, "expression": "s1"})
        );
    }

    #[test]
    fn a_change_that_was_shown_is_made_and_no_call_names_a_window() {
        let told = |token: &str| json!({"token": token, "note": format!("Call again with apply {token:?}.")});
        let mut known = Known::default();
        assert_eq!(differences(&told("a1"), &told("b2"), &mut known), []);
        let arguments = known.arguments(&json!({"apply": "a1", "window": "shop", "of": {"window": 1}}));
        assert_eq!(arguments, json!({"apply": "b2", "of": {"window": 1}}));
    }

    #[test]
    fn what_stands_beside_a_text_names_things_and_is_not_compared() {
        let told =
            |frame: u64, n: u64| json!({"content": [], "_meta": {DETAILS: {"frameId": frame, "n": n}}});
        let mut known = Known::default();
        assert_eq!(differences(&told(7, 1), &told(9, 2), &mut known), []);
        assert_eq!(known.arguments(&json!({"frame_id": 7})), json!({"frame_id": 9}));
    }

    #[test]
    fn another_value_another_line_and_what_is_missing_are_told() {
        assert_eq!(told(&json!({"n": 1, "a": "x"}), &json!({"n": 2, "a": "x"})), ["n: 1 -> 2"]);
        assert_eq!(told(&json!({"list": [1, 2]}), &json!({"list": [1]})), ["list: [1,2] -> [1]"]);
        assert_eq!(
            told(&json!({"a": "x"}), &json!({"b": true})),
            ["a: x -> (nothing)", "b: (nothing) -> true"]
        );
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        assert_eq!(
            told(&text("stopped\nn = 3\nend"), &text("stopped\nn = 4\nend")),
            ["content[0].text, line 2: n = 3 -> n = 4"]
        );
        assert_eq!(told(&text("a\nb"), &text("a")), ["content[0].text, line 2: b -> (no such line)"]);
    }

    #[test]
    fn addresses_process_ids_and_times_in_a_text_are_no_difference() {
        let text = |text: &str| json!({"text": text});
        let (then, now) = ("thread 71 at <0x7f1200> (12 ms)", "thread 94 at <0x55aa00> (12 ms)");
        assert_eq!(told(&text(then), &text(now)), Vec::<String>::new());
        assert_eq!(told(&text("took 3ms"), &text("took 17.5ms")), Vec::<String>::new());
        assert_eq!(told(&text("Session a1-2: #952"), &text("Session b7-3: #13")), Vec::<String>::new());
        assert_eq!(told(&text("line 71"), &text("line 72")), ["text: line 71 -> line 72"]);
    }

    #[test]
    fn which_window_an_answer_is_of_is_no_difference() {
        let text = |text: &str| json!({"text": text});
        let (then, now) = ("This is window \"a\" (/src/a).\n[a] stopped", "[b c] stopped");
        assert_eq!(told(&text(then), &text(now)), Vec::<String>::new());
        assert_eq!(told(&text("[1, 2] x"), &text("[1, 3] x")), ["text: [1, 2] x -> [1, 3] x"]);
        assert_eq!(
            told(&json!({"in_window": "a"}), &json!({"resultType": "complete"})),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_folder_may_be_another_one() {
        let mut known = Known::default();
        known.moved("/src/shop", "/tmp/copy");
        assert_eq!(known.arguments(&json!({"file": "/src/shop/a.py"})), json!({"file": "/tmp/copy/a.py"}));
        let (then, now) = (json!({"text": "at /src/shop/a.py:3"}), json!({"text": "at /tmp/copy/a.py:3"}));
        assert_eq!(differences(&then, &now, &mut known), []);
    }
}
