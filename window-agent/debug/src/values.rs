//! CORE: texts for values that their debugger has none for: a class and an address say nothing of an object.

use crate::dap::body;

/// Values whose parts are fetched at a stop.
pub(crate) const MAX_FETCHED: usize = 8;
/// Characters of a part's value that are told.
const MAX_PART: usize = 200;
/// Parts that are told of a value; one more is asked for, to know whether there are more.
pub(crate) const MAX_PARTS: usize = 20;

/// What stands in Python between an object's class and its address.
const OBJECT: &str = " object at 0x";

/// A value that is told without words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wordless {
    /// Empty where the debugger names none.
    class: String,
    /// Of what is behind a pointer, which is told with it.
    address: Option<String>,
}

impl Wordless {
    /// `<shop.Shop object at 0x7f70>` of Python, `Shop@18` of Java, the type alone of lldb, nothing at all of gdb.
    pub(crate) fn of(value: &str, kind: Option<&str>, reference: i64) -> Option<Self> {
        if reference == 0 {
            return None;
        }
        if let Some(class) = class_behind(value, kind.unwrap_or_default()) {
            return Some(Self { class, address: Some(value.to_owned()) });
        }
        let class = match value.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
            Some(inside) => inside.split_once(OBJECT).filter(|(_, at)| is_hex(at))?.0,
            None if value.is_empty() => "",
            // Its parameters, and how many of them there are, say more of what it is made of than of what it is.
            None if kind == Some(value) && value.ends_with(']') => "",
            None if kind == Some(value) => value.split(['<', '[', '(']).next().unwrap_or_default(),
            None => value.split_once('@').filter(|(_, at)| is_hex(at))?.0,
        };
        let name = class.rsplit(['.', ':', '$']).next().unwrap_or_default();
        class.chars().all(is_plain).then(|| Self { class: name.to_owned(), address: None })
    }

    pub(crate) fn of_variable(variable: &body::Variable) -> Option<Self> {
        Self::of(&variable.value, variable.kind.as_deref(), variable.variables_reference)
    }

    /// Its class alone, where nobody asks for its parts: `Shop(...)`.
    pub(crate) fn in_short(&self) -> String {
        let parts = if self.class.is_empty() { "{...}" } else { "(...)" };
        self.address.clone().unwrap_or_else(|| format!("{}{parts}", self.class))
    }

    /// Its class and parts, one level deep: `Shop(sold=50)`, and `{x = 1, y = 2}` without a class.
    pub(crate) fn told(&self, body: &body::Variables) -> String {
        // debugpy puts what is not the program's into groups without a value.
        let is_group =
            |part: &&body::Variable| part.value.is_empty() && part.kind.as_deref().is_none_or(str::is_empty);
        let all: Vec<&body::Variable> = body.variables.iter().filter(|part| !is_group(part)).collect();
        if let Some(address) = &self.address {
            let class = self.class.clone();
            // Behind some is one value, and not its parts.
            return match all.as_slice() {
                [one] if one.name == "value" || one.name.starts_with('*') => address.clone(),
                _ => format!("{address} {}", Self { class, address: None }.told(body)),
            };
        }
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

/// A text in which Python's objects stand without their addresses: `[<a.Item object at 0x7f>]` is `[Item(...)]`.
pub(crate) fn without_addresses(text: &str) -> String {
    let (mut told, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(OBJECT) {
        let before = rest[..at].char_indices().rev().find(|(_, letter)| !is_plain(*letter));
        let begin = before.map_or(0, |(place, letter)| place + letter.len_utf8());
        let after = &rest[at + OBJECT.len()..];
        let length = after.bytes().take_while(u8::is_ascii_hexdigit).count();
        if rest[begin..].starts_with('<') && length > 0 && after[length..].starts_with('>') {
            let class = rest[begin + 1..at].rsplit('.').next().unwrap_or_default();
            told.push_str(&rest[..begin]);
            told.push_str(&format!("{class}(...)"));
            rest = &after[length + 1..];
        } else {
            told.push_str(&rest[..at + OBJECT.len()]);
            rest = after;
        }
    }
    told + rest
}

/// A part's value, without an address.
fn inner(part: &body::Variable) -> String {
    match Wordless::of_variable(part) {
        Some(wordless @ Wordless { address: None, .. }) => wordless.in_short(),
        Some(Wordless { address: Some(_), .. }) | None => {
            let value = without_addresses(&part.value);
            match value.char_indices().nth(MAX_PART) {
                Some((end, _)) => format!("{}...", &value[..end]),
                None => value,
            }
        }
    }
}

/// The class in `a::Shop<i32> *`, of a pointer to somewhere.
fn class_behind(value: &str, kind: &str) -> Option<String> {
    let digits = value.strip_prefix("0x").filter(|digits| is_hex(digits))?;
    let class = kind.strip_suffix('*')?.trim_end();
    let class = class.split(['<', '(', '[']).next()?.rsplit([':', ' ']).next()?;
    let is_somewhere = digits.bytes().any(|digit| digit != b'0');
    (is_somewhere && class != "void" && class.chars().all(is_plain)).then(|| class.to_owned())
}

/// `[3]`, `3`.
fn is_index(name: &str) -> bool {
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// A letter of a class with the modules and functions that it is in.
fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "_.$:<>".contains(letter)
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
        let class = |value: &str| Wordless::of(value, Some("a::Shop<i32>"), 7).map(|wordless| wordless.class);
        let some = |class: &str| Some(class.to_owned());
        assert_eq!(class("<__main__.Shop object at 0x7f78705a5c50>"), some("Shop"));
        assert_eq!(class("<a.main.<locals>.Shop object at 0x7f>"), some("Shop"));
        assert_eq!(class("Program$Shop@18"), some("Shop"));
        assert_eq!(class("a::Shop<i32>"), some("Shop"), "it is the type");
        assert_eq!(class(""), some(""));
        assert_eq!(Wordless::of("int[5]", Some("int[5]"), 7).map(|array| array.class), some(""));
        for told in
            ["<module 'sys' (built-in)>", "x@y", "'a@12'", "int[3]@20", "ArrayList@21 size=3", "3", "a::Shop"]
        {
            assert_eq!(class(told), None, "{told}");
        }
        assert_eq!(Wordless::of("Shop@18", None, 0), None, "it has no parts");
    }

    #[test]
    fn what_is_behind_a_pointer_is_told_with_its_address() {
        let told = |value: &str, kind: &str, parts: Vec<body::Variable>| {
            let wordless = Wordless::of(value, Some(kind), 7)?;
            Some(wordless.told(&body::Variables { variables: parts }))
        };
        let next = variable("next", "0x00007f20", "node *", 8);
        let parts = || vec![variable("value", "2", "int", 0), next.clone()];
        let expected = Some("0x00007f10 node(value=2, next=0x00007f20)".to_owned());
        assert_eq!(told("0x00007f10", "node *", parts()), expected);
        assert_eq!(told("0x00007f10", "const a::node<int *> *", parts()), expected);
        let one = || vec![variable("*p", "5", "int", 0)];
        assert_eq!(told("0x7f10", "int *", one()), Some("0x7f10".to_owned()));
        for (value, kind) in [
            ("0x0", "node *"),
            ("0x7f", "node **"),
            ("0x7f", "void *"),
            ("0x7f \"a\"", "char *"),
            ("0x7f", ""),
        ] {
            assert_eq!(told(value, kind, parts()), None, "{value} {kind}");
        }
    }

    #[test]
    fn addresses_in_a_text_are_left_out() {
        let told = "[<__main__.Item object at 0x7f>, {'ä': <a.<locals>.B object at 0x1>}]";
        assert_eq!(without_addresses(told), "[Item(...), {'ä': B(...)}]");
        for same in ["'an object at 0x12'", "<x object at 0x>", "ä object at 0x1>", "[1, 2]"] {
            assert_eq!(without_addresses(same), same);
        }
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
        let told = |value: &str| Wordless::of(value, None, 1).unwrap().told(&body);
        assert_eq!(told("<__main__.Shop object at 0x7f>"), "Shop(sold=50, item=Item(...))");
        assert_eq!(told(""), "{sold = 50, item = Item(...)}");
        let many = (0..30).map(|n| variable(&format!("[{n}]"), &n.to_string(), "int", 0)).collect();
        let told = Wordless::of("", None, 1).unwrap().told(&body::Variables { variables: many });
        assert!(told.starts_with("{0, 1, 2,") && told.ends_with(", 19, ...}"), "{told}");
    }
}
