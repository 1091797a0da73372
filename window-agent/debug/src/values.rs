//! CORE: texts for values that their debugger has none for: a class and an address say nothing of an object.

use crate::dap::body;

/// Values whose parts are fetched at a stop.
pub(crate) const MAX_FETCHED: usize = 8;
/// Characters of a part's value that are told.
const MAX_PART: usize = 200;
/// Parts that are told of a value; one more is asked for, to know whether there are more.
pub(crate) const MAX_PARTS: usize = 20;

/// A value that is told without words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wordless {
    /// Empty where the debugger names none.
    class: String,
}

impl Wordless {
    /// `<shop.Shop object at 0x7f70>` of Python, `Shop@18` of Java, `Shop @ 0x7ff8` of lldb, nothing at all of gdb.
    pub(crate) fn of(value: &str, reference: i64) -> Option<Self> {
        if reference == 0 {
            return None;
        }
        let class = match value.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
            Some(inside) => inside.split_once(" object at 0x").filter(|(_, at)| is_hex(at))?.0,
            None if value.is_empty() => "",
            None => {
                let (class, at) = value.split_once(" @ 0x").or_else(|| value.split_once('@'))?;
                Some(class).filter(|_| is_hex(at))?
            }
        };
        let is_plain = |letter: char| letter.is_alphanumeric() || "_.$:<>".contains(letter);
        let name = class.rsplit(['.', ':', '$']).next().unwrap_or_default();
        class.chars().all(is_plain).then(|| Self { class: name.to_owned() })
    }

    /// Its class and parts, one level deep: `Shop(sold=50)`, and `{x = 1, y = 2}` without a class.
    pub(crate) fn told(&self, body: &body::Variables) -> String {
        // debugpy puts what is not the program's into groups without a value.
        let is_group =
            |part: &&body::Variable| part.value.is_empty() && part.kind.as_deref().is_none_or(str::is_empty);
        let all: Vec<&body::Variable> = body.variables.iter().filter(|part| !is_group(part)).collect();
        let is_list = all.iter().all(|part| is_index(&part.name));
        let equals = if self.class.is_empty() { " = " } else { "=" };
        let told = |part: &&body::Variable| match is_list {
            true => inner(part),
            false => format!("{}{equals}{}", part.name, inner(part)),
        };
        let mut parts: Vec<String> = all.iter().take(MAX_PARTS).map(told).collect();
        if all.len() > MAX_PARTS {
            parts.push("...".to_owned());
        }
        match self.class.as_str() {
            "" => format!("{{{}}}", parts.join(", ")),
            class => format!("{class}({})", parts.join(", ")),
        }
    }
}

/// A part's value, without an address.
fn inner(part: &body::Variable) -> String {
    match Wordless::of(&part.value, part.variables_reference) {
        Some(Wordless { class }) if class.is_empty() => "{...}".to_owned(),
        Some(Wordless { class }) => format!("{class}(...)"),
        None => match part.value.char_indices().nth(MAX_PART) {
            Some((end, _)) => format!("{}...", &part.value[..end]),
            None => part.value.clone(),
        },
    }
}

/// `[3]`, `3`.
fn is_index(name: &str) -> bool {
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, value: &str, kind: &str, reference: i64) -> body::Variable {
        body::Variable {
            name: name.to_owned(),
            value: value.to_owned(),
            kind: Some(kind.to_owned()),
            variables_reference: reference,
            ..body::Variable::default()
        }
    }

    #[test]
    fn a_class_and_an_address_are_no_words() {
        let class = |value: &str| Wordless::of(value, 7).map(|wordless| wordless.class);
        let some = |class: &str| Some(class.to_owned());
        assert_eq!(class("<__main__.Shop object at 0x7f78705a5c50>"), some("Shop"));
        assert_eq!(class("<a.main.<locals>.Shop object at 0x7f>"), some("Shop"));
        assert_eq!(class("Program$Shop@18"), some("Shop"));
        assert_eq!(class("a::Shop @ 0x7ffe10"), some("Shop"));
        assert_eq!(class(""), some(""));
        for told in
            ["<module 'sys' (built-in)>", "x@y", "'a@12'", "int[3]@20", "ArrayList@21 size=3", "3", "a @ 0x"]
        {
            assert_eq!(class(told), None, "{told}");
        }
        assert_eq!(Wordless::of("Shop@18", 0), None, "it has no parts");
    }

    #[test]
    fn parts_say_what_a_value_is() {
        let body = body::Variables {
            variables: vec![
                variable("special variables", "", "", 3),
                variable("sold", "50", "int", 0),
                variable("item", "<__main__.Item object at 0x7f>", "Item", 4),
            ],
        };
        let told = |value: &str| Wordless::of(value, 1).unwrap().told(&body);
        assert_eq!(told("<__main__.Shop object at 0x7f>"), "Shop(sold=50, item=Item(...))");
        assert_eq!(told(""), "{sold = 50, item = Item(...)}");
        let many = (0..30).map(|n| variable(&format!("[{n}]"), &n.to_string(), "int", 0)).collect();
        let told = Wordless::of("", 1).unwrap().told(&body::Variables { variables: many });
        assert!(told.starts_with("{0, 1, 2,") && told.ends_with(", 19, ...}"), "{told}");
    }
}
