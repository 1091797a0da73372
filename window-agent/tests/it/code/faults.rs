//! What goes wrong: servers that die or hang, odd files, wrong names, many clients.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use baton_agent_base::process;
use baton_agent_code::ServerLimits;
use baton_agent_code::servers::{Places, ServerSpec, Table};
use baton_agent_tools::caller::Caller;
use baton_agent_tools::code;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::place::{Place, halt, servers, signal, until, until_asked};
use crate::support::standalone::Standalone;

fn shown(place: &Place, answer: &Value) -> String {
    let field = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let mut text = format!("{}: {} {}", field("code"), field("message"), field("hint"));
    if let Some(candidates) = answer["candidates"].as_array() {
        text.push_str(&format!(" {}", Value::from(candidates.clone())));
    }
    text.replace(place.root.to_str().unwrap(), "ROOT")
}

#[tokio::test]
async fn odd_files_get_a_clear_answer() {
    let place = Place::new(&[
        ("a.py", "def f(): pass\n"),
        ("x/same.py", "a = 1\n"),
        ("y/same.py", "a = 1\n"),
        ("empty.py", ""),
        ("with space/ä ö.py", "def größe(): pass\n"),
        ("mixed.py", "def a():\r\n    pass\n\n\rdef b():\n    return 1\r\n"),
        ("notes.txt", "function notes\n"),
        ("unknown.lua", "-- says hello\nlocal function hello(name)\n  return name\nend\n\nhello(1)\n"),
    ]);
    place.write("binary.py", b"\x7fELF\0\0");
    place.write("latin.py", b"# \xe4\n");
    place.write(
        "wide.py",
        [
            &b"\xff\xfe"[..],
            &"def wide(): pass\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
        ]
        .concat(),
    );
    place.write("marked.py", "\u{feff}def marked(): pass\n");
    std::fs::File::create(place.root.join("large.py")).unwrap().set_len(20 * 1024 * 1024).unwrap();
    std::os::unix::fs::symlink("loop.py", place.root.join("loop.py")).unwrap();
    std::os::unix::fs::symlink(place.root.join("x"), place.root.join("x/again")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("o.py"), "").unwrap();

    let check = async |file: &str, expected: Expect| {
        let answer = place.call("lcp_get_outline", json!({"file_path": file, "timeout": 60})).await;
        let shown = match answer["success"] == true {
            true => format!("{} {}", answer["data"], answer["note"].as_str().unwrap_or_default()),
            false => shown(&place, &answer).replace(outside.path().to_str().unwrap(), "OUTSIDE"),
        };
        expected.assert_eq(&shown);
    };
    check("x", expect![[r#"not_a_file: "x" is a folder, not a file. Relative paths start at ROOT."#]]).await;
    check("binary.py", expect!["not_text: ROOT/binary.py is a binary file. Name a source file."]).await;
    check(
        "latin.py",
        expect![
            "not_text: ROOT/latin.py is neither UTF-8 nor UTF-16 with a byte order mark. Name a source file."
        ],
    )
    .await;
    check("large.py", expect!["file_too_large: ROOT/large.py is larger than 8 MiB. Read the part that you need with another tool."]).await;
    check("loop.py", expect!["unreadable_file: ROOT/loop.py cannot be read: Too many levels of symbolic links (os error 40). Check the path and its permissions."]).await;
    check("same.py", expect![[r#"ambiguous_path: "same.py" could be any of 2 files. Give more of the path: use one of the candidates. ["x/same.py","y/same.py"]"#]]).await;
    check(
        "nothing.py",
        expect![[
            r#"file_not_found: There is no file "nothing.py" in this window. Relative paths start at ROOT."#
        ]],
    )
    .await;
    check(
        "a.pyy",
        expect![[r#"file_not_found: There is no file "a.pyy" in this window. Did you mean one of the candidates? ["a.py"]"#]],
    )
    .await;
    check(outside.path().join("o.py").to_str().unwrap(), expect!["outside_window: OUTSIDE/o.py is outside this window's folders. Open a window on its folder (`baton window DIR`), or read it with another tool."]).await;
    check("empty.py", expect!["[] "]).await;
    check("ä ö.py", expect![[r#"[{"kind":"function","name":"größe","range":{"end":{"character":17,"line":1},"start":{"character":0,"line":1}}}] "#]]).await;
    check("mixed.py", expect![[r#"[{"kind":"function","name":"a","range":{"end":{"character":8,"line":2},"start":{"character":0,"line":1}}},{"kind":"function","name":"b","range":{"end":{"character":12,"line":6},"start":{"character":0,"line":5}}}] "#]]).await;
    check("wide.py", expect![[r#"[{"kind":"function","name":"wide","range":{"end":{"character":16,"line":1},"start":{"character":0,"line":1}}}] "#]]).await;
    check("marked.py", expect![[r#"[{"kind":"function","name":"marked","range":{"end":{"character":18,"line":1},"start":{"character":0,"line":1}}}] "#]]).await;
    check("notes.txt", expect![[r#"[{"kind":"function","name":"notes","range":{"end":{"character":14,"line":1},"start":{"character":0,"line":1}}}] This is a text search: no language server is known for .txt files."#]]).await;
    check("unknown.lua", expect![[r#"[{"kind":"function","name":"hello","range":{"end":{"character":3,"line":4},"start":{"character":0,"line":2}}}] This is a text search: no language server is known for .lua files."#]]).await;
}

#[tokio::test]
async fn without_a_server_the_text_is_searched_and_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::write(root.join("a.py"), "# Says hello.\ndef hello(name):\n    return name\n\nhello(1)\n")
        .unwrap();
    std::fs::write(root.join("b.py"), "from a import hello\n").unwrap();
    let place = Place::with(&root, Places::default());
    let check = async |tool: &str, arguments: Value, expected: Expect| {
        let answer = place.call(tool, arguments).await;
        expected.assert_eq(&answer.to_string());
    };
    check("lcp_read_symbol", json!({"file_path": "a.py", "symbol_name": "hello"}), expect![[r##"{"data":"# Says hello.\ndef hello(name):\n    return name","end_line":3,"file":"a.py","freshness":"settled","hash":739339265,"kind":"function","note":"This is a text search: no language server for it is installed; `baton servers install ty` would.","source":"text_search","start_line":1,"success":true,"symbol":"hello"}"##]]).await;
    check("lcp_find_references", json!({"symbol_name": "hello", "context_file": "a.py", "limit": 2}), expect![[r##"{"data":[{"code_snippet":"# Says hello.","context":"# Says hello.","file":"a.py","line":1},{"code_snippet":"def hello(name):","context":"def hello(name):","file":"a.py","line":2}],"freshness":"settled","more":{"a.py":[5],"b.py":[1]},"note":"This is a text search: no language server for it is installed; `baton servers install ty` would.","source":"text_search","success":true,"symbol":"hello","total":4}"##]]).await;
    check("lcp_get_diagnostics", json!({"file_path": "a.py"}), expect![[r#"{"code":"no_server","hint":"lcp_get_outline and lcp_find_references still work, by text search.","message":"Cannot check a.py: no language server for it is installed; `baton servers install ty` would.","status":"error"}"#]]).await;
    check("lcp_get_diagnostics", json!({}), expect![[r#"{"code":"no_server","hint":"no language server for it is installed; `baton servers install ty` would","message":"No language server can check this project.","status":"error"}"#]]).await;
}

#[tokio::test]
async fn a_wrong_name_gets_the_nearest() {
    let place = Place::new(&[(
        "a.py",
        "class Reader:\n    def read(self): ...\n\nclass Writer:\n    def read(self): ...\n\ndef open_file(): ...\n\nother = 1\nopen_it = other\n",
    )]);
    let check = async |name: &str, expected: Expect| {
        let arguments = json!({"file_path": "a.py", "symbol_name": name, "timeout": 60});
        let answer = place.call("lcp_read_symbol", arguments).await;
        expected.assert_eq(&shown(&place, &answer));
    };
    check("read", expect![[r#"ambiguous_symbol: "read" could be any of 2 symbols. Use the full name of one of the candidates as symbol_name. ["Reader.read (line 2, method)","Writer.read (line 5, method)"]"#]]).await;
    check("open", expect![[r#"ambiguous_symbol: "open" could be any of 2 symbols. Use the full name of one of the candidates as symbol_name. ["open_file (line 7, function)","open_it (line 10, variable)"]"#]]).await;
    check(
        "raeder",
        expect![[
            r#"symbol_not_found: There is no symbol "raeder" in this file. Did you mean Reader? ["Reader"]"#
        ]],
    )
    .await;
    check("zzz", expect![[r#"symbol_not_found: There is no symbol "zzz" in this file. lcp_get_outline lists the file's symbols."#]]).await;
    let arguments = json!({"symbol_name": "zzz", "context_file": "a.py", "timeout": 60});
    let answer = place.call("lcp_find_references", arguments).await;
    assert_eq!(answer["code"], "symbol_not_found");
}

/// The servers that run for a place, by what stands in their environment.
fn server_pids(root: &std::path::Path) -> Vec<u32> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let cwd = std::fs::read_link(entry.path().join("cwd"));
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if cwd.is_ok_and(|cwd| cwd == root) && command.windows(6).any(|part| part == b"server") {
            pids.push(pid);
        }
    }
    pids
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_crash_costs_time_and_no_answer() {
    let place = Place::new(&[("a.py", "def f(): pass\n"), ("b.py", "from a import f\nf()\n")]);
    let find = async || {
        let arguments = json!({"symbol_name": "f", "context_file": "a.py", "timeout": 60});
        place.ok("lcp_find_references", arguments).await["total"].as_u64().unwrap()
    };
    assert_eq!(find().await, 3);
    for _ in 0..2 {
        let pids = server_pids(&place.root);
        assert_eq!(pids.len(), 1);
        kill(pids[0]);
        assert_eq!(find().await, 3);
    }
    // In the middle of a request: stopped, so that the request lies there, and then killed.
    let pid = server_pids(&place.root)[0];
    halt(&[pid as i32]).await;
    let (found, ()) = tokio::join!(find(), async {
        until_asked(&[pid as i32]).await;
        kill(pid);
    });
    assert_eq!(found, 3);
    let pids = server_pids(&place.root);
    place.window.code.stop_all().await;
    let is_alive = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}/exe")).exists();
    let gone = Instant::now() + Duration::from_secs(10);
    while pids.iter().any(is_alive) {
        assert!(Instant::now() < gone, "the server outlives its window");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_server_that_hangs_costs_no_more_than_the_timeout() {
    let place = Place::new(&[("a.py", "def f(): pass\n")]);
    place.ok("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
    let pid = server_pids(&place.root)[0] as i32;
    halt(&[pid]).await;
    let asked = Instant::now();
    let answer = place.call("lcp_get_outline", json!({"file_path": "a.py", "timeout": 1})).await;
    assert_eq!(answer["code"], "timeout", "{answer}");
    assert!(asked.elapsed() < Duration::from_secs(10));
    signal(&[pid], rustix::process::Signal::CONT);
    place.ok("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
}

/// A call that waits for it is told why; with more memory, or less to do, the next one is answered.
#[tokio::test]
async fn a_server_that_takes_too_much_memory_is_ended_with_its_children() {
    let spec =
        Table::open(&Places::default()).specs().iter().find(|spec| spec.name == "ty").cloned().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("servers.json");
    // The shell is small, what it starts is not.
    let behind_shell = ["/bin/sh", "-c", "\"$0\" server; true"].map(str::to_owned).into_iter();
    let program = servers().join("ty/bin/ty").display().to_string();
    let commands = vec![behind_shell.chain([program]).collect()];
    let own = ServerSpec { max_memory_mb: Some(8), commands, ..(*spec).clone() };
    std::fs::write(&config, serde_json::to_string(&[own]).unwrap()).unwrap();
    let root = folder.path().join("project");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a.py"), "def f(): pass\n").unwrap();
    let place = Place::with(&root, Places { config: Some(config), ..Places::default() });
    place.ok("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
    let pids = place.server_pids("ty");
    assert_eq!(pids.len(), 2, "{pids:?}");
    halt(&pids).await;
    let answer = place.call("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
    assert_eq!(answer["code"], "server_unavailable", "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("more than 8 MB"), "{answer}");
    until("both are gone", || pids.iter().all(|pid| !place.server_pids("ty").contains(pid))).await;
    place.ok("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
}

#[tokio::test]
async fn clients_are_told_that_a_server_takes_too_much_memory_before_it_is_ended_and_when() {
    let place = Place::new(&[("a.py", "def f(): pass\n")]);
    /// Calls until the answer tells something.
    async fn told(place: &Place, before: impl Fn()) -> String {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            before();
            let arguments = json!({"file_path": "a.py", "timeout": 60}).as_object().cloned().unwrap();
            let answer = code::call(&place.window, "lcp_get_outline", arguments, Caller::default()).await;
            let (answer, _) = answer.into_object();
            assert!(answer["success"] == true && Instant::now() < end, "{answer:?}");
            if let Some(notice) = answer.get("notice").and_then(Value::as_str) {
                return notice.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    place.ok("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
    let limit = || {
        let leader = u32::try_from(place.server_pids("ty")[0]).unwrap();
        let taken_mb = process::memory_of_group(leader) / (1024 * 1024);
        place
            .window
            .code
            .limit(&ServerLimits { memory_mb: taken_mb * 10 / 9 + 1, ..ServerLimits::default() });
    };
    let warned = told(&place, limit).await;
    assert!(warned.starts_with("The language server ty takes "), "{warned}");
    assert!(warned.ends_with("MB (setting server_memory_mb)."), "{warned}");
    let pids = place.server_pids("ty");
    place.window.code.limit(&ServerLimits { memory_mb: 1, ..ServerLimits::default() });
    until("it is ended", || place.server_pids("ty").iter().all(|pid| !pids.contains(pid))).await;
    let ended = told(&place, || {}).await;
    assert!(ended.contains("MB of memory and was ended (limit 1 MB, setting server_memory_mb)"), "{ended}");
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_the_server_serves_on() {
    let place = Place::new(&[("a.py", "def f(): pass\n")]);
    place.ok("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
    let pid = server_pids(&place.root)[0] as i32;
    halt(&[pid]).await;
    let cancelled = CancellationToken::new();
    let caller = Caller { cancelled: cancelled.clone(), ..Caller::default() };
    let arguments = json!({"file_path": "a.py", "timeout": 300}).as_object().cloned().unwrap();
    let call = code::call(&place.window, "lcp_get_outline", arguments, caller);
    let (answer, ()) = tokio::join!(call, async { cancelled.cancel() });
    assert_eq!(answer.into_object().0["code"], "interrupted");
    signal(&[pid], rustix::process::Signal::CONT);
    place.ok("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
}

#[tokio::test]
async fn a_server_that_never_comes_up_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::write(root.join("a.py"), "").unwrap();
    let config = root.join("servers.json");
    let own = |command: &str| json!([{"name": "ty", "languages": {"py": "python"}, "commands": [["/bin/sh", "-c", command]]}]);
    std::fs::write(&config, own("exit 3").to_string()).unwrap();
    let place = Place::with(&root, Places { config: Some(config), ..Places::default() });
    let answer = place.call("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
    assert_eq!(answer["code"], "server_unavailable", "{answer}");
    assert!(answer["hint"].as_str().unwrap().contains("try again"), "{answer}");
}

#[tokio::test]
async fn ten_clients_at_once() {
    let files: Vec<(String, String)> =
        (0..10).map(|idx| (format!("m{idx}.py"), format!("def f{idx}(): pass\n"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let place = Place::new(&files);
    let calls = (0..10).map(|idx| {
        let place = &place;
        async move {
            for round in 0..5 {
                let text = format!("def f{idx}(): pass\n\ndef g{round}(): pass\n");
                place.write(&format!("m{idx}.py"), text);
                let arguments = json!({"file_path": format!("m{idx}.py"), "format": "lines", "timeout": 60});
                let answer = place.ok("lcp_get_outline", arguments).await;
                assert_eq!(answer["data"], format!("1 function f{idx}\n3 function g{round}"));
            }
        }
    });
    futures_util::future::join_all(calls).await;
    assert_eq!(server_pids(&place.root).len(), 1);
}

#[tokio::test]
async fn files_that_come_and_go_are_known() {
    let place = Place::new(&[
        ("pkg/__init__.py", ""),
        ("pkg/a.py", "def f(): pass\n"),
        ("main.py", "from pkg.a import f\nf()\n"),
    ]);
    let total = async |file: &str| {
        let arguments = json!({"symbol_name": "f", "context_file": file, "timeout": 60});
        place.ok("lcp_find_references", arguments).await["total"].as_u64().unwrap()
    };
    assert_eq!(total("pkg/a.py").await, 3);
    place.write("second.py", "from pkg.a import f\nf()\n");
    assert_eq!(total("pkg/a.py").await, 5);
    std::fs::create_dir_all(place.root.join("new/deep")).unwrap();
    place.write("new/deep/third.py", "from pkg.a import f\n");
    assert_eq!(total("pkg/a.py").await, 6);
    std::fs::remove_file(place.root.join("second.py")).unwrap();
    assert_eq!(total("pkg/a.py").await, 4);
    std::fs::rename(place.root.join("pkg/a.py"), place.root.join("pkg/b.py")).unwrap();
    place.write("main.py", "from pkg.b import f\nf()\n");
    place.write("new/deep/third.py", "");
    assert_eq!(total("pkg/b.py").await, 3);
    let gone = place.call("lcp_get_outline", json!({"file_path": "pkg/a.py"})).await;
    assert_eq!(gone["code"], "file_not_found");
}

/// A server whose project is broken answers from what it has; that is told, and only until it is mended.
#[tokio::test]
async fn what_is_missing_because_the_project_is_broken_is_told() {
    let check = async |server: &str,
                       (manifest, broken, whole): (&str, &str, &str),
                       (file, text): (&str, &str)| {
        let place = Place::of_server(server, &[(manifest, broken), (file, text)]);
        let references = || {
            let arguments = json!({"symbol_name": "Secret", "context_file": file, "timeout": 60});
            place.call("lcp_find_references", arguments)
        };
        let answer = references().await;
        let told = answer["freshness"].as_str().or(answer["message"].as_str()).unwrap_or_default();
        assert!(told.contains("orkspace") || told.contains("modules have errors"), "{server}: {answer}");
        let begun = Instant::now();
        references().await;
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing is waited for: {:?}", begun.elapsed());
        place.write(manifest, whole);
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let answer = references().await;
            if answer["freshness"] == "settled" {
                assert_eq!(answer["total"], 2, "{answer}");
                break;
            }
            assert!(Instant::now() < until, "{server} never recovers: {answer}");
        }
    };
    let package = "[package]\nname = \"b\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    let needs = format!("{package}\n[dependencies]\nx = {{ path = \"nowhere\" }}\n");
    let source = ("src/lib.rs", "pub struct Secret;\npub fn tell(_: Secret) {}\n");
    check("rust-analyzer", ("Cargo.toml", &needs, package), source).await;
    let module = "module example.com/b\n\ngo 1.18\n";
    let needs = format!("{module}\nrequire example.com/nothing v1.0.0\n");
    let source = ("b.go", "package b\n\ntype Secret struct{}\n\nfunc Tell(s Secret) {}\n");
    check("gopls", ("go.mod", &needs, module), source).await;
}

/// Many files, of a server that cannot be asked about all of them at once.
#[tokio::test]
async fn problems_of_a_project_are_all_of_them_or_it_is_said_that_they_are_not() {
    const N_FILES: usize = 400;
    let place = Place::new(&[("tsconfig.json", "{\"compilerOptions\":{\"strict\":true}}")]);
    for file in 0..N_FILES {
        place.write(&format!("m{file:03}.ts"), format!("export const x{file}: number = {file};\n"));
    }
    place.write("zzz.ts", "import { x1 } from './m001';\nexport const wrong: string = x1;\n");
    let problems = async |timeout: u64| place.ok("lcp_get_diagnostics", json!({"timeout": timeout})).await;
    let whole = problems(120).await;
    assert_eq!((whole["freshness"].as_str(), whole["total"].as_u64()), (Some("settled"), Some(1)), "{whole}");
    assert_eq!(whole["data"][0]["file"], "zzz.ts");
    let pids = place.server_pids("tsc");
    assert!(!pids.is_empty());
    halt(&pids).await;
    let answer = place.call("lcp_get_diagnostics", json!({"timeout": 1})).await;
    let told = answer["freshness"].as_str().or(answer["code"].as_str()).unwrap_or_default();
    assert!(told.starts_with("incomplete") || told == "server_unavailable" || told == "timeout", "{answer}");
    signal(&pids, rustix::process::Signal::CONT);
}

/// Sources that are made, and that `.gitignore` names, are sources of others.
#[tokio::test]
async fn a_write_to_a_file_that_git_ignores_counts() {
    let place = Place::new(&[
        (".gitignore", "gen\n"),
        ("gen/g.py", "def made() -> int:\n    return 1\n"),
        ("uses.py", "from gen.g import made\n\nx: int = made()\n"),
    ]);
    let problems = async || {
        let arguments = json!({"file_path": "uses.py", "severity": "error", "timeout": 60});
        place.ok("lcp_get_diagnostics", arguments).await["total"].as_u64().unwrap()
    };
    assert_eq!(problems().await, 0);
    place.write("gen/g.py", "def made() -> str:\n    return ''\n");
    assert_eq!(problems().await, 1);
}

/// A server that is deaf does not see that its client has gone.
#[tokio::test]
async fn no_server_outlives_an_agent_that_is_killed() {
    let place = Place::new(&[("a.py", "def f(): pass\n")]);
    let mut agent = Standalone::start(&place.root, &[("BATON_SERVERS", servers())]);
    let answer = agent.call("lcp_get_outline", json!({"file_path": "a.py", "timeout": 60})).await;
    assert_eq!(answer["isError"], false, "{answer}");
    let pids = place.server_pids("ty");
    assert!(!pids.is_empty());
    halt(&pids).await;
    agent.kill();
    until("it is gone", || place.server_pids("ty").is_empty()).await;
}

/// Two projects of one language beside each other, and another language.
#[tokio::test]
async fn problems_of_all_projects_of_a_window_are_told() {
    let package = |name: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n")
    };
    let (one, two) = (package("one"), package("two"));
    let place = Place::new(&[
        ("one/Cargo.toml", &one),
        ("one/src/lib.rs", "pub fn f() -> u32 { \"no\" }\n"),
        ("two/Cargo.toml", &two),
        ("two/src/lib.rs", "pub fn f() -> u32 { \"no\" }\n"),
        ("a.ts", "export const x: number = 1;\n"),
        ("b.js", "export const y = 1;\n"),
        ("c.tsx", "export const z = 1;\n"),
        ("d.py", "x: int = 'no'\n"),
    ]);
    let answer = place.ok("lcp_get_diagnostics", json!({"severity": "error", "timeout": 120})).await;
    let files = answer["data"].as_array().unwrap().iter().map(|entry| entry["file"].as_str().unwrap());
    let files: std::collections::BTreeSet<&str> = files.collect();
    assert_eq!(
        files.into_iter().collect::<Vec<_>>(),
        ["d.py", "one/src/lib.rs", "two/src/lib.rs"],
        "{answer}"
    );
}

/// A project within the folder of another one: what is in it is told once, by its own server.
#[tokio::test]
async fn what_is_in_an_inner_project_is_told_once() {
    let place = Place::new(&[
        ("loose.py", "x: int = 'no'\n"),
        ("inner/pyproject.toml", ""),
        ("inner/src/shop/__init__.py", "def area_of_shop(): ...\n"),
        ("inner/main.py", "from shop import area_of_shop\n\ny: int = area_of_shop\n"),
    ]);
    for file in ["loose.py", "inner/main.py"] {
        place.ok("lcp_get_outline", json!({"file_path": file, "timeout": 60})).await;
    }
    let answer = place.ok("lcp_get_diagnostics", json!({"severity": "error", "timeout": 60})).await;
    let files: Vec<&str> =
        answer["data"].as_array().unwrap().iter().map(|entry| entry["file"].as_str().unwrap()).collect();
    assert_eq!(files, ["inner/main.py", "loose.py"], "{answer:#}");
    let arguments = json!({"to": "symbols", "symbol_name": "area_of_shop", "timeout": 60});
    assert_eq!(place.ok("lcp_navigate", arguments).await["total"], 1);
}

/// What rustup prints; it must succeed.
#[expect(clippy::disallowed_methods, reason = "it ends by itself")]
fn rustup(home: &Path, args: &[&str]) -> String {
    let output = Command::new("rustup").env("RUSTUP_HOME", home).args(args).output().unwrap();
    assert!(output.status.success(), "rustup {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A project may ask for a toolchain without rust-analyzer: then the default one's serves it. Without any, the answer
/// says what to install.
#[tokio::test]
async fn a_toolchain_without_the_server_is_served_by_the_default_one() {
    let homes = tempfile::tempdir().unwrap();
    let home = homes.path();
    let real = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let real = real.unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".rustup"));
    let with_server = rustup(&real, &["which", "rust-analyzer"]);
    let with_server = Path::new(&with_server).ancestors().nth(2).unwrap();
    // The compiler alone.
    let bare = homes.path().join("bare");
    for folder in ["bin", "lib"] {
        std::fs::create_dir_all(bare.join(folder)).unwrap();
    }
    for name in ["rustc", "cargo"] {
        std::os::unix::fs::symlink(with_server.join("bin").join(name), bare.join("bin").join(name)).unwrap();
    }
    rustup(home, &["toolchain", "link", "bare", bare.to_str().unwrap()]);
    rustup(home, &["toolchain", "link", "full", with_server.to_str().unwrap()]);
    rustup(home, &["default", "full"]);
    let place = Place::new(&[
        ("rust-toolchain.toml", "[toolchain]\nchannel = \"bare\"\n"),
        ("Cargo.toml", "[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n"),
        ("src/lib.rs", "pub fn price() -> u32 {\n    1\n}\n"),
    ]);
    // cargo, which runs this test, has chosen a toolchain.
    let variables = [("RUSTUP_HOME", home.to_owned()), ("RUSTUP_TOOLCHAIN", PathBuf::new())];
    let outlined = async || {
        let agent = Standalone::start(&place.root, &variables);
        agent.call("lcp_get_outline", json!({"file_path": "src/lib.rs", "timeout": 60})).await
    };
    let answer = outlined().await;
    assert_eq!(answer["structuredContent"]["source"], "rust-analyzer", "{answer}");
    std::fs::remove_file(place.root.join("rust-toolchain.toml")).unwrap();
    let answer = outlined().await;
    assert_eq!(answer["structuredContent"]["source"], "rust-analyzer", "{answer}");
    rustup(home, &["default", "bare"]);
    rustup(home, &["toolchain", "uninstall", "full"]);
    let answer = outlined().await;
    assert_ne!(answer["structuredContent"]["source"], "rust-analyzer", "{answer}");
    assert!(answer.to_string().contains("baton servers install rust-analyzer"), "{answer}");
}
