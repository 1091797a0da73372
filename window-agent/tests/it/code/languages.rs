//! The same story with each server: outline, read, references into a file that nobody opened, definition, rename,
//! problems before and after a write, a crash in the middle of a request.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::place::{Place, halt, signal, until_asked};

struct Language {
    server: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Defines `price`.
    library: &'static str,
    /// Uses it, and is not opened before its references are asked for.
    user: &'static str,
    /// Breaks a file: which, what, and what then stands there.
    breaks: (&'static str, &'static str, &'static str),
    /// Lines with the name: definition, header, uses.
    n_references: u64,
}

/// A server answers when it is up and has read the project; a busy machine takes its time for that.
const TIMEOUT: u64 = 120;

async fn story(language: Language) {
    let place = Place::of_server(language.server, language.files);
    let outline =
        place.ok("lcp_get_outline", json!({"file_path": language.library, "timeout": TIMEOUT})).await;
    assert_eq!(outline["source"], language.server);
    let names: Vec<&str> =
        outline["data"].as_array().unwrap().iter().map(|symbol| symbol["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("price")), "{names:?}");

    let arguments = json!({"file_path": language.library, "symbol_name": "price", "timeout": TIMEOUT});
    let read = place.ok("lcp_read_symbol", arguments).await;
    let code = read["data"].as_str().unwrap();
    assert!(code.contains("price") && code.contains("What a thing costs"), "{code}");

    let wanted = json!({"symbol_name": "price", "context_file": language.library, "timeout": TIMEOUT});
    let references = place.ok("lcp_find_references", wanted).await;
    assert_eq!(references["freshness"], "settled", "{references}");
    assert_eq!(references["total"], language.n_references, "{references}");
    let is_of_user = |entry: &Value| entry["file"] == language.user;
    assert!(references["data"].as_array().unwrap().iter().any(is_of_user), "{references}");

    references_follow_the_disk(&place, &language).await;

    let arguments = json!({"to": "definition", "symbol_name": "price", "context_file": language.user, "timeout": TIMEOUT});
    let defined = place.ok("lcp_navigate", arguments).await;
    assert_eq!(defined["data"][0]["file"], language.library, "{defined}");

    let offers = offers(&place, &language).await;
    problems_follow_the_disk(&place, &language).await;
    crash_in_the_middle_of_a_request(&place, &language).await;
    rename(&place, &language).await;
    check_document(&language, offers);
}

/// What not every server has: hover, callers, symbols of the project.
async fn offers(place: &Place, language: &Language) -> Vec<bool> {
    let mut offers = Vec::new();
    for to in ["hover", "callers", "symbols"] {
        let arguments =
            json!({"to": to, "symbol_name": "price", "context_file": language.library, "timeout": TIMEOUT});
        let answer = place.call("lcp_navigate", arguments).await;
        let has = match &answer["data"] {
            Value::String(text) => text.contains("price"),
            Value::Array(all) => !all.is_empty(),
            _ => false,
        };

        offers.push(has);
    }
    offers
}

/// The table of `docs/code.md` says what this run found: `UPDATE_EXPECT=1` on one thread writes the server's row.
fn check_document(language: &Language, offers: Vec<bool>) {
    // Outline, read, references, definition, problems, rename, crash: without them no story comes here.
    let cells = [true; 7].into_iter().chain(offers).map(|has| if has { "yes" } else { "no" });
    let row = format!("| {} | {} |", language.server, cells.collect::<Vec<_>>().join(" | "));
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/code.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let begin = format!("| {} |", language.server);
    let known = text.lines().find(|line| line.starts_with(&begin)).unwrap_or_default();
    if known != row && std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, text.replacen(known, &row, 1)).unwrap();
    } else {
        assert_eq!(known, row, "docs/code.md");
    }
}

/// The file that uses the symbol was never opened; it is written as it is, and replaced as editors do.
async fn references_follow_the_disk(place: &Place, language: &Language) {
    let lines = async || -> Vec<u64> {
        let wanted = json!({"symbol_name": "price", "context_file": language.library, "limit": 50, "timeout": TIMEOUT});
        let references = place.ok("lcp_find_references", wanted).await;
        assert_eq!(references["freshness"], "settled", "{references}");
        let of_user =
            references["data"].as_array().unwrap().iter().filter(|entry| entry["file"] == language.user);
        of_user.map(|entry| entry["line"].as_u64().unwrap()).collect()
    };
    let text = std::fs::read_to_string(place.root.join(language.user)).unwrap();
    let comment = if language.user.ends_with(".py") { "# more\n" } else { "// more\n" };
    let before = lines().await;
    let moved = |by: u64| before.iter().map(|line| line + by).collect::<Vec<_>>();
    place.write(language.user, format!("{comment}{text}"));
    assert_eq!(lines().await, moved(1), "written");
    place.write("beside", format!("{comment}{comment}{text}"));
    std::fs::rename(place.root.join("beside"), place.root.join(language.user)).unwrap();
    assert_eq!(lines().await, moved(2), "replaced");
    std::fs::remove_file(place.root.join(language.user)).unwrap();
    assert_eq!(lines().await, Vec::<u64>::new(), "deleted");
    place.write(language.user, &text);
    assert_eq!(lines().await, before, "there again");
}

async fn problems_follow_the_disk(place: &Place, language: &Language) {
    let (file, what, broken) = language.breaks;
    let problems = async || {
        let arguments = json!({"file_path": file, "severity": "error", "timeout": TIMEOUT});
        let problems = place.ok("lcp_get_diagnostics", arguments).await;
        assert_eq!(problems["freshness"], "settled", "{problems}");
        problems["total"].as_u64().unwrap()
    };
    assert_eq!(problems().await, 0);
    let text = std::fs::read_to_string(place.root.join(file)).unwrap();
    place.write(file, text.replace(what, broken));
    assert!(problems().await > 0);
    place.write(file, text);
    assert_eq!(problems().await, 0);
}

/// Stopped, so that the request lies there, and then killed.
async fn crash_in_the_middle_of_a_request(place: &Place, language: &Language) {
    let pids = place.server_pids(language.server);
    assert!(!pids.is_empty());
    halt(&pids).await;
    let arguments = json!({"file_path": language.user, "timeout": TIMEOUT});
    let (outline, ()) = tokio::join!(place.ok("lcp_get_outline", arguments), async {
        until_asked(&pids).await;
        signal(&pids, Signal::KILL);
    });
    assert_eq!(outline["source"], language.server);
    // A new one answered, for the old one was stopped; on a busy machine that takes a moment to be gone.
    let until = Instant::now() + Duration::from_secs(TIMEOUT);
    loop {
        let now = place.server_pids(language.server);
        if now.iter().all(|pid| !pids.contains(pid)) {
            return;
        }
        assert!(Instant::now() < until, "{pids:?} became {now:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn rename(place: &Place, language: &Language) {
    let arguments = |apply: Option<&str>| json!({"symbol_name": "price", "context_file": language.library, "new_name": "cost", "apply": apply, "timeout": TIMEOUT});
    let read = || -> Vec<String> {
        let files = language.files.iter();
        files.map(|(file, _)| std::fs::read_to_string(place.root.join(file)).unwrap()).collect()
    };
    // A server that was started a moment ago may not have read the project yet, which a rename cannot say.
    let until = Instant::now() + Duration::from_secs(TIMEOUT);
    let preview = loop {
        let preview = place.ok("lcp_rename", arguments(None)).await;
        let knows_user = preview["data"].as_array().unwrap().iter().any(|edit| edit["file"] == language.user);
        if knows_user || Instant::now() > until {
            break preview;
        }
    };
    let before = read();
    let made = place.ok("lcp_rename", arguments(preview["token"].as_str())).await;
    assert_eq!(made["applied"], true);
    let after = read();
    for ((file, _), (before, after)) in language.files.iter().zip(before.iter().zip(&after)) {
        assert_eq!(*after, before.replace("price", "cost"), "{file}");
    }
}

const TYPESCRIPT: [(&str, &str); 3] = [
    ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}"),
    (
        "shop.ts",
        "// What a thing costs.\nexport function price(item: string): number {\n  return item.length;\n}\n",
    ),
    ("main.ts", "import { price } from './shop';\n\nexport const bill = price('apple');\n"),
];

async fn typescript_story(server: &'static str) {
    story(Language {
        server,
        files: &TYPESCRIPT,
        library: "shop.ts",
        user: "main.ts",
        breaks: ("main.ts", "price('apple')", "price(1)"),
        n_references: 3,
    })
    .await;
}

#[tokio::test]
async fn typescript() {
    typescript_story("typescript").await;
}

#[tokio::test]
async fn typescript_language_server() {
    typescript_story("typescript-language-server").await;
}

const PYTHON: [(&str, &str); 3] = [
    ("pyproject.toml", "[project]\nname = 'shop'\nversion = '1'\n"),
    ("shop.py", "# What a thing costs.\ndef price(item: str) -> int:\n    return len(item)\n"),
    ("main.py", "from shop import price\n\nbill = price('apple')\n"),
];

async fn python_story(server: &'static str) {
    story(Language {
        server,
        files: &PYTHON,
        library: "shop.py",
        user: "main.py",
        breaks: ("main.py", "price('apple')", "price(1)"),
        n_references: 3,
    })
    .await;
}

#[tokio::test]
async fn ty() {
    python_story("ty").await;
}

#[tokio::test]
async fn pyright() {
    python_story("pyright").await;
}

#[tokio::test]
async fn basedpyright() {
    python_story("basedpyright").await;
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
        user: "main.c",
        breaks: ("shop.c", "price(item) + price", "price(item) + prize"),
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
        breaks: ("src/bill.rs", "price(2)", "price(2, )) + ("),
        n_references: 3,
    })
    .await;
}

#[tokio::test]
async fn go() {
    story(Language {
        server: "gopls",
        files: &[
            ("go.mod", "module shop\n\ngo 1.14\n"),
            (
                "shop.go",
                "package main\n\n// What a thing costs.\nfunc price(item int) int {\n\treturn item * 3\n}\n",
            ),
            ("main.go", "package main\n\nfunc main() {\n\tprintln(price(2))\n}\n"),
        ],
        library: "shop.go",
        user: "main.go",
        breaks: ("main.go", "price(2)", "price(\"a\")"),
        n_references: 2,
    })
    .await;
}

/// Many files change at once, as when another branch is checked out.
async fn a_change_of_a_whole_tree_counts(server: &'static str, files: &[(&str, &str)], user: (&str, &str)) {
    const N_FILES: usize = 120;
    let place = Place::of_server(server, files);
    let (extension, text) = user;
    let comment = if extension == "py" { "# more\n" } else { "// more\n" };
    let write_all = |head: &str| {
        for number in 0..N_FILES {
            let text = text.replace("{N}", &number.to_string());
            place.write(&format!("u{number}.{extension}"), format!("{head}{text}"));
        }
    };
    let first_lines = async || -> Vec<u64> {
        let wanted =
            json!({"symbol_name": "price", "context_file": files[1].0, "limit": 0, "timeout": TIMEOUT});
        let references = place.ok("lcp_find_references", wanted).await;
        assert_eq!(references["freshness"], "settled", "{references}");
        let of_users =
            references["more"].as_object().unwrap().iter().filter(|(file, _)| file.starts_with('u'));
        of_users.map(|(_, lines)| lines[0].as_u64().unwrap()).collect()
    };
    write_all("");
    let before = first_lines().await;
    assert_eq!(before.len(), N_FILES);
    write_all(comment);
    assert_eq!(first_lines().await, before.iter().map(|line| line + 1).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_whole_tree_changes_for_basedpyright() {
    let user = ("py", "from shop import price\n\nbill_{N} = price('apple')\n");
    a_change_of_a_whole_tree_counts("basedpyright", &PYTHON, user).await;
}

#[tokio::test]
async fn a_whole_tree_changes_for_typescript_language_server() {
    let files = [
        ("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}"),
        (
            "shop.ts",
            "// What a thing costs.\nexport function price(item: string): number {\n  return item.length;\n}\n",
        ),
    ];
    let user = ("ts", "import { price } from './shop';\n\nexport const bill{N} = price('apple');\n");
    a_change_of_a_whole_tree_counts("typescript-language-server", &files, user).await;
}

#[tokio::test]
async fn a_whole_tree_changes_for_clangd() {
    let unit = |file: String| json!({"directory": "{ROOT}", "file": file, "arguments": ["cc", "-c", file]});
    let units: Vec<Value> = (0..120).map(|number| unit(format!("u{number}.c"))).collect();
    let commands = Value::from(units).to_string();
    let files = [("compile_commands.json", commands.as_str()), ("shop.h", "int price(int item);\n")];
    let user = ("c", "#include \"shop.h\"\n\nint bill_{N}(void) {\n  return price(2);\n}\n");
    a_change_of_a_whole_tree_counts("clangd", &files, user).await;
}
