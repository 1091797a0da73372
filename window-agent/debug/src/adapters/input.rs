//! What a start gives the program to read: it takes an adapter that has us run the program in a terminal.

use std::borrow::Cow;

use serde_json::json;

use crate::adapter::Adapter;
use crate::adapters::table::Table;
use crate::adapters::{select, shelf};
use crate::dap::configuration::Configuration;
use crate::error::DebugError;
use crate::options::DebuggerOptions;
use crate::types::Start;

/// What helps wherever nothing can be typed.
const INSTEAD: &str = "let it read a file or its arguments";

/// In VS Code only its user types.
pub(super) fn refuse_in_editor(start: &Start) -> Result<(), DebugError> {
    if start.stdin.is_none() {
        return Ok(());
    }
    let why = "the program's terminal is VS Code's, where only its user can type".to_owned();
    Err(DebugError::NoInput { why, hint: format!("Start it without `stdin`, and {INSTEAD}.") })
}

/// A start whose program is to read something runs it in a terminal.
pub(super) fn prepare<'a>(
    start: &'a Start,
    adapter: &'static Adapter,
    table: &'static Table,
    options: &DebuggerOptions,
) -> Result<Cow<'a, Start>, DebugError> {
    if start.stdin.is_none() {
        return Ok(Cow::Borrowed(start));
    }
    if Configuration::of(&start.configuration).attaches() {
        return Err(DebugError::NoInput {
            why: "a program that runs already reads from where it was started".to_owned(),
            hint: "Attach without `stdin`.".to_owned(),
        });
    }
    if !adapter.runs_in_terminal {
        let hint = match others(adapter, table).next() {
            Some(other) if shelf::find(other, options).is_ok() => {
                format!("Use `adapter` {}, whose programs have one, or {INSTEAD}.", other.name)
            }
            Some(other) => {
                let install = select::install_hint(other);
                format!("{} gives it one, but is not installed. {install} Else {INSTEAD}.", other.name)
            }
            None => format!("Start it without `stdin`, and {INSTEAD}."),
        };
        return Err(DebugError::NoInput {
            why: format!("a program under {} has no terminal to read from", adapter.name),
            hint,
        });
    }
    let mut start = start.clone();
    start.configuration.insert("console".to_owned(), json!("integratedTerminal"));
    Ok(Cow::Owned(start))
}

/// The installed adapter that gives a program of this one's languages what a start has for it: itself, or another.
pub(crate) fn reader(name: &str, options: &DebuggerOptions) -> Result<Option<String>, DebugError> {
    let table = Table::load(&options.shelf)?;
    let Some(adapter) = table.find(name) else { return Ok(None) };
    if adapter.runs_in_terminal {
        return Ok(Some(adapter.name.clone()));
    }
    let mut others = others(adapter, table);
    let installed = others.find(|other| shelf::find(other, options).is_ok());
    Ok(installed.map(|other| other.name.clone()))
}

/// Adapters of the same languages that have us run the program in a terminal.
fn others(adapter: &Adapter, table: &'static Table) -> impl Iterator<Item = &'static Adapter> {
    let languages = adapter.languages.clone();
    table.adapters.iter().filter(move |other| {
        other.runs_in_terminal && other.languages.iter().any(|language| languages.contains(language))
    })
}
