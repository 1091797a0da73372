//! `cargo xtask bench`: speed and memory of a release build beside peers; prints tables and writes
//! `docs/performance.md`. Names on the command line choose parts; `code` all of `code-*`.
//!
//! | module | what it measures |
//! |---|---|
//! | `edge` | a trivial tool call: direct, nginx, Baton, mcp-proxy, supergateway |
//! | `handover` | takeover, a killed window, a killed coordinator |
//! | `memory` | idle memory, and the cost of a window and of a client session |
//! | `adapters` | every debug adapter, straight and through Baton |
//! | `flood` | a program that prints 100,000 lines |
//! | `debugging` | first stop and steps, beside raw debugpy; start of an agent |
//! | `code` | outlines, symbols, references beside the servers themselves and other MCP servers |
//! | `dap`, `lsp` | a minimal client of debug adapters, of language servers |
//! | `load` | the load generator |
//! | `peers` | Python beside other MCP servers that debug |
//! | `report` | tables and the document |
//! | `watched` | what a record, raw events and figures cost the edge |

mod adapters;
mod code;
mod dap;
mod debugging;
mod edge;
mod flood;
mod handover;
mod load;
mod lsp;
mod memory;
mod peers;
mod report;
mod watched;

use std::process::ExitCode;

use report::Section;

/// One part: its name and what runs it.
type Part = (&'static str, fn() -> anyhow::Result<Section>);

const PARTS: [Part; 18] = [
    ("edge", edge::run),
    ("edge-watched", watched::run),
    ("takeover", handover::takeover),
    ("window", handover::killed_window),
    ("memory", memory::run),
    ("debug", debugging::run),
    ("agent", debugging::agent_start),
    ("adapters", adapters::run),
    ("peers", peers::run),
    ("flood", flood::run),
    ("code-warm", code::warm::run),
    ("code-cold", code::cold::run),
    ("code-tokens", code::tokens::outlines),
    ("code-references", code::tokens::references),
    ("code-tree", code::tree::run),
    ("code-servers", code::servers::run),
    ("code-peers", code::peers::run),
    ("coordinator", handover::killed_coordinator),
];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted.iter().find(|name| PARTS.iter().all(|(known, _)| !is_of(known, name))) {
        let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        report::say(&format!("there is no part {unknown}; there are {}", names.join(", ")));
        return ExitCode::FAILURE;
    }
    let mut all_good = true;
    for (name, run) in PARTS {
        if !wanted.is_empty() && wanted.iter().all(|wanted| !is_of(name, wanted)) {
            continue;
        }
        report::say(&format!("\nmeasuring: {name}"));
        match run() {
            Ok(section) => {
                report::say(&section.to_markdown());
                if let Err(error) = report::write(name, &section) {
                    report::say(&format!("docs/performance.md was not written: {error:#}"));
                    all_good = false;
                }
            }
            Err(error) => {
                report::say(&format!("{name} could not be measured: {error:#}"));
                all_good = false;
            }
        }
    }
    if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether a part is wanted by its own name or by that of its group, the word before the dash.
fn is_of(part: &str, wanted: &str) -> bool {
    part == wanted || part.split_once('-').is_some_and(|(group, _)| group == wanted)
}
