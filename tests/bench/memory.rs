//! Idle memory, and what one more window or client session costs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use baton_link::connection::{Connection, Events};
use baton_proto::PROTOCOL;
use baton_proto::control::{Heartbeat, Register, WindowKind};
use baton_proto::ids::WindowId;
use baton_proto::shim::Verb;
use baton_tests::process::rss_kib;
use baton_tests::world::World;
use http_body_util::BodyExt;

use crate::handover::{secret, windows};
use crate::load::{Caller, Target};
use crate::report::{Section, median, say, verdict};

const N_REAL: usize = 10;
const N_MANY: usize = 500;
/// Idle time before memory is read: a few heartbeats.
const SETTLE: Duration = Duration::from_secs(5);

pub(crate) fn run() -> Result<Section> {
    let names = ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9"];
    let mut world = World::new();
    windows(&mut world, &names[..N_REAL]);
    std::thread::sleep(SETTLE);
    let status = world.status().context("the coordinator runs")?;
    let coordinator = rss_kib(status.pid) as f64 / 1024.0;
    let agents: Vec<f64> = status.windows.iter().map(|window| rss_kib(window.pid) as f64 / 1024.0).collect();
    let agent = agents.iter().copied().fold(0.0, f64::max);
    drop(world);
    let (per_window, per_session) = many()?;
    let row = |what: &str, value: String| vec![what.to_owned(), value];
    Ok(Section {
        title: "Idle memory (RSS)",
        notes: vec![
            format!(
                "{N_REAL} real windows; then {N_MANY} registered windows with event streams and {N_MANY} client sessions with open GET streams on one coordinator."
            ),
            verdict("Coordinator with 10 windows", coordinator, 15.0, "MB"),
            verdict("Largest agent", agent, 20.0, "MB"),
        ],
        columns: vec!["what", "RSS"],
        rows: vec![
            row("coordinator with 10 windows", format!("{coordinator:.1} MB")),
            row("agent, median of 10", format!("{:.1} MB", median(&agents))),
            row("agent, largest of 10", format!("{agent:.1} MB")),
            row("one more idle window", format!("{per_window:.1} KB")),
            row("one more client session with its stream", format!("{per_session:.1} KB")),
        ],
    })
}

/// KiB per window and per session.
fn many() -> Result<(f64, f64)> {
    let world = World::new();
    world.baton_ok(&["up"]);
    let (secret, port, token) = (secret(&world)?, world.port(), world.token());
    let pid = world.coordinator_pid();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let empty = rss_kib(pid);
        let mut held: Vec<(Connection, Events)> = Vec::new();
        let incarnation = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
        for number in 0..N_MANY {
            held.push(register(&secret, port, number, incarnation).await?);
        }
        beat(&mut held, incarnation).await?;
        let with_windows = rss_kib(pid);
        say(&format!("{N_MANY} windows registered"));
        let status = held[0].0.status().await?;
        ensure!(status.windows.len() == N_MANY, "{} windows are known", status.windows.len());
        let mut streams = Vec::new();
        for _ in 0..N_MANY {
            let target = Target::edge(port, &token).in_session().await?;
            let mut caller = Caller::connect(&target).await?;
            let stream = caller.open_stream().await?;
            streams.push((caller, stream));
        }
        beat(&mut held, incarnation).await?;
        let with_sessions = rss_kib(pid);
        say(&format!("{N_MANY} sessions with streams are open"));
        // They work: a change of the live window is heard on every stream.
        let id = WindowId::try_from("simulated-7".to_owned())?;
        held[7].0.order(id.as_str(), Verb::Take).await?;
        for (_, stream) in &mut streams {
            let heard = tokio::time::timeout(SETTLE, stream.frame()).await;
            ensure!(matches!(heard, Ok(Some(Ok(_)))), "a stream heard nothing of a handover");
        }
        let per = |more: u64, less: u64| more.saturating_sub(less) as f64 / N_MANY as f64;
        Ok((per(with_windows, empty), per(with_sessions, with_windows)))
    })
}

async fn register(
    secret: &baton_proto::discovery::Secret,
    port: u16,
    number: usize,
    incarnation: u64,
) -> Result<(Connection, Events)> {
    let id = WindowId::try_from(format!("simulated-{number}"))?;
    let mut control = Connection::open(secret, port).await?;
    let register = Register {
        protocol: PROTOCOL,
        version: "0".to_owned(),
        name: format!("simulated {number}"),
        kind: WindowKind::Headless,
        folders: vec![format!("/simulated/{number}")],
        trees: Vec::new(),
        auto_start: true,
        pid: std::process::id(),
        pid_start: 0,
        port: 20_000,
        socket: None,
        incarnation,
        highest_term: None,
        held_term: None,
        fenced: false,
        stopped: false,
        live_since: false,
        debug_sessions: vec![],
        focused_ms_ago: None,
        client_epoch: 0,
        breakpoints_kept: None,
    };
    control.register(&id, &register).await?;
    let events = Connection::open(secret, port).await?.events(&id, incarnation).await?;
    Ok((control, events))
}

/// Keeps all windows alive over the settling time.
async fn beat(held: &mut [(Connection, Events)], incarnation: u64) -> Result<()> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SEQ: AtomicU64 = AtomicU64::new(1);
    let seq = SEQ.fetch_add(1, Ordering::Relaxed);
    for (number, (control, _)) in held.iter_mut().enumerate() {
        let beat = Heartbeat {
            incarnation,
            seq,
            focused: false,
            debug_sessions: vec![],
            folders: None,
            name: None,
            tallies: vec![],
            breakpoints: vec![],
            more_breakpoints: 0,
        };
        let id = WindowId::try_from(format!("simulated-{number}"))?;
        control.heartbeat(&id, &beat).await?;
    }
    Ok(())
}
