//! The trees that are read: what every machine has that builds Baton, and one npm package with its sources.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use baton_tests::place;
use baton_tests::process::command;
use baton_tests::world::World;
use serde_json::{Value, json};

use super::{Project, Used};

/// Folders of CPython's library that are no library.
const NOT_LIBRARY: [&str; 8] =
    ["test", "tests", "site-packages", "dist-packages", "__pycache__", "idlelib", "lib2to3", "turtledemo"];

/// Files of mimalloc that others include.
const INCLUDED: [&str; 4] = ["static.c", "alloc-override.c", "page-queue.c", "free.c"];

/// One for each server that is measured beside itself.
pub(super) fn all(world: &World) -> Result<Vec<Project>> {
    Ok(vec![library(world)?, rxjs(world)?, mimalloc(world)?, proto(world)?, json_of_go(world)?])
}

/// CPython's own library.
pub(super) fn library(world: &World) -> Result<Project> {
    let folder = world.folder("library");
    let script = "import os; print(os.path.dirname(os.__file__))";
    let from = printed(command(place::python()).args(["-c", script]))?;
    copy(Path::new(&from), &folder, "py", &NOT_LIBRARY)?;
    Ok(Project {
        server: "ty",
        what: "CPython's library",
        folder,
        file: "argparse.py",
        symbol: "ArgumentParser.parse_known_args",
        used: Used { file: "argparse.py", start: "class ArgumentParser(", name: "ArgumentParser" },
    })
}

/// The sources of rxjs.
pub(super) fn rxjs(world: &World) -> Result<Project> {
    let folder = world.folder("rxjs");
    copy(&place::tool("rxjs/node_modules/rxjs/src"), &folder.join("src"), "ts", &[])?;
    let options = json!({
        "strict": true, "noEmit": true, "target": "esnext", "module": "esnext", "moduleResolution": "bundler",
        "lib": ["esnext", "dom"],
    });
    let config = json!({ "compilerOptions": options, "include": ["src"] });
    std::fs::write(folder.join("tsconfig.json"), config.to_string())?;
    Ok(Project {
        server: "typescript",
        what: "rxjs",
        folder,
        file: "src/internal/Observable.ts",
        symbol: "Observable.subscribe",
        used: Used {
            file: "src/internal/Subscriber.ts",
            start: "export class Subscriber<",
            name: "Subscriber",
        },
    })
}

/// The C sources of mimalloc, which Baton is built with.
fn mimalloc(world: &World) -> Result<Project> {
    let folder = world.folder("mimalloc");
    let from = crate_folder("libmimalloc-sys")?.join("c_src/mimalloc/v3");
    for extension in ["c", "h"] {
        copy(&from, &folder, extension, &["windows", "osx", "wasi", "emscripten"])?;
    }
    let mut commands = Vec::new();
    for entry in std::fs::read_dir(folder.join("src"))? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".c") && !INCLUDED.contains(&name.as_str()) {
            let words = ["cc", "-I", "include", "-c", &format!("src/{name}")].map(str::to_owned);
            commands.push(json!({ "directory": folder, "file": file, "arguments": words }));
        }
    }
    ensure!(commands.len() > 10, "only {} C files in {}", commands.len(), from.display());
    std::fs::write(folder.join("compile_commands.json"), Value::from(commands).to_string())?;
    Ok(Project {
        server: "clangd",
        what: "mimalloc",
        folder,
        file: "src/options.c",
        symbol: "mi_options_print_out",
        used: Used {
            file: "src/options.c",
            start: "mi_decl_nodiscard bool mi_option_is_enabled(",
            name: "mi_option_is_enabled",
        },
    })
}

/// Baton's own crate of messages.
fn proto(world: &World) -> Result<Project> {
    let folder = world.folder("proto");
    let root = place::root();
    place::copy_folder(&root.join("proto"), &folder.join("proto"));
    std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    // From there on stand the packages, and what they have in common.
    let (_, common) =
        manifest.split_once("\n[workspace.package]").context("the workspace describes packages")?;
    let manifest =
        format!("[workspace]\nresolver = \"3\"\nmembers = [\"proto\"]\n\n[workspace.package]{common}");
    std::fs::write(folder.join("Cargo.toml"), manifest)?;
    Ok(Project {
        server: "rust-analyzer",
        what: "Baton's crate `proto`",
        folder,
        file: "proto/src/control.rs",
        symbol: "Register",
        // One whose references the server itself tells in full after every start; see docs/code.md.
        used: Used {
            file: "proto/src/discovery.rs",
            start: "    fn expected_proof(",
            name: "expected_proof",
        },
    })
}

/// A package of Go's library.
fn json_of_go(world: &World) -> Result<Project> {
    let folder = world.folder("json");
    let root = printed(command("go").args(["env", "GOROOT"]))?;
    copy(&Path::new(&root).join("src/encoding/json"), &folder, "go", &["testdata"])?;
    std::fs::write(folder.join("go.mod"), "module example.com/json\n\ngo 1.18\n")?;
    Ok(Project {
        server: "gopls",
        what: "Go's `encoding/json`",
        folder,
        file: "decode.go",
        symbol: "Unmarshal",
        used: Used { file: "stream.go", start: "type Decoder struct", name: "Decoder" },
    })
}

/// Where cargo keeps the sources of a crate that Baton is built from.
fn crate_folder(name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let rustc = printed(command("rustc").arg("-vV"))?;
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names its host")?;
    let mut metadata = command(cargo);
    // Without the platform it would want the crates of all others.
    metadata.args(["metadata", "--format-version", "1", "--offline", "--filter-platform", host]);
    metadata.current_dir(place::root());
    let told: Value = serde_json::from_str(&printed(&mut metadata)?)?;
    let package = told["packages"].as_array().into_iter().flatten().find(|package| package["name"] == name);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.with_context(|| format!("Baton is not built from {name}"))?;
    Ok(Path::new(manifest).parent().context("a manifest lies in a folder")?.to_owned())
}

pub(super) fn printed(command: &mut std::process::Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{program} is needed"))?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Copies the files of one kind.
pub(super) fn copy(from: &Path, to: &Path, extension: &str, without: &[&str]) -> Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let target = to.join(&name);
        if path.is_dir() {
            if !without.contains(&name.as_str()) {
                copy(&path, &target, extension, without)?;
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            std::fs::create_dir_all(to)?;
            std::fs::copy(&path, target)?;
        }
    }
    Ok(())
}

/// All files of one kind, by name.
pub(super) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                all.push(path);
            }
        }
    }
    all.sort();
    Ok(all)
}
