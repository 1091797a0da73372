//! CORE: where an editor has a breakpoint.

use std::path::PathBuf;

use crate::types::SetBreakpoint;

/// Where a breakpoint of the editor is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// File, line, column; the first column is none.
    Line(PathBuf, u32, Option<u32>),
    /// The beginning of a function.
    Function(String),
}

/// The place of a breakpoint.
pub(crate) fn place_of(wish: &SetBreakpoint) -> Place {
    Place::Line(wish.path.clone(), wish.line, plain(wish.column))
}

/// To the editor, the first column is no column.
pub(crate) fn plain(column: Option<u32>) -> Option<u32> {
    column.filter(|column| *column > 1)
}
