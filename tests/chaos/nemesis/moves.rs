//! What users do, all at once and at bad moments.

use baton_tests::process::free_port;

use super::Scene;
use crate::world::PORTS;

impl Scene {
    /// Starts `baton window` for a window.
    pub(super) fn open_window(&self, name: &'static str, build: usize) {
        match self.world.start_window(name, build) {
            Ok(()) => self.note(format!("window {name} is opened")),
            Err(error) => self.note(format!("window {name} cannot be opened: {error}")),
        }
    }
}

pub(super) fn take(scene: &mut Scene) {
    let live = scene.live();
    let name = scene.any(&[live]);
    scene.baton(&["take", name]);
}

pub(super) fn two_takes(scene: &mut Scene) {
    let live = scene.live();
    let first = scene.any(&[live]);
    let second = scene.any(&[live, first]);
    let scene = &*scene;
    std::thread::scope(|scope| {
        for name in [first, second] {
            scope.spawn(move || scene.baton(&["take", name]));
        }
    });
}

pub(super) fn take_storm(scene: &mut Scene) {
    for _ in 0..8 {
        let name = scene.any(&[]);
        scene.baton(&["take", name]);
        scene.pause(0..60);
    }
}

/// A stop is a wish: nobody follows until the user starts a window.
pub(super) fn stop_and_start(scene: &mut Scene) {
    let live = scene.live();
    scene.baton(&["stop", live]);
    scene.pause(0..1_500);
    let name = scene.any(&[]);
    start(scene, name);
    // A client that is pinned to a window that stays off gets no answer, and rightly so.
    if name != live {
        start(scene, live);
    }
}

/// A start that meets another fault is tried again, as a user does it.
fn start(scene: &mut Scene, name: &str) {
    for _ in 0..20 {
        if scene.baton(&["start", name]) {
            return;
        }
        scene.pause(300..600);
    }
}

pub(super) fn restart_live(scene: &mut Scene) {
    let name = scene.live();
    scene.baton(&["restart", name]);
}

pub(super) fn restart_standby(scene: &mut Scene) {
    let live = scene.live();
    let name = scene.any(&[live]);
    scene.baton(&["restart", name]);
}

pub(super) fn close_live_window(scene: &mut Scene) {
    let name = scene.live();
    let Some((pid, build)) = scene.world.supervisor(name) else { return };
    scene.note(format!("window {name} is closed (SIGTERM {pid})"));
    crate::world::send(pid, rustix::process::Signal::TERM);
    scene.pause(100..1_500);
    scene.open_window(name, build);
}

pub(super) fn down_and_up(scene: &mut Scene) {
    scene.history.down();
    scene.baton(&["down"]);
    scene.pause(0..1_000);
    up(scene);
}

/// Brought up again as a user does it: until it says that it is.
fn up(scene: &mut Scene) {
    for _ in 0..5 {
        if scene.baton(&["up"]) {
            return;
        }
        scene.pause(300..600);
    }
}

pub(super) fn rotate_token(scene: &mut Scene) {
    scene.history.credentials_lost();
    scene.baton(&["token", "--rotate"]);
    scene.history.credentials_lost();
}

pub(super) fn change_port(scene: &mut Scene) {
    /// As often as a user does what the hint says: the coordinator may be killed in the middle.
    const TRIES: usize = 5;
    let Some(port) = free_port(PORTS) else { return };
    if (0..TRIES).any(|_| scene.baton(&["port", &port.to_string()])) {
        scene.world.moved(port);
    }
}
