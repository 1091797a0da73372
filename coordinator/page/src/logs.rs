//! Lines of the log for the page: the last ones, of a level, about a window, about a call. What clients and adapters say is
//! not among them, whatever is logged.

use std::path::PathBuf;

use baton_link::blocking;
use baton_link::logs::LogFolder;
use baton_link::logs::lines::{Field, Filter, Told, latest};
use baton_proto::percent;
use serde::Serialize;

/// Whose logs these are: of coordinators and of agents.
const KINDS: [&str; 2] = ["baton", "agent"];
/// Lines that are shown, and bytes of each kind in which they are looked for.
const BOUNDS: (usize, u64) = (300, 2 * 1024 * 1024);

/// What the page draws.
#[derive(Debug, Serialize)]
pub(crate) struct Lines {
    /// What to show with the next request: with the same logs there is nothing new to draw.
    stamp: String,
    /// The oldest first.
    lines: Vec<Told>,
}

/// What `level=L&window=W&call=C&stamp=S` asks for, each of which may be missing; none when there is nothing new since the
/// stamp.
pub(crate) async fn lines(folder: Option<PathBuf>, query: &str) -> Option<Lines> {
    let value = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.into_iter().find(|(other, _)| *other == name)?.1;
        percent::decode(value).filter(|value| !value.is_empty())
    };
    let field = |name: &str, is_whole: bool| Some(Field::new(name, &value(name)?, is_whole));
    let filter = Filter {
        level: value("level").and_then(|level| level.parse().ok()),
        fields: field("window", false).into_iter().chain(field("call", true)).collect(),
        ..Filter::default()
    };
    let seen = value("stamp").unwrap_or_default();
    let read = blocking::run(move || {
        let Some(folder) = folder.and_then(|folder| LogFolder::open(&folder).ok()) else {
            return Some(Lines { stamp: String::new(), lines: Vec::new() });
        };
        let stamp = folder.stamp(&KINDS);
        let is_new = stamp != seen;
        // A file that cannot be read has no lines.
        is_new.then(|| Lines { stamp, lines: latest(&folder, KINDS, &filter, BOUNDS).unwrap_or_default() })
    });
    // It does not panic.
    read.await.ok().flatten()
}
