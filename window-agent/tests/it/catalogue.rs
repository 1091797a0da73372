//! The catalogue that the coordinator carries is the one that this agent defines.

use baton_agent_tools::CATALOGUE;
use expect_test::expect_file;

#[test]
fn the_committed_catalogue_is_this_agents() {
    // `UPDATE_EXPECT=1 cargo test -p baton-window-agent --test it` writes it anew.
    let text = serde_json::to_string_pretty(CATALOGUE.definitions()).unwrap();
    expect_file!["../../../coordinator/edge/src/catalogue.json"].assert_eq(&format!("{text}\n"));
}

#[test]
fn every_tool_is_described_for_clients() {
    for definition in CATALOGUE.definitions() {
        let tool = definition.whole();
        let name = definition.name;
        assert!(tool.description.as_ref().is_some_and(|text| text.len() > 20), "{name} has no description");
        assert!(tool.annotations.is_some(), "{name} has no annotations");
        let input = serde_json::Value::Object((*tool.input_schema).clone());
        assert_eq!(input["properties"]["window"]["type"], "string", "{name} takes no window");
        let output = serde_json::Value::Object((*tool.output_schema.unwrap()).clone());
        assert!(output["properties"].get("status").is_some(), "{name} cannot fail");
        if let Some(statuses) = output["properties"]["status"]["enum"].as_array() {
            assert!(statuses.contains(&"error".into()), "{name} cannot fail");
            assert_eq!(definition.waits, statuses.contains(&"timeout".into()), "{name} waits or not");
        }
    }
}
