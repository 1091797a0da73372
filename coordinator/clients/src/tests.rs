//! A client's file keeps every byte that is not Baton's, and gets all of its bytes back.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use baton_link::home::Home;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::file::{FileError, Written, remove, write};

struct Case {
    dir: tempfile::TempDir,
    home: Home,
}

impl Case {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path().join("home")).unwrap();
        Self { dir, home }
    }

    fn file(&self, text: Option<&str>) -> PathBuf {
        let path = self.dir.path().join("client/settings");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text {
            Some(text) => std::fs::write(&path, text).unwrap(),
            None => drop(std::fs::remove_file(&path)),
        }
        path
    }

    fn write(&self, client: Client, path: &Path, port: u16) -> Written {
        write(&self.home, client, path, &client.entry(&http(port))).unwrap()
    }
}

fn http(port: u16) -> Reach {
    Reach::Http { url: format!("http://127.0.0.1:{port}/mcp"), token: "t0".to_owned() }
}

/// Writes into `text`, shows the result, and expects all bytes back.
fn check(client: Client, text: &str, expected: Expect) {
    let case = Case::new();
    let path = case.file(Some(text));
    assert_eq!(case.write(client, &path, 7717), Written::Changed);
    expected.assert_eq(&std::fs::read_to_string(&path).unwrap());
    assert_eq!(case.write(client, &path, 7717), Written::Unchanged, "it is written once");
    assert_eq!(case.write(client, &path, 7718), Written::Changed);
    assert_eq!(remove(&case.home, client, &path).unwrap(), Written::Changed);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert_eq!(remove(&case.home, client, &path).unwrap(), Written::Unchanged);
}

#[test]
fn an_entry_goes_behind_the_others() {
    check(
        Client::Cursor,
        "{\n  // mine\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\" } // the first\n  },\n  \"z\": 1\n}\n",
        expect![[r#"
            {
              // mine
              "mcpServers": {
                "a": { "command": "a" }, // the first
                "baton": {
                  "url": "http://127.0.0.1:7717/mcp",
                  "headers": {
                    "Authorization": "Bearer t0"
                  }
                }
              },
              "z": 1
            }
        "#]],
    );
}

#[test]
fn a_section_is_made_in_the_style_of_the_file() {
    check(
        Client::Zed,
        "// Zed\n{\n\t\"theme\": \"One\",\n\t/* last */\n}",
        expect![[r#"
            // Zed
            {
            	"theme": "One",
            	"context_servers": {
            		"baton": {
            			"url": "http://127.0.0.1:7717/mcp",
            			"headers": {
            				"Authorization": "Bearer t0"
            			}
            		}
            	},
            	/* last */
            }"#]],
    );
}

#[test]
fn a_file_on_one_line_stays_on_one_line() {
    check(
        Client::Gemini,
        r#"{"theme":"x","mcpServers":{"a":{"command":"a"}}}"#,
        expect![[
            r#"{"theme":"x","mcpServers":{"a":{"command":"a"}, "baton": {"httpUrl": "http://127.0.0.1:7717/mcp", "headers": {"Authorization": "Bearer t0"}}}}"#
        ]],
    );
}

#[test]
fn empty_objects_and_files_are_filled() {
    check(
        Client::Vscode,
        "{\"servers\": {}}",
        expect![[r#"
            {"servers": {
              "baton": {
                "type": "http",
                "url": "http://127.0.0.1:7717/mcp",
                "headers": {
                  "Authorization": "Bearer t0"
                }
              }
            }}"#]],
    );
    for text in ["", "\n", "{}", "{\n}\n", "{ }", "{ // nothing yet\n}", "\u{feff}{}\r\n"] {
        let case = Case::new();
        let path = case.file(Some(text));
        assert_eq!(case.write(Client::Roo, &path, 7717), Written::Changed, "{text:?}");
        remove(&case.home, Client::Roo, &path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn toml_gets_a_table_at_its_end() {
    check(
        Client::Codex,
        "model = \"x\" # mine\n\n[mcp_servers.a]\ncommand = 'a'",
        expect![[r#"
            model = "x" # mine

            [mcp_servers.a]
            command = 'a'

            [mcp_servers.baton]
            url = "http://127.0.0.1:7717/mcp"
            http_headers = { Authorization = "Bearer t0" }
        "#]],
    );
    for text in
        ["", "# only a comment", "mcp_servers = { a = { command = 'a' } }\r\nx = 1\r\n", "[mcp_servers]\r\n"]
    {
        let case = Case::new();
        let path = case.file(Some(text));
        assert_eq!(case.write(Client::Codex, &path, 7717), Written::Changed, "{text:?}");
        remove(&case.home, Client::Codex, &path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_broken_file_is_left_alone() {
    let json = [
        "{",
        "[]",
        "{'a':1}",
        "{\"a\" 1}",
        "{\"mcpServers\":[]}",
        "{\"mcpServers\":{},\"mcpServers\":{}}",
        "1 2",
    ];
    let toml = ["[", "a = ", "mcp_servers = 1", "a = 1\na = 2"];
    let cases = json.map(|text| (Client::Cursor, text)).into_iter();
    for (client, text) in cases.chain(toml.map(|text| (Client::Codex, text))) {
        let case = Case::new();
        let path = case.file(Some(text));
        let error = write(&case.home, client, &path, &client.entry(&http(1))).unwrap_err();
        assert!(matches!(error, FileError::Broken { .. }), "{text}: {error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }
    let case = Case::new();
    let path = case.file(None);
    std::fs::write(&path, b"{\"a\":\"\xff\"}").unwrap();
    assert!(write(&case.home, Client::Cursor, &path, &json!({})).is_err());
}

#[test]
fn a_file_that_baton_made_goes_again_unless_others_use_it() {
    for client in Client::ALL.map(|(client, _)| client) {
        let case = Case::new();
        let path = case.file(None);
        assert_eq!(case.write(client, &path, 7717), Written::Changed);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(case.write(client, &path, 7718), Written::Changed);
        assert_eq!(remove(&case.home, client, &path).unwrap(), Written::Deleted);
        assert!(!path.exists());
    }
    let case = Case::new();
    let path = case.file(None);
    case.write(Client::Cursor, &path, 7717);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, json::set(&text, "mcpServers", "other", &json!({ "command": "o" })).unwrap())
        .unwrap();
    assert_eq!(remove(&case.home, Client::Cursor, &path).unwrap(), Written::Changed);
    let left: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(left, json!({ "mcpServers": { "other": { "command": "o" } } }));
}

#[test]
fn a_client_that_writes_its_file_anew_loses_nothing() {
    let case = Case::new();
    let path = case.file(Some("{\n  \"mcpServers\": {},\n  \"n\": 1\n}"));
    case.write(Client::ClaudeCode, &path, 7717);
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    std::fs::write(&path, value.to_string()).unwrap();
    assert_eq!(remove(&case.home, Client::ClaudeCode, &path).unwrap(), Written::Changed);
    let left: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(left, json!({ "mcpServers": {}, "n": 1 }));
}

#[test]
fn links_and_modes_and_folders_stay() {
    let case = Case::new();
    let real = case.file(Some("{}"));
    std::fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
    let link = case.dir.path().join("link.json");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    case.write(Client::Windsurf, &link, 7717);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let mode = || std::fs::metadata(&real).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600, "nobody else reads the token");
    assert!(std::fs::read_to_string(&real).unwrap().contains("serverUrl"));
    case.write(Client::Windsurf, &link, 7718);
    remove(&case.home, Client::Windsurf, &link).unwrap();
    assert_eq!((std::fs::read_to_string(&real).unwrap().as_str(), mode()), ("{}", 0o640));
    std::fs::remove_file(&real).unwrap();
    let folder = case.dir.path().join("of/a/client");
    case.write(Client::Windsurf, &folder.join("file.json"), 7717);
    remove(&case.home, Client::Windsurf, &folder.join("file.json")).unwrap();
    assert!(case.dir.path().exists() && !case.dir.path().join("of").exists(), "folders go that were made");
}

#[test]
fn stdio_needs_no_secret() {
    let reach = Reach::Stdio { program: "/opt/baton".to_owned(), args: vec!["stdio".to_owned()], home: None };
    for client in Client::ALL.map(|(client, _)| client) {
        let entry = client.entry(&reach);
        assert_eq!((&entry["command"], &entry["args"]), (&json!("/opt/baton"), &json!(["stdio"])));
        assert!(client.render(&entry).contains(client.section()));
    }
}

/// JSON with comments, laid out in many ways.
fn layout() -> impl Strategy<Value = String> {
    let space = prop::sample::select(vec!["", " ", "\n", "\n  ", "\r\n\t", " // c\n", "/* é */", "\n\n    "]);
    let scalar = prop::sample::select(vec!["1", "\"x\"", "\"a,}//\"", "true", "[1, {}]", "\"ü\""]);
    let name = prop::sample::select(vec!["a", "b", "c", "d"]);
    let pairs = |inner: BoxedStrategy<String>| {
        let pair = (space.clone(), name.clone(), space.clone(), inner, space.clone());
        (prop::collection::vec(pair, 0..4), space.clone(), any::<bool>())
    };
    type Pair = (&'static str, &'static str, &'static str, String, &'static str);
    let object = |(pairs, end, trailing): (Vec<Pair>, &str, bool)| {
        let n_pairs = pairs.len();
        let body: Vec<_> = pairs
            .into_iter()
            .enumerate()
            .map(|(idx, (s1, name, s2, value, s3))| format!("{s1}\"{name}{idx}\":{s2}{value}{s3}"))
            .collect();
        let comma = if trailing && n_pairs > 0 { "," } else { "" };
        format!("{{{}{comma}{end}}}", body.join(","))
    };
    let leaf = scalar.prop_map(str::to_owned).boxed();
    let inner = pairs(leaf).prop_map(object).boxed();
    let servers = (inner.clone(), any::<bool>());
    (pairs(inner).prop_map(object), servers, space).prop_map(|(outer, (servers, has_servers), space)| {
        if !has_servers {
            return format!("{space}{outer}{space}");
        }
        let comma = if outer[1..].contains(':') { "," } else { "" };
        format!("{space}{{{space}\"mcpServers\":{space}{servers}{comma}{}{space}", &outer[1..])
    })
}

proptest! {
    #[test]
    fn any_file_keeps_its_bytes_and_gets_them_back(text in layout()) {
        let before = json::to_value(&text).unwrap();
        let entry = Client::Cursor.entry(&http(7717));
        let after = json::set(&text, "mcpServers", ENTRY, &entry).unwrap();
        let mut expected = before.clone();
        expected["mcpServers"][ENTRY] = entry.clone();
        prop_assert_eq!(&json::to_value(&after).unwrap(), &expected);
        // What was there is there still, in its order.
        let mut rest = after.chars();
        prop_assert!(text.chars().all(|wanted| rest.any(|found| found == wanted)));
        let splice = edit::Splice::between(&text, &after);
        prop_assert_eq!(splice.undo(&after).unwrap(), text);
        let removed = json::unset(&after, "mcpServers", ENTRY, false).unwrap();
        let mut left = json::to_value(&removed).unwrap();
        if before.get("mcpServers").is_none() {
            edit::take_entry(&mut left, "mcpServers", ENTRY);
        }
        prop_assert_eq!(left, before);
    }
}
