//! Carries out the user's settings `baton.*`: auto-start is the window's own, the others belong to the coordinator.

use baton_link::find::find;
use baton_proto::control::{PortChange, SettingsChange};
use baton_proto::shim::{EditorSettings, SettingsTaken};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Desk, problem};
use baton_agent_base::shim::Refusal;

/// Lower ones need rights that Baton never has.
const MIN_PORT: u16 = 1_024;

impl Desk {
    pub(super) async fn take_settings(&self, settings: EditorSettings) -> Result<SettingsTaken, Refusal> {
        let mut values = settings.values;
        if let Some(auto_start) = values.remove("autoStart") {
            let auto_start = known(auto_start)?;
            // It was changed later than the window's own wish.
            self.identity.set_auto_start(None);
            self.set_auto_start(auto_start).await?;
        }
        let port = values.remove("port");
        if !values.is_empty() {
            let change: SettingsChange = known(Value::Object(on_the_wire(values)))?;
            let change = self.connect().await?.change_settings(&change).await;
            change.map_err(Refusal::new)?;
        }
        let moved_to = match port {
            Some(port) => self.move_to(&port).await?,
            None => None,
        };
        Ok(SettingsTaken { moved_to })
    }

    /// The new URL, when it is another one.
    async fn move_to(&self, port: &Value) -> Result<Option<String>, Refusal> {
        let number = port.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port >= MIN_PORT);
        let Some(number) = number else {
            let text = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
            return Err(problem("bad_port", vec![text]).into());
        };
        let before = find(&self.find.home).await.ok().map(|connection| connection.hello().port);
        let changed = self.change_port(PortChange { port: number }).await?;
        Ok((before != Some(number)).then_some(changed.url))
    }
}

/// `followFocus` in VS Code is `follow_focus` on the wire.
fn on_the_wire(values: Map<String, Value>) -> Map<String, Value> {
    let to_snake = |name: String| {
        name.chars().fold(String::new(), |mut snake, character| {
            if character.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(character.to_ascii_lowercase());
            snake
        })
    };
    values.into_iter().map(|(name, value)| (to_snake(name), value)).collect()
}

fn known<T: DeserializeOwned>(value: Value) -> Result<T, Refusal> {
    serde_json::from_value(value).map_err(|error| problem("bad_setting", vec![error.to_string()]).into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_go_by_their_names_on_the_wire() {
        let values =
            json!({"followFocus": true, "aiHandover": "never", "redact": true, "toolsets": ["code"]});
        let values = on_the_wire(values.as_object().cloned().unwrap());
        let change: SettingsChange = known(Value::Object(values)).unwrap();
        let told = serde_json::to_value(change).unwrap();
        assert_eq!((&told["follow_focus"], &told["ai_handover"]), (&json!(true), &json!("never")));
        assert_eq!((&told["redact"], &told["toolsets"]), (&json!(true), &json!(["code"])));
    }
}
