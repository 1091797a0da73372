//! CORE: what looks like a secret by its name, and the same text without it.

use serde_json::Value;

/// What stands in the place of a secret.
pub const HIDDEN: &str = "[redacted]";

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
pub fn is_secret(name: &str) -> bool {
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

/// Hides `name: value` and `name=value` inside a printed value where the name is that of a secret.
pub fn text(text: &str) -> String {
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
        _ => {
            // Of a header the word before says only what kind it is.
            let scheme =
                ["Bearer ", "bearer ", "Basic "].into_iter().find(|scheme| value.starts_with(scheme));
            let skipped = scheme.map_or(0, str::len);
            let end = value[skipped..].find([',', '}', ')', ']', ';', '\n', ' ']);
            end.map_or(value.len(), |end| skipped + end)
        }
    };
    (length > 0).then_some((between, length))
}

/// Hides the secrets in a value of JSON: what stands under the name of a secret, what a variable of such a name holds, and
/// `name=value` in texts. True when there was one.
pub fn json(value: &mut Value) -> bool {
    match value {
        Value::Object(members) => {
            let is_named = members.get("name").and_then(Value::as_str).is_some_and(is_secret);
            let mut is_hidden = false;
            for (name, member) in members {
                let is_value = is_secret(name) || is_named && name == "value";
                let is_plain = !matches!(member, Value::Null | Value::Bool(_));
                if is_value && is_plain {
                    *member = Value::from(HIDDEN);
                    is_hidden = true;
                } else {
                    is_hidden |= json(member);
                }
            }
            is_hidden
        }
        Value::Array(list) => list.iter_mut().fold(false, |is_hidden, value| json(value) | is_hidden),
        Value::String(told) => {
            let shown = text(told);
            let is_hidden = shown != *told;
            *told = shown;
            is_hidden
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Where a tool's answer has its structure. What it names `token` there is that of a change that was shown and not yet made:
/// the call that makes it needs it, and the text beside it tells it.
const STRUCTURES: [&str; 2] = ["/structuredContent", "/_meta/baton~1details"];

/// Hides the secrets in a tool's answer, MCP's `CallToolResult`.
pub fn answer(result: &mut Value) {
    let token = |result: &Value, at: &str| {
        let structure = result.pointer(at).filter(|structure| structure["applied"] == false)?;
        structure["token"].as_str().map(str::to_owned)
    };
    let tokens = STRUCTURES.map(|at| token(result, at));
    json(result);
    for (at, token) in STRUCTURES.into_iter().zip(tokens) {
        if let (Some(token), Some(structure)) = (token, result.pointer_mut(at)) {
            structure["token"] = token.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert_eq!(text("Authorization: Bearer abc, Host: x"), "Authorization: [redacted], Host: x");
    }

    #[test]
    fn json_keeps_all_but_secrets() {
        let mut value = json!({
            "env": {"API_KEY": "abc", "PATH": "/bin"},
            "args": ["--token=abc", "--n", 3],
            "variables": [{"name": "password", "value": "'x'", "type": "str"}, {"name": "n", "value": "3"}],
            "token": null,
            "text": "user = 'ann'\npassword = 'x'",
        });
        assert!(super::json(&mut value));
        let expected = json!({
            "env": {"API_KEY": HIDDEN, "PATH": "/bin"},
            "args": ["--token=[redacted]", "--n", 3],
            "variables": [{"name": "password", "value": HIDDEN, "type": "str"}, {"name": "n", "value": "3"}],
            "token": null,
            "text": "user = 'ann'\npassword = [redacted]",
        });
        assert_eq!(value, expected);
        assert!(!super::json(&mut json!({"n": 1, "list": ["a", true, null]})));
    }

    #[test]
    fn the_token_of_a_change_that_was_shown_is_no_secret() {
        let shown = |token: &str, nested: &str| {
            let structure =
                json!({"token": token, "applied": false, "nested": {"token": nested, "applied": false}});
            json!({"structuredContent": structure, "_meta": {"baton/details": structure}})
        };
        let mut result = shown("a1", "k");
        answer(&mut result);
        assert_eq!(result, shown("a1", HIDDEN));
        for mut other in [
            json!({"token": "k", "applied": false}),
            json!({"structuredContent": {"token": "k"}}),
            json!({"structuredContent": {"token": ["k"], "applied": false}}),
        ] {
            answer(&mut other);
            assert!(other.to_string().contains(HIDDEN) && !other.to_string().contains("\"k\""), "{other}");
        }
    }
}
