//! What the fuzzer tries here. Bytes in; a panic says that a property is broken.
//!
//! `heads`: heads of HTTP requests, as the guard and the endpoint see them, compared with the lines of the head.

mod heads;
#[cfg(test)]
#[path = "../../../tests/fuzz/oracle/replay.rs"]
mod replay;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: &[Target] = &[("heads", heads::run)];

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_holds() {
        super::replay::replay(super::TARGETS);
    }
}
