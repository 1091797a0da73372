//! `baton status` and `baton windows`.

use baton_link::connection::Connection;
use baton_link::find::{FindError, find};
use baton_link::home::Home;
use baton_proto::control::{Recording, Status, WindowState, WindowStatus};
use serde_json::json;

use super::outcome::{Done, Failed, exit};
use super::{output, record};

pub(super) async fn status(as_json: bool) -> Done {
    let (status, recording) = match ask().await? {
        Ok(asked) => asked,
        Err(not_answering) => {
            if as_json {
                output::json(&not_running());
            }
            return Err(not_answering);
        }
    };
    if as_json {
        output::json(&status);
        return Ok(());
    }
    output::line(format!("Baton {} at {} (process {})", status.version, status.url, status.pid));
    output::line(describe_live(&status));
    print_windows(&status.windows);
    for warning in &status.warnings {
        output::warning(warning);
    }
    if let Some(told) = recording.record.as_ref().and_then(record::told) {
        output::note(told);
    }
    Ok(())
}

pub(super) async fn windows(as_json: bool) -> Done {
    let status = match ask().await? {
        Ok((status, _)) => status,
        Err(not_answering) => {
            if as_json {
                output::json(&json!([]));
            }
            return Err(not_answering);
        }
    };
    if as_json {
        output::json(&status.windows);
    } else if status.windows.is_empty() {
        output::line("No windows. Open one with `baton window DIR`.");
    } else {
        print_windows(&status.windows);
    }
    Ok(())
}

/// The outer error is one that a script must not take for "it does not run".
async fn ask() -> Result<Result<(Status, Recording), Failed>, Failed> {
    let mut connection: Connection = match find(&Home::from_env()?).await {
        Ok(connection) => connection,
        // Whatever keeps it from answering: to a script it does not run, and a person is told why.
        Err(
            error @ (FindError::NotRunning
            | FindError::PortTaken { .. }
            | FindError::Hung { .. }
            | FindError::Unreachable { .. }),
        ) => {
            return Ok(Err(Failed::from_error(exit::NOT_RUNNING, &error, error.hint())));
        }
        Err(error) => return Err(error.into()),
    };
    let status = connection.status().await?;
    // An older coordinator records nothing.
    let recording = connection.recording().await.unwrap_or_default();
    Ok(Ok((status, recording)))
}

/// The same names as [`Status`], so that a script needs no second case.
fn not_running() -> serde_json::Value {
    json!({
        "running": false, "pid": null, "version": null, "generation": null, "url": null, "port": null,
        "live": null, "term": null, "awaiting": null, "windows": [],
    })
}

fn describe_live(status: &Status) -> String {
    let name =
        |id| status.windows.iter().find(|window| window.id == id).map_or(id.to_string(), |w| w.name.clone());
    match (&status.live, &status.awaiting) {
        (_, Some(id)) => format!("waiting for {} to come back", name(id.clone())),
        (Some(id), None) => format!("live: {}", name(id.clone())),
        (None, None) => "no window is live".to_owned(),
    }
}

/// The state of a window in one word.
pub(super) fn word(state: WindowState) -> &'static str {
    match state {
        WindowState::Live => "live",
        WindowState::Standby => "standby",
        WindowState::Off => "off",
    }
}

fn print_windows(windows: &[WindowStatus]) {
    let rows: Vec<Vec<String>> = windows
        .iter()
        .map(|window| {
            let remark = if window.responsive { "" } else { "not responding" };
            let folders = window.folders.join(", ");
            vec![
                word(window.state).to_owned(),
                window.id.to_string(),
                window.name.clone(),
                folders,
                remark.to_owned(),
            ]
        })
        .collect();
    output::table(&rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_answers_have_the_same_names() {
        let status = Status {
            running: true,
            pid: 1,
            version: "0".to_owned(),
            generation: 1,
            url: String::new(),
            port: 7717,
            live: None,
            term: None,
            awaiting: None,
            windows: Vec::new(),
            warnings: Vec::new(),
        };
        let running = serde_json::to_value(&status).unwrap();
        let names =
            |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&running), names(&not_running()));
    }
}
