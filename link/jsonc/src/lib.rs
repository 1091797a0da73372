//! CORE: JSON with comments and trailing commas, as VS Code and AI clients take it in their own files.
//!
//! What is accepted here is accepted by them, and nothing more lenient: a file that Baton reads one way and its
//! owner another way must not exist. A byte order mark in front is no part of the text.

use jsonc_parser::ParseOptions;
use jsonc_parser::errors::ParseError;
use serde::de::DeserializeOwned;

/// What is allowed beyond JSON: comments and trailing commas.
pub const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The text behind a byte order mark.
pub fn body(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Reads the whole text; an error has the line and column where it is, counted from 1.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ParseError> {
    jsonc_parser::parse_to_serde_value(body(text), &OPTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_all_that_is_allowed() {
        let read = |text: &str| parse::<Vec<u8>>(text).ok();
        assert_eq!(read("\u{feff}// one\n[1, /* two */ 2,]"), Some(vec![1, 2]));
        for text in ["[1 2]", "[0x1]", "[+1]", "[.5]", "[1", "", "[NaN]", "['1']"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
