//! The task in simulated time: streams, their ends, what is published.

use baton_proto::control::WindowState;
use baton_proto::ids::{InstanceId, Term};

use super::*;

fn start() -> Start {
    Start {
        instance: InstanceId("i".to_owned()),
        generation: 1,
        known: 0,
        is_trusted: true,
        settings: Settings::default(),
        previous: None,
        previous_is_dead: false,
        vacated: None,
    }
}

fn id(text: &str) -> WindowId {
    text.parse().unwrap()
}

fn registration(name: &str, kind: WindowKind) -> Register {
    Register {
        protocol: 1,
        version: "0".to_owned(),
        name: name.to_owned(),
        kind,
        folders: Vec::new(),
        trees: Vec::new(),
        auto_start: true,
        pid: 7,
        pid_start: 9,
        port: 4000,
        socket: None,
        incarnation: 1,
        highest_term: None,
        held_term: None,
        fenced: false,
        stopped: false,
        live_since: false,
        debug_sessions: Vec::new(),
        focused_ms_ago: None,
        client_epoch: 0,
        breakpoints_kept: None,
    }
}

async fn open(keeper: &Keeper, window: &str) -> Events {
    keeper.register(id(window), registration(window, WindowKind::Headless)).await.unwrap();
    keeper.open_events(id(window), 1).await.unwrap()
}

/// The next notice about where the window stands.
async fn next_state(events: &mut Events) -> (WindowState, Option<Term>) {
    loop {
        match events.next().await {
            Some(Notice::State { state, term, .. }) => return (state, term),
            Some(_) => {}
            None => panic!("the stream ended"),
        }
    }
}

/// Waits until the roster is as wanted; fails in simulated time when it never is.
async fn until(keeper: &Keeper, is_wanted: impl FnMut(&Arc<Roster>) -> bool) -> Arc<Roster> {
    let mut roster = keeper.watch();
    let wait = tokio::time::timeout(Duration::from_secs(60), roster.wait_for(is_wanted));
    wait.await.expect("the roster never was as wanted").expect("the keeper ended").clone()
}

fn live(roster: &Roster) -> Option<&str> {
    roster.live.as_ref().map(|(id, _)| id.as_str())
}

fn term(seq: u64) -> Option<Term> {
    Some(Term { generation: 1, seq })
}

#[tokio::test(start_paused = true)]
async fn a_takeover_is_published_and_told_before_it_is_answered() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let (mut a, mut b) = (open(&keeper, "a").await, open(&keeper, "b").await);
    assert_eq!(next_state(&mut a).await, (WindowState::Live, term(1)));
    assert_eq!(next_state(&mut b).await, (WindowState::Standby, None));
    let outcome = keeper.take(id("b")).await.unwrap();
    assert_eq!(outcome.term, term(2));
    assert_eq!(live(&keeper.roster()), Some("b"));
    assert_eq!(a.notices.len() + b.notices.len(), 4, "settings and state, for both");
    assert_eq!(next_state(&mut a).await, (WindowState::Standby, None));
    assert_eq!(next_state(&mut b).await, (WindowState::Live, term(2)));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_stream_is_noticed_at_once_and_the_place_given_away_after_the_hold() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let (a, mut b) = (open(&keeper, "a").await, open(&keeper, "b").await);
    next_state(&mut b).await;
    let before = Instant::now();
    drop(a);
    let roster = until(&keeper, |roster| roster.live.is_none()).await;
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(roster.awaiting.as_ref().map(|(id, _)| id.as_str()), Some("a"));
    // An agent beats; without that it would be the one evicted.
    for seq in 1..=4 {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let heartbeat = Heartbeat {
            incarnation: 1,
            seq,
            focused: false,
            debug_sessions: Vec::new(),
            folders: None,
            name: None,
            tallies: Vec::new(),
            breakpoints: Vec::new(),
            more_breakpoints: 0,
        };
        keeper.heartbeat(id("b"), heartbeat).await.unwrap();
    }
    assert_eq!(live(&keeper.roster()), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_window_that_never_opens_its_stream_is_not_waited_for() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let before = Instant::now();
    let again = || keeper.register(id("a"), registration("a", WindowKind::Headless));
    again().await.unwrap();
    // To register twice gives it no more time, and to open the stream ends the limit.
    again().await.unwrap();
    let roster = until(&keeper, |roster| roster.windows.is_empty()).await;
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert!(roster.awaiting.is_some());
    let _events = open(&keeper, "a").await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(live(&keeper.roster()), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_replaces_another_of_the_same_agent_is_the_one_that_counts() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let mut first = open(&keeper, "a").await;
    let mut second = keeper.open_events(id("a"), 1).await.unwrap();
    assert_eq!(next_state(&mut second).await, (WindowState::Live, term(1)));
    while first.next().await.is_some() {}
    drop(first);
    keeper.take(id("a")).await.unwrap();
    assert_eq!(live(&keeper.roster()), Some("a"), "the end of the replaced stream meant something");
    drop(second);
    until(&keeper, |roster| roster.live.is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_place_was_taken_by_a_newer_one_is_told_and_its_stream_ends() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let mut old = open(&keeper, "a").await;
    let newer = Register { incarnation: 2, ..registration("a", WindowKind::Headless) };
    assert_eq!(keeper.register(id("a"), newer).await.unwrap().term, term(2));
    let mut last = None;
    while let Some(notice) = old.next().await {
        last = Some(notice);
    }
    assert_eq!(last, Some(Notice::Superseded));
    drop(old);
    assert_eq!(keeper.open_events(id("a"), 1).await.unwrap_err(), Refused::StaleIncarnation.into());
    assert_eq!(keeper.open_events(id("a"), 3).await.unwrap_err(), Refused::NotRegistered.into());
    assert_eq!(live(&keeper.snapshot().await.unwrap()), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_window_that_does_not_read_its_events_loses_its_stream_and_nobody_waits_for_it() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let (mut a, b) = (open(&keeper, "a").await, open(&keeper, "b").await);
    for _ in 0..100 {
        keeper.take(id("b")).await.unwrap();
        keeper.take(id("a")).await.unwrap();
        while a.notices.len() > 1 {
            a.next().await;
        }
    }
    assert_eq!(b.notices.len(), 64);
    // It may be slow and well: it finds its stream ended, and then it has vanished.
    let mut b = b;
    while b.next().await.is_some() {}
    drop(b);
    until(&keeper, |roster| !roster.windows.contains_key(&id("b"))).await;
    assert_eq!(live(&keeper.roster()), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_silent_window_is_evicted_on_time_and_its_stream_ends() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let begin = Instant::now();
    let mut a = open(&keeper, "a").await;
    until(&keeper, |roster| roster.windows.values().any(|window| !window.responsive)).await;
    assert_eq!(begin.elapsed(), Duration::from_millis(3_000));
    until(&keeper, |roster| roster.windows.is_empty()).await;
    assert_eq!(begin.elapsed(), Duration::from_millis(6_000));
    while a.next().await.is_some() {}
    assert_eq!(live(&keeper.roster()), None);
}

#[tokio::test(start_paused = true)]
async fn what_the_next_coordinator_needs_is_published() {
    let (keeper, mut saved) = Keeper::spawn(start(), 4);
    let a = open(&keeper, "a").await;
    let now = saved.borrow_and_update().clone();
    let of_a = Preferred { window: id("a"), pid: 7, pid_start: 9, term: term(1) };
    assert_eq!((now.preferred, now.vacated, now.client_epoch), (Some(of_a.clone()), None, 4));
    // A heartbeat is nothing to write down.
    let heartbeat = Heartbeat {
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
    keeper.heartbeat(id("a"), heartbeat).await.unwrap();
    assert!(!saved.has_changed().unwrap());
    assert_eq!(keeper.set_client_epoch(5).await, Ok(()));
    assert_eq!((saved.borrow_and_update().client_epoch, keeper.roster().client_epoch), (5, 5));
    let change = SettingsChange { follow_focus: Some(true), ..SettingsChange::default() };
    keeper.change_settings(change).await.unwrap();
    assert!(saved.borrow_and_update().settings.follow_focus && keeper.roster().settings.follow_focus);
    // A window that is awaited stays written down.
    drop(a);
    until(&keeper, |roster| roster.awaiting.is_some()).await;
    assert_eq!(saved.borrow_and_update().preferred, Some(of_a));
    keeper.register(id("a"), registration("a", WindowKind::Headless)).await.unwrap();
    keeper.stop(id("a")).await.unwrap();
    let now = saved.borrow_and_update().clone();
    assert_eq!((now.preferred, now.vacated.is_some()), (None, true));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_revoked_stays_so_without_the_state_file() {
    let (keeper, saved) = Keeper::spawn(start(), 0);
    let remembered = Register { client_epoch: 3, ..registration("a", WindowKind::Headless) };
    let registered = keeper.register(id("a"), remembered).await.unwrap();
    assert_eq!(
        (registered.client_epoch, keeper.roster().client_epoch, saved.borrow().client_epoch),
        (3, 3, 3)
    );
    // One that has heard nothing changes nothing.
    let registered = keeper.register(id("b"), registration("b", WindowKind::Headless)).await.unwrap();
    assert_eq!(registered.client_epoch, 3);
}

#[tokio::test(start_paused = true)]
async fn settings_reach_every_window() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let mut a = open(&keeper, "a").await;
    let change = SettingsChange { hold_calls_ms: Some(1), ..SettingsChange::default() };
    let settings = keeper.change_settings(change).await.unwrap();
    assert_eq!(settings, Settings { hold_calls_ms: 1, ..Settings::default() });
    let expected = Notice::Settings { settings: Box::new(settings) };
    while a.next().await.expect("the stream ended") != expected {}
}

#[tokio::test(start_paused = true)]
async fn only_a_window_with_a_user_can_be_asked() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let _headless = open(&keeper, "a").await;
    keeper.register(id("b"), registration("b", WindowKind::Vscode)).await.unwrap();
    let ask = |window: &str| keeper.ask_handover(id(window), "an assistant".to_owned());
    assert_eq!(ask("a").await, Err(KeeperError::NobodyToAsk));
    assert_eq!(ask("b").await, Err(KeeperError::NobodyToAsk));
    assert_eq!(ask("c").await, Err(Refused::NotRegistered.into()));
    let mut events = keeper.open_events(id("b"), 1).await.unwrap();
    assert_eq!(ask("b").await, Ok(()));
    let expected = Notice::AskHandover { client: "an assistant".to_owned() };
    while events.next().await.expect("the stream ended") != expected {}
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_kept_alive() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let mut a = open(&keeper, "a").await;
    let beats = tokio::spawn(async move {
        for seq in 1.. {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            let heartbeat = Heartbeat {
                incarnation: 1,
                seq,
                focused: false,
                debug_sessions: Vec::new(),
                folders: None,
                name: None,
                tallies: Vec::new(),
                breakpoints: Vec::new(),
                more_breakpoints: 0,
            };
            keeper.heartbeat(id("a"), heartbeat).await.unwrap();
        }
    });
    while a.next().await.expect("the stream ended") != Notice::Tick {}
    beats.abort();
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_with_the_last_handle() {
    let (keeper, mut saved) = Keeper::spawn(start(), 0);
    let mut a = open(&keeper, "a").await;
    drop(keeper);
    while a.next().await.is_some() {}
    while saved.changed().await.is_ok() {}
}

#[tokio::test]
async fn five_hundred_windows_are_told_of_a_takeover() {
    let (keeper, _saved) = Keeper::spawn(start(), 0);
    let mut all = Vec::new();
    for n in 0..500 {
        all.push(open(&keeper, &format!("w{n}")).await);
        // Each reads what it has got: a stream holds a bounded number.
        for events in &mut all {
            while !events.notices.is_empty() {
                events.next().await;
            }
        }
    }
    keeper.take(id("w499")).await.unwrap();
    for events in &mut all {
        let (state, _) = next_state(events).await;
        assert_ne!(state, WindowState::Off);
    }
    assert_eq!(keeper.roster().windows.len(), 500);
}
