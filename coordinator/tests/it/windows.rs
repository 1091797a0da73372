//! The supervisor of a headless window, with agents that are scripts.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::scene::{Answer, Scene, await_that};

/// A window whose agent is this script.
fn window(scene: &Scene, script: &str) -> Child {
    write_agent(scene, script);
    open_window(scene)
}

/// An agent that is a script; each run of it first adds its arguments to the file `runs`.
/// It is written before the first window opens: a program that is being written cannot be run.
fn write_agent(scene: &Scene, script: &str) {
    let agent = scene.path("agent");
    let runs = scene.path("runs");
    let text = format!(
        "#!/bin/sh\necho \"$@\" >> '{}'\nn=$(wc -l < '{}')\n{script}\n",
        runs.display(),
        runs.display()
    );
    std::fs::write(&agent, text).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::create_dir_all(scene.path("project")).unwrap();
}

fn open_window(scene: &Scene) -> Child {
    let mut command = scene.command(&["window", "--name", "my api"]);
    command.arg(scene.path("project")).env("BATON_AGENT_BIN", scene.path("agent"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn runs(scene: &Scene) -> Vec<String> {
    let text = std::fs::read_to_string(scene.path("runs")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn an_agent_that_wants_or_needs_to_is_started_again_under_the_same_id() {
    let scene = Scene::new();
    // It restarts, crashes, is killed, and then ends for good.
    let window = window(&scene, "case $n in 1) exit 75;; 2) exit 3;; 3) kill -9 $$;; *) exit 0;; esac");
    let answer = Answer::of(window.wait_with_output().unwrap());
    assert_eq!(answer.code, 0, "{answer:?}");
    let runs = runs(&scene);
    assert_eq!(runs.len(), 4, "{runs:?}");
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    let project = std::fs::canonicalize(scene.path("project")).unwrap();
    let folder = format!("--folder {}", project.display());
    assert!(runs[0].starts_with("--window project-") && runs[0].contains(&folder), "{}", runs[0]);
    assert!(runs[0].contains("--name my api --kind headless"), "{}", runs[0]);
    assert!(runs[0].ends_with("--auto-start true"), "{}", runs[0]);
    assert!(
        answer.stderr.contains("exit code 3") && answer.stderr.contains("because of a signal"),
        "{}",
        answer.stderr
    );
    assert!(answer.stdout.is_empty());
}

#[test]
fn the_end_of_the_window_is_the_end_of_its_agent() {
    for by in [Signal::TERM, Signal::INT, Signal::KILL] {
        let scene = Scene::new();
        let left = scene.path("left");
        // An agent ends when its input does; this one says so.
        // It prints nothing: its output may have lost its reader by now.
        let script = format!("cat; : > '{}'", left.display());
        let mut window = window(&scene, &script);
        await_that("the agent runs", || runs(&scene).len() == 1);
        kill_process(Pid::from_raw(window.id().try_into().unwrap()).unwrap(), by).unwrap();
        window.wait().unwrap();
        await_that("the agent ends", || left.exists());
        assert_eq!(runs(&scene).len(), 1, "{by:?}");
    }
}

#[test]
fn an_agent_that_does_not_end_is_ended() {
    let scene = Scene::new();
    let mut window = window(&scene, "trap '' TERM INT; while :; do sleep 1; done");
    await_that("the agent runs", || runs(&scene).len() == 1);
    kill_process(Pid::from_raw(window.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
    assert!(window.wait().unwrap().success());
}

#[test]
fn two_windows_on_one_folder_have_two_ids() {
    let scene = Scene::new();
    write_agent(&scene, "cat");
    let mut windows = [open_window(&scene), open_window(&scene)];
    await_that("both agents run", || runs(&scene).len() == 2);
    let runs = runs(&scene);
    assert_ne!(runs[0], runs[1]);
    for window in &mut windows {
        kill_process(Pid::from_raw(window.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
        window.wait().unwrap();
    }
}

#[test]
fn a_missing_agent_is_said() {
    let scene = Scene::new();
    std::fs::create_dir_all(scene.path("project")).unwrap();
    let mut command = scene.command(&["window"]);
    command.arg(scene.path("project")).env("BATON_AGENT_BIN", scene.path("nothing"));
    let answer = Answer::of(command.output().unwrap());
    assert_eq!(answer.code, 69, "{answer:?}");
    assert!(answer.stderr.contains("reinstall Baton"), "{}", answer.stderr);
}
