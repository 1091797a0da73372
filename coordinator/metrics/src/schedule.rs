//! CORE: when the figures are sent.

use std::time::{Duration, Instant};

/// As often as OpenTelemetry's own exporters do.
const EVERY: Duration = Duration::from_secs(60);

/// Where the figures go, and when next.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    endpoint: String,
    next: Option<Instant>,
}

impl Schedule {
    /// Whether they are to be sent now: at once to another collector, so that whoever names one sees whether it works;
    /// never to nobody.
    pub(crate) fn is_due(&mut self, endpoint: &str, now: Instant) -> bool {
        if self.endpoint != endpoint {
            *self = Self { endpoint: endpoint.to_owned(), next: None };
        }
        let is_due = !endpoint.is_empty() && self.next.is_none_or(|next| now >= next);
        if is_due {
            self.next = Some(now + EVERY);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_collector_hears_at_once_and_then_once_a_minute() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        let mut at = |seconds, endpoint| schedule.is_due(endpoint, start + Duration::from_secs(seconds));
        let due: Vec<u64> = (0..200).filter(|second| at(*second, "a")).collect();
        assert_eq!(due, [0, 60, 120, 180]);
        assert!(!at(300, ""), "nobody is there");
        assert!(at(301, "a") && at(302, "b") && !at(303, "b") && at(304, "a"));
    }
}
