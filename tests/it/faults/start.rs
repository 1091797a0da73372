//! A coordinator that is killed while it starts (F3): at each step that changes something outside of it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_proto::discovery::Discovery;
use baton_tests::place;
use baton_tests::world::World;
use serde_json::Value;

/// What a start does that others can see: it takes locks, writes files through, puts them in place, takes the port.
const STEPS: [&str; 5] = ["flock", "fsync", "rename", "bind", "listen"];

/// The next start has the lock and answers within a second; on a machine that is busy with other tests, in this.
const NEXT_START: Duration = Duration::from_secs(5);

/// `baton serve` under strace, which kills it as it enters the nth system call of that name.
fn killed_at(world: &World, step: &str, nth: usize) -> Command {
    let (program, libraries) = place::strace();
    let mut strace = world.command(program);
    strace.env("LD_LIBRARY_PATH", libraries);
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={step}"));
    strace.arg("-e").arg(format!("inject={step}:signal=KILL:when={nth}"));
    strace.arg(place::program("baton")).arg("serve");
    strace.stdout(Stdio::piped()).stderr(Stdio::null());
    strace
}

/// True when the start came to its end before the nth call of that name.
fn becomes_ready(world: &World, step: &str, nth: usize) -> bool {
    let mut strace = killed_at(world, step, nth).spawn().expect("strace starts");
    let mut said = String::new();
    let output = strace.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut said).expect("a line or the end");
    if !said.is_empty() {
        world.baton_ok(&["down"]);
    }
    strace.wait().expect("it ends with its program");
    !said.is_empty()
}

/// Each file is whole: the old one, the new one, or not there.
fn assert_nothing_torn(world: &World, after: &str) {
    let read = |name: &str| std::fs::read(world.home().join(name)).ok();
    if let Some(secret) = read("secret") {
        assert_eq!(secret.len(), 32, "{after}");
    }
    if let Some(state) = read("state.json") {
        let state: Value = serde_json::from_slice(&state).unwrap_or_else(|error| panic!("{after}: {error}"));
        assert!(state["generation"].is_u64(), "{after}: {state}");
    }
    if let Some(discovery) = read("discovery.json") {
        serde_json::from_slice::<Discovery>(&discovery).unwrap_or_else(|error| panic!("{after}: {error}"));
    }
}

fn generation_on_disk(world: &World) -> u64 {
    let state = std::fs::read(world.home().join("state.json")).unwrap_or_default();
    let state: Value = serde_json::from_slice(&state).unwrap_or_default();
    state["generation"].as_u64().unwrap_or(0)
}

/// The next start works, on the same port, with a later generation, and leaves nothing of the killed one.
fn assert_next_start_works(world: &World, after: &str) {
    assert_nothing_torn(world, after);
    let before = generation_on_disk(world);
    let since = Instant::now();
    world.baton_ok(&["up"]);
    assert!(since.elapsed() < NEXT_START, "{after}: the next start took {:?}", since.elapsed());
    let status = world.status().expect("it runs");
    assert!(status.generation > before, "{after}: {before} then {}", status.generation);
    assert_eq!(status.port, world.port(), "{after}");
    let names = std::fs::read_dir(world.home()).expect("it is there");
    let left: Vec<_> = names
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| {
            name.to_string_lossy().ends_with(".broken") || name.to_string_lossy().ends_with(".tmp")
        })
        .filter(|name| !name.to_string_lossy().starts_with("secret."))
        .collect();
    assert!(left.is_empty(), "{after}: {left:?}");
    world.baton_ok(&["down"]);
}

#[test]
fn f3_killed_at_each_step_of_the_very_first_start() {
    let mut n_steps = 0;
    for step in STEPS {
        for nth in 1.. {
            let world = World::new();
            if becomes_ready(&world, step, nth) {
                break;
            }
            n_steps += 1;
            assert_next_start_works(&world, &format!("{step} {nth}"));
        }
    }
    assert!(n_steps >= 12, "only {n_steps} steps were found");
}

#[test]
fn f3_killed_at_each_step_of_a_later_start() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let token = world.token();
    world.baton_ok(&["down"]);
    let mut n_steps = 0;
    for step in STEPS {
        for nth in 1.. {
            if becomes_ready(&world, step, nth) {
                break;
            }
            n_steps += 1;
            assert_next_start_works(&world, &format!("{step} {nth}"));
            assert_eq!(world.token(), token, "clients keep their token");
        }
    }
    assert!(n_steps >= 10, "only {n_steps} steps were found");
}
