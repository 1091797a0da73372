//! Changes of files through the stable URL: agents that are killed in the middle of one, several agents and other
//! programs on the same files, what a client takes back, and what cannot be written.

mod undo;

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use baton_tests::client::{Client, ClientKind};
use baton_tests::place;
use baton_tests::process::{await_some, command, kill9, signal};
use baton_tests::world::{PATIENCE, WindowOptions, World, find};
use rustix::fs::inotify;
use rustix::process::Signal;
use serde_json::json;

/// Folders of a project, with so many files in each: a rename in all of them takes long enough to be cut off.
const N_FOLDERS: usize = 20;
const N_FILES: usize = 22;
/// The folder whose first file tells that the rename has begun and is not over.
const TRIPWIRE: &str = "part05";
/// Worlds in which a kill may come too late, on a machine that has other things to do.
const N_TRIES: usize = 5;
/// Saves of another program beside the edits of two agents.
const N_SAVES: usize = 100;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let mut git = command("git");
    git.current_dir(folder).args(identity).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = git.output().expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the names are text")
}

/// A repository in which one function is used in 440 files.
fn write_project(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder is made");
    fs::write(folder.join("shop.py"), "def price(item):\n    return item\n").expect("a file is written");
    for part in 0..N_FOLDERS {
        let part = folder.join(format!("part{part:02}"));
        fs::create_dir(&part).expect("a folder is made");
        for number in 0..N_FILES {
            let text = format!("from shop import price\n\nprint(price({number}))\n");
            fs::write(part.join(format!("use{number:02}.py")), text).expect("a file is written");
        }
    }
    git(folder, &["init", "-q"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "all"]);
}

/// The sources by their names; what is hidden tells git.
fn sources(folder: &Path) -> BTreeMap<PathBuf, String> {
    let names = git(folder, &["ls-files"]);
    let read = |name: &str| (PathBuf::from(name), fs::read_to_string(folder.join(name)).unwrap_or_default());
    names.lines().map(read).collect()
}

/// What git sees that is not its own.
fn strange(folder: &Path) -> Vec<String> {
    let status = git(folder, &["status", "--porcelain", "-uall"]);
    status.lines().filter(|line| !line.starts_with(" M ")).map(str::to_owned).collect()
}

/// Tells when a file comes to its place in a folder.
struct Tripwire(OwnedFd);

impl Tripwire {
    fn set(folder: &Path) -> Self {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC).expect("inotify is there");
        inotify::add_watch(&watch, folder, inotify::WatchFlags::MOVED_TO).expect("the folder is watched");
        Self(watch)
    }

    fn wait(self) {
        let mut buffer = [MaybeUninit::uninit(); 4_096];
        let mut events = inotify::Reader::new(&self.0, &mut buffer);
        let is_source = |name: &[u8]| name.ends_with(b".py");
        while !events.next().expect("an event").file_name().is_some_and(|name| is_source(name.to_bytes())) {}
    }
}

/// What a client is told after its agent was killed in the middle of a rename; None when the rename was over by then.
fn cut_off() -> Option<()> {
    let servers = place::tool("servers");
    let mut world = World::new().with_env("BATON_SERVERS", servers.to_str().expect("a path in UTF-8"));
    let folder = world.folder("left");
    write_project(&folder);
    world.window_with("left", WindowOptions { folder: Some(folder.clone()), ..WindowOptions::default() });
    world.await_live("left");
    let before = sources(&folder);
    let mut client =
        Client::connect(&world, ClientKind::Sdk1, &format!("{}?toolsets=code,refactor", world.url()));
    let rename = |apply: Option<&str>| json!({"symbol_name": "price", "context_file": "shop.py", "new_name": "cost", "apply": apply, "timeout": 60});
    let preview = client.call("lcp_rename", rename(None));
    assert_eq!(preview["data"].as_array().map(Vec::len), Some(N_FOLDERS * N_FILES + 1), "{preview:#}");
    let token = preview["token"].as_str().expect("a preview has one").to_owned();

    // Its agent stays dead until we have looked.
    let (agent, supervisor) = (world.agent_pid("left"), world.supervisor_pid("left"));
    signal(supervisor, Signal::STOP);
    let call = std::thread::scope(|scope| {
        let tripwire = Tripwire::set(&folder.join(TRIPWIRE));
        let watching = scope.spawn(move || {
            tripwire.wait();
            kill9(agent);
        });
        let call = client.send_call("lcp_rename", rename(Some(&token)));
        watching.join().expect("the rename begins");
        call
    });
    // However it ends: nobody can know.
    let _ = client.wait(call);
    let half = sources(&folder);
    let n_changed = half.iter().filter(|(name, text)| before[*name] != **text).count();
    assert_eq!(strange(&folder), [""; 0], "nothing of ours is seen, even before it is undone");
    signal(supervisor, Signal::CONT);
    if n_changed == before.len() {
        return None;
    }
    assert!(n_changed > 0, "the kill came too early");

    world.await_status("another agent registers", |status| {
        find(status, "left").is_some_and(|window| window.pid != agent)
    });
    assert!(sources(&folder) == before, "the tree is as it was");
    assert_eq!(git(&folder, &["status", "--porcelain", "-uall", "--ignored"]), "");
    let outline = || json!({"file_path": "shop.py", "timeout": 60});
    let told = client.call("lcp_get_outline", outline());
    let notice = told["notice"].as_str().unwrap_or_default();
    assert!(
        notice.contains("exited in the middle of a change of") && notice.ends_with("nothing was changed."),
        "{told:#}"
    );
    let told = client.call("lcp_get_outline", outline());
    assert!(!told["notice"].as_str().unwrap_or_default().contains("in the middle"), "once: {told:#}");
    // The same again, this time to its end.
    let preview = client.call("lcp_rename", rename(None));
    let made = client.call("lcp_rename", rename(preview["token"].as_str()));
    assert_eq!(made["applied"], true, "{made:#}");
    let after = sources(&folder);
    assert!(after.values().all(|text| text.contains("cost") && !text.contains("price")));
    assert_eq!(strange(&folder), [""; 0]);
    client.close();
    Some(())
}

#[test]
fn a_rename_that_a_kill_cuts_off_is_undone_at_the_next_start() {
    assert!((0..N_TRIES).any(|_| cut_off().is_some()), "every kill came too late");
}

/// A client of one of the windows on a folder.
fn client_of(world: &World, window: &str) -> Client {
    let id = find(&world.status().expect("a coordinator runs"), window).expect("it is there").id.clone();
    let url = format!("{}/windows/{id}?toolsets=refactor", world.url());
    Client::connect(world, ClientKind::Sdk1, &url)
}

/// Adds a line at the end of a file, again and again, and gives the lines that were told as added.
fn add_lines(client: &mut Client, file: &Path, name: &str, wanted: impl Fn(usize) -> bool) -> Vec<String> {
    let mut made = Vec::new();
    for number in (0..).take_while(|number| wanted(*number)) {
        let line = format!("{name} {number}");
        // Behind the last line, wherever that is: an edit of the first line would be one of what a save replaces.
        let n_lines = fs::read_to_string(file).expect("it is never missing").lines().count();
        let edits = json!([{"start_line": n_lines + 1, "end_line": n_lines, "new_text": line}]);
        let answer = client.call("lcp_apply_edit", json!({"file_path": file, "edits": edits}));
        match answer["success"] == true {
            true => made.push(line),
            // It was another text by the time that the edit was made.
            false => assert!(
                ["changed_meanwhile", "invalid_range"].contains(&answer["code"].as_str().unwrap_or_default()),
                "{answer:#}"
            ),
        }
    }
    made
}

#[test]
fn of_two_agents_and_another_program_none_loses_what_another_wrote() {
    let mut world = World::new();
    world.window("shop");
    let shop = world.folder("shop");
    world.window_with("second", WindowOptions { folder: Some(shop.clone()), ..WindowOptions::default() });
    let file = shop.join("notes.txt");
    fs::write(&file, "save 0\n").expect("a file is written");
    let mut clients = ["shop", "second"].map(|window| (window, client_of(&world, window)));

    // Two agents alone: what was told as made is there, once.
    let made: Vec<String> = std::thread::scope(|scope| {
        let file = &file;
        let adding = clients.each_mut().map(|(window, client)| {
            scope.spawn(move || add_lines(client, file, window, |number| number < 60))
        });
        adding.into_iter().flat_map(|adding| adding.join().expect("all edits are answered")).collect()
    });
    let lines = |file: &Path| -> Vec<String> {
        fs::read_to_string(file).expect("it is never missing").lines().map(str::to_owned).collect()
    };
    let mut found = lines(&file)[1..].to_vec();
    let mut expected = made;
    found.sort();
    expected.sort();
    assert!(expected.len() >= 60 && found == expected, "{found:?} is not {expected:?}");

    // A program that saves the whole file, as editors do: each save stands until the next one.
    let is_over = AtomicBool::new(false);
    let made: Vec<String> = std::thread::scope(|scope| {
        let (file, is_over) = (&file, &is_over);
        let adding = clients.each_mut().map(|(window, client)| {
            let name = format!("{window} beside saves");
            scope.spawn(move || add_lines(client, file, &name, |_| !is_over.load(Ordering::Relaxed)))
        });
        let other = file.with_extension("new");
        for number in 1..=N_SAVES {
            fs::write(&other, format!("save {number}\n")).expect("a file is written");
            fs::rename(&other, file).expect("a file is saved");
            let is_there = || (lines(file)[0] == format!("save {number}")).then_some(());
            await_some(PATIENCE, is_there)
                .unwrap_or_else(|| panic!("save {number} is lost: {:?}", lines(file)));
        }
        is_over.store(true, Ordering::Relaxed);
        adding.into_iter().flat_map(|adding| adding.join().expect("all edits are answered")).collect()
    });
    let found = lines(&file);
    assert_eq!(found[0], format!("save {N_SAVES}"));
    let once =
        |line: &&String| found.iter().filter(|other| other == line).count() == 1 && made.contains(line);
    assert!(found[1..].iter().all(|line| once(&line)), "{found:?} of {made:?}");
    let ours = fs::read_dir(&shop).expect("a folder").flatten().map(|entry| entry.file_name());
    assert!(ours.into_iter().all(|name| !name.to_string_lossy().contains("baton")), "nothing of ours stays");
    clients.into_iter().for_each(|(_, client)| client.close());
}
