//! The program `baton`: the coordinator and its command line.

use std::process::ExitCode;

/// A call allocates some dozen small pieces; this allocator takes a tenth off its way through the edge.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    baton_coordinator::cli::main()
}
