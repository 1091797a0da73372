//! What the system does not give: descriptors (F18), a state folder that can be written (F17).

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_tests::client::ClientKind;
use baton_tests::place;
use baton_tests::process::{await_some, cpu_time, kill9, signal};
use baton_tests::raw;
use baton_tests::story::configurations;
use baton_tests::user::{OWNER, set_mode};
use baton_tests::world::{PATIENCE, World, live_name, space_again};
use rustix::process::Signal;

/// How long it is looked at whether a coordinator without descriptors idles.
const LOOK: Duration = Duration::from_secs(3);

#[test]
fn f18_a_coordinator_out_of_descriptors_waits_without_work_and_recovers() {
    let mut world = World::new();
    // Both limits: what Baton may have at most, too.
    let up = world
        .command("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" up"])
        .arg(baton_tests::place::program("baton"))
        .output()
        .expect("sh starts");
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
    world.window("shop");
    let before = world.await_live("shop");
    let mut client = world.client(ClientKind::Sdk1);
    assert_eq!(configurations(&mut client)[0], "bill");

    let crowd: Vec<_> = (0..100).map(|_| raw::connect(world.port())).collect();
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", before.pid)).map_or(0, Iterator::count);
    let is_full = || (descriptors() >= 60).then_some(());
    assert!(await_some(PATIENCE, is_full).is_some(), "the crowd was not let in: {}", descriptors());
    let (since, used) = (Instant::now(), cpu_time(before.pid));
    // Time passes, and the coordinator stays.
    assert!(await_some(LOOK, || (!baton_tests::process::is_alive(before.pid)).then_some(())).is_none());
    let share = (cpu_time(before.pid) - used).as_secs_f64() / since.elapsed().as_secs_f64();
    assert!(share < 0.05, "it works {:.1} % of the time for nothing", share * 100.0);
    drop(crowd);

    let after = world.await_status("it answers again", |status| live_name(status) == Some("shop"));
    assert_eq!((after.pid, after.generation), (before.pid, before.generation), "the same one");
    assert_eq!(configurations(&mut client)[0], "bill", "in the same session");
    client.close();
}

/// Root writes wherever it likes, so the world is another user's.
#[test]
fn f17_in_a_state_folder_that_cannot_be_written_terms_grow_and_the_live_window_stays() {
    let mut world = World::of(OWNER);
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    world.take("weather");
    let first = world.await_live("weather");
    let read = || std::fs::read_to_string(world.home().join("state.json")).expect("it was written");
    // What is remembered of the takeover is written a moment after it.
    let is_written = || read().contains(first.live.as_ref().expect("one is live").as_str()).then_some(());
    assert!(await_some(PATIENCE, is_written).is_some(), "{}", read());
    set_mode(&world.home(), 0o500);
    let written = read();
    let mut before = first;
    for round in 0..3 {
        kill9(before.pid);
        let after = world.await_status("a successor with both windows", |status| {
            status.generation > before.generation && status.windows.len() == 2 && status.live.is_some()
        });
        assert_eq!(live_name(&after), Some("weather"), "round {round}");
        assert!(after.term > before.term, "round {round}: {:?} after {:?}", after.term, before.term);
        before = after;
    }
    assert_eq!(read(), written, "nobody could write it");
    set_mode(&world.home(), 0o700);
    let is_made_up = || read().contains(&before.generation.to_string()).then_some(());
    assert!(await_some(PATIENCE, is_made_up).is_some(), "it is not written once it can be: {}", read());
}

/// What a command that cannot start the very first coordinator says: what happened, and what to try.
fn refused(mut command: Command) -> [String; 2] {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(69), "{command:?}: {said}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let lines: Vec<&str> = said.lines().collect();
    let [error, hint] = lines.as_slice() else { panic!("{command:?}: {said}") };
    [error, hint].map(|line| (*line).to_owned())
}

fn names_in(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Root writes wherever it likes, so the world is another user's.
#[test]
fn f17_the_very_first_start_in_a_folder_that_cannot_be_written_says_what_to_try() {
    let world = World::of(OWNER);
    let home = world.home();
    OWNER.act(|| std::fs::create_dir_all(&home).expect("a folder of their own"));
    set_mode(&home, 0o500);
    let project = world.scratch().to_str().expect("a path of text");
    let error = format!("error: cannot use the state folder {}", home.display());
    for verb in [&["up"][..], &["token"], &["config", "claude-code"], &["window", project]] {
        let [said, hint] = refused(world.baton_command(verb));
        assert!(said.starts_with(&error) && said.contains(": access is denied"), "{verb:?}: {said}");
        assert_eq!(hint, "hint: check its permissions, or set BATON_HOME to another folder", "{verb:?}");
    }
    assert_eq!(world.baton(&["status"]).code, 3);
    assert_eq!(names_in(&home), [""; 0]);
    set_mode(&home, 0o700);
    world.baton_ok(&["up"]);
}

#[test]
fn f17_the_very_first_start_on_a_full_disk_says_what_to_try() {
    let world = World::new();
    let home = world.home();
    // What a disk without space says when a file is to be written through.
    let without_space = |verb: &[&str]| {
        let (program, libraries) = place::strace();
        let mut strace = world.command(program);
        strace.env("LD_LIBRARY_PATH", libraries).args(["-f", "-qq", "-o", "/dev/null"]);
        strace.args(["-e", "trace=fsync", "-e", "inject=fsync:error=ENOSPC"]);
        strace.arg(place::program("baton")).args(verb);
        strace
    };
    let error = format!("error: cannot use the state folder {}/secret: the disk is full", home.display());
    for verb in [&["up"][..], &["token"], &["config", "claude-code"]] {
        let [said, hint] = refused(without_space(verb));
        assert!(said.starts_with(&error), "{verb:?}: {said}");
        assert_eq!(
            hint, "hint: free up space and try again, or set BATON_HOME to a folder on another disk",
            "{verb:?}"
        );
    }
    assert!(
        names_in(&home).iter().all(|name| name != "secret" && !name.contains(".tmp")),
        "{:?}",
        names_in(&home)
    );
    world.baton_ok(&["up"]);
}

/// A window that was opened when there was no space comes when there is, without being asked again.
#[test]
fn f17_a_window_of_the_very_first_start_says_why_it_waits_and_comes_when_there_is_space() {
    /// It says so each time that it starts its agent again.
    const LINES_MAX: usize = 20;
    let world = World::new();
    let folder = world.folder("shop");
    place::copy_folder(&place::project("shop"), &folder);
    let mut window = world.baton_without_space(&["window", folder.to_str().expect("a path of text")]);
    let mut window = window.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("baton starts");
    let mut said = BufReader::new(window.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let why = format!("cannot use the state folder {}/secret", world.home().display());
    let told = said.by_ref().take(LINES_MAX).find(|line| line.contains(&why)).expect("it says why");
    assert!(told.contains("set BATON_HOME to another folder"), "{told}");
    // What it starts from now on can write.
    space_again(window.id());
    world.await_live("shop");
    signal(window.id(), Signal::TERM);
    window.wait().expect("it ends");
}
