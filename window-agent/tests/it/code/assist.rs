//! Completions and code actions: what is offered, looked at, and then made.

use serde_json::{Value, json};

use super::place::Place;

const TIMEOUT: u64 = 120;

fn names(answer: &Value) -> Vec<&str> {
    answer["data"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

const SHOP: &str = "class Basket:\n    def add(self, item: str) -> int:\n        \"\"\"Puts a thing in.\"\"\"\n        return 1\n\n    def add_all(self): ...\n\n\nbasket = Basket()\n";

#[tokio::test]
async fn what_is_thought_to_be_typed_is_completed_and_never_written() {
    for server in ["ty", "pyright"] {
        let place = Place::of_server(server, &[("shop.py", SHOP)]);
        let arguments = json!({"file_path": "shop.py", "line": 10, "text": "basket.add", "timeout": TIMEOUT});
        let answer = place.ok("lcp_complete", arguments).await;
        assert_eq!((names(&answer), answer["source"].as_str().unwrap()), (vec!["add", "add_all"], server));
        let add = &answer["data"][0];
        assert_eq!(add["kind"], "method", "{answer}");
        // ty tells no more than names and kinds.
        assert!(server == "ty" || add.to_string().contains("Puts a thing in."), "{add}");
        assert_eq!(std::fs::read_to_string(place.root.join("shop.py")).unwrap(), SHOP);
        // The next question is about the file again.
        let outline = json!({"file_path": "shop.py", "format": "lines", "timeout": TIMEOUT});
        let outline = place.ok("lcp_get_outline", outline).await;
        assert!(outline["data"].as_str().unwrap().ends_with("9 basket") || server != "ty", "{outline}");
        let problems = json!({"file_path": "shop.py", "severity": "error", "timeout": TIMEOUT});
        assert_eq!(place.ok("lcp_get_diagnostics", problems).await["total"], 0);
    }
}

#[tokio::test]
async fn a_place_in_the_file_is_completed_with_limits_and_bad_places_are_told() {
    let place = Place::of_server("typescript", &[("a.ts", "const text = 'a';\ntext.\n")]);
    let complete = |more: Value| {
        let mut arguments = json!({"file_path": "a.ts", "line": 2, "timeout": TIMEOUT});
        arguments.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        arguments
    };
    let answer = place.ok("lcp_complete", complete(json!({"limit": 5}))).await;
    assert_eq!(names(&answer).len(), 5);
    assert!(answer["total"].as_u64().unwrap() > 20, "{answer}");
    assert!(answer["note"].as_str().unwrap().contains("not shown"), "{answer}");
    let answer = place.ok("lcp_complete", complete(json!({"text": "charC", "column": 6}))).await;
    assert_eq!(names(&answer), ["charCodeAt"]);
    let refused = place.call("lcp_complete", complete(json!({"line": 9}))).await;
    assert_eq!(refused["code"], "invalid_range", "{refused}");
}

/// What is offered for a line, then one of them as a preview, then made.
async fn act(place: &Place, file: &str, line: u32, kind: &str, title: &str) -> (String, String) {
    let arguments = |more: Value| {
        let mut arguments = json!({"file_path": file, "line": line, "kind": kind, "timeout": TIMEOUT});
        arguments.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        arguments
    };
    let offers = place.ok("lcp_code_action", arguments(json!({}))).await;
    let titles: Vec<&str> =
        offers["data"].as_array().unwrap().iter().map(|offer| offer["title"].as_str().unwrap()).collect();
    let action = titles.iter().find(|offer| offer.contains(title));
    let action = *action.unwrap_or_else(|| panic!("{title}: {offers}"));
    let read = || std::fs::read_to_string(place.root.join(file)).unwrap();
    let before = read();
    let preview = place.ok("lcp_code_action", arguments(json!({"action": action}))).await;
    assert_eq!((preview["applied"].as_bool(), preview["action"].as_str()), (Some(false), Some(action)));
    assert_eq!(read(), before, "a preview changes nothing");

    // What changed since the preview keeps it from being made.
    place.write(file, format!("{before}\n"));
    let apply = arguments(json!({"action": action, "apply": preview["token"]}));
    let refused = place.call("lcp_code_action", apply.clone()).await;
    assert_eq!(refused["code"], "changed_meanwhile", "{refused}");
    place.write(file, &before);

    assert_eq!(place.ok("lcp_code_action", apply).await["applied"], true);
    (before, read())
}

#[tokio::test]
async fn a_quick_fix_is_looked_at_and_made() {
    let place = Place::of_server(
        "typescript",
        &[
            ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}"),
            ("shop.ts", "export function price(): number {\n  return 3;\n}\n"),
            ("main.ts", "export const bill = price();\n"),
        ],
    );
    let (_, after) = act(&place, "main.ts", 1, "quickfix", "import").await;
    assert!(after.starts_with("import { price } from ") && after.ends_with("bill = price();\n"), "{after}");
    let problems = json!({"file_path": "main.ts", "timeout": TIMEOUT});
    assert_eq!(place.ok("lcp_get_diagnostics", problems).await["total"], 0);
}

#[tokio::test]
async fn an_action_that_is_a_command_of_the_server_is_looked_at_and_made() {
    let place = Place::of_server(
        "clangd",
        &[
            ("compile_flags.txt", "-std=c++17\n"),
            ("a.cpp", "int main() {\n  auto x = 1 + 2;\n  return x;\n}\n"),
        ],
    );
    let (before, after) = act(&place, "a.cpp", 2, "refactor", "deduced type").await;
    assert_eq!(after, before.replace("auto", "int"));
}

#[tokio::test]
async fn a_refactoring_that_comes_later_is_looked_at_and_made() {
    let place = Place::of_server(
        "rust-analyzer",
        &[
            (
                "Cargo.toml",
                "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
            ),
            ("src/lib.rs", "pub struct Basket;\n\npub fn f(x: bool) -> u8 {\n    if x { 1 } else { 2 }\n}\n"),
        ],
    );
    // What it can do depends on what it has read.
    let settled = json!({"to": "symbols", "symbol_name": "Basket", "timeout": TIMEOUT});
    place.ok("lcp_get_outline", json!({"file_path": "src/lib.rs", "timeout": TIMEOUT})).await;
    place.ok("lcp_navigate", settled).await;
    let (_, after) = act(&place, "src/lib.rs", 4, "refactor", "Invert if").await;
    assert!(after.contains("if !x { 2 } else { 1 }"), "{after}");
}

#[tokio::test]
async fn what_is_not_offered_is_told() {
    let place = Place::of_server("ty", &[("a.py", "x = 1\n")]);
    let call = async |more: Value| {
        let mut arguments = json!({"file_path": "a.py", "line": 1, "timeout": TIMEOUT});
        arguments.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        place.call("lcp_code_action", arguments).await["code"].clone()
    };
    assert_eq!(call(json!({"action": "no such action"})).await, "action_not_found");
    assert_eq!(call(json!({"apply": "0123"})).await, "invalid_arguments");
    assert_eq!(call(json!({"line": 7})).await, "invalid_range");
}
