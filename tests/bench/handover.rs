//! Takeovers, killed windows, killed coordinators: from the event to the first answer.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use baton_link::connection::Connection;
use baton_proto::discovery::{KEY_LEN, Secret};
use baton_proto::edge::META_WINDOW;
use baton_proto::shim::Verb;
use baton_tests::place;
use baton_tests::process::kill9;
use baton_tests::world::{WindowOptions, World, find, live_name};
use serde_json::json;

use crate::load::{Caller, Target};
use crate::report::{Section, ms, percentile, say, verdict};

const N_TAKEOVERS: usize = 200;
const N_WINDOW_KILLS: usize = 20;
const N_COORDINATOR_KILLS: usize = 100;
/// A process that had to start the coordinator more than five times in 30 s pauses, so kills keep this distance.
const BETWEEN_KILLS: Duration = Duration::from_millis(6_500);
/// Longest wait for anything here.
const PATIENCE: Duration = Duration::from_secs(20);

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// The secret of a world.
pub(crate) fn secret(world: &World) -> Result<Secret> {
    let bytes = std::fs::read(world.home().join("secret"))?;
    Ok(Secret::new(<[u8; KEY_LEN]>::try_from(bytes).ok().context("the secret has its length")?))
}

/// Starts windows on copies of a fixture under names of their own; the first one is live.
pub(crate) fn windows(world: &mut World, names: &[&str]) {
    for name in names {
        let folder = world.scratch().join("projects").join(name);
        place::copy_folder(&place::project("shop"), &folder);
        world.window_with(name, WindowOptions { folder: Some(folder), ..WindowOptions::default() });
        if *name == names[0] {
            world.await_live(name);
        }
    }
}

pub(crate) fn takeover() -> Result<Section> {
    let mut world = World::new();
    windows(&mut world, &["one", "two"]);
    let status = world.await_live("one");
    let ids = ["one", "two"].map(|name| find(&status, name).map(|window| window.id.clone()));
    let (secret, port, token) = (secret(&world)?, world.port(), world.token());
    let (since_accepted, since_sent) = runtime()?.block_on(async {
        let mut control = Connection::open(&secret, port).await?;
        let mut caller = Caller::connect(&Target::edge(port, &token).in_session().await?).await?;
        let (mut since_accepted, mut since_sent) = (Vec::new(), Vec::new());
        for turn in 0..N_TAKEOVERS {
            let id = ids[(turn + 1) % 2].as_ref().context("both windows are there")?;
            let sent = Instant::now();
            control.order(id.as_str(), Verb::Take).await?;
            let accepted = Instant::now();
            let result = caller.call("get_breakpoints", &json!({})).await?;
            ensure!(result["_meta"][META_WINDOW]["id"] == id.as_str(), "the wrong window answered: {result}");
            since_accepted.push(accepted.elapsed());
            since_sent.push(sent.elapsed());
        }
        anyhow::Ok((since_accepted, since_sent))
    })?;
    let row = |what: &str, samples: &[Duration]| {
        vec![what.to_owned(), ms(percentile(samples, 50)), ms(percentile(samples, 99))]
    };
    let p99 = percentile(&since_accepted, 99).as_secs_f64() * 1e3;
    Ok(Section {
        title: "Takeover",
        notes: vec![
            format!(
                "{N_TAKEOVERS} takeovers between two windows, each followed by a call in the same session."
            ),
            verdict("Command accepted to first call answered by the new window, p99", p99, 20.0, "ms"),
        ],
        columns: vec!["from", "p50 ms", "p99 ms"],
        rows: vec![row("command accepted", &since_accepted), row("command sent", &since_sent)],
    })
}

pub(crate) fn killed_window() -> Result<Section> {
    let mut world = World::new();
    windows(&mut world, &["one", "two"]);
    world.await_live("one");
    let (secret, port, token) = (secret(&world)?, world.port(), world.token());
    let (noticed, answered) = runtime()?.block_on(async {
        let target = Target::edge(port, &token).in_session().await?;
        let mut control = Connection::open(&secret, port).await?;
        let (mut noticed, mut answered) = (Vec::new(), Vec::new());
        for _ in 0..N_WINDOW_KILLS {
            let before = await_window(&mut control, "one", |_| true).await?;
            let killed = Instant::now();
            kill9(before);
            loop {
                let status = control.status().await?;
                let is_known = find(&status, "one").is_some_and(|window| window.pid == before);
                if !is_known || status.awaiting.is_some() {
                    break;
                }
                ensure!(killed.elapsed() < PATIENCE, "the death of a window was not noticed");
            }
            noticed.push(killed.elapsed());
            let mut caller = Caller::connect(&target).await?;
            let result = caller.call("get_breakpoints", &json!({})).await?;
            ensure!(result["_meta"][META_WINDOW]["name"] == "one", "another window answered: {result}");
            answered.push(killed.elapsed());
            let back = await_window(&mut control, "one", |pid| pid != before).await?;
            // A wished restart ends the supervisor's back-off, as time would: each kill is a first one.
            control.order("one", Verb::Restart).await?;
            await_window(&mut control, "one", |pid| pid != back).await?;
        }
        anyhow::Ok((noticed, answered))
    })?;
    let row = |what: &str, samples: &[Duration]| {
        let worst = percentile(samples, 100);
        vec![what.to_owned(), ms(percentile(samples, 50)), ms(worst)]
    };
    let worst = percentile(&noticed, 100).as_secs_f64() * 1e3;
    Ok(Section {
        title: "The live window is killed -9",
        notes: vec![
            format!("{N_WINDOW_KILLS} kills of the live window's agent, which its supervisor starts again."),
            verdict("Noticed within", worst, 250.0, "ms"),
        ],
        columns: vec!["from the kill to", "p50 ms", "worst ms"],
        rows: vec![
            row("noticed by the coordinator", &noticed),
            row("a call answered by the restarted window", &answered),
        ],
    })
}

/// Waits until the named window is live with an agent as wanted; the agent's pid.
async fn await_window(control: &mut Connection, name: &str, wanted: impl Fn(u32) -> bool) -> Result<u32> {
    let start = Instant::now();
    loop {
        let status = control.status().await?;
        if live_name(&status) == Some(name)
            && let Some(window) = find(&status, name)
            && wanted(window.pid)
        {
            return Ok(window.pid);
        }
        ensure!(start.elapsed() < PATIENCE, "{name} did not come back");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn killed_coordinator() -> Result<Section> {
    let mut world = World::new();
    windows(&mut world, &["one", "two", "three", "four", "five"]);
    world.await_live("one");
    let (port, token) = (world.port(), world.token());
    let samples = runtime()?.block_on(async {
        let target = Target::edge(port, &token).in_session().await?;
        let mut samples = Vec::new();
        for turn in 1..=N_COORDINATOR_KILLS {
            let turn_start = Instant::now();
            let pid = world.coordinator_pid();
            let killed = Instant::now();
            kill9(pid);
            first_answer(&target, killed).await?;
            samples.push(killed.elapsed());
            if turn % 10 == 0 {
                say(&format!(
                    "{turn} of {N_COORDINATOR_KILLS}: worst so far {} ms",
                    ms(percentile(&samples, 100))
                ));
            }
            let status = world.await_live("one");
            ensure!(status.windows.len() <= 5, "windows multiplied: {status:?}");
            tokio::time::sleep(BETWEEN_KILLS.saturating_sub(turn_start.elapsed())).await;
        }
        anyhow::Ok(samples)
    })?;
    let p99 = percentile(&samples, 99).as_secs_f64();
    let row = [50, 90, 99, 100].iter().map(|percent| ms(percentile(&samples, *percent)));
    Ok(Section {
        title: "The coordinator is killed -9, with 5 windows",
        notes: vec![
            format!(
                "{N_COORDINATOR_KILLS} kills; the time to the first tool call answered in the same client session."
            ),
            verdict("First answer, p99", p99, 1.0, "s"),
        ],
        columns: vec!["p50 ms", "p90 ms", "p99 ms", "worst ms"],
        rows: vec![row.collect()],
    })
}

/// Calls until an answer comes, on a new connection each time, as a client that retries does.
async fn first_answer(target: &Target, killed: Instant) -> Result<()> {
    loop {
        if let Ok(mut caller) = Caller::connect(target).await
            && caller.call("get_breakpoints", &json!({})).await.is_ok()
        {
            return Ok(());
        }
        ensure!(killed.elapsed() < PATIENCE, "no answer after a kill");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
