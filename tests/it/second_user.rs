//! Another user of the machine: what Baton writes is closed to them, and what they put in its way is not taken.

mod planted;
mod sockets;

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use baton_proto::discovery::{Role, Secret};
use baton_tests::place;
use baton_tests::process::{await_some, of_home};
use baton_tests::raw::Request;
use baton_tests::user::{OWNER, STRANGER, set_mode};
use baton_tests::world::{PATIENCE, World};
use serde_json::json;

/// Everything below a folder, itself first; links are not followed.
fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        if path.is_dir() && !path.is_symlink() {
            let entries = std::fs::read_dir(&path).expect("root can read it");
            found.extend(entries.map(|entry| entry.expect("root can read it").path()));
        }
        at += 1;
    }
    found
}

/// What the calling user can do with a file or folder of somebody else's; nothing, it is hoped.
fn rights_on(path: &Path, own: &Path) -> Vec<&'static str> {
    let kind = std::fs::symlink_metadata(path).map(|metadata| metadata.file_type());
    let mut rights = Vec::new();
    let mut note = |right, is_possible| {
        if is_possible {
            rights.push(right);
        }
    };
    if kind.as_ref().is_ok_and(std::fs::FileType::is_socket) {
        note("connect", UnixStream::connect(path).is_ok());
    }
    // Of a pipe or a socket even the opening would wait or fail for another reason.
    if kind.as_ref().is_ok_and(|kind| kind.is_file() || kind.is_dir()) || kind.is_err() {
        note("read", File::open(path).is_ok() && (path.is_file() || std::fs::read_dir(path).is_ok()));
        note("write", File::options().append(true).open(path).is_ok());
        note("truncate", File::options().write(true).truncate(true).open(path).is_ok());
    }
    note("make a file in", File::create_new(path.join("planted")).is_ok());
    note("make a link in", symlink("/etc/passwd", path.join("linked")).is_ok());
    let link = own.join("hard");
    note("link to", std::fs::hard_link(path, &link).is_ok());
    note("move away", std::fs::rename(path, own.join("moved")).is_ok());
    note(
        "move over",
        std::fs::write(own.join("x"), "").is_ok() && std::fs::rename(own.join("x"), path).is_ok(),
    );
    let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    note("change the mode of", std::fs::set_permissions(path, open_to_all).is_ok());
    rights
}

/// A folder of the stranger's own, on the same file system.
fn folder_of_stranger(world: &World) -> PathBuf {
    let own = world.scratch().join("stranger");
    std::fs::create_dir(&own).expect("a temporary folder");
    STRANGER.own(&own);
    own
}

/// Reading code makes the agent watch its folder, for which it needs a place of its own.
fn read_code(world: &World) {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "lcp_get_outline", "arguments": { "file_path": "main.py" } } });
    let request = Request::post(world.port(), "/mcp", &world.token(), call.to_string())
        .with("MCP-Protocol-Version", "2025-11-25");
    let answer = OWNER.act(|| request.send(world.port()));
    assert!(answer.body.contains("price"), "{answer:?}");
    let temporary = world.scratch().join("tmp");
    let is_watched = || {
        let mut names = std::fs::read_dir(&temporary).expect("it is there").flatten();
        names.find(|entry| has_watch(&entry.path())).map(drop)
    };
    assert!(await_some(PATIENCE, is_watched).is_some(), "its folder is not watched");
}

/// A folder of an agent's, with the place where it waits for its own files.
fn has_watch(folder: &Path) -> bool {
    let mut names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    names.any(|entry| entry.file_name().to_string_lossy().starts_with("watch-"))
}

#[test]
fn t8_another_user_can_do_nothing_with_the_files_of_a_running_baton() {
    let mut world = World::of(OWNER).with_program(&place::tool("servers/ty/bin/ty"));
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    read_code(&world);
    let own = folder_of_stranger(&world);
    let temporary = world.scratch().join("tmp");
    let mut paths = all_below(&world.home());
    paths.extend(all_below(&temporary).into_iter().skip(1));
    let is_there = |name: &str| {
        let below = |path: &PathBuf| path.strip_prefix(world.scratch()).map(Path::to_owned).ok();
        paths.iter().filter_map(below).any(|path| path.to_string_lossy().contains(name))
    };
    for name in [
        "/secret",
        "/state.json",
        "/discovery.json",
        "/coordinator.lock",
        "/logs/",
        "/windows/",
        "tmp/baton-",
    ] {
        assert!(is_there(name), "{name} is not among {paths:#?}");
    }
    let open: Vec<_> = paths
        .iter()
        .map(|path| (path, STRANGER.act(|| rights_on(path, &own))))
        .filter(|(_, rights)| !rights.is_empty())
        .collect();
    assert!(open.is_empty(), "another user can: {open:#?}");
    for path in &paths {
        let owner = std::fs::symlink_metadata(path).map(|metadata| metadata.uid());
        assert!(owner.is_ok_and(|uid| uid == OWNER.id()), "{}", path.display());
    }
    world.await_live("shop");
}

#[test]
fn t8_the_same_tries_succeed_where_files_are_open() {
    let world = World::of(OWNER);
    let own = folder_of_stranger(&world);
    let file = world.scratch().join("tmp/open");
    std::fs::write(&file, "").expect("a file");
    set_mode(&file, 0o666);
    let rights = STRANGER.act(|| rights_on(&file, &own));
    assert_eq!(rights[..3], ["read", "write", "truncate"], "{rights:?}");
    assert!(!rights.contains(&"move away"), "in a sticky folder nobody else moves it");
    let folder = world.scratch().join("tmp/folder");
    std::fs::create_dir(&folder).expect("a folder");
    set_mode(&folder, 0o777);
    let rights = STRANGER.act(|| rights_on(&folder, &own));
    assert_eq!(rights, ["read", "make a file in", "make a link in"]);
}

#[test]
fn t8_the_token_in_a_clients_file_is_its_users_alone() {
    let world = World::of(OWNER);
    world.baton_ok(&["up"]);
    let token = world.token();
    let own = folder_of_stranger(&world);
    let user = world.scratch().join("user");
    let of_user = |client: &str| user.join(format!("{client}.conf"));
    for client in place::CLIENTS.iter().filter(|client| **client != "claude-desktop") {
        // Once a file of Baton's making, and once one that everybody could read until now.
        world.baton_ok(&["config", client, "--http", "--write"]);
        let file = of_user(client);
        std::fs::write(&file, "").expect("a file");
        OWNER.own(&file);
        set_mode(&file, 0o644);
        world.baton_ok(&["config", client, "--http", "--write", "--file", file.to_str().expect("text")]);
    }
    let holds_token =
        |path: &&PathBuf| std::fs::read(path).is_ok_and(|bytes| holds(&bytes, token.as_bytes()));
    let files = all_below(&user);
    let with_token: Vec<_> = files.iter().filter(holds_token).collect();
    assert!(
        with_token.len() > 2 * (place::CLIENTS.len() - 1),
        "the files and what takes them back: {with_token:#?}"
    );
    for path in with_token {
        let rights = STRANGER.act(|| rights_on(path, &own));
        assert!(rights.is_empty(), "another user can {rights:?} {}", path.display());
    }
    for client in place::CLIENTS.iter().filter(|client| **client != "claude-desktop") {
        let file = of_user(client);
        world.baton_ok(&["config", client, "--remove", "--file", file.to_str().expect("text")]);
        world.baton_ok(&["config", client, "--remove"]);
    }
    let left: Vec<_> = all_below(&user).into_iter().filter(|path| holds_token(&path)).collect();
    assert!(left.is_empty(), "after --remove: {left:#?}");
}

#[test]
fn t20_no_token_is_in_what_the_system_shows_to_everybody() {
    let mut world = World::of(OWNER);
    world.window("shop");
    world.await_live("shop");
    let secrets = secrets_of(&world);
    let processes = of_home(&world.home());
    assert!(processes.len() >= 3, "coordinator, supervisor, agent: {processes:?}");
    for (pid, _) in processes {
        let shown = STRANGER.act(|| {
            for private in ["environ", "maps", "fd"] {
                let path = format!("/proc/{pid}/{private}");
                let read = match private {
                    "fd" => std::fs::read_dir(&path).map(drop),
                    _ => std::fs::read(&path).map(drop),
                };
                assert!(
                    read.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied),
                    "{path}: {read:?}"
                );
            }
            std::fs::read(format!("/proc/{pid}/cmdline")).expect("everybody may read it")
        });
        assert!(!shown.is_empty());
        for secret in &secrets {
            assert!(!holds(&shown, secret.as_bytes()), "{}", String::from_utf8_lossy(&shown));
        }
    }
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|part| part == wanted)
}

/// The tokens of this state folder.
fn secrets_of(world: &World) -> Vec<String> {
    let bytes = std::fs::read(world.home().join("secret")).expect("the secret is there");
    let secret = Secret::new(bytes.try_into().expect("its length"));
    let windows = world.status().map(|status| status.windows).unwrap_or_default();
    let windows =
        windows.iter().map(|window| secret.window_token(&window.id, Some(world.incarnation(&window.id))));
    let all = windows.chain([secret.token(Role::Member), secret.token(Role::Client { epoch: 0 })]);
    all.map(|token| token.expose().to_owned()).collect()
}
