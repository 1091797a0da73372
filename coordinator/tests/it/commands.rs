//! What the command line says and answers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::process::{Child, Stdio};

use serde_json::json;

use crate::scene::{Answer, BATON, Scene};

#[test]
fn status_is_what_scripts_expect() {
    let scene = Scene::new();
    let not_running = scene.run(&["status", "--json"]);
    assert_eq!(not_running.code, 3);
    let nothing = json!({
        "running": false, "pid": null, "version": null, "generation": null, "url": null, "port": null,
        "live": null, "term": null, "awaiting": null, "windows": [],
    });
    assert_eq!(not_running.json(), nothing);
    assert_eq!(scene.run(&["status"]).code, 3);
    assert_eq!(scene.run(&["windows", "--json"]).json(), json!([]));

    let running = scene.up();
    let status = scene.run(&["status", "--json"]);
    assert_eq!(status.code, 0);
    let expected = json!({
        "running": true, "pid": running.pid, "version": env!("CARGO_PKG_VERSION"), "generation": running.generation,
        "url": format!("http://127.0.0.1:{}/mcp", running.port), "port": running.port,
        "live": null, "term": null, "awaiting": null, "windows": [],
    });
    assert_eq!(status.json(), expected);
}

#[test]
fn wrong_usage_is_64_and_help_is_0() {
    let scene = Scene::new();
    for args in
        [&["nonsense"][..], &[], &["take"], &["port", "80"], &["config", "emacs"], &["up", "--port", "x"]]
    {
        let answer = scene.run(args);
        assert_eq!(answer.code, 64, "{args:?}: {answer:?}");
        assert!(answer.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(scene.run(&["--help"]).code, 0);
    assert!(scene.run(&["--help"]).stdout.contains("Exit codes"));
    assert!(scene.run(&["config", "emacs"]).stderr.contains("claude-code"));
}

#[test]
fn verbs_say_what_to_try() {
    let scene = Scene::new();
    let answer = scene.run(&["take", "api"]);
    assert_eq!(answer.code, 3);
    assert!(answer.stderr.contains("`baton up`"), "{}", answer.stderr);
    scene.up();
    let answer = scene.run(&["take", "no such window"]);
    assert_eq!(answer.code, 1);
    assert!(answer.stderr.contains("baton windows"), "{}", answer.stderr);
    let answer = scene.run(&["window", "/no/such/folder"]);
    assert_eq!(answer.code, 64);
    let answer = scene.run(&["settings", "colour", "red"]);
    assert_eq!(answer.code, 64);
    assert!(answer.stderr.contains("routing"), "{}", answer.stderr);
    assert_eq!(scene.run(&["settings", "routing", "sideways"]).code, 64);
    assert_eq!(scene.run(&["settings", "routing", "any"]).json()["routing"], "any");
    assert_eq!(scene.run(&["down"]).code, 0);
    assert_eq!(scene.run(&["settings", "routing"]).code, 0);
    assert_eq!(scene.run(&["settings", "routing"]).json(), "any");
    assert_eq!(scene.run(&["down"]).code, 0, "to stop what does not run is no fault");
}

#[test]
fn settings_and_port_outlive_the_coordinator() {
    let scene = Scene::new();
    let first = scene.up();
    assert_eq!(scene.run(&["settings", "toolsets", "debugger,windows"]).code, 0);
    assert_eq!(scene.run(&["down"]).code, 0);
    assert_eq!(scene.up().port, first.port);
    assert_eq!(scene.run(&["settings", "toolsets"]).json(), json!(["debugger", "windows"]));
}

/// What is said of a client that sends its token to a port.
const ON_A_SHARED_MACHINE: &str = "on a shared machine, prefer --stdio: with a URL, the client sends its token to any \
                                   program listening on the port";

#[test]
fn a_client_is_configured_and_restored() {
    let scene = Scene::new();
    let file = scene.path(".cursor/mcp.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = "{\n    // mine\n    \"mcpServers\": {},\n}\n";
    std::fs::write(&file, text).unwrap();
    let printed = scene.run(&["config", "cursor"]);
    assert!(printed.stderr.contains(ON_A_SHARED_MACHINE), "{}", printed.stderr);
    let printed = printed.json();
    let wrote = scene.run(&["config", "cursor", "--write"]);
    assert_eq!(wrote.code, 0);
    assert!(wrote.stderr.contains(ON_A_SHARED_MACHINE), "{}", wrote.stderr);
    let written = std::fs::read_to_string(&file).unwrap();
    let token = scene.run(&["token"]).stdout;
    assert!(written.contains("// mine") && written.contains(token.trim()), "{written}");
    assert_eq!(
        printed["mcpServers"]["baton"]["headers"]["Authorization"],
        format!("Bearer {}", token.trim())
    );
    assert_eq!(scene.run(&["config", "cursor", "--write"]).code, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    assert_eq!(scene.run(&["config", "cursor", "--remove"]).code, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);

    std::fs::write(&file, "{").unwrap();
    let broken = scene.run(&["config", "cursor", "--write"]);
    assert_eq!(broken.code, 65, "{broken:?}");
    assert!(broken.stderr.contains("nothing was changed"), "{}", broken.stderr);
}

#[test]
fn a_command_needs_no_secret_and_no_coordinator() {
    let scene = Scene::new();
    for client in ["claude-code", "claude-desktop", "codex", "zed"] {
        let answer = scene.run(&["config", client, "--stdio"]);
        assert_eq!(answer.code, 0, "{answer:?}");
        assert!(!answer.stderr.contains(ON_A_SHARED_MACHINE), "it sends no token: {}", answer.stderr);
        let token = scene.run(&["token"]).stdout;
        // Whoever has another state folder is found there by the client's command as well.
        assert!(answer.stdout.contains("BATON_HOME"), "{}", answer.stdout);
        assert!(answer.stdout.contains(BATON) && !answer.stdout.contains(token.trim()), "{}", answer.stdout);
    }
    assert_eq!(scene.run(&["config", "claude-desktop", "--http"]).code, 64);
    assert_eq!(scene.run(&["status"]).code, 3, "nothing was started");
}

#[test]
fn logs_are_shown() {
    let scene = Scene::new();
    assert_eq!(scene.run(&["logs"]).code, 1);
    scene.up();
    let logs = scene.run(&["logs"]);
    assert!(logs.stdout.contains("the coordinator is ready"), "{logs:?}");
    let last = Answer::of(scene.command(&["logs", "-n", "1"]).output().unwrap());
    assert_eq!(last.stdout.lines().count(), 1);
}

#[test]
fn logs_are_searched_by_level_time_and_window() {
    let scene = Scene::new();
    scene.up();
    let old = "2026-01-01T00:00:00.000000Z  WARN member{window=shop-1}: baton_link: an old warning\n\
               2026-01-01T00:00:01.000000Z  INFO member{window=weather-2}: baton_link: an old word\n";
    std::fs::write(scene.home_path().join("logs/agent.2026-01-01.log"), old).unwrap();
    let shown = |arguments: &[&str]| {
        let answer = Answer::of(scene.command(&[&["logs"], arguments].concat()).output().unwrap());
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.stdout
    };
    assert!(shown(&["--since", "1h"]).contains("the coordinator is ready"));
    assert_eq!(shown(&["--since", "1h", "--agents"]), "");
    assert_eq!(shown(&["--agents", "--level", "warn"]).lines().count(), 1);
    assert!(shown(&["--window", "shop"]).contains("an old warning"));
    assert_eq!(shown(&["--window", "shop", "--level", "error"]), "");
    assert_eq!(
        shown(&["--agents", "--level", "info", "-n", "1"]),
        old.split_inclusive('\n').next_back().unwrap()
    );
    let wrong = Answer::of(scene.command(&["logs", "--since", "yesterday"]).output().unwrap());
    assert_eq!(wrong.code, 64);
    assert!(wrong.stderr.contains("yesterday is not a time, such as 90s, 30m, 2h, 1d"), "{wrong:?}");
}

#[test]
fn logs_are_followed_into_the_next_file() {
    let scene = Scene::new();
    // Makes the state folder.
    scene.run(&["token"]);
    let logs = scene.home_path().join("logs");
    std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&logs).unwrap();
    let file = |name: &str| logs.join(format!("baton.{name}.log"));
    let append = |name: &str, line: &str| {
        let mut log = std::fs::File::options().create(true).append(true).open(file(name)).unwrap();
        writeln!(log, "{line}").unwrap();
    };
    append("2026-01-01", "one");
    let mut process =
        Ended(scene.command(&["logs", "--follow", "-n", "1"]).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut next = || lines.next().expect("it goes on");
    assert_eq!(next(), "one");
    append("2026-01-01", "two");
    assert_eq!(next(), "two");
    // Full: it has another name, a last line, and one that follows.
    std::fs::rename(file("2026-01-01"), file("2026-01-01-120000")).unwrap();
    append("2026-01-01-120000", "three");
    append("2026-01-01", "four");
    assert_eq!((next(), next()), ("three".to_owned(), "four".to_owned()));
    // Two full ones between two looks.
    std::fs::rename(file("2026-01-01"), file("2026-01-01-120001")).unwrap();
    append("2026-01-01-120002", "five");
    append("2026-01-02", "six");
    assert_eq!((next(), next()), ("five".to_owned(), "six".to_owned()));
    std::fs::remove_file(file("2026-01-02")).unwrap();
    append("2026-01-03", "seven");
    assert_eq!(next(), "seven");
    std::fs::write(file("2026-01-03"), "8\n").unwrap();
    assert_eq!(next(), "8", "somebody emptied it");
}

/// Killed when the test is over.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whoever could put a link there must not have the logs written, or another file shown, through it.
#[test]
fn logs_are_not_followed_through_a_link() {
    let scene = Scene::new();
    let elsewhere = scene.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("baton.2026-01-01.log"), "not for you\n").unwrap();
    // Makes the state folder.
    scene.run(&["token"]);
    std::os::unix::fs::symlink(&elsewhere, scene.home_path().join("logs")).unwrap();
    scene.up();
    let answer = scene.run(&["logs"]);
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(!answer.stdout.contains("not for you"), "{answer:?}");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1, "nothing was written there");
}
