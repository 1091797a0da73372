//! What is in the logs: nothing that a client sent, at whatever level, and no line that it forged (T20).

use baton_proto::discovery::Role;
use baton_tests::raw::Request;
use baton_tests::world::World;
use serde_json::json;

use super::secret;

/// Stands in the body of every call.
const CANARY: &str = "canary-6b1f";
/// What a forged line would begin with.
const FORGED: &str = "2026-01-01T00:00:00Z ERROR forged";

#[test]
fn t20_logs_hold_no_bodies_no_tokens_and_no_forged_lines() {
    for level in ["info", "debug", "trace"] {
        let mut world = World::new().with_env("BATON_LOG", level);
        world.window("shop");
        world.await_live("shop");
        let token = world.token();
        let line = format!("x\n{FORGED}\r\n{FORGED}");
        let calls = [
            json!({ "jsonrpc": "2.0", "id": line, "method": "tools/call", "params": {
                "name": "set_breakpoint",
                "arguments": { "file_path": format!("{CANARY}-{line}.py"), "line_number": 1 } } }),
            json!({ "jsonrpc": "2.0", "id": line, "method": "tools/call", "params": {
                "name": line, "arguments": { "x": CANARY } } }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": line, "params": { "x": CANARY } }),
            json!({ "jsonrpc": "2.0", "id": line, "method": "initialize", "params": {
                "protocolVersion": line, "capabilities": {}, "clientInfo": { "name": line, "version": CANARY } } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": line } }),
        ];
        for call in &calls {
            let request = Request::post(world.port(), "/mcp", &token, call.to_string());
            let request = request.with("X-Canary", CANARY);
            assert_ne!(request.send(world.port()).status, 0, "{call}");
        }
        let member = secret(&world).token(Role::Member);
        let tokens = [token.as_str(), member.expose()];
        let mut n_lines = 0;
        for entry in std::fs::read_dir(world.home().join("logs")).expect("there are logs").flatten() {
            let text = std::fs::read_to_string(entry.path()).expect("a log is text");
            for line in text.lines() {
                n_lines += 1;
                assert!(!line.starts_with(FORGED), "{level}: a forged line in {:?}", entry.path());
                // The audit names the files that a call is about, and nothing else of its body.
                let canary = Some(CANARY).filter(|_| !line.contains(" baton_audit: "));
                let held = canary.iter().chain(&tokens).find(|held| line.contains(**held));
                assert!(held.is_none(), "{level}, {:?}: {line}", entry.path());
            }
        }
        assert!(n_lines > 3, "{level}: something is logged");
    }
}
