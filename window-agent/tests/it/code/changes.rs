//! Renaming and editing: everything or nothing, and never on what has changed meanwhile.

use baton_agent_tools::CATALOGUE;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::place::Place;

const LIB: &str = "def price(item):\r\n    return 3\r\n";
const MAIN: &str = "from lib import price\n\nprint(price('ä'), price(2))\n";

fn place() -> Place {
    Place::new(&[("lib.py", LIB), ("main.py", MAIN)])
}

fn read(place: &Place, path: &str) -> String {
    std::fs::read_to_string(place.root.join(path)).unwrap()
}

#[tokio::test]
async fn a_rename_is_previewed_and_then_made() {
    let place = place();
    let arguments = |apply: Option<&str>| json!({"symbol_name": "price", "context_file": "main.py", "new_name": "cost", "apply": apply, "timeout": 60});
    let preview = place.ok("lcp_rename", arguments(None)).await;
    assert_eq!(
        preview["data"],
        json!([
            {"file": "lib.py", "lines": [1], "difference": "1- def price(item):\n1+ def cost(item):"},
            {"file": "main.py", "lines": [1, 3], "difference": "1- from lib import price\n1+ from lib import cost\n\
                3- print(price('ä'), price(2))\n3+ print(cost('ä'), cost(2))"},
        ])
    );
    assert_eq!(preview["applied"], false);
    assert_eq!(read(&place, "main.py"), MAIN);
    let token = preview["token"].as_str().unwrap();

    place.write("main.py", format!("{MAIN}# more\n"));
    let refused = place.call("lcp_rename", arguments(Some(token))).await;
    assert_eq!(refused["code"], "changed_meanwhile");
    assert_eq!(read(&place, "lib.py"), LIB);
    place.write("main.py", MAIN);

    let made = place.ok("lcp_rename", arguments(Some(token))).await;
    assert_eq!(made["applied"], true);
    assert_eq!(read(&place, "lib.py"), LIB.replace("price", "cost"));
    assert_eq!(read(&place, "main.py"), MAIN.replace("price", "cost"));
    let answer = place.ok("lcp_get_diagnostics", json!({"file_path": "main.py", "timeout": 60})).await;
    assert_eq!(answer["total"], 0, "{answer}");
    let mut left: Vec<_> =
        std::fs::read_dir(&place.root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["lib.py", "main.py"], "nothing else stays");
}

#[tokio::test]
async fn when_one_file_cannot_be_written_none_is() {
    let place = place();
    let arguments = |apply: Option<&str>| json!({"symbol_name": "price", "context_file": "lib.py", "new_name": "cost", "apply": apply, "timeout": 60});
    std::fs::create_dir(place.root.join("sub")).unwrap();
    place.write("sub/other.py", "from lib import price\n");
    let preview = place.ok("lcp_rename", arguments(None)).await;
    assert_eq!(preview["data"].as_array().unwrap().len(), 3);
    // A mount point or a permission would do, too; for root only an unwritable kind of folder does.
    std::fs::remove_dir_all(place.root.join("sub")).unwrap();
    let refused = place.call("lcp_rename", arguments(preview["token"].as_str())).await;
    assert_eq!(refused["status"], "error", "{refused}");
    assert_eq!((read(&place, "lib.py"), read(&place, "main.py")), (LIB.to_owned(), MAIN.to_owned()));
}

/// The module `lib` is a link; what it leads to is changed, and it stays one.
#[tokio::test]
async fn a_link_stays_a_link() {
    let place = Place::new(&[("main.py", MAIN), ("real/shelf.py", LIB)]);
    let link = place.root.join("lib.py");
    std::os::unix::fs::symlink("real/shelf.py", &link).unwrap();
    let arguments = |apply: Option<&str>| json!({"symbol_name": "price", "context_file": "main.py", "new_name": "cost", "apply": apply, "timeout": 60});
    let preview = place.ok("lcp_rename", arguments(None)).await;
    let made = place.ok("lcp_rename", arguments(preview["token"].as_str())).await;
    let files: Vec<&str> =
        made["data"].as_array().unwrap().iter().filter_map(|entry| entry["file"].as_str()).collect();
    assert_eq!(files, ["main.py", "real/shelf.py"]);
    assert_eq!(read(&place, "real/shelf.py"), LIB.replace("price", "cost"));
    assert_eq!(read(&place, "main.py"), MAIN.replace("price", "cost"));
    let edits = json!([{"old_text": "cost", "new_text": "sum"}]);
    place.ok("lcp_apply_edit", json!({"file_path": "lib.py", "edits": edits})).await;
    assert_eq!(read(&place, "real/shelf.py"), LIB.replace("price", "sum"));
    assert!(link.is_symlink());

    // One that leads out of the window's folders.
    let outside = tempfile::tempdir().unwrap();
    let far = outside.path().join("lib.py");
    std::fs::write(&far, LIB).unwrap();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&far, &link).unwrap();
    place.write("main.py", MAIN);
    let edits = json!([{"old_text": "price", "new_text": "sum"}]);
    let refused = place.call("lcp_apply_edit", json!({"file_path": "lib.py", "edits": edits})).await;
    assert_eq!(refused["code"], "outside_window", "{refused}");
    let refused = place.call("lcp_rename", arguments(None)).await;
    assert_eq!(refused["status"], "error", "{refused}");
    assert!(link.is_symlink());
    assert_eq!(
        (std::fs::read_to_string(&far).unwrap().as_str(), read(&place, "main.py").as_str()),
        (LIB, MAIN)
    );
}

async fn edit(place: &Place, file: &str, edits: Value, expected: Expect) {
    let answer = place.call("lcp_apply_edit", json!({"file_path": file, "edits": edits})).await;
    expected.assert_eq(&format!("{answer}\n{:?}\n", read(place, file)));
}

#[tokio::test]
async fn edits_are_made_where_they_fit() {
    let place = place();
    edit(
        &place,
        "lib.py",
        json!([{"old_text": "return 3", "new_text": "x = 1\nreturn x"}]),
        expect![[r#"
            {"data":[{"file":"lib.py","lines":[2]}],"hash":554402967,"n_lines":3,"note":"1 file was changed.","success":true}
            "def price(item):\r\n    x = 1\r\nreturn x\r\n"
        "#]],
    )
    .await;
    edit(&place, "lib.py", json!([{"start_line": 2, "new_text": "    y = 2"}, {"start_line": 1, "end_line": 0, "new_text": "# first"}]), expect![[r##"
        {"data":[{"file":"lib.py","lines":[1,2]}],"hash":946574169,"n_lines":4,"note":"1 file was changed.","success":true}
        "# first\r\ndef price(item):\r\n    y = 2\r\nreturn x\r\n"
    "##]]).await;
    edit(
        &place,
        "main.py",
        json!([{"start_line": 2, "end_line": 3, "new_text": ""}]),
        expect![[r#"
            {"data":[{"file":"main.py","lines":[2]}],"hash":802077297,"n_lines":1,"note":"1 file was changed.","success":true}
            "from lib import price\n"
        "#]],
    )
    .await;
    place.write("main.py", "a\nb");
    edit(
        &place,
        "main.py",
        json!([{"start_line": 3, "end_line": 2, "new_text": "c"}]),
        expect![[r#"
            {"data":[{"file":"main.py","lines":[2]}],"hash":781305284,"n_lines":3,"note":"1 file was changed.","success":true}
            "a\nb\nc"
        "#]],
    )
    .await;
    place.write("main.py", "");
    edit(
        &place,
        "main.py",
        json!([{"start_line": 1, "end_line": 0, "new_text": "a"}]),
        expect![[r#"
            {"data":[{"file":"main.py","lines":[1]}],"hash":417363133,"n_lines":1,"note":"1 file was changed.","success":true}
            "a"
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_edit_that_fits_nowhere_changes_nothing() {
    let place = place();
    edit(&place, "main.py", json!([{"old_text": "price", "new_text": "x"}]), expect![[r#"
        {"code":"ambiguous_text","hint":"Give more of the lines around it, or name the lines with start_line and end_line.","message":"old_text is in the file more than once: at lines 1, 3.","status":"error"}
        "from lib import price\n\nprint(price('ä'), price(2))\n"
    "#]]).await;
    edit(&place, "main.py", json!([{"old_text": "nothing", "new_text": "x"}]), expect![[r#"
        {"code":"text_not_found","hint":"Read the place again: the file may have changed.","message":"old_text is not in the file as it is now.","status":"error"}
        "from lib import price\n\nprint(price('ä'), price(2))\n"
    "#]]).await;
    edit(&place, "main.py", json!([{"start_line": 9, "new_text": "x"}]), expect![[r#"
        {"code":"invalid_range","hint":"Lines count from 1; both ends are replaced.","message":"Lines 9 to 9 are not in the file, which has 3 lines.","status":"error"}
        "from lib import price\n\nprint(price('ä'), price(2))\n"
    "#]]).await;
    edit(&place, "main.py", json!([{"start_line": 1, "old_text": "from lib", "new_text": "x"}]), expect![[r#"
        {"code":"changed_meanwhile","hint":"Read the lines again: the file has changed.","message":"Lines 1 to 1 do not hold old_text.","status":"error"}
        "from lib import price\n\nprint(price('ä'), price(2))\n"
    "#]]).await;
    edit(
        &place,
        "main.py",
        json!([{"start_line": 1, "end_line": 3, "new_text": "x"}, {"start_line": 3, "new_text": "y"}]),
        expect![[r#"
            {"code":"overlapping_edits","hint":"Make the edits one after the other.","message":"Two edits overlap at line 3; nothing was changed.","status":"error"}
            "from lib import price\n\nprint(price('ä'), price(2))\n"
        "#]],
    )
    .await;
    edit(&place, "main.py", json!([]), expect![[r#"
        {"code":"invalid_arguments","hint":"Give at least one.","message":"There are no edits.","status":"error"}
        "from lib import price\n\nprint(price('ä'), price(2))\n"
    "#]]).await;
}

#[tokio::test]
async fn one_way_leads_to_another() {
    let place = Place::new(&[
        (
            "lib.py",
            "def price(item: str) -> int:\n    \"\"\"What a thing costs.\"\"\"\n    return len(item)\n",
        ),
        ("main.py", "from lib import price\n\n\ndef bill():\n    return price('a') + price('b')\n"),
    ]);
    let go = async |to: &str, name: &str, file: Option<&str>, expected: Expect| {
        let arguments = json!({"to": to, "symbol_name": name, "context_file": file, "timeout": 60});
        expected.assert_eq(&place.call("lcp_navigate", arguments).await.to_string());
    };
    go("definition", "price", Some("main.py"), expect![[r#"{"data":[{"code_snippet":"def price(item: str) -> int:","file":"lib.py","line":1}],"freshness":"settled","source":"ty","success":true,"symbol":"price","total":1}"#]]).await;
    go("hover", "price", Some("main.py"), expect![[r#"{"data":"def price(item: str) -> int\n---------------------------------------------\nWhat a thing costs.","freshness":"settled","source":"ty","success":true,"symbol":"price"}"#]]).await;
    go("callers", "price", Some("lib.py"), expect![[r#"{"data":[{"calls":[5],"code_snippet":"def bill():","file":"main.py","kind":"function","line":4,"name":"bill"}],"freshness":"settled","source":"ty","success":true,"symbol":"price","total":1}"#]]).await;
    go("callees", "bill", Some("main.py"), expect![[r#"{"data":[{"calls":[5],"code_snippet":"def price(item: str) -> int:","file":"lib.py","kind":"function","line":1,"name":"price"}],"freshness":"settled","source":"ty","success":true,"symbol":"bill","total":1}"#]]).await;
    go("symbols", "pric", None, expect![[r#"{"data":[{"code_snippet":"def price(item: str) -> int:","file":"lib.py","kind":"function","line":1,"name":"price"}],"freshness":"settled","source":"ty","success":true,"symbol":"pric","total":1}"#]]).await;
    go("definition", "price", None, expect![[r#"{"code":"invalid_arguments","hint":"Pass a file that defines or uses the symbol; only `to: symbols` needs none.","message":"context_file is missing.","status":"error"}"#]]).await;
}

/// Servers that hear of a folder as deleted forget what is in it, whatever they hear of its files.
#[tokio::test]
async fn a_folder_that_goes_and_comes_back_is_there() {
    let place = Place::new(&[
        ("pkg/__init__.py", ""),
        ("pkg/deep/__init__.py", ""),
        ("pkg/deep/lib.py", "def price(): ...\n"),
        ("pkg/deep/use.py", "from pkg.deep.lib import price\n\nprice()\n"),
    ]);
    let wanted = json!({"symbol_name": "price", "context_file": "pkg/deep/lib.py", "timeout": 60});
    let total = async || place.ok("lcp_find_references", wanted.clone()).await["total"].clone();
    assert_eq!(total().await, 3);
    let (folder, aside) = (place.root.join("pkg"), tempfile::tempdir().unwrap());
    for _ in 0..3 {
        copy(&folder, &aside.path().join("pkg"));
        std::fs::remove_dir_all(&folder).unwrap();
        copy(&aside.path().join("pkg"), &folder);
        assert_eq!(total().await, 3);
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to)
        } else {
            std::fs::copy(entry.path(), to).map(drop).unwrap()
        }
    }
}

/// What includes a header takes clangd its time to read again.
#[tokio::test]
async fn problems_are_those_after_a_header_changed() {
    let commands = r#"[{"directory": "{ROOT}", "file": "a.cpp", "arguments": ["c++", "-c", "a.cpp"]}]"#;
    let source = "#include <bits/stdc++.h>\n#include \"own.h\"\n\nint sizes[SIZE];\n";
    let place =
        Place::new(&[("compile_commands.json", commands), ("own.h", "#define SIZE 3\n"), ("a.cpp", source)]);
    let problems = async || {
        let answer = place
            .ok("lcp_get_diagnostics", json!({"file_path": "a.cpp", "severity": "error", "timeout": 60}))
            .await;
        (answer["total"].as_u64().unwrap_or_default(), answer["freshness"].clone())
    };
    assert_eq!(problems().await, (0, json!("settled")));
    for _ in 0..2 {
        place.write("own.h", "#define OTHER 3\n");
        assert_eq!(problems().await, (1, json!("settled")));
        place.write("own.h", "#define SIZE 3\n");
        assert_eq!(problems().await, (0, json!("settled")));
    }
}

#[tokio::test]
async fn an_edit_that_changes_nothing_says_so() {
    let place = Place::new(&[("a.py", "x = 1\n")]);
    let edit = json!({"old_text": "x = 1", "new_text": "x = 1"});
    let answer = place.call("lcp_apply_edit", json!({"file_path": "a.py", "edits": [edit]})).await;
    assert_eq!(answer["code"], "nothing_to_change", "{answer}");
}

/// What is read says which text it is, and an edit of another one is refused.
#[tokio::test]
async fn an_edit_may_say_which_text_it_is_of() {
    let place = Place::new(&[("a.py", "def f():\n    return 1\n\n\ndef g():\n    return 2\n")]);
    let outline = place.ok("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
    let symbol =
        place.ok("lcp_read_symbol", json!({"file_path": "a.py", "symbol_name": "f", "timeout": 60})).await;
    assert!(outline["hash"].is_i64() && outline["hash"] == symbol["hash"], "{outline:#} {symbol:#}");
    let text = place.text("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
    assert!(text.starts_with(&format!("a.py: 6 lines (ty) #{}\n", symbol["hash"])), "{text}");
    let edit = |line: usize, new: &str, hash: &Value| {
        let edits = json!([{"start_line": line, "new_text": new}]);
        json!({"file_path": "a.py", "edits": edits, "hash": hash})
    };
    // Of the same length, and the edit would fit.
    place.write("a.py", "def f():\n    return 3\n\n\ndef g():\n    return 2\n");
    let refused = place.call("lcp_apply_edit", edit(2, "    return 4", &symbol["hash"])).await;
    assert_eq!(refused["code"], "changed_meanwhile");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .ends_with("a.py has changed since it was read; nothing was changed.")
    );
    assert_eq!(refused["hint"], "Read the place again, and edit with the hash of that answer.");
    let again = place.ok("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
    let made = place.ok("lcp_apply_edit", edit(2, "    return 4", &again["hash"])).await;
    // The answer of an edit is as good as a read.
    place.ok("lcp_apply_edit", edit(6, "    return 5", &made["hash"])).await;
    assert_eq!(read(&place, "a.py"), "def f():\n    return 4\n\n\ndef g():\n    return 5\n");
}

#[tokio::test]
async fn a_change_of_several_files_is_undone_whole_or_not_at_all() {
    let place = place();
    let rename = |apply: Option<&str>| json!({"symbol_name": "price", "context_file": "main.py", "new_name": "cost", "apply": apply, "timeout": 60});
    let preview = place.ok("lcp_rename", rename(None)).await;
    place.ok("lcp_rename", rename(preview["token"].as_str())).await;
    let edits = json!([{"start_line": 2, "new_text": "# here"}]);
    place.ok("lcp_apply_edit", json!({"file_path": "main.py", "edits": edits})).await;
    let texts = || (read(&place, "lib.py"), read(&place, "main.py"));
    let changed = texts();

    let others = place.call_of("two", "lcp_undo", json!({})).await;
    assert_eq!((others["code"].as_str(), texts()), (Some("nothing_to_undo"), changed));
    let undone = place.ok("lcp_undo", json!({})).await;
    assert_eq!(undone["data"], json!([{"file": "main.py", "lines": [2]}]));
    let renamed = (LIB.replace("price", "cost"), MAIN.replace("price", "cost"));
    assert_eq!(texts(), renamed);

    // Somebody saves one of them.
    place.write("lib.py", "def cost(item): ...\n");
    let refused = place.call("lcp_undo", json!({})).await;
    assert_eq!(refused["code"], "changed_meanwhile");
    let message = refused["message"].as_str().unwrap();
    assert!(message.ends_with("lib.py has changed since; nothing was undone."), "{message}");
    assert_eq!(read(&place, "main.py"), renamed.1, "whole or not at all");
    place.write("lib.py", &renamed.0);
    let undone = place.ok("lcp_undo", json!({})).await;
    assert_eq!(undone["data"].as_array().map(Vec::len), Some(2), "{undone:#}");
    assert_eq!(texts(), (LIB.to_owned(), MAIN.to_owned()));
    let nothing = place.call("lcp_undo", json!({})).await;
    assert_eq!(nothing["code"], "nothing_to_undo", "an undo is none of the changes: {nothing:#}");
    let answer = place.ok("lcp_get_diagnostics", json!({"file_path": "main.py", "timeout": 60})).await;
    assert_eq!(answer["total"], 0, "{answer}");
}

/// Beside what a shell would cost: `git diff` to look, `git checkout` or a patch to take it back.
#[tokio::test]
async fn an_undo_costs_a_model_little() {
    let place = place();
    let edits = json!([{"start_line": 2, "new_text": "# here"}]);
    place.ok("lcp_apply_edit", json!({"file_path": "main.py", "edits": edits})).await;
    let count = |text: &str| tiktoken_rs::cl100k_base_singleton().encode_ordinary(text).len();
    let definition = serde_json::to_string(CATALOGUE.find("lcp_undo").unwrap().tool()).unwrap();
    let answer = place.text("lcp_undo", json!({})).await;
    assert!(count(&definition) <= 100 && count(&answer) <= 20, "{definition}\n{answer}");
}
