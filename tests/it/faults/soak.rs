//! Windows and clients that come and go (F30): what a coordinator holds does not grow.

use baton_tests::client::ClientKind;
use baton_tests::process::{await_some, rss_kib};
use baton_tests::story::configurations;
use baton_tests::world::{PATIENCE, World, find};

/// Windows and clients that come and go before anything is counted: pools fill, and code is loaded.
const WARM_UP: usize = 6;
const ROUNDS: usize = 20;
/// What an allocator may keep.
const MAX_GROWTH_KIB: u64 = 4 * 1024;

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// A window opens, is taken, answers a client of either era, and closes.
fn come_and_go(world: &mut World, round: usize) {
    world.window("robots");
    world.take("robots");
    let kind = if round.is_multiple_of(2) { ClientKind::Sdk1 } else { ClientKind::Client2 };
    let mut client = world.client(kind);
    assert_eq!(configurations(&mut client), ["walk"]);
    client.close();
    world.close_window("robots");
    world.await_status("it has gone", |status| find(status, "robots").is_none());
    world.take("shop");
}

#[test]
fn f30_windows_and_clients_that_come_and_go_leave_nothing() {
    let mut world = World::new();
    world.window("shop");
    let first = world.await_live("shop");
    let agent = world.agent_pid("shop");
    (0..WARM_UP).for_each(|round| come_and_go(&mut world, round));
    let before = [first.pid, agent].map(|pid| (descriptors(pid), rss_kib(pid)));
    (0..ROUNDS).for_each(|round| come_and_go(&mut world, round));
    for (pid, (n_before, rss_before)) in [first.pid, agent].into_iter().zip(before) {
        // The connections of the last client may be closed a moment later.
        let is_back = || (descriptors(pid) <= n_before).then_some(());
        assert!(await_some(PATIENCE, is_back).is_some(), "{pid}: {n_before} then {}", descriptors(pid));
        let rss = rss_kib(pid);
        assert!(rss <= rss_before + MAX_GROWTH_KIB, "{pid}: {rss_before} KiB, then {rss} KiB");
    }
    let last = world.await_live("shop");
    assert_eq!((last.pid, last.generation), (first.pid, first.generation), "one coordinator all the time");
}
