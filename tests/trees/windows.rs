//! The windows that are open, and what happens to them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use baton_tests::process::kill9;
use baton_tests::world::{WindowOptions, World, find};
use fastrand::Rng;

use crate::forest::Forest;

/// What is told of it.
pub(crate) const COORDINATOR_KILLED: &str = "the coordinator is killed";
/// Longer than the place of a window that went is kept.
const PLACE_KEPT: Duration = Duration::from_secs(6);
/// More are not open at once.
const MAX: usize = 4;

/// See the module.
pub(crate) struct Windows {
    pub(crate) world: World,
    /// By the name of the window and of its folder: the folder, and the tree that it was of when the window opened.
    open: BTreeMap<&'static str, (PathBuf, Option<PathBuf>)>,
    is_calm: bool,
    /// When a window went last: its place is kept for its clients for a while.
    gone: Option<Instant>,
}

impl Windows {
    pub(crate) fn new() -> Self {
        let mut world = World::new();
        world.may_leave_processes();
        world.baton_ok(&["settings", "hold_calls_ms", "300"]);
        let projects = world.scratch().canonicalize().expect("it is there").join("projects");
        std::fs::create_dir(projects).expect("a folder is made");
        Self { world, open: BTreeMap::new(), is_calm: true, gone: None }
    }

    pub(crate) fn projects(&self) -> PathBuf {
        self.world.scratch().canonicalize().expect("it is there").join("projects")
    }

    /// Whether all windows are where they should be, and no disturbance has come since that was seen.
    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm && self.gone.is_none_or(|gone| gone.elapsed() > PLACE_KEPT)
    }

    /// Waits until the coordinator knows of all windows, and of none that are gone.
    pub(crate) fn calm_down(&mut self) {
        let names: Vec<&str> = self.open.keys().copied().collect();
        self.world.await_status("all windows are known", |status| {
            let all_there = names.iter().all(|name| find(status, name).is_some_and(|one| one.responsive));
            all_there
                && status.windows.len() == names.len()
                && status.live.is_some() != names.is_empty()
                && status.awaiting.is_none()
        });
        self.is_calm = true;
    }

    /// The folder of an open window, and its tree.
    pub(crate) fn get(&self, name: &str) -> Option<(&PathBuf, Option<&PathBuf>)> {
        self.open.get(name).map(|(folder, tree)| (folder, tree.as_ref()))
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.open.keys().copied().collect()
    }

    pub(crate) fn open(&mut self, forest: &Forest, name: &'static str) {
        let folder = forest.path(name);
        let top = forest.top(&folder);
        let options = WindowOptions { folder: Some(folder.clone()), ..WindowOptions::default() };
        self.world.start_window(name, options);
        self.open.insert(name, (folder, top));
        self.is_calm = false;
    }

    pub(crate) fn open_any(&mut self, rng: &mut Rng, forest: &Forest) -> String {
        let closed: Vec<&'static str> =
            forest.names().filter(|name| !self.open.contains_key(name) && forest.is_there(name)).collect();
        if self.open.len() >= MAX || closed.is_empty() {
            return self.close_any(rng);
        }
        let name = closed[rng.usize(..closed.len())];
        self.open(forest, name);
        format!("{name} opens")
    }

    fn any(&self, rng: &mut Rng) -> Option<&'static str> {
        let names = self.names();
        (!names.is_empty()).then(|| names[rng.usize(..names.len())])
    }

    pub(crate) fn close_any(&mut self, rng: &mut Rng) -> String {
        let Some(name) = self.any(rng) else { return "nothing to close".to_owned() };
        self.close(name);
        format!("{name} is closed")
    }

    /// Closes a window if it is open: one whose folder goes would not start again.
    pub(crate) fn close(&mut self, name: &str) {
        if self.open.remove(name).is_some() {
            self.world.close_window(name);
            (self.is_calm, self.gone) = (false, Some(Instant::now()));
        }
    }

    pub(crate) fn kill_any(&mut self, rng: &mut Rng) -> String {
        let Some(name) = self.any(rng) else { return "nothing to kill".to_owned() };
        self.calm_down();
        self.open.remove(name);
        (self.is_calm, self.gone) = (false, Some(Instant::now()));
        self.world.kill_window(name);
        format!("{name} is killed")
    }

    pub(crate) fn restart_any(&mut self, rng: &mut Rng) -> String {
        let Some(name) = self.any(rng) else { return "nothing to restart".to_owned() };
        self.is_calm = false;
        let printed = self.world.baton(&["restart", name]);
        format!("{name} restarts: {}", printed.code)
    }

    pub(crate) fn kill_agent(&mut self, rng: &mut Rng) -> String {
        let Some(name) = self.any(rng) else { return "nothing to kill".to_owned() };
        self.calm_down();
        self.is_calm = false;
        kill9(self.world.agent_pid(name));
        format!("the agent of {name} is killed")
    }

    pub(crate) fn take_any(&mut self, rng: &mut Rng) -> String {
        let Some(name) = self.any(rng) else { return "nothing to take".to_owned() };
        let printed = self.world.baton(&["take", name]);
        format!("{name} is taken: {}", printed.code)
    }

    pub(crate) fn kill_coordinator(&mut self) -> String {
        self.is_calm = false;
        if let Some(status) = self.world.status() {
            kill9(status.pid);
        }
        COORDINATOR_KILLED.to_owned()
    }
}
