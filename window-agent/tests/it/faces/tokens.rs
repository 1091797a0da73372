//! What a model has to read: counted with a real tokenizer (cl100k).

use serde_json::{Value, json};

use super::desk::Desk;

/// The canonical task: a breakpoint in a function, start, locals at the stop, three steps with locals, one
/// evaluation, run to the end.
const MAX_CALLS: usize = 8;
const MAX_TOKENS: usize = 860;

struct Meter {
    n_calls: usize,
    n_tokens: usize,
}

impl Meter {
    fn new() -> Self {
        Self { n_calls: 0, n_tokens: 0 }
    }

    async fn call(&mut self, desk: &Desk, tool: &str, arguments: Value) -> (String, Value) {
        let said = desk.call(tool, arguments).await;
        self.n_calls += 1;
        self.n_tokens += said
            .texts
            .iter()
            .map(|text| tiktoken_rs::cl100k_base_singleton().encode_ordinary(text).len())
            .sum::<usize>();
        (said.text, said.value)
    }

    #[expect(clippy::print_stdout, reason = "the figures of docs/tools.md")]
    fn check(&self, toolset: &str) {
        println!("{toolset}: {} calls, {} tokens", self.n_calls, self.n_tokens);
        assert!(self.n_calls <= MAX_CALLS, "{toolset}: {} calls", self.n_calls);
        assert!(self.n_tokens <= MAX_TOKENS, "{toolset}: {} tokens", self.n_tokens);
    }
}

/// With ids as long as they are in a window.
async fn desk() -> Desk {
    Desk::open_with(|options| options.has_own_ids = true).await
}

#[tokio::test]
async fn the_canonical_task_with_the_toolset_debugger() {
    let (desk, mut meter) = (desk().await, Meter::new());
    meter.call(&desk, "set_breakpoint", json!({"file_path": "main.py", "line_number": 2})).await;
    let (_, stop) = meter.call(&desk, "start_debugging", json!({"configuration_name": "bill"})).await;
    let thread = &stop["stop_event_data"]["thread_id"];
    let (_, stop) = meter
        .call(&desk, "step_execution", json!({"thread_id": thread, "step_type": "over", "count": 3}))
        .await;
    assert_eq!(stop["steps"].as_array().unwrap().len(), 2, "{stop:#}");
    assert_eq!(stop["steps"][0], json!({"line": 3, "changed": {"total": "6"}}));
    let frame = &stop["stop_event_data"]["call_stack"][0]["frame_id"];
    let evaluate = json!({"expression": "bill", "frame_id": frame});
    meter.call(&desk, "evaluate_expression", evaluate).await;
    meter.call(&desk, "remove_breakpoint", json!({"clear_all": true})).await;
    let (_, end) = meter.call(&desk, "continue_debugging", json!({"thread_id": thread})).await;
    assert_eq!(end["status"], "completed");
    meter.check("debugger");
}

#[tokio::test]
async fn the_canonical_task_with_the_default_toolset() {
    let (desk, mut meter) = (desk().await, Meter::new());
    let set = json!({"action": "set_breakpoint", "file": "main.py", "line": 2});
    meter.call(&desk, "debug", set).await;
    let (told, _) = meter.call(&desk, "debug", json!({"action": "launch", "configuration": "bill"})).await;
    assert!(told.contains("item = 'apple'"), "{told}");
    let (told, _) = meter.call(&desk, "debug", json!({"action": "step_over", "count": 3})).await;
    assert!(told.starts_with("line 3: total = 6\n"), "{told}");
    meter.call(&desk, "debug", json!({"action": "evaluate", "expression": "bill"})).await;
    let remove = json!({"action": "remove_breakpoint", "file": "main.py", "line": 2});
    meter.call(&desk, "debug", remove).await;
    meter.call(&desk, "debug", json!({"action": "continue"})).await;
    meter.check("debug");
}

#[tokio::test]
async fn the_canonical_task_with_the_toolset_lcp() {
    let (desk, mut meter) = (desk().await, Meter::new());
    meter.call(&desk, "lcp_add_breakpoint", json!({"file": "main.py", "line": 10})).await;
    let (_, launched) = meter.call(&desk, "lcp_debug_launch", json!({"program": "main.py"})).await;
    let id = &launched["data"]["session_id"];
    let step = |action: &str| json!({"session_id": id, "action": action});
    for action in ["next", "next", "next"] {
        meter.call(&desk, "lcp_debug_step", step(action)).await;
    }
    let evaluate = json!({"session_id": id, "expression": "bill"});
    meter.call(&desk, "lcp_debug_evaluate", evaluate).await;
    meter.call(&desk, "lcp_debug_step", step("continue")).await;
    let (_, end) = meter.call(&desk, "lcp_debug_step", step("continue")).await;
    assert_eq!(end["data"]["status"], "terminated", "{end:#}");
    meter.check("lcp");
}
