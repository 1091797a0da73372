//! How a file of the state folder is written.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Writes a file that is not there yet, for this user alone, and waits until the disk has it.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW.bits() as i32;
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
