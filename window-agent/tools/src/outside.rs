//! Files belong to windows: what another open window's folders hold more closely than this one's is for that window.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::window::{Owner, Window};
use baton_agent_base::fault::{Fault, Kind};

/// The file that a client names, when it is no other window's.
pub(crate) async fn file(window: &Window, given: &str) -> Result<PathBuf, Fault> {
    let path = window.workspace().resolve_file(given).await?;
    own(window, path).await
}

/// A file or folder without its links, when it is no other window's. What is in no window's folders is everybody's: a
/// library, a program elsewhere.
pub(crate) async fn own(window: &Window, path: PathBuf) -> Result<PathBuf, Fault> {
    match window.owner_of(&path).await {
        None => Ok(path),
        Some(owner) => {
            let message = format!("{} is not this window's.", path.display());
            Err(of(Fault::new(Kind::OutsideWindow, message), owner))
        }
    }
}

/// A file outside the window's folders may be in those of another one.
pub(crate) async fn with_owner(window: &Window, mut error: Fault) -> Fault {
    let Some(Value::String(path)) =
        error.details.remove("path").filter(|_| error.kind == Kind::OutsideWindow)
    else {
        return error;
    };
    match window.owner_of(Path::new(&path)).await {
        Some(owner) => of(error, owner),
        None => error,
    }
}

/// Whose it is, and how that window is reached.
fn of(mut error: Fault, Owner { name, url, is_routed }: Owner) -> Fault {
    error.message.push_str(&format!(" The window {name:?} has it."));
    error.hint(match is_routed {
        true => format!("Name {name:?} in the argument window."),
        false => format!(
            "Make {name:?} the live window with activate_window, or use that window's own URL, {url}."
        ),
    })
}
