//! Child processes, terminals, standard streams.

use baton_agent_debug::types::{Resume, Waited};
use expect_test::expect;
use serde_json::json;

use super::story::{Story, launch, wait};

#[tokio::test]
async fn a_child_process_stops_as_a_session_of_its_own() {
    let mut story = Story::begin();
    story.set("child.py", 5).await;
    story.start(launch("parent.py", json!({}))).await;
    let sessions = story.debugger.sessions();
    assert_eq!(sessions.len(), 2);
    assert_eq!(sessions[1].parent.as_ref(), Some(&sessions[0].id));
    story.go(Resume::StepOver).await;
    story.evaluate("square").await;
    let (child, thread_id) = story.here();
    // It ends with a code that is not 0, which is an exception first.
    story.go_thread(Some(&child), thread_id, Resume::Continue).await;
    story.go_thread(Some(&child), thread_id, Resume::Continue).await;
    story.go_thread(Some(&sessions[0].id), 1, Resume::Continue).await;
    story
        .end(expect![[r#"
            breakpoint 1 child.py:5 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in <module> child.py:5
              Locals: number=7, square=49
            > StepOver
            stopped session-1 by step in <module> child.py:6
              Locals: number=7, square=49
            square = 49
            > Continue
            stopped session-1 by exception in <module> child.py:6
              text: SystemExit: 3
              Locals: number=7, square=49
            > Continue
            completed session-1 without an exit code (the child process (session session-1) ended; parent.py (session session-2) is still running: continue waits for it)
            > Continue
            completed session-2 with 0
        "#]])
        .await;
}

#[tokio::test]
async fn standard_input_is_at_its_end() {
    let mut story = Story::begin();
    story.start(launch("asks.py", json!({}))).await;
    story
        .end(expect![[r#"
            completed session-1 with 0
        "#]])
        .await;
}

#[tokio::test]
async fn a_program_runs_in_a_terminal_when_it_is_to() {
    let mut story = Story::begin();
    story.set("demo.py", 17).await;
    story.start(launch("demo.py", json!({"console": "integratedTerminal"}))).await;
    story.evaluate("sys.stdout.isatty()").await;
    story.go(Resume::Continue).await;
    story
        .end(expect![[r#"
            breakpoint 1 demo.py:17 not verified (not verified yet: no debug session has loaded it)
            stopped session-1 by breakpoint [1] in main demo.py:17 < <module> demo.py:22
              Locals: number=6, numbers=[1, 2, 3, 4, 5, 6], total=210
            sys.stdout.isatty() = True
            > Continue
            completed session-1 with 0
        "#]])
        .await;
}

#[tokio::test]
async fn a_flood_of_output_is_cut_to_its_end() {
    let story = Story::begin();
    let waited = story.debugger.start(launch("flood.py", json!({})), wait()).await.unwrap();
    let Waited::Completed(completed) = waited else { panic!("{waited:?}") };
    assert!(completed.output.text.ends_with("that nobody reads\ndone\n"), "{:?}", completed.output);
    assert!(completed.output.text.len() <= 4096);
    assert!(completed.output.omitted_bytes > 4_000_000, "{}", completed.output.omitted_bytes);
    story.end(expect![[""]]).await;
}
