//! CORE: hides the values of what looks like a secret by its name: variables, members in a printed value, names
//! that an expression ends with.

use baton_agent_debug::types::{StopEvent, Variable};

/// What stands in the place of a secret.
const HIDDEN: &str = "[redacted]";

/// Parts of names that make a secret, without `_` and in lower case.
const SECRETS: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "bearer",
    "credential",
    "authorization",
    "cookie",
    "connectionstring",
];
/// Names that are secrets as a whole, or as the last word of a name.
const SECRET_WORDS: [&str; 5] = ["token", "pwd", "pin", "pass", "auth"];

/// Whether a variable of this name holds a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let last = words(name).pop().unwrap_or_default();
    SECRETS.iter().any(|secret| plain.contains(secret)) || SECRET_WORDS.contains(&last.as_str())
}

/// The words of `snake_case`, `kebab-case` and `camelCase`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for char in name.chars() {
        let is_cut = !char.is_alphanumeric() || (char.is_uppercase() && was_lower);
        if is_cut && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if char.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(char.to_lowercase());
        }
        was_lower = char.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Hides the secrets among variables.
pub(super) fn variables(variables: &mut [Variable]) {
    for variable in variables {
        // A container shows its members in its value; those have names of their own.
        variable.value = if is_secret(&variable.name) && variable.variables_reference == 0 {
            HIDDEN.to_owned()
        } else if is_secret(&variable.name) {
            format!("{HIDDEN} ({})", variable.type_name.as_deref().unwrap_or("a container"))
        } else {
            text(&variable.value)
        };
    }
}

/// Hides the secrets in what is told with a stop.
pub(super) fn stop(stop: &mut StopEvent) {
    if let Some(scope) = &mut stop.top_frame_variables {
        variables(&mut scope.variables);
    }
}

/// Hides the secrets in the value of an expression.
pub(super) fn value(expression: &str, value: &str) -> String {
    let is_name = |char: char| char.is_alphanumeric() || char == '_';
    let names = expression.split(|char| !is_name(char)).filter(|name| !name.is_empty());
    // An expression that names a secret anywhere may print it: `str(password)`, `config["token"]`.
    if names.into_iter().any(is_secret) { HIDDEN.to_owned() } else { text(value) }
}

/// Hides `name: value` and `name=value` inside a printed value where the name is that of a secret.
pub(super) fn text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|char: char| char.is_alphabetic() || char == '_') {
        let name_len = rest[start..]
            .find(|char: char| !(char.is_alphanumeric() || char == '_' || char == '-'))
            .unwrap_or(rest.len() - start);
        let (name, after) = rest[start..].split_at(name_len);
        shown.push_str(&rest[..start + name_len]);
        rest = after;
        if is_secret(name)
            && let Some((between, value)) = assigned(after)
        {
            shown.push_str(&after[..between]);
            shown.push_str(HIDDEN);
            rest = &after[between + value..];
        }
    }
    shown.push_str(rest);
    shown
}

/// Behind a name: how long the way to its value is, and how long the value.
fn assigned(after: &str) -> Option<(usize, usize)> {
    let unquoted = after.trim_start_matches(['\'', '"', ']']);
    let sign = unquoted.trim_start().strip_prefix([':', '='])?;
    let value = sign.trim_start_matches(['>', '=', ' ']);
    let between = after.len() - value.len();
    let mut chars = value.chars();
    let length = match chars.next()? {
        quote @ ('\'' | '"') => {
            // To the closing quote; one that was cut off hides the rest.
            let mut is_escaped = false;
            let end = value.char_indices().skip(1).find(|(_, char)| {
                let ends = *char == quote && !is_escaped;
                is_escaped = *char == '\\' && !is_escaped;
                ends
            });
            end.map_or(value.len(), |(idx, _)| idx + 1)
        }
        _ => value.find([',', '}', ')', ']', ';', '\n', ' ']).unwrap_or(value.len()),
    };
    (length > 0).then_some((between, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "password",
            "DB_PASSWORD",
            "userPasswd",
            "api_key",
            "apiKey",
            "X-Api-Key",
            "token",
            "auth_token",
            "accessToken",
            "client_secret",
            "private_key",
            "pwd",
            "github-token",
            "Authorization",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in
            ["passenger", "tokenizer", "tokens", "n_tokens", "key", "keyboard", "author", "pinned", "compass"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn members_in_a_printed_value_are_hidden() {
        assert_eq!(
            text("{'user': 'ann', 'password': 'hun\\'ter2', 'n': 3}"),
            "{'user': 'ann', 'password': [redacted], 'n': 3}"
        );
        assert_eq!(text("Login(user=ann, api_key=abc123)"), "Login(user=ann, api_key=[redacted])");
        assert_eq!(text(r#"{"token":"abc"#), r#"{"token":[redacted]"#);
        assert_eq!(text("the password is not here"), "the password is not here");
        assert_eq!(text("tokens: 3"), "tokens: 3");
    }

    #[test]
    fn an_expression_that_names_a_secret_is_hidden() {
        assert_eq!(value("config['db_password']", "'x'"), "[redacted]");
        assert_eq!(value("str(token)", "'x'"), "[redacted]");
        assert_eq!(value("len(items)", "3"), "3");
        assert_eq!(value("config", "{'pwd': 'x'}"), "{'pwd': [redacted]}");
    }
}
