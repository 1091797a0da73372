//! The state folder is deleted, emptied or cannot be written: terms never go back, and no call runs in a window that
//! was not live (F12, F17).

use std::path::PathBuf;
use std::time::Instant;

use baton_proto::control::Status;
use baton_proto::discovery::Discovery;
use baton_tests::place;
use baton_tests::process::{await_some, kill9};
use baton_tests::raw::Request;
use baton_tests::world::{PATIENCE, WindowOptions, World, live_name, space_again};
use serde_json::{Value, json};

const NAMES: [&str; 4] = ["shop", "weather", "robots", "steps"];

/// A client that sends each call anew and asks for nothing but who answers; a refused connection is no answer.
struct Caller {
    port: u16,
    token: String,
}

impl Caller {
    fn new(world: &World) -> Self {
        Self { port: world.port(), token: world.token() }
    }

    /// The window that answered, and its term.
    fn call(&self) -> Option<(String, (u64, u64))> {
        std::net::TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let answer = Request::call(self.port, &self.token, "get_breakpoints");
        // The coordinator may go at any moment.
        let answer = std::panic::catch_unwind(|| answer.send(self.port)).ok()?;
        let body = answer.body.split_once('{').map(|(_, rest)| format!("{{{rest}"))?;
        let body = body.rsplit_once('}').map(|(body, _)| format!("{body}}}"))?;
        let result: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        let window = &result["result"]["_meta"]["baton/window"];
        let term = &window["term"];
        let name = window["name"].as_str()?.to_owned();
        Some((name, (term[0].as_u64()?, term[1].as_u64()?)))
    }

    /// Calls until one is answered.
    fn insist(&self) -> (String, (u64, u64)) {
        await_some(PATIENCE, || self.call()).expect("a call is answered in time")
    }
}

/// Whoever removes the secret wants another one: the coordinator that knows the old one ends, and its successor, the
/// windows and `baton token` have the same.
#[test]
fn f12_a_secret_that_is_removed_is_another_one_for_all() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    let old = Caller::new(&world);
    std::fs::remove_file(world.home().join("secret")).expect("it is there");
    let after = world
        .await_status("a successor", |status| status.pid != before.pid && live_name(status) == Some("shop"));
    assert_eq!(after.port, before.port);
    let new = Caller::new(&world);
    assert_ne!(new.token, old.token);
    assert_eq!(new.insist().0, "shop");
    let refused = Request::call(old.port, &old.token, "get_breakpoints").send(old.port);
    assert_eq!(refused.status, 401, "{refused:?}");
}

/// Four windows, of which each is live in turn; `harm` is done to the state while calls go on, and whoever answers must
/// be the one that was live.
fn rounds(world: &World, n_rounds: usize, mut harm: impl FnMut(&World, &Status)) {
    let caller = Caller::new(world);
    let mut last = (0, 0);
    for round in 0..n_rounds {
        let live = NAMES[(round * 3 + 1) % NAMES.len()];
        world.await_status("all windows are there", |status| status.windows.len() == NAMES.len());
        world.take(live);
        let before = world.await_live(live);
        let mut seen = vec![caller.insist()];
        harm(world, &before);
        let since = Instant::now();
        // Until a successor has answered twice; whoever answers meanwhile counts as well.
        let is_over = |seen: &[(String, (u64, u64))]| {
            seen.iter().filter(|(_, term)| term.0 > before.generation).count() >= 2
        };
        while !is_over(&seen) {
            assert!(since.elapsed() < PATIENCE, "no successor answers: {seen:?}\n{}", world.logs());
            seen.extend(caller.call());
        }
        for (name, term) in seen {
            assert_eq!(name, live, "round {round}: a call ran in the wrong window\n{}", world.logs());
            assert!(term >= last, "round {round}: terms went back: {term:?} after {last:?}");
            last = term;
        }
        let after = world.await_status("all windows are back", |status| status.windows.len() == NAMES.len());
        assert_eq!(live_name(&after), Some(live));
    }
}

fn four_windows(full_disk: bool) -> World {
    let mut world = World::new();
    // Not by a window: what that starts may have no space.
    world.baton_ok(&["up"]);
    for name in NAMES {
        let folder = world.folder(name);
        place::copy_folder(&place::project(name), &folder);
        world
            .window_with(name, WindowOptions { full_disk, folder: Some(folder), ..WindowOptions::default() });
    }
    world
}

fn delete(folder: &PathBuf) {
    // A log is written anew while the folder goes.
    let deleted = await_some(PATIENCE, || std::fs::remove_dir_all(folder).ok());
    deleted.expect("the state folder can be deleted");
}

#[test]
fn f12_the_folder_is_deleted_under_four_windows() {
    let world = four_windows(false);
    rounds(&world, 4, |world, _| delete(&world.home()));
}

#[test]
fn f12_the_state_is_emptied_and_the_lock_deleted() {
    let world = four_windows(false);
    rounds(&world, 4, |world, _| {
        std::fs::write(world.home().join("state.json"), "").expect("the folder is ours");
        std::fs::remove_file(world.home().join("coordinator.lock")).expect("the folder is ours");
    });
}

#[test]
fn f12_a_client_that_knows_of_a_rotation_is_not_refused() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let status_of =
        |token: &str| Request::post(world.port(), "/mcp", token, list.clone()).send(world.port()).status;
    let old = world.token();
    let new = world.baton_ok(&["token", "--rotate"]).trim().to_owned();
    kill9(world.coordinator_pid());
    std::fs::remove_file(world.home().join("state.json")).expect("it is there");
    world.baton_ok(&["up"]);
    assert_ne!(status_of(&new), 401, "{}", world.logs());
    assert_eq!(status_of(&old), 401, "the rotation is in force again");
    assert_eq!(
        await_some(PATIENCE, || (world.token() == new).then_some(())),
        Some(()),
        "it is written again"
    );
    assert_eq!(status_of(&format!("{new}x")), 401);
}

#[test]
fn f17_the_disk_is_full_and_the_coordinator_is_killed() {
    let world = four_windows(true);
    let written =
        std::fs::read_to_string(world.home().join("state.json")).expect("written when there was space");
    let caller = Caller::new(&world);
    kill9(world.coordinator_pid());
    caller.insist();
    rounds(&world, 3, |_, before| kill9(before.pid));
    let unwritten = std::fs::read_to_string(world.home().join("state.json")).expect("it is still there");
    assert_eq!(written, unwritten, "there is no space");
    let status = world.status().expect("it runs");

    // What could not be written is, as soon as there is space.
    space_again(status.pid);
    let wanted = [status.generation.to_string(), status.live.expect("one is live").to_string()];
    let is_written = || {
        let text = std::fs::read_to_string(world.home().join("state.json")).ok()?;
        wanted.iter().all(|wanted| text.contains(wanted)).then_some(())
    };
    assert!(await_some(PATIENCE, is_written).is_some(), "nothing is written\n{}", world.logs());
}

/// The last coordinator took its discovery file with it, and the next one cannot write one.
#[test]
fn f17_a_coordinator_that_starts_without_space_is_found_and_publishes_itself_when_there_is() {
    let mut world = World::new();
    world.baton_ok(&["up"]);
    world.baton_ok(&["down"]);
    let discovery = world.home().join("discovery.json");
    assert!(!discovery.exists());
    let up = world.baton_without_space(&["up"]).output().expect("baton starts");
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    let pid = world.coordinator_pid();
    world.window("shop");
    assert_eq!(world.await_live("shop").pid, pid, "it is found, by windows as well");
    assert_eq!(Caller::new(&world).insist().0, "shop");
    assert!(!discovery.exists(), "there is no space");

    space_again(pid);
    let published = || {
        let text = std::fs::read(&discovery).ok()?;
        serde_json::from_slice::<Discovery>(&text).ok().filter(|found| found.pid == pid)
    };
    let published = await_some(PATIENCE, published);
    assert_eq!(published.map(|found| found.port), Some(world.port()), "{}", world.logs());
    assert_eq!(world.await_live("shop").pid, pid);
}

#[test]
fn f12_a_generation_beyond_belief_is_set_aside() {
    let world = four_windows(false);
    let generations = [u64::MAX, 1 << 48, (1 << 48) - 1];
    let mut n_rounds = 0;
    rounds(&world, generations.len(), |world, before| {
        let path = world.home().join("state.json");
        let mut state: Value =
            serde_json::from_slice(&std::fs::read(&path).expect("it is there")).expect("JSON");
        state["generation"] = json!(generations[n_rounds]);
        n_rounds += 1;
        std::fs::write(&path, state.to_string()).expect("the folder is ours");
        kill9(before.pid);
    });
}
