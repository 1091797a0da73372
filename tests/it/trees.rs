//! The right tree, or an error: whose window answers a client that stands in a folder, also while windows, agents and
//! coordinators come and go; and that a client hears of it when another window answers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use baton_proto::control::Status;
use baton_tests::bridge::{Bridge, Shown};
use baton_tests::client::{Client, ClientKind};
use baton_tests::place;
use baton_tests::process::{command, kill9};
use baton_tests::world::{WindowOptions, World, find, space_again};
use serde_json::json;

const LOOK: &str = "get_debugger_configurations";

fn git(folder: &Path, arguments: &[&str]) {
    let mut git: Command = command("git");
    let identity =
        ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"];
    git.current_dir(folder).args(identity).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = git.output().expect("git is installed");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn commit_all(folder: &Path) {
    git(folder, &["init", "-q"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", "all"]);
}

/// A live window on the weather, and one on the shop, which is a repository with other trees in it and beside it.
struct Repository {
    world: World,
    shop: PathBuf,
    elsewhere: PathBuf,
}

impl Repository {
    fn new() -> Self {
        let mut world = World::new();
        world.window("weather");
        world.await_live("weather");
        world.window("shop");
        let shop = world.folder("shop");
        commit_all(&shop);
        git(&shop, &["worktree", "add", "-q", "inside"]);
        git(&shop, &["worktree", "add", "-q", ".claude/worktrees/x"]);
        git(&shop, &["worktree", "add", "-q", "../beside"]);
        let nested = shop.join("nested");
        fs::create_dir(&nested).expect("a folder is made");
        commit_all(&nested);
        git(&shop, &["submodule", "--quiet", "add", nested.to_str().expect("a path of text"), "module"]);
        git(&shop, &["init", "-q", "--bare", "bare.git"]);
        fs::create_dir_all(shop.join("src/deep")).expect("a folder is made");
        let elsewhere = world.scratch().canonicalize().expect("it is there").join("elsewhere");
        fs::create_dir(&elsewhere).expect("a folder is made");
        Self { world, shop, elsewhere }
    }
}

#[test]
fn a_client_is_answered_by_its_own_tree_or_by_an_error() {
    let Repository { world, shop, elsewhere } = Repository::new();
    for place in ["", "src/deep", ".vscode"] {
        let shown = Bridge::start(&world, &shop.join(place), &[]).call(LOOK, json!({}));
        assert_eq!(shown.window, "shop", "{place}: {shown:?}");
    }
    let beside = shop.with_file_name("beside");
    for place in ["inside", ".claude/worktrees/x", "nested", "module", "bare.git", "bare.git/refs"] {
        let mut bridge = Bridge::start(&world, &shop.join(place), &[]);
        let shown = bridge.call(LOOK, json!({}));
        assert_eq!((shown.code(), shown.window.as_str()), ("no_window", ""), "{place}: {shown:?}");
        let message = shown.content["message"].as_str().unwrap();
        assert!(message.contains(place.split('/').next().unwrap()), "{message}");
        assert!(message.contains(&format!("shop ({})", shop.display())), "what is open is told: {message}");
        assert!(shown.content["hint"].as_str().unwrap().contains("baton window DIR"), "{shown:?}");
        // Nothing is done in another tree either.
        let edit = json!({ "file_path": "main.py", "edits": [{ "old_text": "unit", "new_text": "unit" }] });
        assert_eq!(bridge.code("lcp_apply_edit", edit), "no_window", "{place}");
        assert_eq!(bridge.code("start_debugging", json!({ "configuration_name": "bill" })), "no_window");
    }
    for place in [&beside, &elsewhere] {
        assert_eq!(Bridge::start(&world, place, &[]).code(LOOK, json!({})), "no_window", "{place:?}");
    }
    // A folder that is deleted while its client lives, and one that is no text.
    let gone = shop.join("inside/gone");
    fs::create_dir(&gone).unwrap();
    let mut bridge = Bridge::start(&world, &gone, &[]);
    fs::remove_dir(&gone).unwrap();
    assert_eq!(bridge.code(LOOK, json!({})), "no_window");
    // A worktree that is removed: the tree around it is another one.
    git(&shop, &["worktree", "add", "-q", "short"]);
    let mut bridge = Bridge::start(&world, &shop.join("short"), &[]);
    git(&shop, &["worktree", "remove", "--force", "short"]);
    assert_eq!(bridge.code(LOOK, json!({})), "no_window");
    let odd = elsewhere.join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff"));
    fs::create_dir(&odd).unwrap();
    assert_eq!(Bridge::start(&world, &odd, &[]).code(LOOK, json!({})), "no_window");
}

/// What a folder of the machine is that no project is in: where desktop applications are started.
#[test]
fn a_client_in_no_tree_follows_the_live_window_and_is_told_which() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let home = world.scratch().join("user");
    for place in [Path::new("/"), &home] {
        let mut bridge = Bridge::start(&world, place, &[]);
        let shown = bridge.call(LOOK, json!({}));
        assert_eq!(shown.window, "shop");
        let told = format!("This is window \"shop\" ({}).", world.folder("shop").display());
        assert_eq!(shown.content["notice"], told.as_str(), "{shown:?}");
        assert!(shown.text.contains("This is window"), "{shown:?}");
        let again = bridge.call(LOOK, json!({}));
        assert!(again.content.get("notice").is_none() && !again.text.contains("This is window"), "{again:?}");
    }
    let elsewhere = world.scratch().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    assert_eq!(Bridge::start(&world, &elsewhere, &["--live"]).call(LOOK, json!({})).window, "shop");
    // Above the only window that fits.
    let above = world.folder("shop").parent().unwrap().to_owned();
    let mut bridge = Bridge::start(&world, &above, &[]);
    assert_eq!(bridge.call(LOOK, json!({})).window, "shop");
    world.window("weather");
    assert_eq!(bridge.call(LOOK, json!({})).window, "shop", "it stays with the first");
    let shown = Bridge::start(&world, &above, &[]).call(LOOK, json!({}));
    assert_eq!(shown.code(), "ambiguous_window", "{shown:?}");
}

#[test]
fn relative_paths_mean_the_clients_folder_first() {
    let mut world = World::new();
    let shop = world.folder("shop");
    place::copy_folder(&place::project("shop"), &shop);
    for (file, text) in [
        ("pkg/a.py", "def inner():\n    return 1\n"),
        ("a.py", "def outer():\n    return 2\n"),
        ("legacy/Config.py", "SIZE = 1\n"),
        ("shop/a.py", "def same():\n    return 3\n"),
        (
            "pkg/.vscode/launch.json",
            r#"{"configurations":[{"name":"inner","type":"debugpy","request":"launch","program":"${workspaceFolder}/a.py"}]}"#,
        ),
    ] {
        let path = shop.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    world.window_with("shop", WindowOptions { folder: Some(shop.clone()), ..WindowOptions::default() });
    world.await_live("shop");
    let mut below = Bridge::start(&world, &shop.join("pkg"), &[]);
    let outline =
        |bridge: &mut Bridge, file: &str| bridge.call("lcp_get_outline", json!({ "file_path": file })).text;
    assert!(outline(&mut below, "a.py").contains("inner"));
    assert!(outline(&mut below, "../a.py").contains("outer"));
    assert!(outline(&mut below, "pkg/a.py").contains("inner"));
    // What an answer calls a file is that file when it is given back.
    let full = shop.join("a.py").display().to_string();
    for (file, called) in [("../a.py", full.as_str()), ("a.py", "pkg/a.py"), (full.as_str(), full.as_str())] {
        let text = outline(&mut below, file);
        assert!(text.starts_with(&format!("{called}: ")), "{file}: {text}");
        assert_eq!(outline(&mut below, called), text);
    }
    let mut above = Bridge::start(&world, &shop, &[]);
    assert!(outline(&mut above, "a.py").contains("outer"));
    assert!(outline(&mut above, "shop/a.py").contains("same"));
    let edit =
        |text: &str| json!({ "file_path": "a.py", "edits": [{ "old_text": "return", "new_text": text }] });
    assert_eq!(below.code("lcp_apply_edit", edit("return  ")), "");
    assert_eq!(fs::read_to_string(shop.join("pkg/a.py")).unwrap(), "def inner():\n    return   1\n");
    assert_eq!(fs::read_to_string(shop.join("a.py")).unwrap(), "def outer():\n    return 2\n");
    // A name that is merely alike is for reading.
    let alike = json!({ "file_path": "config", "edits": [{ "old_text": "SIZE", "new_text": "SIDE" }] });
    assert_eq!(above.code("lcp_get_outline", json!({ "file_path": "config" })), "");
    let shown = above.call("lcp_apply_edit", alike);
    assert!(shown.code() == "file_not_found" && shown.text.contains("legacy/Config.py"), "{shown:?}");
    assert_eq!(fs::read_to_string(shop.join("legacy/Config.py")).unwrap(), "SIZE = 1\n");
    let names = below.call(LOOK, json!({})).content["configurations"].to_string();
    assert!(names.contains("\"inner\"") && names.contains("\"bill\""), "{names}");
    let started = below.call("start_debugging", json!({ "configuration_name": "inner" }));
    assert_eq!(started.content["status"], "completed", "{started:?}");
}

/// A window on a folder that is in no tree itself has the trees in it.
#[test]
fn a_client_of_one_tree_changes_and_runs_no_file_of_another() {
    let mut world = World::new();
    let work = world.scratch().canonicalize().expect("it is there").join("work");
    for folder in ["one", "two"] {
        fs::create_dir_all(work.join(folder)).unwrap();
        fs::write(work.join(folder).join("who.py"), format!("NAME = \"{folder}\"\n")).unwrap();
        commit_all(&work.join(folder));
    }
    fs::write(work.join("one/only.py"), "print(1)\n").unwrap();
    fs::write(work.join("who.py"), "NAME = \"work\"\n").unwrap();
    world.window_with("work", WindowOptions { folder: Some(work.clone()), ..WindowOptions::default() });
    world.await_live("work");
    let mut bridge = Bridge::start(&world, &work.join("two"), &[]);
    let edit = json!({ "file_path": "who.py", "edits": [{ "old_text": "NAME", "new_text": "NAMED" }] });
    let launch = json!({ "action": "launch", "program": "only.py", "timeout": 60 });
    assert_eq!(bridge.code("lcp_apply_edit", edit.clone()), "");
    assert_eq!(fs::read_to_string(work.join("two/who.py")).unwrap(), "NAMED = \"two\"\n");
    assert_eq!(bridge.code("debug", launch.clone()), "file_not_found");
    let look = json!({ "file_path": "only.py" });
    assert_eq!(bridge.code("lcp_get_outline", look.clone()), "file_not_found");

    fs::rename(work.join("two"), work.join("away")).unwrap();
    let shown = bridge.call("lcp_apply_edit", edit);
    let gone = format!("{} is gone", work.join("two").display());
    assert!(shown.code() == "file_not_found" && shown.text.contains(&gone), "{shown:?}");
    assert_eq!(bridge.code("debug", launch), "file_not_found");
    assert_eq!(bridge.code("lcp_get_outline", look), "file_not_found");
    for folder in ["", "one"] {
        let text = fs::read_to_string(work.join(folder).join("who.py")).unwrap();
        assert!(!text.contains("NAMED"), "{folder}: {text}");
    }
}

#[test]
fn a_binding_lasts_while_windows_and_coordinators_go_and_come() {
    let mut world = World::new();
    let projects = world.folder("shop").parent().unwrap().to_owned();
    world.window("shop");
    let outer = WindowOptions { folder: Some(projects), ..WindowOptions::default() };
    world.window_with("outer", outer);
    world.take("outer");
    let mut bridge = Bridge::start(&world, &world.folder("shop"), &[]);
    let says = |bridge: &mut Bridge, when: &str| {
        let mut shown = bridge.call(LOOK, json!({}));
        // Of a call in the moment of a death nobody knows more.
        while shown.code() == "outcome_unknown" {
            shown = bridge.call(LOOK, json!({}));
        }
        assert_eq!(shown.window, "shop", "{when}: {shown:?}");
        assert!(!shown.text.contains("now; before"), "{when}: {shown:?}");
    };
    says(&mut bridge, "at first");
    world.baton_ok(&["restart", "shop"]);
    says(&mut bridge, "while it restarts");
    kill_agent(&world);
    says(&mut bridge, "while its agent is started again");
    breakpoints_outlast_the_agent(&mut world, &mut bridge);
    for _ in 0..3 {
        let before = world.status().expect("it runs");
        kill9(before.pid);
        says(&mut bridge, "after the coordinator was killed");
    }
    // It is closed: for ever, until one on that tree opens.
    world.await_status("both are there", |status| {
        find(status, "shop").is_some() && find(status, "outer").is_some()
    });
    world.close_window("shop");
    for _ in 0..2 {
        let shown = bridge.call(LOOK, json!({}));
        assert_eq!(shown.code(), "no_window", "{shown:?}");
        let closed = format!("The window of {} was closed.", world.folder("shop").display());
        assert!(shown.text.contains(&closed), "{shown:?}");
    }
    assert_eq!(files_of_breakpoints(&world), 0, "they end with the window");
    let edit = json!({ "file_path": "main.py", "edits": [{ "old_text": "unit", "new_text": "unit" }] });
    assert_eq!(bridge.code("lcp_apply_edit", edit), "no_window");
    world.window("shop");
    says(&mut bridge, "opened again");
}

/// Of a window that has just been told to restart nobody knows the pid.
fn kill_agent(world: &World) {
    world.await_status("it is there", |status| find(status, "shop").is_some());
    kill9(world.agent_pid("shop"));
}

/// Until it has heard of its end, the agent of before answers.
fn restart(world: &World) {
    let before = world.agent_pid("shop");
    world.baton_ok(&["restart", "shop"]);
    world.await_status("another agent is there", |status| {
        find(status, "shop").is_some_and(|window| window.pid != before)
    });
}

/// A run without the breakpoint would look like one that never came to its line.
fn breakpoints_outlast_the_agent(world: &mut World, bridge: &mut Bridge) {
    let set = json!({ "file_path": "main.py", "line_number": 8, "condition": "unit" });
    assert_eq!(bridge.code("set_breakpoint", set), "");
    restart(world);
    let mut gone = "its earlier debug sessions are gone".to_owned();
    for end in ["restarted", "killed"] {
        if end == "killed" {
            kill_agent(world);
        }
        let mut look = bridge.call("get_breakpoints", json!({}));
        // Of a call in the moment of a death nobody knows more.
        while look.code() == "outcome_unknown" {
            look = bridge.call("get_breakpoints", json!({}));
        }
        let notice = look.content["notice"].as_str().unwrap_or_default();
        let told = format!("was started again; {gone}; 1 breakpoint was kept.");
        assert!(notice.ends_with(&told), "{end}: {look:?}");
        let kept = &look.content["breakpoints"][0];
        assert_eq!((&kept["line"], &kept["condition"]), (&json!(8), &json!("unit")), "{end}: {look:?}");
        let run = bridge.call("start_debugging", json!({ "configuration_name": "bill" }));
        assert_eq!(run.content["status"], "stopped", "{end}: {run:?}");
        let is_told =
            |status: &Status| find(status, "shop").is_some_and(|shop| !shop.debug_sessions.is_empty());
        let status = world.await_status("the session is told", is_told);
        let session = &find(&status, "shop").expect("it is there").debug_sessions[0];
        gone = format!("these debug sessions are gone: {session} (bill)");
    }
    assert_eq!(bridge.code("debug", json!({ "action": "terminate" })), "");
    assert_eq!(files_of_breakpoints(world), 1);
}

/// On a full disk, and when their folder is no folder: a client hears how many there are again, and its work goes on.
#[test]
fn breakpoints_that_could_not_be_written_down_are_not_said_to_be_kept() {
    let mut world = World::new();
    world.window("weather");
    world.window_with("shop", WindowOptions { full_disk: true, ..WindowOptions::default() });
    let mut bridge = Bridge::start(&world, &world.folder("shop"), &[]);
    let set = |bridge: &mut Bridge, line: u32| {
        let set = json!({ "file_path": "main.py", "line_number": line });
        assert_eq!(bridge.code("set_breakpoint", set), "", "it is set all the same");
    };
    // The agent that follows has no space either.
    let kept = |world: &World, bridge: &mut Bridge| {
        restart(world);
        let look = bridge.call("get_breakpoints", json!({}));
        let n_kept = look.content["breakpoints"].as_array().map_or(0, Vec::len);
        let notice = look.content["notice"].as_str().unwrap_or_default();
        format!("{n_kept}: {}", notice.rsplit("; ").next().unwrap_or_default())
    };
    let give_space = |world: &World| {
        world.await_status("it is there", |status| find(status, "shop").is_some());
        space_again(world.agent_pid("shop"));
    };
    set(&mut bridge, 8);
    assert_eq!(kept(&world, &mut bridge), "0: no breakpoints were kept.");
    give_space(&world);
    set(&mut bridge, 8);
    assert_eq!(kept(&world, &mut bridge), "1: 1 breakpoint was kept.");
    set(&mut bridge, 9);
    assert_eq!(kept(&world, &mut bridge), "1: 1 breakpoint was kept.", "what was written before");
    let folder = world.home().join("breakpoints");
    fs::remove_dir_all(&folder).expect("it is there");
    fs::write(&folder, "a file").expect("we have space");
    assert_eq!(kept(&world, &mut bridge), "0: no breakpoints were kept.");
    fs::remove_file(&folder).expect("it is there");
    give_space(&world);
    set(&mut bridge, 8);
    set(&mut bridge, 9);
    assert_eq!(kept(&world, &mut bridge), "2: 2 breakpoints were kept.");
}

fn files_of_breakpoints(world: &World) -> usize {
    fs::read_dir(world.home().join("breakpoints")).expect("it is there").count()
}

/// A window on the client's own folder is the client's, also when one below it answered before and was closed.
#[test]
fn a_window_on_the_clients_own_folder_follows_one_below_it() {
    let mut world = World::new();
    let projects = world.folder("shop").parent().unwrap().to_owned();
    world.window("shop");
    let mut bridge = Bridge::start(&world, &projects, &[]);
    assert_eq!(bridge.call(LOOK, json!({})).window, "shop");
    world.close_window("shop");
    assert_eq!(bridge.code(LOOK, json!({})), "no_window");
    world.window("weather");
    assert_eq!(bridge.code(LOOK, json!({})), "no_window", "it is beside the one that was closed");
    world.window_with("outer", WindowOptions { folder: Some(projects), ..WindowOptions::default() });
    let launch = json!({ "action": "launch", "program": "shop/main.py", "timeout": 60 });
    let refused = bridge.call("debug", launch);
    assert_eq!(refused.code(), "window_changed", "{refused:?}");
    assert_eq!(bridge.call(LOOK, json!({})).window, "outer");
}

#[test]
fn a_pin_is_a_whole_name_and_stays_with_its_folder() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.baton_ok(&["settings", "hold_calls_ms", "300"]);
    let elsewhere = world.scratch().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut bridge = Bridge::start(&world, &elsewhere, &["--window", "shop"]);
    assert_eq!(bridge.call(LOOK, json!({})).window, "shop");
    for wrong in ["sho", "s"] {
        assert_eq!(
            Bridge::start(&world, &elsewhere, &["--window", wrong]).code(LOOK, json!({})),
            "unknown_window"
        );
        let named = json!({ "window": wrong });
        assert_eq!(Bridge::start(&world, &elsewhere, &["--live"]).code(LOOK, named), "unknown_window");
    }
    // A folder inside of the window's.
    fs::create_dir(world.folder("shop").join("sub")).unwrap();
    assert_eq!(
        Bridge::start(&world, &world.folder("shop"), &["--window", "sub"]).call(LOOK, json!({})).window,
        "shop"
    );
    // Another folder takes the name.
    world.close_window("shop");
    world.await_status("it is gone", |status| find(status, "shop").is_none());
    let twin = WindowOptions { folder: Some(elsewhere), ..WindowOptions::default() };
    world.window_with("shop", twin);
    let shown = bridge.call(LOOK, json!({}));
    assert!(shown.code() == "no_window" && shown.text.contains("was closed"), "{shown:?}");
}

#[test]
fn two_windows_on_one_folder_are_no_dead_end() {
    let mut world = World::new();
    world.window("shop");
    let folder = world.folder("shop");
    world.window_with("twin", WindowOptions { folder: Some(folder.clone()), ..WindowOptions::default() });
    world.window("weather");
    world.take("weather");
    let mut bridge = Bridge::start(&world, &folder, &[]);
    let shown = bridge.call(LOOK, json!({}));
    assert_eq!(shown.code(), "ambiguous_window", "{shown:?}");
    let id = shown.content["candidates"][0]["id"].clone();
    assert_eq!(bridge.call(LOOK, json!({ "window": id })).code(), "", "a candidate can be named");
    let shown = bridge.call("activate_window", json!({ "window": "weather" }));
    let note = shown.content["note"].as_str().unwrap_or_default();
    assert!(note.contains(&format!("stays with the window of {}", folder.display())), "{shown:?}");
}

#[test]
fn a_client_hears_of_another_window_before_anything_is_done_there() {
    for kind in [ClientKind::Python1, ClientKind::Python2] {
        let mut world = World::new();
        world.window("shop");
        world.await_live("shop");
        world.window("weather");
        let mut client = world.client(kind);
        let call = |client: &mut Client, tool: &str, arguments| {
            Shown::of(&client.try_call(tool, arguments).expect("it is answered"))
        };
        let first = call(&mut client, "debug", json!({ "action": "sessions" }));
        let told = format!("This is window \"shop\" ({}).\n[shop] ", world.folder("shop").display());
        assert!(first.text.starts_with(&told), "{first:?}");
        let again = call(&mut client, "debug", json!({ "action": "sessions" }));
        assert!(again.text.starts_with("[shop] "), "{again:?}");
        let set = json!({ "action": "set_breakpoint", "file": "main.py", "line": 8 });
        assert_eq!(call(&mut client, "debug", set.clone()).window, "shop");
        let launched =
            call(&mut client, "debug", json!({ "action": "launch", "program": "main.py", "timeout": 60 }));
        let session = launched.content["snapshot"]["id"].clone();

        world.take("weather");
        let refused = call(&mut client, "debug", set.clone());
        assert_eq!(
            (refused.code(), refused.window.as_str()),
            ("window_changed", ""),
            "{kind:?}: {refused:?}"
        );
        assert!(refused.text.contains("weather") && refused.text.contains("shop"), "{refused:?}");
        let none = json!({ "action": "remove_breakpoint", "clear_all": true });
        let list = call(&mut client, "get_breakpoints", json!({}));
        assert_eq!((list.window.as_str(), &list.content["breakpoints"]), ("weather", &json!([])), "not run");
        assert_eq!(list.content["in_window"], "weather", "{list:?}");
        assert_eq!(call(&mut client, "debug", none).window, "weather", "it has heard of it now");

        // What runs in the other window can be looked at and ended by its handle, and not moved.
        let by_handle = |action: &str| json!({ "action": action, "session": session });
        let stack = call(&mut client, "debug", by_handle("stack_trace"));
        assert!(
            stack.window == "shop" && stack.text.starts_with("[shop] ") && stack.text.contains("main.py:8"),
            "{stack:?}"
        );
        assert_eq!(call(&mut client, "debug", by_handle("continue")).code(), "not_live");
        assert_eq!(call(&mut client, "debug", by_handle("terminate")).window, "shop");

        // A look is answered at once, and says it first.
        world.take("shop");
        let look = call(&mut client, LOOK, json!({}));
        let notice = look.content["notice"].as_str().unwrap_or_default();
        assert!(
            notice.starts_with("This is window \"shop\"")
                && notice.ends_with("now; before, it was \"weather\"."),
            "{look:?}"
        );
        assert_eq!(call(&mut client, "debug", set.clone()).window, "shop");

        // A death.
        world.kill_window("shop");
        world.await_live("weather");
        assert_eq!(call(&mut client, "debug", set.clone()).code(), "window_changed");
        client.close();
    }
}

#[test]
fn a_look_at_anothers_program_does_not_make_it_the_clients_own() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let mut one = Bridge::start(&world, &world.folder("shop"), &[]);
    let mut other = Bridge::start(&world, &world.folder("shop"), &[]);
    let launch = json!({ "action": "launch", "program": "main.py", "stop_on_entry": true, "timeout": 60 });
    let session = one.call("debug", launch).content["snapshot"]["id"].clone();
    let look = json!({ "action": "stack_trace", "session": session });
    let place = one.call("debug", look.clone()).text;
    assert!(place.contains("main.py:"), "{place}");
    assert_eq!(other.call("debug", look.clone()).text, place, "by its handle anybody may look");
    let evaluate = json!({ "action": "evaluate", "expression": "1" });
    for act in [json!({ "action": "step_over" }), evaluate, json!({ "action": "terminate" })] {
        let refused = other.call("debug", act.clone());
        assert_eq!(refused.code(), "which_session", "{act}: {refused:?}");
    }
    assert_eq!(one.call("debug", look).text, place, "it has not moved");
    assert_eq!(one.code("debug", json!({ "action": "terminate" })), "");
}
