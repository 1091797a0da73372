//! No process of a simulation leaves others behind.

use std::io;

/// Does nothing.
#[derive(Debug)]
pub struct Sentinel;

impl Sentinel {
    /// Never fails.
    pub fn spawn(_beginning: &str) -> io::Result<Self> {
        Ok(Self)
    }
}
