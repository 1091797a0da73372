//! CORE: what to try after an error of the code engine, in the words of these tools.

use baton_agent_base::fault::{Fault, Kind};

/// The error with what to try, where the engine has not said it.
pub(super) fn with_hint(tool: &str, error: Fault) -> Fault {
    if error.hint.is_some() {
        return error;
    }
    let hint = match (tool, error.kind) {
        ("lcp_code_action", Kind::NoServer) => "lcp_apply_edit changes any file.",
        ("lcp_complete", Kind::NoServer) => "lcp_get_outline works without a server, by text search.",
        ("lcp_get_diagnostics", Kind::NoServer) => {
            "lcp_get_outline and lcp_find_references still work, by text search."
        }
        (_, Kind::NoServer) => {
            "lcp_get_outline, lcp_read_symbol and lcp_find_references work without one, by text search."
        }
        (_, Kind::NotCallable) => "lcp_find_references finds the uses of anything.",
        (_, Kind::NotRenamable) => "lcp_find_references finds the places; change them with lcp_apply_edit.",
        (_, Kind::SymbolNotFound) => "lcp_get_outline lists the file's symbols.",
        _ => return error,
    };
    error.hint(hint)
}
