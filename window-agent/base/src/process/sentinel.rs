//! Who clears up after an agent that was killed. In a simulation (`--cfg sim`) nobody has to.

use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Child;

use super::{MARK, new_command};

/// Waits for the end of this process, however it comes, and then kills what carries one of its marks, and removes the
/// folders that are named so: an agent that is killed cannot do it itself, and not every adapter ends with whom it
/// speaks to.
#[derive(Debug)]
pub struct Sentinel {
    /// Its standard input ends with us.
    _child: Child,
}

impl Sentinel {
    /// For marks that begin like this. It outlives us; the runtime reaps it when only the engine goes.
    pub fn spawn(beginning: &str) -> io::Result<Self> {
        /// Looks three times, for a program can fork meanwhile.
        const SCRIPT: &str = r#"read -r _
for _ in 1 2 3; do
    for found in $(grep -lsz "^$0" /proc/[0-9]*/environ); do
        pid=${found#/proc/}
        kill -9 "${pid%/environ}"
    done
done
rm -rf "${TMPDIR:-/tmp}/baton-${0#*=}"*"#;
        let mut command = new_command(Path::new("/bin/sh"));
        command.arg("-c").arg(SCRIPT).arg(format!("{MARK}={beginning}")).env_remove(MARK).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0).spawn().map(|child| Self { _child: child })
    }
}
