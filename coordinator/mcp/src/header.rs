//! CORE: names of MCP's headers, and any text as the value of one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Header with the id of a session.
pub const SESSION_ID: &str = "mcp-session-id";
/// Header with the revision of a message.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// A text as it may stand in a header: wrapped when it does not fit there as it is.
pub fn wrapped(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x21..0x7f).contains(&byte)) && !text.starts_with("=?base64?");
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// The text behind a header's value; `None` when what was wrapped is no text.
pub fn unwrapped(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|inner| inner.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_fits() {
        for text in ["read", "é", "two words", "", "=?base64?", "=?base64?YQ==?=", "line\nbreak"] {
            let value = wrapped(text);
            assert!(value.bytes().all(|byte| byte.is_ascii_graphic()), "{value}");
            assert_eq!(unwrapped(&value).as_deref(), Some(text));
        }
        assert_eq!((wrapped("read").as_str(), unwrapped("=?base64?%?=")), ("read", None));
    }
}
