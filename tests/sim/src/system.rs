//! The clock and the randomness of this process: those of the simulation, for every library that asks the C library.
//!
//! A program's own definitions come before the C library's, also for those who look them up by name. The simulation has
//! one thread; another one, and this one outside a world, gets what the system has.
#![expect(unsafe_code, reason = "functions of the C library are replaced")]

use std::cell::Cell;
use std::time::Duration;

use baton_link::sim;

/// The wall clock when a simulation begins, since 1970: 2030.
const WALL: Duration = Duration::from_secs(1_893_456_000);
/// The clock of the machine when a simulation begins.
const UP: Duration = Duration::from_secs(1_000);

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    /// By how much somebody has set the wall clock, in seconds.
    static WALL_SET: Cell<i64> = const { Cell::new(0) };
}

/// From now on this thread has the clock and the randomness of the simulation.
pub(crate) fn begin() {
    IS_ON.set(true);
}

/// The clock of the system again.
pub(crate) fn end() {
    IS_ON.set(false);
}

/// Sets the wall clock, by so many seconds from where it would be.
pub(crate) fn set_wall(by: i64) {
    WALL_SET.set(by);
}

/// Replaces `clock_gettime(2)`.
///
/// # Safety
/// As for the original.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn clock_gettime(
    clock: libc::clockid_t,
    time: *mut libc::timespec,
) -> libc::c_int {
    if !IS_ON.get() {
        // SAFETY: passed on as it came.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) } as libc::c_int;
    }
    let (since, set) = if clock == libc::CLOCK_REALTIME { (WALL, WALL_SET.get()) } else { (UP, 0) };
    let now = since + sim::now();
    // SAFETY: the caller gives a place for the answer.
    unsafe {
        (*time).tv_sec = now.as_secs() as libc::time_t + set;
        (*time).tv_nsec = libc::c_long::from(now.subsec_nanos() as i32);
    }
    0
}

/// Replaces `getrandom(2)`.
///
/// # Safety
/// As for the original.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn getrandom(buffer: *mut u8, len: usize, flags: libc::c_uint) -> isize {
    if !IS_ON.get() {
        // SAFETY: passed on as it came.
        return unsafe { libc::syscall(libc::SYS_getrandom, buffer, len, flags) } as isize;
    }
    for idx in 0..len {
        // SAFETY: the caller gives a place for `len` bytes.
        unsafe { *buffer.add(idx) = sim::dice() as u8 };
    }
    len as isize
}
