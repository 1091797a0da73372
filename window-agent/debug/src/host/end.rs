//! How an adapter's process ends, in words.

use std::time::Duration;

use parking_lot::Mutex;

use crate::output::OutputLog;

/// How long an adapter may take to end by itself once its session is over.
pub(super) const EXIT_GRACE: Duration = Duration::from_millis(500);
/// Bytes kept of what an adapter says besides the protocol.
pub(super) const MAX_KEPT_WORDS: usize = 16 * 1024;
/// Last words of an adapter that are told.
const MAX_LAST_WORDS: usize = 400;

/// What became of a process, with the last it said.
pub(super) fn describe_end(
    status: Option<std::process::ExitStatus>,
    last_words: &Mutex<OutputLog>,
) -> String {
    use std::os::unix::process::ExitStatusExt;
    let how = match status {
        None => "closed its connection".to_owned(),
        Some(status) => match (status.code(), status.signal()) {
            // It had no time to say why.
            (_, Some(9)) => return "was killed by signal 9".to_owned(),
            (_, Some(signal)) => format!("was killed by signal {signal}"),
            (Some(code), _) => format!("exited with code {code}"),
            _ => "ended".to_owned(),
        },
    };
    let words = last_words.lock().last_words(MAX_LAST_WORDS);
    if words.is_empty() { how } else { format!("{how}: {words}") }
}
