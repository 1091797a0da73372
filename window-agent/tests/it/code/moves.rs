//! Changes that create, move or delete files: looked at, made by the servers that offer them, and known afterwards.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::oracle::places_of;
use super::place::Place;

const TIMEOUT: u64 = 120;

const CARGO: (&str, &str) =
    ("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n");

const LIB: &str = "mod bag;\nmod shelf;\nmod till {\n    pub fn pay() {}\n}\n\npub fn shop() {\n    bag::fill();\n    shelf::deep::reach();\n    till::pay();\n}\n";

/// A crate with a module in a file, one in a folder and one in braces; read to the end.
async fn shop() -> Place {
    let place = Place::of_server(
        "rust-analyzer",
        &[
            CARGO,
            ("src/lib.rs", LIB),
            ("src/bag.rs", "pub fn fill() {}\n"),
            ("src/shelf/mod.rs", "pub mod deep;\n"),
            ("src/shelf/deep.rs", "pub fn reach() {}\n"),
        ],
    );
    assert_eq!(uses(&place, "fill", "src/bag.rs").await, ["src/bag.rs:1", "src/lib.rs:8"]);
    place
}

async fn uses(place: &Place, name: &str, file: &str) -> Vec<String> {
    let arguments = json!({"symbol_name": name, "context_file": file, "timeout": TIMEOUT});
    shown(&place.ok("lcp_find_references", arguments).await)
}

fn shown(answer: &Value) -> Vec<String> {
    places_of(answer).iter().map(|(file, line)| format!("{file}:{line}")).collect()
}

async fn defined(place: &Place, name: &str) -> Vec<String> {
    let arguments = json!({"to": "symbols", "symbol_name": name, "timeout": TIMEOUT});
    shown(&place.ok("lcp_navigate", arguments).await)
}

/// Everything on disk but Cargo's own, by name.
fn disk(place: &Place) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![place.root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.is_file() && !path.ends_with("Cargo.lock") {
                let name = path.strip_prefix(&place.root).unwrap().display().to_string();
                all.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    all
}

fn names(disk: &BTreeMap<String, String>) -> Vec<&str> {
    disk.keys().map(String::as_str).collect()
}

/// A preview, which changes nothing, and then the change itself; gives what both say of the files.
async fn make(place: &Place, tool: &str, arguments: Value) -> Value {
    let before = disk(place);
    let mut arguments = arguments;
    arguments["timeout"] = TIMEOUT.into();
    let preview = place.ok(tool, arguments.clone()).await;
    assert_eq!(preview["applied"], false);
    assert_eq!(disk(place), before, "a preview changes nothing");
    arguments["apply"] = preview["token"].clone();
    let made = place.ok(tool, arguments).await;
    let mut previewed = preview["data"].clone();
    for entry in previewed.as_array_mut().unwrap() {
        // Only a preview shows the lines.
        entry.as_object_mut().unwrap().remove("difference");
    }
    assert_eq!((&made["applied"], &made["data"]), (&json!(true), &previewed), "{made}");
    made["data"].clone()
}

async fn rename(place: &Place, name: &str, file: &str, new_name: &str) -> Value {
    let arguments = json!({"symbol_name": name, "context_file": file, "new_name": new_name});
    make(place, "lcp_rename", arguments).await
}

async fn act(place: &Place, file: &str, line: u32, title: &str) -> Value {
    let offers = json!({"file_path": file, "line": line, "timeout": TIMEOUT});
    let offers = place.ok("lcp_code_action", offers).await;
    let is_it = |offer: &Value| offer["title"] == title;
    assert!(offers["data"].as_array().unwrap().iter().any(is_it), "{title} is not offered: {offers}");
    make(place, "lcp_code_action", json!({"file_path": file, "line": line, "action": title})).await
}

#[tokio::test]
async fn a_module_takes_its_file_along() {
    let place = shop().await;
    let changes = rename(&place, "bag", "src/lib.rs", "sack").await;
    assert_eq!(
        changes,
        json!([
            {"file": "src/lib.rs", "lines": [1, 8]},
            {"file": "src/sack.rs", "change": "renamed", "from": "src/bag.rs"},
        ])
    );
    let disk = disk(&place);
    assert_eq!(
        names(&disk),
        ["Cargo.toml", "src/lib.rs", "src/sack.rs", "src/shelf/deep.rs", "src/shelf/mod.rs"]
    );
    assert_eq!(disk["src/lib.rs"], LIB.replace("bag", "sack"));
    // The server had the file open under its old name.
    assert_eq!(uses(&place, "fill", "src/lib.rs").await, ["src/lib.rs:8", "src/sack.rs:1"]);
    assert_eq!(defined(&place, "fill").await, ["src/sack.rs:1"]);
    // And back again, at once.
    rename(&place, "sack", "src/lib.rs", "bag").await;
    assert_eq!(uses(&place, "fill", "src/lib.rs").await, ["src/bag.rs:1", "src/lib.rs:8"]);
}

#[tokio::test]
async fn a_module_takes_its_folder_along() {
    let place = shop().await;
    // A file that no server knows goes where the folder goes.
    place.write("src/shelf/.notes", "n\n");
    let changes = rename(&place, "shelf", "src/lib.rs", "rack").await;
    assert_eq!(
        changes,
        json!([
            {"file": "src/lib.rs", "lines": [2, 9]},
            {"file": "src/rack", "change": "renamed", "from": "src/shelf", "files": [".notes", "deep.rs", "mod.rs"]},
        ])
    );
    let disk = disk(&place);
    assert_eq!(disk["src/rack/.notes"], "n\n");
    assert_eq!(
        names(&disk)[1..],
        ["src/bag.rs", "src/lib.rs", "src/rack/.notes", "src/rack/deep.rs", "src/rack/mod.rs"]
    );
    assert_eq!(uses(&place, "reach", "src/lib.rs").await, ["src/lib.rs:9", "src/rack/deep.rs:1"]);
    assert_eq!(defined(&place, "reach").await, ["src/rack/deep.rs:1"]);
    // What is written there afterwards is heard of, too.
    place.write("src/rack/deep.rs", "\npub fn reach() {}\n");
    assert_eq!(defined(&place, "reach").await, ["src/rack/deep.rs:2"]);
}

#[tokio::test]
async fn a_module_becomes_a_file_a_file_a_folder_and_a_missing_one_is_made() {
    let place = shop().await;
    let changes = act(&place, "src/lib.rs", 3, "Extract module to file").await;
    assert_eq!(
        changes,
        json!([
            {"file": "src/lib.rs", "lines": [3]},
            {"file": "src/till.rs", "change": "created", "n_lines": 1},
        ])
    );
    assert_eq!(disk(&place)["src/till.rs"].trim_end(), "pub fn pay() {}");
    assert_eq!(uses(&place, "pay", "src/lib.rs").await, ["src/lib.rs:8", "src/till.rs:1"]);

    let changes = act(&place, "src/till.rs", 1, "Convert till.rs to till/mod.rs").await;
    assert_eq!(changes, json!([{"file": "src/till/mod.rs", "change": "renamed", "from": "src/till.rs"}]));
    assert_eq!(uses(&place, "pay", "src/lib.rs").await, ["src/lib.rs:8", "src/till/mod.rs:1"]);

    let text = disk(&place)["src/lib.rs"].clone();
    place.write("src/lib.rs", format!("mod missing;\n{text}"));
    let changes = act(&place, "src/lib.rs", 1, "Create module at `missing.rs`").await;
    assert_eq!(changes, json!([{"file": "src/missing.rs", "change": "created", "n_lines": 0}]));
    assert_eq!(disk(&place)["src/missing.rs"], "");
}

const STORE: &[(&str, &str)] = &[
    ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}"),
    ("shop.ts", "export function price(): number {\n  return 3;\n}\nexport class Basket {}\n"),
    ("main.ts", "import { price, Basket } from './shop';\nexport const bill = price();\nnew Basket();\n"),
];

#[tokio::test]
async fn an_import_takes_its_file_along() {
    let place = Place::of_server("typescript", STORE);
    uses(&place, "price", "shop.ts").await;
    let changes = rename(&place, "shop", "main.ts", "./store").await;
    assert_eq!(
        changes,
        json!([
            {"file": "main.ts", "lines": [1]},
            {"file": "store.ts", "change": "renamed", "from": "shop.ts"},
        ])
    );
    assert_eq!(names(&disk(&place)), ["main.ts", "store.ts", "tsconfig.json"]);
    assert_eq!(uses(&place, "price", "store.ts").await, ["main.ts:1", "main.ts:2", "store.ts:1"]);
    let problems = json!({"file_path": "main.ts", "timeout": TIMEOUT});
    assert_eq!(place.ok("lcp_get_diagnostics", problems).await["total"], 0);
}

#[tokio::test]
async fn an_import_that_would_lead_nowhere_is_refused() {
    let place = Place::of_server("typescript-language-server", STORE);
    let arguments =
        json!({"symbol_name": "shop", "context_file": "main.ts", "new_name": "./store", "timeout": TIMEOUT});
    let before = disk(&place);
    let refused = place.call("lcp_rename", arguments).await;
    assert_eq!(refused["code"], "not_renamable", "{refused}");
    assert_eq!(disk(&place), before);
}

#[tokio::test]
async fn a_command_that_moves_code_to_a_new_file_is_looked_at_first() {
    let place = Place::of_server("typescript-language-server", STORE);
    let changes = act(&place, "shop.ts", 4, "Move to a new file").await;
    assert_eq!(
        changes,
        json!([
            {"file": "Basket.ts", "change": "created", "n_lines": 1},
            {"file": "main.ts", "lines": [1, 2]},
            {"file": "shop.ts", "lines": [4]},
        ])
    );
    assert_eq!(disk(&place)["Basket.ts"], "export class Basket { }\n");
    let found = uses(&place, "Basket", "Basket.ts").await;
    assert!(
        found.contains(&"Basket.ts:1".to_owned()) && found.iter().all(|at| !at.starts_with("shop")),
        "{found:?}"
    );
    let problems = json!({"file_path": "main.ts", "timeout": TIMEOUT});
    assert_eq!(place.ok("lcp_get_diagnostics", problems).await["total"], 0);
}

#[tokio::test]
async fn what_changed_since_the_preview_keeps_it_from_being_made() {
    let place = shop().await;
    let arguments = |apply: &Value| json!({"symbol_name": "bag", "context_file": "src/lib.rs", "new_name": "sack", "apply": apply, "timeout": TIMEOUT});
    let token = place.ok("lcp_rename", arguments(&Value::Null)).await["token"].clone();
    let refused = async |code: &str| {
        let before = disk(&place);
        let refused = place.call("lcp_rename", arguments(&token)).await;
        assert_eq!(refused["code"], code, "{refused}");
        assert_eq!(disk(&place), before);
    };
    // A file that only gets another name counts as well.
    place.write("src/bag.rs", "pub fn fill() {}\n\n");
    refused("changed_meanwhile").await;
    place.write("src/bag.rs", "pub fn fill() {}\n");
    place.write("src/sack.rs", "");
    refused("file_exists").await;
    std::fs::remove_file(place.root.join("src/sack.rs")).unwrap();
    assert_eq!(place.ok("lcp_rename", arguments(&token)).await["applied"], true);
    let old = place.call("lcp_rename", arguments(&token)).await;
    assert_eq!(old["status"], "error", "{old}");
}

#[tokio::test]
async fn a_file_does_not_leave_the_windows_folders() {
    let place = Place::of_server("typescript", STORE);
    uses(&place, "price", "shop.ts").await;
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), place.root.join("link")).unwrap();
    for new_name in ["../elsewhere", "./link/store"] {
        let arguments = json!({"symbol_name": "shop", "context_file": "main.ts", "new_name": new_name, "timeout": TIMEOUT});
        let refused = place.call("lcp_rename", arguments).await;
        assert_eq!(refused["code"], "outside_window", "{refused}");
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_was_written_a_moment_ago_counts_although_nobody_opened_it() {
    let place = shop().await;
    for n in 1..=20 {
        place.write("src/shelf/deep.rs", format!("{}pub fn reach() {{}}\n", "\n".repeat(n)));
        assert_eq!(defined(&place, "reach").await, [format!("src/shelf/deep.rs:{}", n + 1)]);
    }
    for n in 1..=3 {
        std::fs::remove_file(place.root.join("src/shelf/deep.rs")).unwrap();
        assert_eq!(defined(&place, "reach").await, [""; 0], "{n}");
        place.write("src/shelf/deep.rs", "pub fn reach() {}\n");
        assert_eq!(defined(&place, "reach").await, ["src/shelf/deep.rs:1"], "{n}");
    }
}
