//! The windows of a world: how they start and end, and where their processes are found.

use std::fs::File;
use std::path::PathBuf;

use baton_proto::control::WindowStatus;
use baton_proto::ids::WindowId;
use rustix::process::Signal;

use super::{WindowOptions, World, find};
use crate::place;
use crate::process::{is_alive, kill9, signal};

impl World {
    /// Starts a window on a copy of the fixture project of that name, without waiting for it.
    pub fn start_window(&mut self, name: &str, options: WindowOptions) {
        let folder = options.folder.unwrap_or_else(|| {
            let copy = self.folder(name);
            if !copy.exists() {
                place::copy_folder(&place::project(name), &copy);
            }
            if let Some(owner) = self.owner {
                owner.own(&copy);
            }
            copy
        });
        let log_path = self.temp.path().join(format!("{name}.log"));
        let log = File::options().create(true).append(true).open(log_path).expect("a temporary file");
        let mut baton = match options.full_disk {
            false => self.baton_command(&["window"]),
            true => self.baton_without_space(&["window"]),
        };
        baton.arg(folder).args(["--name", options.title.as_deref().unwrap_or(name)]);
        if options.no_auto_start {
            baton.arg("--no-auto-start");
        }
        baton.stdout(log.try_clone().expect("a descriptor")).stderr(log);
        let child = baton.spawn().expect("baton starts");
        self.windows.insert(name.to_owned(), child);
    }

    /// Starts a window and waits until the coordinator knows it.
    pub fn window(&mut self, name: &str) -> WindowStatus {
        self.window_with(name, WindowOptions::default())
    }

    /// [`World::window`] with options.
    pub fn window_with(&mut self, name: &str, options: WindowOptions) -> WindowStatus {
        self.start_window(name, options);
        let status =
            self.await_status(&format!("window {name} registers"), |status| find(status, name).is_some());
        find(&status, name).expect("it was just there").clone()
    }

    /// The folder of a window started on a fixture project.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.projects().join(name)
    }

    pub(super) fn projects(&self) -> PathBuf {
        self.temp.path().canonicalize().expect("the temporary folder is there").join("projects")
    }

    /// The agent of a window.
    pub fn agent_pid(&self, name: &str) -> u32 {
        let status = self.status().expect("a coordinator runs");
        find(&status, name).unwrap_or_else(|| panic!("there is no window {name}")).pid
    }

    /// The socket of a window's agent.
    pub fn agent_socket(&self, id: &WindowId) -> PathBuf {
        let entries = std::fs::read_dir(self.home().join("sockets")).into_iter().flatten().flatten();
        let prefix = format!("w-{id}-");
        let mut found = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
        found.next().unwrap_or_else(|| panic!("the agent of {id} has no socket")).path()
    }

    /// Which start of a window's agent is registered, as the coordinator logged it.
    pub fn incarnation(&self, id: &WindowId) -> u64 {
        let logs = std::fs::read_dir(self.home().join("logs")).into_iter().flatten().flatten();
        let text: String = logs.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect();
        let line = text.lines().rfind(|line| line.contains("registers") && line.contains(id.as_str()));
        let line = line.unwrap_or_else(|| panic!("{id} registered: {text}"));
        let (_, rest) = line.split_once("incarnation=").expect("the line says it");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("it is a number")
    }

    /// The supervisor of a window.
    pub fn supervisor_pid(&self, name: &str) -> u32 {
        self.windows[name].id()
    }

    /// Kills the supervisor and the agent of a window at one blow: the window is gone for good.
    pub fn kill_window(&mut self, name: &str) {
        self.kill_window_of(name, self.agent_pid(name));
    }

    /// The same, where several windows have one name.
    pub fn kill_window_of(&mut self, name: &str, agent: u32) {
        let mut supervisor = self.windows.remove(name).expect("the window was started");
        supervisor.kill().expect("the supervisor runs");
        supervisor.wait().expect("a killed child ends");
        if is_alive(agent) {
            kill9(agent);
        }
        // Until the coordinator has noticed, a call may still be written to it, and end as unknown.
        self.await_status("the death is noticed", |status| {
            !status
                .windows
                .iter()
                .any(|window| window.pid == agent && status.live.as_ref() == Some(&window.id))
        });
    }

    /// Ends a window as a user closes one.
    pub fn close_window(&mut self, name: &str) {
        let mut supervisor = self.windows.remove(name).expect("the window was started");
        signal(supervisor.id(), Signal::TERM);
        supervisor.wait().expect("a child ends");
    }
}
