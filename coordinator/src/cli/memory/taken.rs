//! What the system says of processes and their memory, in `/proc`; nothing where there is none.

use std::collections::BTreeMap;
use std::fs;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    /// Its program, and the script or the module that it runs. No other argument: it may be a secret.
    pub(super) name: String,
}

/// The memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// What would be free without it: what it shares with others counts as its part of that.
    pub(super) share: u64,
    /// What nobody else has.
    pub(super) own: u64,
    /// What it asked for while it ran.
    pub(super) heap: u64,
    /// The stack of its first thread; those of others are in the heap.
    pub(super) stacks: u64,
}

/// All processes.
pub(super) fn processes() -> BTreeMap<u32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, process(pid)?))).collect()
}

fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses, and may hold some itself.
    let (before, after) = stat.rsplit_once(')')?;
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    let (_, short) = before.split_once('(')?;
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> =
        words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let name = name(&words).unwrap_or_else(|| short.to_owned());
    Some(Process { pid, parent, name })
}

/// A program by the words that it was started with.
fn name(words: &[String]) -> Option<String> {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let (program, arguments) = words.split_first()?;
    let program = Some(last(program)).filter(|name| !name.is_empty())?;
    let is_interpreter =
        ["python", "node", "java", "ruby", "bash", "sh"].iter().any(|name| program.starts_with(name));
    if !is_interpreter {
        return Some(program);
    }
    let module =
        arguments.iter().position(|word| word == "-m").and_then(|idx| arguments.get(idx + 1).cloned());
    let is_path = |word: &&String| !word.starts_with('-') && (word.contains('/') || word.contains('.'));
    let script = module.or_else(|| arguments.first().filter(is_path).map(|path| last(path)));
    Some(script.map_or(program.clone(), |script| format!("{program} {script}")))
}

/// What a process takes; `None` of one that is gone, or is somebody else's.
pub(super) fn of(pid: u32) -> Option<Taken> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let mut taken = Taken { share: bytes(&rollup, "Pss"), ..Taken::default() };
    taken.own = bytes(&rollup, "Private_Clean") + bytes(&rollup, "Private_Dirty");
    let maps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
    (taken.heap, taken.stacks) = heap_and_stacks(&maps);
    Some(taken)
}

/// The bytes of a line `Name:   12 kB`.
fn bytes(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = value.and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    number.unwrap_or_default() * 1024
}

/// Of each mapping, by its first line: one without a file is the heap's.
fn heap_and_stacks(maps: &str) -> (u64, u64) {
    let (mut heap, mut stacks) = (0, 0);
    let mut name = "";
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.ends_with(':') {
            name = words.nth(4).unwrap_or_default();
        } else if first == "Anonymous:" {
            let bytes = words.next().and_then(|number| number.parse::<u64>().ok()).unwrap_or_default() * 1024;
            match name {
                "" | "[heap]" => heap += bytes,
                name if name.starts_with("[anon") => heap += bytes,
                name if name.starts_with("[stack") => stacks += bytes,
                _ => {}
            }
        }
    }
    (heap, stacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_by_what_it_runs_and_nothing_else() {
        let of = |line: &str| name(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for (line, told) in [
            ("/usr/bin/python3.11 -X frozen -m debugpy.adapter --token secret", "python3.11 debugpy.adapter"),
            ("/opt/node /x/dapDebugServer.js 0", "node dapDebugServer.js"),
            ("python /work/shop.py --password=x", "python shop.py"),
            ("/bin/rust-analyzer --token x/y", "rust-analyzer"),
            ("bash -c secret", "bash"),
        ] {
            assert_eq!(of(line).as_deref(), Some(told), "{line}");
        }
        assert_eq!(name(&[String::new()]), None);
    }

    #[test]
    fn mappings_are_told_apart() {
        let maps = "\
            7f00-7f10 rw-p 00000000 00:00 0 \nAnonymous: 8 kB\n\
            7f10-7f20 r-xp 00000000 fe:00 12 /usr/lib/libc.so.6\nAnonymous: 4 kB\n\
            5500-5600 rw-p 00000000 00:00 0 [heap]\nRss: 12 kB\nAnonymous: 12 kB\n\
            7fff-8000 rw-p 00000000 00:00 0 [stack]\nAnonymous: 16 kB\n";
        assert_eq!(heap_and_stacks(maps), (20 * 1024, 16 * 1024));
    }

    #[test]
    fn this_process_takes_something() {
        let own = std::process::id();
        let (process, taken) = (process(own).unwrap(), of(own).unwrap());
        assert!(process.parent > 0 && !process.name.is_empty(), "{process:?}");
        assert!(taken.share > 0 && taken.own > 0 && taken.heap > 0 && taken.heap <= taken.own, "{taken:?}");
    }
}
