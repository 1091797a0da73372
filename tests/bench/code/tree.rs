//! Ten thousand files: the first outline, warm ones, and the agent's memory.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use baton_tests::process::rss_kib;
use baton_tests::world::WindowOptions;

use super::{Client, Used, tree_mb, world};
use crate::adapters::{ms, since};
use crate::report::{Section, median, verdict};

/// Windows that are opened one after the other.
const N_WINDOWS: usize = 3;
/// Outlines of files that were not looked at before.
const N_WARM: usize = 100;
/// What is asked for.
const FIRST_MS: f64 = 2_000.0;
const WARM_MS: f64 = 100.0;
const AGENT_MB: f64 = 60.0;
/// A function that one other file uses.
const USED: Used = Used { file: "part_1/m_1.py", start: "def f_1(", name: "f_1" };

pub(crate) fn run() -> Result<Section> {
    let mut world = world();
    world.baton_ok(&["up"]);
    let folder = world.folder("many");
    write(&folder)?;
    let client = Client::new(&world)?;
    let (mut first, mut warm, mut references, mut agent, mut server) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..N_WINDOWS {
        let options = WindowOptions { folder: Some(folder.clone()), ..WindowOptions::default() };
        let begun = Instant::now();
        world.start_window("many", options);
        client.outline("part_5/m_5.py")?;
        first.push(since(begun));
        for file in 0..N_WARM {
            warm.push(client.outline(&format!("part_{file}/m_{file}.py"))?.ms);
        }
        let found = client.references(&USED)?;
        ensure!(found.structure()["total"] == 4, "{}", found.text());
        references.push(found.ms);
        let pid = world.agent_pid("many");
        agent.push(rss_kib(pid) as f64 / 1024.0);
        server.push(tree_mb(pid) - rss_kib(pid) as f64 / 1024.0);
        world.close_window("many");
        world.await_nobody_live();
    }
    let average = warm.iter().sum::<f64>() / warm.len() as f64;
    let largest = agent.iter().copied().fold(0.0, f64::max);
    let row = |what: &str, found: String| vec![what.to_owned(), found];
    Ok(Section {
        title: "Reading code: a tree of 10,000 files",
        notes: vec![
            format!(
                "Python with ty, in {N_WINDOWS} windows one after the other; {N_WARM} outlines of other files in each. The first outline includes the start of the window."
            ),
            verdict("First outline, median", median(&first), FIRST_MS, "ms"),
            verdict("Warm outline, average", average, WARM_MS, "ms"),
            verdict("Agent's own memory (RSS), largest", largest, AGENT_MB, "MB"),
        ],
        columns: vec!["what", "median"],
        rows: vec![
            row("first outline", format!("{} ms", ms(median(&first)))),
            row("warm outline", format!("{} ms", ms(median(&warm)))),
            row("first references", format!("{} ms", ms(median(&references)))),
            row("agent", format!("{:.1} MB", median(&agent))),
            row("language server", format!("{:.0} MB", median(&server))),
        ],
    })
}

fn write(root: &Path) -> Result<()> {
    for folder in 0..100 {
        let part = root.join(format!("part_{folder}"));
        std::fs::create_dir_all(&part)?;
        for file in 0..100 {
            let text = format!(
                "def f_{file}():\n    return {file}\n\n\nclass C_{file}:\n    def m(self):\n        return f_{file}()\n"
            );
            std::fs::write(part.join(format!("m_{file}.py")), text)?;
        }
    }
    std::fs::write(root.join("main.py"), "from part_1.m_1 import f_1\n\nf_1()\n")?;
    Ok(())
}
