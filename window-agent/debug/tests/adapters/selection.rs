//! Which adapter is chosen for a program or a process, and what is said when there is none.

use std::path::Path;

use baton_agent_debug::Shelf;
use baton_agent_debug::adapters::wish::{Attach, Launch, Wish};
use baton_agent_debug::types::{Resume, Start, Waited};
use baton_agent_debug::{Debugger, DebuggerOptions};
use serde_json::json;

use crate::languages::{Language, workspace_root};
use crate::programs::{PATIENCE, wait_for};
use crate::quirks::{at, printed};
use crate::scenario::options;

fn launch(program: &Path) -> Wish {
    Wish::Launch(Launch { program: program.to_owned(), ..Launch::default() })
}

/// The type of the configuration that is made for a wish, or the error.
async fn chosen(debugger: &Debugger, wish: &Wish) -> String {
    match debugger.configure(wish).await {
        Ok(start) => start.configuration["type"].as_str().unwrap().to_owned(),
        Err(error) => format!("{error} {}", error.hint().unwrap_or_default()),
    }
}

#[tokio::test]
async fn a_program_is_known_by_its_name_its_first_line_its_form_and_its_project() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let debugger = Debugger::spawn(options(folder.path()));
    let (_, compiled) = Language::C.make(folder.path());
    write("gopher/go.mod", "module gopher\n");
    let in_go = folder.path().join("gopher/tool");
    std::fs::copy(&compiled, &in_go).unwrap();
    write("web/package.json", "{}");
    for (program, expected) in [
        (write("a.py", ""), "debugpy"),
        (write("a.ts", ""), "pwa-node"),
        (write("a.go", ""), "go"),
        (write("a.rs", ""), "gdb"),
        (write("a.sh", ""), "bash"),
        (write("A.java", ""), "java"),
        (write("tool", "#!/usr/bin/env -S python3 -u\n"), "debugpy"),
        (write("other", "#!/bin/bash\n"), "bash"),
        (compiled, "gdb"),
        (in_go, "go"),
        (write("web/bin/start", "no first line"), "pwa-node"),
        (write("README", "nothing is known"), "gdb"),
        (folder.path().join("gopher"), "go"),
    ] {
        assert_eq!(chosen(&debugger, &launch(&program)).await, expected, "{}", program.display());
    }
}

#[tokio::test]
async fn a_name_wins_and_an_unknown_one_lists_the_known() {
    let folder = tempfile::tempdir().unwrap();
    let debugger = Debugger::spawn(options(folder.path()));
    let named = |name: &str| {
        Wish::Launch(Launch {
            program: "/bin/true".into(),
            adapter: Some(name.to_owned()),
            ..Launch::default()
        })
    };
    assert_eq!(chosen(&debugger, &named("codelldb")).await, "lldb");
    let error = chosen(&debugger, &named("cobol")).await;
    assert!(error.contains("unknown debug adapter `cobol`; available: debugpy, js-debug, gdb"), "{error}");
}

#[tokio::test]
async fn a_process_is_known_by_its_program_and_a_port_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let debugger = Debugger::spawn(options(folder.path()));
    let attach = |pid, port| Wish::Attach(Attach { pid, port, ..Attach::default() });
    let mut python = std::process::Command::new("python3")
        .args(["-c", "import sys; sys.stdout.write('.'); sys.stdout.flush(); sys.stdin.read()"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Once it has printed it is Python, and no script that starts it.
    std::io::Read::read_exact(python.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    assert_eq!(chosen(&debugger, &attach(Some(python.id()), None)).await, "debugpy");
    assert_eq!(chosen(&debugger, &attach(Some(std::process::id()), None)).await, "gdb");
    assert_eq!(chosen(&debugger, &attach(None, Some(9229))).await, "pwa-node");
    assert_eq!(chosen(&debugger, &attach(None, Some(5678))).await, "debugpy");
    let error = chosen(&debugger, &attach(Some(u32::MAX / 4), None)).await;
    assert!(error.contains("there is no process"), "{error}");
    let error = chosen(&debugger, &attach(None, None)).await;
    assert!(error.contains("attach requires pid or port"), "{error}");
    drop(python.stdin.take());
    python.wait().unwrap();
}

#[tokio::test]
async fn without_an_adapter_the_error_says_what_is_there_and_how_to_get_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("sums.sh");
    std::fs::write(&program, "").unwrap();
    let empty = tempfile::tempdir().unwrap();
    let shelf = Shelf { folder: Some(empty.path().to_owned()), ..Shelf::default() };
    let bare = DebuggerOptions { shelf, search_path: Some("/nowhere".into()), ..options(folder.path()) };
    let debugger = Debugger::spawn(bare);
    assert_eq!(
        chosen(&debugger, &launch(&program)).await,
        "No debugger adapter available. Installed adapters: none. (bash-dap is not installed) \
         Run `baton adapters install bash-dap`."
    );
}

#[tokio::test]
async fn sources_and_what_is_not_compiled_are_refused_with_the_command_that_builds_them() {
    let folder = tempfile::tempdir().unwrap();
    let debugger = Debugger::spawn(options(folder.path()));
    for (name, expected) in [
        ("sums.c", "is source code; build it with debug information (cc -g -O0 -o sums"),
        ("sums.rs", "rustc -g -o sums"),
        ("Sums.java", "is not compiled; compile it with debug information (javac -g -d"),
    ] {
        let program = folder.path().join(name);
        std::fs::write(&program, "class Sums {}").unwrap();
        let start = debugger.configure(&launch(&program)).await.unwrap();
        let wait = baton_agent_debug::Wait {
            timeout: std::time::Duration::from_secs(30),
            cancelled: tokio_util::sync::CancellationToken::new(),
        };
        let error = debugger.start(start, wait).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// They run in the folder of their package, whichever of its files is named, and however VS Code writes it.
#[tokio::test]
async fn the_tests_of_a_package_of_go_are_debugged() {
    const TESTS: &str = "package mean

import (
\t\"os\"
\t\"testing\"
)

func TestMean(t *testing.T) {
\tif _, err := os.Stat(\"mean.go\"); err != nil {
\t\tt.Fatal(err)
\t}
\tif got := Mean([]int{6, 0}); got != 3 {
\t\tt.Fatal(got)
\t}
}
";
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("mean");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(folder.path().join("go.mod"), "module shop\n\ngo 1.19\n").unwrap();
    let source = own.join("mean.go");
    let text = "package mean\n\nfunc Mean(all []int) int {\n\treturn (all[0] + all[1]) / len(all)\n}\n";
    std::fs::write(&source, text).unwrap();
    std::fs::write(own.join("mean_test.go"), TESTS).unwrap();
    for (program, mode) in [("mean/mean_test.go", None), ("mean", Some("auto"))] {
        let debugger = Debugger::spawn(options(folder.path()));
        debugger.set_breakpoint(at(&source, 4)).await.unwrap();
        let mut start = debugger.configure(&launch(&folder.path().join(program))).await.unwrap();
        if let Some(mode) = mode {
            start.configuration.insert("mode".to_owned(), json!(mode));
        }
        let waited = debugger.start(start, wait_for(PATIENCE)).await;
        let Ok(Waited::Stopped(stop)) = waited else { panic!("{program}: {waited:?}") };
        assert_eq!(stop.line, Some(4), "{program}");
        let waited =
            debugger.resume(Some(&stop.session), stop.thread_id, Resume::Continue, wait_for(PATIENCE)).await;
        let Ok(Waited::Completed(ended)) = waited else { panic!("{program}: {waited:?}") };
        let said = printed(&debugger, &ended.session).await;
        assert!(said.contains("PASS"), "{program}: {said}");
    }
}

/// As VS Code's other debuggers, and people, call them.
#[tokio::test]
async fn a_configuration_is_known_by_other_names_of_its_type() {
    for (language, kinds) in [
        (Language::TYPESCRIPT, ["typescript", "pwa-node"]),
        (Language::JAVASCRIPT, ["javascript", "node"]),
        (Language::C, ["c", "cppvsdbg"]),
        (Language::CPP, ["cpp", "cppdbg"]),
        (Language::RUST, ["rust", "lldb"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (_, program) = language.make(folder.path());
        for kind in kinds {
            let debugger = Debugger::spawn(options(folder.path()));
            let configuration = json!({
                "type": kind, "request": "launch", "name": kind, "program": program, "stopAtEntry": false,
            });
            let start = Start {
                configuration: configuration.as_object().unwrap().clone(),
                name: kind.to_owned(),
                no_debug: true,
                ..Start::default()
            };
            let waited = debugger.start(start, wait_for(PATIENCE)).await;
            let Ok(Waited::Completed(completed)) = waited else { panic!("{kind}: {waited:?}") };
            assert!(completed.output.text.contains("total"), "{kind}: {completed:?}");
        }
    }
}

/// The program's own node is asked for its version; this one runs nothing else.
#[tokio::test]
async fn typescript_that_node_does_not_run_is_refused_with_what_helps() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("shop.ts");
    std::fs::write(&program, "const sum: number = 1;\nconsole.log(sum);\n").unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let node = bin.join("node");
    std::fs::write(&node, "#!/bin/sh\necho v20.20.2\n").unwrap();
    std::fs::set_permissions(&node, std::fs::Permissions::from_mode(0o755)).unwrap();
    let started = async |more: serde_json::Value| {
        let search_path = Some(bin.clone().into_os_string());
        let debugger = Debugger::spawn(DebuggerOptions { search_path, ..options(folder.path()) });
        let mut start = debugger.configure(&launch(&program)).await.unwrap();
        start.configuration.extend(more.as_object().unwrap().clone());
        debugger.start(start, wait_for(PATIENCE)).await.map(drop).map_err(|error| error.to_string())
    };
    let refused = started(json!({})).await.unwrap_err();
    assert_eq!(
        refused,
        "shop.ts is TypeScript, which node 20.20.2 cannot run; compile it with source maps (tsc --sourceMap), \
         or run it by tsx with `arguments` {\"runtimeArgs\": [\"--import\", \"tsx\"]}, or use node 22.18 or later"
    );
    // Whoever says how it is run, or has compiled it, is not asked: what this node says then is another error.
    for how in [
        json!({"runtimeArgs": ["--import", "tsx"]}),
        json!({"outFiles": ["/elsewhere/**/*.js"]}),
        json!({"preLaunchTask": "compile"}),
    ] {
        let other = started(how).await;
        assert!(other.as_ref().err().is_none_or(|error| !error.contains("TypeScript")), "{other:?}");
    }
    assert_eq!(started(json!({"preLaunchTask": null})).await, Err(refused));
    std::fs::create_dir(folder.path().join("dist")).unwrap();
    std::fs::write(folder.path().join("dist/shop.js"), "").unwrap();
    let other = started(json!({})).await;
    assert!(other.as_ref().err().is_none_or(|error| !error.contains("TypeScript")), "{other:?}");
}

/// As the refusal says; node itself has no types in a `.tsx`.
#[tokio::test]
async fn typescript_is_debugged_under_tsx() {
    let folder = tempfile::tempdir().unwrap();
    let modules = workspace_root().join(".cache/typescript/node_modules");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    let program = folder.path().join("shop.tsx");
    let text = "enum Kind { Book = 7 }\nfunction price(kind: Kind) {\n  const own: number = kind * 6;\n  \
                console.log(own);\n}\nprice(Kind.Book);\n";
    std::fs::write(&program, text).unwrap();
    let debugger = Debugger::spawn(options(folder.path()));
    let start = debugger.configure(&launch(&program)).await.unwrap();
    let refused = debugger.start(start.clone(), wait_for(PATIENCE)).await.unwrap_err().to_string();
    let advice = r#"{"runtimeArgs": ["--import", "tsx"]}"#;
    assert!(refused.ends_with(&format!("run it by tsx with `arguments` {advice}")), "{refused}");
    debugger.set_breakpoint(at(&program, 4)).await.unwrap();
    let mut start = start;
    start.configuration.extend(serde_json::from_str::<serde_json::Map<_, _>>(advice).unwrap());
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    assert_eq!(stop.call_stack[0].line_number, 4, "{stop:#?}");
    let variables = &stop.top_frame_variables.as_ref().unwrap().variables;
    let own = variables.iter().find(|variable| variable.name == "own").unwrap();
    assert_eq!(own.value, "42");
    debugger.stop_all().await;
}
