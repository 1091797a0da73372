//! Folders of all kinds, which tree git says each is of, and what should be in their files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use baton_tests::process::command;
use fastrand::Rng;

use crate::windows::Windows;

/// A text that every folder has of its own.
pub(crate) const FILE: &str = "who.py";
/// Where a program notes that it ran.
const RAN: &str = "ran.txt";
/// A program that is held in the debugger, and where it notes each line that it comes to.
pub(crate) const HELD: &str = "hold.py";
const MOVES: &str = "held.txt";
/// Lines of it: more than anybody steps.
const N_LINES: usize = 300;

/// How a folder came to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A repository of its own.
    Repository,
    /// A folder of the tree around it, or of none.
    Folder,
    /// A worktree of the repository at this folder.
    Worktree(&'static str),
    /// A submodule of `shop`, with this one's text.
    Submodule,
}

/// All folders, the outer ones first: name, path below the projects, kind. The last part of a path is what its window is
/// called, so two are called `shop`.
const PLACES: [(&str, &str, Kind); 13] = [
    ("weather", "weather", Kind::Repository),
    ("shop", "shop", Kind::Repository),
    ("src", "shop/src", Kind::Folder),
    ("nested", "shop/nested", Kind::Repository),
    ("module", "shop/module", Kind::Submodule),
    ("inside", "shop/inside", Kind::Worktree("shop")),
    ("hidden", "shop/.claude/worktrees/x", Kind::Worktree("shop")),
    ("beside", "beside", Kind::Worktree("shop")),
    ("work", "work", Kind::Folder),
    ("one", "work/one", Kind::Repository),
    ("two", "work/two", Kind::Repository),
    ("one-tree", "work/one/tree", Kind::Worktree("work/one")),
    ("twin", "others/shop", Kind::Repository),
];

/// What the window on a folder is called.
pub(crate) fn title(name: &str) -> &str {
    if name == "twin" { "shop" } else { name }
}

/// What a folder should hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Content {
    text: String,
    n_runs: usize,
}

/// See the module.
pub(crate) struct Forest {
    projects: PathBuf,
    /// By the name of the folder; those that are there.
    expected: BTreeMap<&'static str, Content>,
    /// How much each one's held programs have noted.
    n_moves: BTreeMap<&'static str, usize>,
    n_saves: u64,
    n_branches: u64,
    /// What git said since a folder came or went.
    tops: RefCell<BTreeMap<PathBuf, Option<PathBuf>>>,
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut git = command("git");
    let settings = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always"];
    git.current_dir(folder).args(settings).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = git.output().expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Forest {
    pub(crate) fn new(projects: &Path) -> Self {
        let (projects, expected, tops) = (projects.to_owned(), BTreeMap::new(), RefCell::default());
        let n_moves = BTreeMap::new();
        let mut forest = Self { projects, expected, n_moves, n_saves: 0, n_branches: 0, tops };
        for (name, ..) in PLACES {
            forest.make(name);
        }
        forest
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        PLACES.iter().map(|(name, ..)| *name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let (_, path, _) = PLACES.iter().find(|(known, ..)| *known == name).expect("a name of the list");
        self.projects.join(path)
    }

    pub(crate) fn is_there(&self, name: &str) -> bool {
        self.expected.contains_key(name)
    }

    /// The folder's tree, as git says.
    pub(crate) fn top(&self, folder: &Path) -> Option<PathBuf> {
        if let Some(known) = self.tops.borrow().get(folder) {
            return known.clone();
        }
        let mut git = command("git");
        git.arg("-C").arg(folder).args(["rev-parse", "--show-toplevel"]);
        let output = git.env("GIT_CEILING_DIRECTORIES", &self.projects).output().expect("git is installed");
        let top =
            output.status.success().then(|| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
        self.tops.borrow_mut().insert(folder.to_owned(), top.clone());
        top
    }

    /// Makes a folder that is not there.
    fn make(&mut self, name: &'static str) {
        let (_, _, kind) = PLACES.iter().find(|(known, ..)| *known == name).expect("a name of the list");
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it lies in the projects")).expect("a folder is made");
        self.n_branches += 1;
        let branch = format!("b{}", self.n_branches);
        match kind {
            Kind::Repository | Kind::Folder => fs::create_dir(&path).expect("a folder is made"),
            Kind::Worktree(of) => {
                let shown = path.to_string_lossy().into_owned();
                git(&self.projects.join(of), &["worktree", "add", "-q", "-b", &branch, &shown]);
            }
            Kind::Submodule => {
                let from = self.path("nested").to_string_lossy().into_owned();
                git(&self.path("shop"), &["submodule", "--quiet", "add", "--force", &from, "module"]);
            }
        }
        let program = "import os\nhere = os.path.dirname(os.path.abspath(__file__))\n\
                       open(os.path.join(here, \"ran.txt\"), \"a\").write(\"x\")\n";
        let held = "import os, sys\nhere = os.path.dirname(os.path.abspath(__file__))\n\n\ndef step():\n    \
                    open(os.path.join(here, \"held.txt\"), \"a\").write(sys.argv[1] + \"\\n\")\n\n\n";
        let held = format!("{held}{}", "step()\n".repeat(N_LINES));
        let launch = format!(
            "{{\"configurations\":[{{\"name\":\"run {name}\",\"type\":\"debugpy\",\"request\":\"launch\",\
             \"program\":\"${{workspaceFolder}}/run.py\"}}]}}"
        );
        fs::create_dir_all(path.join(".vscode")).expect("a folder is made");
        fs::write(path.join("run.py"), program).expect("a file is written");
        fs::write(path.join(HELD), held).expect("a file is written");
        fs::write(path.join(".vscode/launch.json"), launch).expect("a file is written");
        if *kind == Kind::Repository {
            git(&path, &["init", "-q"]);
            git(&path, &["add", "-A"]);
            git(&path, &["commit", "-q", "-m", "all"]);
        }
        self.tops.borrow_mut().clear();
        let text = format!("# {name}\nMARK = 0\n");
        fs::write(path.join(FILE), &text).expect("a file is written");
        let _ = fs::remove_file(path.join(RAN));
        let _ = fs::remove_file(path.join(MOVES));
        self.n_moves.remove(name);
        self.expected.insert(name, Content { text, n_runs: 0 });
    }

    /// A folder comes or goes, by git or without it.
    pub(crate) fn toggle(&mut self, rng: &mut Rng, windows: &mut Windows) -> String {
        let name = ["inside", "hidden", "beside", "one-tree", "nested", "two"][rng.usize(..6)];
        let path = self.path(name);
        self.tops.borrow_mut().clear();
        if !self.is_there(name) {
            self.make(name);
            return format!("{name} is made");
        }
        windows.close(name);
        self.expected.remove(name);
        let (_, _, kind) = PLACES.iter().find(|(known, ..)| *known == name).expect("a name of the list");
        match kind {
            Kind::Worktree(of) => {
                let shown = path.to_string_lossy().into_owned();
                git(&self.projects.join(of), &["worktree", "remove", "--force", &shown]);
                format!("worktree {name} is removed")
            }
            _ if rng.bool() => {
                self.n_branches += 1;
                let away = self.projects.join(format!("away-{}", self.n_branches));
                fs::rename(&path, away).expect("a folder is moved");
                format!("{name} is moved away")
            }
            _ => {
                fs::remove_dir_all(&path).expect("a folder is removed");
                format!("{name} is deleted")
            }
        }
    }

    /// Another program saves a file.
    pub(crate) fn save(&mut self, rng: &mut Rng) -> String {
        self.n_saves += 1;
        let names: Vec<&'static str> = self.expected.keys().copied().collect();
        let name = names[rng.usize(..names.len())];
        let text = format!("# {name}\nMARK = \"saved {}\"\n", self.n_saves);
        fs::write(self.path(name).join(FILE), &text).expect("a file is written");
        self.expected.get_mut(name).expect("it is there").text = text;
        format!("{name} is saved")
    }

    /// Lines that held programs came to since this was asked last: the folder and the number of each.
    pub(crate) fn moves(&mut self) -> Vec<(&'static str, u64)> {
        let mut moves = Vec::new();
        for (name, ..) in PLACES {
            let text = fs::read_to_string(self.path(name).join(MOVES)).unwrap_or_default();
            let n_known = self.n_moves.entry(name).or_default();
            moves.extend(text.lines().skip(*n_known).filter_map(|line| Some((name, line.parse().ok()?))));
            *n_known = text.lines().count();
        }
        moves
    }

    /// The folders that are not as they should be; what they are now is what they should be from here on.
    pub(crate) fn changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (name, ..) in PLACES {
            let path = self.path(name);
            let text = fs::read_to_string(path.join(FILE)).ok();
            let n_runs = fs::read(path.join(RAN)).map_or(0, |bytes| bytes.len());
            let now = text.map(|text| Content { text, n_runs });
            let expected = self.expected.get(name);
            if now.as_ref() == expected {
                continue;
            }
            let is_run = matches!((&now, expected), (Some(now), Some(was)) if now.text == was.text);
            let text = now.as_ref().map(|now| now.text.clone()).unwrap_or_default();
            changes.push(Change { name, is_run, text });
            match now {
                Some(now) => self.expected.insert(name, now),
                None => self.expected.remove(name),
            };
        }
        changes
    }
}

/// A folder that is not as it was.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) name: &'static str,
    /// Its program ran, and its text is as it was.
    pub(crate) is_run: bool,
    pub(crate) text: String,
}
