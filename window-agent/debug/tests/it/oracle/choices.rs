//! What a generator of programs chooses by: smaller and fewer numbers make a simpler program.

/// Numbers to choose by; endless zeros follow.
pub(crate) struct Choices {
    numbers: std::vec::IntoIter<u16>,
}

impl Choices {
    pub(crate) fn new(numbers: Vec<u16>) -> Self {
        Self { numbers: numbers.into_iter() }
    }

    /// One of `0..n`.
    pub(crate) fn pick(&mut self, n: usize) -> usize {
        usize::from(self.numbers.next().unwrap_or(0)) % n
    }

    pub(crate) fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.pick(all.len())]
    }
}
