//! CORE: lists, choices and what is sent back, where servers need not keep to the protocol: what is odd is left out,
//! and nothing else with it.

use std::ops::Deref;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The entries of a list, but for those of another form.
pub(crate) fn list<T: DeserializeOwned>(value: &Value) -> Vec<T> {
    value.as_array().into_iter().flatten().filter_map(|entry| T::deserialize(entry).ok()).collect()
}

/// A field like [`list`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Value", bound = "T: DeserializeOwned")]
pub(crate) struct Each<T>(pub Vec<T>);

impl<T: DeserializeOwned> From<Value> for Each<T> {
    fn from(value: Value) -> Self {
        Self(list(&value))
    }
}

/// What some servers say in a word, and others with more.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Or<A, B> {
    Plain(A),
    More(B),
}

/// What a server wants to hear again as it was, with all that is not looked into.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "Value", bound = "T: DeserializeOwned")]
pub(crate) struct Kept<T> {
    pub raw: Value,
    read: T,
}

impl<T: DeserializeOwned> TryFrom<Value> for Kept<T> {
    type Error = serde_json::Error;

    fn try_from(raw: Value) -> serde_json::Result<Self> {
        T::deserialize(&raw).map(|read| Self { read, raw })
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.read
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::answers::CompletionItem;
    use super::super::notices::{Capabilities, Progress};
    use super::*;
    use baton_agent_base::wire::read;

    #[test]
    fn what_is_odd_costs_nothing_else() {
        let items = json!([
            {"label": "a", "kind": "field", "sortText": null, "documentation": [1, {"value": "b"}, "c"]},
            {"label": {"label": "d", "detail": "e"}, "kind": 5, "labelDetails": 6},
            7,
        ]);
        let items: Vec<Kept<CompletionItem>> = list(&items);
        let told =
            |item: &CompletionItem| (item.label().to_owned(), item.kind, item.detail().map(str::to_owned));
        let told: Vec<_> = items.iter().map(|item| told(item)).collect();
        assert_eq!(told, [("a".to_owned(), None, None), ("d".to_owned(), Some(5), Some("e".to_owned()))]);
        assert_eq!(items[0].documentation.as_ref().unwrap().text(), "\n\nb\n\nc");
        assert_eq!(
            items[1].raw,
            json!({"label": {"label": "d", "detail": "e"}, "kind": 5, "labelDetails": 6})
        );
        let can: Capabilities =
            read(&json!({"completionProvider": true, "codeActionProvider": {"resolveProvider": true}}));
        assert_eq!(
            (can.completion_provider.resolve_provider, can.code_action_provider.resolve_provider),
            (false, true)
        );
        assert_eq!(read::<Progress>(&json!("no object")).value.kind, "");
    }
}
