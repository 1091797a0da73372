//! Late, double and lost messages, lost files, stalls.

use super::*;

#[test]
fn f9_a_window_that_was_stopped_for_long_comes_back_as_standby() {
    let mut world = World::new();
    world.open("a").open("b").hang("a", true).pass(30_000).expect("b=live:1.2").hang("a", false);
    assert_eq!(world.election.registered(&id("a")), Err(Refused::NotRegistered));
    world.register("a").expect("a=standby b=live:1.2");
}

#[test]
fn f17_a_lost_generation_is_learned_from_the_agents() {
    let mut world = World::new();
    world.open("a");
    world.agents.insert(id("b"), Agent { auto_start: true, beats: true, incarnation: 1, ..Agent::default() });
    world.agent("b").highest_term = Some(term(7, 3));
    world.register("b");
    // The live window moves to the new generation with a new term.
    world.expect("a=live:1008.1 b=standby");
    assert_eq!(world.election.generation(), 1_008, "above those that no agent heard of");
    world.take("b").expect("a=standby b=live:1008.2");
}

#[test]
fn f17_two_coordinators_that_learn_of_one_term_grant_different_ones() {
    let learned = |first| {
        let mut election = Election::new(Instant::now(), start(first));
        election.learn_term(&id("a"), Some(term(5_000, 1)));
        election.generation()
    };
    assert_ne!(learned(11), learned(12));
}

/// Both files were lost in the first generation, and the clock with them: the term is granted a second time.
#[test]
fn f17_a_term_that_two_windows_hold_is_nobodys() {
    // Who held the place gets it back as long as the coordinator asks; later it stays where it is.
    for (waited_ms, expected) in [(0, "a=standby b=live:1002.2"), (60_000, "a=live:1002.1 b=standby")] {
        let mut world = World::new();
        world.open("a").pass(waited_ms).expect("a=live:1.1");
        let again = Agent { auto_start: true, beats: true, incarnation: 1, ..Agent::default() };
        world.agents.insert(id("b"), again);
        world.agent("b").highest_term = Some(term(1, 1));
        world.agent("b").held_term = Some(term(1, 1));
        world.register("b").expect(expected);
        // One that was granted it here says so as often as it likes.
        world.register("a").expect(expected);
    }
}

#[test]
fn f17_a_term_of_our_own_generation_that_we_never_granted_raises_it_too() {
    let mut world = World::new();
    world.agents.insert(id("a"), Agent { auto_start: true, beats: true, incarnation: 1, ..Agent::default() });
    world.agent("a").highest_term = Some(term(1, 9));
    world.register("a").expect("a=standby").pass(6_000).expect("a=live:1002.1");
}

#[test]
fn f17_while_a_place_is_held_the_window_comes_back_with_a_term_of_the_new_generation() {
    let mut world = World::new();
    world.open("a").kill("a");
    world.agents.insert(id("b"), Agent { auto_start: true, beats: true, incarnation: 1, ..Agent::default() });
    world.agent("b").highest_term = Some(term(5, 0));
    world.register("b").register("a").expect("a=live:1006.1 b=standby");
}

#[test]
fn a_term_beyond_belief_is_refused() {
    let mut world = World::new();
    world.agents.insert(id("a"), Agent { auto_start: true, incarnation: 1, ..Agent::default() });
    world.agent("a").held_term = Some(term(u64::MAX, 1));
    let register = world.registration("a");
    assert_eq!(world.input(Input::Register(id("a"), Box::new(register))), Err(Refused::ImpossibleTerm));
    world.expect("");
}

#[test]
fn f20_a_coordinator_that_did_not_run_gives_everyone_a_lease() {
    let mut world = World::new();
    world.open("a").open("b").open("c").kill("c");
    let before = world.show();
    world.now += Duration::from_secs(3_600);
    world.tick().expect(&before).hang("a", true).pass(5_900).expect("a=live:1.1? b=standby");
    world.pass(100).expect("b=live:1.2");
}

#[test]
fn f20_a_command_that_comes_before_the_late_tick_evicts_nobody() {
    let mut world = World::new();
    world.open("a").open("b");
    world.now += Duration::from_secs(60);
    world.beat("b").tick().expect("a=live:1.1 b=standby");
}

#[test]
fn f20_a_held_place_is_held_on() {
    let mut world = World::new();
    world.open("a").open("b").kill("a");
    world.now += Duration::from_secs(60);
    world.tick().expect("b=standby awaiting=a").pass(4_000).reopen("a").expect("a=live:1.2 b=standby");
}

#[test]
fn f24_of_two_takeovers_the_last_accepted_wins() {
    let mut world = World::new();
    world.open("a").open("b").open("c").take("b").take("c").expect("a=standby b=standby c=live:1.3");
    let granted = |window: &str| {
        let notices = world.agents[&id(window)].notices.iter();
        notices.filter_map(|notice| match notice {
            Notice::State { term, .. } => *term,
            _ => None,
        })
    };
    assert_eq!(granted("b").collect::<Vec<_>>(), [term(1, 2)]);
    assert_eq!(granted("c").collect::<Vec<_>>(), [term(1, 3)]);
}

#[test]
fn f25_a_late_heartbeat_changes_nothing() {
    let mut world = World::new();
    world.open("a").debug("a", &["new"]);
    let late = Heartbeat {
        incarnation: 1,
        seq: 1,
        focused: true,
        debug_sessions: Vec::new(),
        folders: None,
        name: None,
        tallies: Vec::new(),
        breakpoints: Vec::new(),
        more_breakpoints: 0,
    };
    let sent = world.transcript.len();
    world.input(Input::Heartbeat(id("a"), late)).unwrap();
    assert_eq!(world.transcript.len(), sent);
    assert_eq!(world.election.roster(world.now, 0).windows[&id("a")].debug_sessions[0].id, "new");
}

#[test]
fn f25_a_late_heartbeat_is_no_sign_of_life() {
    let mut world = World::new();
    world.open("a").beat("a").hang("a", true);
    for _ in 0..6 {
        world.pass(1_000);
        let late = Heartbeat {
            incarnation: 1,
            seq: 1,
            focused: false,
            debug_sessions: Vec::new(),
            folders: None,
            name: None,
            tallies: Vec::new(),
            breakpoints: Vec::new(),
            more_breakpoints: 0,
        };
        let _ = world.input(Input::Heartbeat(id("a"), late));
    }
    world.expect("");
}

#[test]
fn a_registration_lets_the_agent_count_its_heartbeats_anew() {
    let mut world = World::new();
    world.open("a").pass(20_000).kill("a");
    world.agent("a").seq = 0;
    world.register("a").debug("a", &["s"]).pass(20_000).expect("a=live:1.1");
    assert_eq!(world.election.roster(world.now, 0).windows[&id("a")].debug_sessions.len(), 1);
}

#[test]
fn f25_a_registration_twice_changes_nothing() {
    let mut world = World::new();
    world.open("a").open("b").beat("a");
    let register = world.registration("a");
    let before = world.show();
    let sent = world.agent("a").notices.len();
    world.input(Input::Register(id("a"), Box::new(register))).unwrap();
    world.expect(&before);
    assert_eq!(world.agent("a").notices.len(), sent);
}

#[test]
fn f25_messages_of_an_earlier_agent_are_stale() {
    let mut world = World::new();
    world.open("a");
    let old = world.registration("a");
    world.reopen("a").expect("a=live:1.2");
    assert!(world.agent("a").notices.contains(&Notice::Superseded));
    let beat = Heartbeat {
        incarnation: 1,
        seq: 99,
        focused: false,
        debug_sessions: Vec::new(),
        folders: None,
        name: None,
        tallies: Vec::new(),
        breakpoints: Vec::new(),
        more_breakpoints: 0,
    };
    for input in [
        Input::Register(id("a"), Box::new(old)),
        Input::Heartbeat(id("a"), beat),
        Input::Leave(id("a"), 1),
        Input::EventsOpened(id("a"), 1),
        Input::EventsClosed(id("a"), 1),
    ] {
        assert_eq!(world.input(input.clone()), Err(Refused::StaleIncarnation), "{input:?}");
    }
    world.expect("a=live:1.2");
}

#[test]
fn f25_a_registration_after_the_leave_of_its_run_raises_no_ghost() {
    let mut world = World::new();
    world.open("a").open("b");
    let late = world.registration("b");
    world.agent("b").registered = false;
    world.input(Input::EventsClosed(id("b"), 1)).unwrap();
    world.input(Input::Leave(id("b"), 1)).unwrap();
    world.input(Input::Leave(id("b"), 1)).unwrap();
    let refused = world.input(Input::Register(id("b"), Box::new(late)));
    assert_eq!(refused, Err(Refused::StaleIncarnation));
    world.expect("a=live:1.1").reopen("b").expect("a=live:1.1 b=standby");
}

#[test]
fn f25_messages_before_the_registration_ask_for_it() {
    let mut world = World::new();
    let beat = Heartbeat {
        incarnation: 1,
        seq: 1,
        focused: false,
        debug_sessions: Vec::new(),
        folders: None,
        name: None,
        tallies: Vec::new(),
        breakpoints: Vec::new(),
        more_breakpoints: 0,
    };
    assert_eq!(world.input(Input::Heartbeat(id("a"), beat)), Err(Refused::NotRegistered));
    assert_eq!(world.input(Input::EventsOpened(id("a"), 1)), Err(Refused::NotRegistered));
    assert_eq!(world.input(Input::Stop(id("a"))), Err(Refused::NotRegistered));
    assert_eq!(world.input(Input::Restart(id("a"))), Err(Refused::NotRegistered));
    assert_eq!(world.input(Input::SetAutoStart(id("a"), true)), Err(Refused::NotRegistered));
}

#[test]
fn f27_with_auto_start_off_everywhere_the_place_stays_empty() {
    let mut world = World::new();
    world.open_with("a", false).open_with("b", false).take("a").expect("a=live:1.1 b=off");
    world.focus("b", true).kill("a").pass(60_000).expect("b=off");
    world.restart_coordinator(|_| {}).register("b").pass(60_000).expect("b=off");
}

#[test]
fn t13_terms_grow_over_any_number_of_coordinators() {
    let mut world = World::new();
    world.open("a").open("b");
    for generation in 2..6 {
        world.restart_coordinator(|_| {}).register("b").register("a");
        world.expect(&format!("a=live:{generation}.1 b=standby"));
    }
    // The invariant of every step is that a granted term exceeds all before it.
    assert_eq!(world.highest, term(5, 1));
}

#[test]
fn an_awaited_window_is_written_down_until_its_place_is_given_away() {
    let mut world = World::new();
    world.open("a").open("b").kill("a");
    let of_a = Preferred { window: id("a"), pid: 7, pid_start: 9, term: Some(term(1, 1)) };
    assert_eq!(world.election.preferred(), Some(&of_a));
    world.pass(5_000);
    assert_eq!(world.election.preferred().map(|preferred| preferred.window.clone()), Some(id("b")));
    world.stop("b");
    assert_eq!((world.election.preferred(), world.election.vacated()), (None, Some(term(1, 2))));
}

#[test]
fn there_is_a_bound_on_windows() {
    let mut world = World::new();
    world.open("a");
    let register = world.registration("a");
    let mut last = Ok(());
    for n in 0..=super::super::MAX_WINDOWS {
        last = world
            .election
            .handle(world.now, Input::Register(id(&format!("w{n}")), Box::new(register.clone())));
    }
    assert_eq!(last, Err(Refused::TooManyWindows));
}
