//! Unix sockets in the state folder: nobody but this user can reach them, and nobody can take their place.
//!
//! They lie in `sockets/` of the state folder, whose mode is 0700.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::home::{Home, random_hex};
use crate::net::UnixStream;
use rustix::fs::OFlags;

/// The coordinator: `/v1` and `/mcp`.
pub const COORDINATOR: &str = "coordinator";

/// The process that keeps the coordinator's port.
pub const PORT_HOLDER: &str = "port";

/// What the names of the sockets of windows begin with.
pub const WINDOW_PREFIX: &str = "w-";

/// Longest path of a socket that every system takes.
const MAX_PATH_LEN: usize = 100;

/// Connections that wait until they are accepted: agents of 500 windows come back at the same moment.
const BACKLOG: u32 = 1024;

/// Listens on a socket of that name, in place of whatever had the name before.
///
/// Whoever connects meets the old one or the new one: the name is never free. The listener does not block.
pub fn listen(home: &Home, name: &str) -> io::Result<UnixListener> {
    let folder = home.sockets_path();
    // Never the state folder itself: whoever removed that wants it gone, until somebody starts anew.
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let temporary = format!(".{}", random_hex()?);
    let place = Place::of(&folder, &temporary)?;
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK,
        None,
    )?;
    let bound = rustix::net::SocketAddrUnix::new(&place.path)
        .and_then(|address| rustix::net::bind(&socket, &address))
        .and_then(|()| rustix::net::listen(&socket, i32::try_from(BACKLOG).unwrap_or(i32::MAX)))
        .map_err(io::Error::from)
        // The folder keeps others out; this is for one that somebody opened.
        .and_then(|()| std::fs::set_permissions(folder.join(&temporary), PermissionsExt::from_mode(0o600)))
        .and_then(|()| std::fs::rename(folder.join(&temporary), folder.join(name)));
    if let Err(error) = bound {
        // It may not even be there; the first error is the one that counts.
        let _ = std::fs::remove_file(folder.join(&temporary));
        return Err(error);
    }
    Ok(socket.into())
}

/// The listener that a predecessor leaves. The kernel tells whoever connects which process listens: from now on it is
/// this one.
pub fn adopt(left: OwnedFd) -> io::Result<UnixListener> {
    rustix::net::listen(&left, i32::try_from(BACKLOG).unwrap_or(i32::MAX))?;
    Ok(left.into())
}

/// Connects to the socket of that name.
pub async fn connect(home: &Home, name: &str) -> io::Result<UnixStream> {
    let place = Place::of(&home.sockets_path(), name)?;
    UnixStream::connect(&place.path).await
}

/// Which file has the name now: a later one of the same name is another.
pub fn identity(home: &Home, name: &str) -> Option<(u64, u64)> {
    let found = std::fs::symlink_metadata(home.sockets_path().join(name)).ok()?;
    Some((found.dev(), found.ino()))
}

/// Removes a socket that is ours to remove; a name that is gone is as good.
pub fn remove(home: &Home, name: &str) {
    let _ = std::fs::remove_file(home.sockets_path().join(name));
}

/// Removes the sockets of windows whose agents were killed: nobody listens there any more.
pub fn sweep(home: &Home) {
    let folder = home.sockets_path();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(WINDOW_PREFIX)) else { continue };
        let Ok(place) = Place::of(&folder, name) else { continue };
        let looked = std::os::unix::net::UnixStream::connect(&place.path);
        if looked.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            remove(home, name);
        }
    }
}

/// A path that fits into the address of a socket.
struct Place {
    path: PathBuf,
    /// Keeps the short path good.
    _folder: Option<File>,
}

impl Place {
    fn of(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(name);
        if path.as_os_str().len() <= MAX_PATH_LEN {
            return Ok(Self { path, _folder: None });
        }
        let flags = (OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC).bits() as i32;
        let folder = OpenOptions::new().read(true).custom_flags(flags).open(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        Ok(Self { path, _folder: Some(folder) })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn sockets_that_nobody_listens_on_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path().join("state")).unwrap();
        let names = ["w-lives", "w-killed", COORDINATOR];
        let [lives, killed, coordinator] = names.map(|name| listen(&home, name).unwrap());
        drop((killed, coordinator));
        sweep(&home);
        let is_there = names.map(|name| identity(&home, name).is_some());
        assert_eq!(is_there, [true, false, true], "those of windows alone");
        drop(lives);
    }

    #[tokio::test]
    async fn a_name_leads_to_the_newest_listener_however_long_its_path() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["short".to_owned(), "long".repeat(40)] {
            let home = Home::open(dir.path().join(folder)).unwrap();
            assert!(connect(&home, "x").await.is_err());
            let first = listen(&home, "x").unwrap();
            let second = tokio::net::UnixListener::from_std(listen(&home, "x").unwrap()).unwrap();
            let mut client = connect(&home, "x").await.unwrap();
            let (mut served, _) = second.accept().await.unwrap();
            served.write_all(b"2").await.unwrap();
            assert_eq!(client.read_u8().await.unwrap(), b'2');
            drop((first, second));
            assert!(connect(&home, "x").await.is_err(), "nobody listens");
            let left: Vec<_> = std::fs::read_dir(home.sockets_path()).unwrap().flatten().collect();
            assert_eq!(left.len(), 1, "{left:?}");
        }
    }
}
