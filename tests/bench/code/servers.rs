//! The servers of one language beside each other, without Baton: what they find, how fast, with how much memory.
//! The first of a language in Baton's table is its default, and has to be the best.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use baton_tests::place;
use baton_tests::process::command;
use baton_tests::world::World;
use serde_json::{Value, json};

use super::projects::{self, printed};
use super::{Used, spot, straight, tree_mb, world};
use crate::adapters::{ms, since};
use crate::lsp::places;
use crate::report::{Section, median, say};

/// How often an outline and each symbol's references are asked for.
const N_TIMES: usize = 15;
/// No further references for so long: it has read the project.
const QUIET: Duration = Duration::from_millis(700);

/// A tree of one language with symbols whose names stand for nothing else in it.
struct Field {
    language: &'static str,
    what: &'static str,
    folder: PathBuf,
    outlined: &'static str,
    used: &'static [Used],
    servers: &'static [&'static str],
    oracle: fn(&Path, &[&str]) -> Result<Value>,
}

const PYTHON: &[&str] = &["ty", "basedpyright", "pyright"];
const TYPESCRIPT: &[&str] = &["typescript", "typescript-language-server"];

const IN_LIBRARY: &[Used] = &[
    Used { file: "argparse.py", start: "class ArgumentParser(", name: "ArgumentParser" },
    Used { file: "argparse.py", start: "class HelpFormatter(", name: "HelpFormatter" },
    Used { file: "collections/__init__.py", start: "def namedtuple(", name: "namedtuple" },
];
const IN_PACKAGE: &[Used] = &[
    Used { file: "mcp/client/session.py", start: "class ClientSession(", name: "ClientSession" },
    Used { file: "mcp/shared/message.py", start: "class SessionMessage:", name: "SessionMessage" },
    Used { file: "mcp/shared/exceptions.py", start: "class McpError(", name: "McpError" },
];
const IN_RXJS: &[Used] = &[
    Used { file: "src/internal/Subscriber.ts", start: "export class Subscriber<", name: "Subscriber" },
    Used {
        file: "src/internal/operators/OperatorSubscriber.ts",
        start: "export class OperatorSubscriber<",
        name: "OperatorSubscriber",
    },
    Used {
        file: "src/internal/observable/innerFrom.ts",
        start: "export function innerFrom<",
        name: "innerFrom",
    },
];

/// What one server does on one tree.
struct Found {
    n_found: usize,
    n_wanted: usize,
    /// Places where no name of the program stands, such as texts.
    n_beyond: usize,
    ready: f64,
    outline: f64,
    references: f64,
    memory: f64,
}

pub(crate) fn run() -> Result<Section> {
    let world = world();
    let fields = fields(&world)?;
    let mut rows = Vec::new();
    let mut by_server: BTreeMap<(&str, &str), (usize, f64)> = BTreeMap::new();
    for field in &fields {
        let names: Vec<&str> = field.used.iter().map(|used| used.name).collect();
        let known = lines_of(&(field.oracle)(&field.folder, &names)?)?;
        for server in field.servers {
            say(&format!("{server} on {}", field.what));
            let found = measure(&world, field, server, &known).with_context(|| (*server).to_owned())?;
            let sum = by_server.entry((field.language, server)).or_default();
            *sum = (sum.0 + found.n_found, sum.1 + found.references);
            rows.push(vec![
                (*server).to_owned(),
                field.what.to_owned(),
                format!("{} of {}", found.n_found, found.n_wanted),
                found.n_beyond.to_string(),
                ms(found.ready),
                ms(found.outline),
                ms(found.references),
                format!("{:.0} MB", found.memory),
            ]);
        }
    }
    let mut notes = vec![
        format!("Straight, with the options of Baton's table; {N_TIMES} times each, medians in ms. Ready is the start to the first outline; the memory (RSS) is that of all processes of the server."),
        "Found are lines with references to three symbols each, of those where the language's own parser sees the name. Beyond them are lines where it stands in a text.".to_owned(),
    ];
    for (language, servers) in [("Python", PYTHON), ("TypeScript", TYPESCRIPT)] {
        let best = servers.iter().copied().min_by(|one, other| {
            let of = |server: &str| by_server.get(&(language, server)).copied().unwrap_or_default();
            let ((n_one, ms_one), (n_other, ms_other)) = (of(one), of(other));
            n_other.cmp(&n_one).then(ms_one.total_cmp(&ms_other))
        });
        let best = best.unwrap_or_default();
        let default = default_of(language)?;
        let word = if best == default { "kept" } else { "MISSED" };
        notes.push(format!("{language}: {best} finds most, and is the fastest of those that do; the default is {default}: {word}."));
    }
    Ok(Section {
        title: "Reading code: servers of one language",
        notes,
        columns: vec![
            "server",
            "tree",
            "references found",
            "beyond",
            "ready",
            "outline",
            "references",
            "memory",
        ],
        rows,
    })
}

fn fields(world: &World) -> Result<Vec<Field>> {
    let package = world.folder("package");
    let script = "import mcp, os; print(os.path.dirname(mcp.__file__))";
    let from = printed(command(place::tool("mcp1/bin/python")).args(["-c", script]))?;
    projects::copy(Path::new(&from), &package.join("mcp"), "py", &[])?;
    Ok(vec![
        Field {
            language: "Python",
            what: "CPython's library",
            folder: projects::library(world)?.folder,
            outlined: "argparse.py",
            used: IN_LIBRARY,
            servers: PYTHON,
            oracle: in_python,
        },
        Field {
            language: "Python",
            what: "the package `mcp`",
            folder: package,
            outlined: "mcp/client/session.py",
            used: IN_PACKAGE,
            servers: PYTHON,
            oracle: in_python,
        },
        Field {
            language: "TypeScript",
            what: "rxjs",
            folder: projects::rxjs(world)?.folder,
            outlined: "src/internal/Observable.ts",
            used: IN_RXJS,
            servers: TYPESCRIPT,
            oracle: in_typescript,
        },
    ])
}

/// The first server of the table that serves the language.
fn default_of(language: &str) -> Result<String> {
    let text = std::fs::read_to_string(place::root().join("window-agent/code/src/servers.json"))?;
    let table: Vec<Value> = serde_json::from_str(&text)?;
    let extension = if language == "Python" { "py" } else { "ts" };
    let first = table.iter().find(|entry| !entry["languages"][extension].is_null());
    let name = first.and_then(|entry| entry["name"].as_str());
    Ok(name.with_context(|| format!("no server of the table serves {language}"))?.to_owned())
}

fn measure(world: &World, field: &Field, server: &str, known: &Lines) -> Result<Found> {
    let outlined = field.folder.join(field.outlined);
    let begun = Instant::now();
    let mut server = straight(world, server, &field.folder)?;
    server.open(&outlined)?;
    server.outline(&outlined)?;
    let ready = since(begun);
    let mut outlines = Vec::new();
    for _ in 0..N_TIMES {
        let begun = Instant::now();
        server.outline(&outlined)?;
        outlines.push(since(begun));
    }
    let mut found = Found {
        n_found: 0,
        n_wanted: 0,
        n_beyond: 0,
        ready,
        outline: median(&outlines),
        references: 0.0,
        memory: 0.0,
    };
    let mut references = Vec::new();
    for used in field.used {
        let spot = spot(&field.folder, used)?;
        if spot.file != outlined {
            server.open(&spot.file)?;
        }
        let all = server.settled_references(&spot, QUIET)?;
        let told: BTreeSet<(PathBuf, u64)> =
            places(&all).into_iter().map(|(file, line, _)| (file, line + 1)).collect();
        let wanted = known.get(used.name).with_context(|| format!("{} is nowhere", used.name))?;
        ensure!(wanted.len() > 1, "{} is used nowhere", used.name);
        found.n_wanted += wanted.len();
        found.n_found += wanted.intersection(&told).count();
        found.n_beyond += told.difference(wanted).count();
        for _ in 0..N_TIMES {
            let begun = Instant::now();
            server.references(&spot)?;
            references.push(since(begun));
        }
    }
    found.references = median(&references);
    found.memory = tree_mb(server.pid());
    Ok(found)
}

/// Files and lines, from 1, by name.
type Lines = BTreeMap<String, BTreeSet<(PathBuf, u64)>>;

fn lines_of(told: &Value) -> Result<Lines> {
    let mut lines = Lines::new();
    for one in told.as_array().context("the oracle tells a list")? {
        let name = one[0].as_str().unwrap_or_default().to_owned();
        let place = (PathBuf::from(one[1].as_str().unwrap_or_default()), one[2].as_u64().unwrap_or_default());
        lines.entry(name).or_default().insert(place);
    }
    Ok(lines)
}

/// Every place of some names, as Python's own tokenizer sees it.
fn in_python(folder: &Path, names: &[&str]) -> Result<Value> {
    const SCRIPT: &str = "
import json, pathlib, sys, tokenize
found = []
for path in pathlib.Path(sys.argv[1]).rglob('*.py'):
    with tokenize.open(path) as text:
        for token in tokenize.generate_tokens(text.readline):
            if token.type == tokenize.NAME and token.string in sys.argv[2:]:
                found.append([token.string, str(path), token.start[0]])
print(json.dumps(found))
";
    let mut python = command(place::python());
    python.args(["-c", SCRIPT]).arg(folder).args(names);
    Ok(serde_json::from_str(&printed(&mut python)?)?)
}

/// The same, as TypeScript's own parser sees it.
fn in_typescript(folder: &Path, names: &[&str]) -> Result<Value> {
    const SCRIPT: &str = "
const [library, folder, names] = JSON.parse(process.argv[1]);
const ts = require(library);
const fs = require('fs'), found = [];
for (const name of fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.ts'))) {
  const path = folder + '/' + name;
  const file = ts.createSourceFile(path, fs.readFileSync(path, 'utf8'), ts.ScriptTarget.Latest);
  const look = (node) => {
    if (ts.isIdentifier(node) && names.includes(node.text)) {
      found.push([node.text, path, file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1]);
    }
    ts.forEachChild(node, look);
  };
  look(file);
}
console.log(JSON.stringify(found));
";
    let library = place::tool("servers/typescript-language-server/node_modules/typescript/lib/typescript.js");
    let wish = json!([library, folder, names]).to_string();
    Ok(serde_json::from_str(&printed(command(place::node()).args(["-e", SCRIPT, &wish]))?)?)
}
