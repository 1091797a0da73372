//! What the coordinator counts: for whoever asks, in the text format of Prometheus, and for a collector that the user
//! names, in OpenTelemetry's.
//!
//! Names and units are those of Prometheus' conventions, and of OpenTelemetry's for MCP where they have one
//! (`mcp.server.operation.duration`). Calls are counted as they end; what the roster knows is read when somebody asks.
//!
//! **Invariant:** a label is a word of ours or of the catalogue: never a name, a path or a text of a client.
//!
//! | module | what it does |
//! |---|---|
//! | `otlp` | CORE: the figures as OpenTelemetry's protocol has them |
//! | `schedule` | CORE: when they are sent |
//! | `push` | sends them |

mod otlp;
mod push;
mod schedule;

use std::sync::Arc;

use baton_edge::{End, Named, Observer};
use baton_election::roster::Roster;
use baton_http::body::Body;
use baton_http::respond;
use baton_page::holdings::{Holdings, Sum};
use baton_proto::control::{ProgramKind, WindowKind, WindowState};
use baton_proto::ids::WindowId;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{
    Counter, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TEXT_FORMAT,
    TextEncoder,
};

pub use push::Push;

/// Seconds, as OpenTelemetry advises for the duration of an operation of MCP.
const BUCKETS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

const STATES: [(WindowState, &str); 3] =
    [(WindowState::Live, "live"), (WindowState::Standby, "standby"), (WindowState::Off, "off")];

/// All that one coordinator counts.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    durations: HistogramVec,
    running: IntGauge,
    held: IntGauge,
    windows: IntGaugeVec,
    unresponsive: IntGauge,
    sessions: IntGauge,
    terms: IntCounterVec,
    memory: IntGauge,
    descriptors: IntGauge,
    processor: Counter,
    programs: Vec<(ProgramKind, Programs)>,
    holdings: Holdings,
}

/// What is counted of the programs of one kind.
#[derive(Debug)]
struct Programs {
    running: IntGaugeVec,
    started: IntCounterVec,
    died: IntCounterVec,
}

impl Metrics {
    /// Nothing has happened yet; of what windows hold, `holdings` will know.
    pub fn new(holdings: Holdings) -> Arc<Self> {
        let registry = Registry::new();
        let durations = HistogramOpts::new(
            "mcp_server_operation_duration_seconds",
            "Time from a tool call to the end of its answer.",
        );
        let labels = ["mcp_method_name", "gen_ai_tool_name", "error_type"];
        let durations = HistogramVec::new(durations.buckets(BUCKETS.to_vec()), &labels);
        let build = Opts::new("baton_build_info", "Version of the coordinator, always 1.");
        let build = IntGauge::with_opts(build.const_label("version", env!("CARGO_PKG_VERSION")));
        let build = kept(&registry, build);
        build.set(1);
        let started = gauge(
            &registry,
            "process_start_time_seconds",
            "Start time of the process since unix epoch in seconds.",
        );
        started.set(seconds_since_1970());
        Arc::new(Self {
            durations: kept(&registry, durations),
            running: gauge(&registry, "baton_calls_running", "Tool calls that have no complete answer yet."),
            held: gauge(&registry, "baton_calls_held", "Tool calls that wait for a window."),
            windows: kept(
                &registry,
                IntGaugeVec::new(Opts::new("baton_windows", "Registered windows."), &["kind", "state"]),
            ),
            unresponsive: gauge(
                &registry,
                "baton_windows_unresponsive",
                "Registered windows whose agent has stopped answering.",
            ),
            sessions: gauge(&registry, "baton_debug_sessions", "Debug sessions of AI clients."),
            terms: kept(
                &registry,
                IntCounterVec::new(
                    Opts::new(
                        "baton_terms_total",
                        "Times that a window became live, by the rule that decided.",
                    ),
                    &["rule"],
                ),
            ),
            memory: gauge(&registry, "process_resident_memory_bytes", "Resident memory size in bytes."),
            descriptors: gauge(&registry, "process_open_fds", "Number of open file descriptors."),
            processor: kept(
                &registry,
                Counter::new("process_cpu_seconds_total", "Total user and system CPU time spent in seconds."),
            ),
            programs: vec![
                (ProgramKind::Adapter, Programs::new(&registry, "debug_adapter", "Debug adapters")),
                (ProgramKind::Server, Programs::new(&registry, "language_server", "Language servers")),
            ],
            holdings,
            registry,
        })
    }

    /// The answer to whoever asks.
    pub fn answer(&self, roster: &Roster) -> Response<Body> {
        let Ok(text) = TextEncoder::new().encode_to_string(&self.families(roster)) else {
            return respond::plain(StatusCode::INTERNAL_SERVER_ERROR, "cannot write the figures\n");
        };
        let mut response = respond::json(StatusCode::OK, text);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
        response
    }

    /// All figures, as they are now.
    fn families(&self, roster: &Roster) -> Vec<MetricFamily> {
        self.read(roster);
        self.read_process();
        self.registry.gather()
    }

    fn read(&self, roster: &Roster) {
        let windows = roster.windows.values();
        for (kind, kind_label) in [(WindowKind::Vscode, "vscode"), (WindowKind::Headless, "headless")] {
            for (state, state_label) in STATES {
                let n_windows = windows.clone().filter(|it| (it.kind, it.state) == (kind, state)).count();
                self.windows.with_label_values(&[kind_label, state_label]).set(count(n_windows));
            }
        }
        self.unresponsive.set(count(windows.clone().filter(|window| !window.responsive).count()));
        let sessions = windows.flat_map(|window| &window.debug_sessions);
        self.sessions.set(count(sessions.filter(|session| !session.by_user).count()));
        for (rule, n_granted) in &roster.granted {
            let terms = self.terms.with_label_values(&[rule]);
            terms.inc_by(n_granted.saturating_sub(terms.get()));
        }
        let sums = self.holdings.sums(roster);
        for (kind, programs) in &self.programs {
            programs.read(sums.iter().filter(|((of, _), _)| of == kind).map(|((_, name), sum)| (name, sum)));
        }
    }

    /// What the system knows of this process; nothing where it has no `/proc`.
    fn read_process(&self) {
        let resident = std::fs::read_to_string("/proc/self/statm")
            .ok()
            .and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok());
        if let Some(n_pages) = resident {
            self.memory.set(count(n_pages * rustix::param::page_size()));
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            // One of them is the folder itself.
            self.descriptors.set(count(open.count()) - 1);
        }
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        self.processor.inc_by((seconds(spent) - self.processor.get()).max(0.0));
    }
}

impl Programs {
    fn new(registry: &Registry, kind: &str, what: &str) -> Self {
        let counter = |verb: &str, how: &str| {
            let opts =
                Opts::new(format!("baton_{kind}s_{verb}_total"), format!("{what} of windows that {how}."));
            kept(registry, IntCounterVec::new(opts, &[kind]))
        };
        let running = Opts::new(format!("baton_{kind}s_running"), format!("{what} of windows that run."));
        Self {
            running: kept(registry, IntGaugeVec::new(running, &[kind])),
            started: counter("started", "were started"),
            died: counter("died", "ended though nobody asked for it"),
        }
    }

    fn read<'a>(&self, sums: impl Iterator<Item = (&'a String, &'a Sum)>) {
        self.running.reset();
        for (name, sum) in sums {
            self.running.with_label_values(&[name]).set(i64::try_from(sum.running).unwrap_or(i64::MAX));
            for (counter, number) in [(&self.started, sum.started), (&self.died, sum.died)] {
                let counter = counter.with_label_values(&[name]);
                counter.inc_by(number.saturating_sub(counter.get()));
            }
        }
    }
}

impl Observer for Metrics {
    fn came(&self, _call: &Named<'_>, _arguments: Option<&str>) {
        self.running.inc();
    }

    fn held(&self, _id: &str, is_held: bool) {
        if is_held { self.held.inc() } else { self.held.dec() }
    }

    fn sent(&self, _id: &str, _window: &WindowId) {}

    fn over(&self, call: &Named<'_>, end: Option<End>) {
        self.running.dec();
        if let Some(End { error, took, .. }) = end {
            let labels = ["tools/call", call.tool, error.unwrap_or_default()];
            self.durations.with_label_values(&labels).observe(took.as_secs_f64());
        }
    }
}

fn gauge(registry: &Registry, name: &str, help: &str) -> IntGauge {
    kept(registry, IntGauge::new(name, help))
}

/// One more metric of the registry.
fn kept<C: Collector + Clone + 'static>(registry: &Registry, metric: prometheus::Result<C>) -> C {
    let metric = metric.expect("invariant: names and labels are literals that Prometheus takes");
    registry.register(Box::new(metric.clone())).expect("invariant: each name is registered once");
    metric
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a process does not run for a hundred million years")]
fn seconds(time: rustix::time::Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn seconds_since_1970() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}
