//! `cargo xtask bench`: speed and memory of a release build beside peers; prints tables and writes
//! `docs/performance.md`. Names on the command line choose parts.
//!
//! | module | what it measures |
//! |---|---|
//! | `edge` | a trivial tool call: direct, nginx, Baton, mcp-proxy, supergateway |
//! | `handover` | takeover, a killed window, a killed coordinator |
//! | `memory` | idle memory, and the cost of a window and of a client session |
//! | `adapters` | every debug adapter, straight and through Baton |
//! | `flood` | a program that prints 100,000 lines |
//! | `debugging` | first stop and steps, beside raw debugpy; start of an agent |
//! | `dap` | a minimal client of debug adapters |
//! | `load` | the load generator |
//! | `peers` | Python beside other MCP servers that debug |
//! | `report` | tables and the document |

mod adapters;
mod dap;
mod debugging;
mod edge;
mod flood;
mod handover;
mod load;
mod memory;
mod peers;
mod report;

use std::process::ExitCode;

use report::Section;

/// One part: its name and what runs it.
type Part = (&'static str, fn() -> anyhow::Result<Section>);

const PARTS: [Part; 10] = [
    ("edge", edge::run),
    ("takeover", handover::takeover),
    ("window", handover::killed_window),
    ("memory", memory::run),
    ("debug", debugging::run),
    ("agent", debugging::agent_start),
    ("adapters", adapters::run),
    ("peers", peers::run),
    ("flood", flood::run),
    ("coordinator", handover::killed_coordinator),
];

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted.iter().find(|name| PARTS.iter().all(|(known, _)| known != name)) {
        let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        report::say(&format!("there is no part {unknown}; there are {}", names.join(", ")));
        return ExitCode::FAILURE;
    }
    let mut all_good = true;
    for (name, run) in PARTS {
        if !wanted.is_empty() && wanted.iter().all(|one| one != name) {
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
