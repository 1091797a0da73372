//! Heavy messages: none costs a window its place, other clients their time, or the machine many times its bytes.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use baton_tests::process;
use baton_tests::raw::{self, Answer, Request};
use baton_tests::world::World;
use serde_json::{Value, json};

/// Bytes of a message that is nearly as long as one may be.
const LONG: usize = 15 << 20;
/// What a process may take for a message, as a multiple of its bytes: the message as it comes, as it is read, and
/// built; and once more what grows by doubling.
const MAX_MULTIPLE: u64 = 6;
/// What is noise: allocators keep some, and the first call of a kind loads code.
const NOISE_KIB: u64 = 40 * 1024;
/// Longest wait of a client for a trivial call meanwhile. The machine of a test run is busy, and the programs are not
/// optimised; the place is lost after six seconds.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// A message of that tool with these arguments, as JSON.
fn message(tool: &str, arguments: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#)
        .into_bytes()
}

/// Long messages by what they are made of; what is expected in the answer.
fn shapes() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    const TOO_MANY: &str = "too many values (limit 10000)";
    let many = |piece: &dyn Fn(usize) -> String| {
        let (mut text, mut n) = (String::with_capacity(LONG + 64), 0);
        while text.len() < LONG {
            text += &piece(n);
            n += 1;
        }
        text
    };
    let text = "x".repeat(LONG);
    let escaped = r"\u00e4".repeat(LONG / 6);
    let members = many(&|n| format!(r#""a{n}":{n},"#));
    let elements = many(&|_| "1,".to_owned());
    let objects = many(&|_| "{},".to_owned());
    let edits = |n: usize, len: usize| {
        let edit = json!({"old_text": "a".repeat(len), "new_text": "b".repeat(len)}).to_string();
        format!(r#"{{"file_path":"main.py","edits":[{}]}}"#, vec![edit; n].join(","))
    };
    let deep = format!("{}{}", "[".repeat(LONG / 2), "]".repeat(LONG / 2));
    let evaluate = |text: &str| format!(r#"{{"frame_id":1,"expression":"{text}"}}"#);
    vec![
        ("a million members", TOO_MANY, message("get_breakpoints", &format!(r#"{{{members}"z":0}}"#))),
        ("a million elements", TOO_MANY, message("get_breakpoints", &format!(r#"{{"a":[{elements}0]}}"#))),
        ("a million objects", TOO_MANY, message("get_breakpoints", &format!(r#"{{"a":[{objects}0]}}"#))),
        (
            "too deep",
            "nested too deeply (limit 64",
            message("get_breakpoints", &format!(r#"{{"a":{deep}}}"#)),
        ),
        (
            "a long name",
            "a name that exceeds 4096 bytes",
            message("get_breakpoints", &format!(r#"{{"{text}":1}}"#)),
        ),
        ("a long text", "no_such_frame", message("evaluate_expression", &evaluate(&text))),
        ("an escaped text", "no_such_frame", message("evaluate_expression", &evaluate(&escaped))),
        (
            "a long path",
            "more than 100000 characters",
            message("lcp_get_outline", &json!({"file_path": text}).to_string()),
        ),
        ("many edits", "at most 1000", message("lcp_apply_edit", &edits(3_000, 2_500))),
        ("long edits", "error", message("lcp_apply_edit", &edits(900, 8_000))),
        ("a long tool name", "name", message(&text, "{}")),
    ]
}

/// A window, and what it takes to call it.
struct Scene {
    world: World,
    token: String,
    agent: u32,
    coordinator: u32,
}

impl Scene {
    fn new() -> Self {
        let mut world = World::new();
        world.window("shop");
        world.await_live("shop");
        let (token, agent) = (world.token(), world.agent_pid("shop"));
        let coordinator = world.coordinator_pid();
        let scene = Self { world, token, agent, coordinator };
        // What is loaded once is loaded.
        scene.post(message("get_breakpoints", "{}"));
        scene.post(message("evaluate_expression", r#"{"frame_id":1,"expression":"1"}"#));
        scene
    }

    fn post(&self, body: Vec<u8>) -> Answer {
        post(self.world.port(), &self.token, body)
    }

    /// Another client, which calls a trivial tool again and again until it is told to stop; its longest wait.
    fn bystander(&self) -> (Arc<AtomicBool>, JoinHandle<(Duration, usize)>) {
        let (port, token) = (self.world.port(), self.token.clone());
        let is_over = Arc::new(AtomicBool::new(false));
        let until = is_over.clone();
        let calls = std::thread::spawn(move || {
            let (mut longest, mut n_calls) = (Duration::ZERO, 0);
            while !until.load(Ordering::Relaxed) {
                let since = Instant::now();
                let answer = post(port, &token, message("get_breakpoints", "{}"));
                assert!(answer.status == 200 && answer.body.contains("success"), "{answer:?}");
                longest = longest.max(since.elapsed());
                n_calls += 1;
            }
            (longest, n_calls)
        });
        (is_over, calls)
    }
}

fn post(port: u16, token: &str, body: Vec<u8>) -> Answer {
    Request::post(port, "/mcp", token, body).send(port)
}

/// Forgets the highest resident memory so far.
fn reset_peak(pid: u32) {
    const PEAK: &str = "5";
    std::fs::write(format!("/proc/{pid}/clear_refs"), PEAK).expect("a process of ours");
}

/// The highest resident memory in KiB since then.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The error, whether of the protocol or of the tool.
fn error_of(answer: &Answer) -> Value {
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("no JSON: {answer:?}"));
    if body["error"].is_object() { body["error"].clone() } else { body["result"].clone() }
}

#[test]
fn no_shape_of_a_message_costs_a_window_its_place_or_the_machine_its_memory() {
    let scene = Scene::new();
    let before = scene.world.status().expect("it runs");
    let (is_over, bystander) = scene.bystander();
    let mut table = String::new();
    for (shape, expected, body) in shapes() {
        let kib = body.len() as u64 / 1024;
        let pids = [("agent", scene.agent), ("coordinator", scene.coordinator)];
        let base = pids.map(|(_, pid)| {
            reset_peak(pid);
            process::rss_kib(pid)
        });
        let since = Instant::now();
        let answer = scene.post(body);
        let took = since.elapsed();
        let shown = error_of(&answer).to_string();
        assert!(shown.contains(expected), "{shape}: {}", shown.chars().take(400).collect::<String>());
        assert!(shown.len() < 20_000, "{shape}: an answer of {} bytes", shown.len());
        table += &format!("{shape}: {kib} KiB, {took:?}");
        for ((name, pid), base) in pids.into_iter().zip(base) {
            let grown = peak_kib(pid).saturating_sub(base);
            table += &format!(", {name} {:.1} x", grown as f64 / kib as f64);
            assert!(grown <= MAX_MULTIPLE * kib + NOISE_KIB, "{shape}: the {name} took {grown} KiB\n{table}");
        }
        table += "\n";
    }
    is_over.store(true, Ordering::Relaxed);
    let (longest, n_calls) = bystander.join().expect("its calls succeed");
    println!("{table}{n_calls} calls of another client meanwhile, the longest took {longest:?}");
    let after = scene.world.status().expect("it runs");
    assert_eq!((before.live, before.term), (after.live, after.term), "the window keeps place and term");
    assert!(n_calls > 10 && longest < MAX_WAIT, "{n_calls} calls, the longest {longest:?}\n{table}");
}

#[test]
fn many_of_the_worst_at_once_take_turns() {
    const N_CLIENTS: usize = 6;
    let scene = Scene::new();
    let before = scene.world.status().expect("it runs");
    let escaped = format!(r#"{{"frame_id":1,"expression":"{}"}}"#, r"\u00e4".repeat(LONG / 6));
    let body = message("evaluate_expression", &escaped);
    reset_peak(scene.agent);
    let base = process::rss_kib(scene.agent);
    let (is_over, bystander) = scene.bystander();
    let since = Instant::now();
    let clients: Vec<JoinHandle<Answer>> = (0..N_CLIENTS)
        .map(|_| {
            let (port, token, body) = (scene.world.port(), scene.token.clone(), body.clone());
            std::thread::spawn(move || {
                let request = Request::post(port, "/mcp", &token, body).to_bytes();
                let mut stream = raw::connect(port);
                // The last one waits for all others.
                stream.set_read_timeout(Some(Duration::from_secs(90))).expect("a socket takes a timeout");
                stream.write_all(&request).expect("it is taken");
                raw::read_answer(&mut stream)
            })
        })
        .collect();
    let answers: Vec<Answer> = clients.into_iter().map(|client| client.join().expect("an answer")).collect();
    let took = since.elapsed();
    is_over.store(true, Ordering::Relaxed);
    let (longest, n_calls) = bystander.join().expect("its calls succeed");
    let grown = peak_kib(scene.agent).saturating_sub(base);
    println!(
        "{N_CLIENTS} at once: {took:?}, the agent took {} MiB, the longest wait {longest:?}",
        grown / 1024
    );
    for answer in &answers {
        assert!(error_of(answer).to_string().contains("no_such_frame"), "{answer:?}");
    }
    // They are built one after the other; four of them wait with their bytes.
    assert!(grown < 2 * MAX_MULTIPLE * (LONG as u64 / 1024), "{} MiB", grown / 1024);
    let after = scene.world.status().expect("it runs");
    assert_eq!((before.live, before.term), (after.live, after.term), "the window keeps place and term");
    assert!(n_calls > 10 && longest < MAX_WAIT, "{n_calls} calls, the longest {longest:?}");
}
