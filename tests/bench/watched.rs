//! What it costs to watch: calls through the edge while nobody watches, and while they are recorded, kept and counted, in
//! turns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use baton_tests::raw::Request;
use baton_tests::world::World;

use crate::load::{Target, run as load};
use crate::report::{Section, median, say};

/// Rounds in which every way gets its turn.
const ROUNDS: usize = 9;
/// Calls of each of 16 clients in a round.
const N_CALLS: usize = 2_000;
/// What watching may take of the calls of a second.
const MAX_LOSS: f64 = 0.03;
/// How often figures are read, far more often than a Prometheus does.
const READ_EVERY: Duration = Duration::from_millis(500);

/// Who watches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Watch {
    Nobody,
    Metrics,
    RawSse,
    Record,
}

impl Watch {
    const ALL: [Self; 4] = [Self::Nobody, Self::Metrics, Self::RawSse, Self::Record];

    fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody watches",
            Self::Metrics => "`/metrics` is read twice a second",
            Self::RawSse => "`baton raw-sse on`",
            Self::Record => "`baton record`",
        }
    }
}

pub(crate) fn run() -> Result<Section> {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let edge = Target::edge(world.port(), &world.token());
    let measure = || runtime.block_on(load(&edge, 16, N_CALLS)).map(|load| load.rate).context("calls");
    measure()?;
    let mut rates = [const { Vec::new() }; Watch::ALL.len()];
    for round in 1..=ROUNDS {
        say(&format!("round {round} of {ROUNDS}"));
        for (watch, rates) in Watch::ALL.into_iter().zip(&mut rates) {
            rates.push(watched(&world, watch, round, &measure)?);
        }
    }
    Ok(section(&rates))
}

/// Calls a second while somebody watches.
fn watched(world: &World, watch: Watch, round: usize, measure: &impl Fn() -> Result<f64>) -> Result<f64> {
    match watch {
        Watch::Nobody => measure(),
        Watch::Metrics => {
            let (port, token) = (world.port(), world.baton_ok(&["token", "--metrics"]));
            let read = || {
                let answer = Request::bare(port, "GET /metrics", &token).send(port);
                assert_eq!(answer.status, 200, "figures are read");
            };
            while_repeated(read, measure)
        }
        Watch::RawSse => {
            world.baton_ok(&["raw-sse", "on"]);
            let rate = measure();
            world.baton_ok(&["raw-sse", "off"]);
            rate
        }
        Watch::Record => {
            world.baton_ok(&["record", "start", &format!("round-{round}")]);
            let rate = measure();
            let told = world.baton(&["record", "stop"]);
            ensure!(told.code == 0, "{told:?}");
            rate
        }
    }
}

/// While something is done again and again.
fn while_repeated(read: impl Fn() + Sync, measure: impl Fn() -> Result<f64>) -> Result<f64> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                read();
                std::thread::sleep(READ_EVERY);
            }
        });
        let rate = measure();
        is_over.store(true, Ordering::Relaxed);
        rate
    })
}

fn section(rates: &[Vec<f64>]) -> Section {
    let rows = Watch::ALL.iter().zip(rates).map(|(watch, own)| {
        // Within a round, so that a busy minute hits both sides.
        let ratios: Vec<f64> = own.iter().zip(&rates[0]).map(|(own, nobody)| own / nobody).collect();
        let ratio = median(&ratios);
        let word = match watch {
            Watch::Nobody => "",
            _ if ratio >= 1.0 - MAX_LOSS => "kept",
            _ => "MISSED",
        };
        vec![watch.name().to_owned(), format!("{:.0}", median(own)), format!("{ratio:.3}"), word.to_owned()]
    });
    Section {
        title: "What it costs to watch",
        notes: vec![
            format!("16 clients, medians of {ROUNDS} interleaved rounds; the ratio is taken within a round."),
            "Clients, coordinator, window and whoever watches share the machine's processors.".to_owned(),
            "A record takes at most 250 calls of a second.".to_owned(),
            format!("Asked for: at most {:.0} % of the calls of a second.", MAX_LOSS * 100.0),
        ],
        columns: vec!["who watches", "calls/s", "ratio", ""],
        rows: rows.collect(),
    }
}
