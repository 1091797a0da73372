//! What a client takes back, and changes that cannot be written: a clear error each, and nothing changed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use baton_tests::bridge::Bridge;
use baton_tests::edits::{Counts, Options, search};
use baton_tests::process::kill9;
use baton_tests::user::{OWNER, set_mode};
use baton_tests::world::{WindowOptions, World, find, space_again, space_for};
use serde_json::{Value, json};

/// A window on a folder with these files.
fn open(world: &mut World, files: &[(&str, &str)], full_disk: bool) -> PathBuf {
    let folder = world.folder("shop");
    fs::create_dir_all(&folder).expect("a folder is made");
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file is written");
    }
    world.baton_ok(&["up"]);
    let options = WindowOptions { folder: Some(folder.clone()), full_disk, ..WindowOptions::default() };
    world.window_with("shop", options);
    world.await_live("shop");
    folder
}

fn line(file: &str, text: &str) -> Value {
    json!({"file_path": file, "edits": [{"start_line": 1, "new_text": text}]})
}

fn text(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).expect("it is there")
}

/// Names in a folder of the state folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_client_takes_back_its_own_change_also_after_its_agent_was_killed() {
    let mut world = World::new();
    let folder = open(&mut world, &[("a.txt", "a\n"), ("b.txt", "b\n")], false);
    let mut one = Bridge::start(&world, &folder, &[]);
    let mut other = Bridge::start(&world, &folder, &[]);
    assert_eq!(one.code("lcp_apply_edit", line("a.txt", "one")), "");
    assert_eq!(other.code("lcp_apply_edit", line("b.txt", "other")), "");
    assert_eq!(one.code("lcp_apply_edit", line("b.txt", "one")), "");

    let kept = world.home().join("changes/undo");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!((mode(&kept), names(&kept).len()), (0o700, 3));
    for name in names(&kept) {
        assert_eq!(mode(&kept.join(&name)), 0o600, "{name}");
    }
    let agent = world.agent_pid("shop");
    kill9(agent);
    world.await_status("another agent is live", |status| {
        find(status, "shop").is_some_and(|window| window.pid != agent) && status.live.is_some()
    });

    // What the other one changed has another text by now, and what else there is is not its own.
    let refused = other.call("lcp_undo", json!({}));
    assert_eq!(refused.code(), "changed_meanwhile");
    assert!(refused.text.contains("b.txt has changed since; nothing was undone."), "{refused:?}");
    assert_eq!((text(&folder, "a.txt"), text(&folder, "b.txt")), ("one\n".to_owned(), "one\n".to_owned()));
    assert_eq!(one.code("lcp_undo", json!({})), "");
    assert_eq!((text(&folder, "a.txt"), text(&folder, "b.txt")), ("one\n".to_owned(), "other\n".to_owned()));
    assert_eq!(other.code("lcp_undo", json!({})), "");
    assert_eq!(other.code("lcp_undo", json!({})), "nothing_to_undo");
    assert_eq!(one.code("lcp_undo", json!({})), "");
    assert_eq!(one.code("lcp_undo", json!({})), "nothing_to_undo");
    assert_eq!((text(&folder, "a.txt"), text(&folder, "b.txt")), ("a\n".to_owned(), "b\n".to_owned()));
    assert_eq!((names(&kept), names(&folder)), (vec![], vec!["a.txt".to_owned(), "b.txt".to_owned()]));
}

#[test]
fn f17_a_disk_that_is_full_in_the_middle_of_a_change_changes_nothing() {
    let mut world = World::new();
    let folder = open(&mut world, &[("a.txt", "a\n")], true);
    let agent = world.agent_pid("shop");
    let mut client = Bridge::start(&world, &folder, &[]);
    let large = "x".repeat(100_000);
    // Nothing fits; the journal does, and what is kept does not; all but the new text.
    for n_bytes in [0, 900, 16_384] {
        space_for(agent, n_bytes);
        let long = "y".repeat(4_000);
        fs::write(folder.join("a.txt"), format!("{long}\n")).expect("we have space");
        let refused = client.call("lcp_apply_edit", line("a.txt", &large));
        assert_eq!(refused.code(), "cannot_write", "{n_bytes}: {refused:?}");
        assert!(refused.text.contains("nothing was changed."), "{n_bytes}: {refused:?}");
        assert!(refused.text.contains("Check its permissions and the free space."), "{n_bytes}: {refused:?}");
        assert_eq!(text(&folder, "a.txt"), format!("{long}\n"), "{n_bytes}");
        assert_eq!(names(&folder), ["a.txt"], "{n_bytes}: nothing of ours stays");
        let changes = world.home().join("changes");
        assert!(names(&changes).iter().all(|name| ["lock", "undo"].contains(&name.as_str())), "{n_bytes}");
        assert_eq!(names(&changes.join("undo")), [""; 0], "{n_bytes}");
        assert_eq!(client.code("lcp_undo", json!({})), "nothing_to_undo");
    }
    space_again(agent);
    assert_eq!(client.code("lcp_apply_edit", line("a.txt", &large)), "");
    // The old text does not fit where it has to be written anew.
    space_for(agent, 1_000);
    assert_eq!(client.code("lcp_undo", json!({})), "cannot_write");
    assert_eq!(text(&folder, "a.txt"), format!("{large}\n"));
    space_again(agent);
    assert_eq!(client.code("lcp_undo", json!({})), "");
    assert_eq!((text(&folder, "a.txt").len(), names(&folder)), (4_001, vec!["a.txt".to_owned()]));
}

#[test]
fn a_file_that_becomes_a_folder_and_a_folder_that_cannot_be_written_to_are_told() {
    let mut world = World::of(OWNER);
    let folder = open(&mut world, &[("a.txt", "a\n")], false);
    OWNER.own(&folder);
    let mut client = Bridge::start(&world, &folder, &[]);
    assert_eq!(client.code("lcp_apply_edit", line("a.txt", "one")), "");

    set_mode(&folder, 0o555);
    for (tool, arguments) in [("lcp_apply_edit", line("a.txt", "two")), ("lcp_undo", json!({}))] {
        let refused = client.call(tool, arguments);
        assert_eq!(refused.code(), "cannot_write", "{refused:?}");
        assert!(refused.text.contains("a.txt: Permission denied"), "{refused:?}");
        assert!(refused.text.contains("nothing was changed."), "{refused:?}");
        assert_eq!((text(&folder, "a.txt"), names(&folder)), ("one\n".to_owned(), vec!["a.txt".to_owned()]));
    }
    set_mode(&folder, 0o755);

    let read = client.call("lcp_get_outline", json!({"file_path": "a.txt"}));
    fs::remove_file(folder.join("a.txt")).expect("it is there");
    fs::create_dir(folder.join("a.txt")).expect("nothing is there");
    let mut edit = line("a.txt", "two");
    edit["hash"] = read.content["hash"].clone();
    let refused = client.call("lcp_apply_edit", edit);
    assert_eq!(refused.code(), "not_a_file", "{refused:?}");
    let refused = client.call("lcp_undo", json!({}));
    assert_eq!(refused.code(), "changed_meanwhile");
    assert!(refused.text.contains("a.txt has changed since; nothing was undone."), "{refused:?}");
    assert_eq!(names(&folder.join("a.txt")), [""; 0]);

    fs::remove_dir(folder.join("a.txt")).expect("it is empty");
    fs::write(folder.join("a.txt"), "one\n").expect("a file is written");
    OWNER.own(&folder);
    assert_eq!(client.code("lcp_undo", json!({})), "");
    assert_eq!(text(&folder, "a.txt"), "a\n");
}

/// A fixed part of `cargo xtask explore changes`.
#[test]
fn of_two_hundred_steps_of_clients_and_others_nothing_is_lost_or_doubled() {
    let options = Options { seed: 7, n_rounds: 200, until: None, is_rough: false };
    let counts = search(&options, &mut |_| {}).unwrap_or_else(|why| panic!("{why}"));
    let expected = Counts {
        rounds: 200,
        made: 49,
        refused: 44,
        undone: 15,
        kept: 27,
        saves: 40,
        kills: 2,
        ..Counts::default()
    };
    assert_eq!(counts, expected);
}
