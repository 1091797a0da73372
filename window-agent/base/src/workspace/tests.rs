//! Reading launch.json and finding files, on folders made for each test.

use std::fs;

use expect_test::{Expect, expect};

use super::*;

/// A workspace of two folders with the given files.
fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, Workspace) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("app")).unwrap();
    fs::create_dir_all(dir.path().join("lib")).unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let workspace = Workspace::open(&[dir.path().join("app"), dir.path().join("lib")]).unwrap();
    (dir, workspace)
}

fn show<T: std::fmt::Debug>(root: &Path, result: Result<T, Fault>) -> String {
    let text = match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => {
            format!(
                "{}: {} {} {:?}",
                error.kind,
                error.message,
                error.hint.unwrap_or_default(),
                error.details
            )
        }
    };
    text.replace(&*fs::canonicalize(root).unwrap().to_string_lossy(), "ROOT")
}

#[test]
fn a_folder_that_is_not_there_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let (there, gone) = (root.join("there"), root.join("gone"));
    fs::create_dir(&there).unwrap();
    let workspace = Workspace::open(&[gone.clone(), there.clone()]).unwrap();
    assert_eq!(workspace.folder_paths(), [there.display().to_string()]);
    let error = Workspace::open(std::slice::from_ref(&gone)).unwrap_err();
    assert!(error.to_string().starts_with(&*gone.to_string_lossy()), "{error}");
    assert!(Workspace::open(&[]).unwrap().folders().is_empty());
    let (workspace, missing) = Workspace::open_some(std::slice::from_ref(&gone));
    assert_eq!((workspace.folders().len(), missing), (0, vec![gone]));
}

#[test]
fn the_coordinator_is_told_what_it_takes() {
    let dir = tempfile::tempdir().unwrap();
    let mut folders: Vec<PathBuf> = (0..70).map(|n| dir.path().join(format!("f{n}"))).collect();
    folders.insert(0, dir.path().join("two\nlines"));
    for folder in &folders {
        fs::create_dir(folder).unwrap();
    }
    let workspace = Workspace::open(&folders).unwrap();
    assert_eq!(workspace.folders().len(), 71, "files are found in all of them");
    let told = workspace.folder_paths();
    assert_eq!(told.len(), 64);
    assert!(told[0].ends_with("f0") && told[63].ends_with("f63"), "{told:?}");
}

const TREE: &[(&str, &str)] = &[
    ("app/main.py", ""),
    ("app/src/util.py", ""),
    ("app/src/deep/util.py", ""),
    ("app/src/deep/only.py", ""),
    ("lib/main.py", ""),
    ("lib/Reader.py", ""),
    ("lib/.gitignore", "build/\n"),
    ("lib/build/made.py", ""),
];

#[tokio::test]
async fn files_are_found_by_path_address_and_end() {
    let (dir, workspace) = workspace(TREE);
    let root = fs::canonicalize(dir.path()).unwrap();
    let absolute = root.join("app/src/util.py").display().to_string();
    let address = format!("file://localhost{absolute}");
    let elsewhere = format!("file://elsewhere{absolute}");
    let remote = format!("vscode-remote://wsl%2Bubuntu{absolute}");
    let mut lines = String::new();
    for given in [
        absolute.as_str(),
        address.as_str(),
        elsewhere.as_str(),
        remote.as_str(),
        "src/util.py",
        "deep/util.py",
        "only.py",
        "only",
        "reader.py",
        "app/main.py",
        "lib/main.py",
        "main.py",
        "util.py",
        "build/made.py",
        "made.py",
        "nothing.py",
        "src/deep",
        "/no/where/only.py",
        "https://example.org/x.py",
        "",
    ] {
        let shown = show(dir.path(), workspace.resolve_file(given).await);
        lines.push_str(&format!("{given} -> {shown}\n").replace(&*root.to_string_lossy(), "ROOT"));
    }
    expect![[r#"
        ROOT/app/src/util.py -> "ROOT/app/src/util.py"
        file://localhostROOT/app/src/util.py -> "ROOT/app/src/util.py"
        file://elsewhereROOT/app/src/util.py -> invalid_path: "file://elsewhereROOT/app/src/util.py" is a file of "elsewhere", not of this window's machine. Give an absolute path, or one relative to the window's folder. {}
        vscode-remote://wsl%2BubuntuROOT/app/src/util.py -> invalid_path: "vscode-remote://wsl%2BubuntuROOT/app/src/util.py" is a file of "wsl+ubuntu", not of this window's machine. Give an absolute path, or one relative to the window's folder. {}
        src/util.py -> "ROOT/app/src/util.py"
        deep/util.py -> "ROOT/app/src/deep/util.py"
        only.py -> "ROOT/app/src/deep/only.py"
        only -> "ROOT/app/src/deep/only.py"
        reader.py -> "ROOT/lib/Reader.py"
        app/main.py -> "ROOT/app/main.py"
        lib/main.py -> "ROOT/lib/main.py"
        main.py -> ambiguous_path: "main.py" could be any of 2 files. Give more of the path: use one of the candidates. {"candidates": Array [String("ROOT/app/main.py"), String("ROOT/lib/main.py")]}
        util.py -> ambiguous_path: "util.py" could be any of 2 files. Give more of the path: use one of the candidates. {"candidates": Array [String("ROOT/app/src/deep/util.py"), String("ROOT/app/src/util.py")]}
        build/made.py -> "ROOT/lib/build/made.py"
        made.py -> file_not_found: There is no file "made.py" in this window. Relative paths start at ROOT/app or ROOT/lib. {}
        nothing.py -> file_not_found: There is no file "nothing.py" in this window. Relative paths start at ROOT/app or ROOT/lib. {}
        src/deep -> not_a_file: "src/deep" is a folder, not a file. Relative paths start at ROOT/app or ROOT/lib. {}
        /no/where/only.py -> file_not_found: There is no file "/no/where/only.py" in this window. Did you mean one of the candidates? {"candidates": Array [String("ROOT/app/src/deep/only.py")]}
        https://example.org/x.py -> invalid_path: "https://example.org/x.py" is a `https:` address, not a file of this window. Give an absolute path, or one relative to the window's folder. {}
         -> invalid_path: "" is not a valid path. Give an absolute path, or one relative to the window's folder. {}
    "#]].assert_eq(&lines);
    // In VS Code's own window the remote machine is this one.
    let (editors, _) = Workspace::open_some(&[root.join("app")]);
    assert_eq!(editors.resolve_file(&remote).await.unwrap(), root.join("app/src/util.py"));
}

#[tokio::test]
async fn a_client_of_one_tree_is_led_to_no_file_of_another() {
    let files = ["who.py", "two/who.py", "two/src/in.py", "one/only.py", "one/who.py"];
    let (dir, workspace) = workspace(&files.map(|path| (path, "")));
    let root = fs::canonicalize(dir.path()).unwrap();
    let whole = Workspace { folders: [named(root.clone())].into(), ..workspace };
    let stand = |folder: &str, tree: &str| Stand { folder: root.join(folder), tree: Some(root.join(tree)) };
    let in_two = whole.clone().seen_from(&stand("two", "two"));
    let find = async |given: &str| show(&root, in_two.resolve_file(given).await);
    assert_eq!(find("who.py").await, r#""ROOT/two/who.py""#);
    assert_eq!(find("two/who.py").await, r#""ROOT/two/who.py""#, "as the window calls it");
    assert_eq!(find("in.py").await, r#""ROOT/two/src/in.py""#);
    assert_eq!(find("../who.py").await, r#""ROOT/who.py""#, "so it is meant");
    for given in ["only.py", "one/who.py"] {
        let shown = find(given).await;
        assert!(shown.starts_with("file_not_found") && !shown.contains("ROOT/one"), "{shown}");
        assert_eq!(find(&root.join("one/only.py").to_string_lossy()).await, r#""ROOT/one/only.py""#);
    }
    fs::remove_dir_all(root.join("two")).unwrap();
    for shown in [find("who.py").await, show(&root, in_two.resolve_exactly("who.py").await)] {
        let expected =
            r#"file_not_found: There is no file "who.py": ROOT/two is gone. Give an absolute path"#;
        assert!(shown.starts_with(expected), "{shown}");
    }
    // The window's own tree has one beside it.
    let above = whole.seen_from(&stand("one", ""));
    assert_eq!(show(&root, above.resolve_exactly("who.py").await), r#""ROOT/one/who.py""#);
    fs::remove_file(root.join("one/who.py")).unwrap();
    assert_eq!(show(&root, above.resolve_exactly("who.py").await), r#""ROOT/who.py""#);
}

async fn check_launch(files: &[(&str, &str)], name: &str, expected: Expect) {
    let (dir, workspace) = workspace(files);
    let all = show(dir.path(), workspace.configurations().await);
    let one = show(
        dir.path(),
        workspace.configuration(name, None, &Answers::default()).await.map(|one| {
            let steps: Vec<String> =
                one.steps.iter().map(|step| format!("{} {}", step.program, step.args.join(" "))).collect();
            (Value::Object(one.configuration).to_string(), one.notes, steps)
        }),
    );
    expected.assert_eq(&format!("{all}\n{one}\n"));
}

#[tokio::test]
async fn a_missing_or_broken_launch_json_is_told() {
    check_launch(&[], "a", expect![[r#"
        launch_json_missing: There is no ROOT/app/.vscode/launch.json. Create it, for example with: {"version":"0.2.0","configurations":[{"name":"Python: main.py","type":"debugpy","request":"launch","program":"${workspaceFolder}/main.py"}]} {}
        launch_json_missing: There is no ROOT/app/.vscode/launch.json. Create it, for example with: {"version":"0.2.0","configurations":[{"name":"Python: main.py","type":"debugpy","request":"launch","program":"${workspaceFolder}/main.py"}]} {}
    "#]]).await;
    check_launch(&[("app/.vscode/launch.json", "{\n \"configurations\": [,]}")], "a", expect![[r#"
        launch_json_broken: ROOT/app/.vscode/launch.json is broken: line 2, column 21: Unexpected comma. Correct it; comments and trailing commas are fine. {"column": Number(21), "line": Number(2)}
        launch_json_broken: ROOT/app/.vscode/launch.json is broken: line 2, column 21: Unexpected comma. Correct it; comments and trailing commas are fine. {"column": Number(21), "line": Number(2)}
    "#]]).await;
    check_launch(&[("app/.vscode/launch.json", "{\"configurations\": 3}")], "a", expect![[r#"
        launch_json_broken: ROOT/app/.vscode/launch.json is broken: `configurations` must be a list. It should look like: {"version":"0.2.0","configurations":[{"name":"Python: main.py","type":"debugpy","request":"launch","program":"${workspaceFolder}/main.py"}]} {}
        launch_json_broken: ROOT/app/.vscode/launch.json is broken: `configurations` must be a list. It should look like: {"version":"0.2.0","configurations":[{"name":"Python: main.py","type":"debugpy","request":"launch","program":"${workspaceFolder}/main.py"}]} {}
    "#]]).await;
    check_launch(
        &[
            ("app/.vscode/launch.json", "{"),
            ("lib/.vscode/launch.json", r#"{"configurations": [{"name": "a"}]}"#),
        ],
        "a",
        expect![[r#"
            Configurations { configurations: [(1, {"name": String("a")})], compounds: [], inputs: [], notes: ["ROOT/app/.vscode/launch.json is broken: line 1, column 2: Unterminated object."], broken: Some(Fault { kind: LaunchJsonBroken, message: "ROOT/app/.vscode/launch.json is broken: line 1, column 2: Unterminated object.", hint: Some("Correct it; comments and trailing commas are fine."), details: {"column": Number(2), "line": Number(1)} }), folders: [Folder { name: "app", path: "ROOT/app" }, Folder { name: "lib", path: "ROOT/lib" }] }
            ("{\"name\":\"a\"}", [], [])
        "#]],
    )
    .await;
    // The name may be in the file that cannot be read.
    let broken = &[
        ("app/.vscode/launch.json", "{"),
        ("lib/.vscode/launch.json", r#"{"configurations": [{"name": "Serve"}]}"#),
    ];
    check_launch(broken, "bill", expect![[r#"
        Configurations { configurations: [(1, {"name": String("Serve")})], compounds: [], inputs: [], notes: ["ROOT/app/.vscode/launch.json is broken: line 1, column 2: Unterminated object."], broken: Some(Fault { kind: LaunchJsonBroken, message: "ROOT/app/.vscode/launch.json is broken: line 1, column 2: Unterminated object.", hint: Some("Correct it; comments and trailing commas are fine."), details: {"column": Number(2), "line": Number(1)} }), folders: [Folder { name: "app", path: "ROOT/app" }, Folder { name: "lib", path: "ROOT/lib" }] }
        launch_json_broken: ROOT/app/.vscode/launch.json is broken: line 1, column 2: Unterminated object. Correct it; comments and trailing commas are fine. {"column": Number(2), "line": Number(1)}
    "#]]).await;
    check_launch(broken, "serve", expect![[r#"
        Configurations { configurations: [(1, {"name": String("Serve")})], compounds: [], inputs: [], notes: ["ROOT/app/.vscode/launch.json is broken: line 1, column 2: Unterminated object."], broken: Some(Fault { kind: LaunchJsonBroken, message: "ROOT/app/.vscode/launch.json is broken: line 1, column 2: Unterminated object.", hint: Some("Correct it; comments and trailing commas are fine."), details: {"column": Number(2), "line": Number(1)} }), folders: [Folder { name: "app", path: "ROOT/app" }, Folder { name: "lib", path: "ROOT/lib" }] }
        unknown_configuration: launch.json has no configuration "serve". Did you mean "Serve"? {"candidates": Array [String("Serve")]}
    "#]]).await;
}

#[tokio::test]
async fn a_configuration_is_chosen_and_resolved() {
    let launch = r#"{
        "configurations": [
            {"name": "Run", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/main.py",
             "envFile": "${workspaceFolder}/.env", "env": {"B": "mine"}, "preLaunchTask": "build",
             "python": "${config:python.defaultInterpreterPath}"},
            {"name": "File", "program": "${file}"},
        ],
        "compounds": [{"name": "Both", "configurations": ["Run", {"name": "File", "folder": "app"}]}],
    }"#;
    let files = &[
        ("app/.vscode/launch.json", launch),
        ("app/.vscode/settings.json", "{\"python\": {\"defaultInterpreterPath\": \"/py\"}, // x\n}"),
        ("app/.env", "A=1\nB=2\n"),
    ];
    check_launch(files, "Run", expect![[r#"
        Configurations { configurations: [(0, {"env": Object {"B": String("mine")}, "envFile": String("${workspaceFolder}/.env"), "name": String("Run"), "preLaunchTask": String("build"), "program": String("${workspaceFolder}/main.py"), "python": String("${config:python.defaultInterpreterPath}"), "request": String("launch"), "type": String("debugpy")}), (0, {"name": String("File"), "program": String("${file}")})], compounds: [(0, {"configurations": Array [String("Run"), Object {"folder": String("app"), "name": String("File")}], "name": String("Both")})], inputs: [], notes: [], broken: None, folders: [Folder { name: "app", path: "ROOT/app" }, Folder { name: "lib", path: "ROOT/lib" }] }
        ("{\"env\":{\"A\":\"1\",\"B\":\"mine\"},\"name\":\"Run\",\"program\":\"ROOT/app/main.py\",\"python\":\"/py\",\"request\":\"launch\",\"type\":\"debugpy\"}", ["preLaunchTask \"build\" was not run: tasks.json has no task `build`."], [])
    "#]]).await;
    check_launch(files, "run", expect![[r#"
        Configurations { configurations: [(0, {"env": Object {"B": String("mine")}, "envFile": String("${workspaceFolder}/.env"), "name": String("Run"), "preLaunchTask": String("build"), "program": String("${workspaceFolder}/main.py"), "python": String("${config:python.defaultInterpreterPath}"), "request": String("launch"), "type": String("debugpy")}), (0, {"name": String("File"), "program": String("${file}")})], compounds: [(0, {"configurations": Array [String("Run"), Object {"folder": String("app"), "name": String("File")}], "name": String("Both")})], inputs: [], notes: [], broken: None, folders: [Folder { name: "app", path: "ROOT/app" }, Folder { name: "lib", path: "ROOT/lib" }] }
        unknown_configuration: launch.json has no configuration "run". Did you mean "Run"? {"candidates": Array [String("Run"), String("File")]}
    "#]]).await;
    check_launch(files, "File", expect![[r#"
        Configurations { configurations: [(0, {"env": Object {"B": String("mine")}, "envFile": String("${workspaceFolder}/.env"), "name": String("Run"), "preLaunchTask": String("build"), "program": String("${workspaceFolder}/main.py"), "python": String("${config:python.defaultInterpreterPath}"), "request": String("launch"), "type": String("debugpy")}), (0, {"name": String("File"), "program": String("${file}")})], compounds: [(0, {"configurations": Array [String("Run"), Object {"folder": String("app"), "name": String("File")}], "name": String("Both")})], inputs: [], notes: [], broken: None, folders: [Folder { name: "app", path: "ROOT/app" }, Folder { name: "lib", path: "ROOT/lib" }] }
        unresolved_variable: ${file} in `program` means the file open in the editor, and this window has none. Name the file to debug, or use a configuration with a fixed `program`. {}
    "#]]).await;
    check_launch(files, "Both", expect![[r#"
        Configurations { configurations: [(0, {"env": Object {"B": String("mine")}, "envFile": String("${workspaceFolder}/.env"), "name": String("Run"), "preLaunchTask": String("build"), "program": String("${workspaceFolder}/main.py"), "python": String("${config:python.defaultInterpreterPath}"), "request": String("launch"), "type": String("debugpy")}), (0, {"name": String("File"), "program": String("${file}")})], compounds: [(0, {"configurations": Array [String("Run"), Object {"folder": String("app"), "name": String("File")}], "name": String("Both")})], inputs: [], notes: [], broken: None, folders: [Folder { name: "app", path: "ROOT/app" }, Folder { name: "lib", path: "ROOT/lib" }] }
        compound: "Both" is a compound, a group of configurations. Start its parts one by one: Run, File (app). {"candidates": Array [String("Run"), String("File (app)")]}
    "#]]).await;
    let twice = &[
        ("app/.vscode/launch.json", r#"{"configurations": [{"name": "a"}]}"#),
        ("lib/.vscode/launch.json", r#"{"configurations": [{"name": "a", "cwd": "${workspaceFolder}"}]}"#),
    ];
    check_launch(twice, "a", expect![[r#"
        Configurations { configurations: [(0, {"name": String("a")}), (1, {"cwd": String("${workspaceFolder}"), "name": String("a")})], compounds: [], inputs: [], notes: [], broken: None, folders: [Folder { name: "app", path: "ROOT/app" }, Folder { name: "lib", path: "ROOT/lib" }] }
        ambiguous_configuration: Several folders have a configuration "a". Use one of the candidates as configuration_name. {"candidates": Array [String("a (app)"), String("a (lib)")]}
    "#]]).await;
    check_launch(twice, "a (lib)", expect![[r#"
        Configurations { configurations: [(0, {"name": String("a")}), (1, {"cwd": String("${workspaceFolder}"), "name": String("a")})], compounds: [], inputs: [], notes: [], broken: None, folders: [Folder { name: "app", path: "ROOT/app" }, Folder { name: "lib", path: "ROOT/lib" }] }
        ("{\"cwd\":\"ROOT/lib\",\"name\":\"a\"}", [], [])
    "#]]).await;
}
