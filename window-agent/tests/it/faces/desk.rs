//! A client at work on an agent: each result is checked against the schema that its tool promises.

use std::time::{Duration, Instant};

use baton_agent_debug::DebuggerOptions;
use baton_agent_tools::CATALOGUE;
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

use crate::support::agent::{self, Agent, Client};

/// A loop, a call, a condition.
pub(crate) const MAIN: &str = r#"def price(item, quantity):
    total = PRICES[item] * quantity
    return total


PRICES = {"apple": 3, "bread": 4}
bill = 0
for item in PRICES:
    bill += price(item, 2)
print("bill:", bill)
"#;
/// Never stops by itself.
const ENDLESS: &str = "n = 0\nwhile True:\n    n += 1\n";
/// Waits for a file, and talks on both streams.
const WAIT: &str = "import os, sys, time\nprint('one', flush=True)\nprint('two', file=sys.stderr, flush=True)\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nprint('went')\n";
/// Ends with an exception that nobody catches.
const CRASH: &str = "def divide(a, b):\n    return a / b\n\ndivide(1, 0)\n";
/// Shows its arguments and a variable of its environment.
const ARGS: &str =
    "import os, sys\nprint(sys.argv[1:], os.environ.get('MOOD'), os.path.basename(os.getcwd()))\n";
/// Holds what must not be shown, and what is long.
const SECRETS: &str = "password = 'hunter2'\nlogin = {'user': 'ann', 'token': 'abc123'}\nplain = 'x' * 10000\nitems = list(range(1000))\nprint('end')\n";

const LAUNCH: &str = r#"{"configurations": [
    {"name": "bill", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/main.py", "console": "internalConsole"},
    {"name": "secrets", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/secrets.py", "console": "internalConsole"}
]}"#;

const FILES: &[(&str, &str)] = &[
    ("main.py", MAIN),
    ("endless.py", ENDLESS),
    ("wait.py", WAIT),
    ("crash.py", CRASH),
    ("args.py", ARGS),
    ("count.py", "total = 0\nfor i in range(20):\n    total += i\nprint(total)\n"),
    ("greet/__main__.py", ARGS),
    ("secrets.py", SECRETS),
    ("a/twin.py", "print('a')\n"),
    ("b/twin.py", "print('b')\n"),
    ("src/models/user.py", "name = 'ann'\nprint(name)\n"),
    (".vscode/launch.json", LAUNCH),
];

/// See the module.
pub(crate) struct Desk {
    pub(crate) agent: Agent,
    client: Client,
}

/// What a call brought.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// The first text.
    pub(crate) text: String,
    /// All texts.
    pub(crate) texts: Vec<String>,
    /// `structuredContent`, or the details beside a text.
    pub(crate) value: Value,
}

impl Desk {
    pub(crate) async fn open() -> Self {
        Self::at(Agent::start(FILES).await).await
    }

    /// Where no debug adapter is installed.
    pub(crate) async fn open_bare() -> Self {
        let bare = |options: &mut DebuggerOptions| {
            options.python = None;
            options.search_path = Some("/nowhere".into());
            options.shelf.folder = Some("/nowhere".into());
        };
        Self::at(Agent::start_with(FILES, bare).await).await
    }

    /// With changed options of the debugger.
    pub(crate) async fn open_with(change: impl FnOnce(&mut DebuggerOptions)) -> Self {
        Self::at(Agent::start_with(FILES, change).await).await
    }

    async fn at(agent: Agent) -> Self {
        let client = agent.client(ClientLifecycleMode::Initialize).await;
        Self { agent, client }
    }

    /// Calls a tool; its result fits the schema, and tells of a failure or not as it should.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Said {
        let (said, is_error) = self.say(tool, &arguments).await;
        assert!(!is_error, "{tool} {arguments}: {said:#?}");
        said
    }

    /// Calls a tool that must refuse; what it says.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> Said {
        let (said, is_error) = self.say(tool, &arguments).await;
        assert!(is_error, "{tool} {arguments}: {said:#?}");
        assert_eq!(said.value["status"], "error");
        assert!(said.value["code"].as_str().is_some_and(|code| !code.is_empty()), "{said:#?}");
        if tool == "debug" {
            assert!(said.text.starts_with(said.value["message"].as_str().unwrap()), "{said:#?}");
        } else {
            assert_eq!(serde_json::from_str::<Value>(&said.text).unwrap(), said.value);
        }
        said
    }

    /// Calls a tool; what it says, and whether that is an error.
    pub(crate) async fn say(&self, tool: &str, arguments: &Value) -> (Said, bool) {
        let result = agent::call(&self.client, tool, arguments.clone()).await;
        // A result has a structure, or a text with details for programs.
        let meta = result.meta.as_ref().expect("a result says which window it is of");
        let details = meta.0.get("baton/details").cloned();
        assert_eq!(
            details.is_some(),
            tool == "debug" && result.structured_content.is_none(),
            "{tool}: {meta:?}"
        );
        let value = result.structured_content.or(details).expect("a result is structured");
        if let Some(definition) = CATALOGUE.find(tool) {
            let output = definition.whole().output_schema.unwrap();
            let schema = Value::Object((*output).clone());
            let validator = jsonschema::validator_for(&schema).unwrap();
            if let Err(error) = validator.validate(&value) {
                panic!("{tool} {arguments}: {error}\n{value:#}");
            }
        }
        let texts: Vec<String> =
            result.content.iter().map(|content| content.as_text().unwrap().text.clone()).collect();
        let text = texts[0].clone();
        (Said { text, texts, value }, result.is_error == Some(true))
    }

    /// An action of the tool `debug`.
    pub(crate) async fn debug(&self, action: &str, arguments: Value) -> Said {
        let said = self.call("debug", with_action(action, arguments)).await;
        assert_eq!((&said.value["action"], &said.value["success"]), (&json!(action), &json!(true)));
        assert_eq!(said.texts.len(), 1, "one text block");
        said
    }

    /// An action that must be refused.
    pub(crate) async fn debug_refused(&self, action: &str, arguments: Value) -> Said {
        self.refused("debug", with_action(action, arguments)).await
    }

    /// Calls until the answer is as wanted: for what comes a moment later than its cause.
    pub(crate) async fn debug_until(
        &self,
        action: &str,
        arguments: Value,
        is_wanted: impl Fn(&Said) -> bool,
    ) -> Said {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let said = self.debug(action, arguments.clone()).await;
            if is_wanted(&said) {
                return said;
            }
            assert!(Instant::now() < deadline, "{action} {arguments}: {said:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// A text without what differs from run to run.
    pub(crate) fn stable(&self, text: &str) -> String {
        self.agent.stable(text)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.agent.root.join(name).display().to_string()
    }
}

fn with_action(action: &str, mut arguments: Value) -> Value {
    arguments["action"] = json!(action);
    arguments
}
