//! One program for every adapter, in a folder of its own; what it does is its first argument. And how to see what of it
//! still runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use baton_agent_debug::adapters::wish::{Launch, Wish};
use baton_agent_debug::types::SessionId;
use baton_agent_debug::{Debugger, DebuggerOptions, Wait};
use tokio_util::sync::CancellationToken;

/// The bound of the fault matrix, with room for a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(5);
/// A start may have to compile, and to load a Java or a cold disk.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// `loop`, `flood`, `read`; with `loop` the second argument is a file that is made once it turns.
const C: &str = r#"#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  volatile long turns = 0;
  // Nothing is here.
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "flood")) for (int n = 0; n < 100000; n++) printf("line %05d of a flood of output\n", n);
  if (!strcmp(what, "read")) { char text[64]; if (fgets(text, 64, stdin)) printf("got %s", text); }
  if (argc > 2) fclose(fopen(argv[2], "w"));
  while (!strcmp(what, "loop")) {
    turns++;
    usleep(1000);
  }
  puts("done");
  return 0;
}
"#;
const PYTHON: &str = r#"import sys, time
turns = 0
# Nothing is here.
what = sys.argv[1] if len(sys.argv) > 1 else ""
if what == "flood":
    for n in range(100000):
        print("line", n, "of a flood of output")
if what == "read":
    print("got", sys.stdin.readline())
if len(sys.argv) > 2:
    open(sys.argv[2], "w").close()
while what == "loop":
    turns += 1
    time.sleep(0.001)
print("done")
"#;
const JAVASCRIPT: &str = r#"const what = process.argv[2];
let turns = 0;
// Nothing is here.
const clock = new Int32Array(new SharedArrayBuffer(4));
if (process.argv[3]) require("fs").writeFileSync(process.argv[3], "");
// A pause in node's own code would step on until it is in the program's.
while (what === "loop") {
  turns++;
  Atomics.wait(clock, 0, 0, 1);
}
if (what === "flood") for (let n = 0; n < 100000; n++) console.log(`line ${n} of a flood of output`);
if (what === "read") process.stdin.once("data", (text) => { console.log("got " + text); process.exit(0); });
else console.log("done");
"#;
const GO: &str = r#"package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	turns := 0
	// Nothing is here.
	if len(os.Args) > 2 {
		os.WriteFile(os.Args[2], nil, 0644)
	}
	if os.Args[1] == "read" {
		var text string
		fmt.Scanln(&text)
		fmt.Println("got", text)
	}
	if os.Args[1] == "flood" {
		for n := 0; n < 100000; n++ {
			fmt.Printf("line %05d of a flood of output\n", n)
		}
	}
	for os.Args[1] == "loop" {
		turns++
		time.Sleep(time.Millisecond)
	}
	fmt.Println("done")
}
"#;
const JAVA: &str = r#"import java.nio.file.*;

public class Program {
  public static void main(String[] args) throws Exception {
    int turns = 0;
    // Nothing is here.
    if (args.length > 1) Files.writeString(Path.of(args[1]), "");
    if (args[0].equals("flood")) for (int n = 0; n < 100000; n++) System.out.println("line " + n + " of a flood of output");
    if (args[0].equals("read")) System.out.println("got " + System.console().readLine());
    while (args[0].equals("loop")) {
      turns++;
      Thread.sleep(1);
    }
    System.out.println("done");
  }
}
"#;
const BASH: &str = r#"what=$1
turns=0
# Nothing is here.
if [ "$what" = flood ]; then seq -f 'line %g of a flood of output' 100000; fi
if [ "$what" = read ]; then read -r text; echo "got $text"; fi
if [ -n "$2" ]; then : > "$2"; fi
while [ "$what" = loop ]; do
  turns=$((turns + 1))
  sleep 0.01
done
echo done
"#;

/// Tests for each adapter: `[FUNCTION...]` of the file, which take its name.
macro_rules! each_adapter {
    (@all $tests:tt $($module:ident: $adapter:literal;)*) => {
        $(each_adapter!(@module $tests $module $adapter);)*
    };
    (@module [$($test:ident)*] $module:ident $adapter:literal) => {
        mod $module {
            $(#[tokio::test]
            async fn $test() {
                super::$test($adapter).await;
            })*
        }
    };
    ($tests:tt) => {
        each_adapter! { @all $tests
            debugpy: "debugpy";
            js_debug: "js-debug";
            gdb: "gdb";
            lldb_dap: "lldb-dap";
            codelldb: "codelldb";
            delve: "delve";
            java: "java";
            bash_dap: "bash-dap";
        }
    };
}
pub(crate) use each_adapter;

/// A program in a folder of its own, which its processes are known by.
pub(crate) struct Program {
    pub(crate) folder: tempfile::TempDir,
    pub path: PathBuf,
    pub(crate) source: PathBuf,
    /// A line of the endless loop.
    pub(crate) line: u32,
    /// A line that is a comment.
    pub(crate) comment: u32,
}

impl Program {
    /// A source in a folder of its own; `looping` is a line of its loop.
    pub(crate) fn new(name: &str, text: &str, looping: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("baton-faults-").tempdir().unwrap();
        let source = std::fs::canonicalize(folder.path()).unwrap().join(name);
        std::fs::write(&source, text).unwrap();
        let number = |is_it: &dyn Fn(&str) -> bool| {
            let found = text.lines().position(|line| is_it(line.trim()));
            found.map_or(0, |line| u32::try_from(line + 1).unwrap())
        };
        let line = number(&|line| line == looping);
        let comment = number(&|line| line.ends_with("Nothing is here."));
        Self { folder, path: source.clone(), source, line, comment }
    }

    pub(crate) fn of(adapter: &str) -> Self {
        match adapter {
            "debugpy" => Self::new("program.py", PYTHON, "turns += 1"),
            "js-debug" => Self::new("program.js", JAVASCRIPT, "turns++;"),
            "delve" => Self::built("program.go", GO, "turns++"),
            "java" => Self::built("Program.java", JAVA, "turns++;"),
            "bash-dap" => Self::new("program.sh", BASH, "turns=$((turns + 1))"),
            _ => Self::compiled(C, "turns++;", &[]),
        }
    }

    /// A source that can be started, in whichever language it is.
    pub(crate) fn built(name: &str, text: &str, looping: &str) -> Self {
        let mut program = Self::new(name, text, looping);
        let source = program.source.clone();
        match source.extension().and_then(|extension| extension.to_str()) {
            Some("c") => return Self::compiled(text, looping, &[]),
            Some("go") => {
                std::fs::write(source.with_file_name("go.mod"), "module program\n\ngo 1.19\n").unwrap()
            }
            Some("java") => {
                let mut build = Command::new("javac");
                build.args(["-g", "-d"]).arg(source.with_file_name("out")).arg(source);
                assert!(build.status().expect("a JDK is installed").success());
            }
            Some(extension @ ("cpp" | "rs")) => {
                program.path = source.with_extension("");
                let mut build = Command::new(if extension == "rs" { "rustc" } else { "c++" });
                build.arg("-g").arg("-o").arg(&program.path).arg(source);
                assert!(build.status().expect("a compiler is installed").success());
            }
            _ => {}
        }
        program
    }

    /// A program in C.
    pub(crate) fn compiled(text: &str, looping: &str, options: &[&str]) -> Self {
        let mut program = Self::new("program.c", text, looping);
        program.path = program.source.with_extension("");
        let mut build = Command::new("cc");
        build.args(["-g", "-O0"]).args(options).arg("-o").arg(&program.path).arg(&program.source);
        assert!(build.status().expect("a C compiler is installed").success());
        program
    }

    /// A program that cannot be started, and a word of the reason.
    pub(crate) fn broken(adapter: &str) -> (Self, &'static str) {
        match adapter {
            "debugpy" => (Self::new("broken.py", "def broken(:\n", ""), "SyntaxError"),
            "js-debug" => (Self::new("broken.js", "function broken( {\n", ""), "SyntaxError"),
            "delve" => {
                let text = "package main\n\nfunc main() {\n\tnobodyMadeThis()\n}\n";
                let program = Self::new("broken.go", text, "");
                std::fs::write(program.folder.path().join("go.mod"), "module broken\n\ngo 1.19\n").unwrap();
                (program, "nobodyMadeThis")
            }
            "java" => (Self::new("Broken.java", "class Broken {}\n", ""), "is not compiled"),
            "bash-dap" => (Self::new("broken.sh", "if then\n", ""), "syntax error"),
            _ => {
                let program = Self::new("broken", "\u{7f}ELF, and nothing more", "");
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
                std::fs::set_permissions(&program.path, mode).unwrap();
                (program, "broken")
            }
        }
    }

    pub(crate) fn start(&self, adapter: &str, what: &str, terminal: bool) -> Wish {
        Wish::Launch(Launch {
            adapter: Some(adapter.to_owned()),
            program: self.path.clone(),
            args: vec![what.to_owned()],
            terminal,
            ..Launch::default()
        })
    }

    pub(crate) fn needle(&self) -> String {
        self.folder.path().file_name().unwrap().to_string_lossy().into_owned()
    }
}

/// Where `cargo xtask test adapters` installs them.
pub(crate) fn shelf() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = above.into_iter().find(|folder| folder.join("Cargo.lock").is_file()).unwrap();
    let adapters = root.join(".cache/adapters");
    assert!(adapters.exists(), "there is no {}: `cargo xtask test adapters` fills it", adapters.display());
    adapters
}

pub(crate) fn debugger(program: &Program) -> Debugger {
    let mut options = DebuggerOptions::from_env(vec![program.source.parent().unwrap().to_owned()]);
    options.shelf.folder = Some(shelf());
    Debugger::spawn(options)
}

pub(crate) fn wait_for(timeout: Duration) -> Wait {
    Wait { timeout, cancelled: CancellationToken::new() }
}

/// Living processes whose environment or command line holds `needle`.
pub(crate) fn processes_with(needle: &str, file: &str) -> BTreeSet<i32> {
    let is_living = |process: &Path| {
        let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X'])
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let bytes = std::fs::read(process.path().join(file)).ok()?;
            (String::from_utf8_lossy(&bytes).contains(needle) && is_living(&process.path())).then_some(pid)
        })
        .collect()
}

/// Those of a session: what was started directly first.
pub(crate) fn of_session(session: &SessionId) -> (Vec<i32>, Vec<i32>) {
    let marked = processes_with(&format!("BATON_DEBUG_SESSION={session}-"), "environ");
    let own = std::process::id().to_string();
    let is_direct = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().nth(1) == Some(own.as_str())
    };
    marked.into_iter().partition(is_direct)
}

pub(crate) fn kill(pids: impl IntoIterator<Item = i32>) {
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Waits until nothing of a program and its session lives.
pub(crate) async fn until_gone(program: &Program, session: &SessionId) {
    let needle = program.needle();
    let left = || (processes_with(&needle, "cmdline"), of_session(session));
    let gone = async {
        while left() != (BTreeSet::new(), (Vec::new(), Vec::new())) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(BOUND, gone).await.is_ok(), "still alive: {:?}", left());
}
