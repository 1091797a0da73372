//! `baton cache`: what it counts is what `du` counts, and what a running window has is never removed.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use baton_tests::world::World;
use serde_json::Value;

/// A file that was last written that long ago.
fn old_file(path: &Path, age: Duration) {
    std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
    let file = std::fs::File::create(path).expect("a file");
    file.set_len(10_000).expect("its size");
    file.set_modified(SystemTime::now() - age).expect("its age");
}

/// Bytes of all files in a folder, as the system's own tool counts them.
fn du(world: &World, folder: &Path) -> u64 {
    let files = world.command("find").arg(folder).args(["-type", "f", "-printf", "%s\n"]).output();
    let text = String::from_utf8(files.expect("find is there").stdout).expect("numbers");
    text.lines().map(|line| line.parse::<u64>().expect("a number")).sum()
}

#[test]
fn what_nothing_needs_is_shown_and_removed_and_nothing_else() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    // What the other tests use is out of reach.
    let mut world = World::new().with_env("BATON_ADAPTERS", "").with_env("BATON_SERVERS", "");
    world.window("shop");
    world.await_live("shop");
    let home = world.home();
    let (adapters, store) = (home.join("adapters"), home.join("adapters/.store"));
    old_file(&home.join("logs/baton.2020-01-01.log"), 40 * DAY);
    old_file(&home.join("logs/baton.2020-01-02.log"), DAY);
    old_file(&home.join("breakpoints/gone.json"), 40 * DAY);
    old_file(&home.join("state.json.broken"), 40 * DAY);
    old_file(&store.join("gdb-1/bin/gdb"), DAY);
    old_file(&store.join("gdb-2/bin/gdb"), DAY);
    symlink(store.join("gdb-2"), adapters.join("gdb")).expect("a link");
    old_file(&adapters.join("of-the-user/tool"), 40 * DAY);

    assert!(
        !world.baton_ok(&["cache", "clear", "-n", "--downloads"]).contains(".cache/"),
        "they are out of reach"
    );
    let logs_before = du(&world, &home.join("logs"));
    let told: Vec<Value> = serde_json::from_str(&world.baton_ok(&["cache", "--json"])).expect("JSON");
    let of =
        |what: &str| told.iter().find(|told| told["what"] == what).unwrap_or_else(|| panic!("no {what}"));
    // They grow meanwhile.
    let logs = logs_before..=du(&world, &home.join("logs"));
    assert!(of("logs")["bytes"].as_u64().is_some_and(|bytes| logs.contains(&bytes)), "{logs:?}: {told:?}");
    assert_eq!(of("debug adapters")["bytes"].as_u64(), Some(du(&world, &store.join("gdb-2"))));
    assert_eq!(of("old and unfinished installs")["bytes_not_needed"], 10_000);
    assert!(world.baton_ok(&["cache"]).contains("logs"));

    let left = || {
        let files =
            world.command("find").arg(&home).args(["-size", "10000c"]).output().expect("find is there");
        let text = String::from_utf8(files.stdout).expect("paths");
        let name =
            |line: &str| line.strip_prefix(home.to_str().expect("text")).expect("inside")[1..].to_owned();
        let mut names: Vec<String> = text.lines().map(name).collect();
        names.sort();
        names
    };
    let before = left();
    let dry = world.baton_ok(&["cache", "clear", "--dry-run"]);
    assert!(dry.contains("Would remove 3 files, 30.0 kB"), "{dry}");
    assert_eq!(left(), before);
    let cleared = world.baton_ok(&["cache", "clear"]);
    assert!(cleared.contains("Removed 3 files, 30.0 kB"), "{cleared}");
    let kept =
        ["adapters/.store/gdb-1/bin/gdb", "adapters/.store/gdb-2/bin/gdb", "adapters/of-the-user/tool"];
    assert_eq!(left(), [&kept[..], &["logs/baton.2020-01-02.log"]].concat());

    // Nobody is there to be asked, and nothing is removed.
    let refused = world.baton(&["cache", "clear", "--downloads"]);
    assert!(refused.code == 1 && refused.err.contains("--yes"), "{refused:?}");
    assert_eq!(left().len(), 4);
    world.baton_ok(&["cache", "clear", "--older-than", "0s", "--downloads", "--yes"]);
    assert_eq!(left(), ["adapters/of-the-user/tool"]);
    assert!(!adapters.join("gdb").is_symlink());
    // What runs goes on.
    world.await_live("shop");
}
