//! Renames from a file that only uses the symbol, of what is called like something else, and what is refused.

use expect_test::expect;
use serde_json::{Value, json};

use super::place::Place;

const TIMEOUT: u32 = 60;
const CARGO: &str = "[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";

/// The files that a preview names, or why there is none.
async fn files(place: &Place, symbol: &str, file: &str, new: &str) -> String {
    let arguments = json!({"symbol_name": symbol, "context_file": file, "new_name": new, "timeout": TIMEOUT});
    let answer = place.call("lcp_rename", arguments).await;
    let of_entry =
        |entry: &Value| format!("{}:{}", entry["file"].as_str().unwrap_or_default(), entry["lines"]);
    match answer["data"].as_array() {
        Some(data) => data.iter().map(of_entry).collect::<Vec<_>>().join(" "),
        None => format!("{}: {}", answer["code"].as_str().unwrap_or_default(), answer["message"]),
    }
}

#[tokio::test]
async fn rust_renames_the_definition_and_not_the_import_alone() {
    let place = Place::new(&[
        ("Cargo.toml", CARGO),
        ("src/lib.rs", "mod shop;\nmod store;\n"),
        (
            "src/store.rs",
            "pub struct Thing;\n\npub trait Named {\n    fn name(&self) -> u32;\n}\n\nimpl<T> Named for Vec<T> {\n    fn name(&self) -> u32 {\n        1\n    }\n}\n",
        ),
        ("src/shop.rs", "use crate::store::Thing;\n\npub fn sell(_: Thing) {}\n"),
    ]);
    expect!["src/shop.rs:[1,3] src/store.rs:[1]"]
        .assert_eq(&files(&place, "Thing", "src/shop.rs", "Item").await);
    expect!["src/store.rs:[4,8]"].assert_eq(&files(&place, "Vec::name", "src/store.rs", "title").await);
}

#[tokio::test]
async fn typescript_renames_the_definition_and_not_the_import_alone() {
    let place = Place::new(&[
        ("tsconfig.json", "{}"),
        (
            "user.ts",
            "export interface User {\n  name: string;\n}\n\nexport interface Called {\n  (user: User): void;\n}\n",
        ),
        (
            "use.ts",
            "import { User } from './user';\nimport { User as Person } from './user';\n\nexport const f = (user: User, other: Person) => user ?? other;\n",
        ),
    ]);
    expect!["use.ts:[1,2,4] user.ts:[1,6]"].assert_eq(&files(&place, "User", "use.ts", "Human").await);
    expect!["use.ts:[2,4]"].assert_eq(&files(&place, "Person", "use.ts", "Human").await);
    expect!["user.ts:[5]"].assert_eq(&files(&place, "Called", "user.ts", "Asked").await);
}

#[tokio::test]
async fn private_names_of_javascript_stay_private() {
    let source =
        "class Safe {\n  #secret = 1;\n  open() {\n    return this.#secret;\n  }\n}\nnew Safe().open();\n";
    let place = Place::new(&[("jsconfig.json", "{}"), ("safe.js", source)]);
    expect!["safe.js:[2,4]"].assert_eq(&files(&place, "#secret", "safe.js", "#hidden").await);
    expect![[r##"invalid_name: "\"hidden\" is not private: a name that begins with # keeps it.""##]]
        .assert_eq(&files(&place, "#secret", "safe.js", "hidden").await);
}

#[tokio::test]
async fn a_module_of_python_is_not_renamed_without_its_file() {
    let place = Place::new(&[
        ("pyproject.toml", ""),
        ("pkg/__init__.py", ""),
        ("pkg/shapes.py", "def area(): ...\n"),
        ("use.py", "from pkg import shapes\nimport pkg.shapes as sh\n\nshapes.area()\nsh.area()\n"),
    ]);
    expect![[r#"not_renamable: "ty would change the name, but not rename the file that it stands for.""#]]
        .assert_eq(&files(&place, "shapes", "use.py", "forms").await);
    expect!["use.py:[2,5]"].assert_eq(&files(&place, "sh", "use.py", "forms").await);
    expect!["pkg/shapes.py:[1] use.py:[4,5]"].assert_eq(&files(&place, "area", "use.py", "size").await);
}

/// ty takes the stub for the definition, and leaves the other one out.
#[tokio::test]
async fn a_rename_that_would_leave_half_of_it_is_refused() {
    let place = Place::new(&[
        ("lib.py", "def visible(): ...\n"),
        ("lib.pyi", "def visible() -> None: ...\n"),
        ("use.py", "from lib import visible\n\nvisible()\n"),
    ]);
    expect![[
        r#"not_renamable: "ty would not rename visible both where it is defined and where it is used.""#
    ]]
    .assert_eq(&files(&place, "visible", "use.py", "seen").await);
}

/// Overloads are several symbols in C++, and one in TypeScript.
#[tokio::test]
async fn overloads_are_told_together_and_renamed_one_by_one() {
    let commands = r#"[{"directory": "{ROOT}", "file": "a.cpp", "arguments": ["c++", "-c", "a.cpp"]}]"#;
    let source = "int scaled(double by) { return by; }\nint scaled(int by) { return by; }\n\nint all = scaled(1.5) + scaled(2);\n";
    let place = Place::new(&[("compile_commands.json", commands), ("a.cpp", source)]);
    let wanted = json!({"symbol_name": "scaled", "context_file": "a.cpp", "timeout": TIMEOUT});
    assert_eq!(place.ok("lcp_find_references", wanted).await["total"], 4);
    expect![[r#"ambiguous_symbol: "\"scaled\" is defined 2 times, each for itself.""#]]
        .assert_eq(&files(&place, "scaled", "a.cpp", "times").await);
    let source = "export function f(x: string): void;\nexport function f(x: number): void;\nexport function f(x: unknown) {\n  console.log(x);\n}\nf(1);\nf('a');\n";
    let place = Place::new(&[("tsconfig.json", "{}"), ("a.ts", source)]);
    let wanted = json!({"symbol_name": "f", "context_file": "a.ts", "timeout": TIMEOUT});
    assert_eq!(place.ok("lcp_find_references", wanted).await["total"], 5);
    expect!["a.ts:[1,2,3,6,7]"].assert_eq(&files(&place, "f", "a.ts", "g").await);
}
