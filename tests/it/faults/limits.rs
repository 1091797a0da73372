//! What the system does not give: descriptors (F18), a state folder that can be written (F17).

use std::time::{Duration, Instant};

use baton_tests::client::ClientKind;
use baton_tests::process::{await_some, cpu_time, kill9};
use baton_tests::raw;
use baton_tests::story::configurations;
use baton_tests::user::{OWNER, set_mode};
use baton_tests::world::{PATIENCE, World, live_name};

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
