//! CORE: objects of JSON.

use serde_json::{Map, Value};

/// A JSON object.
pub type Object = Map<String, Value>;

/// The object inside a JSON literal.
pub fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
