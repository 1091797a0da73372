//! What a tool answers, and how a client is told.

use serde_json::Value;

use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::object::Object;

/// Key of a result's `_meta` for what programs may want to know beside the text.
pub const DETAILS: &str = "baton/details";

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Any status but `error`; the text is the same JSON.
    Result(Object),
    /// With a text of its own: for people, or a list, which `structuredContent` cannot be.
    Spoken(Spoken),
    /// `status: error`.
    Error(Fault),
}

/// See [`Answer::Spoken`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spoken {
    /// The text, and perhaps a second one with what else is worth knowing.
    pub texts: Vec<String>,
    /// `structuredContent`, or [`DETAILS`].
    pub object: Object,
    /// The text says all that a model needs, and the object is for programs. Some clients show their model the
    /// `structuredContent` alone when there is one.
    pub is_text_whole: bool,
    /// Whether it tells of a failure.
    pub is_error: bool,
}

/// Which window answers, for a client that may not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// A sentence, for one that has not heard of this window.
    pub notice: Option<String>,
    /// A word, where several windows are open.
    pub label: Option<String>,
}

impl Told {
    /// Ours goes before what the tool says, so that nothing is read as if another window had said it.
    fn before(self, text: &str) -> String {
        let label = self.label.map(|label| format!("[{label}] ")).unwrap_or_default();
        let notice = self.notice.map(|notice| format!("{notice}\n")).unwrap_or_default();
        format!("{notice}{label}{text}")
    }

    fn put_into(self, object: &mut Object) {
        // The tool may have said something there already.
        let notice = match (self.notice, object.get(NOTICE_FIELD)) {
            (Some(notice), Some(Value::String(known))) => Some(format!("{notice} {known}")),
            (notice, _) => notice,
        };
        for (name, value) in [(WINDOW_FIELD, self.label), (NOTICE_FIELD, notice)] {
            if let Some(value) = value {
                object.insert(name.to_owned(), value.into());
            }
        }
    }
}

/// Where an object says which window answers: no tool of ours has such fields.
const WINDOW_FIELD: &str = "in_window";
/// See [`WINDOW_FIELD`].
const NOTICE_FIELD: &str = "notice";

impl Answer {
    /// The same answer, which says which window it is of. Some clients show their model the text, some the structure, so
    /// both say it.
    pub fn telling(self, told: Told) -> Self {
        if told == Told::default() {
            return self;
        }
        let mut spoken = match self {
            Answer::Spoken(spoken) => spoken,
            other => {
                let (mut object, is_error) = other.into_object();
                told.put_into(&mut object);
                let texts = vec![Value::from(object.clone()).to_string()];
                return Answer::Spoken(Spoken { texts, object, is_text_whole: false, is_error });
            }
        };
        if !spoken.is_text_whole {
            told.clone().put_into(&mut spoken.object);
        }
        match spoken.texts.first_mut() {
            // The value of a Python dictionary, and a list, begin so as well.
            Some(text) if spoken.is_text_whole => *text = told.before(text),
            // A list that programs read; it is the structure as well.
            Some(text) if text.starts_with('[') => spoken.texts.push(told.before("").trim().to_owned()),
            Some(text) if text.starts_with('{') => *text = Value::from(spoken.object.clone()).to_string(),
            Some(text) => *text = told.before(text),
            None => spoken.texts.push(told.before("").trim().to_owned()),
        }
        Answer::Spoken(spoken)
    }

    /// Everything a client is told.
    pub fn spoken(self) -> Spoken {
        let (object, is_error) = match self {
            Answer::Spoken(spoken) => return spoken,
            Answer::Result(object) => (object, false),
            Answer::Error(error) => (error.into_object(), true),
        };
        let texts = vec![Value::from(object.clone()).to_string()];
        Spoken { texts, object, is_text_whole: false, is_error }
    }

    /// The object that becomes `structuredContent`, and whether it tells of a failure.
    pub fn into_object(self) -> (Object, bool) {
        let spoken = self.spoken();
        (spoken.object, spoken.is_error)
    }
}

impl From<Result<Object, Fault>> for Answer {
    fn from(result: Result<Object, Fault>) -> Self {
        match result {
            Ok(object) => Answer::Result(object),
            Err(error) => Answer::Error(error),
        }
    }
}

/// Of a name that its toolset has no tool for.
pub(crate) fn unknown_tool(name: &str) -> Fault {
    Fault::new(Kind::UnknownTool, format!("There is no tool named {name:?}."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use baton_agent_base::object::object;

    fn told() -> Told {
        Told { notice: Some("This is window \"b\".".to_owned()), label: Some("b".to_owned()) }
    }

    fn whole(text: &str) -> Answer {
        Answer::Spoken(Spoken { texts: vec![text.to_owned()], is_text_whole: true, ..Spoken::default() })
    }

    #[test]
    fn an_answer_says_its_window_in_all_that_a_model_may_be_shown() {
        let spoken = whole("stopped").telling(told()).spoken();
        assert_eq!(
            (spoken.texts, spoken.object),
            (vec!["This is window \"b\".\n[b] stopped".to_owned()], Object::new())
        );
        let spoken = whole("{'a': 3}").telling(Told { notice: None, ..told() }).spoken();
        assert_eq!(spoken.texts, ["[b] {'a': 3}"], "a value is no structure");
        let spoken = Answer::Result(object(json!({"status": "success"}))).telling(told()).spoken();
        assert_eq!(spoken.texts, [Value::from(spoken.object.clone()).to_string()]);
        assert_eq!(
            (&spoken.object["in_window"], &spoken.object["notice"]),
            (&json!("b"), &json!("This is window \"b\"."))
        );
        let fault = Fault::new(Kind::NoSession, "None.");
        let spoken = Answer::Error(fault).telling(Told { notice: None, ..told() }).spoken();
        assert!(
            spoken.is_error && spoken.object["in_window"] == "b" && !spoken.object.contains_key("notice")
        );
        let list = Spoken {
            texts: vec!["[1]".to_owned()],
            object: object(json!({"result": [1]})),
            ..Spoken::default()
        };
        let spoken = Answer::Spoken(list).telling(told()).spoken();
        assert_eq!(spoken.texts, ["[1]", "This is window \"b\".\n[b]"]);
        assert_eq!(spoken.object["in_window"], "b");
    }

    #[test]
    fn where_there_is_nothing_to_say_nothing_is_said() {
        assert_eq!(whole("stopped").telling(Told::default()), whole("stopped"));
    }
}
