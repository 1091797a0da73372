//! Where a process of Baton spends its processor time: a profile of itself, taken for a while on request.
//!
//! The system interrupts the process 99 times in each second of processor time that it spends, and whoever runs then
//! notes the functions that led there. Until somebody asks nothing of this is there: no timer, no handler, no memory.
//!
//! Names of functions are all that is in a profile: no argument, no value, no path of a project.

use std::sync::OnceLock;
use std::time::Duration;

use baton_link::blocking;
use baton_proto::control::{MAX_PROFILE_S, Profile};
use pprof::protos::Message as _;
use pprof::{ProfilerGuard, ProfilerGuardBuilder};
use tokio::sync::Semaphore;

/// Samples in a second of processor time: not in step with what happens every ten milliseconds.
const FREQUENCY: i32 = 99;
/// Where the names of functions cannot be told in the middle of an interrupt.
const LEFT_OUT: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// Another one is being taken.
    #[error("a profile of this process is being taken already")]
    Busy,
    /// The system does not let us.
    #[error("cannot take a profile: {0}")]
    Refused(String),
}

/// Takes a profile of this process, for at least one second and at most five minutes.
pub async fn take(seconds: u64) -> Result<Profile, ProfileError> {
    static ONE: OnceLock<Semaphore> = OnceLock::new();
    let _turn = ONE.get_or_init(|| Semaphore::new(1)).try_acquire().map_err(|_| ProfileError::Busy)?;
    let refused = |error: &dyn std::fmt::Display| ProfileError::Refused(error.to_string());
    let seconds = seconds.clamp(1, MAX_PROFILE_S);
    let guard = ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&LEFT_OUT).build();
    let guard = guard.map_err(|error| refused(&error))?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    // Functions are looked up in the program's file, which takes a while.
    let written = blocking::run(move || write(&guard, seconds)).await;
    written.map_err(|error| refused(&error))?.map_err(|error| refused(&error))
}

fn write(guard: &ProfilerGuard<'_>, seconds: u64) -> pprof::Result<Profile> {
    let report = guard.report().build()?;
    let n_samples = report.data.values().map(|n| u64::try_from(*n).unwrap_or_default()).sum();
    let mut svg = Vec::new();
    let mut pprof = Vec::new();
    if n_samples > 0 {
        report.flamegraph(&mut svg)?;
        // A vector takes whatever there is to write.
        let _ = report.pprof()?.encode(&mut pprof);
    }
    let svg = String::from_utf8_lossy(&svg).into_owned();
    Ok(Profile { seconds, n_samples, svg, pprof })
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[inline(never)]
    fn work_of_the_test(is_over: &AtomicBool) {
        let mut sum = 0_u64;
        while !is_over.load(Ordering::Relaxed) {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
    }

    #[tokio::test]
    async fn a_profile_names_the_function_that_worked_and_only_one_is_taken_at_once() {
        let is_over = Arc::new(AtomicBool::new(false));
        let shared = is_over.clone();
        let worker = std::thread::spawn(move || work_of_the_test(&shared));
        let (profile, other) = tokio::join!(take(1), take(1));
        is_over.store(true, Ordering::Relaxed);
        worker.join().unwrap();
        assert_eq!(other, Err(ProfileError::Busy));
        let profile = profile.unwrap();
        assert!(profile.n_samples > 0, "a second of work leaves samples");
        assert!(profile.svg.contains("work_of_the_test"), "{}", profile.svg);
        let pprof = profile.pprof;
        assert!(pprof.windows(16).any(|bytes| bytes == b"work_of_the_test"), "{} bytes", pprof.len());
    }
}
