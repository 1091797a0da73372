//! CORE: what codelldb would read in another way than its programmer meant it. Its usual evaluator is nearly Python's:
//! there `p->n` is an error, `7 / 2` is 3.5, `done == false` is true whatever `done` is, and `done` alone is never true.

use crate::tuples;

/// Words of Python that are nothing in C and Rust.
const PYTHONS: [&str; 5] = ["and", "is", "lambda", "not", "or"];
/// Signs that are nothing in Python.
const CS: [&str; 5] = ["&&", "||", "->", "?", "0x"];

/// Whether it is more than a path of names, which codelldb finds in either way, and not Python's: an expression in the
/// program's own language. Who begins with `/` has chosen, and texts are compared only in Python.
pub(crate) fn is_native(expression: &str) -> bool {
    let is_pythons =
        expression.contains(['"']) || expression.contains("//") || words(expression).any(is_pythons);
    !is_chosen(expression) && !is_pythons && !is_path(expression)
}

/// A condition as it was meant. One that fails in this form is told.
pub(crate) fn condition(condition: &str) -> String {
    let is_negated = condition.match_indices('!').any(|(at, _)| !condition[at + 1..].starts_with('='));
    let is_cs = is_negated || CS.iter().any(|sign| condition.contains(sign));
    // What is in a collection is found only in Python, but its truth is not.
    let is_member = condition.contains('[') && !is_cs;
    let is_own = is_path(condition) || (is_native(condition) && !is_member);
    // What begins in braces ends at the first one.
    if is_own && !condition.contains('}') {
        // It stands in a text of Python's then.
        let own = tuples::with_places(condition, tuples::LLDBS).replace('\\', r"\\").replace('\'', r"\'");
        format!("/py int(${{{own}}})")
    } else {
        condition.to_owned()
    }
}

/// What a log message has in braces. codelldb ends at one that it cannot read.
pub(crate) fn logged(expression: &str) -> String {
    let expression = expression.trim();
    if is_chosen(expression) || is_path(expression) {
        return expression.to_owned();
    }
    format!("/nat {}", tuples::with_places(expression, tuples::LLDBS))
}

fn is_chosen(expression: &str) -> bool {
    expression.trim_start().starts_with('/')
}

/// Names and numbers that are joined by `.` and `::`, with members by name or number: codelldb finds them in any way.
fn is_path(expression: &str) -> bool {
    let path = expression.trim();
    let path = path.strip_prefix("::").unwrap_or(path).replace("::", ".");
    path.split('.').all(|part| {
        let mut pieces = part.split('[');
        let is_named = pieces.next().is_some_and(is_word);
        is_named && pieces.all(|member| member.strip_suffix(']').is_some_and(is_word))
    })
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || "_$".contains(letter))
}

fn words(expression: &str) -> impl Iterator<Item = &str> {
    expression.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
}

fn is_pythons(word: &str) -> bool {
    PYTHONS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_with_operators_are_the_programs_own() {
        for expression in
            ["p->n", "7 / 2", "done == false", "!done", "*p", "i = 3", "f(2)", "v[1] + 1", "c == 'x'"]
        {
            assert!(is_native(expression), "{expression}");
        }
        for expression in [
            "done",
            "self.name",
            "shop::LIMIT",
            "v[1].n",
            "t.0",
            "name == \"abc\"",
            "not done",
            "a and b",
            "7 // 2",
            "/py a + b",
        ] {
            assert!(!is_native(expression), "{expression}");
        }
    }

    #[test]
    fn conditions_are_read_as_they_are_meant() {
        for text in ["done", "a == 3 && p->n > 0", "!done", "a != 3", "self.count > 3", "a[0] && b", "a[0]"] {
            assert_eq!(condition(text), format!("/py int(${{{text}}})"));
        }
        assert_eq!(condition("t.0 == 7"), "/py int(${t.__0 == 7})");
        assert_eq!(condition(r"c == '\n'"), r"/py int(${c == \'\\n\'})");
        for text in ["a == 3 and not b", "name == \"abc\"", "/nat a", "S { n: 1 }.n == 1", "prices[2] != 3"] {
            assert_eq!(condition(text), text);
        }
    }

    #[test]
    fn what_is_logged_cannot_end_it() {
        for (expression, told) in [
            ("a.b", "a.b"),
            ("t.0", "t.0"),
            ("v[i].n", "v[i].n"),
            ("::a::b", "::a::b"),
            (" p->n ", "/nat p->n"),
            ("t.0 + 1", "/nat t.__0 + 1"),
            ("/py len(x)", "/py len(x)"),
            ("a + ", "/nat a +"),
            ("a.", "/nat a."),
            ("v[", "/nat v["),
            ("v[1", "/nat v[1"),
        ] {
            assert_eq!(logged(expression), told);
        }
    }
}
