//! Breakpoints of all kinds, before and in a session.

use baton_agent_debug::types::{RemoveBreakpoint, Resume, SetBreakpoint};
use expect_test::expect;
use serde_json::json;

use super::fixtures::fixture;
use super::story::{Story, launch};

fn at(line: u32) -> SetBreakpoint {
    SetBreakpoint { path: fixture("demo.py"), line, ..SetBreakpoint::default() }
}

#[tokio::test]
async fn places_are_checked_and_moves_are_told() {
    let mut story = Story::begin();
    story.set("demo.py", 23).await;
    story.set("demo.py", 0).await;
    story.set("no_such_file.py", 1).await;
    story.set("demo.py", 14).await;
    story.set("demo.py", 15).await;
    story.start(launch("demo.py", json!({}))).await;
    story.list().await;
    story
        .end(expect![[r#"
        error line_outside_file: demo.py has 22 lines; there is no line 23
        error line_outside_file: demo.py has 22 lines; there is no line 0
        error file_not_found: the file no_such_file.py does not exist
        breakpoint 1 demo.py:14 not verified (not verified yet: no debug session has loaded it)
        breakpoint 2 demo.py:15 not verified (not verified yet: no debug session has loaded it)
        stopped session-1 by breakpoint [1, 2] in main demo.py:13 < <module> demo.py:22
          Locals: numbers=[1, 2, 3, 4, 5, 6], total=0
        breakpoint 1 demo.py:14 verified (line 14 has no code; it stops on line 13)
        breakpoint 2 demo.py:15 verified (line 15 has no code; it stops on line 13)
    "#]])
        .await;
}

#[tokio::test]
async fn conditions() {
    let mut story = Story::begin();
    story.wish(SetBreakpoint { condition: Some("value ==".into()), ..at(6) }).await;
    story.wish(SetBreakpoint { condition: Some("value == 4".into()), ..at(6) }).await;
    story.start(launch("demo.py", json!({}))).await;
    story.go(Resume::Continue).await;
    story
        .end(expect![[r#"
            error bad_condition: the condition `value ==` does not parse: invalid syntax
            breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=4
            > Continue
            completed session-1 with 0
        "#]])
        .await;
}

#[tokio::test]
async fn a_condition_that_fails_when_it_is_hit_says_so() {
    let mut story = Story::begin();
    story.wish(SetBreakpoint { condition: Some("no_such_name > 1".into()), ..at(6) }).await;
    story.start(launch("demo.py", json!({}))).await;
    story
        .end(expect![[r#"
            breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=1
        "#]])
        .await;
}

#[tokio::test]
async fn hit_conditions() {
    let mut story = Story::begin();
    story.wish(SetBreakpoint { hit_condition: Some("sometimes".into()), ..at(6) }).await;
    for hit_condition in ["> 4", "== 3", "% 2 == 0"] {
        story.line(hit_condition);
        story.wish(SetBreakpoint { hit_condition: Some(hit_condition.into()), ..at(6) }).await;
        story.start(launch("demo.py", json!({}))).await;
        story.go(Resume::Continue).await;
        story.debugger.stop_all().await;
    }
    story
        .end(expect![[r#"
            error bad_hit_condition: the hit condition `sometimes` is not valid
            > 4
            breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=5
            > Continue
            stopped session-1 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=6
            == 3
            breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
            stopped session-2 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=3
            > Continue
            completed session-2 with 0
            % 2 == 0
            breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
            stopped session-3 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=2
            > Continue
            stopped session-3 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=4
        "#]])
        .await;
}

#[tokio::test]
async fn a_log_point_logs_and_does_not_stop() {
    let mut story = Story::begin();
    story.wish(SetBreakpoint { log_message: Some("value is {value}".into()), ..at(6) }).await;
    story.set("demo.py", 9).await;
    story.start(launch("demo.py", json!({}))).await;
    story
        .end(expect![[r#"
            breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
            breakpoint 2 demo.py:9 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [2] in scale demo.py:7 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, result=10, value=1
        "#]])
        .await;
}

#[tokio::test]
async fn breakpoints_come_and_go_in_a_running_session() {
    let mut story = Story::begin();
    story.set("demo.py", 6).await;
    story.start(launch("demo.py", json!({}))).await;
    story.set("demo.py", 7).await;
    story.go(Resume::Continue).await;
    for which in [
        RemoveBreakpoint::Id(2),
        RemoveBreakpoint::Id(2),
        RemoveBreakpoint::Location { path: fixture("demo.py"), line: 6, owner: None },
        RemoveBreakpoint::Location { path: fixture("demo.py"), line: 6, owner: None },
    ] {
        match story.debugger.remove_breakpoint(which).await {
            Ok(removed) => removed.iter().for_each(|breakpoint| story.breakpoint(breakpoint)),
            Err(error) => story.error(&error),
        }
    }
    story.set("demo.py", 18).await;
    story.go(Resume::Continue).await;
    assert_eq!(story.debugger.remove_breakpoint(RemoveBreakpoint::All).await.unwrap().len(), 1);
    assert_eq!(story.debugger.remove_breakpoint(RemoveBreakpoint::All).await.unwrap().len(), 0);
    story.go(Resume::Continue).await;
    story
        .end(expect![[r#"
            breakpoint 1 demo.py:6 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in scale demo.py:6 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, value=1
            breakpoint 2 demo.py:7 verified
            > Continue
            stopped session-1 by breakpoint [2] in scale demo.py:7 < main demo.py:16 < <module> demo.py:22
              Locals: factor=10, result=10, value=1
            breakpoint 2 demo.py:7 verified
            error no_such_breakpoint: there is no breakpoint with id 2
            breakpoint 1 demo.py:6 verified
            error no_such_breakpoint: there is no breakpoint on line 6 of demo.py
            breakpoint 3 demo.py:18 verified
            > Continue
            stopped session-1 by breakpoint [3] in main demo.py:18 < <module> demo.py:22
              Locals: number=6, numbers=[1, 2, 3, 4, 5, 6], total=210
            > Continue
            completed session-1 with 0
        "#]])
        .await;
}
