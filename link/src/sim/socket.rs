//! The sockets of a simulated machine: their names are real files, their connections are not.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::home::{Home, random_hex};
use crate::net::{self, UnixStream};
use crate::sim;

/// The coordinator: `/v1` and `/mcp`.
pub const COORDINATOR: &str = "coordinator";

/// The process that keeps the coordinator's port.
pub const PORT_HOLDER: &str = "port";

/// What the names of the sockets of windows begin with.
pub const WINDOW_PREFIX: &str = "w-";

/// Listens on a socket of that name, in place of whatever had the name before.
pub fn listen(home: &Home, name: &str) -> io::Result<UnixListener> {
    let folder = home.sockets_path();
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let temporary = folder.join(format!(".{}", random_hex()?));
    let file = File::create_new(&temporary)?;
    std::fs::rename(&temporary, folder.join(name))?;
    let place = identity(home, name).ok_or(io::ErrorKind::NotFound)?;
    net::open_door(&folder.join(name), place);
    Ok(UnixListener::from(OwnedFd::from(file)))
}

/// The listener that a predecessor leaves.
pub fn adopt(left: OwnedFd) -> io::Result<UnixListener> {
    Ok(left.into())
}

/// Connects to the socket of that name.
pub async fn connect(home: &Home, name: &str) -> io::Result<UnixStream> {
    let place = identity(home, name).ok_or(io::ErrorKind::NotFound)?;
    net::connect_to(&home.sockets_path().join(name), place)
}

/// Which file has the name now: a later one of the same name is another.
pub fn identity(home: &Home, name: &str) -> Option<(u64, u64)> {
    identity_of(&home.sockets_path().join(name))
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Removes a socket that is ours to remove. A process that was killed removes nothing.
pub fn remove(home: &Home, name: &str) {
    if !sim::is_dying() {
        let _ = std::fs::remove_file(home.sockets_path().join(name));
    }
}

/// Removes the sockets of windows whose agents were killed: nobody listens there any more.
pub fn sweep(home: &Home) {
    let mut names: Vec<_> = std::fs::read_dir(home.sockets_path()).into_iter().flatten().flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    for entry in names {
        let is_window = entry.file_name().to_str().is_some_and(|name| name.starts_with(WINDOW_PREFIX));
        let place = identity_of(&entry.path());
        if is_window && place.is_some_and(|place| !net::is_open(&entry.path(), place)) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
