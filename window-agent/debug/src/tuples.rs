//! CORE: places in tuples of Rust, which each debugger names in its own way.

/// What stands before the number of a place in lldb's names for them.
pub(crate) const LLDBS: &str = "__";

/// An expression with places in tuples as a debugger names them: `t.1` is `t.__1` to lldb, which reads it as `0.1`. Texts
/// and numbers stay as they are.
pub(crate) fn with_places(expression: &str, mark: &str) -> String {
    let mut told = String::new();
    // Whether a name ends here, or what can be instead of one.
    let (mut after_name, mut in_word, mut quote) = (false, false, None);
    let mut letters = expression.chars().peekable();
    while let Some(letter) = letters.next() {
        told.push(letter);
        if let Some(end) = quote {
            quote = Some(end).filter(|end| *end != letter);
            continue;
        }
        if letter == '.' && after_name && letters.peek().is_some_and(char::is_ascii_digit) {
            told.push_str(mark);
            in_word = true;
            continue;
        }
        let is_word = letter.is_alphanumeric() || letter == '_';
        if is_word && !in_word {
            after_name = !letter.is_ascii_digit();
        } else if !is_word {
            after_name = matches!(letter, ')' | ']');
            quote = Some(letter).filter(|letter| matches!(letter, '"' | '\''));
        }
        in_word = is_word;
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_tuples_have_its_names() {
        for (given, expected) in [
            ("t.1", "t.__1"),
            ("t.1.0 + 1.5", "t.__1.__0 + 1.5"),
            ("a[0].2", "a[0].__2"),
            ("f(\"a.1\", 'b', x1.2)", "f(\"a.1\", 'b', x1.__2)"),
            ("node.next.v", "node.next.v"),
            ("x = .5", "x = .5"),
        ] {
            assert_eq!(with_places(given, LLDBS), expected);
            assert_eq!(with_places(given, ""), given);
        }
    }
}
