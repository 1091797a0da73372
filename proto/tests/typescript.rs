//! Generates `vscode-shim/src/protocol.ts` from the types of `shim`, and fails when the file is not up to date.
//!
//! `UPDATE_EXPECT=1 cargo test -p baton-proto --test typescript` writes it anew.
//! The crates that make TypeScript of Rust types want a derive on every type; these have a JSON schema already.

use baton_proto::control::HEARTBEAT_MS;
use baton_proto::shim::{EXIT_RESTART, Method, contract};
use expect_test::expect_file;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

const HEAD: &str = "\
// What crosses the channel between the agent and this extension.
// Generated from proto/src/shim.rs; never edited by hand.

import { NotificationType, RequestType } from 'vscode-jsonrpc/node';
";

#[test]
fn the_extension_speaks_the_same_protocol() {
    let mut generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let methods = contract(&mut generator);
    let numbers = format!(
        "/** How often the extension host gives a sign of life, in milliseconds. */\n\
         export const HEARTBEAT_MS = {HEARTBEAT_MS};\n\
         /** Exit code of an agent that is to be started again at once. */\n\
         export const EXIT_RESTART = {EXIT_RESTART};\n"
    );
    let text = format!("{HEAD}\n{numbers}\n{}\n{}", types(&mut generator), constants(&methods));
    expect_file!["../../vscode-shim/src/protocol.ts"].assert_eq(&text);
}

fn types(generator: &mut SchemaGenerator) -> String {
    let mut definitions: Vec<(String, Value)> = generator.take_definitions(true).into_iter().collect();
    definitions.sort_by(|a, b| a.0.cmp(&b.0));
    definitions.iter().map(|(name, schema)| declaration(name, schema)).collect::<Vec<_>>().join("\n")
}

fn constants(methods: &[Method]) -> String {
    let constant = |method: &Method| {
        let params = type_of(method.params.as_value());
        let (name, wire) = (method.name, method.method);
        match &method.answer {
            Some(answer) => {
                let answer = type_of(answer.as_value());
                format!("export const {name} = new RequestType<{params}, {answer}, void>('{wire}');\n")
            }
            None => format!("export const {name} = new NotificationType<{params}>('{wire}');\n"),
        }
    };
    methods.iter().map(constant).collect()
}

fn declaration(name: &str, schema: &Value) -> String {
    let doc = comment("", schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    match properties {
        Some(properties) => {
            let fields: String = properties.iter().map(|(field, of)| member(schema, field, of)).collect();
            format!("{doc}export interface {name} {{\n{fields}}}\n")
        }
        None => format!("{doc}export type {name} = {};\n", type_of(schema)),
    }
}

fn member(schema: &Value, name: &str, of: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|found| found == name));
    let mark = if is_required { "" } else { "?" };
    format!("{}    {name}{mark}: {};\n", comment("    ", of), type_of(of))
}

fn comment(indent: &str, schema: &Value) -> String {
    let Some(text) = schema.get("description").and_then(Value::as_str) else { return String::new() };
    let text = text.replace('\n', " ").replace(['[', ']'], "");
    format!("{indent}/** {text} */\n")
}

fn type_of(schema: &Value) -> String {
    let Some(object) = schema.as_object() else { return "unknown".to_owned() };
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(value) = object.get("const") {
        return quoted(value);
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array) {
        return union(values.iter().map(quoted));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(schemas) = object.get(key).and_then(Value::as_array) {
            return union(schemas.iter().map(type_of));
        }
    }
    match object.get("type") {
        Some(Value::Array(names)) => union(names.iter().map(|name| plain(name, object))),
        Some(name) => plain(name, object),
        None => "unknown".to_owned(),
    }
}

fn plain(name: &Value, schema: &Map<String, Value>) -> String {
    match name.as_str().unwrap_or_default() {
        "integer" => "number".to_owned(),
        "object" if schema.get("additionalProperties").is_some_and(|rest| rest != false) => {
            "Record<string, unknown>".to_owned()
        }
        "object" => "Record<string, never>".to_owned(),
        "array" => match schema.get("prefixItems").and_then(Value::as_array) {
            Some(items) => format!("[{}]", items.iter().map(type_of).collect::<Vec<_>>().join(", ")),
            None => format!("{}[]", grouped(&type_of(schema.get("items").unwrap_or(&Value::Null)))),
        },
        other => other.to_owned(),
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}

fn union(types: impl Iterator<Item = String>) -> String {
    types.collect::<Vec<_>>().join(" | ")
}

fn grouped(text: &str) -> String {
    if text.contains('|') { format!("({text})") } else { text.to_owned() }
}
