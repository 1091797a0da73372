//! What adapters lose, and how it is asked for again.

use expect_test::expect;

use super::{INITIALIZE, check, play};
use crate::DebuggerOptions;
use crate::adapters::table::Table;

/// Up to a program that runs.
const HANDSHAKE: [&str; 7] = [INITIALIZE, "event initialized", "ok 3", "ok 4", "ok 5", "ok 6", "ok 2"];

#[test]
fn a_lost_pause_is_asked_for_again_until_the_program_stops() {
    let pauses = |loses_pauses: bool, lines: &[&str]| {
        let (mut driver, _) = play(&HANDSHAKE, &[]);
        let mut adapter = driver.session.adapter.clone();
        adapter.loses_pauses = loses_pauses;
        driver.session.adapter = Box::leak(Box::new(adapter));
        lines.iter().for_each(|line| driver.line(line));
        driver.text.matches(" pause ").count()
    };
    let paused = r#"event stopped {"reason": "pause", "threadId": 1}"#;
    let lost = ["pause 1", "ok 7", "after 1999", "after 1", "ok 8", "after 2000"];
    assert_eq!(pauses(true, &lost), 3);
    assert_eq!(pauses(false, &lost), 1);
    assert_eq!(pauses(true, &["pause 1", paused, "after 3000", "after 3000"]), 1);
    assert_eq!(pauses(true, &["pause 1", paused, "continue 1", "after 3000"]), 1);
    assert_eq!(pauses(true, &["pause 1", "event terminated", "after 3000"]), 1);

    // One that would be lost, as the program has not gone on yet, waits for that, though not for ever. 7: the stack.
    let entry = r#"event stopped {"reason": "entry", "threadId": 1}"#;
    let at_entry = |lines: &[&str]| {
        let begun = [entry, r#"ok 7 {"stackFrames": []}"#, "continue 1", "pause 1"];
        pauses(true, &[&begun[..], lines].concat())
    };
    assert_eq!(at_entry(&[]), 0);
    assert_eq!(at_entry(&["ok 8"]), 1);
    assert_eq!(at_entry(&["after 2000", "ok 8"]), 1);
    assert_eq!(at_entry(&[paused, "ok 8"]), 0);
}

#[test]
fn an_end_that_the_adapter_lost_is_asked_for_after_a_silence() {
    let text_of = |loses_ends: bool, lines: &[&str]| {
        let (mut driver, _) = play(&HANDSHAKE, &[]);
        let mut adapter = driver.session.adapter.clone();
        let table = Table::load(&DebuggerOptions::default().shelf).expect("it can be read");
        let codelldb = table.find("codelldb").expect("it is known");
        adapter.end_question = codelldb.end_question.clone().filter(|_| loses_ends);
        driver.session.adapter = Box::leak(Box::new(adapter));
        lines.iter().for_each(|line| driver.line(line));
        driver.text.clone()
    };
    let asked = |text: &str| text.matches("process status").count();
    let printed = r#"event output {"category": "stdout", "output": "x exited with status = 5\n"}"#;
    let ended =
        r#"event output {"category": "console", "output": "Process 7 exited with status = 3 (0x3)\n"}"#;
    let runs = r#"event output {"category": "console", "output": "Process 7 is running.\n"}"#;
    let lost = text_of(true, &[printed, "after 999", printed, "after 999", "after 1", "ok 7", ended]);
    assert!(asked(&lost) == 1 && lost.contains("ENDED Some(3) plain"), "{lost}");
    // It runs, and is not asked again before it has printed more.
    let silent = text_of(true, &[printed, "after 1000", "ok 7", runs, "after 5000"]);
    assert!(asked(&silent) == 1 && !silent.contains("ENDED"), "{silent}");
    // What somebody else asks is told.
    assert!(!silent.contains("is running") && text_of(true, &[runs]).contains("is running"), "{silent}");
    let stopped = r#"event stopped {"reason": "pause", "threadId": 1}"#;
    assert_eq!(asked(&text_of(true, &[printed, stopped, "after 1000"])), 0);
    assert_eq!(asked(&text_of(false, &[printed, "after 1000"])), 0);
}

/// debugpy keeps what a program prints until it has answered the launch.
#[test]
fn a_program_that_ends_before_its_start_is_answered_is_heard() {
    const PRINTED: &str = r#"event output {"category": "stdout", "output": "bill: 14\n"}"#;
    const EXITED: &str = r#"event exited {"exitCode": 0}"#;
    check(
        true,
        &[INITIALIZE, EXITED, "event terminated", "after 400", "ok 2", "after 90", PRINTED, "after 10"],
        expect![[r#"
                1 initialize
            ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
                2 launch {"program":"a.py"}
            event exited {"exitCode": 0}
            event terminated
            after 400
            ok 2
            after 90
            event output {"category": "stdout", "output": "bill: 14\n"}
                Printed(Stdout, "bill: 14\n")
            after 10
                3 disconnect {"restart":false,"terminateDebuggee":true}
                ENDED Some(0) plain
        "#]],
    );
    check(
        true,
        &[INITIALIZE, "ok 2", EXITED, "event terminated", PRINTED, "after 100"],
        expect![[r#"
            1 initialize
        ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
            2 launch {"program":"a.py"}
        ok 2
        event exited {"exitCode": 0}
        event terminated
        event output {"category": "stdout", "output": "bill: 14\n"}
            Printed(Stdout, "bill: 14\n")
        after 100
            3 disconnect {"restart":false,"terminateDebuggee":true}
            ENDED Some(0) plain
    "#]],
    );
    // No answer comes.
    check(
        true,
        &[INITIALIZE, EXITED, "event terminated", "after 499", "after 1"],
        expect![[r#"
            1 initialize
        ok 1 {"supportsConfigurationDoneRequest": true, "supportsExc
            2 launch {"program":"a.py"}
        event exited {"exitCode": 0}
        event terminated
        after 499
        after 1
            3 disconnect {"restart":false,"terminateDebuggee":true}
            ENDED Some(0) plain
    "#]],
    );
}
