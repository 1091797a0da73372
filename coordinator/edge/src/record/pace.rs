//! CORE: how many calls of a second are recorded.

/// Counts what came in the second that runs.
#[derive(Debug, Default)]
pub(super) struct Pace {
    second: u64,
    n_taken: u32,
}

impl Pace {
    /// Whether one more may be taken at that time, in milliseconds, when so many are in a second. A clock that was set
    /// back begins another second.
    pub(super) fn take(&mut self, now_ms: u64, max_per_second: u32) -> bool {
        let second = now_ms / 1_000;
        if second != self.second {
            *self = Self { second, n_taken: 0 };
        }
        let has_room = self.n_taken < max_per_second;
        self.n_taken += u32::from(has_room);
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_room_for_so_many() {
        let mut pace = Pace::default();
        let taken = |pace: &mut Pace, now_ms| (0..5).filter(|_| pace.take(now_ms, 3)).count();
        assert_eq!([7_000, 7_999, 8_000, 6_500].map(|now_ms| taken(&mut pace, now_ms)), [3, 0, 3, 3]);
    }
}
