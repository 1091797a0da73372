//! What a client gives as an expression is one, whatever the debugger would take it for.

use serde_json::{Value, json};

use crate::programs::{Program, shelf};
use crate::standalone::Standalone;

/// Names of variables are commands of some debuggers: evaluating one tells it, and moves nothing.
async fn an_expression_is_no_command(adapter: &str) {
    const TEXT: &str = "#include <stdio.h>\nint main(void) {\n  int n = 4, c = 5, k = 6, s = 7;\n  int *at = &n;\n  \
        puts(\"one\");\n  puts(\"two\");\n  return n + c + k + s + *at;\n}\n";
    let program = Program::compiled(TEXT, "puts(\"one\");", &[]);
    let folder = program.source.parent().unwrap();
    let agent = Standalone::start(folder, &[("BATON_ADAPTERS", shelf())]);
    let debug =
        async |arguments: Value| agent.call("debug", arguments).await["_meta"]["baton/details"].clone();
    debug(json!({"action": "set_breakpoint", "file": "program.c", "line": program.line})).await;
    let launched =
        debug(json!({"action": "launch", "program": "program", "adapter": adapter, "timeout": 60})).await;
    assert_eq!(launched["snapshot"]["line"], program.line, "{launched}");
    let session = Some(launched["snapshot"]["id"].as_str().unwrap().to_owned());
    let frame_id = launched["snapshot"]["frameId"].clone();
    let expressions = [
        ("n", "4"),
        ("c", "5"),
        ("k", "6"),
        ("s", "7"),
        ("n+s", "11"),
        ("*at", "4"),
        ("n = 9", "9"),
        ("*at", "9"),
    ];
    for (expression, value) in expressions {
        let told = debug(json!({"action": "evaluate", "expression": expression})).await;
        assert_eq!(told["evaluation"]["result"], value, "{expression}: {told}");
    }
    for (expression, value) in [("n", "9"), ("c", "5"), ("k", "6"), ("s", "7")] {
        for (tool, frame) in [("evaluate_expression", "frame_id"), ("debug_evaluate", "frameId")] {
            let arguments = json!({"expression": expression, frame: frame_id});
            let told = agent.call(tool, arguments).await["structuredContent"].clone();
            assert_eq!(told["result"], value, "{tool} {expression}: {told}");
        }
    }
    let stands = debug(json!({"action": "sessions"})).await["sessions"][0].clone();
    assert_eq!((&stands["status"], &stands["line"]), (&json!("stopped"), &json!(program.line)), "{stands}");
    let wrong = debug(json!({"action": "evaluate", "expression": "nobody_made_this"})).await;
    assert!(wrong["message"].as_str().unwrap().contains("nobody_made_this"), "{wrong}");
    debug(json!({"action": "terminate", "session": session})).await;
}

/// A test for each adapter that has a command line of its own.
macro_rules! expressions {
    ($($module:ident: $adapter:literal;)*) => {
        $(mod $module {
            #[tokio::test]
            async fn an_expression_is_no_command() {
                super::an_expression_is_no_command($adapter).await;
            }
        })*
    };
}

expressions! {
    gdb: "gdb";
    lldb_dap: "lldb-dap";
    codelldb: "codelldb";
}
