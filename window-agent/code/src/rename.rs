//! Whether a rename can be right: the symbol is the project's and was named as it is, and the new name is one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Instant;

use serde::Deserialize;
use serde_json::json;

use super::aim::{Target, outline_beside};
use super::lsp::{self, Position};
use super::references::{Wanted, name_position};
use super::server::{Ask, Server};
use super::text::{Encoding, Text, is_word};
use super::types::{Outline, Subject};
use super::{CodeIndex, symbols};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::paths;
use baton_agent_base::workspace::Workspace;

/// Words before the path of another file.
const LEAD_TO_PATHS: [&str; 12] = [
    "export",
    "forward",
    "from",
    "import",
    "include",
    "include_once",
    "load",
    "part",
    "require",
    "require_once",
    "require_relative",
    "use",
];
/// Where a file is defined as a whole.
const START_OF_FILE: Position = Position { line: 0, character: 0 };

/// What is renamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// Its full name.
    pub name: String,
    /// Where it is defined, as far as the server tells.
    pub file: PathBuf,
    /// From 1.
    pub line: u32,
    /// Whether it is the name or the path of a file, which must take the new name, too.
    pub is_file: bool,
}

/// Where a use is defined, in another file: there a server renames it everywhere, and where it is used perhaps only
/// there (`use a::B as C`).
pub(super) type Definition = (Subject, Position);

impl CodeIndex {
    /// What a rename is about, when it can be renamed so.
    pub(super) async fn renamed(
        &self,
        workspace: &Workspace,
        (server, outline, target): (&Server, &Outline, &Target),
        (wanted, new_name): (&Wanted, &str),
        deadline: Instant,
    ) -> Result<(Renamed, Option<Definition>), Fault> {
        if target.is_corrected {
            return Err(guessed(wanted, target));
        }
        let own = &outline.subject.snapshot.path;
        let ask = Ask::about("textDocument/definition", &outline.subject, target.position, json!({}));
        // A server that does not tell has nothing against it.
        let defined = server.ask(ask, deadline).await.map(|answered| lsp::locations(&answered.result));
        let defined = defined.unwrap_or_default();
        let mut trees = workspace.trees().about(&outline.subject.folder);
        let ours = defined.iter().find_map(|location| {
            let path = lsp::path(&location.uri)?;
            let is_ours = is_ours(workspace, &path) && trees.other(&path).is_none();
            is_ours.then_some(())?;
            Some((path, location.range.start))
        });
        if ours.is_none() && !defined.is_empty() {
            return Err(of_others(&target.name, &defined[0].uri));
        }
        let here = (own.clone(), target.position);
        // Some outlines have imports among the definitions.
        let is_use = target.is_use || ours.as_ref().is_some_and(|(file, _)| file != own);
        let (file, start) = if is_use { ours.unwrap_or(here) } else { here };
        let line = start.line;
        let last = symbols::last_name(&target.name);
        let beside = match file == *own {
            true => None,
            false => outline_beside(server, &outline.subject, &file, deadline).await,
        };
        let all = beside.as_ref().map_or(&outline.symbols, |(_, symbols)| symbols);
        let found = symbols::named_on(all, line, last);
        let kind = found.as_ref().map(|found| found.symbol.kind);
        let language = self.table().language_of(own);
        let is_named_there =
            found.as_ref().is_some_and(|found| found.symbol.name_range.start == START_OF_FILE);
        let is_file = file != *own && start == START_OF_FILE && !is_named_there;
        let is_path = before_quote(outline.text(), target.position)
            .is_some_and(|before| is_file || is_of_import(before));
        // A private name of JavaScript keeps its sign.
        let private = found.as_ref().map(|found| found.symbol.name.as_str());
        let old = private.filter(|name| name.strip_prefix('#') == Some(last)).unwrap_or(last);
        let problem = match is_path {
            true => problem_of_path(new_name),
            false => problem_of(new_name, old, language, kind),
        };
        if let Some(problem) = problem {
            return Err(Fault::new(Kind::InvalidName, format!("{new_name:?} {problem}."))
                .hint("Give new_name as written in code, without its container."));
        }
        let is_module = is_file && language == Some("python") && module_name(&file) == Some(last);
        let is_file = is_module || (is_path && line == 0 && file != *own);
        let definition = found
            .as_ref()
            .zip(beside.as_ref())
            .map(|(found, (beside, _))| (beside.clone(), name_position(&beside.snapshot.text, found.symbol)));
        let name = found.map_or_else(|| target.name.clone(), |found| found.path);
        Ok((Renamed { name, file, line: line + 1, is_file }, definition))
    }
}

/// What a file of Python is imported as.
fn module_name(file: &Path) -> Option<&str> {
    let stem = file.file_stem()?.to_str()?;
    if stem == "__init__" { file.parent()?.file_name()?.to_str() } else { Some(stem) }
}

fn guessed(wanted: &Wanted, target: &Target) -> Fault {
    let given: String = wanted.symbol.chars().take(100).collect();
    Fault::new(Kind::SymbolNotFound, format!("There is no symbol named exactly {given:?} in this file."))
        .hint(format!("A rename takes no other name for it. Did you mean {}?", target.name))
        .detail("candidates", vec![target.name.clone()])
}

fn of_others(name: &str, uri: &str) -> Fault {
    let place = lsp::path(uri).map_or_else(|| uri.to_owned(), |path| path.display().to_string());
    let message = format!("{name} is not this project's: it is defined in {place}.");
    Fault::new(Kind::NotRenamable, message)
        .hint("Only what is defined in the window's folders can be renamed. Is another symbol meant?")
}

/// Whether a file is of the project, and not of a package that lies in its folders.
fn is_ours(workspace: &Workspace, path: &Path) -> bool {
    paths::is_own(path, workspace.folders().iter().map(|folder| folder.path.as_path()))
}

/// What is no name in some languages.
#[derive(Deserialize)]
struct Reserved {
    /// As the protocol calls them.
    languages: BTreeSet<String>,
    /// With spaces between.
    words: String,
    /// Other than letters, digits and `_`.
    #[serde(default)]
    signs: String,
    /// Whether members may have reserved names.
    #[serde(default)]
    members_may: bool,
}

static RESERVED: LazyLock<Vec<Reserved>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("reserved.json"))
        .expect("invariant: reserved.json is read by a test of this file")
});

/// What stands on its line before the quotes without spaces that a place is in; none when it is in no such ones.
fn before_quote(text: &Text, place: Position) -> Option<&str> {
    let start = text.offset(Position { line: place.line, character: 0 }, Encoding::Utf32);
    let (before, after) =
        text.line(place.line as usize).split_at(text.offset(place, Encoding::Utf32) - start);
    let is_end = |sign: char| sign.is_whitespace() || matches!(sign, '\'' | '"');
    let (at, quote) = before.char_indices().rev().find(|(_, sign)| is_end(*sign))?;
    let is_open = !quote.is_whitespace() && before.matches(quote).count() % 2 == 1;
    (is_open && after.chars().find(|sign| is_end(*sign)) == Some(quote)).then(|| &before[..at])
}

/// Whether quotes that come next are of the path of an import: what is renamed there is a file.
fn is_of_import(before: &str) -> bool {
    let is_between = |sign: char| !is_word(sign);
    let first = before.split(is_between).find(|word| !word.is_empty());
    let called = before.trim_end().trim_end_matches('(').trim_end();
    let last = called.rsplit(is_between).next();
    first.is_some_and(|word| matches!(word, "import" | "include"))
        || last.is_some_and(|word| LEAD_TO_PATHS.contains(&word))
}

/// Likewise for a file.
fn problem_of_path(new: &str) -> Option<String> {
    let is_strange = |sign: char| sign.is_control() || matches!(sign, '\'' | '"');
    match new.chars().find(|sign| is_strange(*sign)) {
        Some(strange) => Some(format!("is not a valid path: it contains {strange:?}")),
        None => new.trim().is_empty().then(|| "is not a valid path".to_owned()),
    }
}

/// Why a symbol cannot be called so: how the sentence goes on.
fn problem_of(new: &str, old: &str, language: Option<&str>, kind: Option<&str>) -> Option<String> {
    let reserved = RESERVED.iter().find(|one| language.is_some_and(|name| one.languages.contains(name)));
    // What one name of the language has, another may have.
    let is_sign = |sign: char| {
        let signs = reserved.map_or("$", |reserved| &reserved.signs);
        signs.contains(sign) || (!sign.is_whitespace() && old.contains(sign))
    };
    let bare = if language == Some("rust") { new.strip_prefix("r#").unwrap_or(new) } else { new };
    let strange = bare.chars().find(|&sign| !is_sign(sign) && (sign == '$' || !is_word(sign)));
    let is_member = matches!(kind, Some("method" | "property" | "field" | "enum member"));
    let is_reserved = |reserved: &&Reserved| {
        reserved.words.split(' ').any(|word| word == new) && !(reserved.members_may && is_member)
    };
    match () {
        () if bare.is_empty() => Some("is not a valid name".to_owned()),
        () if old.starts_with('#') && !new.starts_with('#') => {
            Some("is not private: a name that begins with # keeps it".to_owned())
        }
        () if new == old => Some("is what it is called already".to_owned()),
        () if strange.is_some() => {
            Some(format!("is not a valid name: it contains {:?}", strange.unwrap_or_default()))
        }
        () if bare.starts_with(char::is_numeric) => {
            Some("is not a valid name: it starts with a digit".to_owned())
        }
        () => {
            let language = language.unwrap_or_default();
            reserved.filter(is_reserved).map(|_| format!("is a reserved word ({language})"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_is_one_of_its_language() {
        let ok = |new: &str, old: &str, language: &str, kind: &str| {
            problem_of(new, old, Some(language), Some(kind)).is_none()
        };
        assert!(ok("größe", "size", "python", "function"));
        assert!(ok("match", "size", "python", "function"));
        assert!(!ok("$size", "size", "python", "function"));
        assert!(ok("$size", "size", "typescript", "variable"));
        assert!(!ok("delete", "remove", "typescriptreact", "function"));
        assert!(ok("delete", "remove", "typescript", "method"));
        assert!(ok("#b", "#a", "javascript", "property"));
        assert!(!ok("type", "kind", "rust", "field"));
        assert!(ok("r#type", "kind", "rust", "field"));
        assert!(ok("class", "kind", "go", "variable"));
        assert!(!ok("class", "kind", "cpp", "variable"));
        assert!(ok("my-dec", "a-b", "lisp", "function"));
        for bad in ["", " ", "1 bad", "1bad", "my-dec", "a.b", "size", "a\n"] {
            for language in ["python", "cpp", "lua", "rust"] {
                assert!(!ok(bad, "size", language, "function"), "{bad:?} in {language}");
            }
        }
    }

    #[test]
    fn an_import_has_a_path() {
        let before = |line: &str| {
            let character = line.chars().position(|sign| sign == 'n').unwrap() as u32;
            let text = Text::new(format!("x\n{line}\n"));
            before_quote(&text, Position { line: 1, character }).map(str::to_owned)
        };
        assert_eq!(before("ä(\"n\")").as_deref(), Some("ä("));
        for line in ["n", "f('a',n,'b')", "f('a', n, 'b')", "'a n'", "'n b'", "'n\"", "it's n"] {
            assert_eq!(before(line), None, "{line}");
        }
        for line in [
            "import a from './ä/",
            "import './",
            "export * from '",
            "} from '",
            "a = require('",
            "await import( '",
            "#include \"",
            "# include \"",
            "import shop \"",
            "require_relative '",
            "@import url(\"",
        ] {
            assert!(is_of_import(&line[..line.find(['\'', '"']).unwrap()]), "{line}");
        }
        for before in
            ["", "print(f", "x: ", "def f(x: ", "export const a: ", "a.b(", "form", "reimport(", "важно"]
        {
            assert!(!is_of_import(before), "{before}");
        }
        assert!(problem_of_path("./a-b/c.js").is_none());
        assert!(["", " ", "a'b", "a\nb"].iter().all(|bad| problem_of_path(bad).is_some()));
    }

    #[test]
    fn the_languages_are_those_of_the_servers() {
        let table = super::super::servers::Table::open(&super::super::servers::Places::default());
        let known: BTreeSet<&String> = table
            .specs()
            .iter()
            .flat_map(|spec| spec.languages.values())
            .filter(|name| *name != "go.mod")
            .collect();
        let told: BTreeSet<&String> = RESERVED.iter().flat_map(|one| &one.languages).collect();
        assert_eq!(told, known);
    }
}
