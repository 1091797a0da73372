//! Lines for people.

use std::io::Write as _;

/// A line of the answer. A reader that went away is no fault.
pub(super) fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// What happens meanwhile, for people.
pub(super) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
