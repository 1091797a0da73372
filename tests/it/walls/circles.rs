//! No crate has a large circle of files, and no room of one stands on another that stands on it: counted from what is
//! named.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use super::crate_of;
use super::source::{Source, module_of};
use crate::tidy::{read, rust_files, shown};

/// Files that name each other in a circle may be this many.
const MAX_CIRCLE: usize = 5;

/// The files of one crate, and which names which.
struct Crate {
    files: Vec<Source>,
    arrows: BTreeSet<(usize, usize)>,
}

impl Crate {
    fn of(files: Vec<Source>) -> Self {
        let modules: Vec<Vec<String>> = files.iter().map(|file| module_of(&file.path)).collect();
        let mut arrows = BTreeSet::new();
        for (from, file) in files.iter().enumerate() {
            for target in file.siblings() {
                let known = modules.iter().enumerate().filter(|(_, module)| target.starts_with(module));
                let to = known.max_by_key(|(_, module)| module.len()).map(|(idx, _)| idx);
                arrows.extend(to.filter(|to| *to != from).map(|to| (from, to)));
            }
        }
        Self { files, arrows }
    }

    fn name(&self, idx: usize) -> String {
        self.files[idx].path.display().to_string()
    }

    /// Circles, each as the files that are in it.
    fn circles(&self) -> Vec<Vec<String>> {
        let graph: DiGraphMap<usize, ()> = DiGraphMap::from_edges(&self.arrows);
        let circles = tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1);
        circles.map(|circle| circle.into_iter().map(|idx| self.name(idx)).collect()).collect()
    }

    /// Circles of rooms, each as the names of files that close it. A room is a folder with the file of its name, or a
    /// file alone; what puts them together (`lib.rs`, `main.rs`) is above all of them.
    fn circles_of_rooms(&self) -> Vec<Vec<String>> {
        let room = |idx: usize| module_of(&self.files[idx].path).first().cloned();
        let mut named: BTreeMap<(String, String), String> = BTreeMap::new();
        for (from, to) in &self.arrows {
            if let (Some(above), Some(below)) = (room(*from), room(*to))
                && above != below
            {
                named.insert((above, below), format!("{} -> {}", self.name(*from), self.name(*to)));
            }
        }
        let rooms = named.keys().map(|(above, below)| (above.as_str(), below.as_str()));
        let graph: DiGraphMap<&str, ()> = DiGraphMap::from_edges(rooms);
        let circles = tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1);
        let is_in = |circle: &[&str], room: &String| circle.contains(&room.as_str());
        let closing = |circle: Vec<&str>| {
            let inside =
                named.iter().filter(|((above, below), _)| is_in(&circle, above) && is_in(&circle, below));
            inside.map(|(_, shown)| shown.clone()).collect()
        };
        circles.map(closing).collect()
    }
}

/// Every crate's product files: what is compiled for tests and fuzzing alone is left out.
fn crates() -> BTreeMap<PathBuf, Crate> {
    let mut by_crate: BTreeMap<PathBuf, Vec<Source>> = BTreeMap::new();
    for path in rust_files() {
        let shown = shown(&path);
        let is_test = ["/tests/", "/tests.rs", "/fuzz/", "/fuzz.rs", "tests/", "xtask/"];
        let is_product = shown.contains("/src/") && !is_test.iter().any(|part| shown.contains(part));
        if is_product {
            let source = Source::parse(Path::new(&shown), &read(&path));
            by_crate.entry(crate_of(&source.path)).or_default().push(source);
        }
    }
    by_crate.into_iter().map(|(name, files)| (name, Crate::of(files))).collect()
}

#[test]
fn no_circle_of_files_is_large() {
    let circles = crates().into_values().flat_map(|member| member.circles());
    let large: Vec<Vec<String>> = circles.filter(|circle| circle.len() > MAX_CIRCLE).collect();
    assert!(large.is_empty(), "circles of more than {MAX_CIRCLE} files: {large:#?}");
}

#[test]
fn a_planted_circle_is_found() {
    let file = |path: &str, text: &str| Source::parse(Path::new(path), text);
    let planted = |last: &str| {
        Crate::of(vec![
            file("x/src/lib.rs", "pub mod a; pub mod b; pub mod c;"),
            file("x/src/a.rs", "use crate::b::B; pub struct A;"),
            file("x/src/b.rs", "pub struct B(crate::c::inner::C);"),
            file("x/src/c.rs", "pub(crate) mod inner;"),
            file("x/src/c/inner.rs", last),
        ])
    };
    let circle = planted("pub struct C; fn f() { println!(\"{:?}\", super::super::a::A) }").circles();
    assert_eq!(circle.iter().map(Vec::len).collect::<Vec<_>>(), [3]);
    let of_tests = planted("pub struct C; #[cfg(test)] mod tests { use crate::a::A; }").circles();
    assert_eq!(of_tests, [[""; 0]; 0]);
}

#[test]
fn no_room_stands_on_one_that_stands_on_it() {
    let circles: Vec<Vec<String>> = crates().values().flat_map(Crate::circles_of_rooms).collect();
    assert!(circles.is_empty(), "rooms that name each other in a circle: {circles:#?}");
}

#[test]
fn a_planted_circle_of_rooms_is_found() {
    let file = |path: &str, text: &str| Source::parse(Path::new(path), text);
    let planted = |inner: &str| {
        let of = Crate::of(vec![
            file("x/src/lib.rs", "mod a; mod b; use a::A;"),
            file("x/src/a.rs", "mod inner; use crate::b::B;"),
            file("x/src/a/inner.rs", "use super::A; use crate::b::B;"),
            file("x/src/b.rs", "mod inner;"),
            file("x/src/b/inner.rs", inner),
        ]);
        of.circles_of_rooms()
    };
    assert_eq!(planted("use crate::a::inner::C;").len(), 1);
    assert!(planted("use super::B;").is_empty(), "a room may be as it likes inside");
}
