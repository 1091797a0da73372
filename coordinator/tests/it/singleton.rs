//! One coordinator, always: many starters, a lost lock, a hung one, a killed one.

use std::process::Stdio;
use std::time::{Duration, Instant};

use baton_link::connection::Connection;
use baton_link::find::{FindError, FindOptions, find_or_start};
use baton_link::process::{is_running, kill_verified};
use rustix::process::{Pid, Signal, kill_process};

use crate::scene::{Answer, BATON, Scene, await_end, await_that};

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

/// Until each of fifty starters has its answer.
const F4_BOUND: Duration = Duration::from_millis(500);

#[test]
fn f4_fifty_starters_get_one_coordinator() {
    // The machine may be busy; not all the time.
    let taken: Vec<Duration> =
        (0..5).map(|_| fifty_starters()).take_while(|taken| *taken >= F4_BOUND).collect();
    assert!(taken.len() < 5, "{taken:?}");
}

/// They get one coordinator; how long that took.
fn fifty_starters() -> Duration {
    let scene = Scene::new();
    let start = Instant::now();
    let starters: Vec<_> = (0..50)
        .map(|_| scene.command(&["up"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    let answers: Vec<_> =
        starters.into_iter().map(|starter| Answer::of(starter.wait_with_output().unwrap())).collect();
    let taken = start.elapsed();
    let urls: std::collections::BTreeSet<_> = answers
        .into_iter()
        .map(|answer| {
            assert_eq!(answer.code, 0, "{}", answer.stderr);
            answer.stdout
        })
        .collect();
    assert_eq!(urls.len(), 1);
    assert_eq!(scene.logs().matches("the coordinator is ready").count(), 1);
    taken
}

#[test]
fn f1_a_killed_coordinator_has_a_successor_on_the_same_port() {
    let scene = Scene::new();
    let first = scene.up();
    let token = scene.run(&["token"]).stdout;
    assert!(kill_verified(first.pid, first.pid_start));
    let second = scene.up();
    assert_eq!(second.port, first.port);
    assert!(second.generation > first.generation);
    assert_ne!(second.instance, first.instance);
    assert_eq!(scene.run(&["token"]).stdout, token);
}

#[test]
fn f5_a_stopped_coordinator_is_replaced() {
    let scene = Scene::new();
    let first = scene.up();
    signal(first.pid, Signal::STOP);
    let status = scene.run(&["status"]);
    assert_eq!(status.code, 3, "a question kills nobody: {status:?}");
    assert!(status.stderr.contains("is not responding"), "{status:?}");
    assert!(is_running(first.pid, first.pid_start));
    let second = scene.up();
    assert!(!is_running(first.pid, first.pid_start));
    assert_eq!(second.port, first.port);
    assert!(second.generation > first.generation);
}

#[test]
fn f12_a_coordinator_without_its_lock_file_ends_and_has_one_successor() {
    let scene = Scene::new();
    let first = scene.up();
    std::fs::remove_file(scene.home().lock_path()).unwrap();
    assert!(await_end(&first) < Duration::from_secs(10));
    let second = scene.up();
    assert_eq!(second.port, first.port);
    assert!(second.generation > first.generation);

    std::fs::rename(scene.home().lock_path(), scene.path("elsewhere")).unwrap();
    std::fs::write(scene.home().lock_path(), "").unwrap();
    await_end(&second);
    assert!(scene.up().generation > second.generation);
}

#[tokio::test]
async fn f12_a_deleted_folder_costs_neither_port_nor_token() {
    let scene = Scene::new();
    let first = scene.up();
    let options = FindOptions { program: Some(BATON.into()), ..FindOptions::new(scene.home()) };
    drop(find_or_start(&options).await.unwrap());
    let token = scene.run(&["token"]).stdout;
    // What is just being started may write a file meanwhile.
    while scene.home_path().exists() {
        let _ = std::fs::remove_dir_all(scene.home_path());
    }
    await_end(&first);
    // What an agent does that was connected before.
    let connection = find_or_start(&options).await.unwrap();
    assert_eq!(connection.hello().port, first.port);
    assert_eq!(scene.run(&["token"]).stdout, token);
}

#[test]
fn f13_a_discovery_file_that_lies_is_ignored() {
    let scene = Scene::new();
    let mut innocent = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let pid_start = baton_link::process::start_time(innocent.id()).unwrap();
    let lie = |pid_start: u64| {
        let (pid, port) = (innocent.id(), silent.local_addr().unwrap().port());
        format!(
            r#"{{"instance":"x","pid":{pid},"pid_start":{pid_start},"generation":7,"port":{port},"version":"0","protocol":[1,1]}}"#
        )
    };
    let huge = " ".repeat(1 << 20);
    for text in ["", "{", "null", &huge, &lie(pid_start + 1), &lie(pid_start)] {
        scene.home().replace("discovery.json", text.as_bytes()).unwrap();
        let running = scene.up();
        assert!(innocent.try_wait().unwrap().is_none(), "a process of somebody else was ended");
        assert!(kill_verified(running.pid, running.pid_start));
        await_end(&running);
    }
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[test]
fn f3_a_coordinator_killed_while_it_starts_leaves_nothing_torn() {
    let scene = Scene::new();
    scene.up();
    assert_eq!(scene.run(&["down"]).code, 0);
    for micros in (0..20_000).step_by(1_000) {
        let mut starting =
            scene.command(&["serve"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(micros));
        starting.kill().unwrap();
        starting.wait().unwrap();
    }
    let generation = scene.up().generation;
    assert!(generation >= 2, "{generation}");
    assert!(!scene.home_path().join("state.json.broken").exists());
}

#[test]
fn a_second_coordinator_ends_with_75() {
    let scene = Scene::new();
    scene.up();
    let second = scene.run(&["serve"]);
    assert_eq!(second.code, 75);
    assert!(second.stderr.contains("already running"), "{}", second.stderr);
}

#[test]
fn a_signal_ends_it_and_the_lock_file_stays() {
    let scene = Scene::new();
    let running = scene.up();
    signal(running.pid, Signal::TERM);
    await_end(&running);
    assert_eq!(scene.home().discovery(), None);
    assert!(scene.home().lock_path().exists());
}

#[tokio::test]
async fn whoever_was_connected_respects_that_the_user_stopped_it() {
    let scene = Scene::new();
    scene.up();
    let options = FindOptions { program: Some(BATON.into()), ..FindOptions::new(scene.home()) };
    drop(find_or_start(&options).await.unwrap());
    assert_eq!(scene.run(&["down"]).code, 0);
    assert!(matches!(find_or_start(&options).await, Err(FindError::Stopped)));
    assert_eq!(scene.run(&["status"]).code, 3);
    let again = scene.up();
    assert_eq!(find_or_start(&options).await.unwrap().hello().instance, again.instance);
}

#[tokio::test]
async fn the_daemon_inherits_no_descriptor_and_has_its_own_session() {
    let scene = Scene::new();
    let home = scene.home();
    let held = std::fs::File::create(scene.path("held")).unwrap();
    rustix::io::fcntl_setfd(&held, rustix::io::FdFlags::empty()).unwrap();
    let options =
        FindOptions { program: Some(BATON.into()), port: Some(0), ..FindOptions::new(home.clone()) };
    let connection = find_or_start(&options).await.unwrap();
    let pid = connection.hello().pid;
    let raw = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    assert_eq!(rustix::process::getsid(Some(raw)).unwrap(), raw);
    if cfg!(target_os = "linux") {
        let targets: Vec<_> = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap_or_default())
            .collect();
        assert!(!targets.contains(&scene.path("held")), "{targets:?}");
        let is_pipe = |target: &&std::path::PathBuf| target.to_string_lossy().starts_with("pipe:");
        assert_eq!(targets.iter().find(is_pipe), None, "the handshake's pipe is closed");
    }
}

#[tokio::test]
async fn after_a_change_of_the_port_both_answer() {
    let scene = Scene::new();
    let before = scene.up();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let moved = scene.run(&["port", &free.to_string()]);
    assert_eq!((moved.code, moved.stdout.trim()), (0, format!("http://127.0.0.1:{free}/mcp").as_str()));
    let secret = scene.home().secret().unwrap();
    assert_eq!(Connection::open(&secret, free).await.unwrap().hello().instance, before.instance);
    tokio::net::TcpStream::connect(("127.0.0.1", before.port)).await.unwrap();
    let after = scene.home().discovery().unwrap();
    assert_eq!((after.port, after.instance), (free, before.instance));
    assert!(kill_verified(after.pid, after.pid_start));
    await_that("the successor uses the new port", || scene.up().port == free);
}

#[test]
#[cfg(target_os = "linux")]
fn a_low_limit_of_open_files_is_raised() {
    let scene = Scene::new();
    let command = scene.command(&[]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -Sn 64 && exec \"$0\" up"]).arg(command.get_program());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    assert!(shell.output().unwrap().status.success());
    let pid = scene.home().discovery().unwrap().pid;
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let soft = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft: u64 = soft.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!(soft > 64, "{limits}");
}

#[test]
fn a_successor_that_starts_after_baton_down_does_not_stay() {
    let scene = Scene::new();
    let port = scene.up().port.to_string();
    assert_eq!(scene.run(&["down"]).code, 0);
    // What an agent starts that lost its coordinator a moment before.
    let late = scene.run(&["serve", "--detached", "--fallback-port", &port]);
    assert!(late.stdout.contains("stopped with `baton down`"), "{late:?}");
    assert_eq!(scene.run(&["status"]).code, 3);
    assert_eq!(scene.up().port.to_string(), port);
}
