//! The whole of Baton in one thread: the product's coordinator and agents, clients and a user, in one process under
//! one seed. See docs/simulation.md.
//!
//! | module | what it does |
//! |---|---|
//! | `system` | the clock and the randomness of this process: those of the simulation |
//! | `world` | processes and time |
//! | `parts` | what runs in a process: a coordinator, a window, an order of the user |
//! | `client` | AI clients |
//! | `faults` | what goes wrong, and when |
//! | `oracle` | what must hold |
//! | `runs` | one world, or many |
#![cfg_attr(not(sim), expect(clippy::print_stderr, reason = "it has nothing else to do"))]

#[cfg(sim)]
mod client;
#[cfg(sim)]
mod faults;
#[cfg(sim)]
mod oracle;
#[cfg(sim)]
mod parts;
#[cfg(sim)]
mod runs;
#[cfg(sim)]
mod system;
#[cfg(sim)]
mod world;

#[cfg(sim)]
fn main() -> std::process::ExitCode {
    runs::main()
}

#[cfg(not(sim))]
fn main() -> std::process::ExitCode {
    eprintln!("this program is built by `cargo xtask sim`");
    std::process::ExitCode::FAILURE
}
