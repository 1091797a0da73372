//! CORE: values of a protocol as types. Programs leave out what they must tell, and tell it in other types; a field that
//! is not as the protocol has it is as good as missing, and spoils no other.

use serde::Deserialize as _;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::{Value, json};

/// A value as a type; one that is nothing of the kind is empty.
pub fn read<T: DeserializeOwned + Default>(value: &Value) -> T {
    T::deserialize(value).or_else(|_| T::deserialize(readable::<T>(value))).unwrap_or_default()
}

/// A list or a map without what spoils it; in a list of bodies an empty one takes its place, for places count.
fn readable<T: DeserializeOwned>(value: &Value) -> Value {
    let is_read = |value: &Value| T::deserialize(value).is_ok();
    let or_empty = |item: &Value| [item.clone(), json!({})].into_iter().find(|item| is_read(&json!([item])));
    match value {
        Value::Array(items) => items.iter().filter_map(or_empty).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, value)| is_read(&json!({ (*name): value })));
            Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        _ => Value::Null,
    }
}

/// The same for a field (`#[serde(deserialize_with = "lenient")]`).
pub fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(from: D) -> Result<T, D::Error> {
    Ok(read(&Value::deserialize(from)?))
}

/// Types that read what is there, field by field, by the protocol's names.
#[macro_export]
macro_rules! bodies {
    ($vis:vis, $($(#[$meta:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, Default, PartialEq, ::serde::Deserialize)]
            #[serde(default, rename_all = "camelCase")]
            $vis struct $name {
                $(
                    $(#[$of_field])*
                    #[serde(deserialize_with = "::baton_agent_base::wire::lenient")]
                    $vis $field: $kind,
                )*
            }
        )*
    };
}

pub use bodies;
