//! Few descriptors, and clocks that are stepped.

use std::time::Duration;

use baton_tests::process::command;

use super::Scene;

/// As little as any system gives.
const FEW: &str = "--nofile=64:64";
/// What the others have.
const MANY: &str = "--nofile=4096:4096";
/// An hour each way, as a wrong time zone does it.
const STEP_S: i64 = 3_600;

pub(super) fn coordinator(scene: &mut Scene) {
    let pids = scene.world.coordinators();
    limit(scene, &pids, "coordinator");
}

pub(super) fn agent(scene: &mut Scene) {
    let name = scene.live();
    let pids: Vec<u32> = scene.world.agent(name).into_iter().collect();
    limit(scene, &pids, &format!("agent of {name}"));
}

fn limit(scene: &mut Scene, pids: &[u32], what: &str) {
    for pid in pids {
        set(scene, *pid, FEW, &format!("{what} {pid} has 64 descriptors"));
    }
    scene.pause(1_000..3_000);
    for pid in pids {
        set(scene, *pid, MANY, &format!("{what} {pid} has many"));
    }
}

/// It may have ended meanwhile.
fn set(scene: &Scene, pid: u32, limit: &str, what: &str) {
    match command("prlimit").args([&format!("--pid={pid}"), limit]).output() {
        Ok(set) if set.status.success() => scene.note(what),
        Ok(set) => scene.note(format!("{what}: {}", String::from_utf8_lossy(&set.stderr).trim())),
        Err(error) => scene.note(format!("{what}: {error}")),
    }
}

pub(super) fn clock_forward(scene: &mut Scene) {
    step(scene, STEP_S);
}

pub(super) fn clock_back(scene: &mut Scene) {
    step(scene, -STEP_S);
}

/// The clock of all processes is stepped, and stepped back.
fn step(scene: &mut Scene, by_s: i64) {
    for offset_s in [by_s, 0] {
        scene.world.set_clock(offset_s);
        scene.note(format!("all clocks are stepped to {offset_s:+} s"));
        std::thread::sleep(Duration::from_millis(300));
        if offset_s != 0 && scene.rng.bool() {
            super::signals::kill_live_agent(scene);
        }
        scene.pause(300..1_500);
    }
}
