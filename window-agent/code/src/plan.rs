//! CORE: from the steps of a server's edit, and what is on disk, to what becomes of each file, or a reason why not.
//!
//! The steps are taken one after the other on a draft, so that an edit after a rename is one of the new name. What
//! comes out has no order any more: each file has a place before and one afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::edits::{self, EditProblem, OnExisting, Replacement, Step};
use super::lsp::TextEdit;
use super::text::{Encoding, Storage, Text};

/// What is at a path on disk.
#[derive(Clone, Debug)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A file.
    File(Arc<Text>, Storage),
    /// A folder.
    Folder,
}

/// What becomes of one file.
#[derive(Clone, Debug)]
pub struct FileEdit {
    /// What it is called in the end; one that is deleted, as it was called.
    pub path: PathBuf,
    /// Where it is now; none when it is created.
    pub from: Option<PathBuf>,
    /// Where it goes, before folders get other names; none when it is deleted.
    pub to: Option<PathBuf>,
    /// What it holds.
    pub old: Arc<Text>,
    /// What it will hold.
    pub new: String,
    /// How it is stored.
    pub storage: Storage,
    /// First lines of the edits, from 1.
    pub lines: Vec<u32>,
    /// What makes the new text out of the old one.
    pub replacements: Vec<Replacement>,
}

impl FileEdit {
    /// New text in a file that stays where it is.
    pub fn in_place(
        path: PathBuf,
        old: Arc<Text>,
        storage: Storage,
        replacements: Vec<Replacement>,
    ) -> Result<Self, EditProblem> {
        let new = edits::apply(&old, replacements.clone())?;
        let place = Some(path.clone());
        let lines = lines(&old, &replacements);
        Ok(Self { path, from: place.clone(), to: place, old, new, storage, lines, replacements })
    }

    /// From one place and text to another. `ends`: where it is, and where it goes. Without a new text it is deleted.
    pub(crate) fn between(
        (from, to): (Option<PathBuf>, Option<PathBuf>),
        path: PathBuf,
        old: Arc<Text>,
        new: Option<String>,
        storage: Storage,
    ) -> Self {
        let replacements = new.as_ref().map_or_else(Vec::new, |new| one_replacement(&old, new));
        let new = new.unwrap_or_else(|| old.as_str().to_owned());
        let lines = lines(&old, &replacements);
        Self { path, from, to, old, new, storage, lines, replacements }
    }

    /// Whether it is afterwards what it was before.
    pub fn is_nothing(&self) -> bool {
        self.stays() && self.new == self.old.as_str()
    }

    /// Whether it only gets another text.
    pub fn stays(&self) -> bool {
        self.from == self.to
    }
}

/// A folder that gets another name, after everything else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FolderMove {
    /// Its name.
    pub from: PathBuf,
    /// Its new name.
    pub to: PathBuf,
    /// All files in it, as they are called now. The plan leaves this to who can look.
    pub files: Vec<PathBuf>,
}

/// What becomes of files and folders.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// By name.
    pub edits: Vec<FileEdit>,
    /// In the order of the steps; none touches another.
    pub folders: Vec<FolderMove>,
}

/// What is done to a file or a folder as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// None: it is created.
    pub from: Option<&'a Path>,
    /// None: it is deleted.
    pub to: Option<&'a Path>,
    /// What is in a file that is created.
    pub text: Option<&'a str>,
}

impl Plan {
    /// Whether nothing is done.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty() && self.folders.is_empty()
    }

    /// Whether something is done to a file, by the name that it has now.
    pub fn has(&self, path: &Path) -> bool {
        self.edits.iter().any(|edit| edit.from.as_deref() == Some(path))
            || self.folders.iter().any(|folder| path.starts_with(&folder.from))
    }

    /// Stands for all of it, and for what it is made of.
    pub fn token(&self) -> String {
        let all = self.edits.iter().map(|edit| (&edit.from, &edit.to, edit.old.as_str(), &edit.new));
        edits::token(&(all.collect::<Vec<_>>(), &self.folders))
    }

    /// A path when all folders have their new names.
    pub fn after_moves(&self, path: &Path) -> PathBuf {
        after_moves(&self.folders, path)
    }

    /// What is done beyond new texts, in an order in which each place is free when it is needed; none when files take
    /// each other's names.
    pub fn operations(&self) -> Option<Vec<Operation<'_>>> {
        let mut all = Vec::new();
        let mut renames: Vec<Operation<'_>> = Vec::new();
        let mut created = Vec::new();
        for edit in self.edits.iter().filter(|edit| !edit.stays()) {
            let (from, to) = (edit.from.as_deref(), edit.to.as_deref());
            let text = from.is_none().then_some(edit.new.as_str());
            let operation = Operation { from, to, text };
            match (from, to) {
                (Some(_), Some(_)) => renames.push(operation),
                (None, _) => created.push(operation),
                (_, None) => all.push(operation),
            }
        }
        while !renames.is_empty() {
            let is_free = |one: &Operation<'_>| renames.iter().all(|other| other.from != one.to);
            let next = renames.iter().position(is_free)?;
            all.push(renames.remove(next));
        }
        all.extend(created);
        all.extend(self.folders.iter().map(|folder| Operation {
            from: Some(&folder.from),
            to: Some(&folder.to),
            text: None,
        }));
        Some(all)
    }
}

fn after_moves(folders: &[FolderMove], path: &Path) -> PathBuf {
    let moved = folders.iter().find_map(|folder| {
        let inside = path.strip_prefix(&folder.from).ok()?;
        Some(folder.to.join(inside))
    });
    moved.unwrap_or_else(|| path.to_owned())
}

/// Takes the steps, one after the other. `look` tells what is on disk.
pub fn plan<E: From<EditProblem>>(
    steps: &[Step],
    encoding: Encoding,
    look: impl FnMut(&Path) -> Result<Found, E>,
) -> Result<Plan, E> {
    let mut draft = Draft { look, encoding, files: Vec::new(), places: BTreeMap::new(), folders: Vec::new() };
    for step in steps {
        draft.take(step)?;
    }
    Ok(draft.finish()?)
}

/// A file as it is after the steps so far.
struct File {
    from: Option<PathBuf>,
    old: Arc<Text>,
    storage: Storage,
    text: Arc<Text>,
    /// Edits of this text: they are all made at once.
    pending: Vec<TextEdit>,
    /// What was made of `old`, while that was done at once.
    replacements: Option<Vec<Replacement>>,
    is_touched: bool,
}

struct Draft<F> {
    look: F,
    encoding: Encoding,
    files: Vec<File>,
    /// What is where, as far as steps touched it, in the names before folders get others.
    places: BTreeMap<PathBuf, Option<usize>>,
    folders: Vec<FolderMove>,
}

/// What a step finds at a path.
enum There {
    Nothing,
    File(usize),
    Folder,
}

impl<F, E> Draft<F>
where
    F: FnMut(&Path) -> Result<Found, E>,
    E: From<EditProblem>,
{
    fn take(&mut self, step: &Step) -> Result<(), E> {
        match step {
            Step::Edit { path, edits } => match self.at(path)? {
                There::File(idx) => {
                    let file = &mut self.files[idx];
                    file.pending.extend(edits.iter().cloned());
                    file.is_touched |= !edits.is_empty();
                }
                _ if edits.is_empty() => {}
                There::Nothing => Err(EditProblem::Missing(path.clone()))?,
                There::Folder => Err(EditProblem::Folder("edit", path.clone()))?,
            },
            Step::Create { path, on_existing } => self.create(path, *on_existing)?,
            Step::Delete { path, may_be_missing } => match self.at(path)? {
                There::File(_) => drop(self.places.insert(self.before_moves(path)?, None)),
                There::Folder => Err(EditProblem::Folder("delete", path.clone()))?,
                There::Nothing if *may_be_missing => {}
                There::Nothing => Err(EditProblem::Missing(path.clone()))?,
            },
            Step::Rename { from, to, .. } if from == to => {}
            Step::Rename { from, to, on_existing } => match self.at(from)? {
                There::File(idx) => self.rename(idx, from, to, *on_existing)?,
                There::Folder => self.rename_folder(from, to)?,
                There::Nothing => Err(EditProblem::Missing(from.clone()))?,
            },
        }
        Ok(())
    }

    /// What is at a path after the steps so far.
    fn at(&mut self, path: &Path) -> Result<There, E> {
        let Ok(place) = self.before_moves(path) else { return Ok(There::Nothing) };
        if let Some(known) = self.places.get(&place) {
            return Ok(known.map_or(There::Nothing, There::File));
        }
        match (self.look)(&place)? {
            Found::Nothing if self.holds_files(&place) => Ok(There::Folder),
            Found::Nothing => Ok(There::Nothing),
            Found::Folder => Ok(There::Folder),
            Found::File(text, storage) => {
                let file = File::new(Some(place.clone()), text, storage);
                Ok(There::File(self.add(place, file)))
            }
        }
    }

    /// Whether steps put something below.
    fn holds_files(&self, folder: &Path) -> bool {
        let is_below = |path: &Path| path != folder && path.starts_with(folder);
        self.places.iter().any(|(path, idx)| idx.is_some() && is_below(path))
            || self.folders.iter().any(|moved| is_below(&moved.to))
    }

    fn add(&mut self, place: PathBuf, file: File) -> usize {
        self.files.push(file);
        self.places.insert(place, Some(self.files.len() - 1));
        self.files.len() - 1
    }

    /// A path in the names before folders got others. In a folder that has another name by now there is nothing, and
    /// nothing is put there.
    fn before_moves(&self, path: &Path) -> Result<PathBuf, EditProblem> {
        for folder in &self.folders {
            if let Ok(inside) = path.strip_prefix(&folder.to) {
                // Not with a slash at the end, when it is the folder itself.
                return Ok(folder.from.join(inside).components().collect());
            }
            if path.starts_with(&folder.from) {
                return Err(EditProblem::Folder("use the old name of", folder.from.clone()));
            }
        }
        Ok(path.to_owned())
    }

    fn create(&mut self, path: &Path, on_existing: OnExisting) -> Result<(), E> {
        match (self.at(path)?, on_existing) {
            (There::Nothing, _) => {
                let mut file = File::new(None, Arc::new(Text::new(String::new())), Storage::default());
                file.is_touched = true;
                self.add(self.before_moves(path)?, file);
            }
            (There::File(_), OnExisting::Skip) => {}
            (There::File(idx), OnExisting::Replace) => {
                let file = &mut self.files[idx];
                file.settle(self.encoding)?;
                (file.text, file.replacements) = (Arc::new(Text::new(String::new())), None);
                file.is_touched = true;
            }
            _ => Err(EditProblem::Exists(path.to_owned()))?,
        }
        Ok(())
    }

    fn rename(&mut self, idx: usize, from: &Path, to: &Path, on_existing: OnExisting) -> Result<(), E> {
        match (self.at(to)?, on_existing) {
            (There::File(_), OnExisting::Skip) => return Ok(()),
            (There::Nothing, _) | (There::File(_), OnExisting::Replace) => {}
            _ => Err(EditProblem::Exists(to.to_owned()))?,
        }
        // What is edited from here on is the text that was made so far.
        self.files[idx].settle(self.encoding)?;
        let (from, to) = (self.before_moves(from)?, self.before_moves(to)?);
        self.places.insert(from, None);
        self.places.insert(to, Some(idx));
        Ok(())
    }

    fn rename_folder(&mut self, from: &Path, to: &Path) -> Result<(), E> {
        if !matches!(self.at(to)?, There::Nothing) {
            Err(EditProblem::Exists(to.to_owned()))?;
        }
        let is_near = |one: &Path, other: &Path| one.starts_with(other) || other.starts_with(one);
        let touches = |other: &FolderMove| {
            [&other.from, &other.to].iter().any(|other| is_near(from, other) || is_near(to, other))
        };
        if is_near(from, to) || self.folders.iter().any(touches) {
            Err(EditProblem::Folder("move about", from.to_owned()))?;
        }
        // Only a folder on disk can be moved, not one that steps before would make.
        if !matches!((self.look)(from)?, Found::Folder) {
            Err(EditProblem::Folder("move", from.to_owned()))?;
        }
        for file in &mut self.files {
            file.settle(self.encoding)?;
        }
        self.folders.push(FolderMove { from: from.to_owned(), to: to.to_owned(), files: Vec::new() });
        Ok(())
    }

    fn finish(mut self) -> Result<Plan, EditProblem> {
        let mut ends: BTreeMap<usize, PathBuf> = BTreeMap::new();
        for (place, idx) in &self.places {
            idx.map(|idx| ends.insert(idx, place.clone()));
        }
        let mut all = Vec::new();
        for (idx, mut file) in std::mem::take(&mut self.files).into_iter().enumerate() {
            file.settle(self.encoding)?;
            let to = ends.remove(&idx);
            // Looked at only, or created and deleted again.
            if (file.from == to && !file.is_touched) || (file.from.is_none() && to.is_none()) {
                continue;
            }
            let Some(place) = to.as_ref().or(file.from.as_ref()) else { continue };
            let is_deleted = to.is_none();
            let path = if is_deleted { place.clone() } else { after_moves(&self.folders, place) };
            let new = if is_deleted { file.old.clone() } else { file.text.clone() };
            let replacements = match file.replacements.take() {
                _ if is_deleted => Vec::new(),
                Some(replacements) => replacements,
                None => one_replacement(&file.old, new.as_str()),
            };
            all.push(FileEdit {
                path,
                from: file.from,
                to,
                lines: lines(&file.old, &replacements),
                old: file.old,
                new: new.as_str().to_owned(),
                storage: file.storage,
                replacements,
            });
        }
        all.sort_by(|one, other| (&one.path, &one.from).cmp(&(&other.path, &other.from)));
        Ok(Plan { edits: all, folders: self.folders })
    }
}

impl File {
    fn new(from: Option<PathBuf>, text: Arc<Text>, storage: Storage) -> Self {
        let (old, replacements) = (text.clone(), Some(Vec::new()));
        Self { from, old, storage, text, pending: Vec::new(), replacements, is_touched: false }
    }

    /// Makes the edits that are pending.
    fn settle(&mut self, encoding: Encoding) -> Result<(), EditProblem> {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        let replacements = edits::replacements(&self.text, &pending, encoding);
        let new = edits::apply(&self.text, replacements.clone())?;
        let is_first = self.replacements.as_ref().is_some_and(Vec::is_empty);
        self.replacements = is_first.then_some(replacements);
        self.text = Arc::new(Text::new(new));
        Ok(())
    }
}

/// The stretch that differs.
fn one_replacement(old: &Text, new: &str) -> Vec<Replacement> {
    let change = old.change_to(new, Encoding::Utf8);
    let span = |place| old.offset(place, Encoding::Utf8);
    change.map(|(range, text)| (span(range.start)..span(range.end), text)).into_iter().collect()
}

fn lines(text: &Text, replacements: &[Replacement]) -> Vec<u32> {
    let line = |(span, _): &Replacement| text.position(span.start, Encoding::Utf32).line + 1;
    let lines: BTreeSet<u32> = replacements.iter().map(line).collect();
    lines.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsp::{Position, Range};

    /// `a` and `b` are files on disk that hold their names, `d` is a folder with a file `d/x`.
    fn look(path: &Path) -> Result<Found, EditProblem> {
        let file = |text: &str| Found::File(Arc::new(Text::new(text.to_owned())), Storage::default());
        Ok(match path.to_str() {
            Some("/w/a") => file("a\n"),
            Some("/w/b") => file("b\n"),
            Some("/w/d/x") => file("x\n"),
            Some("/w/d") => Found::Folder,
            _ => Found::Nothing,
        })
    }

    fn path(name: &str) -> PathBuf {
        Path::new("/w").join(name)
    }

    /// `+a`: put at the start of a's first line; `>`: rename, `c`: create, `x`: delete; `!` overwrites, `?` ignores.
    fn step(text: &str) -> Step {
        let option = |name: &str| match name.chars().last() {
            Some('!') => OnExisting::Replace,
            Some('?') => OnExisting::Skip,
            _ => OnExisting::Refuse,
        };
        let plain = |name: &str| path(name.trim_end_matches(['!', '?']));
        let (what, name) = text.split_at(1);
        if let Some((from, to)) = text.split_once('>') {
            return Step::Rename { from: path(from), to: plain(to), on_existing: option(to) };
        }
        match what {
            "+" => {
                let start = Position { line: 0, character: 0 };
                let edit = TextEdit { range: Range { start, end: start }, new_text: "+".to_owned() };
                Step::Edit { path: path(name), edits: vec![edit] }
            }
            "c" => Step::Create { path: plain(name), on_existing: option(name) },
            "x" => Step::Delete { path: plain(name), may_be_missing: name.ends_with('?') },
            other => panic!("{other}"),
        }
    }

    /// The end of it: `from > to: text` for each file, `from > to/` for each folder, or the reason why not.
    fn told(steps: &[&str]) -> String {
        let steps: Vec<Step> = steps.iter().map(|text| step(text)).collect();
        let plan = match plan::<EditProblem>(&steps, Encoding::Utf16, look) {
            Ok(plan) => plan,
            Err(problem) => return problem.to_string(),
        };
        let name = |path: &Option<PathBuf>| match path {
            Some(path) => path.strip_prefix("/w").unwrap().display().to_string(),
            None => "-".to_owned(),
        };
        let edits = plan.edits.iter().map(|edit| {
            assert_eq!(
                edits::apply(&edit.old, edit.replacements.clone()).as_ref(),
                Ok(&edit.new),
                "{edit:?}"
            );
            let to = edit.to.as_ref().map(|_| edit.path.clone());
            assert!(to.is_some() || edit.from.as_ref() == Some(&edit.path), "as it was called: {edit:?}");
            format!("{} > {}: {}", name(&edit.from), name(&to), edit.new.trim_end())
        });
        let folders = plan.folders.iter().map(|folder| {
            format!("{} > {}/", name(&Some(folder.from.clone())), name(&Some(folder.to.clone())))
        });
        edits.chain(folders).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn the_order_of_steps_counts() {
        for (steps, expected) in [
            (&["+a", "a>n"][..], "a > n: +a"),
            (&["a>n", "+n"], "a > n: +a"),
            (&["+a", "a>n", "+n"], "a > n: ++a"),
            (&["a>n", "+a"], "/w/a does not exist"),
            (&["+n", "a>n"], "/w/n does not exist"),
            (&["cn", "+n"], "- > n: +"),
            (&["+n", "cn"], "/w/n does not exist"),
            (&["cn", "+n", "n>m"], "- > m: +"),
            (&["cn", "xn"], ""),
            (&["xa", "ca", "+a"], "- > a: +, a > -: a"),
            (&["xa", "+a"], "/w/a does not exist"),
            (&["+a", "xa"], "a > -: a"),
            (&["a>n", "b>a", "n>b"], "b > a: b, a > b: a"),
            (&["a>n", "n>a"], ""),
            (&["a>n", "ca", "+a", "+n"], "- > a: +, a > n: +a"),
            (&["+a", "+b", "+a"], "a > a: ++a, b > b: +b"),
            (&["a>a", "+a"], "a > a: +a"),
        ] {
            assert_eq!(told(steps), expected, "{steps:?}");
        }
    }

    #[test]
    fn what_is_there_already_is_refused_replaced_or_left() {
        for (steps, expected) in [
            (&["ca"][..], "/w/a already exists"),
            (&["ca?", "+a"], "a > a: +a"),
            (&["ca!", "+a"], "a > a: +"),
            (&["cd?"], "/w/d already exists"),
            (&["a>b"], "/w/b already exists"),
            (&["a>b?", "+b"], "b > b: +b"),
            (&["+a", "a>b!", "+b"], "a > b: ++a, b > -: b"),
            (&["a>d!"], "/w/d already exists"),
            (&["xn"], "/w/n does not exist"),
            (&["xn?"], ""),
            (&["n>m"], "/w/n does not exist"),
        ] {
            assert_eq!(told(steps), expected, "{steps:?}");
        }
    }

    #[test]
    fn a_folder_takes_what_is_in_it_along() {
        for (steps, expected) in [
            (&["+d/x", "d>e"][..], "d/x > e/x: +x, d > e/"),
            (&["d>e", "+e/x"], "d/x > e/x: +x, d > e/"),
            (&["+d/x", "d>e", "+e/x"], "d/x > e/x: ++x, d > e/"),
            (&["d>e", "+d/x"], "/w/d/x does not exist"),
            (&["d>e", "ce/y", "a>e/z"], "- > e/y: , a > e/z: a, d > e/"),
            (&["xd/x", "d>e"], "d/x > -: x, d > e/"),
            (&["d>e", "xe/x"], "d/x > -: x, d > e/"),
            (&["d>e", "e/x>y"], "d/x > y: x, d > e/"),
            (
                &["d>e", "cd/x"],
                "the server wants to use the old name of the folder /w/d, which is not supported",
            ),
            (&["ce/x", "d>e"], "/w/e already exists"),
            (&["d>a"], "/w/a already exists"),
            (&["d>d/e"], "the server wants to move about the folder /w/d, which is not supported"),
            (&["d>e", "e>f"], "the server wants to move about the folder /w/e, which is not supported"),
            (&["xd"], "the server wants to delete the folder /w/d, which is not supported"),
            (&["d>n/d", "xn?"], "the server wants to delete the folder /w/n, which is not supported"),
            (&["+d"], "the server wants to edit the folder /w/d, which is not supported"),
        ] {
            assert_eq!(told(steps), expected, "{steps:?}");
        }
    }

    /// Taken one by one on a plain map of names to texts, in every order, the steps end where the plan says.
    #[test]
    fn every_order_ends_where_the_steps_lead() {
        let all = ["+a", "a>n", "+n", "ca?", "b>a!", "xa?"];
        let mut n_made = 0;
        for code in 0..all.len().pow(4) {
            let steps: Vec<&str> = (0..4).map(|digit| all[code / all.len().pow(digit) % all.len()]).collect();
            let mut disk: BTreeMap<PathBuf, String> =
                ["a", "b"].iter().map(|name| (path(name), format!("{name}\n"))).collect();
            let is_possible = steps.iter().all(|text| walk(&mut disk, &step(text)));
            let steps_taken: Vec<Step> = steps.iter().map(|text| step(text)).collect();
            let planned = plan::<EditProblem>(&steps_taken, Encoding::Utf16, look);
            assert_eq!(planned.is_ok(), is_possible, "{steps:?}: {planned:?}");
            let Ok(planned) = planned else { continue };
            n_made += 1;
            let mut made: BTreeMap<PathBuf, String> =
                ["a", "b"].iter().map(|name| (path(name), format!("{name}\n"))).collect();
            planned.edits.iter().for_each(|edit| drop(edit.from.as_ref().map(|from| made.remove(from))));
            for edit in &planned.edits {
                let known = edit.to.clone().map(|to| made.insert(to, edit.new.clone()));
                assert!(!matches!(known, Some(Some(_))), "two files in one place: {steps:?}");
            }
            assert_eq!(made, disk, "{steps:?}");
        }
        assert!(n_made > 100, "{n_made}");
    }

    /// A step as a person would take it; false when it cannot be.
    fn walk(disk: &mut BTreeMap<PathBuf, String>, step: &Step) -> bool {
        match step {
            Step::Edit { path, .. } => disk.get_mut(path).map(|text| text.insert(0, '+')).is_some(),
            Step::Create { path, .. } => {
                disk.entry(path.clone()).or_default();
                true
            }
            Step::Delete { path, .. } => {
                disk.remove(path);
                true
            }
            Step::Rename { from, to, on_existing } => {
                if disk.contains_key(to) && disk.contains_key(from) && *on_existing == OnExisting::Refuse {
                    return false;
                }
                disk.remove(from).map(|text| disk.insert(to.clone(), text)).is_some()
            }
        }
    }

    #[test]
    fn operations_find_each_place_free() {
        let operations = |steps: &[&str]| -> Option<String> {
            let steps: Vec<Step> = steps.iter().map(|text| step(text)).collect();
            let plan = plan::<EditProblem>(&steps, Encoding::Utf16, look).unwrap();
            let name = |path: Option<&Path>| path.map_or("-", |path| path.to_str().unwrap()).to_owned();
            let all = plan.operations()?;
            let shown = all.iter().map(|one| format!("{}>{}", name(one.from), name(one.to)));
            Some(shown.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(operations(&["b>n", "a>b"]).as_deref(), Some("/w/b>/w/n /w/a>/w/b"));
        assert_eq!(operations(&["a>b!", "ca"]).as_deref(), Some("/w/b>- /w/a>/w/b ->/w/a"));
        assert_eq!(operations(&["d>e", "a>e/a"]).as_deref(), Some("/w/a>/w/d/a /w/d>/w/e"));
        assert_eq!(operations(&["a>n", "b>a", "n>b"]), None);
        assert_eq!(operations(&["+a"]).as_deref(), Some(""));
    }

    #[test]
    fn a_token_stands_for_names_and_texts() {
        let token = |steps: &[&str]| {
            let steps: Vec<Step> = steps.iter().map(|text| step(text)).collect();
            plan::<EditProblem>(&steps, Encoding::Utf16, look).unwrap().token()
        };
        let all = [&["a>n"][..], &["a>m"], &["xa"], &["cn"], &["+a"], &["a>n", "+n"], &["d>e"], &["d>f"]];
        let tokens: BTreeSet<String> = all.iter().map(|steps| token(steps)).collect();
        assert_eq!(tokens.len(), all.len());
        assert_eq!(token(&["+a", "a>n"]), token(&["a>n", "+n"]), "it is about the end");
    }
}
