//! One scenario with every debug adapter, over the same program in nine languages: golden transcripts, and the table
//! of features in docs/debugging.md. `cargo xtask test adapters` installs what it needs.

#![expect(clippy::print_stdout, reason = "what a test that fails has seen")]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests, outside of #[test] functions"
)]

mod attach;
mod beginnings;
mod calls;
mod collections;
mod cores;
mod expressions;
mod faults;
mod features;
mod generated;
mod languages;
mod latency;
mod libraries;
mod long;
mod mapped;
mod pages;
mod programs;
mod quirks;
mod scenario;
mod selection;
mod stranger;
mod strangers;
mod threads;
mod values;

use languages::Language;

/// A test for each adapter and language: its name, the adapter, the language, and the name of its transcript.
macro_rules! scenarios {
    ($($name:ident: $adapter:literal, $language:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            scenario::play($adapter, &$language, expect_test::expect_file![concat!("golden/", stringify!($name), ".txt")])
                .await;
        })*

        /// Rows of the table of features, in its order.
        pub(crate) const ROWS: &[(&str, &str)] = &[$(($adapter, $language.name)),*];
    };
}

scenarios! {
    debugpy_python: "debugpy", Language::PYTHON;
    js_debug_javascript: "js-debug", Language::JAVASCRIPT;
    js_debug_typescript: "js-debug", Language::TYPESCRIPT;
    gdb_c: "gdb", Language::C;
    gdb_cpp: "gdb", Language::CPP;
    gdb_rust: "gdb", Language::RUST;
    lldb_dap_c: "lldb-dap", Language::C;
    lldb_dap_cpp: "lldb-dap", Language::CPP;
    lldb_dap_rust: "lldb-dap", Language::RUST;
    codelldb_c: "codelldb", Language::C;
    codelldb_cpp: "codelldb", Language::CPP;
    codelldb_rust: "codelldb", Language::RUST;
    delve_go: "delve", Language::GO;
    java_java: "java", Language::JAVA;
    bash_dap_bash: "bash-dap", Language::BASH;
}
