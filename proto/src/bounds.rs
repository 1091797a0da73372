//! CORE: what a message may hold at most, counted in its bytes before anything is built of it.
//!
//! The edge and the agents refuse the same messages. One text may be as long as a message; what is bounded is what
//! costs many times its bytes: values, levels, and names.

use std::fmt;

/// Deepest nesting of a message.
pub const DEPTH_MAX: usize = 64;
/// Members of objects and elements of lists in one message, all levels together. A built one takes some hundred
/// bytes, so that a message of sixteen million bytes could take gigabytes.
pub const VALUES_MAX: usize = 10_000;
/// Bytes of a member's name, as written: those of the longest path. Names are compared, repeated and logged.
pub const NAME_LEN_MAX: usize = 4_096;

/// What a message has too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Levels.
    Depth,
    /// Members and elements.
    Values,
    /// Bytes of a name.
    Name,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Excess::Depth => write!(f, "the message is nested too deeply (limit {DEPTH_MAX} levels)"),
            Excess::Values => write!(
                f,
                "the message has too many values (limit {VALUES_MAX}); send long content as one string, or \
                 in several calls"
            ),
            Excess::Name => write!(f, "the message has a name that exceeds {NAME_LEN_MAX} bytes"),
        }
    }
}

/// Looks at the bytes of a message once. What is no JSON is left to the parser.
pub fn check(bytes: &[u8]) -> Result<(), Excess> {
    let (mut depth, mut n_values, mut last_text_len) = (0_usize, 0_usize, 0_usize);
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => {
                last_text_len = text_len(rest);
                rest = rest.get(last_text_len + 1..).unwrap_or_default();
            }
            b':' if last_text_len > NAME_LEN_MAX => return Err(Excess::Name),
            b'{' | b'[' => {
                depth += 1;
                n_values += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => n_values += 1,
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(Excess::Depth);
        }
        if n_values > VALUES_MAX {
            return Err(Excess::Values);
        }
    }
    Ok(())
}

/// Bytes up to the closing quote.
fn text_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_levels_count_and_text_does_not() {
        let list = |n: usize| format!("[{}0]", "0,".repeat(n - 1));
        assert_eq!(check(list(VALUES_MAX).as_bytes()), Ok(()));
        assert_eq!(check(list(VALUES_MAX + 1).as_bytes()), Err(Excess::Values));
        let split = format!("{{\"a\":{},\"b\":{}}}", list(VALUES_MAX / 2), list(VALUES_MAX / 2));
        assert_eq!(check(split.as_bytes()), Err(Excess::Values), "the two lists are members, too");
        let objects = format!("[{}{{}}]", "{},".repeat(VALUES_MAX / 2));
        assert_eq!(check(objects.as_bytes()), Err(Excess::Values), "empty ones cost as well");
        let text = format!("[\"{}\\\"{}\\\\\",{}]", ",[{".repeat(VALUES_MAX), ",[{".repeat(VALUES_MAX), 1);
        assert_eq!(check(text.as_bytes()), Ok(()));
    }

    #[test]
    fn levels_and_names_are_bounded_and_long_texts_are_not() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(check(nested(DEPTH_MAX).as_bytes()), Ok(()));
        assert_eq!(check(nested(DEPTH_MAX + 1).as_bytes()), Err(Excess::Depth));
        let named = |n: usize| format!("{{\"{}\" : 1}}", "n".repeat(n));
        assert_eq!(check(named(NAME_LEN_MAX).as_bytes()), Ok(()));
        assert_eq!(check(named(NAME_LEN_MAX + 1).as_bytes()), Err(Excess::Name));
        let long = format!("{{\"a\":\"{}\",\"b\":1}}", "x".repeat(1 << 20));
        assert_eq!(check(long.as_bytes()), Ok(()));
    }

    #[test]
    fn broken_messages_are_left_to_the_parser() {
        for bytes in [&b""[..], b"\"", b"\"\\", b"\"a\\\"", b"]]]}", b"{\"a\"", b"\xff\"\xff"] {
            assert_eq!(check(bytes), Ok(()), "{bytes:?}");
        }
    }
}
