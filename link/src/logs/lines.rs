//! Lines of log files: what each says before anything that somebody else has said, and which of them are wanted.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::Level;

use super::{AUDIT, BODIES, LogFolder};

/// What a line says before anything that somebody else has said.
#[derive(Debug, Default, Deserialize)]
pub struct Head<'a> {
    /// When, in RFC 3339.
    #[serde(borrow, rename = "timestamp")]
    pub time: Cow<'a, str>,
    /// Which process.
    pub pid: Option<u32>,
    /// How bad it is.
    #[serde(borrow)]
    pub level: Cow<'a, str>,
    /// The part of the program; of a line of text only when no span stands before it.
    #[serde(borrow)]
    pub target: Cow<'a, str>,
}

impl<'a> Head<'a> {
    /// Of either form; empty for what is none of our lines.
    pub fn of(line: &'a str) -> Self {
        if line.starts_with('{') {
            return serde_json::from_str(line).unwrap_or_default();
        }
        let mut words = line.split_ascii_whitespace();
        let time = words.next().unwrap_or_default();
        let mut level = words.next().unwrap_or_default();
        // Lines of earlier versions name no process.
        let pid = level.parse().ok();
        if pid.is_some() {
            level = words.next().unwrap_or_default();
        }
        let target = words.next().and_then(|word| word.strip_suffix(':')).unwrap_or_default();
        Self { time: time.into(), pid, level: level.into(), target: target.into() }
    }

    fn level(&self) -> Option<Level> {
        self.level.parse().ok()
    }
}

/// A field as lines have it, in either form.
#[derive(Debug)]
pub struct Field {
    forms: [String; 2],
    /// Otherwise it may begin so.
    is_whole: bool,
}

impl Field {
    /// One that is `value`, or begins so.
    pub fn new(name: &str, value: &str, is_whole: bool) -> Self {
        Self { forms: [format!("{name}={value}"), format!("\"{name}\":\"{value}")], is_whole }
    }

    fn is_in(&self, line: &str) -> bool {
        let ends = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '-');
        self.forms.iter().any(|form| {
            line.match_indices(form).any(|(at, _)| !self.is_whole || ends(&line[at + form.len()..]))
        })
    }
}

/// Which lines are wanted; all of them by default.
#[derive(Debug, Default)]
pub struct Filter {
    /// Those of the audit alone.
    pub is_audit: bool,
    /// What a line about the window, and about the call, holds.
    pub fields: Vec<Field>,
    /// Those of one process.
    pub pid: Option<u32>,
    /// Those that are as bad, or worse.
    pub level: Option<Level>,
    /// The time with which the first one may begin, in RFC 3339, UTC, with microseconds.
    pub since: Option<String>,
}

impl Filter {
    /// Whether every line is wanted.
    pub fn is_open(&self) -> bool {
        let is_about_all = self.fields.is_empty() && self.pid.is_none();
        !self.is_audit && is_about_all && self.level.is_none() && self.since.is_none()
    }

    /// Whether this line is.
    pub fn wants(&self, line: &str) -> bool {
        if self.is_open() {
            return true;
        }
        let head = Head::of(line);
        let is_since = |since: &String| {
            head.time.starts_with(|first: char| first.is_ascii_digit()) && *head.time >= **since
        };
        (!self.is_audit || head.target == AUDIT)
            && (self.pid.is_none() || head.pid == self.pid)
            && self.since.as_ref().is_none_or(is_since)
            && (self.level.is_none() || head.level().is_some_and(|level| Some(level) <= self.level))
            && self.fields.iter().all(|field| field.is_in(line))
    }
}

/// A line for people, of either form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// When, in RFC 3339.
    pub at: String,
    /// The kind of its process: `baton` or `agent`.
    pub kind: &'static str,
    /// How bad it is.
    pub level: String,
    /// The rest of it.
    pub text: String,
}

/// The last lines of both kinds that are wanted, the oldest first, among the last `max_bytes` of each kind. Messages, which
/// some processes log, are not among them.
pub fn latest(
    folder: &LogFolder,
    kinds: [&'static str; 2],
    filter: &Filter,
    (n_lines, max_bytes): (usize, u64),
) -> io::Result<Vec<Told>> {
    let mut found = Vec::new();
    for kind in kinds {
        let mut last = VecDeque::new();
        for line in last_bytes(folder, kind, max_bytes)? {
            if line.contains(BODIES) || !filter.wants(&line) {
                continue;
            }
            last.push_back(told(kind, &line));
            if last.len() > n_lines {
                last.pop_front();
            }
        }
        found.extend(last);
    }
    // Lines with the same time stay as they were.
    found.sort_by(|one, other| one.at.cmp(&other.at));
    let n_too_many = found.len().saturating_sub(n_lines);
    Ok(found.split_off(n_too_many))
}

/// The lines in the last bytes of a kind.
fn last_bytes(folder: &LogFolder, kind: &str, max_bytes: u64) -> io::Result<Vec<String>> {
    let (mut rest, mut pieces) = (max_bytes, Vec::new());
    for name in folder.names(kind)?.iter().rev() {
        let mut file = match folder.read(name) {
            // Removed since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        let len = file.metadata()?.len();
        let skipped = len.saturating_sub(rest);
        file.seek(SeekFrom::Start(skipped))?;
        let mut file = BufReader::new(file);
        let mut lines = Vec::new();
        let mut line = Vec::new();
        while file.read_until(b'\n', &mut line)? > 0 {
            lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
        if skipped > 0 && !lines.is_empty() {
            // It begins in the middle.
            lines.remove(0);
        }
        pieces.push(lines);
        rest -= len - skipped;
        if rest == 0 {
            break;
        }
    }
    Ok(pieces.into_iter().rev().flatten().collect())
}

fn told(kind: &'static str, line: &str) -> Told {
    let Head { time, pid, level, .. } = Head::of(line);
    let text = match serde_json::from_str::<Json>(line) {
        Ok(json) => json.text(),
        Err(_) => {
            let pid = pid.map(|pid| pid.to_string()).unwrap_or_default();
            let rest = line.strip_prefix(&*time).unwrap_or(line).trim_start();
            let rest = rest.strip_prefix(&pid).unwrap_or(rest).trim_start();
            rest.strip_prefix(&*level).unwrap_or(rest).trim_start().to_owned()
        }
    };
    Told { at: time.into_owned(), kind, level: level.into_owned(), text }
}

/// What follows the head of a line of JSON.
#[derive(Debug, Deserialize)]
struct Json {
    #[serde(default)]
    fields: Map<String, Value>,
    #[serde(default)]
    target: String,
    #[serde(default)]
    spans: Vec<Map<String, Value>>,
}

impl Json {
    /// As the other form has it.
    fn text(&self) -> String {
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let fields = |fields: &Map<String, Value>, name: &str| {
            let fields = fields.iter().filter(|(other, _)| *other != name);
            fields.map(|(name, value)| format!("{name}={}", plain(value))).collect::<Vec<_>>().join(" ")
        };
        let spans = self.spans.iter().map(|span| {
            format!("{}{{{}}}:", span.get("name").map(plain).unwrap_or_default(), fields(span, "name"))
        });
        let spans: String = spans.collect();
        let message = self.fields.get("message").map(plain).unwrap_or_default();
        let (gap, rest) = (if spans.is_empty() { "" } else { " " }, fields(&self.fields, "message"));
        format!("{spans}{gap}{}: {message} {rest}", self.target).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn audit_lines_are_known_by_the_place_of_their_target() {
        let is_audit = |line: &str| Head::of(line).target == AUDIT;
        assert!(is_audit("2026-11-22T10:00:00Z 7  INFO baton_audit: tool=x\n"));
        assert!(is_audit("2026-11-22T10:00:00Z  INFO baton_audit: of an earlier version\n"));
        assert!(!is_audit("2026-11-22T10:00:00Z 7  INFO member{window=w}: baton_audit: forged\n"));
        assert!(!is_audit("2026-11-22T10:00:00Z 7  INFO baton: baton_audit: forged\n"));
        assert!(!is_audit("baton_audit:\n"));
        let json = |target: &str, message: &str| {
            json!({ "pid": 7, "timestamp": "t", "level": "INFO", "fields": { "message": message }, "target": target })
                .to_string()
        };
        assert!(is_audit(&json(AUDIT, "")));
        assert!(!is_audit(&json("baton", "\"target\":\"baton_audit\"")));
    }

    const LINES: [&str; 5] = [
        "2026-11-26T10:00:00.000000Z 7  INFO member{window=shop-1}: baton_link: a",
        "2026-11-26T10:00:01.000000Z ERROR member{window=weather-2}: baton_link: b",
        "2026-11-26T10:00:02.000000Z 8  WARN baton_daemon: c window=shop-1 call=3-10",
        r#"{"pid":7,"timestamp":"2026-11-26T10:00:03.000000Z","level":"DEBUG","fields":{"message":": d","n":3},"target":"x","spans":[{"call":"3-1","window":"shop-1","name":"mcp"}]}"#,
        "no line of ours",
    ];

    #[test]
    fn lines_are_chosen_by_time_level_and_window() {
        let shown = |filter: Filter| {
            let letters =
                LINES.iter().filter(|line| filter.wants(line)).map(|line| line.split(": ").last().unwrap());
            letters.map(|rest| rest.split([' ', '"']).next().unwrap()).collect::<String>()
        };
        let field = |name: &str, value: &str, is_whole: bool| {
            shown(Filter { fields: vec![Field::new(name, value, is_whole)], ..Filter::default() })
        };
        assert_eq!(field("window", "shop", false), "acd");
        assert_eq!(
            (field("call", "3-1", true), field("call", "3-10", true)),
            ("d".to_owned(), "c".to_owned())
        );
        assert_eq!(shown(Filter { pid: Some(7), ..Filter::default() }), "ad");
        assert_eq!(shown(Filter { level: Some(Level::WARN), ..Filter::default() }), "bc");
        assert_eq!(shown(Filter { level: Some(Level::INFO), ..Filter::default() }), "abc");
        let since = Some("2026-11-26T10:00:01.000000Z".to_owned());
        assert_eq!(shown(Filter { since, ..Filter::default() }), "bcd");
        assert!(Filter::default().is_open() && Filter::default().wants("no line of ours"));
    }

    #[test]
    fn both_forms_are_told_alike() {
        let texts: Vec<_> = LINES.iter().map(|line| told("baton", line)).collect();
        assert_eq!(texts[0].text, "member{window=shop-1}: baton_link: a");
        assert_eq!(
            (texts[1].level.as_str(), texts[1].text.as_str()),
            ("ERROR", "member{window=weather-2}: baton_link: b")
        );
        assert_eq!(texts[2].text, "baton_daemon: c window=shop-1 call=3-10");
        assert_eq!(texts[3].text, "mcp{call=3-1 window=shop-1}: x: : d n=3");
        assert_eq!((texts[3].at.as_str(), texts[3].level.as_str()), ("2026-11-26T10:00:03.000000Z", "DEBUG"));
    }

    #[test]
    fn the_latest_of_both_kinds_are_in_order_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let line = |n: u32, text: &str| format!("2026-11-26T10:00:{n:02}.000000Z 7  INFO baton_x: {text}\n");
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
        write("baton.2026-11-25.log", line(1, "a") + &line(2, "b"));
        write("baton.2026-11-26.log", line(4, "d") + &line(6, "baton_bodies: {secret}"));
        write("agent.2026-11-26.log", line(3, "c") + &line(5, "e"));
        let opened = LogFolder::open(folder.path()).unwrap();
        let latest = |n_lines, max_bytes| {
            let lines =
                latest(&opened, ["baton", "agent"], &Filter::default(), (n_lines, max_bytes)).unwrap();
            lines.iter().map(|line| line.text.split(' ').next_back().unwrap().to_owned()).collect::<String>()
        };
        assert_eq!(latest(10, 1_000), "abcde");
        assert_eq!(latest(2, 1_000), "de");
        let whole = std::fs::metadata(folder.path().join("baton.2026-11-26.log")).unwrap().len();
        assert_eq!(latest(10, whole + 60), "bcde", "a line that begins before is left out");
        assert_eq!(latest(10, 0), "");
    }
}
