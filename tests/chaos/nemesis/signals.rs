//! Processes that are killed, or stopped for a while.

use super::Scene;
use crate::world::WINDOWS;

/// Shorter than three missed pings.
const SHORT_MS: std::ops::Range<u64> = 300..1_800;
/// Longer than a lease.
const LONG_MS: std::ops::Range<u64> = 7_000..9_000;

pub(super) fn kill_coordinator(scene: &mut Scene) {
    scene.kill_coordinators();
    scene.pause(0..500);
}

pub(super) fn kill_coordinator_twice(scene: &mut Scene) {
    scene.kill_coordinators();
    scene.pause(0..400);
    scene.kill_coordinators();
}

pub(super) fn kill_live_agent(scene: &mut Scene) {
    let name = scene.live();
    kill_agent(scene, name);
    scene.pause(0..300);
}

pub(super) fn kill_standby_agent(scene: &mut Scene) {
    let live = scene.live();
    let name = scene.any(&[live]);
    kill_agent(scene, name);
}

pub(super) fn kill_all_agents(scene: &mut Scene) {
    for name in WINDOWS {
        kill_agent(scene, name);
    }
}

fn kill_agent(scene: &Scene, name: &str) {
    if let Some(pid) = scene.world.agent(name) {
        scene.kill(&[pid], &format!("agent of {name}"));
    }
}

pub(super) fn kill_live_window(scene: &mut Scene) {
    let name = scene.live();
    kill_window(scene, name);
}

pub(super) fn kill_standby_window(scene: &mut Scene) {
    let live = scene.live();
    let name = scene.any(&[live]);
    kill_window(scene, name);
}

/// The agent ends with the `baton window` above it; the user opens the window again.
fn kill_window(scene: &mut Scene, name: &'static str) {
    let Some((pid, build)) = scene.world.supervisor(name) else { return };
    scene.kill(&[pid], &format!("window {name}"));
    scene.pause(0..1_500);
    scene.open_window(name, build);
}

pub(super) fn kill_holder(scene: &mut Scene) {
    scene.kill(&scene.world.holders(), "port holder");
    scene.pause(0..500);
}

pub(super) fn kill_holder_and_coordinator(scene: &mut Scene) {
    scene.kill(&scene.world.holders(), "port holder");
    scene.kill_coordinators();
}

pub(super) fn stop_coordinator_short(scene: &mut Scene) {
    stop_coordinator(scene, SHORT_MS);
}

pub(super) fn stop_coordinator_long(scene: &mut Scene) {
    stop_coordinator(scene, LONG_MS);
}

/// One that is stopped for long is killed by whoever misses it.
fn stop_coordinator(scene: &mut Scene, ms: std::ops::Range<u64>) {
    let (pids, from) = (scene.world.coordinators(), scene.history.now());
    let ms = scene.rng.u64(ms);
    scene.stop_for(&pids, "coordinator", ms);
    scene.history.deaths_since(from);
}

pub(super) fn stop_live_agent_short(scene: &mut Scene) {
    let (name, ms) = (scene.live(), scene.rng.u64(SHORT_MS));
    stop_agent(scene, name, ms);
}

pub(super) fn stop_live_agent_long(scene: &mut Scene) {
    let (name, ms) = (scene.live(), scene.rng.u64(LONG_MS));
    stop_agent(scene, name, ms);
}

pub(super) fn stop_standby_agent_long(scene: &mut Scene) {
    let live = scene.live();
    let (name, ms) = (scene.any(&[live]), scene.rng.u64(LONG_MS));
    stop_agent(scene, name, ms);
}

fn stop_agent(scene: &Scene, name: &str, ms: u64) {
    let pids: Vec<u32> = scene.world.agent(name).into_iter().collect();
    scene.stop_for(&pids, &format!("agent of {name}"), ms);
}

pub(super) fn stop_window(scene: &mut Scene) {
    let name = scene.any(&[]);
    let ms = scene.rng.u64(SHORT_MS);
    if let Some((pid, _)) = scene.world.supervisor(name) {
        scene.stop_for(&[pid], &format!("window {name}"), ms);
    }
}

pub(super) fn stop_holder(scene: &mut Scene) {
    let ms = scene.rng.u64(SHORT_MS);
    scene.stop_for(&scene.world.holders(), "port holder", ms);
}

/// As a laptop does that is closed; they wake in any order.
pub(super) fn stop_everything(scene: &mut Scene) {
    let from = scene.history.now();
    let mut pids: Vec<u32> = scene.world.processes().into_iter().map(|(pid, _)| pid).collect();
    scene.rng.shuffle(&mut pids);
    let ms = scene.rng.u64(LONG_MS);
    scene.stop_for(&pids, "one of all", ms);
    scene.history.deaths_since(from);
}
