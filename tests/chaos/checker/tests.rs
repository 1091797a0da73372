//! Histories made by hand, each with one planted violation: the checker can fail.

use super::*;
use crate::history::Span;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Answered by `one` under term 1.1, from `sent` to 10 ms later.
fn call(id: u64, sent: u64) -> Call {
    Call {
        id,
        client: 0,
        method: "call",
        sent: ms(sent),
        answered: ms(sent + 10),
        told: Told::Done,
        window: Some("one".to_owned()),
        term: Some(Term { generation: 1, seq: 1 }),
        words: String::new(),
        is_pinned: false,
    }
}

fn told(id: u64, sent: u64, told: Told) -> Call {
    Call { told, window: None, term: None, ..call(id, sent) }
}

fn under(id: u64, sent: u64, window: &str, generation: u64, seq: u64) -> Call {
    Call { window: Some(window.to_owned()), term: Some(Term { generation, seq }), ..call(id, sent) }
}

fn record(calls: Vec<Call>) -> Record {
    Record { calls, ..Record::default() }
}

/// Marks: each done call where it says, and these.
fn effects(record: &Record, more: &[(u64, &str)]) -> Effects {
    let mut effects = Effects::new();
    for call in record.calls.iter().filter(|call| call.told == Told::Done && call.method == "call") {
        effects.entry(call.id).or_default().extend(call.window.clone());
    }
    for (id, window) in more {
        effects.entry(*id).or_default().push((*window).to_owned());
    }
    effects
}

/// The rules that are broken.
fn broken(record: &Record, more: &[(u64, &str)]) -> Vec<&'static str> {
    check(record, &effects(record, more)).into_iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_good_history_has_no_violation() {
    let calls = vec![
        call(1, 0),
        under(2, 100, "two", 1, 2),
        told(3, 200, Told::Unknown),
        told(4, 300, Told::NotRun),
        told(5, 400, Told::Again),
        told(6, 500, Told::Refused),
        told(7, 600, Told::Torn),
        under(8, 700, "one", 2, 1),
    ];
    let mut record = record(calls);
    record.deaths.push(Span { from: ms(590), to: ms(620) });
    assert_eq!(broken(&record, &[(3, "two"), (7, "two")]), [""; 0]);
}

#[test]
fn a_second_execution_is_found() {
    let record = record(vec![call(1, 0), told(2, 100, Told::Unknown)]);
    assert_eq!(broken(&record, &[(1, "one")]), ["at most one execution"]);
    assert_eq!(broken(&record, &[(2, "one"), (2, "two")]), ["at most one execution"]);
}

#[test]
fn a_call_that_is_told_as_done_and_did_not_run_is_found() {
    let record = record(vec![call(1, 0)]);
    let found = check(&record, &Effects::new());
    assert_eq!(found.iter().map(|one| one.rule).collect::<Vec<_>>(), ["what is told as done ran"]);
    let elsewhere = Effects::from([(1, vec!["two".to_owned()])]);
    let found = check(&record, &elsewhere);
    assert_eq!(found[0].rule, "the window that answers is the one that ran it");
}

#[test]
fn a_call_that_is_told_not_to_have_run_and_ran_is_found() {
    for told_as in [Told::NotRun, Told::Refused, Told::Failed] {
        let record = record(vec![told(1, 0, told_as)]);
        assert_eq!(broken(&record, &[(1, "one")]), ["none runs that is told not to have run"]);
    }
}

#[test]
fn an_invitation_to_repeat_what_ran_is_found() {
    let record = record(vec![told(1, 0, Told::Again)]);
    assert_eq!(broken(&record, &[(1, "one")]), ["none is to be repeated that ran"]);
}

#[test]
fn two_windows_of_one_term_are_found() {
    let record = record(vec![under(1, 0, "one", 2, 1), under(2, 5, "two", 2, 1)]);
    assert_eq!(broken(&record, &[]), ["one window per term"]);
}

#[test]
fn a_term_that_goes_back_is_found_for_one_client_and_for_two() {
    let mut record = record(vec![under(1, 0, "one", 2, 3), under(2, 100, "two", 2, 1)]);
    assert_eq!(broken(&record, &[]), ["terms do not go back"]);
    record.calls[1].client = 1;
    assert_eq!(broken(&record, &[]), ["terms do not go back"]);
    // Side by side nobody can tell which was first; a pinned client has no live window.
    record.calls[1].sent = ms(5);
    assert_eq!(broken(&record, &[]), [""; 0]);
    record.calls[1] = Call { is_pinned: true, ..under(2, 100, "two", 2, 1) };
    assert_eq!(broken(&record, &[]), [""; 0]);
}

#[test]
fn a_late_answer_and_none_are_found_and_a_slow_machine_is_not() {
    let mut late = call(1, 0);
    late.answered = CALL_BOUND + ms(1);
    let mut record = record(vec![late, told(2, 0, Told::Nothing)]);
    assert_eq!(broken(&record, &[]), ["every call is answered in its bound"; 2]);
    record.calls.pop();
    record.lateness.push((ms(9_000), ms(400)));
    assert_eq!(broken(&record, &[]), [""; 0]);
    record.lateness[0].0 = ms(90_000);
    assert_eq!(broken(&record, &[]), ["every call is answered in its bound"]);
}

#[test]
fn a_lost_session_is_found_unless_it_was_taken_away() {
    let opened = Call { method: "initialize", ..told(1, 0, Told::Done) };
    let mut record = record(vec![opened, told(2, 100, Told::SessionLost), told(3, 200, Told::Unauthorized)]);
    assert_eq!(broken(&record, &[]), ["the same session for ever"; 2]);
    record.credentials.push(ms(50));
    assert_eq!(broken(&record, &[]), [""; 0]);
    // A new session, and nothing happened since.
    record.calls.push(Call { method: "initialize", ..told(4, 300, Told::Done) });
    record.calls.push(told(5, 400, Told::SessionLost));
    assert_eq!(broken(&record, &[]), ["the same session for ever"]);
}

#[test]
fn a_torn_connection_is_found_unless_the_coordinator_was_killed() {
    let mut record = record(vec![told(1, 1_000, Told::Torn)]);
    assert_eq!(broken(&record, &[]), ["no connection is torn"]);
    record.deaths.push(Span { from: ms(900), to: ms(999) });
    assert_eq!(broken(&record, &[]), ["no connection is torn"]);
    record.deaths.push(Span { from: ms(1_005), to: ms(1_006) });
    assert_eq!(broken(&record, &[]), [""; 0]);
}

#[test]
fn a_stranger_on_the_port_is_found() {
    let mut record = record(vec![]);
    record.strangers.push((ms(5), true));
    assert_eq!(broken(&record, &[]), ["the port stays ours"]);
}

#[test]
fn an_odd_answer_and_a_mark_of_nobody_are_found() {
    let record = record(vec![told(1, 0, Told::Odd)]);
    assert_eq!(broken(&record, &[(9, "one")]), ["every mark has its call", "every answer is understood"]);
}
