//! The routes, in process.

mod api;

use std::path::Path;

/// Set to write `docs/openapi.json` anew instead of comparing it.
const UPDATE: &str = "BATON_UPDATE_OPENAPI";

#[test]
fn the_description_in_docs_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let current = super::openapi_text().unwrap();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    // As documents: the order of members depends on what else is built with this crate.
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    assert!(
        parsed(&written) == parsed(&current),
        "docs/openapi.json is out of date: run this test with {UPDATE}=1"
    );
}
