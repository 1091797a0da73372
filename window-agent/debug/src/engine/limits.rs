//! CORE: whether the processes of a session take more than they may.

use crate::types::control::Limits;

/// Of a limit, when its session is told that it comes near.
const NEAR_PERCENT: u64 = 80;
/// Of a megabyte.
const MB: u64 = 1024 * 1024;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    Fine,
    /// Whoever started it is to be told this, with its name before it.
    Near(String),
    /// It is to be ended, for this reason.
    Over(String),
}

/// From where on a limit is near.
pub(crate) fn near_of(limit: u64) -> u64 {
    limit.saturating_mul(NEAR_PERCENT) / 100
}

/// What is to be done about a session whose processes take so much.
pub(crate) fn judge(limits: &Limits, bytes: u64, n_processes: u64) -> Verdict {
    let mb = |bytes: u64| bytes.div_ceil(MB);
    let memory = limits.memory.map(|limit| {
        let (taken, allowed) = (format!("{} MB of memory", mb(bytes)), format!("{} MB", mb(limit)));
        (bytes, limit, taken, allowed, "session_memory_mb")
    });
    let processes = limits.processes.map(|limit| {
        let (taken, allowed) = (format!("{n_processes} processes"), limit.to_string());
        (n_processes, limit, taken, allowed, "session_processes")
    });
    let mut near = None;
    for (number, limit, taken, allowed, setting) in memory.into_iter().chain(processes) {
        if number > limit {
            return Verdict::Over(format!("its program took {taken} (limit {allowed}, setting {setting})"));
        }
        if number > near_of(limit) {
            near.get_or_insert_with(|| {
                format!("takes {taken}, and is ended when it takes more than {allowed} (setting {setting})")
            });
        }
    }
    near.map_or(Verdict::Fine, Verdict::Near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_near_is_told_and_what_is_over_is_ended() {
        let limits = Limits { memory: Some(1000 * MB), processes: Some(200), ..Limits::default() };
        assert_eq!(judge(&limits, 800 * MB, 160), Verdict::Fine);
        assert_eq!(judge(&Limits::default(), u64::MAX, u64::MAX), Verdict::Fine);
        let near = |text: &str| Verdict::Near(text.to_owned());
        assert_eq!(
            judge(&limits, 900 * MB, 3),
            near(
                "takes 900 MB of memory, and is ended when it takes more than 1000 MB (setting session_memory_mb)"
            )
        );
        assert_eq!(
            judge(&limits, 1, 161),
            near("takes 161 processes, and is ended when it takes more than 200 (setting session_processes)")
        );
        let over = |text: &str| Verdict::Over(format!("its program took {text}"));
        assert_eq!(
            judge(&limits, 1001 * MB, 1),
            over("1001 MB of memory (limit 1000 MB, setting session_memory_mb)")
        );
        assert_eq!(
            judge(&limits, 900 * MB, 201),
            over("201 processes (limit 200, setting session_processes)")
        );
    }
}
