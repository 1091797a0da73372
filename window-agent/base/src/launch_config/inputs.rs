//! CORE: what a configuration asks a person for, and what was answered before anybody was asked.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::object::Object;
use crate::wire::{bodies, read};

/// What a client answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Values by the ids of the `inputs` of launch.json.
    pub inputs: BTreeMap<String, String>,
    /// The process that is to be picked.
    pub pid: Option<u32>,
}

bodies! { pub(crate),
    /// One of the `inputs` of a launch.json.
    Definition {
        id: Option<String>,
        #[serde(rename = "type")]
        kind: String,
        description: Option<String>,
        default: Option<String>,
        options: Vec<Choice>,
    }
}

/// A value, or one with a label beside it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Choice {
    Plain(String),
    Labelled { value: String },
}

/// What is asked for and was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// A value.
    Input {
        /// By which it is answered.
        id: String,
        /// What the person would read.
        description: Option<String>,
        /// What they could choose from; anything when it is empty.
        options: Vec<String>,
        /// What they would be offered.
        default: Option<String>,
    },
    /// A running process.
    Process,
}

impl Question {
    fn of(id: &str, definition: Definition) -> Self {
        let value = |choice| match choice {
            Choice::Plain(value) | Choice::Labelled { value } => value,
        };
        Self::Input {
            id: id.to_owned(),
            description: definition.description,
            options: definition.options.into_iter().map(value).collect(),
            default: definition.default,
        }
    }

    /// An answer that would do, as an example.
    pub fn example(&self) -> &str {
        match self {
            Self::Input { default: Some(default), .. } => default,
            Self::Input { options, .. } => options.first().map_or("...", String::as_str),
            Self::Process => "",
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Input { id, description, options, default } = self else {
            return to.write_str("the id of a process");
        };
        let options = options.iter().map(|option| format!("{option:?}")).collect::<Vec<_>>().join(", ");
        let more = [
            description.clone(),
            Some(options).filter(|options| !options.is_empty()).map(|options| format!("one of {options}")),
            default.as_ref().map(|default| format!("default {default:?}")),
        ];
        let more: Vec<String> = more.into_iter().flatten().collect();
        match more.is_empty() {
            true => to.write_str(id),
            false => write!(to, "{id} ({})", more.join("; ")),
        }
    }
}

/// Puts the answers into a configuration; `definitions` are the `inputs` of its launch.json. What is left is asked for.
pub fn answer(configuration: &Object, definitions: &[Value], answers: &Answers) -> (Object, Vec<Question>) {
    let mut asking = Asking { definitions, answers, open: Vec::new() };
    let answered =
        configuration.iter().map(|(name, value)| (name.clone(), asking.value(value))).collect::<Object>();
    (answered, asking.open)
}

struct Asking<'a> {
    definitions: &'a [Value],
    answers: &'a Answers,
    open: Vec<Question>,
}

impl Asking<'_> {
    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), self.value(value))).collect()
            }
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str) -> Value {
        let mut answered = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(len) = rest[start..].find('}') else { break };
            let (before, from) = rest.split_at(start);
            let (variable, after) = from.split_at(len + 1);
            answered.push_str(before);
            match variable[2..len].split_once(':') {
                Some(("input", id)) => answered.push_str(self.input(id).unwrap_or(variable)),
                Some(("command", name)) if is_pick(name) => match self.answers.pid {
                    // A number, where it is all that stands there.
                    Some(pid) if variable == text => return pid.into(),
                    Some(pid) => answered.push_str(&pid.to_string()),
                    None => {
                        self.ask(Question::Process);
                        answered.push_str(variable);
                    }
                },
                _ => answered.push_str(variable),
            }
            rest = after;
        }
        answered.push_str(rest);
        Value::String(answered)
    }

    fn input(&mut self, id: &str) -> Option<&str> {
        if let Some(value) = self.answers.inputs.get(id) {
            return Some(value);
        }
        let mut definitions = self.definitions.iter().map(read::<Definition>);
        let definition = definitions.find(|known| known.id.as_deref() == Some(id)).unwrap_or_default();
        // A command of the editor need not ask anybody.
        if definition.kind != "command" {
            self.ask(Question::of(id, definition));
        }
        None
    }

    fn ask(&mut self, question: Question) {
        if !self.open.contains(&question) {
            self.open.push(question);
        }
    }
}

/// Whether a command of the editor lets a person pick a process: each debugger has its own.
fn is_pick(command: &str) -> bool {
    let command = command.to_lowercase();
    command.contains("pick") && command.contains("process")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::object;

    fn check(answers: &Answers) -> (Value, String) {
        let configuration = object(json!({
            "name": "greet", "args": ["--who=${input:who}", "${input:how}", "${input:who}", "${input:odd"],
            "env": {"AT": "${input:token}${workspaceFolder}", "X": "${input:unheard}"},
            "processId": "${command:extension.pickNativeProcess}", "note": "of ${command:PickProcess}!",
        }));
        let definitions = [
            json!({"id": "who", "type": "promptString", "description": "Who?", "default": "all"}),
            json!({"id": "how", "type": "pickString", "options": ["loud", {"label": "low", "value": "quiet"}]}),
            json!({"id": "token", "type": "command", "command": "some.command"}),
        ];
        let (answered, open) = answer(&configuration, &definitions, answers);
        let open: Vec<String> = open.iter().map(|one| format!("{one} e.g. {:?}", one.example())).collect();
        (Value::Object(answered), open.join("\n"))
    }

    #[test]
    fn what_is_not_answered_is_asked_for_once() {
        let (configuration, open) = check(&Answers::default());
        assert_eq!(configuration["args"][0], "--who=${input:who}");
        let expected = "who (Who?; default \"all\") e.g. \"all\"\n\
                        how (one of \"loud\", \"quiet\") e.g. \"loud\"\n\
                        unheard e.g. \"...\"\n\
                        the id of a process e.g. \"\"";
        assert_eq!(open, expected);
    }

    #[test]
    fn answers_stand_where_they_were_asked_for() {
        let inputs = [("who", "me"), ("how", "loud ${input:who}"), ("unheard", ""), ("more", "x")];
        let inputs = inputs.map(|(id, value)| (id.to_owned(), value.to_owned())).into();
        let (configuration, open) = check(&Answers { inputs, pid: Some(7) });
        assert_eq!(open, "");
        assert_eq!(
            configuration["args"],
            json!(["--who=me", "loud ${input:who}", "me", "${input:odd"]),
            "an answer is no question"
        );
        assert_eq!(configuration["env"], json!({"AT": "${input:token}${workspaceFolder}", "X": ""}));
        assert_eq!((&configuration["processId"], &configuration["note"]), (&json!(7), &json!("of 7!")));
    }
}
