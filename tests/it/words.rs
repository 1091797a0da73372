//! Plain words: what people and models read has none of the phrases that `docs/words.md` refuses.

use std::path::Path;

use baton_tests::place::root;

use crate::tidy::{read, rust_files, shown};
use crate::walls::source::Source;

/// Texts of the extension, and documents for users.
const DOCUMENTS: [&str; 5] = [
    "README.md",
    "docs/commands.md",
    "vscode-shim/README.md",
    "vscode-shim/package.nls.json",
    "vscode-shim/l10n/bundle.l10n.zh-cn.json",
];

/// The phrases in the last column of the table, in lower case.
fn phrases() -> Vec<String> {
    let text = read(&root().join("docs/words.md"));
    let cells = text.lines().filter(|line| line.starts_with("| ")).filter_map(|line| line.split('|').nth(3));
    let phrases: Vec<String> =
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_lowercase).collect();
    assert!(phrases.len() > 20, "docs/words.md has no table of phrases");
    phrases
}

/// The first phrase that stands in a text, as whole words.
fn refused<'a>(phrases: &'a [String], text: &str) -> Option<&'a str> {
    let text = text.to_lowercase();
    let is_letter =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    phrases.iter().map(String::as_str).find(|phrase| {
        let is_word = phrase.starts_with(char::is_alphanumeric);
        text.match_indices(phrase).any(|(at, _)| {
            let is_begun = is_word && is_letter(text[..at].chars().next_back());
            !is_begun && !is_letter(text[at + phrase.len()..].chars().next())
        })
    })
}

/// A product source: what users never read is left alone.
fn is_product(path: &Path) -> bool {
    let path = shown(path);
    let is_ours =
        ["proto/", "link/", "coordinator/", "window-agent/"].iter().any(|folder| path.starts_with(folder));
    let is_test = ["/tests/", "/tests.rs", "/fuzz/", "/fuzz.rs", "/examples/", "/benches/"];
    is_ours && path.contains("src/") && !is_test.iter().any(|part| path.contains(part))
}

fn violations(phrases: &[String], source: &Source) -> Vec<String> {
    let found = source.texts().into_iter().filter_map(|(line, text)| {
        // Without a space it is a name, such as that of a notification.
        let phrase = refused(phrases, &text).filter(|_| text.contains(' '))?;
        Some(format!("{}:{line}: `{phrase}` in {text:?}", source.path.display()))
    });
    found.collect()
}

#[test]
fn what_people_read_is_in_plain_words() {
    let phrases = phrases();
    let mut bad = Vec::new();
    for path in rust_files().iter().filter(|path| is_product(path)) {
        bad.extend(violations(&phrases, &Source::parse(Path::new(&shown(path)), &read(path))));
    }
    for document in DOCUMENTS {
        for (idx, line) in read(&root().join(document)).lines().enumerate() {
            bad.extend(refused(&phrases, line).map(|phrase| format!("{document}:{}: `{phrase}`", idx + 1)));
        }
    }
    assert!(bad.is_empty(), "docs/words.md says what to write instead: {bad:#?}");
}

#[test]
fn a_planted_phrase_is_found() {
    let phrases = phrases();
    let planted = [
        r#"fn f(x: u8) -> String { format!("{x} is no folder") }"#,
        r#"const HINT: &str = "Ask Whoever holds it.";"#,
        r#"#[derive(Debug, thiserror::Error)] #[error("port {0} is held by {1}")] struct Taken(u16, u8);"#,
        r#"#[derive(Debug, clap::Args)] struct Options { /** It goes on there */ name: String }"#,
    ];
    for text in planted {
        let source = Source::parse(Path::new("link/src/planted.rs"), text);
        assert_eq!(violations(&phrases, &source).len(), 1, "{text}");
    }
    let fine = r#"/// Whoever reads this.
        fn f() -> String { format!("{} is not a directory", 1) }
        #[cfg(test)] mod tests { const OLD: &str = "as many as may"; }"#;
    assert_eq!(
        violations(&phrases, &Source::parse(Path::new("link/src/fine.rs"), fine)),
        Vec::<String>::new()
    );
}
