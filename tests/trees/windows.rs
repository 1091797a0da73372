//! The windows that are open, and what happens to them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_proto::control::{Status, WindowStatus};
use baton_tests::bridge::Shown;
use baton_tests::process::{await_some, kill9};
use baton_tests::world::{PATIENCE, WindowOptions, World};
use fastrand::Rng;

use crate::forest::{Forest, title};

/// What is told of it.
pub(crate) const COORDINATOR_KILLED: &str = "the coordinator is killed";
/// Longer than the place of a window that went is kept.
const PLACE_KEPT: Duration = Duration::from_secs(6);
/// More are not open at once.
const MAX: usize = 4;

/// See the module.
pub(crate) struct Windows {
    pub(crate) world: World,
    /// By the name of the folder.
    open: BTreeMap<&'static str, Open>,
    /// The folders of windows, by their ids.
    ids: RefCell<BTreeMap<String, &'static str>>,
    n_starts: u64,
    is_calm: bool,
    /// When a window went last: its place is kept for its clients for a while.
    gone: Option<Instant>,
}

struct Open {
    folder: PathBuf,
    /// The tree that it was of when the window opened.
    tree: Option<PathBuf>,
    /// Another number with each start of its agent.
    start: u64,
}

/// The window on a folder.
fn on<'a>(status: &'a Status, folder: &Path) -> Option<&'a WindowStatus> {
    status.windows.iter().find(|window| window.folders.iter().any(|other| Path::new(other) == folder))
}

impl Windows {
    pub(crate) fn new() -> Self {
        let mut world = World::new();
        world.may_leave_processes();
        world.baton_ok(&["settings", "hold_calls_ms", "300"]);
        let projects = world.scratch().canonicalize().expect("it is there").join("projects");
        std::fs::create_dir(projects).expect("a folder is made");
        let (open, ids) = (BTreeMap::new(), RefCell::default());
        Self { world, open, ids, n_starts: 0, is_calm: true, gone: None }
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
        let open = &self.open;
        if open.is_empty() && self.world.status().is_none() {
            self.is_calm = true;
            return;
        }
        let status = self.world.await_status("all windows are known", |status| {
            let is_there = |open: &Open| on(status, &open.folder).is_some_and(|one| one.responsive);
            open.values().all(is_there)
                && status.windows.len() == open.len()
                && status.live.is_some() != open.is_empty()
                && status.awaiting.is_none()
        });
        self.learn(&status);
        self.is_calm = true;
    }

    /// A coordinator that was killed when no window was left to start one: the person opens a window.
    pub(crate) fn revive(&mut self, forest: &Forest) -> Option<String> {
        if !self.open.is_empty() || self.world.status().is_some() {
            return None;
        }
        self.open(forest, "shop");
        self.calm_down();
        Some("nothing runs: shop opens".to_owned())
    }

    /// A client can be connected.
    pub(crate) fn await_coordinator(&self) {
        let is_there = || self.world.status().map(drop);
        await_some(PATIENCE, is_there).expect("a window starts a coordinator");
    }

    fn learn(&self, status: &Status) {
        for (name, open) in &self.open {
            if let Some(window) = on(status, &open.folder) {
                self.ids.borrow_mut().insert(window.id.to_string(), name);
            }
        }
    }

    /// The window of an id, by the name of its folder.
    pub(crate) fn of_id(&self, id: &str) -> Option<&'static str> {
        let known = || self.ids.borrow().get(id).copied();
        known().or_else(|| {
            await_some(PATIENCE, || {
                self.world.status().iter().for_each(|status| self.learn(status));
                known()
            })
        })
    }

    /// The window that answered, by the name of its folder; none when the edge did.
    pub(crate) fn who(&self, shown: &Shown) -> Option<&'static str> {
        if shown.window_id.is_empty() { None } else { self.of_id(&shown.window_id) }
    }

    /// Which start of a window's agent it is; none when it is closed.
    pub(crate) fn start_of(&self, name: &str) -> Option<u64> {
        self.open.get(name).map(|open| open.start)
    }

    /// Its agent is started again.
    fn restarted(&mut self, name: &str) {
        self.n_starts += 1;
        let start = self.n_starts;
        self.open.get_mut(name).expect("it is open").start = start;
        self.is_calm = false;
    }

    /// Its id, which no other window has; its name where nobody knows the id.
    fn id(&self, name: &'static str) -> String {
        let status = self.world.status();
        let window = status.as_ref().and_then(|status| on(status, &self.open[name].folder));
        window.map_or_else(|| title(name).to_owned(), |window| window.id.to_string())
    }

    fn agent_pid(&self, name: &str) -> u32 {
        let status = self.world.status().expect("a coordinator runs");
        on(&status, &self.open[name].folder).expect("it is known").pid
    }

    /// The folder of an open window, and its tree.
    pub(crate) fn get(&self, name: &str) -> Option<(&PathBuf, Option<&PathBuf>)> {
        self.open.get(name).map(|open| (&open.folder, open.tree.as_ref()))
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.open.keys().copied().collect()
    }

    pub(crate) fn open(&mut self, forest: &Forest, name: &'static str) {
        let folder = forest.path(name);
        let top = forest.top(&folder);
        let title = Some(title(name).to_owned());
        let options = WindowOptions { folder: Some(folder.clone()), title, ..WindowOptions::default() };
        self.world.start_window(name, options);
        self.n_starts += 1;
        self.open.insert(name, Open { folder, tree: top, start: self.n_starts });
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
        let agent = self.agent_pid(name);
        self.open.remove(name);
        (self.is_calm, self.gone) = (false, Some(Instant::now()));
        self.world.kill_window_of(name, agent);
        format!("{name} is killed")
    }

    pub(crate) fn restart_any(&mut self, rng: &mut Rng) -> String {
        let Some(name) = self.any(rng) else { return "nothing to restart".to_owned() };
        let printed = self.world.baton(&["restart", &self.id(name)]);
        self.restarted(name);
        format!("{name} restarts: {}", printed.code)
    }

    pub(crate) fn kill_agent(&mut self, rng: &mut Rng) -> String {
        let Some(name) = self.any(rng) else { return "nothing to kill".to_owned() };
        self.calm_down();
        kill9(self.agent_pid(name));
        self.restarted(name);
        format!("the agent of {name} is killed")
    }

    pub(crate) fn take_any(&mut self, rng: &mut Rng) -> String {
        let Some(name) = self.any(rng) else { return "nothing to take".to_owned() };
        let printed = self.world.baton(&["take", &self.id(name)]);
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
