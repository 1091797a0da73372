//! Every rule by name.

use super::*;

#[test]
fn r1_a_window_becomes_live_when_none_is() {
    World::new().open("a").expect("a=live:1.1");
}

#[test]
fn r1_a_window_does_not_become_live_while_another_is_awaited() {
    let mut world = World::new();
    world.open("a").kill("a").expect("awaiting=a").open("b").expect("b=standby awaiting=a");
}

#[test]
fn r2_a_window_yields_to_the_live_one() {
    World::new().open("a").open("b").open("c").expect("a=live:1.1 b=standby c=standby");
}

#[test]
fn r3_a_window_without_auto_start_is_off_whoever_is_live() {
    let mut world = World::new();
    world
        .open_with("a", false)
        .expect("a=off")
        .open("b")
        .open_with("c", false)
        .expect("a=off b=live:1.1 c=off");
    world.kill("b").pass(20_000).expect("a=off c=off");
}

#[test]
fn r4_taking_a_window_is_at_once_whatever_its_setting() {
    let mut world = World::new();
    world.open("a").open_with("b", false).take("b").expect("a=standby b=live:1.2");
    // The previous one goes off when its auto-start is off.
    world.take("a").expect("a=live:1.3 b=off");
    // Taking what one has changes nothing.
    world.take("a").expect("a=live:1.3 b=off");
}

#[test]
fn r4_the_windows_are_told_who_is_live() {
    let mut world = World::new();
    world.open("a").open("b").take("b");
    let last = |world: &mut World, window| match world.agent(window).notices.last().cloned() {
        Some(Notice::State { state, term, live, why, .. }) => (state, term, live.map(|live| live.name), why),
        other => panic!("{other:?}"),
    };
    let told = last(&mut world, "a");
    assert_eq!(told, (WindowState::Standby, None, Some("the b".to_owned()), "the b is live".to_owned()));
    let told = last(&mut world, "b");
    assert_eq!(
        told,
        (WindowState::Live, Some(term(1, 2)), Some("the b".to_owned()), "you chose it".to_owned())
    );
}

#[test]
fn r4_an_unknown_window_cannot_be_taken() {
    let mut world = World::new();
    world.open("a");
    assert_eq!(world.input(Input::Take(id("b"))), Err(Refused::NotRegistered));
    world.expect("a=live:1.1");
}

#[test]
fn r5_stopping_the_live_window_promotes_nobody() {
    let mut world = World::new();
    world.open("a").open("b").stop("a").expect("a=off b=standby").pass(60_000).expect("a=off b=standby");
    assert!(world.agent("a").notices.contains(&Notice::Stop));
    // A window that was not there before starts, as ever.
    world.open("c").expect("a=off b=standby c=live:1.2");
}

#[test]
fn r5_a_stop_outlasts_a_lost_connection_and_a_restart_of_the_agent() {
    let mut world = World::new();
    world.open("a").open("b").stop("a");
    world.kill("a").kill("b").pass(100).reopen("a").register("b").expect("a=off b=standby");
    world.take("a").expect("a=live:1.2 b=standby");
}

#[test]
fn r5_a_standby_window_can_be_stopped_and_is_not_promoted() {
    let mut world = World::new();
    world.open("a").open("b").stop("b").expect("a=live:1.1 b=off").kill("a").pass(10_000).expect("b=off");
}

#[test]
fn r5_a_stop_before_all_windows_are_back_with_a_new_coordinator_promotes_none_of_them() {
    let mut world = World::new();
    world.open("a").open("b").restart_coordinator(|_| {}).register("a").stop("a");
    world.register("b").expect("a=off b=standby").pass(10_000).expect("a=off b=standby");
}

#[test]
fn r5_ends_with_the_last_window() {
    let mut world = World::new();
    world.open("a").open("b").stop("a").kill("a").kill("b").pass(10_000);
    assert!(world.election.vacated().is_none());
    world.reopen("b").expect("b=live:1.2");
}

#[test]
fn r6_the_place_is_held_and_the_window_comes_back() {
    let mut world = World::new();
    world.open("a").open("b").kill("a").pass(4_900).expect("b=standby awaiting=a");
    world.reopen("a").expect("a=live:1.2 b=standby");
}

#[test]
fn r6_a_connection_that_broke_for_a_moment_changes_no_term() {
    let mut world = World::new();
    world.open("a").kill("a").pass(50).register("a").expect("a=live:1.1");
}

#[test]
fn r6_a_taken_window_without_auto_start_stays_live_when_it_is_back_in_time() {
    let mut world = World::new();
    world.open_with("a", false).take("a").kill("a").pass(3_000).reopen("a").expect("a=live:1.2");
    world.kill("a").pass(5_100).reopen("a").expect("a=off");
}

#[test]
fn r6_a_reload_that_says_so_is_held_all_the_same() {
    let mut world = World::new();
    world.open("a").open("b");
    world.agent("a").registered = false;
    world.input(Input::Leave(id("a"), 1)).unwrap();
    world.expect("b=standby awaiting=a").pass(4_000).reopen("a").expect("a=live:1.2 b=standby");
}

#[test]
fn r6_else_the_standby_window_focused_last_becomes_live() {
    let mut world = World::new();
    world.open("a").open("b").open("c").open("d").open_with("e", false);
    for window in ["d", "b", "c", "e"] {
        world.focus(window, true).pass(100).focus(window, false);
    }
    world.kill("a").pass(4_999).expect("b=standby c=standby d=standby e=off awaiting=a");
    world.pass(1).expect("b=standby c=live:1.2 d=standby e=off");
    world.focus("d", true).kill("c").pass(5_000).expect("b=standby d=live:1.3 e=off");
}

#[test]
fn r6_of_windows_never_focused_the_first_by_id_becomes_live() {
    World::new().open("b").open("c").open("a").kill("b").pass(5_000).expect("a=live:1.2 c=standby");
}

#[test]
fn r5_what_the_user_stopped_is_remembered_while_a_window_reloads_for_longer_than_a_hold() {
    let stopped = || {
        let mut world = World::new();
        world.open("a").open("b").stop("a").expect("a=off b=standby");
        world
    };
    // It stays off itself, whoever is live meanwhile, and however many are there.
    stopped().take("b").kill("a").pass(20_000).reopen("a").expect("a=off b=live:1.2");
    World::new().open("a").stop("a").kill("a").pass(20_000).reopen("a").expect("a=off");
    // And no other takes the place by coming back.
    stopped().kill("b").pass(20_000).reopen("b").expect("a=off b=standby");
    // Later it is a window that opens, and so is one that nobody knows.
    stopped().kill("b").pass(31_000).reopen("b").expect("a=off b=live:1.2");
    stopped().open("c").expect("a=off b=standby c=live:1.2");
    World::new().open("a").stop("a").kill("a").pass(31_000).reopen("a").expect("a=live:1.2");
}

#[test]
fn r6_a_window_that_reloads_for_longer_than_a_hold_has_its_place_again() {
    let gone = || {
        let mut world = World::new();
        world.open("a").open("b").open("c").kill("a").pass(5_000).expect("b=live:1.2 c=standby");
        world
    };
    gone().pass(29_000).reopen("a").expect("a=live:1.3 b=standby c=standby");
    // Once, and not for ever.
    gone().pass(1_000).reopen("a").kill("b").reopen("b").expect("a=live:1.3 b=standby c=standby");
    gone().pass(31_000).reopen("a").expect("a=standby b=live:1.2 c=standby");
    // Not when it is the user's wish, or another rule's.
    gone().take("b").reopen("a").expect("a=standby b=live:1.2 c=standby");
    gone().take("c").take("b").reopen("a").expect("a=standby b=live:1.4 c=standby");
    gone().stop("b").reopen("a").expect("a=standby b=off c=standby");
    gone().kill("b").pass(5_000).reopen("a").expect("a=standby c=live:1.3");
    // R11.
    gone().debug("b", &["s1"]).reopen("a").expect("a=standby b=live:1.2 c=standby");
    // R7: also a restart that takes long.
    let mut world = World::new();
    world.open("a").open("b").restart("a").kill("a").pass(5_000).expect("b=live:1.2");
    world.reopen("a").expect("a=live:1.3 b=standby");
}

#[test]
fn r6_a_window_that_the_user_chose_has_its_place_again_whatever_its_setting() {
    let mut world = World::new();
    world.open_with("a", false).open("b").take("a").kill("a").pass(5_000).expect("b=live:1.3");
    world.reopen("a").expect("a=live:1.4 b=standby");
}

#[test]
fn r6_a_takeover_ends_the_wait() {
    let mut world = World::new();
    world.open("a").open("b").kill("a").take("b").expect("b=live:1.2").pass(6_000).expect("b=live:1.2");
    world.reopen("a").expect("a=standby b=live:1.2");
}

#[test]
fn r7_a_restarted_window_is_live_again_with_a_new_term() {
    let mut world = World::new();
    world.open("a").open("b").restart("a").expect("a=standby b=standby awaiting=a");
    assert_eq!(world.agent("a").notices.iter().filter(|notice| **notice == Notice::Restart).count(), 1);
    // It ends its debug sessions first; the wait counts from its end.
    world.pass(2_000).kill("a").pass(4_000).reopen("a").expect("a=live:1.2 b=standby");
}

#[test]
fn r7_a_new_agent_may_come_before_the_old_one_is_seen_to_end() {
    let mut world = World::new();
    world.open("a").restart("a").reopen("a").expect("a=live:1.2");
    assert_eq!(world.input(Input::EventsClosed(id("a"), 1)), Err(Refused::StaleIncarnation));
    world.expect("a=live:1.2");
}

#[test]
fn r7_an_agent_that_does_not_restart_gets_its_place_back() {
    World::new().open("a").open("b").restart("a").pass(5_000).expect("a=live:1.2 b=standby");
}

#[test]
fn r7_a_restarted_standby_window_takes_nothing() {
    World::new().open("a").open("b").restart("b").kill("b").reopen("b").expect("a=live:1.1 b=standby");
}

#[test]
fn r8_auto_start_on_is_a_start_or_a_standby() {
    let mut world = World::new();
    world.open_with("a", false).open_with("b", false).auto_start("a", true).expect("a=live:1.1 b=off");
    world.auto_start("b", true).expect("a=live:1.1 b=standby");
}

#[test]
fn r8_auto_start_off_leaves_the_live_window_and_puts_a_standby_one_off() {
    let mut world = World::new();
    world.open("a").open("b").auto_start("a", false).auto_start("b", false).expect("a=live:1.1 b=off");
    world.kill("a").pass(6_000).expect("b=off");
}

#[test]
fn r8_what_was_switched_from_elsewhere_outlasts_the_coordinator() {
    let mut world = World::new();
    world.open("a").open("b").auto_start("b", false).restart_coordinator(|_| {});
    world.register("a").register("b").expect("a=live:2.1 b=off");
}

#[test]
fn r8_an_agent_hears_of_a_switch_that_it_missed_while_its_stream_was_not_open() {
    let mut world = World::new();
    world.open("a").open_with("b", false).kill("b");
    let register = world.registration("b");
    world.input(Input::Register(id("b"), Box::new(register.clone()))).unwrap();
    world.auto_start("b", true).expect("a=live:1.1 b=standby");
    // Nothing of that came through, and the stream breaks once more.
    world.agent("b").auto_start = false;
    world.kill("b").register("b").expect("a=live:1.1 b=standby");
    assert!(world.agent("b").auto_start);
    // The same registration once more, and late.
    world.input(Input::Register(id("b"), Box::new(register))).unwrap();
    world.expect("a=live:1.1 b=standby");
    // A new agent says what holds from now on.
    world.agent("b").auto_start = false;
    world.kill("b").reopen("b").expect("a=live:1.1 b=off");
}

#[test]
fn r9_the_previous_live_window_stays_live() {
    let mut world = World::new();
    world.open("a").open("b").take("b").restart_coordinator(|_| {});
    world.expect("awaiting=b").register("a").expect("a=standby awaiting=b");
    world.pass(5_900).register("b").expect("a=standby b=live:2.1");
}

#[test]
fn r9_another_is_granted_only_after_a_lease() {
    let mut world = World::new();
    world.open("a").open("b").restart_coordinator(|_| {}).register("b");
    world.pass(5_999).expect("b=standby awaiting=a").pass(1).expect("b=live:2.1");
    world.register("a").expect("a=standby b=live:2.1");
}

#[test]
fn r9_nobody_waits_for_a_window_proven_dead() {
    let mut world = World::new();
    world.open("a").open("b").restart_coordinator(|next| next.previous_is_dead = true);
    // Only for a moment, for others who know better than the file.
    world.register("b").expect("b=standby").pass(1_000).expect("b=live:2.1");
    world.restart_coordinator(|next| next.previous_is_dead = true).open("c").expect("c=live:3.1");
}

#[test]
fn r5_who_stops_the_window_that_died_while_it_was_live_has_nobody_follow_it() {
    let mut world = World::new();
    world.open("a").open("b").restart_coordinator(|next| next.previous_is_dead = true);
    world.register("b").open("a").stop("a").expect("a=off b=standby");
    world.pass(10_000).expect("a=off b=standby");
    world.restart_coordinator(|_| {}).register("b").register("a").pass(10_000).expect("a=off b=standby");
    // One that somebody has followed is stopped as any other.
    let mut world = World::new();
    world.open("a").open("b").restart_coordinator(|next| next.previous_is_dead = true);
    world.register("b").pass(1_000).expect("b=live:2.1").open("a").stop("a").expect("a=off b=live:2.1");
}

#[test]
fn r9_nobody_waits_for_a_window_that_has_let_go() {
    let mut world = World::new();
    world.open("a").open("b");
    let of_a = world.election.preferred().cloned();
    // The file still names a when the coordinator dies.
    world.take("b").restart_coordinator(|next| next.previous = of_a);
    world.register("a").expect("a=standby").register("b").expect("a=standby b=live:2.1");
}

#[test]
fn r9_when_who_came_after_never_returns_a_lease_ends_the_wait() {
    let mut world = World::new();
    world.open("a").open("b").take("b").take("a");
    let previous = world.election.preferred().cloned();
    world.take("b").restart_coordinator(|next| next.previous = previous);
    world.register("a").expect("a=standby").pass(6_000).expect("a=live:2.1");
}

#[test]
fn r9_the_window_with_the_later_term_wins_over_the_file() {
    let mut world = World::new();
    world.open("a").open("b");
    let of_a = world.election.preferred().cloned();
    world.take("b").restart_coordinator(|next| next.previous = of_a);
    world.register("b").expect("b=live:2.1").register("a").expect("a=standby b=live:2.1");
}

#[test]
fn r9_without_the_file_the_window_that_held_the_place_gets_it_back() {
    let mut world = World::new();
    world.open("a").open("b").take("b").restart_coordinator(|next| next.previous = None);
    world.register("a").expect("a=standby").register("b").expect("a=standby b=live:2.1");
    // The user's word stands above any claim.
    world.take("a").register("b").expect("a=live:2.2 b=standby");
}

#[test]
fn r9_a_stopped_window_stays_off_and_nobody_is_promoted() {
    let mut world = World::new();
    world.open("a").open("b").stop("a").restart_coordinator(|_| {});
    world.register("b").register("a").expect("a=off b=standby").pass(20_000).expect("a=off b=standby");
}

#[test]
fn r9_a_window_that_missed_what_the_user_stopped_has_no_claim() {
    let mut world = World::new();
    world.open("a").open("b").hang("a", true).pass(6_000).expect("b=live:1.2").stop("b");
    // It still holds its term, of which nobody told it that it is over.
    world.restart_coordinator(|_| {}).register("b").expect("b=off");
    world.hang("a", false).register("a").expect("a=standby b=off").pass(20_000).expect("a=standby b=off");
    // What came after the stop, and was not written yet, counts.
    let mut world = World::new();
    world.open("a").open("b").stop("a");
    let vacated = world.election.vacated();
    world.take("b").restart_coordinator(|next| (next.previous, next.vacated) = (None, vacated));
    world.register("a").register("b").expect("a=off b=live:2.1");
}

#[test]
fn r9_a_window_stopped_just_before_lets_go() {
    let mut world = World::new();
    world.open("a").open("b");
    let of_a = world.election.preferred().cloned();
    world.stop("a").restart_coordinator(|next| {
        next.previous = of_a;
        next.vacated = None;
    });
    world.register("b").register("a").pass(10_000).expect("a=off b=standby");
}

#[test]
fn r10_a_silent_window_is_suspect_then_evicted() {
    let mut world = World::new();
    world.open("a").open("b").hang("a", true).pass(2_999).expect("a=live:1.1 b=standby");
    world.pass(1).expect("a=live:1.1? b=standby").pass(2_999).expect("a=live:1.1? b=standby");
    world.pass(1).expect("b=live:1.2");
    assert!(world.transcript.contains(&format!("{:?}", Output::CloseEvents(id("a")))));
}

#[test]
fn r10_a_window_that_answers_again_was_never_gone() {
    let mut world = World::new();
    world
        .open("a")
        .open("b")
        .hang("a", true)
        .pass(4_000)
        .hang("a", false)
        .pass(0)
        .expect("a=live:1.1 b=standby");
}

#[test]
fn r10_a_silent_window_is_promoted_last() {
    let mut world = World::new();
    world.open("a").open("b").open("c").focus("b", true).focus("b", false).kill("a");
    world.hang("b", true).pass(4_900).expect("b=standby? c=standby awaiting=a");
    world.pass(100).expect("b=standby? c=live:1.2");
}

#[test]
fn r11_no_rule_takes_the_place_from_a_window_that_debugs() {
    let mut world = World::new();
    let follow = Settings { follow_focus: true, ..Settings::default() };
    world.input(Input::SetSettings(follow)).unwrap();
    world.open("a").open("b").debug("a", &["s"]).focus("b", true).pass(10_000).expect("a=live:1.1 b=standby");
    world.debug("a", &[]).expect("a=standby b=live:1.2");
    // The user may.
    world.debug("b", &["s"]).take("a").expect("a=live:1.3 b=standby");
}

#[test]
fn r11_what_the_user_debugs_holds_no_place() {
    let mut world = World::new();
    let follow = Settings { follow_focus: true, ..Settings::default() };
    world.input(Input::SetSettings(follow)).unwrap();
    world.open("a").open("b").debug_by_user("a").focus("b", true);
    world.pass(1_000).expect("a=standby b=live:1.2");
}

#[test]
fn r11_a_claim_does_not_take_it_either() {
    let mut world = World::new();
    world.open("a").open("b").take("b").restart_coordinator(|next| next.previous = None);
    world.open("c").debug("c", &["s"]).register("b").expect("b=standby c=live:2.1");
}

#[test]
fn r12_the_place_follows_the_focus_when_it_is_set() {
    let mut world = World::new();
    world.open("a").open("b").open_with("c", false);
    world.focus("b", true).pass(3_000).expect("a=live:1.1 b=standby c=off").focus("b", false);
    let follow = Settings { follow_focus: true, ..Settings::default() };
    world.input(Input::SetSettings(follow)).unwrap();
    world.focus("b", true).pass(999).expect("a=live:1.1 b=standby c=off");
    world.pass(1).expect("a=standby b=live:1.2 c=off");
    world.focus("b", false).focus("c", true).pass(5_000).expect("a=standby b=live:1.2 c=off");
    // A glance is not enough.
    world.focus("c", false).focus("a", true).pass(900).focus("a", false).pass(5_000);
    world.expect("a=standby b=live:1.2 c=off");
}

#[test]
fn r12_of_two_that_are_focused_the_later_one_counts() {
    let mut world = World::new();
    let follow = Settings { follow_focus: true, ..Settings::default() };
    world.open("a").open("b").open("c").focus("b", true).pass(10).focus("c", true).pass(3_000);
    world.input(Input::SetSettings(follow)).unwrap();
    world.tick().expect("a=standby b=standby c=live:1.2");
    world.pass(5_000).expect("a=standby b=standby c=live:1.2");
}

#[test]
fn r12_does_not_undo_what_the_user_chose_from_the_focused_window() {
    let mut world = World::new();
    let follow = Settings { follow_focus: true, ..Settings::default() };
    world.input(Input::SetSettings(follow)).unwrap();
    world.open("a").open("b").focus("b", true).pass(500).take("a").pass(5_000).expect("a=live:1.1 b=standby");
}
