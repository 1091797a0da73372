//! `/metrics`, read by a real Prometheus, and checked by its own tool.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::Duration;

use baton_proto::percent;
use baton_tests::client::{Client, ClientKind};
use baton_tests::place;
use baton_tests::process::{await_some, kill9, rss_kib};
use baton_tests::raw::{Answer, Request};
use baton_tests::world::World;
use serde_json::{Value, json};

/// Longest that Prometheus takes to start and to read once.
const PATIENCE: Duration = Duration::from_secs(30);

/// A Prometheus that reads the figures of one coordinator each second.
struct Prometheus {
    process: Child,
    port: u16,
}

impl Prometheus {
    fn start(world: &World) -> Self {
        let folder = world.scratch().join("prometheus");
        std::fs::create_dir(&folder).expect("a temporary folder");
        let token = folder.join("token");
        std::fs::write(&token, world.baton_ok(&["token", "--metrics"])).expect("a temporary folder");
        let config = format!(
            "scrape_configs:\n\
             - job_name: baton\n  \
               scrape_interval: 1s\n  \
               authorization:\n    \
                 credentials_file: {}\n  \
               static_configs:\n  \
               - targets: [\"127.0.0.1:{}\"]\n",
            token.display(),
            world.port()
        );
        std::fs::write(folder.join("prometheus.yml"), config).expect("a temporary folder");
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let log = std::fs::File::create(folder.join("log")).expect("a temporary folder");
        let process = world
            .command(place::prometheus().0)
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("Prometheus starts");
        Self { process, port }
    }

    /// All series that a query gives; `None` while Prometheus starts.
    fn series(&self, query: &str) -> Option<Vec<Value>> {
        std::net::TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let line = format!("GET /api/v1/query?query={}", percent::encode(query));
        let answer = Request::bare(self.port, &line, "none").send(self.port);
        let told: Value = serde_json::from_str(&answer.body).ok()?;
        assert_eq!(told["status"], "success", "{query}: {told}");
        told["data"]["result"].as_array().cloned()
    }

    /// What a query gives: the one value of the one series; `None` while there is none.
    fn value(&self, query: &str) -> Option<f64> {
        let series = self.series(query)?;
        assert!(series.len() <= 1, "one series for {query}: {series:?}");
        series.first()?["value"][1].as_str()?.parse().ok()
    }

    /// Waits until a query gives this.
    fn await_value(&self, query: &str, wanted: f64) {
        let mut last = None;
        let is_there = await_some(PATIENCE, || {
            last = self.value(query);
            last.is_some_and(|value| (value - wanted).abs() < 0.5).then_some(())
        });
        assert!(is_there.is_some(), "{query} is {last:?}, not {wanted}");
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn figures(world: &World) -> Answer {
    let token = world.baton_ok(&["token", "--metrics"]);
    Request::bare(world.port(), "GET /metrics", &token).send(world.port())
}

/// The calls of one tool that have ended so.
fn calls(tool: &str, error: &str) -> String {
    let labels = format!("gen_ai_tool_name=\"{tool}\",error_type=\"{error}\"");
    format!("mcp_server_operation_duration_seconds_count{{{labels}}}")
}

/// Each expression of the dashboard is one that Prometheus takes and has figures for.
fn check_dashboard(prometheus: &Prometheus) {
    let page: Value = serde_json::from_str(include_str!("../../docs/grafana.json")).expect("it is JSON");
    let panels = page["panels"].as_array().expect("a dashboard has panels").iter();
    let targets: Vec<&Value> = panels.flat_map(|panel| panel["targets"].as_array()).flatten().collect();
    assert!(targets.len() >= 10, "{page}");
    for target in targets {
        let query = target["expr"].as_str().expect("a target has an expression");
        // A rate needs a second reading.
        let is_there = || prometheus.series(query).filter(|series| !series.is_empty()).map(drop);
        await_some(PATIENCE, is_there).unwrap_or_else(|| panic!("no figures for {query}"));
    }
}

#[test]
fn a_prometheus_reads_what_clients_did_and_promtool_has_nothing_to_say() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let (port, token) = (world.port(), world.token());
    let call = |tool: &str| {
        let answer = Request::call(port, &token, tool).send(port);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };
    for _ in 0..3 {
        assert!(call("get_breakpoints").contains(r#""isError":false"#));
    }
    assert!(call("continue_debugging").contains(r#""isError":true"#), "nothing is debugged");
    assert!(call("list_windows").contains(r#""isError":false"#));
    assert!(call("no_such_tool").contains("unknown_tool"), "no window has it");
    world.window("weather");
    world.baton_ok(&["take", "weather"]);

    let prometheus = Prometheus::start(&world);
    prometheus.await_value(&calls("get_breakpoints", ""), 3.0);
    prometheus.await_value(&calls("continue_debugging", "tool_error"), 1.0);
    prometheus.await_value(&calls("list_windows", ""), 1.0);
    prometheus.await_value(&calls("other", "tool_error"), 1.0);
    prometheus.await_value("sum(mcp_server_operation_duration_seconds_count)", 6.0);
    prometheus.await_value(r#"baton_windows{kind="headless",state="live"}"#, 1.0);
    prometheus.await_value("sum(baton_windows)", 2.0);
    prometheus.await_value(r#"baton_terms_total{rule="R1"}"#, 1.0);
    prometheus.await_value(r#"baton_terms_total{rule="R4"}"#, 1.0);
    prometheus.await_value("baton_calls_running + baton_calls_held", 0.0);
    let memory = prometheus.value("process_resident_memory_bytes").expect("it was read") / 1024.0;
    let of_kernel = f64::from(u32::try_from(rss_kib(world.coordinator_pid())).expect("less than 4 TiB"));
    assert!((memory / of_kernel - 1.0).abs() < 0.2, "{memory} KiB, and {of_kernel} by the kernel");

    let answer = figures(&world);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; version=0.0.4")));
    let mut promtool = world
        .command(place::prometheus().1)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut input = promtool.stdin.take().expect("it is piped");
    input.write_all(answer.body.as_bytes()).expect("promtool reads");
    drop(input);
    let checked = promtool.wait_with_output().expect("promtool ends");
    let said = String::from_utf8_lossy(&checked.stdout) + String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && said.is_empty(), "{said}\n{}", answer.body);
}

/// The process of this world whose command line has these words.
fn pid_of(world: &World, words: &str) -> Option<u32> {
    let home = format!("BATON_HOME={}", world.home().display());
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter().find(|pid| {
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let has = |bytes: &[u8], text: &str| String::from_utf8_lossy(bytes).replace('\0', " ").contains(text);
        has(&read("environ"), &home) && has(&read("cmdline"), words)
    })
}

#[test]
fn what_windows_run_is_counted_and_so_is_what_died() {
    let servers = place::tool("servers");
    let mut world = World::new().with_env("BATON_SERVERS", servers.to_str().expect("a path in UTF-8"));
    world.window("shop");
    world.await_live("shop");
    let mut client = Client::connect(&world, ClientKind::Python1, &world.url());
    let await_figure = |figure: &str| {
        let is_there = || figures(&world).body.lines().any(|line| line == figure).then_some(());
        let found = await_some(PATIENCE, is_there);
        assert!(found.is_some(), "no {figure} in {}", figures(&world).body);
    };
    client
        .try_call("debug", json!({"action": "set_breakpoint", "file": "main.py", "line": 1}))
        .expect("an answer");
    client.try_call("debug", json!({"action": "launch", "program": "main.py"})).expect("an answer");
    await_figure("baton_debug_adapters_running{debug_adapter=\"debugpy\"} 1");
    await_figure("baton_debug_adapters_started_total{debug_adapter=\"debugpy\"} 1");
    await_figure("baton_debug_adapters_died_total{debug_adapter=\"debugpy\"} 0");
    kill9(pid_of(&world, "debugpy").expect("it runs"));
    await_figure("baton_debug_adapters_died_total{debug_adapter=\"debugpy\"} 1");
    await_figure("baton_debug_adapters_running{debug_adapter=\"debugpy\"} 0");

    let outline = json!({"file_path": "main.py", "timeout": 60});
    client.try_call("lcp_get_outline", outline.clone()).expect("an answer");
    let server = |what: &str, number: u32| {
        await_figure(&format!("baton_language_servers_{what}{{language_server=\"ty\"}} {number}"));
    };
    server("running", 1);
    kill9(pid_of(&world, "/ty").expect("it runs"));
    server("died_total", 1);
    client.try_call("lcp_get_outline", outline).expect("an answer");
    server("started_total", 2);
    check_dashboard(&Prometheus::start(&world));
    // A new coordinator begins with none of that, and what runs goes on.
    kill9(world.coordinator_pid());
    world.await_live("shop");
    server("running", 1);
    server("started_total", 0);
    client.close();
}
