//! Which crates of ours stand on which: a table, and every manifest that is held to it.

use std::collections::BTreeSet;

use crate::tidy::{manifests, read};

/// Each crate, and those of ours that it may name; what its tests name is free.
const ALLOWED: &[(&str, &[&str])] = &[
    ("baton-proto", &[]),
    ("baton-jsonc", &[]),
    ("baton-sock-diag", &[]),
    ("baton-profile", &["baton-link", "baton-proto"]),
    ("baton-errors", &["baton-link", "baton-proto"]),
    ("baton-link", &["baton-proto", "baton-sock-diag"]),
    ("baton-mcp", &["baton-proto"]),
    ("baton-election", &["baton-proto"]),
    ("baton-client-files", &["baton-jsonc", "baton-link"]),
    ("baton-bridge", &["baton-link", "baton-mcp", "baton-proto"]),
    ("baton-http", &["baton-election", "baton-link", "baton-mcp", "baton-proto"]),
    ("baton-edge", &["baton-election", "baton-http", "baton-link", "baton-mcp", "baton-proto"]),
    ("baton-gateway", &["baton-bridge", "baton-http", "baton-link", "baton-proto"]),
    ("baton-page", &["baton-election", "baton-http", "baton-link", "baton-proto"]),
    ("baton-metrics", &["baton-edge", "baton-election", "baton-http", "baton-page", "baton-proto"]),
    ("baton-config", &["baton-errors", "baton-link", "baton-proto"]),
    (
        "baton-control",
        &[
            "baton-config",
            "baton-election",
            "baton-http",
            "baton-link",
            "baton-page",
            "baton-profile",
            "baton-proto",
        ],
    ),
    (
        "baton-daemon",
        &[
            "baton-config",
            "baton-control",
            "baton-edge",
            "baton-election",
            "baton-http",
            "baton-link",
            "baton-metrics",
            "baton-page",
            "baton-proto",
        ],
    ),
    (
        "baton-coordinator",
        &[
            "baton-bridge",
            "baton-client-files",
            "baton-daemon",
            "baton-errors",
            "baton-gateway",
            "baton-link",
            "baton-proto",
            "baton-show",
        ],
    ),
    ("baton-show", &["baton-link", "baton-proto"]),
    ("baton-agent-base", &["baton-jsonc", "baton-link", "baton-proto"]),
    ("baton-agent-debug", &["baton-agent-base", "baton-link", "baton-proto"]),
    ("baton-agent-code", &["baton-agent-base", "baton-link", "baton-proto"]),
    (
        "baton-agent-tools",
        &["baton-agent-base", "baton-agent-code", "baton-agent-debug", "baton-link", "baton-proto"],
    ),
    (
        "baton-agent-mcp",
        &["baton-agent-base", "baton-agent-tools", "baton-link", "baton-profile", "baton-proto"],
    ),
    (
        "baton-window-agent",
        &[
            "baton-agent-base",
            "baton-agent-code",
            "baton-agent-debug",
            "baton-agent-mcp",
            "baton-agent-tools",
            "baton-errors",
            "baton-link",
            "baton-proto",
        ],
    ),
    ("baton-tests", &["baton-agent-base", "baton-daemon", "baton-election", "baton-link", "baton-proto"]),
    (
        "baton-fuzz",
        &[
            "baton-agent-base",
            "baton-agent-code",
            "baton-agent-debug",
            "baton-client-files",
            "baton-daemon",
            "baton-edge",
            "baton-link",
            "baton-mcp",
        ],
    ),
    (
        "baton-sim",
        &[
            "baton-agent-base",
            "baton-agent-debug",
            "baton-agent-mcp",
            "baton-agent-tools",
            "baton-bridge",
            "baton-daemon",
            "baton-election",
            "baton-link",
            "baton-proto",
            "baton-window-agent",
        ],
    ),
    ("xtask", &[]),
];

/// Most direct dependencies of a crate, tests aside: one that needs more does several things.
const MAX_DEPENDENCIES: usize = 18;

/// Crates that have more, and how many. These numbers may only fall.
const TOO_MANY: &[(&str, usize)] = &[("baton-tests", 20)];

/// The name of a crate and all that it depends on, tests aside.
fn dependencies(manifest: &str) -> (String, BTreeSet<String>) {
    let (mut section, mut name, mut named) = (String::new(), String::new(), BTreeSet::new());
    for line in manifest.lines().map(str::trim) {
        let key = line.split(['.', '=', ' ']).next().unwrap_or_default().trim_matches('"');
        let is_header = line.starts_with('[');
        if is_header {
            section = line.trim_matches(['[', ']']).to_owned();
        }
        // `[dependencies.x]` is a section of its own.
        let (table, last) = section.rsplit_once('.').unwrap_or_default();
        let key = match table.ends_with("dependencies") {
            true => last,
            false if is_header || key.starts_with('#') => "",
            false => key,
        };
        let is_for_tests = section.contains("dev-dependencies") || section.starts_with("workspace");
        if section.contains("dependencies") && !is_for_tests && !key.is_empty() {
            named.insert(key.to_owned());
        } else if section == "package" && key == "name" {
            name = line.split('"').nth(1).unwrap_or_default().to_owned();
        }
    }
    // What is there for the fuzzer alone is for tests.
    let fuzzing = manifest.split_once("\nfuzzing = [").and_then(|(_, rest)| rest.split_once(']'));
    let fuzzing = fuzzing.map_or("", |(list, _)| list);
    named.retain(|dependency| !fuzzing.contains(&format!("\"dep:{dependency}\"")));
    (name, named)
}

/// Dependencies that the table does not allow.
fn forbidden(manifest: &str) -> Vec<String> {
    let (name, named) = dependencies(manifest);
    let allowed = ALLOWED.iter().find(|(known, _)| *known == name);
    let Some((_, allowed)) = allowed else { return vec![format!("{name} is not in the table")] };
    let is_allowed = |dependency: &String| allowed.contains(&dependency.as_str());
    let ours = named.iter().filter(|named| named.starts_with("baton-"));
    ours.filter(|named| !is_allowed(named)).map(|named| format!("{name} -> {named}")).collect()
}

#[test]
fn crates_stand_on_those_that_the_table_allows() {
    let manifests = manifests();
    let bad: Vec<String> = manifests.iter().flat_map(|path| forbidden(&read(path))).collect();
    assert!(bad.is_empty(), "these are not in the table of `walls/crates.rs`: {bad:#?}");
    assert_eq!(manifests.len(), ALLOWED.len(), "every crate of the table is there");
}

/// Why a crate has not as many dependencies as it may.
fn count(manifest: &str) -> Option<String> {
    let (name, named) = dependencies(manifest);
    let (n_found, known) = (named.len(), TOO_MANY.iter().find(|(known, _)| *known == name));
    match known {
        Some((_, n_known)) if n_found > MAX_DEPENDENCIES && n_found == *n_known => None,
        Some((_, n_known)) => {
            Some(format!("{name} has {n_found} dependencies, the list of exceptions says {n_known}"))
        }
        None if n_found > MAX_DEPENDENCIES => Some(format!("{name} has {n_found} dependencies: {named:?}")),
        None => None,
    }
}

#[test]
fn no_crate_depends_on_too_much() {
    let bad: Vec<String> = manifests().iter().filter_map(|path| count(&read(path))).collect();
    assert!(bad.is_empty(), "{MAX_DEPENDENCIES} dependencies at most: {bad:#?}");
}

#[test]
fn a_dependency_too_many_is_found() {
    let with = |header: &str, n_named: usize| {
        let named: String = (0..n_named).map(|idx| format!("d{idx} = \"1\"\n")).collect();
        format!("[package]\nname = \"baton-link\"\n{header}\n{named}")
    };
    let target = "[target.'cfg(unix)'.dependencies.socket2]\nversion = \"1\"";
    assert_eq!(count(&with("[dependencies]", MAX_DEPENDENCIES)), None);
    assert!(count(&with("[dependencies]", MAX_DEPENDENCIES + 1)).is_some());
    assert!(count(&(with("[dependencies]", MAX_DEPENDENCIES) + target)).is_some());
    assert_eq!(count(&with("[dev-dependencies]", MAX_DEPENDENCIES + 1)), None);
    let (known, n_known) = TOO_MANY[0];
    let named = |n_named| with("[dependencies]", n_named).replace("baton-link", known);
    assert_eq!(count(&named(n_known)), None);
    assert!(count(&named(n_known + 1)).is_some() && count(&named(n_known - 1)).is_some());
}

#[test]
fn a_forbidden_dependency_is_found() {
    let forbidden = |rest: &str| forbidden(&format!("[package]\nname = \"baton-link\"\n{rest}"));
    for planted in [
        "[dependencies]\nbaton-coordinator.workspace = true",
        "[dependencies]\nserde = \"1\"\nbaton-coordinator = { workspace = true, optional = true }",
        "[dependencies.baton-coordinator]\nworkspace = true",
        "[target.'cfg(unix)'.dependencies]\nbaton-coordinator.workspace = true",
        "[build-dependencies]\nbaton-coordinator = { path = \"../coordinator\" }",
    ] {
        assert_eq!(forbidden(planted), ["baton-link -> baton-coordinator"], "{planted}");
    }
    let allowed = "[dependencies]\nbaton-proto.workspace = true\n[dev-dependencies]\nbaton-coordinator.workspace = true";
    assert_eq!(forbidden(allowed), [""; 0]);
}

/// A crate stands one floor above the highest of those that it names.
fn floor_of(name: &str) -> usize {
    let named = ALLOWED.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, named)| named);
    1 + named.iter().map(|below| floor_of(below)).max().unwrap_or(0)
}

/// Floors above `baton-link`, which agent and coordinator share.
const MAX_FLOORS: usize = 6;

#[test]
fn the_house_is_low() {
    for roof in ["baton-window-agent", "baton-coordinator"] {
        let n_floors = floor_of(roof) - floor_of("baton-link");
        assert!((2..=MAX_FLOORS).contains(&n_floors), "{roof}: {n_floors} floors");
    }
}
