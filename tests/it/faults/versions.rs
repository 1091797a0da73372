//! Windows of an earlier version beside a coordinator of this one (F21).

use std::time::Duration;

use baton_tests::client::ClientKind;
use baton_tests::elder::Elder;
use baton_tests::process::{await_some, kill9};
use baton_tests::story::configurations;
use baton_tests::world::{PATIENCE, World, find, live_name};

#[test]
fn f21_a_window_of_protocol_1_works_with_this_coordinator() {
    let mut world = World::new();
    world.window("shop");
    let first = world.await_live("shop");
    let elder = Elder::join(&world, "elder");
    let status = world.await_status("it registers", |status| find(status, "elder").is_some());
    assert_eq!((status.pid, live_name(&status)), (first.pid, Some("shop")), "it yields (R2)");
    let mut client = world.client(ClientKind::Sdk1);
    assert_eq!(configurations(&mut client)[0], "bill");

    world.take("elder");
    let taken = world.await_live("elder");
    assert!(await_some(PATIENCE, || (elder.state() == "live").then_some(())).is_some(), "it is told so");
    assert_eq!(configurations(&mut client), ["elder"], "calls go to it");

    // Longer than a lease: its heartbeats count, and neither of the two is ended for the other's sake.
    let has_changed = || world.status().filter(|now| now.term != taken.term || now.pid != first.pid);
    assert_eq!(await_some(Duration::from_secs(8), has_changed), None);

    // The window of this version starts the successor, and the one of protocol 1 keeps its place (R9).
    kill9(first.pid);
    let after = world.await_status("a successor", |status| {
        status.generation > taken.generation
            && live_name(status) == Some("elder")
            && status.windows.len() == 2
    });
    assert!(after.term > taken.term, "{after:?}");
    assert_eq!(configurations(&mut client), ["elder"]);

    world.take("shop");
    assert!(await_some(PATIENCE, || (elder.state() == "standby").then_some(())).is_some(), "it is told so");
    assert_eq!(configurations(&mut client)[0], "bill");
    drop(elder);
    world.await_status("it has left", |status| status.windows.len() == 1);
    client.close();
}
