//! What answers cost: tokens on real files.

use baton_agent_tools::code::truncate::count_tokens;
use serde_json::{Value, json};

use super::oracle::{files, library};
use super::place::Place;

/// Leaves of an outline: functions and methods with their first lines.
fn functions(symbols: &Value, holder: &str, all: &mut Vec<(String, u64)>) {
    for symbol in symbols.as_array().into_iter().flatten() {
        let name = format!("{holder}{}", symbol["name"].as_str().unwrap());
        if matches!(symbol["kind"].as_str(), Some("function" | "method")) {
            all.push((name.clone(), symbol["range"]["start"]["line"].as_u64().unwrap()));
        }
        functions(&symbol["children"], &format!("{name}."), all);
    }
}

#[tokio::test]
async fn an_outline_and_a_symbol_cost_a_tenth_of_the_file() {
    let place = library();
    let mut all = Vec::new();
    files(&place.root, "py", &mut all);
    let (mut saved, mut saved_of_large) = (Vec::new(), Vec::new());
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        if text.lines().count() < 200 || saved.len() >= 100 {
            continue;
        }
        let file = path.strip_prefix(&place.root).unwrap();
        let outline = place.ok("lcp_get_outline", json!({"file_path": file, "timeout": 60})).await;
        let mut names = Vec::new();
        functions(&outline["data"], "", &mut names);
        let Some((name, line)) = names.get(names.len() / 2).cloned() else { continue };
        let outline = place.text("lcp_get_outline", json!({"file_path": file})).await;
        let arguments = json!({"file_path": file, "symbol_name": name, "line": line});
        let symbol = place.text("lcp_read_symbol", arguments).await;
        let (whole, shown) = (count_tokens(&text), count_tokens(&outline) + count_tokens(&symbol));
        let percent = 100.0 - 100.0 * shown as f64 / whole as f64;
        println!("{:40} {whole:6} {shown:5} {percent:5.1} %", file.display());
        saved.push(percent);
        if whole >= 5_000 {
            saved_of_large.push(percent);
        }
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    assert!(saved.len() >= 100, "{}", saved.len());
    let (all, large) = (median(&mut saved), median(&mut saved_of_large));
    println!("median {all:.1} %, of files of 5,000 tokens and more {large:.1} %");
    assert!(all >= 85.0, "{all}");
    assert!(large >= 90.0, "{large}");
}

#[tokio::test]
async fn hundreds_of_references_cost_little() {
    let mut sources = vec![("pkg/__init__.py".to_owned(), String::new())];
    sources.push(("pkg/core.py".to_owned(), "def dispatch_event(event):\n    return event\n".to_owned()));
    for file in 0..39 {
        let uses: String =
            (0..6).map(|idx| format!("\ndef handle_{idx}(event):\n    dispatch_event(event)\n")).collect();
        sources.push((format!("pkg/part_{file}.py"), format!("from pkg.core import dispatch_event\n{uses}")));
    }
    let sources: Vec<(&str, &str)> =
        sources.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let place = Place::new(&sources);
    let arguments = json!({"symbol_name": "dispatch_event", "context_file": "pkg/core.py", "timeout": 60});
    let answer = place.ok("lcp_find_references", arguments.clone()).await;
    assert_eq!(answer["total"], 1 + 39 * 7);
    let text = place.text("lcp_find_references", arguments).await;
    let n_tokens = count_tokens(&text);
    println!("{n_tokens} tokens of text, {} of structure", count_tokens(&answer.to_string()));
    assert!(n_tokens <= 1_500, "{n_tokens}\n{text}");
}
