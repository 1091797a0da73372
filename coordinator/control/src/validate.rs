//! The bounds of what `/v1` believes; every refusal names the field and what it must be.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use baton_link::explain::Explanation;
use baton_link::socket::WINDOW_PREFIX;
use baton_proto::control::{
    DebugSession, Heartbeat, MAX_BREAKPOINTS, MAX_PROFILE_S, MAX_TALLIES, ProfileWish, Register,
    SettingsChange, Tally,
};
use baton_proto::ids::WindowId;
use baton_proto::{PROTOCOL, PROTOCOL_MIN};

use super::failure::ControlError;

/// Longest name of a window or of a debug configuration, and longest version, in bytes.
const MAX_NAME: usize = 256;
/// Longest path, as on Linux.
const MAX_PATH: usize = 4_096;
/// Most folders of a window.
const MAX_FOLDERS: usize = 64;
/// Most MCP debug sessions of a window.
const MAX_SESSIONS: usize = 64;
/// Longest name of a window's socket: that of its id, and some digits.
const MAX_SOCKET_NAME: usize = 96;
/// Lowest port that needs no privilege; no service that a proxy must not reach listens above it by custom.
const MIN_PORT: u16 = 1_024;
pub(super) fn window_id(text: String) -> Result<WindowId, ControlError> {
    WindowId::try_from(text).map_err(|invalid| ControlError::invalid(invalid.to_string()))
}

/// `own_ports` are the coordinator's: a window there would be ourselves, and calls would go round.
pub(super) fn register(register: &Register, own_ports: &[u16]) -> Result<(), ControlError> {
    if !(PROTOCOL_MIN..=PROTOCOL).contains(&register.protocol) {
        return Err(ControlError::conflict(
            "protocol",
            Explanation::new(format!(
                "unsupported control protocol {} (the coordinator supports {PROTOCOL_MIN} to {PROTOCOL})",
                register.protocol
            ))
            .with_hint("update Baton"),
        ));
    }
    if let Some(socket) = &register.socket {
        if !is_window_socket(socket) {
            return invalid("`socket` must be 'w-' followed by letters, digits, '-', or '_'");
        }
    } else if register.port < MIN_PORT || own_ports.contains(&register.port) {
        return invalid("`port` must be 1024 or higher and not a port of the coordinator");
    }
    if register.pid == 0 {
        return invalid("`pid` must not be 0");
    }
    text("version", &register.version, MAX_NAME)?;
    text("name", &register.name, MAX_NAME)?;
    folders(&register.folders)?;
    trees(&register.trees)?;
    sessions(&register.debug_sessions)
}

/// A name, and no path: calls go nowhere but to sockets of windows in the state folder.
fn is_window_socket(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    name.strip_prefix(WINDOW_PREFIX).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_plain))
        && name.len() <= MAX_SOCKET_NAME
}

/// The program of a successor, which must be one that nobody but this user or the system can have put there.
pub(super) fn program(program: String) -> Result<PathBuf, ControlError> {
    text("program", &program, MAX_PATH)?;
    let path = PathBuf::from(program);
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let is_trusted = |path: &Path, is_kind: fn(&Metadata) -> bool| {
        std::fs::symlink_metadata(path).is_ok_and(|found| {
            // Many systems give each user a group of his own, and let it write what he makes.
            let others = if found.gid() == group { 0o002 } else { 0o022 };
            is_kind(&found) && [0, user].contains(&found.uid()) && found.mode() & others == 0
        })
    };
    let is_folder_trusted = path.parent().is_some_and(|folder| is_trusted(folder, Metadata::is_dir));
    if path.is_absolute() && is_folder_trusted && is_trusted(&path, Metadata::is_file) {
        return Ok(path);
    }
    Err(ControlError::invalid(
        "`program` must be an absolute path to a regular file that only you or the system can write to, in such a \
         folder"
            .to_owned(),
    ))
}

pub(super) fn heartbeat(heartbeat: &Heartbeat) -> Result<(), ControlError> {
    folders(heartbeat.folders.as_deref().unwrap_or_default())?;
    heartbeat.name.as_deref().map_or(Ok(()), |name| text("name", name, MAX_NAME))?;
    tallies(&heartbeat.tallies)?;
    breakpoints(&heartbeat.breakpoints)?;
    sessions(&heartbeat.debug_sessions)
}

pub(super) fn settings(change: &SettingsChange) -> Result<(), ControlError> {
    baton_config::check(change).map_err(|(_, why)| ControlError::invalid(why))
}

pub(super) fn profile(wish: &ProfileWish) -> Result<(), ControlError> {
    match (1..=MAX_PROFILE_S).contains(&wish.seconds) {
        true => Ok(()),
        false => invalid("`seconds` must be 1 to 300"),
    }
}

pub(super) fn port(port: u16) -> Result<(), ControlError> {
    if port < MIN_PORT { invalid("`port` must be 1024 or higher") } else { Ok(()) }
}

fn folders(folders: &[String]) -> Result<(), ControlError> {
    if folders.len() > MAX_FOLDERS {
        return invalid("`folders` must have at most 64 entries");
    }
    for folder in folders {
        text("folders", folder, MAX_PATH)?;
        if !is_absolute(folder) {
            return invalid("`folders` must contain absolute paths");
        }
    }
    Ok(())
}

fn trees(trees: &[String]) -> Result<(), ControlError> {
    if trees.len() > MAX_FOLDERS {
        return invalid("`trees` must have at most 64 entries");
    }
    trees.iter().filter(|tree| !tree.is_empty()).try_for_each(|tree| text("trees", tree, MAX_PATH))
}

fn tallies(tallies: &[Tally]) -> Result<(), ControlError> {
    if tallies.len() > MAX_TALLIES {
        return invalid("`tallies` must have at most 64 entries");
    }
    match tallies.iter().all(|tally| Tally::is_name(&tally.name)) {
        true => Ok(()),
        false => invalid("`tallies.name` must be 1 to 64 letters, digits, '-', '_', or '.'"),
    }
}

fn breakpoints(breakpoints: &[String]) -> Result<(), ControlError> {
    if breakpoints.len() > MAX_BREAKPOINTS {
        return invalid("`breakpoints` must have at most 16 entries");
    }
    breakpoints.iter().try_for_each(|place| text("breakpoints", place, MAX_NAME))
}

fn sessions(sessions: &[DebugSession]) -> Result<(), ControlError> {
    if sessions.len() > MAX_SESSIONS {
        return invalid("`debug_sessions` must have at most 64 entries");
    }
    for session in sessions {
        text("debug_sessions.id", &session.id, MAX_NAME)?;
        text("debug_sessions.name", &session.name, MAX_NAME)?;
    }
    Ok(())
}

/// Text that can stand in a log line and on a screen.
fn text(field: &str, text: &str, max_len: usize) -> Result<(), ControlError> {
    if text.is_empty() || text.len() > max_len || text.chars().any(char::is_control) {
        return invalid(&format!(
            "`{field}` must be 1 to {max_len} bytes of text without control characters"
        ));
    }
    Ok(())
}

/// A path of either kind of system, whichever this one is, or the URI of a remote folder.
fn is_absolute(folder: &str) -> bool {
    let drive = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() >= 3
            && bytes[0].is_ascii_alphabetic()
            && bytes[1] == b':'
            && matches!(bytes[2], b'\\' | b'/')
    };
    folder.starts_with('/') || folder.starts_with("\\\\") || folder.contains("://") || drive(folder)
}

fn invalid(message: &str) -> Result<(), ControlError> {
    Err(ControlError::invalid(message.to_owned()))
}
