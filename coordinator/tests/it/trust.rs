//! Files that others can read, write or plant.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use baton_proto::discovery::Role;

use crate::scene::{Scene, mode};

/// Another user's id; nobody's, by convention.
const OTHER_USER: u32 = 65_534;

#[test]
fn t8_nothing_is_open_to_others_even_with_umask_zero() {
    let scene = Scene::new();
    let mut shell = std::process::Command::new("sh");
    let made = scene.command(&["up"]);
    shell.args(["-c", "umask 0; exec \"$0\" up", crate::scene::BATON]);
    for (name, value) in made.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    assert!(shell.stdout(std::process::Stdio::null()).status().unwrap().success());
    assert_eq!(mode(&scene.home_path()), 0o700);
    assert_eq!(mode(&scene.home_path().join("logs")), 0o700);
    let mut folders = vec![scene.home_path()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let Ok(meta) = std::fs::symlink_metadata(&path) else {
                // The coordinator runs, and a file that it replaces has another name until it is whole.
                assert!(path.extension().is_some_and(|end| end == "tmp"), "{} is gone", path.display());
                continue;
            };
            assert_eq!(meta.permissions().mode() & 0o077, 0, "{}", path.display());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
}

#[test]
fn t8_a_folder_that_cannot_be_trusted_is_refused() {
    let scene = Scene::new();
    let refused = |why: &str| {
        for verb in ["up", "serve", "status", "token"] {
            let answer = scene.run(&[verb]);
            assert_eq!(answer.code, 77, "{verb}: {answer:?}");
            assert!(answer.stderr.contains(why), "{}", answer.stderr);
        }
    };
    let home = scene.home_path();
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, Permissions::from_mode(0o777)).unwrap();
    refused("is writable by other users");
    std::fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();

    std::fs::rename(&home, scene.path("real")).unwrap();
    symlink(scene.path("real"), &home).unwrap();
    refused("is not a folder");
    std::fs::remove_file(&home).unwrap();

    // Root can give the folder away; anybody else is shown one of root's.
    if rustix::process::geteuid().is_root() {
        std::fs::create_dir(&home).unwrap();
        chown(&home, Some(OTHER_USER), None).unwrap();
        refused("is owned by another user");
    } else {
        let answer = scene.command(&["status"]).env("BATON_HOME", "/usr").output().unwrap();
        assert_eq!(answer.status.code(), Some(77));
    }
}

#[test]
fn t8_a_planted_secret_is_refused() {
    let scene = Scene::new();
    let secret = scene.home().path().join("secret");
    let planted = scene.path("planted");
    std::fs::write(&planted, [7; 32]).unwrap();
    std::fs::set_permissions(&planted, Permissions::from_mode(0o600)).unwrap();
    symlink(&planted, &secret).unwrap();
    assert_eq!(scene.run(&["up"]).code, 77);
    std::fs::remove_file(&secret).unwrap();
    std::fs::hard_link(&planted, &secret).unwrap();
    assert_eq!(scene.run(&["up"]).code, 77);
}

#[test]
fn t20_no_token_is_logged_published_or_passed_as_an_argument() {
    let scene = Scene::new();
    let running = scene.up();
    let token = scene.run(&["token"]).stdout;
    let token = token.trim();
    scene.run(&["status"]);
    let secret = scene.home().secret().unwrap();
    let member = secret.token(Role::Member);
    let published = std::fs::read_to_string(scene.home().discovery_path()).unwrap();
    let mut texts = vec![scene.logs(), published];
    if cfg!(target_os = "linux") {
        texts.push(std::fs::read_to_string(format!("/proc/{}/cmdline", running.pid)).unwrap());
        let environment = std::fs::read(format!("/proc/{}/environ", running.pid)).unwrap();
        texts.push(String::from_utf8_lossy(&environment).into_owned());
    }
    for text in texts {
        assert!(!text.contains(token) && !text.contains(member.expose()), "{text}");
    }
}

#[test]
fn a_rotated_token_is_another_and_stays() {
    let scene = Scene::new();
    scene.up();
    let old = scene.run(&["token"]).stdout;
    let new = scene.run(&["token", "--rotate"]).stdout;
    assert_ne!(old, new);
    assert_eq!(scene.run(&["down"]).code, 0);
    assert_eq!(scene.run(&["token"]).stdout, new);
}

#[test]
fn a_token_that_cannot_be_written_down_is_not_rotated() {
    let scene = Scene::new();
    scene.up();
    let old = scene.run(&["token"]).stdout;
    // Not even root writes through a folder in place of the file.
    let state = scene.home().state_path();
    let aside = state.with_extension("aside");
    std::fs::rename(&state, &aside).unwrap();
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("x"), "").unwrap();
    let refused = scene.run(&["token", "--rotate"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("cannot write state.json"), "{}", refused.stderr);
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&aside, &state).unwrap();
    assert_eq!(scene.run(&["token"]).stdout, old);
    assert_ne!(scene.run(&["token", "--rotate"]).stdout, old);
}
