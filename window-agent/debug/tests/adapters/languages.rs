//! The program in each language: its source, how it is built, how its values are written.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A language.
pub(crate) struct Language {
    pub(crate) name: &'static str,
    /// Below tests/fixtures/languages; its folder is copied too when it has one.
    pub(crate) source: &'static str,
    /// Makes the program out of the source; gives what to start.
    build: fn(&Path) -> PathBuf,
    /// `right > 3` in the function `add`.
    pub(crate) condition: &'static str,
    /// `left + right`.
    pub(crate) expression: &'static str,
    /// `total`, for a log message.
    pub(crate) total: &'static str,
    /// The name of the function `add` for a function breakpoint.
    pub(crate) function: &'static str,
}

impl Language {
    const BASE: Self = Self {
        name: "",
        source: "",
        build: Path::to_owned,
        condition: "right > 3",
        expression: "left + right",
        total: "total",
        function: "add",
    };
    pub(crate) const PYTHON: Self = Self { name: "Python", source: "sums.py", ..Self::BASE };
    pub(crate) const JAVASCRIPT: Self = Self { name: "JavaScript", source: "sums.js", ..Self::BASE };
    pub(crate) const TYPESCRIPT: Self =
        Self { name: "TypeScript", source: "typescript/sums.ts", build: build_typescript, ..Self::BASE };
    pub(crate) const C: Self = Self { name: "C", source: "sums.c", build: build_c, ..Self::BASE };
    pub(crate) const CPP: Self = Self { name: "C++", source: "sums.cpp", build: build_cpp, ..Self::BASE };
    pub(crate) const RUST: Self =
        Self { name: "Rust", source: "sums.rs", build: build_rust, function: "sums::add", ..Self::BASE };
    pub(crate) const GO: Self = Self { name: "Go", source: "go/sums.go", function: "main.add", ..Self::BASE };
    pub(crate) const JAVA: Self = Self {
        name: "Java",
        source: "java/Sums.java",
        build: build_java,
        function: "Sums.add",
        ..Self::BASE
    };
    pub(crate) const BASH: Self = Self {
        name: "Bash",
        source: "sums.sh",
        condition: "(( number > 3 ))",
        expression: "$((total + number))",
        total: "$total",
        ..Self::BASE
    };

    /// Copies the source into a folder, and builds it. Gives the source and the program.
    pub(crate) fn make(&self, folder: &Path) -> (PathBuf, PathBuf) {
        let fixtures = workspace_root().join("tests/fixtures/languages");
        let from = fixtures.join(self.source);
        let beside = from.parent().unwrap();
        if beside == fixtures {
            std::fs::copy(&from, folder.join(self.source)).unwrap();
        } else {
            for entry in std::fs::read_dir(beside).unwrap().flatten().filter(|entry| entry.path().is_file()) {
                std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
            }
        }
        let source = folder.join(from.file_name().unwrap());
        let program = (self.build)(&source);
        (source, program)
    }
}

pub(crate) fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn run(program: impl AsRef<OsStr>, args: &[&str], source: &Path) {
    let mut command = Command::new(&program);
    let command = command.args(args).arg(source).current_dir(source.parent().unwrap());
    let output = command.output().unwrap_or_else(|error| {
        panic!("{} cannot be run ({error}); it is needed to build {source:?}", program.as_ref().display())
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn build_c(source: &Path) -> PathBuf {
    run("cc", &["-g", "-O0", "-o", "sums"], source);
    source.with_extension("")
}

fn build_cpp(source: &Path) -> PathBuf {
    run("c++", &["-g", "-O0", "-o", "sums"], source);
    source.with_extension("")
}

fn build_rust(source: &Path) -> PathBuf {
    run("rustc", &["--edition", "2024", "-g", "-o", "sums"], source);
    source.with_extension("")
}

fn build_java(source: &Path) -> PathBuf {
    run("javac", &["-g", "-d", "out"], source);
    source.to_owned()
}

fn build_typescript(source: &Path) -> PathBuf {
    let tsc = workspace_root().join(".cache/typescript/node_modules/typescript/bin/tsc");
    assert!(tsc.exists(), "there is no {}: `cargo xtask test adapters` installs it", tsc.display());
    let mut command = Command::new("node");
    command.arg(tsc).arg("-p").arg(source.parent().unwrap());
    let output = command.output().expect("node is needed to build TypeScript");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    source.to_owned()
}
