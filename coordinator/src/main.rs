//! The program `baton`: the coordinator and its command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    baton_coordinator::cli::main()
}
