//! Other MCP servers that read code, on the same trees: CPython's library, and one function with 275 references.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use baton_tests::place;
use baton_tests::process::rss_kib;
use baton_tests::world::{WindowOptions, World};
use serde_json::{Value, json};

use super::tokens::{EVENTS, N_REFERENCES, write_events};
use super::{Client, Project, Used, n_tokens, projects, spot, tree_mb, world};
use crate::adapters::{ms, since};
use crate::load::Caller;
use crate::peers::Server;
use crate::report::{Section, median, say};

/// How often each question is asked that counts.
const N_TIMES: usize = 15;

/// The arguments that ask for the uses of a symbol in a tree.
type Arguments = fn(&Path, &Used) -> Result<Value>;

/// A server, and how one asks it.
struct Peer {
    name: &'static str,
    words: Vec<String>,
    environment: Vec<(&'static str, PathBuf)>,
    /// Whatever has to lie in a tree before.
    prepare: fn(&Path) -> Result<()>,
    outline: (&'static str, fn(&str) -> Value),
    references: (&'static str, Arguments),
    /// How many its answer tells.
    count: fn(&str) -> usize,
}

/// What was found for one server.
#[derive(Default)]
struct Found {
    list_tokens: usize,
    ready: f64,
    outline: f64,
    outline_tokens: usize,
    references: f64,
    n_references: usize,
    many: f64,
    many_tokens: usize,
    memory: f64,
}

pub(crate) fn run() -> Result<Section> {
    let mut world = world();
    let library = projects::library(&world)?;
    let events = world.folder("events");
    write_events(&events)?;
    say("Baton");
    let mut rows = vec![row("**Baton**", &ours(&mut world, &library, &events)?)];
    for peer in peers(&world)? {
        say(peer.name);
        rows.push(match theirs(&world, &peer, &library, &events) {
            Ok(found) => row(peer.name, &found),
            Err(error) => {
                say(&format!("{error:#}"));
                let why = format!("{error:#}").replace(['|', '\n'], " ").chars().take(120).collect();
                let mut row = vec![format!("{}: not measured", peer.name), why];
                row.resize(COLUMNS.len(), String::new());
                row
            }
        });
    }
    Ok(Section {
        title: "Reading code beside other MCP servers",
        notes: vec![
            format!("CPython's library, `argparse.py` and the references to its `ArgumentParser`; then a function with {N_REFERENCES} references; {N_TIMES} times each, medians in ms, tokens of the text."),
            "Ready is the start to the first outline; the memory (RSS) is that of all processes, of Baton coordinator, window, agent and language server.".to_owned(),
            "Baton and codenav-mcp ask ty; serena asks pyright, which takes CPython's library for one that stands elsewhere and so finds little in it.".to_owned(),
            "An outline of serena has the outermost names alone, without their lines.".to_owned(),
        ],
        columns: COLUMNS.to_vec(),
        rows,
    })
}

const COLUMNS: [&str; 10] = [
    "server",
    "tool list, tokens",
    "ready",
    "outline",
    "its tokens",
    "references",
    "found",
    "275 references",
    "their tokens",
    "memory",
];

fn row(name: &str, found: &Found) -> Vec<String> {
    vec![
        name.to_owned(),
        found.list_tokens.to_string(),
        ms(found.ready),
        ms(found.outline),
        found.outline_tokens.to_string(),
        ms(found.references),
        found.n_references.to_string(),
        ms(found.many),
        found.many_tokens.to_string(),
        format!("{:.0} MB", found.memory),
    ]
}

fn ours(world: &mut World, library: &Project, events: &Path) -> Result<Found> {
    world.baton_ok(&["up"]);
    let mut client = Client::new(world)?;
    let options =
        |folder: &Path| WindowOptions { folder: Some(folder.to_owned()), ..WindowOptions::default() };
    let begun = Instant::now();
    world.start_window("library", options(&library.folder));
    let outline = client.outline(library.file)?;
    let mut found = Found { ready: since(begun), ..Found::default() };
    found.outline_tokens = n_tokens(outline.text());
    found.outline = times(|| Ok(client.outline(library.file)?.ms))?;
    let references = client.references(&library.used)?;
    found.n_references = references.structure()["total"].as_u64().unwrap_or_default() as usize;
    found.references = times(|| Ok(client.references(&library.used)?.ms))?;
    found.memory =
        tree_mb(world.supervisor_pid("library")) + rss_kib(world.coordinator_pid()) as f64 / 1024.0;
    world.close_window("library");
    world.await_nobody_live();

    world.start_window("events", options(events));
    let many = client.references(&EVENTS)?;
    ensure!(many.structure()["total"] == N_REFERENCES, "{}", many.text());
    found.many_tokens = n_tokens(many.text());
    found.many = times(|| Ok(client.references(&EVENTS)?.ms))?;
    client.target.path = "/mcp?toolsets=code,refactor".to_owned();
    found.list_tokens = n_tokens(&client.tools()?.to_string());
    Ok(found)
}

fn theirs(world: &World, peer: &Peer, library: &Project, events: &Path) -> Result<Found> {
    let mut found = Found::default();
    (peer.prepare)(&library.folder)?;
    let begun = Instant::now();
    let mut server = start(world, peer, &library.folder)?;
    let outline = (peer.outline.1)(library.file);
    found.outline_tokens = n_tokens(&call(&mut server, peer.outline.0, &outline)?.0);
    found.ready = since(begun);
    let list = server.ask("tools/list", json!({}))?;
    found.list_tokens = n_tokens(&list["tools"].to_string());
    found.outline = times(|| Ok(call(&mut server, peer.outline.0, &outline)?.1))?;
    let wish = (peer.references.1)(&library.folder, &library.used)?;
    found.n_references = (peer.count)(&call(&mut server, peer.references.0, &wish)?.0);
    found.references = times(|| Ok(call(&mut server, peer.references.0, &wish)?.1))?;
    found.memory = tree_mb(server.pid());
    drop(server);

    (peer.prepare)(events)?;
    let mut server = start(world, peer, events)?;
    let wish = (peer.references.1)(events, &EVENTS)?;
    let (text, _) = call(&mut server, peer.references.0, &wish)?;
    found.many_tokens = n_tokens(&text);
    found.many = times(|| Ok(call(&mut server, peer.references.0, &wish)?.1))?;
    Ok(found)
}

fn times(mut once: impl FnMut() -> Result<f64>) -> Result<f64> {
    let samples: Result<Vec<f64>> = (0..N_TIMES).map(|_| once()).collect();
    Ok(median(&samples?))
}

fn start(world: &World, peer: &Peer, folder: &Path) -> Result<Server> {
    let mut command = world.command(&peer.words[0]);
    command.args(&peer.words[1..]).current_dir(folder);
    command.envs(peer.environment.iter().map(|(name, value)| (name, value)));
    Server::start(&mut command)
}

/// The text of an answer, and milliseconds.
fn call(server: &mut Server, tool: &str, arguments: &Value) -> Result<(String, f64)> {
    let begun = Instant::now();
    let result = server.ask("tools/call", json!({ "name": tool, "arguments": arguments }))?;
    let ms = since(begun);
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    ensure!(result["isError"] != true && !text.is_empty(), "{tool}: {result}");
    Ok((text, ms))
}

fn peers(world: &World) -> Result<Vec<Peer>> {
    let tool = |path: &str| place::tool(path).to_string_lossy().into_owned();
    let home = world.scratch().join("serena");
    let pyright = place::tool("servers/pyright/node_modules/.bin/pyright-langserver");
    std::fs::create_dir_all(&home)?;
    let settings = json!({
        "projects": [], "gui_log_window": false, "web_dashboard": false,
        "ls_specific_settings": { "python": { "ls_path": pyright } },
    });
    // JSON is YAML.
    std::fs::write(home.join("serena_config.yml"), settings.to_string())?;
    Ok(vec![
        Peer {
            name: "serena 2.1.0",
            words: vec![
                tool("serena-agent/bin/serena"),
                "start-mcp-server".to_owned(),
                "--agent-interface".to_owned(),
                "tools".to_owned(),
                "--enable-web-dashboard".to_owned(),
                "false".to_owned(),
                "--project-from-cwd".to_owned(),
            ],
            environment: vec![("SERENA_HOME", home)],
            prepare: |folder| {
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                let project = json!({ "project_name": name, "language_servers": ["python"] });
                std::fs::create_dir_all(folder.join(".serena"))?;
                Ok(std::fs::write(folder.join(".serena/project.yml"), project.to_string())?)
            },
            outline: ("get_symbols_overview", |file| json!({ "relative_path": file })),
            references: ("find_referencing_symbols", |_, used| {
                Ok(json!({ "relative_path": used.file, "name_path": used.name }))
            }),
            count: |text| text.matches("\"content_around_reference\"").count(),
        },
        Peer {
            name: "codenav-mcp 0.2.1",
            words: vec![tool("codenav-mcp/bin/codenav-mcp")],
            environment: vec![],
            prepare: |_| Ok(()),
            outline: ("outline", |file| json!({ "file_path": file })),
            references: ("references", |folder, used| {
                let spot = spot(folder, used)?;
                let (line, column) = (spot.line + 1, spot.character + 1);
                Ok(json!({ "file_path": used.file, "line": line, "column": column }))
            }),
            count: |text| {
                let line = text.lines().find(|line| line.contains(" reference(s) in"));
                let number = line.and_then(|line| line.split(' ').next());
                number.and_then(|number| number.parse().ok()).unwrap_or(0)
            },
        },
    ])
}

impl Client {
    /// The tools that are listed.
    fn tools(&self) -> Result<Value> {
        self.runtime.block_on(async {
            let mut caller = Caller::connect(&self.target).await?;
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
            let told = caller.ask(&request).await?;
            Ok(told["tools"].clone())
        })
    }
}
