//! What the user of an editor reads when something keeps Baton from working. The extension translates it, and
//! `vscode-shim/scripts/check-strings.mjs` reads this table to see that it can.

use baton_link::explain::Explanation;
use baton_proto::shim::Problem;

use crate::report;

/// Codes and sentences; `{0}` and `{1}` stand for what a problem names.
const SENTENCES: [(&str, &str); 11] = [
    ("port_taken", "Port {0} is in use by {1}. Stop that program or choose another port."),
    ("port_refused", "Port {0} is in use. Choose another one."),
    ("bad_port", "Baton can't use port {0}. Choose one from 1024 to 65535."),
    ("bad_setting", "Invalid Baton setting: {0}"),
    ("stopped", "Baton was stopped with `baton down`."),
    ("state_folder", "Can't use Baton's state folder: {0}"),
    ("coordinator_hangs", "Baton's coordinator (process {0}) is not responding."),
    ("coordinator_dies", "Baton's coordinator exited several times. Baton will try again later."),
    ("coordinator_unreachable", "Can't reach Baton's coordinator: {0}"),
    ("program_missing", "Can't run {0}."),
    ("refused", "Baton's coordinator rejected this window: {0}"),
];

/// A problem as the extension shows it.
pub(super) fn problem(code: &str, args: Vec<String>) -> Problem {
    let sentence = SENTENCES.iter().find(|(known, _)| *known == code).map(|(_, sentence)| *sentence);
    Problem { code: code.to_owned(), message: sentence.unwrap_or("{0}").to_owned(), args }
}

/// One that was reported; what it names nothing else for is told in the reporter's own words.
pub(super) fn to_wire(report::Problem { code, message, hint, args }: report::Problem) -> Problem {
    let whole = || Explanation { message, hint }.to_string();
    problem(code, if args.is_empty() { vec![whole()] } else { args })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_a_sentence_with_its_places() {
        let taken = report::Problem {
            code: "port_taken",
            message: "port 7717 is in use by nginx".to_owned(),
            hint: None,
            args: vec!["7717".to_owned(), "nginx".to_owned()],
        };
        let told = to_wire(taken);
        assert!(told.message.starts_with("Port {0} is in use by {1}"), "{told:?}");
        assert_eq!(told.args, ["7717", "nginx"]);
        let refused = to_wire(report::Problem::new("refused", Explanation::new("it is too old")));
        assert!(refused.message.contains("{0}"), "{refused:?}");
        assert_eq!(refused.args, ["it is too old"]);
        let unknown = to_wire(report::Problem::new("strange", Explanation::new("Something happened.")));
        assert_eq!((unknown.message.as_str(), &unknown.args[0]), ("{0}", &"Something happened.".to_owned()));
    }
}
