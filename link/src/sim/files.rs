//! How a file of the state folder is written on a simulated machine, whose disk can be full.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::sim;

/// Writes a file that is not there yet; of one that has no room, its first half.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let n_fitting = if sim::is_disk_full() { bytes.len() / 2 } else { bytes.len() };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&bytes[..n_fitting])?;
    if n_fitting < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}
