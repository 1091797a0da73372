//! A trivial tool call through the edge, beside everything else that could stand there, in the same run.

use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use baton_proto::discovery::{KEY_LEN, Secret};
use baton_proto::edge::PIN_HEADER;
use baton_tests::place;
use baton_tests::process::{await_some, command};
use baton_tests::world::{World, find};

use crate::load::{Target, run as load};
use crate::report::{Section, median, ms, say, verdict};

/// Rounds in which every path gets its turn.
const ROUNDS: usize = 7;

/// A way to the window.
struct Path {
    name: &'static str,
    target: Target,
    /// Calls of one client in a round; 16 clients make a quarter of it each.
    n_calls: usize,
    /// p50 in ms and calls/s of each round, with 1 and with 16 clients.
    alone: Vec<[f64; 3]>,
    together: Vec<[f64; 3]>,
}

/// Ends a peer when the measurement is over.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        // Both only fail when it has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run() -> Result<Section> {
    let mut world = World::new();
    world.window("shop");
    let status = world.await_live("shop");
    let window = find(&status, "shop").context("the window is there")?.clone();
    let socket = world.agent_socket(&window.id);
    let bytes = std::fs::read(world.home().join("secret"))?;
    let secret = Secret::new(<[u8; KEY_LEN]>::try_from(bytes).ok().context("the secret has its length")?);
    let window_token = secret.window_token(&window.id, Some(world.incarnation(&window.id)));

    let nginx_port = free_port()?;
    let _nginx = nginx(&world, nginx_port, &socket, window_token.expose())?;
    let (proxy_port, gateway_port) = (free_port()?, free_port()?);
    let _proxy = mcp_proxy(&world, proxy_port)?;
    let _gateway = supergateway(&world, gateway_port)?;
    let bare =
        |port| Target { port, socket: None, path: "/mcp".to_owned(), headers: vec![], has_sessions: false };
    let with_sessions = |port| Target { has_sessions: true, ..bare(port) };
    let direct = Target { socket: Some(socket.clone()), ..bare(0) }
        .with("authorization", format!("Bearer {}", window_token.expose()))
        .with(PIN_HEADER, "1")
        .with("mcp-protocol-version", "2025-11-25");
    let through_nginx = bare(nginx_port).with("mcp-protocol-version", "2025-11-25");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let edge = Target::edge(world.port(), &world.token());
        let mut paths = vec![
            path("straight to the window", direct, 4_000),
            path("nginx in front", through_nginx, 4_000),
            path("**Baton**", edge, 4_000),
            path("supergateway 4.0.0", with_sessions(gateway_port), 200),
            path("mcp-proxy 0.13.0", with_sessions(proxy_port), 200),
        ];
        for path in &paths {
            load(&path.target, 1, path.n_calls / 4).await.with_context(|| path.name)?;
        }
        for round in 1..=ROUNDS {
            say(&format!("round {round} of {ROUNDS}"));
            for path in &mut paths {
                let alone = load(&path.target, 1, path.n_calls).await.with_context(|| path.name)?;
                path.alone.push([alone.rate, to_ms(alone.p50), to_ms(alone.p99)]);
                let together = load(&path.target, 16, path.n_calls / 4).await.with_context(|| path.name)?;
                path.together.push([together.rate, to_ms(together.p50), to_ms(together.p99)]);
            }
        }
        Ok(section(&paths))
    })
}

fn path(name: &'static str, target: Target, n_calls: usize) -> Path {
    Path { name, target, n_calls, alone: vec![], together: vec![] }
}

fn section(paths: &[Path]) -> Section {
    let middle =
        |rounds: &[[f64; 3]], at: usize| median(&rounds.iter().map(|one| one[at]).collect::<Vec<_>>());
    let rows = paths
        .iter()
        .map(|path| {
            let (alone, together) = (&path.alone, &path.together);
            vec![
                path.name.to_owned(),
                format!("{:.0}", middle(alone, 0)),
                format!("{:.3}", middle(alone, 1)),
                format!("{:.3}", middle(alone, 2)),
                format!("{:.0}", middle(together, 0)),
                format!("{:.2}", middle(together, 1)),
                format!("{:.2}", middle(together, 2)),
            ]
        })
        .collect();
    // Ratios are taken within a round, so that a busy minute hits both sides of them.
    let (direct, nginx, baton) = (&paths[0], &paths[1], &paths[2]);
    let added: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let added = |path: &Path| path.alone[round][1] - direct.alone[round][1];
            added(baton) / added(nginx)
        })
        .collect();
    let rates: Vec<f64> =
        (0..ROUNDS).map(|round| baton.together[round][0] / nginx.together[round][0]).collect();
    let rate = median(&rates);
    let word = if rate >= 0.85 { "kept" } else { "MISSED" };
    Section {
        title: "A trivial tool call (`get_breakpoints`)",
        notes: vec![
            format!("Medians of {ROUNDS} interleaved rounds; nginx has one worker, as Baton has one thread."),
            "nginx reaches the window by its Unix socket, as Baton does.".to_owned(),
            "supergateway and mcp-proxy reach the window through `baton stdio`, as they only front commands."
                .to_owned(),
            verdict("Added p50 over calling the window directly, Baton to nginx", median(&added), 2.0, "x"),
            format!(
                "Calls/s with 16 clients, Baton to nginx: {rate:.2} x, asked for at least 0.85 x: {word}."
            ),
        ],
        columns: vec![
            "path",
            "1 client: calls/s",
            "p50 ms",
            "p99 ms",
            "16 clients: calls/s",
            "p50 ms",
            "p99 ms",
        ],
        rows,
    }
}

fn to_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn await_port(name: &str, port: u16, child: Child) -> Result<Peer> {
    let mut peer = Peer(child);
    let start = std::time::Instant::now();
    let is_up = || std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(drop);
    if await_some(Duration::from_secs(20), is_up).is_none() {
        bail!("{name} did not open its port ({:?})", peer.0.try_wait());
    }
    say(&format!("{name} is up after {} ms", ms(start.elapsed())));
    Ok(peer)
}

fn nginx(world: &World, port: u16, socket: &std::path::Path, token: &str) -> Result<Peer> {
    let folder = world.scratch().join("nginx");
    std::fs::create_dir_all(&folder)?;
    let (at, socket) = (folder.display(), socket.display());
    let configuration = format!(
        "daemon off; master_process off; worker_processes 1; pid {at}/pid; error_log {at}/error.log;
        events {{ worker_connections 512; }}
        http {{
          access_log off; tcp_nodelay on; keepalive_requests 100000000; keepalive_timeout 600;
          client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/f;
          uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;
          upstream window {{ server unix:{socket}; keepalive 64; keepalive_requests 100000000; }}
          server {{
            listen 127.0.0.1:{port};
            location / {{
              proxy_pass http://window; proxy_http_version 1.1; proxy_buffering off;
              proxy_set_header Connection \"\"; proxy_set_header Host localhost;
              proxy_set_header Authorization \"Bearer {token}\"; proxy_set_header {PIN_HEADER} 1;
            }}
          }}
        }}"
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, configuration)?;
    let nginx = std::env::var_os("BATON_NGINX").unwrap_or_else(|| "nginx".into());
    let child = command(nginx).arg("-p").arg(&folder).arg("-c").arg(&file).stderr(Stdio::null()).spawn();
    await_port("nginx", port, child.context("nginx does not start; `cargo xtask bench` provides it")?)
}

fn mcp_proxy(world: &World, port: u16) -> Result<Peer> {
    let mut proxy = world.command(place::tool("mcp-proxy/bin/mcp-proxy"));
    proxy.args([
        "--host",
        "127.0.0.1",
        "--port",
        &port.to_string(),
        "--log-level",
        "ERROR",
        "--pass-environment",
        "--",
    ]);
    proxy.arg(place::program("baton")).args(["stdio", "--window", "shop"]);
    proxy.stdout(Stdio::null()).stderr(Stdio::null());
    await_port("mcp-proxy", port, proxy.spawn()?)
}

fn supergateway(world: &World, port: u16) -> Result<Peer> {
    let server = format!("{} stdio --window shop", place::program("baton").display());
    let mut gateway = world.command(place::node());
    gateway
        .arg(place::tool("supergateway/node_modules/supergateway/dist/index.js"))
        .args(["--stdio", &server, "--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none"])
        .args(["--port", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    await_port("supergateway", port, gateway.spawn()?)
}
