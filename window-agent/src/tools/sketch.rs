//! How a tool is put together for clients: what all tools of Baton have in common is said here once.

use std::sync::Arc;

use baton_proto::edge::WINDOW_ARGUMENT;
use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::{Definition, Object, object};

/// What a tool does to the world, as annotations for clients.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// Looks only.
    Reads,
    /// Changes what can be changed back.
    Changes,
    /// Repeating it changes nothing more.
    ChangesOnce,
    /// May end or alter what runs.
    Destroys,
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        // What does not apply, or is the protocol's default, is left out.
        let annotations = ToolAnnotations::new().open_world(false);
        match self {
            Effect::Reads => annotations.read_only(true),
            Effect::Changes => annotations.read_only(false).destructive(false),
            Effect::ChangesOnce => annotations.read_only(false).destructive(false).idempotent(true),
            Effect::Destroys => annotations.read_only(false).destructive(true),
        }
    }
}

/// A tool before it is put together. `properties` are JSON schemas by name; every tool also takes `window`.
pub(crate) struct Sketch {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) effect: Effect,
    pub(crate) waits: bool,
    pub(crate) properties: Value,
    pub(crate) required: &'static [&'static str],
    /// From [`by_status`] or [`documented`].
    pub(crate) output: Object,
}

impl Sketch {
    pub(crate) fn into_definition(self, toolset: &'static str) -> Definition {
        let mut properties = object(self.properties);
        properties.insert(
            WINDOW_ARGUMENT.to_owned(),
            json!({
                "type": "string",
                "description": "Default: the live one.",
            }),
        );
        let mut input = object(json!({"type": "object"}));
        input.insert("properties".to_owned(), Value::Object(properties));
        if !self.required.is_empty() {
            input.insert("required".to_owned(), json!(self.required));
        }
        input.insert("additionalProperties".to_owned(), Value::Bool(false));
        let tool = Tool::new(self.name, self.description, Arc::new(input))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(self.output))
            .with_annotations(self.effect.annotations());
        Definition::new(toolset, tool, self.waits)
    }

    /// With `_meta` for clients that read it.
    pub(crate) fn into_definition_with_meta(self, toolset: &'static str, meta: Object) -> Definition {
        let mut definition = self.into_definition(toolset);
        definition.tool.meta = Some(MetaObject(meta));
        definition
    }
}

/// A tool as lists of tools show it. Every client hands its list to a model with every conversation, so what the
/// agent checks anyway, and what an answer shows by itself, is left out: bounds of texts, members of results.
pub(crate) fn for_list(tool: &Tool) -> Tool {
    let mut listed = tool.clone();
    let mut input = (*tool.input_schema).clone();
    input.remove("additionalProperties");
    for (name, property) in input.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let Some(property) = property.as_object_mut() else { continue };
        property.retain(|field, _| !["minLength", "maxLength"].contains(&field.as_str()));
        if property.get("maximum").and_then(Value::as_u64).is_some_and(|maximum| maximum > MAX_TOLD) {
            property.remove("maximum");
        }
        if name == WINDOW_ARGUMENT {
            // What it means is told once, in the server's instructions.
            property.remove("description");
        }
    }
    listed.input_schema = Arc::new(input);
    listed.output_schema = tool.output_schema.as_deref().map(|output| Arc::new(outline(output)));
    if let Some(annotations) = &mut listed.annotations
        && annotations.read_only_hint == Some(true)
    {
        // The protocol gives these no meaning for a tool that only reads.
        (annotations.destructive_hint, annotations.idempotent_hint) = (None, None);
    }
    listed
}

/// The names and types of a result's fields: those that are always there, and those that hold more than a word.
fn outline(output: &Object) -> Object {
    let mut outline = output.clone();
    let either = outline.remove("anyOf").unwrap_or_default();
    let required = outline.get("required").unwrap_or(&either[0]["required"]).clone();
    let Some(properties) = outline.get_mut("properties").and_then(Value::as_object_mut) else {
        return outline;
    };
    properties.retain(|name, property| {
        let is_word = matches!(property["type"].as_str(), Some("string" | "integer" | "boolean"));
        let is_required = required.as_array().is_some_and(|names| names.contains(&json!(name)));
        is_required || !(is_word || name == "status" || name == "candidates")
    });
    for (_, property) in properties.iter_mut().filter(|(name, _)| *name != "status") {
        *property = property.get("type").map_or(json!({}), |kind| json!({"type": kind}));
    }
    outline
}

/// A bound above this says nothing to a model.
const MAX_TOLD: u64 = 999;

/// Schema of a result that always has `status`, one of these; every one may be an error.
pub(crate) fn by_status(statuses: &[&str], results: Value) -> Object {
    let mut properties = object(json!({"status": {"enum": statuses}}));
    properties.extend(object(results));
    object(json!({"type": "object", "properties": Value::Object(properties), "required": ["status"]}))
}

/// Schema of a result that has exactly the fields a document gives it, or is an error.
pub(crate) fn documented(results: Value, required: &[&str]) -> Object {
    let mut properties = object(results);
    for name in ["status", "code", "message", "hint"] {
        properties.entry(name).or_insert_with(|| json!({"type": "string"}));
    }
    object(json!({
        "type": "object",
        "properties": Value::Object(properties),
        "anyOf": [{"required": required}, {"required": ["status", "code", "message"]}],
    }))
}
