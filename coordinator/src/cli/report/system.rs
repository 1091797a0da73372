//! The machine that Baton runs on, as far as it matters when something goes wrong there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};

/// Variables whose values are told: how Baton and the terminal were started, and where programs are looked for.
const TOLD: [&str; 21] = [
    "BATON_ADAPTERS",
    "BATON_BIN",
    "BATON_HOME",
    "BATON_LOG",
    "BATON_PORT",
    "BATON_SERVERS",
    "COLORTERM",
    "LANG",
    "LCP_LOG_LEVEL",
    "LCP_MAX_SESSIONS",
    "LCP_PORT",
    "LCP_TMP_DIR",
    "LC_ALL",
    "PATH",
    "SHELL",
    "TERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "WSL_DISTRO_NAME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// System, processors, memory, limits.
pub(super) fn describe() -> Value {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let is_container = ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists());
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    json!({
        "os": os_name().unwrap_or_else(|| std::env::consts::OS.to_owned()),
        "kernel": format!("{} {}", text(names.sysname()), text(names.release())),
        "architecture": std::env::consts::ARCH,
        "processors": std::thread::available_parallelism().ok().map(usize::from),
        "processor": field_of("/proc/cpuinfo", "model name"),
        "memory": field_of("/proc/meminfo", "MemTotal"),
        "memory_available": field_of("/proc/meminfo", "MemAvailable"),
        "load": std::fs::read_to_string("/proc/loadavg").ok().map(|load| load.trim().to_owned()),
        "is_container": is_container,
        "max_open_files": files.current,
        "ptrace_scope": std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok().map(|scope| scope.trim().to_owned()),
    })
}

/// As the system calls itself.
fn os_name() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// The first value of that name in one of the kernel's lists.
fn field_of(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let field = text.lines().filter_map(|line| line.split_once(':')).find(|(field, _)| field.trim() == name);
    field.map(|(_, value)| value.trim().to_owned())
}

/// Names of all variables; values of those that are told.
pub(super) fn environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Value {
    let told = |(name, value): (OsString, OsString)| {
        let name = name.to_string_lossy().into_owned();
        let value = if TOLD.contains(&name.as_str()) {
            value.to_string_lossy().into_owned()
        } else {
            "(set)".to_owned()
        };
        (name, value)
    };
    json!(variables.map(told).collect::<BTreeMap<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_of_a_few_variables_only() {
        let given = [("TERM", "xterm"), ("AWS_SECRET_ACCESS_KEY", "canary")];
        let told = environment(given.into_iter().map(|(name, value)| (name.into(), value.into())));
        assert_eq!(told, json!({ "TERM": "xterm", "AWS_SECRET_ACCESS_KEY": "(set)" }));
    }

    #[test]
    fn the_machine_is_described() {
        let described = describe();
        assert_eq!(described["architecture"], std::env::consts::ARCH);
        assert!(described["processors"].as_u64().is_some_and(|n_processors| n_processors > 0));
        assert!(described["kernel"].as_str().is_some_and(|kernel| kernel.contains(' ')));
    }
}
