//! CORE: what our ids of frames, variables and breakpoints count from.

/// What the ids of one run of an agent count from. Two runs count from numbers that lie apart; from 0 on all ids are
/// one's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Base(i64);

/// How far apart two bases are at least. A run that gives out more ids than this goes on into the next one's, which
/// one of a million others has.
const SPAN: i64 = 1_000;
/// Bases there are: an id has nine digits then, which a model reads as three tokens.
const N_BASES: u32 = 999_999;

impl Base {
    /// That of the run whose sessions' ids begin with these hexadecimal digits.
    pub(crate) fn of(prefix: &str) -> Self {
        let number = u32::from_str_radix(prefix, 16).unwrap_or_default();
        Self((1 + i64::from(number % N_BASES)) * SPAN)
    }

    /// The number before the first id.
    pub(crate) fn before_first(self) -> i64 {
        self.0
    }

    /// Whether an id that this run did not give out is one of another run.
    pub(crate) fn is_of_another(self, id: i64) -> bool {
        let is_any_runs = (SPAN..SPAN * (i64::from(N_BASES) + 1)).contains(&id);
        self.0 > 0 && is_any_runs && !(self.0..self.0 + SPAN).contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_told_apart_and_fit_into_nine_digits() {
        let (first, last) = (Base::of("00000000"), Base::of(&format!("{:08x}", N_BASES - 1)));
        assert_eq!((first.before_first(), last.before_first()), (1_000, 999_999_000));
        assert!(first.is_of_another(999_999_999) && last.is_of_another(1_000));
        assert!(!first.is_of_another(1_999) && first.is_of_another(2_000));
        assert!(!Base::default().is_of_another(850_029_001), "from 0 on all are one's own");
    }
}
