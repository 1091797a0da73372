//! The arguments of the tool `debug` as a type.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::action::Action;
use crate::tools::Object;

/// Seconds that a call waits when the client does not say.
const DEFAULT_TIMEOUT_S: f64 = 30.0;
/// Fewest and most seconds.
const TIMEOUT_S: (f64, f64) = (5.0, 300.0);
/// How long a program that was started may run before the answer says that it runs, when the client does not say.
const FIRST_STOP: Duration = Duration::from_secs(5);

/// Everything an action can be given; [`super::action::check`] says what each needs.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Arguments {
    pub(super) action: Action,
    pub(super) session: Option<String>,
    pub(super) timeout: Option<f64>,

    pub(super) program: Option<String>,
    pub(super) args: Option<Vec<String>>,
    pub(super) env: Option<BTreeMap<String, String>>,
    pub(super) stop_on_entry: Option<bool>,
    pub(super) adapter: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) pid: Option<u32>,
    pub(super) port: Option<u16>,
    pub(super) host: Option<String>,

    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
    pub(super) function: Option<String>,
    pub(super) condition: Option<String>,
    pub(super) hit_condition: Option<String>,
    pub(super) log_message: Option<String>,
    pub(super) instruction_reference: Option<String>,
    pub(super) name: Option<String>,
    pub(super) data_id: Option<String>,
    pub(super) access_type: Option<String>,

    pub(super) expression: Option<String>,
    pub(super) context: Option<String>,
    pub(super) frame_id: Option<i64>,
    pub(super) scope_id: Option<i64>,
    pub(super) variable_ref: Option<i64>,
    pub(super) thread_id: Option<i64>,
    pub(super) levels: Option<u32>,
    pub(super) start: Option<usize>,
    pub(super) max_length: Option<usize>,
    pub(super) since: Option<u64>,
    pub(super) category: Option<String>,

    pub(super) memory_reference: Option<String>,
    pub(super) instruction_count: Option<i64>,
    pub(super) instruction_offset: Option<i64>,
    pub(super) resolve_symbols: Option<bool>,
    pub(super) offset: Option<i64>,
    pub(super) count: Option<usize>,
    pub(super) data: Option<String>,
    pub(super) allow_partial: Option<bool>,
    pub(super) start_module: Option<i64>,
    pub(super) module_count: Option<i64>,
    pub(super) command: Option<String>,
    pub(super) arguments: Option<Object>,
}

impl Arguments {
    /// How long the call may wait: clamped, never refused.
    pub(super) fn timeout(&self) -> Duration {
        let (min, max) = TIMEOUT_S;
        Duration::from_secs_f64(self.timeout.unwrap_or(DEFAULT_TIMEOUT_S).clamp(min, max))
    }

    /// How long a start may wait for the first stop; one that was asked for is waited for.
    pub(super) fn first_wait(&self, stops_at_entry: bool) -> Duration {
        if stops_at_entry || self.timeout.is_some() { self.timeout() } else { FIRST_STOP }
    }
}

/// A text that says something; some clients send an empty one for an argument they leave out.
pub(super) fn given(text: &Option<String>) -> Option<String> {
    text.as_ref().filter(|text| !text.trim().is_empty()).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_timeout_is_clamped() {
        let timeout = |given: serde_json::Value| {
            let arguments: Arguments =
                serde_json::from_value(json!({"action": "continue", "timeout": given})).unwrap();
            arguments.timeout().as_secs_f64()
        };
        assert_eq!(timeout(json!(null)), 30.0);
        assert_eq!(timeout(json!(-1)), 5.0);
        assert_eq!(timeout(json!(7.5)), 7.5);
        assert_eq!(timeout(json!(1e300)), 300.0);
    }

    #[test]
    fn a_timeout_that_is_given_counts_for_the_first_stop() {
        let first_wait = |given: serde_json::Value, stops_at_entry| {
            let arguments: Arguments =
                serde_json::from_value(json!({"action": "launch", "timeout": given})).unwrap();
            arguments.first_wait(stops_at_entry).as_secs_f64()
        };
        assert_eq!((first_wait(json!(null), false), first_wait(json!(null), true)), (5.0, 30.0));
        assert_eq!((first_wait(json!(60), false), first_wait(json!(60), true)), (60.0, 60.0));
    }
}
