//! The same story in each language: outline, read, references into a file that nobody opened, problems before and
//! after a write.

use serde_json::{Value, json};

use crate::place::Place;

struct Language {
    server: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Defines `price`, which the other file uses once.
    library: &'static str,
    user: &'static str,
    /// Breaks the user.
    rename: (&'static str, &'static str),
    /// Lines with the name: definition, header, uses.
    n_references: u64,
}

async fn story(language: Language) {
    let place = Place::new(language.files);
    let outline = place.ok("lcp_get_outline", json!({"file_path": language.library, "timeout": 120})).await;
    assert_eq!(outline["source"], language.server);
    let names: Vec<&str> =
        outline["data"].as_array().unwrap().iter().map(|symbol| symbol["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("price")), "{names:?}");

    let arguments = json!({"file_path": language.library, "symbol_name": "price", "timeout": 60});
    let read = place.ok("lcp_read_symbol", arguments).await;
    let code = read["data"].as_str().unwrap();
    assert!(code.contains("price") && code.contains("What a thing costs"), "{code}");

    let arguments = json!({"symbol_name": "price", "context_file": language.library, "timeout": 120});
    let references = place.ok("lcp_find_references", arguments).await;
    assert_eq!(references["freshness"], "settled", "{references}");
    assert_eq!(references["total"], language.n_references, "{references}");
    let is_of_user = |entry: &Value| entry["file"] == language.user;
    assert!(references["data"].as_array().unwrap().iter().any(is_of_user), "{references}");

    let problems = async || {
        let arguments = json!({"file_path": language.user, "severity": "error", "timeout": 120});
        let problems = place.ok("lcp_get_diagnostics", arguments).await;
        assert_eq!(problems["freshness"], "settled", "{problems}");
        problems["total"].as_u64().unwrap()
    };
    assert_eq!(problems().await, 0);
    let text = std::fs::read_to_string(place.root.join(language.user)).unwrap();
    place.write(language.user, text.replace(language.rename.0, language.rename.1));
    assert!(problems().await > 0);
    place.write(language.user, text);
    assert_eq!(problems().await, 0);
}

#[tokio::test]
async fn typescript() {
    story(Language {
        server: "typescript",
        files: &[
            ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}"),
            ("shop.ts", "// What a thing costs.\nexport function price(item: string): number {\n  return item.length;\n}\n"),
            ("main.ts", "import { price } from './shop';\n\nexport const bill = price('apple');\n"),
        ],
        library: "shop.ts",
        user: "main.ts",
        rename: ("price('apple')", "price(1)"),
        n_references: 3,
    })
    .await;
}

const COMMANDS: &str = r#"[
    {"directory": "{ROOT}", "file": "shop.c", "arguments": ["cc", "-c", "shop.c"]},
    {"directory": "{ROOT}", "file": "main.c", "arguments": ["cc", "-c", "main.c"]}
]"#;

#[tokio::test]
async fn c() {
    story(Language {
        server: "clangd",
        files: &[
            ("compile_commands.json", COMMANDS),
            ("shop.h", "int price(int item);\n"),
            ("shop.c", "#include \"shop.h\"\n\n// What a thing costs.\nint price(int item) {\n  return item * 3;\n}\n\nint twice(int item) { return price(item) + price(item); }\n"),
            ("main.c", "#include \"shop.h\"\n\nint main(void) {\n  return price(2);\n}\n"),
        ],
        library: "shop.c",
        user: "shop.c",
        rename: ("price(item) + price", "price(item) + prize"),
        n_references: 5,
    })
    .await;
}

#[tokio::test]
async fn rust() {
    story(Language {
        server: "rust-analyzer",
        files: &[
            ("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n"),
            ("src/lib.rs", "pub mod bill;\n\n/// What a thing costs.\npub fn price(item: u32) -> u32 {\n    item * 3\n}\n"),
            ("src/bill.rs", "use crate::price;\n\npub fn bill() -> u32 {\n    price(2)\n}\n"),
        ],
        library: "src/lib.rs",
        user: "src/bill.rs",
        rename: ("price(2)", "price(2, )) + ("),
        n_references: 3,
    })
    .await;
}
