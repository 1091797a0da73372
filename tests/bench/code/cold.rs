//! Cold answers: from nothing to the first outline and the first references, straight and with a window that opens.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use baton_tests::world::{WindowOptions, World};

use super::{Client, Project, projects, world};
use crate::adapters::{ms, since};
use crate::lsp::places;
use crate::report::{Section, median, say};

/// No further references for so long: it has read the project.
const QUIET: Duration = Duration::from_secs(2);
/// What Baton may take, as a multiple of the server's own start and answer.
const TIMES: f64 = 1.2;

/// Milliseconds to the first outline and the first complete references.
type Figures = [f64; 2];

#[derive(Default)]
struct Sides {
    straight: Vec<Figures>,
    baton: Vec<Figures>,
    n_references: usize,
}

pub(crate) fn run() -> Result<Section> {
    let mut world = world();
    world.baton_ok(&["up"]);
    let client = Client::new(&world)?;
    let projects = projects::all(&world)?;
    let mut all = Vec::new();
    for project in &projects {
        say(&format!("{} on {}", project.server, project.what));
        let sides = measure(&mut world, &client, project);
        if let Err(error) = &sides {
            say(&format!("{}: {error:#}", project.server));
            // A window that is left would answer for the next one.
            if world.status().is_some_and(|status| !status.windows.is_empty()) {
                world.close_window(project.server);
                world.await_nobody_live();
            }
        }
        all.push(sides.ok());
    }
    Ok(section(&projects, &all))
}

/// Rounds that count: servers that take seconds are started less often.
fn n_rounds(server: &str) -> usize {
    match server {
        "rust-analyzer" => 5,
        "clangd" | "gopls" => 4,
        _ => 12,
    }
}

fn measure(world: &mut World, client: &Client, project: &Project) -> Result<Sides> {
    let spot = project.spot()?;
    // Also fills the caches of the machine and of tools that servers start.
    let n_references = {
        let mut server = project.straight(world)?;
        // The same files as below.
        server.open(&project.folder.join(project.file))?;
        if spot.file != project.folder.join(project.file) {
            server.open(&spot.file)?;
        }
        places(&server.settled_references(&spot, QUIET)?).len()
    };
    let mut sides = Sides { n_references, ..Sides::default() };
    for _ in 0..n_rounds(project.server) {
        project.forget();
        sides.straight.push(straight(world, project, n_references)?);
        project.forget();
        sides.baton.push(with_window(world, client, project, n_references)?);
    }
    Ok(sides)
}

fn straight(world: &World, project: &Project, n_references: usize) -> Result<Figures> {
    let (file, spot) = (project.folder.join(project.file), project.spot()?);
    let begun = Instant::now();
    let mut server = project.straight(world)?;
    server.open(&file)?;
    let symbols = server.outline(&file)?;
    let outline = since(begun);
    ensure!(symbols.as_array().is_some_and(|symbols| !symbols.is_empty()), "no symbols");
    if spot.file != file {
        server.open(&spot.file)?;
    }
    server.all_references(&spot, n_references)?;
    Ok([outline, since(begun)])
}

/// Nothing runs but the coordinator: the calls wait for the window, its agent and the server.
fn with_window(
    world: &mut World,
    client: &Client,
    project: &Project,
    n_references: usize,
) -> Result<Figures> {
    let options = WindowOptions { folder: Some(project.folder.clone()), ..WindowOptions::default() };
    let begun = Instant::now();
    world.start_window(project.server, options);
    let outlined = client.outline(project.file)?;
    let outline = since(begun);
    let found = client.references(&project.used)?;
    let references = since(begun);
    ensure!(outlined.structure()["source"] == project.server, "{}", outlined.result);
    let total = found.structure()["total"].as_u64();
    ensure!(total == Some(n_references as u64), "of {n_references} references {}", found.text());
    world.close_window(project.server);
    world.await_nobody_live();
    Ok([outline, references])
}

fn section(projects: &[Project], all: &[Option<Sides>]) -> Section {
    let (mut rows, mut n_kept) = (Vec::new(), 0);
    for (project, sides) in projects.iter().zip(all) {
        let mut row = vec![format!("{}, {}", project.server, project.what)];
        let Some(sides) = sides else {
            row.extend(["", "", "", "MISSED: not measured, the run says why"].map(str::to_owned));
            rows.push(row);
            continue;
        };
        let mut missed = Vec::new();
        for (at, what) in ["outline", "references"].into_iter().enumerate() {
            let of = |figures: &[Figures]| median(&figures.iter().map(|one| one[at]).collect::<Vec<_>>());
            let (straight, baton) = (of(&sides.straight), of(&sides.baton));
            let times = baton / straight;
            row.push(format!("{} / {} ({times:.2} x)", ms(straight), ms(baton)));
            if times > TIMES {
                missed.push(what);
            } else {
                n_kept += 1;
            }
        }
        row.push(sides.n_references.to_string());
        row.push(if missed.is_empty() { "yes".to_owned() } else { format!("MISSED: {}", missed.join(", ")) });
        rows.push(row);
    }
    Section {
        title: "Reading code: cold first answers",
        notes: vec![
            "From nothing to the first outline, and on to the first complete references; ms, the server's own start and answers / Baton's; medians of 4 to 12 rounds in turns.".to_owned(),
            "Baton's time includes the start of the window and of its agent. The straight client knows how many references there are and asks until it has them all; Baton waits until the server has read the project.".to_owned(),
            format!("At most {TIMES} x the server's own time: {n_kept} of {} kept.", all.len() * 2),
        ],
        columns: vec!["server", "first outline", "first references", "found", "kept"],
        rows,
    }
}
