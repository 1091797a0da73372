//! Warm answers: outline, symbol and references through Baton and straight from the server, in turns.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Client, Project, open, p95, projects, world};
use crate::adapters::{ms, since};
use crate::lsp::places;
use crate::report::{Section, median, say};

/// Rounds that count.
const N_ROUNDS: usize = 40;
/// Rounds before them: a server works on for a while after its first answers.
const N_BEFORE: usize = 5;
/// No further references for so long: it has read the project.
const QUIET: Duration = Duration::from_secs(2);
/// What Baton may take more than the server itself: the larger of these.
const MORE_MS: f64 = 10.0;
/// See [`MORE_MS`].
const MORE_SHARE: f64 = 0.1;
/// What is measured.
const WHAT: [&str; 3] = ["outline", "read a symbol", "references"];

/// Milliseconds on both sides, round by round, in the order of [`WHAT`].
#[derive(Default)]
struct Sides {
    straight: [Vec<f64>; 3],
    baton: [Vec<f64>; 3],
    n_references: usize,
    /// What Baton found, when that is another number.
    n_others: Option<u64>,
}

pub(crate) fn run() -> Result<Section> {
    let mut world = world();
    let projects = projects::all(&world)?;
    let mut all = Vec::new();
    for project in &projects {
        say(&format!("{} on {}", project.server, project.what));
        open(&mut world, project.server, &project.folder);
        let client = Client::of_window(&world, project.server)?;
        let mut straight = project.straight(&world)?;
        let sides = measure(project, &client, &mut straight).context(project.server)?;
        all.push(sides);
        drop(straight);
        world.close_window(project.server);
    }
    Ok(section(&projects, &all))
}

fn measure(project: &Project, client: &Client, straight: &mut crate::lsp::Server) -> Result<Sides> {
    let (file, spot) = (project.folder.join(project.file), project.spot()?);
    straight.open(&file)?;
    if spot.file != file {
        straight.open(&spot.file)?;
    }
    let n_references = places(&straight.settled_references(&spot, QUIET)?).len();
    let mut sides = Sides { n_references, ..Sides::default() };
    for round in 0..N_BEFORE + N_ROUNDS {
        let begun = Instant::now();
        straight.outline(&file)?;
        let outline = since(begun);
        let ours = client.outline(project.file)?.ms;
        let begun = Instant::now();
        straight.outline(&file)?;
        let symbol = since(begun);
        let read = client.read(project.file, project.symbol)?.ms;
        let begun = Instant::now();
        straight.references(&spot)?;
        let references = since(begun);
        let found = client.references(&project.used)?;
        if round == N_BEFORE {
            let total = found.structure()["total"].as_u64();
            sides.n_others = total.filter(|total| *total != n_references as u64);
        }
        if round >= N_BEFORE {
            for (at, (theirs, ours)) in
                [(outline, ours), (symbol, read), (references, found.ms)].into_iter().enumerate()
            {
                sides.straight[at].push(theirs);
                sides.baton[at].push(ours);
            }
        }
    }
    Ok(sides)
}

fn section(projects: &[Project], all: &[Sides]) -> Section {
    let (mut rows, mut n_kept) = (Vec::new(), 0);
    for (project, sides) in projects.iter().zip(all) {
        let mut row = vec![format!("{}, {}", project.server, project.what)];
        let mut missed = Vec::new();
        for (at, what) in WHAT.iter().enumerate() {
            let (straight, baton) = (&sides.straight[at], &sides.baton[at]);
            // Taken within a round, so that a busy minute hits both sides.
            let more: Vec<f64> =
                straight.iter().zip(baton).map(|(straight, baton)| baton - straight).collect();
            let more = median(&more);
            let middle = median(straight);
            row.push(format!("{} / {} ({more:+.1})", ms(middle), ms(median(baton))));
            row.push(format!("{} / {}", ms(p95(straight)), ms(p95(baton))));
            if more > MORE_MS.max(middle * MORE_SHARE) {
                missed.push(*what);
            } else {
                n_kept += 1;
            }
        }
        match sides.n_others {
            None => row.push(sides.n_references.to_string()),
            Some(others) => {
                row.push(format!("{} / {others}", sides.n_references));
                missed.push("another number of references");
            }
        }
        row.push(if missed.is_empty() { "yes".to_owned() } else { format!("MISSED: {}", missed.join(", ")) });
        rows.push(row);
    }
    Section {
        title: "Reading code: warm answers, straight and through Baton",
        notes: vec![
            format!("{N_ROUNDS} rounds on each side in turns; ms, the server's own / Baton's (median of the differences within a round)."),
            "Straight is a plain client on the server's standard streams: one request, with the place of the name given. Baton is called over HTTP at the stable URL, finds the symbol by its name and tells the references with their code.".to_owned(),
            format!(
                "More than the server itself by at most {MORE_MS} ms or 10 %, whichever is larger: {n_kept} of {} kept.",
                all.len() * WHAT.len()
            ),
        ],
        columns: vec![
            "server",
            "outline",
            "p95",
            "read a symbol",
            "p95",
            "references",
            "p95",
            "found",
            "kept",
        ],
        rows,
    }
}
