//! The fuzz targets under libFuzzer; `cargo xtask explore fuzz` builds and starts it. `BATON_FUZZ` names the target.
#![cfg_attr(feature = "libfuzzer", no_main)]

#[cfg(feature = "libfuzzer")]
mod fuzzer;

#[cfg(not(feature = "libfuzzer"))]
#[expect(clippy::print_stderr, reason = "it talks to a person")]
fn main() {
    eprintln!("Start the fuzzer with `cargo xtask explore fuzz`.");
    std::process::exit(2);
}
