//! What becomes of files: the same as the steps one by one on a map of names, in memory and on a disk.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbitrary::{Result, Unstructured};

use super::edits::{apply_plainly, edit};
use super::scratch::Scratch;
use crate::edits::{EditProblem, OnExisting, Step};
use crate::files::{MAX_MOVED, files_below};
use crate::journal::{Ledger, TURN_LIMIT};
use crate::lsp::TextEdit;
use crate::plan::{FileEdit, Found, Plan, plan};
use crate::text::{Encoding, Storage, Text};
use crate::undo::undo_last;
use crate::write::{Trace, write_all};

/// Places that steps name; nothing is below a file.
const NAMES: [&str; 11] = ["a", "b", "n", "m", "d", "d/x", "d/y", "e", "e/x", "e/y", "f/g/x"];
const FILES: [(&str, &str); 4] = [("a", "a\n"), ("b", "b1\nb2\n"), ("c", "c"), ("d/x", "x\r\ny")];
const ENCODING: Encoding = Encoding::Utf16;

/// Files by name, and the folders that are there even when they hold nothing.
#[derive(Clone, Debug, Default)]
struct Disk {
    files: BTreeMap<PathBuf, File>,
    folders: BTreeSet<PathBuf>,
}

#[derive(Clone, Debug, Default)]
struct File {
    text: String,
    /// Edits of one text are made at once.
    pending: Vec<TextEdit>,
}

impl File {
    fn settle(&mut self) -> Option<()> {
        self.text = apply_plainly(&self.text, &std::mem::take(&mut self.pending), ENCODING)?;
        Some(())
    }
}

impl Disk {
    fn new(root: &Path) -> Self {
        let file = |text: &str| File { text: text.to_owned(), pending: Vec::new() };
        Self {
            files: FILES.iter().map(|(name, text)| (root.join(name), file(text))).collect(),
            folders: BTreeSet::from([root.join("d")]),
        }
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.folders.contains(path) || self.files.keys().any(|file| file != path && file.starts_with(path))
    }

    fn is_free(&self, path: &Path) -> bool {
        !self.files.contains_key(path) && !self.is_folder(path)
    }

    /// False when a file lies below another, which no disk can hold.
    fn is_possible(&self) -> bool {
        let is_file = |above: &Path| self.files.contains_key(above);
        !self.files.keys().any(|path| path.ancestors().skip(1).any(is_file))
    }

    /// One step as a person would take it; None when it cannot be.
    fn take(&mut self, step: &Step) -> Option<()> {
        match step {
            Step::Edit { path, edits } => match self.files.get_mut(path) {
                Some(file) => file.pending.extend(edits.iter().cloned()),
                None => return edits.is_empty().then_some(()),
            },
            Step::Create { path, .. } if self.is_folder(path) => return None,
            Step::Create { path, on_existing } => match (self.files.get_mut(path), on_existing) {
                (Some(_), OnExisting::Skip) => {}
                (Some(file), OnExisting::Replace) => {
                    file.settle()?;
                    file.text.clear();
                }
                (Some(_), OnExisting::Refuse) => return None,
                (None, _) => drop(self.files.insert(path.clone(), File::default())),
            },
            Step::Delete { path, may_be_missing } => match self.files.remove(path) {
                // What cannot be done is not done, even when nobody would see it.
                Some(mut file) => file.settle()?,
                None if self.is_folder(path) => return None,
                None => return may_be_missing.then_some(()),
            },
            Step::Rename { from, to, .. } if from == to => {}
            Step::Rename { from, to, on_existing } if self.files.contains_key(from) => {
                match (self.files.contains_key(to), on_existing) {
                    (true, OnExisting::Skip) => return Some(()),
                    (true, OnExisting::Refuse) => return None,
                    (false, _) if self.is_folder(to) => return None,
                    _ => {}
                }
                let mut file = self.files.remove(from)?;
                file.settle()?;
                self.files.insert(to.clone(), file);
            }
            Step::Rename { from, to, .. } => {
                if !self.is_folder(from) || !self.is_free(to) || to.starts_with(from) {
                    return None;
                }
                self.files.values_mut().try_for_each(File::settle)?;
                self.move_folder(from, to);
            }
        }
        Some(())
    }

    fn move_folder(&mut self, from: &Path, to: &Path) {
        let moved = |path: PathBuf| match path.strip_prefix(from) {
            Ok(inside) => to.join(inside).components().collect(),
            Err(_) => path,
        };
        let files = std::mem::take(&mut self.files).into_iter();
        self.files = files.map(|(path, file)| (moved(path), file)).collect();
        self.folders = std::mem::take(&mut self.folders).into_iter().map(moved).collect();
    }

    fn texts(&self) -> BTreeMap<PathBuf, String> {
        self.files.iter().map(|(path, file)| (path.clone(), file.text.clone())).collect()
    }

    /// The disk after the plan.
    fn after(&self, plan: &Plan) -> Self {
        let mut after = self.clone();
        for edit in &plan.edits {
            let old =
                edit.from.as_ref().map(|from| after.files.remove(from).expect("a file is where it was"));
            assert_eq!(old.map(|file| file.text).unwrap_or_default(), edit.old.as_str());
        }
        for edit in &plan.edits {
            let Some(to) = &edit.to else { continue };
            let file = File { text: edit.new.clone(), pending: Vec::new() };
            assert!(after.files.insert(to.clone(), file).is_none(), "two files at {}", to.display());
        }
        for folder in &plan.folders {
            after.move_folder(&folder.from, &folder.to);
        }
        let path_is_end = |edit: &FileEdit| edit.to.is_none() || after.files.contains_key(&edit.path);
        assert!(plan.edits.iter().all(path_is_end), "each file is called in the end as it is said");
        after
    }
}

/// What the steps make of the disk; None when they cannot be taken.
fn walk(disk: &Disk, steps: &[Step]) -> Option<Disk> {
    let mut disk = disk.clone();
    for step in steps {
        disk.take(step)?;
        // Nothing is asked of the plan where a file would be a folder, too: the disk refuses that.
        disk.is_possible().then_some(())?;
    }
    disk.files.values_mut().try_for_each(File::settle)?;
    Some(disk)
}

fn read_steps(input: &mut Unstructured<'_>, root: &Path) -> Result<Vec<Step>> {
    let n_steps = input.int_in_range(1..=6)?;
    (0..n_steps).map(|_| read_step(input, root)).collect()
}

fn read_step(input: &mut Unstructured<'_>, root: &Path) -> Result<Step> {
    let kind = input.int_in_range(0..=3)?;
    let path = root.join(input.choose(&NAMES)?);
    let on_existing = *input.choose(&[OnExisting::Refuse, OnExisting::Replace, OnExisting::Skip])?;
    Ok(match kind {
        0 => {
            let n_edits = input.int_in_range(0..=2)?;
            Step::Edit { path, edits: (0..n_edits).map(|_| edit(input)).collect::<Result<_>>()? }
        }
        1 => Step::Create { path, on_existing },
        2 => Step::Delete { path, may_be_missing: input.arbitrary()? },
        _ => Step::Rename { from: path, to: root.join(input.choose(&NAMES)?), on_existing },
    })
}

fn look(disk: &Disk, path: &Path) -> Found {
    match disk.files.get(path) {
        Some(file) => Found::File(Arc::new(Text::new(file.text.clone())), Storage::default()),
        None if disk.is_folder(path) => Found::Folder,
        None => Found::Nothing,
    }
}

/// In memory.
pub(super) fn run(bytes: &[u8]) {
    let disk = Disk::new(Path::new("/w"));
    let Ok(steps) = read_steps(&mut Unstructured::new(bytes), Path::new("/w")) else { return };
    let planned = plan::<EditProblem>(&steps, ENCODING, |path| Ok(look(&disk, path)));
    let walked = walk(&disk, &steps);
    match (&planned, &walked) {
        (Ok(plan), Some(walked)) => {
            assert_eq!(disk.after(plan).texts(), walked.texts(), "{steps:?}");
            check_operations(plan, &disk, walked);
            assert!(plan.edits.iter().all(|edit| edit.from.is_some() || edit.to.is_some()));
        }
        (Ok(plan), None) => assert!(!disk.after(plan).is_possible() || is_odd(&disk, &steps), "{steps:?}"),
        // What is done with folders is more than we do.
        (Err(EditProblem::Folder(..)), _) | (Err(_), None) => {}
        (Err(problem), Some(_)) => panic!("{problem} at {steps:?}"),
    }
}

/// Whether a step on the way puts a file below another: the plan looks at the ends only, and the disk refuses.
fn is_odd(disk: &Disk, steps: &[Step]) -> bool {
    let mut disk = disk.clone();
    steps.iter().any(|step| disk.take(step).is_some() && !disk.is_possible())
}

/// One by one they find their places free and end where the steps lead.
fn check_operations(plan: &Plan, disk: &Disk, walked: &Disk) {
    let Some(operations) = plan.operations() else { return };
    let mut disk = disk.clone();
    for operation in operations {
        let (from, to) = (operation.from, operation.to);
        if let Some(to) = to {
            assert!(disk.is_free(to), "{} is not free", to.display());
        }
        match (from, to) {
            (Some(from), Some(to)) if disk.files.contains_key(from) => {
                let file = disk.files.remove(from).expect("it is there");
                disk.files.insert(to.to_owned(), file);
            }
            (Some(from), Some(to)) => disk.move_folder(from, to),
            (Some(from), None) => drop(disk.files.remove(from).expect("it is there")),
            (None, Some(to)) => drop(disk.files.insert(to.to_owned(), File::default())),
            (None, None) => panic!("nothing is done to nothing"),
        }
    }
    assert!(disk.files.keys().eq(walked.files.keys()), "{:?} is not {:?}", disk.files, walked.files);
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// On a disk that changes between plan and writing: everything is done, or nothing at all.
pub(super) fn run_on_disk(bytes: &[u8]) {
    SCRATCH.with_borrow(|scratch| {
        let root = scratch.home.path().canonicalize().expect("our own folder").join("w");
        // What the input before this one left.
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(root.join("d")).expect("our own folder");
        for (name, text) in FILES {
            scratch.put(&format!("w/{name}"), text.as_bytes());
        }
        let mut input = Unstructured::new(bytes);
        let Ok((steps, meddling)) = read_all(&mut input, &root) else { return };
        let before = Disk::new(&root);
        let Ok(mut plan) = plan::<EditProblem>(&steps, ENCODING, |path| Ok(look(&before, path))) else {
            return;
        };
        for folder in &mut plan.folders {
            let Ok(files) = files_below(&folder.from, MAX_MOVED) else { return };
            folder.files = files;
        }
        meddling.iter().for_each(Meddling::act);
        let (there, folders) = (on_disk(&root), folders_on_disk(&root));
        let ledger = Ledger { folder: Some(scratch.home.path().join("changes")) };
        let turn = ledger.turn(&[], TURN_LIMIT).expect("nobody else has it");
        let made = write_all(&plan, &turn, Trace::Of("client"));
        match &made {
            Ok(()) if meddling.is_empty() => {
                assert_eq!(on_disk(&root), before.after(&plan).texts(), "{steps:?}");
            }
            // What was meddled with and is no part of the plan stays.
            Ok(()) => {
                let is_there = |edit: &FileEdit| edit.to.is_none() || edit.path.exists();
                assert!(plan.edits.iter().all(is_there), "{steps:?} with {meddling:?}");
            }
            Err(_) => assert_eq!(on_disk(&root), there, "{steps:?} with {meddling:?} was taken back"),
        }
        let is_ours = |path: &PathBuf| path.to_string_lossy().contains(".baton-");
        assert!(!on_disk(&root).keys().any(is_ours), "nothing is left beside the files");
        let undone = undo_last(&turn, "client", |_| true, |_| Ok(()));
        assert_eq!(undone.is_ok(), made.is_ok(), "{undone:?} of {steps:?} with {meddling:?}");
        assert_eq!(
            (on_disk(&root), folders_on_disk(&root)),
            (there, folders),
            "undone: {steps:?} with {meddling:?}"
        );
    });
}

/// What another program does meanwhile.
#[derive(Debug)]
enum Meddling {
    Write(PathBuf),
    Remove(PathBuf),
    MakeFolder(PathBuf),
}

impl Meddling {
    /// As far as it can be done.
    fn act(&self) {
        let _ = match self {
            Self::Write(path) => std::fs::write(path, "another's"),
            Self::Remove(path) => std::fs::remove_file(path),
            Self::MakeFolder(path) => std::fs::create_dir(path),
        };
    }
}

fn read_all(input: &mut Unstructured<'_>, root: &Path) -> Result<(Vec<Step>, Vec<Meddling>)> {
    let n_meddling = input.int_in_range(0..=2)?;
    let meddling = (0..n_meddling).map(|_| {
        let path = root.join(input.choose(&NAMES)?);
        Ok(match input.int_in_range(0..=2)? {
            0 => Meddling::Write(path),
            1 => Meddling::Remove(path),
            _ => Meddling::MakeFolder(path),
        })
    });
    let meddling = meddling.collect::<Result<_>>()?;
    Ok((read_steps(input, root)?, meddling))
}

fn folders_on_disk(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::from([root.to_owned()]);
    let mut to_do = vec![root.to_owned()];
    while let Some(folder) = to_do.pop() {
        let entries = std::fs::read_dir(folder).expect("our own folder").flatten();
        let inside = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
        let inside: Vec<PathBuf> = inside.collect();
        found.extend(inside.iter().cloned());
        to_do.extend(inside);
    }
    found
}

/// Everything there is, hidden files too.
fn on_disk(root: &Path) -> BTreeMap<PathBuf, String> {
    let files = files_below(root, MAX_MOVED).expect("our own folder");
    let read = |path: PathBuf| (path.clone(), std::fs::read_to_string(path).expect("a file of ours"));
    files.into_iter().map(read).collect()
}
