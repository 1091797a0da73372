//! What clients see of the toolset `code`: names, arguments and results of its tools.
//!
//! Every client pays for these words with every conversation, so each says only what its name does not.

use std::sync::Arc;

use baton_proto::edge::WINDOW_ARGUMENT;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::tools::{Definition, object};

/// Name of the toolset.
pub const TOOLSET: &str = "code";

/// All its tools.
pub fn definitions() -> Vec<Definition> {
    vec![
        get_outline(),
        read_symbol(),
        find_references(),
        get_diagnostics(),
        navigate(),
        rename(),
        apply_edit(),
        complete(),
        code_action(),
    ]
}

struct Sketch {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    is_reading: bool,
    properties: Value,
    required: &'static [&'static str],
    data: Value,
    more: Value,
}

impl Sketch {
    fn into_definition(self) -> Definition {
        let mut properties = object(self.properties);
        properties.extend(object(json!({
            "timeout": {"type": "number", "minimum": 1, "maximum": 300, "description": "Seconds, default 5."},
            WINDOW_ARGUMENT: {"type": "string", "description": "Id, name or folder; default: the live window."},
        })));
        let input = json!({
            "type": "object",
            "properties": properties,
            "required": self.required,
            "additionalProperties": false,
        });
        let mut results = object(json!({
            "success": {"type": "boolean"},
            "data": self.data,
            "freshness": {"type": "string", "description": "settled, indexing: ..., incomplete: ... or stale"},
            "source": {"type": "string"},
            "note": {"type": "string"},
        }));
        results.extend(object(self.more));
        results.extend(object(json!({
            "status": {"type": "string", "enum": ["error"]},
            "code": {"type": "string"},
            "message": {"type": "string"},
            "hint": {"type": "string"},
        })));
        let output = json!({
            "type": "object",
            "properties": results,
            "anyOf": [{"required": ["success", "data"]}, {"required": ["status", "code", "message"]}],
        });
        let annotations = ToolAnnotations::new()
            .read_only(self.is_reading)
            .destructive(!self.is_reading)
            .idempotent(self.is_reading)
            .open_world(false);
        let tool = Tool::new(self.name, self.description, Arc::new(object(input)))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(object(output)))
            .with_annotations(annotations);
        Definition::new(TOOLSET, tool, false)
    }
}

fn file_path() -> Value {
    json!({"type": "string", "minLength": 1, "description": "Relative, absolute, or a unique end of a path."})
}

fn symbol_name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 1000, "description": "name or Class.method"})
}

fn context_file() -> Value {
    json!({"type": "string", "minLength": 1, "description": "A file that defines or uses it."})
}

fn line() -> Value {
    json!({"type": "integer", "minimum": 1, "description": "A line with it, to tell it among several."})
}

/// Objects with these fields.
fn list_of(fields: Value, required: &[&str]) -> Value {
    json!({"type": "array", "items": {"type": "object", "properties": fields, "required": required}})
}

fn get_outline() -> Definition {
    Sketch {
        name: "lcp_get_outline",
        title: "Outline of a file",
        description: "Classes, functions and variables of a file with their lines. Start here instead of reading it.",
        is_reading: true,
        properties: json!({
            "file_path": file_path(),
            "depth": {"type": "integer", "minimum": 1, "maximum": 40, "description": "Levels; default: all but the inside of functions."},
            "format": {"type": "string", "enum": ["structure", "lines"], "description": "lines: data is a text, a fifth of the tokens."},
        }),
        required: &["file_path"],
        data: json!({
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
        more: json!({
            "file": {"type": "string"},
            "n_lines": {"type": "integer"},
            "n_deeper": {"type": "integer", "description": "Symbols below depth."},
        }),
    }
    .into_definition()
}

fn read_symbol() -> Definition {
    Sketch {
        name: "lcp_read_symbol",
        title: "Read a symbol",
        description: "The code of one function, class or variable, with its comments. Beyond max_tokens the middle is \
            left out; read that with start_line and end_line.",
        is_reading: true,
        properties: json!({
            "file_path": file_path(),
            "symbol_name": symbol_name(),
            "line": line(),
            "start_line": {"type": "integer", "minimum": 1},
            "end_line": {"type": "integer", "minimum": 1},
            "max_tokens": {"type": "integer", "minimum": 50, "maximum": 100000, "description": "Default 10000."},
        }),
        required: &["file_path", "symbol_name"],
        data: json!({"type": "string"}),
        more: json!({
            "file": {"type": "string"},
            "symbol": {"type": "string"},
            "kind": {"type": "string"},
            "start_line": {"type": "integer"},
            "end_line": {"type": "integer"},
            "skipped": {"type": "object", "description": "start_line, end_line of what is left out."},
        }),
    }
    .into_definition()
}

fn find_references() -> Definition {
    Sketch {
        name: "lcp_find_references",
        title: "Find references",
        description: "All uses of a symbol in the project, by meaning: the first ones with their code, all with lines.",
        is_reading: true,
        properties: json!({
            "symbol_name": symbol_name(),
            "context_file": context_file(),
            "line": line(),
            "include_declaration": {"type": "boolean", "description": "Default true."},
            "limit": {"type": "integer", "minimum": 0, "maximum": 2000, "description": "How many with code, default 15."},
        }),
        required: &["symbol_name", "context_file"],
        data: list_of(
            json!({
                "file": {"type": "string"},
                "line": {"type": "integer"},
                "code_snippet": {"type": "string"},
                "context": {"type": "string"},
            }),
            &["file", "line", "code_snippet", "context"],
        ),
        more: json!({
            "symbol": {"type": "string"},
            "total": {"type": "integer"},
            "more": {"type": "object", "description": "Further lines by file."},
        }),
    }
    .into_definition()
}

fn get_diagnostics() -> Definition {
    Sketch {
        name: "lcp_get_diagnostics",
        title: "Errors and warnings",
        description: "Errors and warnings of a file, or of the whole project, as of now.",
        is_reading: true,
        properties: json!({
            "file_path": file_path(),
            "severity": {"type": "string", "enum": ["error", "warning", "information", "hint"], "description": "The mildest to tell, default warning."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 5000, "description": "Default 100."},
        }),
        required: &[],
        data: list_of(
            json!({
                "file": {"type": "string"},
                "line": {"type": "integer"},
                "severity": {"type": "string"},
                "message": {"type": "string"},
                "code": {"type": "string"},
            }),
            &["file", "line", "severity", "message"],
        ),
        more: json!({"total": {"type": "integer"}}),
    }
    .into_definition()
}

fn navigate() -> Definition {
    Sketch {
        name: "lcp_navigate",
        title: "Definition, type, callers, callees, symbol search",
        description: "From a symbol to its definition, its type and documentation (hover), its callers or callees; or \
            from part of a name to symbols of the whole project (symbols, without context_file).",
        is_reading: true,
        properties: json!({
            "to": {"type": "string", "enum": ["definition", "hover", "callers", "callees", "symbols"]},
            "symbol_name": symbol_name(),
            "context_file": context_file(),
            "line": line(),
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Default 50."},
        }),
        required: &["to", "symbol_name"],
        data: json!({"description": "file, line, name, kind, code_snippet of each; a text for hover."}),
        more: json!({"symbol": {"type": "string"}, "total": {"type": "integer"}}),
    }
    .into_definition()
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

fn rename() -> Definition {
    Sketch {
        name: "lcp_rename",
        title: "Rename a symbol everywhere",
        description: "First shows what would change; called again with apply set to the preview's token it changes all \
            files, or none when anything has changed since. A module, or the path of an import, takes its file along.",
        is_reading: false,
        properties: json!({
            "symbol_name": symbol_name(),
            "context_file": context_file(),
            "line": line(),
            "new_name": {"type": "string", "minLength": 1, "maxLength": 1000},
            "apply": {"type": "string", "description": "Token of the preview."},
        }),
        required: &["symbol_name", "context_file", "new_name"],
        data: list_of(changed_file(), &["file"]),
        more: json!({
            "symbol": {"type": "string"},
            "defined_at": {"type": "string"},
            "token": {"type": "string"},
            "applied": {"type": "boolean"},
        }),
    }
    .into_definition()
}

fn apply_edit() -> Definition {
    Sketch {
        name: "lcp_apply_edit",
        title: "Edit a file",
        description: "Replaces text that occurs once (old_text), or whole lines (start_line to end_line; end_line one \
            less than start_line inserts before it). All edits or none.",
        is_reading: false,
        properties: json!({
            "file_path": file_path(),
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "old_text": {"type": "string"},
                        "start_line": {"type": "integer"},
                        "end_line": {"type": "integer"},
                        "new_text": {"type": "string"},
                    },
                    "required": ["new_text"],
                },
            },
        }),
        required: &["file_path", "edits"],
        data: list_of(
            json!({"file": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}}),
            &["file", "lines"],
        ),
        more: json!({"n_lines": {"type": "integer"}}),
    }
    .into_definition()
}

fn complete() -> Definition {
    Sketch {
        name: "lcp_complete",
        title: "Complete code",
        description: "What could stand at a place: names with types, the first ones with documentation. With text as if \
            that were typed there: `basket.` lists what a basket has.",
        is_reading: true,
        properties: json!({
            "file_path": file_path(),
            "line": {"type": "integer", "minimum": 1},
            "column": {"type": "integer", "minimum": 1, "description": "From 1; default: the end of the line."},
            "text": {"type": "string", "maxLength": 10000},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Default 30."},
        }),
        required: &["file_path", "line"],
        data: list_of(
            json!({
                "name": {"type": "string"},
                "kind": {"type": "string"},
                "detail": {"type": "string"},
                "documentation": {"type": "string"},
            }),
            &["name"],
        ),
        more: json!({"total": {"type": "integer"}}),
    }
    .into_definition()
}

fn code_action() -> Definition {
    Sketch {
        name: "lcp_code_action",
        title: "Quick fixes and refactorings",
        description: "Lists what the server offers for some lines; with action set to a title it shows what that would \
            change; called again with apply set to the preview's token it changes all files, or none when anything has \
            changed since.",
        is_reading: false,
        properties: json!({
            "file_path": file_path(),
            "line": {"type": "integer", "minimum": 1},
            "end_line": {"type": "integer", "minimum": 1},
            "kind": {"type": "string", "maxLength": 200, "description": "quickfix, refactor, source, ..."},
            "action": {"type": "string", "minLength": 1, "maxLength": 1000},
            "apply": {"type": "string", "description": "Token of the preview."},
        }),
        required: &["file_path", "line"],
        data: list_of(offered_or_changed(), &[]),
        more: json!({
            "action": {"type": "string"},
            "token": {"type": "string"},
            "applied": {"type": "boolean"},
        }),
    }
    .into_definition()
}
