//! Files and folders that another user made where Baton looks for its own.

use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_tests::place;
use baton_tests::process::await_some;
use baton_tests::user::{OWNER, STRANGER, set_mode};
use baton_tests::world::{Printed, World};

/// Longest that a change of a file takes to be seen.
const PATIENCE: Duration = Duration::from_secs(10);

/// A folder that everybody may write to, as `/tmp` is, and a state folder in it.
fn common_folder(world: &World) -> PathBuf {
    let common = world.scratch().join("common");
    std::fs::create_dir(&common).expect("a temporary folder");
    set_mode(&common, 0o1777);
    common.join("baton")
}

/// Every way in which a state folder is used.
fn assert_refused(world: &World, home: &Path, why: &str) {
    let folder = world.folder("shop");
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let window = ["window", folder.to_str().expect("text")];
    for arguments in [&["up"][..], &["serve"], &["status"], &["token"], &["stdio"], &window] {
        let printed = run(world, home, arguments);
        assert_eq!(printed.code, 77, "{arguments:?}: {printed:?}");
        assert!(printed.err.contains(why), "{arguments:?}: {printed:?}");
    }
}

fn run(world: &World, home: &Path, arguments: &[&str]) -> Printed {
    let output = world.baton_command(arguments).env("BATON_HOME", home).output().expect("baton starts");
    Printed {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn t8_a_state_folder_that_another_user_made_first_is_refused() {
    let world = World::of(OWNER);
    for mode in [0o777, 0o755, 0o700] {
        let home = common_folder(&world);
        STRANGER.act(|| {
            std::fs::DirBuilder::new().mode(mode).create(&home).expect("anybody may");
            std::fs::write(home.join("secret"), [7; 32]).expect("their own folder");
        });
        set_mode(&home, mode);
        assert_refused(&world, &home, "another user");
        std::fs::remove_dir_all(home.parent().expect("common")).expect("root may");
    }
}

#[test]
fn t8_a_link_to_our_own_folder_is_refused() {
    let world = World::of(OWNER);
    let home = common_folder(&world);
    let elsewhere = world.scratch().join("user/elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    OWNER.own(&elsewhere);
    STRANGER.act(|| symlink(&elsewhere, &home).expect("anybody may"));
    assert_refused(&world, &home, "is not a folder");
    assert_eq!(std::fs::read_dir(&elsewhere).expect("it is there").count(), 0, "nothing was written there");
}

/// A folder that others can write to is not trusted even once everything in it is ours.
#[test]
fn t8_what_another_user_put_into_an_open_folder_is_never_read() {
    let world = World::of(OWNER);
    let home = common_folder(&world);
    std::fs::create_dir(&home).expect("a folder");
    OWNER.own(&home);
    set_mode(&home, 0o777);
    STRANGER.act(|| {
        std::fs::write(home.join("secret"), [7; 32]).expect("anybody may");
        std::fs::write(home.join("coordinator.lock"), "").expect("anybody may");
        std::fs::write(home.join("waiting.json"), "{}").expect("anybody may");
    });
    assert_refused(&world, &home, "is writable by other users");
    // The user does what is advised; what was planted before is still there.
    set_mode(&home, 0o700);
    let printed = run(&world, &home, &["up"]);
    assert_eq!(printed.code, 77, "{printed:?}");
    assert!(printed.err.contains("secret"), "{printed:?}");
    std::fs::remove_file(home.join("secret")).expect("root may");
    let printed = run(&world, &home, &["up"]);
    assert_ne!(printed.code, 0, "the lock file is another user's: {printed:?}");
    std::fs::remove_file(home.join("coordinator.lock")).expect("root may");
    let printed = run(&world, &home, &["up"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    assert_eq!(run(&world, &home, &["down"]).code, 0);
}

/// In the common temporary folder, under names as those of Baton's own folders.
#[test]
fn t8_what_another_user_put_into_the_temporary_folder_is_left_alone() {
    let mut world = World::of(OWNER).with_program(&place::tool("servers/ty/bin/ty"));
    let (temporary, kept) = (world.scratch().join("tmp"), world.scratch().join("user/kept"));
    std::fs::create_dir(&kept).expect("a folder");
    std::fs::write(kept.join("file"), "").expect("a file");
    OWNER.own(&kept);
    let planted = ["folder", "link", "file"].map(|name| temporary.join(format!("baton-scratch-{name}")));
    STRANGER.act(|| {
        let [folder, link, file] = &planted;
        std::fs::create_dir(folder).expect("anybody may");
        std::fs::write(folder.join("theirs"), "").expect("their own folder");
        symlink(&kept, link).expect("anybody may");
        std::fs::write(file, "").expect("anybody may");
    });
    set_mode(&planted[0], 0o777);
    world.window("shop");
    world.await_live("shop");
    super::read_code(&world);
    let names = std::fs::read_dir(&temporary).expect("it is there");
    let own = names.map(|entry| entry.expect("an entry").path()).filter(|path| !planted.contains(path));
    assert!(own.count() > 0, "the agent has a folder of its own");
    assert!(planted.iter().all(|path| path.symlink_metadata().is_ok()), "what is not ours stays");
    assert!(planted[0].join("theirs").exists() && kept.join("file").exists());
    assert_eq!(std::fs::read_dir(&planted[0]).expect("it is there").count(), 1, "nothing was put there");
}

/// Settings name programs that run as us.
#[test]
fn t8_settings_that_another_user_may_write_are_not_taken() {
    let world = World::of(OWNER);
    world.baton_ok(&["up"]);
    let common = common_folder(&world).with_file_name("theirs.toml");
    STRANGER.act(|| std::fs::write(&common, "routing = \"any\"\n").expect("anybody may"));
    set_mode(&common, 0o644);
    let path = PathBuf::from(world.baton_ok(&["settings", "--path"]).trim());
    OWNER.act(|| {
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("our own folder");
        symlink(&common, &path).expect("our own folder");
    });
    let routing = || world.baton_ok(&["settings", "routing"]);
    let await_warning = |why: &str| {
        let is_told = || world.baton(&["status"]).err.contains(why).then_some(());
        assert!(await_some(PATIENCE, is_told).is_some(), "{:?}", world.baton(&["status"]));
        assert!(routing().contains("live"), "{}", routing());
    };
    await_warning("it is owned by another user");
    OWNER.own(&common);
    set_mode(&common, 0o666);
    await_warning("every user may write to it");
    set_mode(&common, 0o644);
    let is_taken = || routing().contains("any").then_some(());
    assert!(await_some(PATIENCE, is_taken).is_some(), "{:?}", world.baton(&["status"]));
}
