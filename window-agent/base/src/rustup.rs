//! What stands behind rustup's names. It puts one on the search path for every component that it knows of, installed or
//! not; each asks at every start what the toolchain of the project is. The program itself starts sooner.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::process::text_of;

/// Files that name the toolchain of the folder that they are in.
const TOOLCHAIN_FILES: [&str; 2] = ["rust-toolchain", "rust-toolchain.toml"];

/// The program that a name on the search path stands for in the project at `root`: itself when it is not rustup's.
/// `None` when neither the project's toolchain nor the default one has it.
pub fn behind(path: PathBuf, root: &Path) -> Option<PathBuf> {
    static FOUND: Mutex<BTreeMap<(PathBuf, PathBuf), PathBuf>> = Mutex::new(BTreeMap::new());
    let rustup = path.with_file_name(format!("rustup{}", std::env::consts::EXE_SUFFIX));
    if file_id(&path).is_none_or(|id| file_id(&rustup) != Some(id)) {
        return Some(path);
    }
    let found = || FOUND.lock();
    let asked = (path, root.to_owned());
    if let Some(known) = found().get(&asked).filter(|known| known.is_file()) {
        return Some(known.clone());
    }
    let program = without_a_choice(&asked.0, root).or_else(|| told_by(&rustup, &asked.0, root))?;
    found().insert(asked, program.clone());
    Some(program)
}

/// A name is a link to rustup itself.
fn file_id(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// What rustup says, which takes it 10 ms. A project may ask for an old toolchain without the component, where the one
/// of the machine serves as well.
fn told_by(rustup: &Path, name: &Path, root: &Path) -> Option<PathBuf> {
    let (name, outside) = (name.file_stem()?, root.ancestors().last()?);
    [root, outside].into_iter().find_map(|folder| {
        let said = text_of(rustup, &["which".as_ref(), name], Some(folder))?;
        said.lines().map(|line| PathBuf::from(line.trim())).find(|line| line.is_absolute() && line.is_file())
    })
}

/// The program of the toolchain that everything is set to, or of the default one where nothing asks for another: no
/// file, no folder of the user's choice.
fn without_a_choice(name: &Path, root: &Path) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let user = std::env::home_dir().map(|home| home.join(".rustup"));
    let home = set("RUSTUP_HOME").map(PathBuf::from).or(user)?;
    let toolchain = match set("RUSTUP_TOOLCHAIN") {
        Some(toolchain) => toolchain,
        None => {
            let has_file = |folder: &Path| TOOLCHAIN_FILES.iter().any(|file| folder.join(file).exists());
            let settings = std::fs::read_to_string(home.join("settings.toml")).ok()?;
            default_toolchain(&settings).filter(|_| !root.ancestors().any(has_file))?.into()
        }
    };
    let program = home.join("toolchains").join(toolchain).join("bin").join(name.file_name()?);
    program.is_file().then_some(program)
}

/// The one of rustup's settings; `None` when they choose others for some folders, or are not as we know them.
fn default_toolchain(settings: &str) -> Option<String> {
    let settings: toml_edit::DocumentMut = settings.parse().ok()?;
    let chosen =
        settings.get("overrides").is_some_and(|chosen| chosen.as_table().is_none_or(|all| !all.is_empty()));
    let is_known = settings.get("version").and_then(toml_edit::Item::as_str) == Some("12") && !chosen;
    let name = settings.get("default_toolchain")?.as_str()?;
    is_known.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_toolchain_counts_where_nothing_else_is_chosen() {
        let settings = |more: &str| {
            format!("version = \"12\"\ndefault_toolchain = \"stable-x\"\nprofile = \"minimal\"\n{more}")
        };
        let of = |more: &str| default_toolchain(&settings(more));
        assert_eq!(of("").as_deref(), Some("stable-x"));
        assert_eq!(of("\n[overrides]\n").as_deref(), Some("stable-x"));
        assert_eq!(of("\n[overrides]\n\"/work/shop\" = \"nightly-x\"\n"), None);
        assert_eq!(of("overrides = {}\n"), None);
        assert_eq!(default_toolchain("version = \"13\"\ndefault_toolchain = \"stable-x\"\n"), None);
        assert_eq!(default_toolchain("version = \"12\"\n"), None);
        assert_eq!(default_toolchain("version ="), None);
    }
}
