//! A coordinator whose file is lost, old, or cannot be written (R9): nobody becomes live by a rule in the wrong place.

use baton_proto::ids::MAX_GENERATION;

use super::*;

/// Nothing is left of the file.
fn lost(next: &mut Start) {
    (next.previous, next.vacated) = (None, None);
    (next.known, next.is_trusted) = (0, false);
}

/// A fresh folder: nothing tells that there ever was another one.
fn fresh(next: &mut Start) {
    lost(next);
    next.is_trusted = true;
}

#[test]
fn the_first_window_of_all_is_live_at_once() {
    World::new().open("a").expect("a=live:1.1");
}

#[test]
fn with_a_lost_file_whoever_was_live_gets_its_place_back_however_late_it_comes() {
    for change in [lost, fresh] {
        let mut world = World::new();
        world.open("a").open("b").open("c").take("b").restart_coordinator(change);
        world.register("c").register("a").pass(5_000).expect("a=standby c=standby");
        world.register("b").expect("a=standby b=live:2.1 c=standby");
    }
}

#[test]
fn with_a_lost_file_a_lease_ends_the_wait() {
    let mut world = World::new();
    world.open("a").open("b").take("b").restart_coordinator(lost);
    world.register("a").pass(5_999).expect("a=standby").pass(1).expect("a=live:2.1");
}

#[test]
fn with_a_lost_file_the_user_is_obeyed_at_once() {
    let mut world = World::new();
    world.open("a").open("b").take("b").restart_coordinator(lost);
    world.register("a").take("a").expect("a=live:2.1").register("b").expect("a=live:2.1 b=standby");
}

#[test]
fn with_a_lost_file_a_new_window_waits_like_the_others_unless_nothing_tells_of_the_loss() {
    let mut world = World::new();
    world.open("a").restart_coordinator(lost).open("n").expect("n=standby").register("a");
    world.expect("a=live:2.1 n=standby");

    let mut world = World::new();
    world.open("a").restart_coordinator(fresh).open("n").expect("n=live:2.1").register("a");
    world.expect("a=live:2.2 n=standby");
}

#[test]
fn with_a_lost_file_one_that_was_out_of_touch_waits_for_one_that_knows_better() {
    let mut world = World::new();
    world.open("a").open("b").hang("a", true).pass(6_000).expect("b=live:1.2");
    // It missed that it is not live any more.
    world.agent("a").held_term = Some(term(1, 1));
    world.agent("a").fenced = true;
    world.restart_coordinator(lost).register("a").expect("a=standby awaiting=a");
    world.register("b").expect("a=standby b=live:2.1");
}

#[test]
fn with_a_lost_file_one_that_was_out_of_touch_is_believed_when_nobody_knows_better() {
    let mut world = World::new();
    world.open("a").open("b");
    world.agent("a").fenced = true;
    world.restart_coordinator(lost).register("b").register("a").expect("a=standby b=standby awaiting=a");
    // The same again changes nothing.
    world.register("a").pass(999).expect("a=standby b=standby awaiting=a").pass(1);
    world.expect("a=live:2.1 b=standby");
}

#[test]
fn a_window_that_is_awaited_claims_the_place_from_the_next_coordinator_too() {
    let mut world = World::new();
    world.open("a").open("b");
    world.agent("a").fenced = true;
    // The first one is replaced before it has believed it.
    for _ in 0..2 {
        world.restart_coordinator(lost).register("b").register("a").expect("a=standby b=standby awaiting=a");
    }
    world.pass(1_000).expect("a=live:3.1 b=standby");
}

#[test]
fn a_window_that_vanishes_while_it_is_believed_is_awaited() {
    let mut world = World::new();
    world.open("a").open("b");
    world.agent("a").fenced = true;
    world.restart_coordinator(lost).register("b").register("a").kill("a").pass(1_000);
    world.expect("b=standby awaiting=a").reopen("a").expect("a=live:2.1 b=standby");
}

#[test]
fn a_stop_outlasts_a_lost_file() {
    let mut world = World::new();
    world.open("a").open("b").stop("a").restart_coordinator(lost);
    world.register("b").register("a").pass(60_000).expect("a=off b=standby");
}

/// Found by the simulation (seed 578).
#[test]
fn a_stop_outlasts_a_lost_file_and_a_coordinator_that_did_not_know_yet() {
    let mut world = World::new();
    world.open("a").open("b").stop("a").restart_coordinator(lost).register("b").register("a");
    // It hangs when the next one starts.
    world.restart_coordinator(|_| {}).register("b").pass(60_000).expect("b=standby");
    // One that was live, and could not say so, is live again.
    let mut world = World::new();
    world.open("a").open("b").stop("a").take("b").restart_coordinator(lost).register("a");
    world.restart_coordinator(|_| {}).register("a").pass(3_000).register("b").expect("a=off b=live:3.1");
}

/// Found by the simulation (seed 902).
#[test]
fn a_stop_is_no_reason_when_another_window_was_live_since() {
    // Stopped before the other one was live, or while it is.
    for was_live in [true, false] {
        let mut world = World::new();
        world.open("a").open("b").open("c");
        if was_live {
            world.stop("a").take("b");
        } else {
            world.take("b").stop("a");
        }
        world.kill("b").restart_coordinator(lost).register("a").register("c").pass(60_000);
        world.expect("a=off c=live:2.1");
    }
}

#[test]
fn an_old_file_is_not_believed_when_an_agent_was_with_a_later_coordinator() {
    let mut world = World::new();
    world.open("a").open("b");
    let of_a = world.election.preferred().cloned();
    // Written down by nobody.
    world.restart_coordinator(|_| {}).register("a").register("b").take("b");
    world.restart_coordinator(|next| {
        (next.previous, next.known, next.previous_is_dead) = (of_a, 1, true);
    });
    world.register("a").pass(3_000).expect("a=standby").register("b").expect("a=standby b=live:3.1");
}

#[test]
fn who_follows_an_unsure_coordinator_is_unsure() {
    let mut world = World::new();
    world.open("a").open("b").restart_coordinator(lost).register("b");
    assert!(world.election.is_unsure());
    world.restart_coordinator(|_| {}).open("n").register("b").expect("b=standby n=standby");
    world.register("a").expect("a=live:3.1 b=standby n=standby");
    assert!(!world.election.is_unsure());
}

#[test]
fn after_a_crash_before_the_first_grant_was_written_a_standby_window_does_not_overtake() {
    let mut world = World::new();
    world.open("a").open("b").restart_coordinator(|next| next.previous = None);
    world.register("b").pass(1_000).expect("b=standby").register("a").expect("a=live:2.1 b=standby");
}

#[test]
fn the_last_generation_of_all_locks_nobody_out() {
    let mut world = World::new();
    world.open("a").open("b");
    world.agents.insert(id("c"), Agent { auto_start: true, beats: true, incarnation: 1, ..Agent::default() });
    world.agent("c").highest_term = Some(term(MAX_GENERATION, 5));
    world.register("c");
    world.expect(&format!("a=live:{MAX_GENERATION}.6 b=standby c=standby"));
    world.take("b").restart_coordinator(|next| next.generation = 7).register("a").register("b");
    world.pass(6_000).take("b").register("b").register("a");
    world.expect(&format!("a=standby b=live:{MAX_GENERATION}.8"));
}
