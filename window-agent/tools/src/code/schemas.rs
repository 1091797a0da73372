//! What clients see of the toolset `code`: names, arguments and results of its tools.
//!
//! Every client pays for these words with every conversation, so each says only what its name does not.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::definition::{Definition, Effect, Nothing, Sketch, taken};
use baton_agent_base::object::{Object, object};

/// Name of the toolset.
pub const TOOLSET: &str = "code";

/// All its tools.
pub fn definitions() -> Vec<Definition> {
    let sketches = [
        get_outline(),
        read_symbol(),
        find_references(),
        get_diagnostics(),
        navigate(),
        rename(),
        apply_edit(),
        undo(),
        complete(),
        code_action(),
    ];
    sketches.into_iter().map(|sketch| Definition::new(TOOLSET, sketch)).collect()
}

/// Results of a tool: `data`, what else it tells, and how true that is by now; or an error.
fn told(data: Value, more: Value) -> Object {
    let mut results = object(json!({
        "success": {"type": "boolean"},
        "data": data,
        "freshness": {"type": "string", "description": "settled, indexing: ..., incomplete: ... or stale"},
        "source": {"type": "string"},
        "note": {"type": "string"},
    }));
    results.extend(object(more));
    results.extend(object(json!({
        "status": {"type": "string", "enum": ["error"]},
        "code": {"type": "string"},
        "message": {"type": "string"},
        "hint": {"type": "string"},
    })));
    object(json!({
        "type": "object",
        "properties": results,
        "anyOf": [{"required": ["success", "data"]}, {"required": ["status", "code", "message"]}],
    }))
}

/// Objects with these fields.
fn list_of(fields: Value, required: &[&str]) -> Value {
    json!({"type": "array", "items": {"type": "object", "properties": fields, "required": required}})
}

/// Relative, absolute, or a unique end of a path.
#[derive(Deserialize, JsonSchema)]
pub(super) struct FilePath(#[schemars(length(min = 1))] pub(super) String);

/// name or Class.method
#[derive(Deserialize, JsonSchema)]
pub(super) struct SymbolName(#[schemars(length(min = 1, max = 1000))] pub(super) String);

/// A file that defines or uses it.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ContextFile(#[schemars(length(min = 1))] pub(super) String);

/// A line that contains it, if there are several.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Line(#[schemars(range(min = 1))] pub(super) u32);

/// Seconds, default 5.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Timeout(#[schemars(range(min = 1, max = 300))] pub(super) f64);

#[derive(Deserialize, JsonSchema)]
pub(super) struct GetOutline {
    pub(super) file_path: FilePath,
    /// Levels; default: all but the inside of functions.
    #[schemars(range(min = 1, max = 40))]
    pub(super) depth: Option<usize>,
    /// lines: data is a text, a fifth of the tokens.
    pub(super) format: Option<Format>,
    pub(super) timeout: Option<Timeout>,
}

#[derive(PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    Structure,
    Lines,
}

fn get_outline() -> Sketch {
    Sketch {
        name: "lcp_get_outline",
        title: "Outline of a file",
        description: "Classes, functions and variables of a file with their lines. Start here instead of reading it.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<GetOutline>,
        output: || {
            told(
                json!({
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "kind": {"type": "string"},
                            "range": {"type": "object", "description": "line from 1, character from 0"},
                            "children": {"type": "array"},
                        },
                    },
                }),
                json!({
                    "file": {"type": "string"},
                    "n_lines": {"type": "integer"},
                    "n_deeper": {"type": "integer", "description": "Symbols below depth."},
                    "hash": {"type": "integer"},
                }),
            )
        },
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadSymbol {
    pub(super) file_path: FilePath,
    pub(super) symbol_name: SymbolName,
    pub(super) line: Option<Line>,
    #[schemars(range(min = 1))]
    pub(super) start_line: Option<usize>,
    #[schemars(range(min = 1))]
    pub(super) end_line: Option<usize>,
    /// Default 10000.
    #[schemars(range(min = 50, max = 100_000))]
    pub(super) max_tokens: Option<usize>,
    pub(super) timeout: Option<Timeout>,
}

fn read_symbol() -> Sketch {
    Sketch {
        name: "lcp_read_symbol",
        title: "Read a symbol",
        description: "The code of one function, class or variable, with its comments. Beyond max_tokens the middle is \
            omitted; read it with start_line and end_line.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<ReadSymbol>,
        output: || {
            told(
                json!({"type": "string"}),
                json!({
                    "file": {"type": "string"},
                    "symbol": {"type": "string"},
                    "kind": {"type": "string"},
                    "start_line": {"type": "integer"},
                    "end_line": {"type": "integer"},
                    "skipped": {"type": "object", "description": "start_line, end_line of what is omitted."},
                    "hash": {"type": "integer"},
                }),
            )
        },
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct FindReferences {
    pub(super) symbol_name: SymbolName,
    pub(super) context_file: ContextFile,
    pub(super) line: Option<Line>,
    /// Default true.
    pub(super) include_declaration: Option<bool>,
    /// How many with code, default 15.
    #[schemars(range(max = 2000))]
    pub(super) limit: Option<usize>,
    pub(super) timeout: Option<Timeout>,
}

fn find_references() -> Sketch {
    Sketch {
        name: "lcp_find_references",
        title: "Find references",
        description: "All uses of a symbol in the project, by meaning: the first ones with their code, all with lines.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<FindReferences>,
        output: || {
            told(
                list_of(
                    json!({
                        "file": {"type": "string"},
                        "line": {"type": "integer"},
                        "code_snippet": {"type": "string"},
                        "context": {"type": "string"},
                    }),
                    &["file", "line", "code_snippet", "context"],
                ),
                json!({
                    "symbol": {"type": "string"},
                    "total": {"type": "integer"},
                    "more": {"type": "object", "description": "Further lines by file."},
                }),
            )
        },
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct GetDiagnostics {
    pub(super) file_path: Option<FilePath>,
    /// The mildest to tell, default warning.
    #[schemars(extend("enum" = ["error", "warning", "information", "hint"]))]
    pub(super) severity: Option<String>,
    /// Default 100.
    #[schemars(range(min = 1, max = 5000))]
    pub(super) limit: Option<usize>,
    pub(super) timeout: Option<Timeout>,
}

fn get_diagnostics() -> Sketch {
    Sketch {
        name: "lcp_get_diagnostics",
        title: "Errors and warnings",
        description: "Errors and warnings of a file, or of the whole project, as of now.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<GetDiagnostics>,
        output: || {
            told(
                list_of(
                    json!({
                        "file": {"type": "string"},
                        "line": {"type": "integer"},
                        "severity": {"type": "string"},
                        "message": {"type": "string"},
                        "code": {"type": "string"},
                    }),
                    &["file", "line", "severity", "message"],
                ),
                json!({"total": {"type": "integer"}}),
            )
        },
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Navigate {
    pub(super) to: Target,
    pub(super) symbol_name: SymbolName,
    pub(super) context_file: Option<ContextFile>,
    pub(super) line: Option<Line>,
    /// Default 50.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: Option<usize>,
    pub(super) timeout: Option<Timeout>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Target {
    Definition,
    Hover,
    Callers,
    Callees,
    Symbols,
}

fn navigate() -> Sketch {
    Sketch {
        name: "lcp_navigate",
        title: "Definition, type, callers, callees, symbol search",
        description: "From a symbol to its definition, its type and documentation (hover), its callers or callees; or \
            from part of a name to symbols of the whole project (symbols, without context_file).",
        effect: Effect::Reads,
        waits: false,
        input: taken::<Navigate>,
        output: || {
            told(
                json!({"description": "file, line, name, kind, code_snippet of each; a text for hover."}),
                json!({"symbol": {"type": "string"}, "total": {"type": "integer"}}),
            )
        },
    }
}

/// A file or a folder that a change is about, with the lines of its edits; what else becomes of it is in `change`.
fn changed_file() -> Value {
    json!({
        "file": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "integer"}},
        "change": {"type": "string", "enum": ["created", "renamed", "deleted"]},
        "from": {"type": "string", "description": "Its old name."},
        "files": {"type": "array", "items": {"type": "string"}, "description": "In a renamed folder."},
        "n_lines": {"type": "integer"},
        "difference": {"type": "string", "description": "Lines that go (12- ...) and come (12+ ...), the first ones."},
    })
}

fn offered_or_changed() -> Value {
    let mut entry = object(json!({
        "title": {"type": "string"},
        "kind": {"type": "string"},
        "preferred": {"type": "boolean"},
    }));
    entry.extend(object(changed_file()));
    Value::Object(entry)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Rename {
    pub(super) symbol_name: SymbolName,
    pub(super) context_file: ContextFile,
    pub(super) line: Option<Line>,
    #[schemars(length(min = 1, max = 1000))]
    pub(super) new_name: String,
    /// Token of the preview.
    pub(super) apply: Option<String>,
    pub(super) timeout: Option<Timeout>,
}

fn rename() -> Sketch {
    Sketch {
        name: "lcp_rename",
        title: "Rename a symbol everywhere",
        description: "First shows what would change; called again with apply set to the preview's token it changes all \
            files, or none when anything has changed since. A module, or the path of an import, takes its file along.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<Rename>,
        output: || {
            told(
                list_of(changed_file(), &["file"]),
                json!({
                    "symbol": {"type": "string"},
                    "defined_at": {"type": "string"},
                    "token": {"type": "string"},
                    "applied": {"type": "boolean"},
                }),
            )
        },
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ApplyEdit {
    pub(super) file_path: FilePath,
    pub(super) edits: Vec<OneEdit>,
    /// From a read: refused when the file has changed since.
    pub(super) hash: Option<i64>,
    pub(super) timeout: Option<Timeout>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneEdit {
    pub(super) old_text: Option<String>,
    pub(super) start_line: Option<usize>,
    pub(super) end_line: Option<usize>,
    pub(super) new_text: String,
}

fn apply_edit() -> Sketch {
    Sketch {
        name: "lcp_apply_edit",
        title: "Edit a file",
        description: "Replaces text that occurs once (old_text), or whole lines (start_line to end_line; end_line one \
            less than start_line inserts before it). All edits or none.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<ApplyEdit>,
        output: || {
            told(
                list_of(
                    json!({"file": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}}),
                    &["file", "lines"],
                ),
                json!({"n_lines": {"type": "integer"}, "hash": {"type": "integer"}}),
            )
        },
    }
}

fn undo() -> Sketch {
    Sketch {
        name: "lcp_undo",
        title: "Undo",
        description: "Takes back your last change of files, whole or not at all; again for the one before.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<Nothing>,
        output: || told(list_of(changed_file(), &["file"]), json!({"hash": {"type": "integer"}})),
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Complete {
    pub(super) file_path: FilePath,
    #[schemars(range(min = 1))]
    pub(super) line: u32,
    /// From 1; default: the end of the line.
    #[schemars(range(min = 1))]
    pub(super) column: Option<u32>,
    #[schemars(length(max = 10_000))]
    pub(super) text: Option<String>,
    /// Default 30.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: Option<usize>,
    pub(super) timeout: Option<Timeout>,
}

fn complete() -> Sketch {
    Sketch {
        name: "lcp_complete",
        title: "Complete code",
        description: "What could stand at a place: names with types, the first ones with documentation. With text as if \
            that were typed there: `basket.` lists what a basket has.",
        effect: Effect::Reads,
        waits: false,
        input: taken::<Complete>,
        output: || {
            told(
                list_of(
                    json!({
                        "name": {"type": "string"},
                        "kind": {"type": "string"},
                        "detail": {"type": "string"},
                        "documentation": {"type": "string"},
                    }),
                    &["name"],
                ),
                json!({"total": {"type": "integer"}}),
            )
        },
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CodeAction {
    pub(super) file_path: FilePath,
    #[schemars(range(min = 1))]
    pub(super) line: u32,
    #[schemars(range(min = 1))]
    pub(super) end_line: Option<u32>,
    /// quickfix, refactor, source, ...
    #[schemars(length(max = 200))]
    pub(super) kind: Option<String>,
    #[schemars(length(min = 1, max = 1000))]
    pub(super) action: Option<String>,
    /// Token of the preview.
    pub(super) apply: Option<String>,
    pub(super) timeout: Option<Timeout>,
}

fn code_action() -> Sketch {
    Sketch {
        name: "lcp_code_action",
        title: "Quick fixes and refactorings",
        description: "Lists what the server offers for some lines; with action set to a title it shows what that would \
            change; called again with apply set to the preview's token it changes all files, or none when anything has \
            changed since.",
        effect: Effect::Destroys,
        waits: false,
        input: taken::<CodeAction>,
        output: || {
            told(
                list_of(offered_or_changed(), &[]),
                json!({
                    "action": {"type": "string"},
                    "token": {"type": "string"},
                    "applied": {"type": "boolean"},
                }),
            )
        },
    }
}
