//! CORE: a record as a person reads it: a heading for each call, what it was given, what it answered.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use baton_proto::ids::WindowId;
use baton_proto::record::{Call, Line};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

/// A record in Markdown, with times of that zone.
pub(super) fn of(name: &str, lines: &[Line], zone: &TimeZone) -> String {
    let mut text = format!("# Record {name}\n");
    let mut names: BTreeMap<&WindowId, &str> = BTreeMap::new();
    for line in lines {
        text.push('\n');
        // Nothing can go wrong with a text.
        let _ = match line {
            Line::Begin { at_ms, version } => {
                writeln!(text, "Begun {} by Baton {version}.", moment(*at_ms, zone, "%Y-%m-%d %H:%M:%S"))
            }
            Line::Window { at_ms, id, name, folders } => {
                names.insert(id, name);
                writeln!(text, "- {} window {name} ({id}): {}", clock(*at_ms, zone), folders.join(", "))
            }
            Line::Gone { at_ms, id } => {
                writeln!(text, "- {} window {} closed", clock(*at_ms, zone), named(&names, id))
            }
            Line::Live { at_ms, id: Some(id), rule, why } => {
                writeln!(text, "- {} live: {} ({rule}: {why})", clock(*at_ms, zone), named(&names, id))
            }
            Line::Live { at_ms, id: None, .. } => {
                writeln!(text, "- {} no window is live", clock(*at_ms, zone))
            }
            Line::Call(call) => write!(text, "{}", told(call, &names, zone)),
            Line::End { at_ms, why, n_left_out } => {
                let left_out = match n_left_out {
                    0 => String::new(),
                    n => format!("; {n} calls were left out"),
                };
                writeln!(text, "Ended {}: {why}{left_out}.", clock(*at_ms, zone))
            }
        };
    }
    text
}

fn told(call: &Call, names: &BTreeMap<&WindowId, &str>, zone: &TimeZone) -> String {
    let window = call.window.as_ref().map(|id| format!(" in {}", named(names, id))).unwrap_or_default();
    let client = if call.client.is_empty() { "a client" } else { &call.client };
    let error = call.error.as_ref().map(|error| format!(", {error}")).unwrap_or_default();
    let mut text = format!(
        "## {} {} by {client}{window} ({:.0} ms{error})\n\n",
        clock(call.at_ms, zone),
        call.tool,
        call.took_ms
    );
    text.push_str(&fenced("json", &pretty(&call.arguments)));
    if call.is_cut {
        text.push_str("\nSomething was too long for the record.\n");
    }
    match &call.result {
        Value::Null => text.push_str("\nNo answer.\n"),
        result => match texts(result) {
            Some(told) => text.push_str(&format!("\n{}", fenced("text", &told))),
            None => text.push_str(&format!("\n{}", fenced("json", &pretty(result)))),
        },
    }
    text
}

/// What a model reads, of a result that has texts.
fn texts(result: &Value) -> Option<String> {
    let content = result.get("content")?.as_array()?;
    let texts: Vec<&str> = content.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// A block of code, whose marks are longer than any in it.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn named<'a>(names: &BTreeMap<&WindowId, &'a str>, id: &'a WindowId) -> &'a str {
    names.get(id).copied().unwrap_or(id.as_str())
}

fn clock(at_ms: u64, zone: &TimeZone) -> String {
    moment(at_ms, zone, "%H:%M:%S")
}

fn moment(at_ms: u64, zone: &TimeZone, format: &str) -> String {
    let at =
        i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default();
    at.to_zoned(zone.clone()).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn call(window: &WindowId) -> Call {
        Call {
            at_ms: 3_000,
            took_ms: 12.3,
            id: "a-1".to_owned(),
            client: "claude-code".to_owned(),
            window: Some(window.clone()),
            tool: "debug".to_owned(),
            arguments: json!({"action": "threads"}),
            error: None,
            result: json!({"content": [{"type": "text", "text": "1 main\n```"}]}),
            is_cut: false,
            is_redacted: false,
        }
    }

    #[test]
    fn a_record_is_read_like_a_story() {
        let id: WindowId = "shop-1".parse().unwrap();
        let call = call(&id);
        let failed = Call {
            client: String::new(),
            window: None,
            error: Some("no_live_window".to_owned()),
            result: json!({"code": "no_live_window"}),
            is_cut: true,
            ..call.clone()
        };
        let lines = [
            Line::Begin { at_ms: 0, version: "1".to_owned() },
            Line::Window {
                at_ms: 0,
                id: id.clone(),
                name: "shop".to_owned(),
                folders: vec!["/src/shop".to_owned()],
            },
            Line::Live {
                at_ms: 1_000,
                id: Some(id.clone()),
                rule: "R1".to_owned(),
                why: "no other window was live".to_owned(),
            },
            Line::Call(Box::new(call)),
            Line::Call(Box::new(failed)),
            Line::Gone { at_ms: 4_000, id },
            Line::Live { at_ms: 4_000, id: None, rule: String::new(), why: String::new() },
            Line::End { at_ms: 5_000, why: "the user ended it".to_owned(), n_left_out: 2 },
        ];
        expect![[r#"
            # Record r

            Begun 1970-01-01 00:00:00 by Baton 1.

            - 00:00:00 window shop (shop-1): /src/shop

            - 00:00:01 live: shop (R1: no other window was live)

            ## 00:00:03 debug by claude-code in shop (12 ms)

            ```json
            {
              "action": "threads"
            }
            ```

            ````text
            1 main
            ```
            ````

            ## 00:00:03 debug by a client (12 ms, no_live_window)

            ```json
            {
              "action": "threads"
            }
            ```

            Something was too long for the record.

            ```json
            {
              "code": "no_live_window"
            }
            ```

            - 00:00:04 window shop closed

            - 00:00:04 no window is live

            Ended 00:00:05: the user ended it; 2 calls were left out.
        "#]]
        .assert_eq(&of("r", &lines, &TimeZone::UTC));
    }
}
