//! One entry for libFuzzer: the named target, under a bound on what it allocates.

use std::sync::OnceLock;

use baton_link::fuzz::Target;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// What a target may take beside a multiple of its input: a runtime, a folder, tables of the libraries.
const FIXED_BYTES: usize = 4 * 1024 * 1024;
/// Bytes taken for each byte of input.
const PER_BYTE: usize = 1024;

static TARGET: OnceLock<Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        TARGET.get_or_init(chosen);
    },
    |bytes: &[u8]| {
        let (name, run) = TARGET.get_or_init(chosen);
        let before = ALLOCATED.current_usage();
        ALLOCATED.reset_peak_usage();
        run(bytes);
        let taken = ALLOCATED.peak_usage().saturating_sub(before);
        let bound = FIXED_BYTES + PER_BYTE * bytes.len();
        assert!(taken <= bound, "{name}: {} bytes of input took {taken} bytes of memory", bytes.len());
    }
);

fn chosen() -> Target {
    let wanted = std::env::var("BATON_FUZZ").unwrap_or_default();
    let all = [
        baton_link::fuzz::TARGETS,
        baton_agent_base::fuzz::TARGETS,
        baton_agent_debug::fuzz::TARGETS,
        baton_client_files::fuzz::TARGETS,
        baton_daemon::fuzz::TARGETS,
        baton_edge::fuzz::TARGETS,
        baton_mcp::fuzz::TARGETS,
        baton_agent_code::fuzz::TARGETS,
    ];
    let mut all = all.into_iter().flatten();
    *all.find(|(name, _)| *name == wanted).unwrap_or_else(|| panic!("no target is named {wanted:?}"))
}
