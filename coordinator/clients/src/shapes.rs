//! What is written for clients whose programs do not run in the tests: it has the shape that their own code takes
//! (Zed, Cline, Roo), or that their documentation shows where no schema is published.
//!
//! `shapes.json` holds a JSON schema of each whole file, with the place it was taken from. They are narrower than
//! the clients' own: only what is known may stand there, and a URL means streamable HTTP.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Client, ENTRY, Reach};

fn shapes() -> BTreeMap<String, Value> {
    serde_json::from_str(include_str!("shapes.json")).unwrap()
}

/// All ways in which a client can reach Baton.
fn reaches(client: Client) -> Vec<Reach> {
    let http = Reach::Http { url: "http://127.0.0.1:7717/mcp".to_owned(), token: "t0".to_owned() };
    let stdio = |args: &[&str], home: Option<&str>| Reach::Stdio {
        program: "/opt/baton".to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        home: home.map(str::to_owned),
    };
    let stdio = [stdio(&["stdio"], None), stdio(&["stdio", "--window", "shop"], Some("/tmp/baton"))];
    stdio.into_iter().chain(client.takes_http().then_some(http)).collect()
}

#[test]
fn every_file_has_the_shape_that_its_client_takes() {
    for (name, shape) in shapes() {
        let client = Client::from_name(&name).unwrap();
        let shape = jsonschema::validator_for(&shape).unwrap();
        for reach in reaches(client) {
            let file: Value = serde_json::from_str(&client.render(&client.entry(&reach))).unwrap();
            let errors: Vec<_> = shape.iter_errors(&file).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{name}: {file}: {errors:?}");
            assert_eq!(file[client.section()].as_object().unwrap().keys().collect::<Vec<_>>(), [ENTRY]);
        }
    }
}

#[test]
fn the_shapes_refuse_the_mistakes_that_clients_do_not_forgive() {
    let shapes = shapes();
    for (name, entry) in [
        // A URL without a type is the older transport, or refused.
        ("cline", json!({"url": "http://127.0.0.1:7717/mcp"})),
        ("roo", json!({"url": "http://127.0.0.1:7717/mcp"})),
        ("roo", json!({"type": "streamableHttp", "url": "http://127.0.0.1:7717/mcp"})),
        // Arguments may not be left out.
        ("zed", json!({"command": "/opt/baton"})),
        ("zed", json!({"command": {"path": "/opt/baton", "args": []}})),
        ("windsurf", json!({"url": "http://127.0.0.1:7717/mcp"})),
        ("cursor", json!({"serverUrl": "http://127.0.0.1:7717/mcp"})),
        // It takes nothing but commands.
        ("claude-desktop", json!({"url": "http://127.0.0.1:7717/mcp"})),
    ] {
        let client = Client::from_name(name).unwrap();
        let file = json!({ client.section(): { ENTRY: entry } });
        assert!(!jsonschema::is_valid(&shapes[name], &file), "{name} takes {file}");
    }
}
