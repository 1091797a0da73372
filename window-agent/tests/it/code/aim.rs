//! Which symbol a name means: overloads, uses, comments, lines, names that are not quite right.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::place::Place;

const TIMEOUT: u64 = 120;

/// In one line what a call answers: places, or an error with its candidates.
async fn told(place: &Place, tool: &str, arguments: Value) -> String {
    let mut arguments = arguments;
    arguments["timeout"] = TIMEOUT.into();
    let answer = place.call(tool, arguments).await;
    let text = match (&answer["data"], answer["status"] == "error") {
        (_, true) => {
            let field = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
            let candidates = answer["candidates"].as_array().cloned().unwrap_or_default();
            let candidates = candidates.iter().map(|one| format!("\n  {}", one.as_str().unwrap_or_default()));
            let candidates: String = candidates.collect();
            format!("{}: {} {}{candidates}", field("code"), field("message"), field("hint"))
        }
        (Value::Array(all), _) => {
            let shown = |one: &Value| {
                let name = one["name"].as_str().unwrap_or_default();
                let at = format!("{}:{} {name}", one["file"].as_str().unwrap_or_default(), one["line"]);
                at.trim_end().to_owned()
            };
            all.iter().map(shown).collect::<Vec<_>>().join(", ")
        }
        (other, _) => other.as_str().unwrap_or_default().to_owned(),
    };
    text.replace(place.root.to_str().unwrap(), "ROOT")
}

async fn go(place: &Place, to: &str, name: &str, file: &str, line: Option<u32>, expected: Expect) {
    let arguments = json!({"to": to, "symbol_name": name, "context_file": file, "line": line});
    expected.assert_eq(&told(place, "lcp_navigate", arguments).await);
}

const OVERLOADS: &str = "\
function log(text: string) {}

export class Stream {
  on(next: () => void): void;
  on(next: () => void, failed: () => void): void;
  on(...all: (() => void)[]): void {
    all.forEach((one) => this.add(one));
    log('on');
  }

  private add(one: () => void) {}
}
";
const STREAM_USER: &str = "\
import { Stream } from './stream';

export function listen(stream: Stream) {
  stream.on(() => {});
  stream.on(() => {}, () => {});
}
";

#[tokio::test]
async fn an_overloaded_method_has_the_calls_of_its_implementation() {
    let files = [("tsconfig.json", "{}"), ("stream.ts", OVERLOADS), ("user.ts", STREAM_USER)];
    for server in ["typescript", "typescript-language-server"] {
        let place = Place::of_server(server, &files);
        // The standard library's own places are not the project's.
        let callees = |file: &'static str, line: Option<u32>| {
            let place = &place;
            async move {
                let arguments = json!({"to": "callees", "symbol_name": "on", "context_file": file, "line": line, "timeout": TIMEOUT});
                let answer = place.ok("lcp_navigate", arguments).await;
                let names = answer["data"].as_array().unwrap().iter().map(|one| one["name"].clone());
                names.filter(|name| name != "forEach").collect::<Value>()
            }
        };
        assert_eq!(callees("stream.ts", None).await, json!(["add", "log"]), "{server}");
        assert_eq!(callees("stream.ts", Some(6)).await, json!(["add", "log"]), "{server}");
        assert_eq!(callees("user.ts", None).await, json!(["add", "log"]), "{server}");
        assert_eq!(callees("user.ts", Some(5)).await, json!(["add", "log"]), "{server}");
        go(&place, "callers", "Stream.on", "stream.ts", None, expect!["user.ts:3 listen"]).await;
    }
}

const GO: &str = "\
package shop

// Basket is made by NewBasket. Basket and Basket again: a Basket holds Basket after Basket,
// Basket, Basket, Basket, Basket, Basket, Basket, Basket, Basket, Basket, Basket, Basket, Basket,
// Basket, Basket, Basket, Basket, Basket and Basket.
func Fill(shop Shop) Basket {
	shop.Basket = Basket{}
	return Basket{}
}
";

#[tokio::test]
async fn a_name_that_is_first_used_in_comments_is_found() {
    let basket = "package shop\n\n// Basket holds things.\ntype Basket struct{}\n\ntype Shop struct{ Basket Basket }\n";
    let place = Place::of_server(
        "gopls",
        &[("go.mod", "module shop\n\ngo 1.14\n"), ("fill.go", GO), ("basket.go", basket)],
    );
    go(&place, "definition", "Basket", "fill.go", None, expect!["basket.go:4"]).await;
    let arguments = json!({"symbol_name": "Basket", "context_file": "fill.go"});
    let found = told(&place, "lcp_find_references", arguments).await;
    expect!["fill.go:6, fill.go:7, fill.go:8, basket.go:4, basket.go:6"].assert_eq(&found);
    // A field of the same name is another thing.
    go(&place, "definition", "Shop.Basket", "fill.go", None, expect!["basket.go:6"]).await;
    go(&place, "definition", "Basket", "fill.go", Some(7), expect!["basket.go:6"]).await;
}

const BASE: &str = "class Handler:\n    def emit(self): ...\n\n\nclass Other:\n    def emit(self): ...\n";
const HANDLERS: &str = "\
import base

class BaseHandler(base.Handler):
    def emit(self): ...

class FileHandler(base.Handler):
    def emit(self):
        base.Handler.emit(self)
        base.Other().emit()
";

#[tokio::test]
async fn a_name_that_was_corrected_is_told_by_all_tools() {
    let place = Place::new(&[("base.py", BASE), ("handlers.py", HANDLERS)]);
    for to in ["definition", "hover", "callers"] {
        let arguments = json!({"to": to, "symbol_name": "BaseHandler.emi", "context_file": "handlers.py", "timeout": TIMEOUT});
        let answer = place.ok("lcp_navigate", arguments).await;
        assert_eq!(answer["note"], "The name was corrected to BaseHandler.emit.", "{to}: {answer}");
    }
}

#[tokio::test]
async fn an_exact_use_goes_before_names_that_are_like_it() {
    let place = Place::new(&[("base.py", BASE), ("handlers.py", HANDLERS)]);
    go(&place, "definition", "Handler", "handlers.py", None, expect!["base.py:1"]).await;
    go(&place, "definition", "Handler", "handlers.py", Some(6), expect!["base.py:1"]).await;
    go(&place, "definition", "Handler.emit", "handlers.py", None, expect!["base.py:2"]).await;
    go(&place, "definition", "Other.emit", "handlers.py", None, expect!["base.py:6"]).await;
    // A use on the line that was named means what it means there, whatever holds that line.
    go(&place, "definition", "emit", "handlers.py", Some(9), expect!["base.py:6"]).await;
    go(&place, "definition", "emit", "handlers.py", Some(6), expect![[r#"
        symbol_not_found: "emit" does not stand on line 6. It stands on the lines of the candidates: name one of them, or leave line out.
          line 4: def emit(self): ...
          line 7: def emit(self):
          line 8: base.Handler.emit(self)
          line 9: base.Other().emit()"#]]).await;
    go(&place, "definition", "emit", "handlers.py", None, expect![[r#"
        ambiguous_symbol: "emit" could be any of 2 symbols. Use the full name of one of the candidates as symbol_name.
          BaseHandler.emit (line 4, method)
          FileHandler.emit (line 7, method)"#]]).await;
    go(&place, "definition", "handler", "handlers.py", None, expect![[r#"
        ambiguous_symbol: "handler" could be any of 2 symbols. Use the full name of one of the candidates as symbol_name.
          BaseHandler (line 3, class)
          FileHandler (line 6, class)"#]]).await;
}

/// A file with a name that stands on some of its lines.
fn json_objects() -> Place {
    let text = "import json\n\n\ndef JSONObject(pairs):\n    obj = dict(pairs)\n    return obj\n\n\ndef load():\n    return 1\n";
    Place::new(&[("a.py", text)])
}

#[tokio::test]
async fn a_line_without_the_symbol_is_told_with_those_that_have_it() {
    let place = json_objects();
    go(&place, "hover", "obj", "a.py", Some(2), expect![[r#"
        symbol_not_found: "obj" does not stand on line 2. It stands on the lines of the candidates: name one of them, or leave line out.
          line 5: obj = dict(pairs)
          line 6: return obj"#]]).await;
    go(&place, "hover", "pairs", "a.py", Some(1), expect![[r#"
        symbol_not_found: "pairs" does not stand on line 1. It stands on the lines of the candidates: name one of them, or leave line out.
          line 4: def JSONObject(pairs):
          line 5: obj = dict(pairs)"#]]).await;
    go(&place, "hover", "load", "a.py", Some(1), expect![[r#"
        symbol_not_found: "load" does not stand on line 1. It stands on the lines of the candidates: name one of them, or leave line out.
          line 9: def load():"#]]).await;
    go(
        &place,
        "hover",
        "object",
        "a.py",
        Some(1),
        expect![[r#"
        symbol_not_found: "object" does not stand on line 1. Did you mean one of the candidates?
          JSONObject (line 4, function)"#]],
    )
    .await;
}

#[tokio::test]
async fn every_tool_tells_of_a_line_without_the_symbol() {
    let place = json_objects();
    for (tool, name, line, expected) in [
        (
            "lcp_find_references",
            "load",
            2,
            expect![[r#"
                symbol_not_found: "load" does not stand on line 2. It stands on the lines of the candidates: name one of them, or leave line out.
                  line 9: def load():"#]],
        ),
        (
            "lcp_rename",
            "load",
            2,
            expect![[r#"
                symbol_not_found: "load" does not stand on line 2. It stands on the lines of the candidates: name one of them, or leave line out.
                  line 9: def load():"#]],
        ),
    ] {
        let arguments = json!({"symbol_name": name, "context_file": "a.py", "line": line, "new_name": "x"});
        let mut arguments = arguments;
        if tool != "lcp_rename" {
            arguments.as_object_mut().unwrap().remove("new_name");
        }
        expected.assert_eq(&told(&place, tool, arguments).await);
    }
    let read = async |name: &str, line: u32, expected: Expect| {
        let arguments = json!({"symbol_name": name, "file_path": "a.py", "line": line});
        expected.assert_eq(&told(&place, "lcp_read_symbol", arguments).await);
    };
    read(
        "load",
        10,
        expect![[r#"
        def load():
            return 1"#]],
    )
    .await;
    read("load", 2, expect![[r#"
        symbol_not_found: "load" does not stand on line 2. It stands on the lines of the candidates: name one of them, or leave line out.
          line 9: def load():"#]]).await;
    read(
        "JSONObj",
        5,
        expect![[r#"
        def JSONObject(pairs):
            obj = dict(pairs)
            return obj"#]],
    )
    .await;
}

async fn rename(place: &Place, name: &str, file: &str, new_name: &str, expected: Expect) {
    let arguments = json!({"symbol_name": name, "context_file": file, "new_name": new_name});
    expected.assert_eq(&told(place, "lcp_rename", arguments).await);
}

/// The code of the error and what it says of the place, without the folders that differ from machine to machine.
async fn refused(place: &Place, name: &str, file: &str) -> (String, String) {
    let arguments =
        json!({"symbol_name": name, "context_file": file, "new_name": "fresh", "timeout": TIMEOUT});
    let answer = place.call("lcp_rename", arguments).await;
    let field = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    (field("code"), field("message"))
}

#[tokio::test]
async fn what_a_library_defines_is_not_renamed() {
    let check = async |server: &str, files: &[(&str, &str)], (name, file): (&str, &str)| {
        let place = Place::of_server(server, files);
        let (code, message) = refused(&place, name, file).await;
        assert_eq!(code, "not_renamable", "{server}: {message}");
        assert!(message.starts_with(&format!("{name} is not this project's")), "{server}: {message}");
        for (file, text) in files {
            assert_eq!(std::fs::read_to_string(place.root.join(file)).unwrap(), *text);
        }
    };
    let python = [("a.py", "def size(text):\n    return len(text)\n"), ("b.py", "print(len('b'))\n")];
    for server in ["ty", "pyright"] {
        check(server, &python, ("len", "a.py")).await;
    }
    let script = [
        ("package.json", "{}"),
        ("tsconfig.json", "{}"),
        ("node_modules/shop/package.json", "{\"name\":\"shop\",\"types\":\"index.d.ts\"}"),
        ("node_modules/shop/index.d.ts", "export function price(item: string): number;\n"),
        ("a.ts", "import { price } from 'shop';\n\nexport const cost = parseInt('1') + price('a');\n"),
    ];
    for server in ["typescript", "typescript-language-server"] {
        check(server, &script, ("parseInt", "a.ts")).await;
        check(server, &script, ("price", "a.ts")).await;
    }
    let go = [
        ("go.mod", "module shop\n\ngo 1.14\n"),
        ("a.go", "package shop\n\nimport \"strings\"\n\nvar Loud = strings.ToUpper(\"a\")\n"),
    ];
    check("gopls", &go, ("ToUpper", "a.go")).await;
    let c = [
        ("compile_flags.txt", ""),
        ("a.c", "#include <stdlib.h>\n\nint one(void) {\n  return abs(-1);\n}\n"),
    ];
    check("clangd", &c, ("abs", "a.c")).await;
}

#[tokio::test]
async fn a_rename_guesses_no_name_and_says_what_it_renames() {
    let lib = "class Reader:\n    def read_all(self): ...\n\n\nclass Writer:\n    def write(self): ...\n";
    let main = "from lib import Reader\n\nReader().read_all()\n";
    let place = Place::new(&[("lib.py", lib), ("main.py", main)]);
    rename(&place, "read", "lib.py", "get", expect![[r#"
        ambiguous_symbol: "read" could be any of 2 symbols. Use the full name of one of the candidates as symbol_name.
          Reader (line 1, class)
          Reader.read_all (line 2, method)"#]]).await;
    rename(&place, "reader", "lib.py", "Source", expect![[r#"
        symbol_not_found: There is no symbol named exactly "reader" in this file. A rename takes no other name for it. Did you mean Reader?
          Reader"#]]).await;
    rename(&place, "r", "lib.py", "Source", expect![[r#"
        ambiguous_symbol: "r" could be any of 2 symbols. Use the full name of one of the candidates as symbol_name.
          Reader (line 1, class)
          Reader.read_all (line 2, method)"#]]).await;
    rename(&place, "Writer.read_all", "main.py", "get", expect![[r#"
        symbol_not_found: There is no symbol named exactly "Writer.read_all" in this file. A rename takes no other name for it. Did you mean Reader.read_all?
          Reader.read_all"#]]).await;
    for file in ["lib.py", "main.py"] {
        let arguments = json!({"symbol_name": "Reader.read_all", "context_file": file, "new_name": "get", "timeout": TIMEOUT});
        let preview = place.ok("lcp_rename", arguments.clone()).await;
        assert_eq!(preview["symbol"], "Reader.read_all");
        assert_eq!(preview["defined_at"], "lib.py:2");
        let text = place.text("lcp_rename", arguments).await;
        assert!(
            text.starts_with("Reader.read_all (lib.py:2) becomes get. Nothing is changed yet."),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_new_name_must_be_one() {
    let place = Place::new(&[("a.py", "def price(item):\n    return item\n")]);
    rename(&place, "price", "a.py", "class", expect![[r#"invalid_name: "class" is a reserved word (python). Give new_name as written in code, without its container."#]]).await;
    rename(&place, "price", "a.py", "1 bad", expect![[r#"invalid_name: "1 bad" is not a valid name: it contains ' '. Give new_name as written in code, without its container."#]]).await;
    rename(&place, "price", "a.py", "my-dec", expect![[r#"invalid_name: "my-dec" is not a valid name: it contains '-'. Give new_name as written in code, without its container."#]]).await;
    rename(&place, "price", "a.py", "2nd", expect![[r#"invalid_name: "2nd" is not a valid name: it starts with a digit. Give new_name as written in code, without its container."#]]).await;
    rename(&place, "price", "a.py", "price", expect![[r#"invalid_name: "price" is what it is called already. Give new_name as written in code, without its container."#]]).await;
    rename(&place, "price", "a.py", " ", expect![[r#"invalid_name: " " is not a valid name: it contains ' '. Give new_name as written in code, without its container."#]]).await;
    let place = Place::of_server(
        "typescript",
        &[("tsconfig.json", "{}"), ("a.ts", "export function f() {}\nexport class A {\n  m() {}\n}\n")],
    );
    rename(&place, "f", "a.ts", "class", expect![[r#"invalid_name: "class" is a reserved word (typescript). Give new_name as written in code, without its container."#]]).await;
    rename(&place, "m", "a.ts", "delete", expect!["a.ts:null"]).await;
}

#[tokio::test]
async fn a_name_in_quotes_is_no_path() {
    let main = "from lib import Foo\nfrom other import Bar\n\nx: \"Foo\"\ny: \"Bar\"\nprint(f\"{Foo}\")\n";
    let files = [("lib.py", "class Foo: ...\n"), ("other.py", "Bar = int\n"), ("main.py", main)];
    let place = Place::new(&files);
    for (name, line, file) in [("Foo", 4, "lib.py"), ("Bar", 5, "other.py"), ("Foo", 6, "lib.py")] {
        let arguments = |new_name: &str| json!({"symbol_name": name, "context_file": "main.py", "line": line, "new_name": new_name, "timeout": TIMEOUT});
        let refused = place.call("lcp_rename", arguments("my-dec")).await;
        assert_eq!(refused["code"], "invalid_name", "{name} on line {line}: {refused}");
        let preview = place.ok("lcp_rename", arguments("Other")).await;
        assert_eq!(preview["defined_at"], format!("{file}:1"), "{name} on line {line}: {preview}");
    }
}

#[tokio::test]
async fn candidates_are_paths_as_answers_have_them() {
    let place = Place::new(&[
        ("x/same.py", "def f(): ...\n"),
        ("y/same.py", "def f(): ...\n"),
        ("lib/argparse.py", "def parse(): ...\n"),
        ("lib/parser.py", ""),
        ("main.py", "import x.same\nimport y.same\n\nx.same.f()\ny.same.f()\n"),
    ]);
    let outline = async |file: &str, expected: Expect| {
        expected.assert_eq(&told(&place, "lcp_get_outline", json!({"file_path": file})).await);
    };
    outline(
        "same.py",
        expect![[r#"
        ambiguous_path: "same.py" could be any of 2 files. Give more of the path: use one of the candidates.
          x/same.py
          y/same.py"#]],
    )
    .await;
    outline("/nowhere/same.py", expect![[r#"
        file_not_found: There is no file "/nowhere/same.py" in this window. Did you mean one of the candidates?
          x/same.py
          y/same.py"#]]).await;
    outline(
        "argprase.py",
        expect![[r#"
        file_not_found: There is no file "argprase.py" in this window. Did you mean one of the candidates?
          lib/argparse.py"#]],
    )
    .await;
    outline(
        "lib/arg_parse",
        expect![[r#"
        file_not_found: There is no file "lib/arg_parse" in this window. Did you mean one of the candidates?
          lib/argparse.py
          lib/parser.py"#]],
    )
    .await;
    outline(
        "zzz.py",
        expect![[
            r#"file_not_found: There is no file "zzz.py" in this window. Relative paths start at ROOT."#
        ]],
    )
    .await;
    go(&place, "definition", "f", "main.py", None, expect![[r#"
        ambiguous_symbol: "f" means several things in this file. Choose one by the argument line, a line of context_file from the candidates.
          line 4: f, defined at x/same.py:1
          line 5: f, defined at y/same.py:1"#]]).await;
}

#[tokio::test]
async fn what_servers_tell_of_a_symbol_is_plain() {
    let check = async |server: &str, files: &[(&str, &str)], file: &str, signature: &str| {
        let place = Place::of_server(server, files);
        let arguments =
            json!({"to": "hover", "symbol_name": "price", "context_file": file, "timeout": TIMEOUT});
        let answer = place.ok("lcp_navigate", arguments).await;
        let told = answer["data"].as_str().unwrap();
        for part in [signature, "What <b> costs:", "first"] {
            assert!(told.lines().any(|line| line.trim_start().starts_with(part)), "{server}: {told}");
        }
        for mark in ["&nbsp;", "&lt;", "&gt;", "\\<", "file://", "```````"] {
            assert!(!told.contains(mark), "{server}: {told}");
        }
    };
    let python = [(
        "a.py",
        "def price(item: str) -> int:\n    \"\"\"What <b> costs:\n\n        first\n    \"\"\"\n    return 1\n",
    )];
    let signature = "def price(item: str) -> int";
    check("ty", &python, "a.py", signature).await;
    check("pyright", &python, "a.py", "(function) def price(item: str) -> int").await;
    check("basedpyright", &python, "a.py", "(function) def price(item: str) -> int").await;
    let script = [
        ("tsconfig.json", "{}"),
        (
            "a.ts",
            "/**\n * What <b> costs:\n *\n *     first\n */\nexport function price(item: string): number {\n  return 1;\n}\n",
        ),
    ];
    check("typescript", &script, "a.ts", "function price(item: string): number").await;
    check("typescript-language-server", &script, "a.ts", "function price(item: string): number").await;
    let go = [
        ("go.mod", "module shop\n\ngo 1.14\n"),
        (
            "a.go",
            "package shop\n\n// What <b> costs:\n//\n//\tfirst\nfunc price(item string) int { return 1 }\n",
        ),
    ];
    check("gopls", &go, "a.go", "func price(item string) int").await;
    let c = [
        ("compile_flags.txt", ""),
        ("a.c", "/// What <b> costs:\n///\n///     first\nint price(int item) { return 1; }\n"),
    ];
    check("clangd", &c, "a.c", "int price(int item)").await;
    let rust = [
        (
            "Cargo.toml",
            "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        (
            "src/lib.rs",
            "/// What <b> costs:\n///\n///     first\npub fn price(item: u32) -> u32 {\n    item\n}\n",
        ),
    ];
    check("rust-analyzer", &rust, "src/lib.rs", "pub fn price(item: u32) -> u32").await;
}

#[tokio::test]
async fn callers_and_callees_are_told_with_what_holds_them() {
    let check = async |server: &str,
                       files: &[(&str, &str)],
                       (to, name, file): (&str, &str, &str),
                       expected: &[&str]| {
        let place = Place::of_server(server, files);
        let arguments = json!({"to": to, "symbol_name": name, "context_file": file, "timeout": TIMEOUT});
        let answer = place.ok("lcp_navigate", arguments.clone()).await;
        let text = place.text("lcp_navigate", arguments).await;
        for line in expected {
            // Between them is its kind, on which servers disagree.
            let (place, name) = line.split_once(' ').unwrap();
            let is_told =
                |told: &str| told.starts_with(place) && told.contains(&format!(" {name} (calls in"));
            assert!(text.lines().any(is_told), "{server}: {text}");
        }
        let holder = answer["data"][0]["container"].as_str().unwrap_or_default();
        assert!(text.lines().nth(1).unwrap().contains(&format!(" {holder}.")), "{server}: {answer}");
    };
    let python = [
        (
            "lib.py",
            "def price():\n    return 1\n\n\nclass Shop:\n    def cost(self):\n        return price()\n",
        ),
        ("main.py", "from lib import price\n\n\nclass Bill:\n    def sum(self):\n        return price()\n"),
    ];
    let told = ["lib.py:6 Shop.cost", "main.py:5 Bill.sum"];
    check("ty", &python, ("callers", "price", "lib.py"), &told).await;
    check("pyright", &python, ("callers", "price", "lib.py"), &told).await;
    let script = [
        ("tsconfig.json", "{}"),
        ("lib.ts", "export class Shop {\n  cost() {\n    return 1;\n  }\n}\n"),
        (
            "main.ts",
            "import { Shop } from './lib';\n\nexport function bill() {\n  return new Shop().cost();\n}\n",
        ),
    ];
    check("typescript", &script, ("callees", "bill", "main.ts"), &["lib.ts:2 Shop.cost"]).await;
    let go = [
        ("go.mod", "module shop\n\ngo 1.14\n"),
        ("lib.go", "package shop\n\ntype Client struct{}\n\nfunc (c *Client) Do() int { return price() }\n"),
        ("price.go", "package shop\n\nfunc price() int { return 1 }\n"),
    ];
    check("gopls", &go, ("callers", "price", "price.go"), &["lib.go:5 Client.Do"]).await;
    let rust = [
        (
            "Cargo.toml",
            "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        (
            "src/lib.rs",
            "pub struct Shop;\nimpl Shop {\n    pub fn cost(&self) -> u8 { price() }\n}\npub fn price() -> u8 { 1 }\n",
        ),
    ];
    check("rust-analyzer", &rust, ("callers", "price", "src/lib.rs"), &["src/lib.rs:3 Shop.cost"]).await;
}

#[tokio::test]
async fn a_search_names_the_server_that_found_something() {
    let place = Place::new(&[
        ("a.py", "class OrderedThings: ...\n"),
        ("tsconfig.json", "{}"),
        ("b.ts", "export class Basket {}\n"),
    ]);
    for file in ["a.py", "b.ts"] {
        place.ok("lcp_get_outline", json!({"file_path": file, "timeout": TIMEOUT})).await;
    }
    for (name, source) in [("OrderedThings", "ty"), ("Basket", "typescript")] {
        let found =
            place.ok("lcp_navigate", json!({"to": "symbols", "symbol_name": name, "timeout": TIMEOUT})).await;
        assert_eq!((&found["source"], &found["total"]), (&json!(source), &json!(1)), "{found}");
    }
}

/// Those that have but its letters are told when there is nothing better.
#[tokio::test]
async fn a_search_by_name_finds_those_that_have_it() {
    let source = "def shlex(): ...\ndef shutdown_default_executor(): ...\nclass _Sh_Lexer: ...\n";
    let place = Place::new(&[("a.py", source)]);
    place.ok("lcp_get_outline", json!({"file_path": "a.py", "timeout": TIMEOUT})).await;
    for (query, wanted) in [
        ("shlex", vec!["shlex", "_Sh_Lexer"]),
        ("Sh_Lex", vec!["_Sh_Lexer"]),
        ("shutexec", vec!["shutdown_default_executor"]),
    ] {
        let arguments = json!({"to": "symbols", "symbol_name": query, "timeout": TIMEOUT});
        let found = place.ok("lcp_navigate", arguments).await;
        let names = found["data"].as_array().unwrap().iter().map(|spot| spot["name"].as_str().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), wanted, "{found}");
    }
}

#[tokio::test]
async fn lines_that_are_not_of_the_symbol_are_told() {
    let place = Place::new(&[("a.py", "x = 1\n\n\ndef price():\n    return 1\n\n\ny = 2\n")]);
    let read = |start: u32, end: u32| {
        let place = &place;
        async move {
            let arguments = json!({"symbol_name": "price", "file_path": "a.py", "start_line": start, "end_line": end, "timeout": TIMEOUT});
            let answer = place.call("lcp_read_symbol", arguments).await;
            let field = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
            [field("data"), field("note"), field("code"), field("message")].join("|")
        }
    };
    expect!["    return 1|||"].assert_eq(&read(5, 5).await);
    expect!["def price():|price is lines 4 to 5: no others are here.||"].assert_eq(&read(1, 4).await);
    expect!["    return 1|price is lines 4 to 5: no others are here.||"].assert_eq(&read(5, 99).await);
    expect!["||invalid_range|Lines 1 to 2 are none of it: price is lines 4 to 5."]
        .assert_eq(&read(1, 2).await);
    expect!["||invalid_range|Lines 7 to 9 are none of it: price is lines 4 to 5."]
        .assert_eq(&read(7, 9).await);
    expect!["||invalid_range|Lines 5 to 4 are none of it: price is lines 4 to 5."]
        .assert_eq(&read(5, 4).await);
}

#[tokio::test]
async fn a_new_name_that_stands_there_already_is_told() {
    let place = Place::new(&[
        ("lib.py", "def price(item):\n    return item\n"),
        ("main.py", "from lib import price\n\ncost = 3\nprint(price(cost))\n"),
    ]);
    let preview = async |new_name: &str| {
        let arguments = json!({"symbol_name": "price", "context_file": "lib.py", "new_name": new_name, "timeout": TIMEOUT});
        let answer = place.ok("lcp_rename", arguments.clone()).await;
        (answer["note"].as_str().unwrap().to_owned(), place.text("lcp_rename", arguments).await)
    };
    let taken = "cost stands there already (main.py:3): see that nothing else is meant by it.";
    let (note, text) = preview("cost").await;
    assert!(note.ends_with(taken) && text.ends_with(taken), "{text}");
    let (note, text) = preview("worth").await;
    assert!(!note.contains("stands there") && !text.contains("stands there"), "{text}");
}
