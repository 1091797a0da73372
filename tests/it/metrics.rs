//! `/metrics`, read by a real Prometheus, and checked by its own tool; what a collector is sent, read by OpenTelemetry's
//! own types.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use baton_proto::percent;
use baton_tests::client::{Client, ClientKind};
use baton_tests::place;
use baton_tests::process::{await_some, is_alive, kill9, rss_kib};
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

#[test]
fn a_collector_that_hangs_keeps_no_coordinator_from_its_end() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let hung = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = hung.local_addr().expect("it is bound").port();
    world.baton_ok(&["settings", "otlp_endpoint", &format!("http://127.0.0.1:{port}")]);
    let request = || {
        let (mut stream, _) = hung.accept().expect("figures come");
        let mut line = [0; 20];
        stream.read_exact(&mut line).expect("a first line");
        assert_eq!(&line, b"POST /v1/metrics HTT");
        stream
    };
    let first = request();
    let pid = world.coordinator_pid();
    let down = world.baton_ok(&["down"]);
    assert!(!is_alive(pid), "{down}");
    // It was tried, and neither request was ever answered.
    drop((first, request()));
}

/// Takes what a collector is sent, and answers with a status.
struct Collector {
    port: u16,
    /// First lines and bodies.
    requests: Receiver<(String, Vec<u8>)>,
    status: Arc<AtomicU16>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let ((taken, requests), status) = (channel(), Arc::new(AtomicU16::new(200)));
        let answer = status.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.expect("a connection"));
                let mut head = Vec::new();
                while head.last().is_none_or(|line: &String| line != "\r\n") {
                    let mut line = String::new();
                    assert!(stream.read_line(&mut line).expect("a line") > 0, "the head is cut: {head:?}");
                    head.push(line);
                }
                let text = head.concat().to_lowercase();
                assert!(text.contains("content-type: application/x-protobuf\r\n"), "{text}");
                assert!(!text.contains("authorization"), "{text}");
                let length = text.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
                let mut body = vec![0; length.expect("a length").parse().expect("a number")];
                stream.read_exact(&mut body).expect("a body");
                let status = answer.load(Ordering::Relaxed);
                let line = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.get_mut().write_all(line.as_bytes()).expect("it listens");
                if taken.send((head.swap_remove(0), body)).is_err() {
                    return;
                }
            }
        });
        Self { port, requests, status }
    }

    /// The next request, as OpenTelemetry's own types read it.
    fn next(&self, world: &World) -> (String, Value) {
        const READ: &str = "import json, sys\n\
            from google.protobuf.json_format import MessageToDict\n\
            from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest\n\
            print(json.dumps(MessageToDict(ExportMetricsServiceRequest.FromString(sys.stdin.buffer.read()))))\n";
        let (line, body) = self.requests.recv_timeout(PATIENCE).expect("figures come");
        let mut python = world
            .command(place::otlp_python())
            .args(["-c", READ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        python.stdin.take().expect("it is piped").write_all(&body).expect("Python reads");
        let told = python.wait_with_output().expect("Python ends");
        assert!(told.status.success(), "it can be read");
        (line, serde_json::from_slice(&told.stdout).expect("it is JSON"))
    }
}

/// The figure of that name, by the one value that an attribute has.
fn point<'a>(figures: &'a Value, name: &str, kind: &str, value: &str) -> &'a Value {
    let metrics = figures["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().expect("figures");
    let metric = metrics.iter().find(|metric| metric["name"] == name);
    let metric = metric.unwrap_or_else(|| panic!("no {name} in {figures}"));
    let points = metric[kind]["dataPoints"].as_array().expect("figures");
    let has = |point: &&Value| {
        let attributes = point["attributes"].as_array();
        attributes.is_none() || attributes.into_iter().flatten().any(|it| it["value"]["stringValue"] == value)
    };
    points.iter().find(has).unwrap_or_else(|| panic!("no {value} in {metric}"))
}

#[test]
fn a_collector_gets_what_is_counted_in_the_words_of_opentelemetry() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let (port, token) = (world.port(), world.token());
    for _ in 0..3 {
        assert_eq!(Request::call(port, &token, "get_breakpoints").send(port).status, 200);
    }
    let wrong = world.baton(&["settings", "otlp_endpoint", "localhost:4318"]);
    assert!(wrong.code != 0 && wrong.err.contains("as http://127.0.0.1:4318"), "{wrong:?}");

    let collector = Collector::start();
    let name = |path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", collector.port);
        world.baton_ok(&["settings", "otlp_endpoint", &url]);
    };
    name("");
    let (line, figures) = collector.next(&world);
    assert_eq!(line, "POST /v1/metrics HTTP/1.1\r\n");
    let of_tool = point(&figures, "mcp.server.operation.duration", "histogram", "get_breakpoints");
    assert_eq!(of_tool["count"], "3", "{of_tool}");
    let buckets = of_tool["bucketCounts"].as_array().expect("buckets").iter();
    let in_all: u64 =
        buckets.map(|n| n.as_str().and_then(|n| n.parse::<u64>().ok()).expect("a number")).sum();
    let n_bounds = of_tool["explicitBounds"].as_array().map(Vec::len);
    assert_eq!((in_all, n_bounds), (3, of_tool["bucketCounts"].as_array().map(|all| all.len() - 1)));
    assert_eq!(point(&figures, "baton.terms", "sum", "R1")["asDouble"], 1.0);
    assert_eq!(point(&figures, "baton.windows", "gauge", "live")["asDouble"], 1.0, "the headless one");
    let memory = point(&figures, "process.memory.usage", "gauge", "")["asDouble"].as_f64().expect("a number");
    let of_kernel = f64::from(u32::try_from(rss_kib(world.coordinator_pid())).expect("less than 4 TiB"));
    assert!((memory / 1024.0 / of_kernel - 1.0).abs() < 0.2, "{memory} B, and {of_kernel} KiB by the kernel");
    let resource = figures["resourceMetrics"][0]["resource"]["attributes"].to_string();
    assert!(resource.contains(r#""service.name","value":{"stringValue":"baton"}"#), "{resource}");

    // One that refuses is told, and one that takes is not.
    let is_warned = || world.baton(&["status"]).err.contains("it answered 503");
    collector.status.store(503, Ordering::Relaxed);
    name("/another/");
    assert_eq!(collector.next(&world).0, "POST /another/v1/metrics HTTP/1.1\r\n");
    assert!(await_some(PATIENCE, || is_warned().then_some(())).is_some(), "it is never told");
    collector.status.store(200, Ordering::Relaxed);
    name("");
    collector.next(&world);
    assert!(await_some(PATIENCE, || (!is_warned()).then_some(())).is_some(), "it is told for ever");

    // A coordinator that ends sends what came since.
    assert_eq!(Request::call(port, &token, "get_breakpoints").send(port).status, 200);
    world.baton_ok(&["down"]);
    let (_, figures) = collector.next(&world);
    let of_tool = point(&figures, "mcp.server.operation.duration", "histogram", "get_breakpoints");
    assert_eq!(of_tool["count"], "4", "{of_tool}");
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
