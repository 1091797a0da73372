//! CORE: a text as a header's value takes it, and as one segment of a URL's path: RFC 3986, section 2.1.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Unreserved characters stay as they are; a dot does not, for `..` is no segment of its own.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// The text in letters, digits, `-`, `_`, `~` and `%`.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Undoes [`encode`], and every other percent-encoding. `None` where a `%` has no two digits behind it, or where what
/// comes out is not text.
pub fn decode(text: &str) -> Option<String> {
    let has_digits = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(has_digits) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_one_segment_and_comes_back() {
        for (text, encoded) in [
            ("a-b_c~1", "a-b_c~1"),
            ("/x y/..", "%2Fx%20y%2F%2E%2E"),
            ("é?#", "%C3%A9%3F%23"),
            ("100 %\n", "100%20%25%0A"),
            ("", ""),
        ] {
            assert_eq!(encode(text), encoded);
            assert_eq!(decode(encoded).as_deref(), Some(text));
        }
        assert_eq!(decode("a.b+c%2f").as_deref(), Some("a.b+c/"), "others encode less, and in small letters");
    }

    #[test]
    fn what_is_no_encoding_is_refused() {
        for wrong in ["%", "%4", "%zz", "%+1", "%-1", "a%2", "%é1", "%FF"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
