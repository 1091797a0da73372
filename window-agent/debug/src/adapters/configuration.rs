//! What every configuration is checked for, and completed by, whichever adapter serves it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::adapter::Adapter;
use crate::dap::configuration::Configuration;
use crate::error::DebugError;
use crate::session::plan::StartKind;

/// Adds what an adapter's own entry says of fields that are not given.
pub(super) fn add_defaults(adapter: &Adapter, kind: StartKind, arguments: &mut Map<String, Value>) {
    let defaults = match kind {
        StartKind::Launch => &adapter.launch,
        StartKind::Attach => &adapter.attach,
    };
    for (name, value) in defaults {
        arguments.entry(name.clone()).or_insert_with(|| value.clone());
    }
}

/// Whether it launches or attaches.
pub(super) fn request_kind(configuration: &Map<String, Value>) -> Result<StartKind, DebugError> {
    match Configuration::of(configuration).request.as_deref() {
        Some("launch") => Ok(StartKind::Launch),
        Some("attach") => Ok(StartKind::Attach),
        other => Err(bad(format!(
            "`request` of the configuration is {}, it must be \"launch\" or \"attach\"",
            other.map_or("missing".to_owned(), |other| format!("\"{other}\""))
        ))),
    }
}

/// The program, which may be relative to the working directory.
pub(super) fn program_of(configuration: &Configuration) -> Option<PathBuf> {
    let program = configuration.program.as_deref()?;
    Some(Path::new(configuration.cwd.as_deref().unwrap_or("/")).join(program))
}

/// A configuration that cannot work.
pub(super) fn bad(message: String) -> DebugError {
    DebugError::BadConfiguration { message }
}

/// Refuses what cannot work before anything is started; the program becomes an absolute path.
pub(super) fn check_paths(arguments: &mut Map<String, Value>) -> Result<(), DebugError> {
    let is_no_text =
        |field: &&str| arguments.get(*field).is_some_and(|value| !value.is_string() && !value.is_null());
    if let Some(field) = ["cwd", "program"].iter().find(|field| is_no_text(field)) {
        return Err(bad(format!("`{field}` of the configuration must be a string")));
    }
    let given = Configuration::of(arguments);
    if let Some(cwd) = &given.cwd
        && !Path::new(cwd).is_dir()
    {
        return Err(bad(format!("the working directory {cwd} does not exist")));
    }
    if let Some(path) = program_of(&given) {
        if !path.exists() {
            return Err(bad(format!("the program {} does not exist", path.display())));
        }
        arguments.insert("program".to_owned(), Value::String(path.to_string_lossy().into_owned()));
    }
    Ok(())
}
