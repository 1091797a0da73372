//! Files of the state folder that are lost, cut, emptied, garbled or cannot be written, and a full disk.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use baton_link::home::DEFAULT_PORT;
use baton_proto::discovery::Discovery;

use super::Scene;

const DISCOVERY: &str = "discovery.json";
const STATE: &str = "state.json";
const LOCK: &str = "coordinator.lock";
const SECRET: &str = "secret";

/// How soon a coordinator that lost its folder has ended, and another answers.
const FIRST_START: Duration = Duration::from_secs(4);

/// How often a folder that is written to is deleted until it is gone.
const REMOVALS: usize = 100;

impl Scene {
    fn path(&self, name: &str) -> PathBuf {
        self.world.home().join(name)
    }

    fn noted<T>(&self, what: &str, done: std::io::Result<T>) {
        match done {
            Ok(_) => self.note(what),
            Err(error) => self.note(format!("{what}: {error}")),
        }
    }

    fn remove(&self, name: &str) {
        self.noted(&format!("{name} is removed"), fs::remove_file(self.path(name)));
    }

    fn truncate(&self, name: &str) {
        let path = self.path(name);
        let cut = fs::read(&path).and_then(|bytes| fs::write(&path, &bytes[..bytes.len() / 2]));
        self.noted(&format!("{name} is cut in half"), cut);
    }

    fn empty(&self, name: &str) {
        self.noted(&format!("{name} is emptied"), fs::write(self.path(name), b""));
    }

    fn garble(&mut self, name: &str) {
        let bytes: Vec<u8> = (0..200).map(|_| self.rng.u8(..)).collect();
        self.noted(&format!("{name} is garbled"), fs::write(self.path(name), bytes));
    }

    /// A folder in the place of a file: no rename replaces it, not even root's. It is taken away again.
    fn block(&mut self, name: &str) {
        let path = self.path(name);
        let aside = path.with_extension("aside");
        // It may not be there just now.
        let _ = fs::rename(&path, &aside);
        self.noted(&format!("{name} is a folder now"), fs::create_dir(&path));
        self.history_of_kill();
        self.pause(500..2_000);
        self.noted(&format!("{name} can be written again"), fs::remove_dir(&path));
        // It was only set aside so that nothing strange is left.
        let _ = fs::remove_file(aside);
    }

    /// Half of the times the coordinator is killed, too, so that the file is needed.
    fn history_of_kill(&mut self) {
        if self.rng.bool() {
            self.pause(0..300);
            self.kill_coordinators();
        }
    }
}

pub(super) fn discovery_lost(scene: &mut Scene) {
    scene.remove(DISCOVERY);
    scene.history_of_kill();
}

pub(super) fn discovery_truncated(scene: &mut Scene) {
    scene.truncate(DISCOVERY);
    scene.history_of_kill();
}

pub(super) fn discovery_empty(scene: &mut Scene) {
    scene.empty(DISCOVERY);
    scene.history_of_kill();
}

pub(super) fn discovery_corrupt(scene: &mut Scene) {
    scene.garble(DISCOVERY);
    scene.history_of_kill();
}

pub(super) fn discovery_unwritable(scene: &mut Scene) {
    scene.block(DISCOVERY);
}

pub(super) fn state_lost(scene: &mut Scene) {
    scene.remove(STATE);
    scene.history_of_kill();
}

pub(super) fn state_truncated(scene: &mut Scene) {
    scene.truncate(STATE);
    scene.history_of_kill();
}

pub(super) fn state_empty(scene: &mut Scene) {
    scene.empty(STATE);
    scene.history_of_kill();
}

pub(super) fn state_corrupt(scene: &mut Scene) {
    scene.garble(STATE);
    scene.history_of_kill();
}

pub(super) fn state_unwritable(scene: &mut Scene) {
    scene.block(STATE);
}

/// The coordinator notices within a second and ends; its successor makes a new one.
pub(super) fn lock_lost(scene: &mut Scene) {
    scene.remove(LOCK);
    scene.pause(0..1_500);
}

pub(super) fn lock_replaced(scene: &mut Scene) {
    scene.remove(LOCK);
    scene.empty(LOCK);
    scene.pause(0..1_500);
}

/// With the secret go all tokens and sessions.
pub(super) fn secret_lost(scene: &mut Scene) {
    scene.history.credentials_lost();
    scene.remove(SECRET);
    scene.kill_coordinators();
    scene.pause(0..500);
    scene.history.credentials_lost();
}

/// A secret that is none is not trusted; the user is told to remove it, and does.
pub(super) fn secret_empty(scene: &mut Scene) {
    scene.history.credentials_lost();
    scene.empty(SECRET);
    scene.pause(0..500);
    scene.kill_coordinators();
    scene.pause(500..1_500);
    scene.remove(SECRET);
    scene.history.credentials_lost();
}

pub(super) fn folder_deleted(scene: &mut Scene) {
    scene.history.credentials_lost();
    // Somebody may write into it meanwhile.
    let home = scene.world.home();
    let is_gone = (0..REMOVALS).any(|_| fs::remove_dir_all(&home).is_ok() || !home.exists());
    scene.note(format!("the state folder is deleted{}", if is_gone { "" } else { ", but not all of it" }));
    scene.pause(0..1_500);
    follow_a_first_start(scene);
    scene.history.credentials_lost();
}

/// A window that is opened, or a `baton up`, before the coordinator has noticed finds a folder of a first start: a new
/// secret and the first free port. The user gives both to their clients, as after the first start of all.
fn follow_a_first_start(scene: &mut Scene) {
    let since = Instant::now();
    while since.elapsed() < FIRST_START {
        let discovery = fs::read(scene.path(DISCOVERY)).ok();
        let discovery: Option<Discovery> = discovery.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let port = discovery.map(|discovery| discovery.port);
        if let Some(port) = port.filter(|port| (DEFAULT_PORT..DEFAULT_PORT + 100).contains(port)) {
            scene.note(format!("a first start: the clients are told port {port}"));
            scene.world.moved(port);
            return;
        }
        scene.pause(100..200);
    }
}

pub(super) fn disk_full(scene: &mut Scene) {
    fill(scene);
    scene.pause(500..3_000);
    let name = scene.any(&[]);
    scene.baton(&["take", name]);
    free(scene);
}

pub(super) fn disk_full_and_kills(scene: &mut Scene) {
    fill(scene);
    for _ in 0..2 {
        scene.kill_coordinators();
        scene.pause(500..1_500);
        let name = scene.any(&[]);
        scene.baton(&["take", name]);
    }
    free(scene);
}

fn fill(scene: &Scene) {
    use std::io::Write as _;
    let mut filled = 0;
    if let Ok(mut file) = fs::File::create(scene.world.disk().join("full")) {
        // In smaller and smaller pieces, to the last byte.
        for size in [1 << 20, 1 << 12, 1] {
            while let Ok(written) = file.write(&vec![0; size]) {
                filled += written;
            }
        }
    }
    scene.note(format!("the disk is full ({filled} bytes were free)"));
}

fn free(scene: &Scene) {
    scene.noted("the disk has space again", fs::remove_file(scene.world.disk().join("full")));
}
