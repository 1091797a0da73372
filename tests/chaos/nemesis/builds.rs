//! Upgrades and downgrades between two builds, and the same build once more.

use super::Scene;

pub(super) fn replace(scene: &mut Scene) {
    scene.baton(&["up", "--replace"]);
}

pub(super) fn upgrade(scene: &mut Scene) {
    scene.baton_of(1, &["up", "--replace"]);
}

/// Back to the older build, whatever runs.
pub(super) fn downgrade(scene: &mut Scene) {
    scene.baton_of(1, &["up", "--replace"]);
    scene.pause(0..500);
    scene.baton_of(0, &["up", "--replace"]);
}

/// A window of another build than the coordinator's; the next time it is the other way round.
pub(super) fn newer_window(scene: &mut Scene) {
    let name = scene.any(&[]);
    let Some((pid, build)) = scene.world.supervisor(name) else { return };
    scene.note(format!("window {name} is closed (SIGTERM {pid}), to come back with the other build"));
    crate::world::send(pid, rustix::process::Signal::TERM);
    scene.pause(100..1_000);
    scene.open_window(name, 1 - build);
}
