//! Real VS Code windows, and the package for them: code-server in `.cache/vscode`, the extension, `dist/*.vsix`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::install::{DEBUGPY, MCP_1, NODE_CLIENTS, clear, is_current, node, node_home, write_stamp};
use crate::run::{cache, command, logged, output_of, root, say, shown, shown_again};

/// VS Code 1.139.1 with its workbench, from npm.
const CODE_SERVER: &str = "code-server@4.139.1";
/// Drives the browser; brings none.
const PLAYWRIGHT: &str = "playwright-core@1.65.1";
/// Debian's browser, and a font that keeps the workbench readable.
const CHROMIUM_PACKAGES: [&str; 2] = ["chromium", "fonts-dejavu-core"];
/// Native modules without a prebuilt: without the first, every output channel stays empty.
const NATIVE_MODULES: [&str; 2] = ["spdlog", "native-watchdog"];
/// Largest package.
const MAX_VSIX_LEN: u64 = 15 * 1024 * 1024;

/// A platform a package is made for: VS Code's name, Rust's name.
const TARGETS: [(&str, &str); 4] = [
    ("linux-x64", "x86_64-unknown-linux-gnu"),
    ("linux-arm64", "aarch64-unknown-linux-gnu"),
    ("darwin-x64", "x86_64-apple-darwin"),
    ("darwin-arm64", "aarch64-apple-darwin"),
];

/// Everything the window tests need, the extension's bundle included.
pub(crate) fn install() -> Result<()> {
    DEBUGPY.install()?;
    NODE_CLIENTS.install()?;
    MCP_1.install()?;
    install_chromium()?;
    install_code_server()?;
    build_extension()
}

/// The window tests, all or `only` these files, with the debug programs, which are built already.
pub(crate) fn test(only: &[String]) -> Result<()> {
    let target = target_folder()?;
    let vsix = target.join("windows").join(format!("baton-{}.vsix", host_target()?));
    package(&target.join("debug"), host_target()?, &vsix)?;
    let folder = root().join("tests/vscode");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".test.mjs"))
        .collect();
    if let Some(unknown) = only.iter().find(|name| !files.contains(&folder.join(format!("{name}.test.mjs"))))
    {
        bail!("there is no tests/vscode/{unknown}.test.mjs");
    }
    files
        .retain(|file| only.is_empty() || only.iter().any(|name| file.ends_with(format!("{name}.test.mjs"))));
    files.sort();
    say("running the tests in real windows");
    // One after the other: each has a browser and several extension hosts of its own.
    // Whatever a test that failed left open, a file ends with its last test.
    let arguments = ["--test", "--test-force-exit", "--test-reporter=spec"];
    let mut failed = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut tests = command(node());
        tests.env("BATON_TEST_BIN", target.join("debug")).env("BATON_TEST_VSIX", &vsix);
        if shown_again(&format!("window tests {name}"), tests.args(arguments).arg(file)).is_err() {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("window tests failed in {}; what they printed is above", failed.join(", "));
    }
    Ok(())
}

/// `cargo xtask dist`: `dist/baton-<target>.vsix`, with both programs inside.
pub(crate) fn dist(target: Option<&str>) -> Result<()> {
    let host = host_target()?;
    let target = target.unwrap_or(host);
    let Some((_, triple)) = TARGETS.iter().find(|(name, _)| *name == target) else {
        let known: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        bail!("there is no target {target}; there are {}", known.join(", "));
    };
    let programs = build_programs(triple, target == host)?;
    DEBUGPY.install()?;
    crate::install::install_node()?;
    build_extension()?;
    let vsix = root().join("dist").join(format!("baton-{target}.vsix"));
    package(&programs, target, &vsix)?;
    let len = std::fs::metadata(&vsix)?.len();
    say(&format!("{} ({:.1} MB)", vsix.display(), len as f64 / 1e6));
    if len > MAX_VSIX_LEN {
        bail!("the package is larger than {} MB", MAX_VSIX_LEN / 1024 / 1024);
    }
    Ok(())
}

/// The built extension with the programs of that folder, as a package for `target`.
fn package(programs: &Path, target: &str, vsix: &Path) -> Result<()> {
    let bin = root().join("vscode-shim/bin");
    clear(&bin)?;
    std::fs::create_dir_all(&bin)?;
    for name in ["baton", "baton-agent"] {
        std::fs::copy(programs.join(name), bin.join(name))
            .with_context(|| format!("{name} was not built"))?;
        strip(&bin.join(name), target);
    }
    std::fs::create_dir_all(vsix.parent().context("a package lies in a folder")?)?;
    let mut vsce = npm_program("node_modules/@vscode/vsce/vsce");
    vsce.args(["package", "--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links"]);
    logged("vsce package", vsce.args(["--target", target, "--out"]).arg(vsix))
}

/// Takes the symbols out, with whatever the machine has that knows the target; without it the package is larger.
fn strip(program: &Path, target: &str) {
    let cross = match target {
        "linux-x64" => "x86_64-linux-gnu-strip",
        "linux-arm64" => "aarch64-linux-gnu-strip",
        _ => "llvm-strip",
    };
    let own = host_target().is_ok_and(|host| host == target).then_some("strip");
    let tools = own.into_iter().chain([cross, "llvm-strip"]);
    // On macOS the symbols that others call have to stay.
    let flag = if target.starts_with("darwin") { "-x" } else { "--strip-all" };
    let is_stripped = |tool| output_of(command(tool).arg(flag).arg(program)).is_some();
    if !tools.into_iter().any(is_stripped) {
        say(&format!("{} keeps its symbols: {cross} is not installed", program.display()));
    }
}

/// Gives the folder with the programs.
fn build_programs(triple: &str, is_host: bool) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = command(cargo);
    build.args(["build", "--release", "-p", "baton-coordinator", "-p", "baton-window-agent", "--bins"]);
    if is_host {
        shown("cargo build", &mut build)?;
        return Ok(target_folder()?.join("release"));
    }
    let installed = output_of(command("rustup").args(["target", "list", "--installed"])).unwrap_or_default();
    if !installed.lines().any(|line| line == triple) {
        bail!("the toolchain for {triple} is not here: `rustup target add {triple}`, and a linker for it");
    }
    shown("cargo build", build.args(["--target", triple]))?;
    Ok(target_folder()?.join(triple).join("release"))
}

fn target_folder() -> Result<PathBuf> {
    let xtask = std::env::current_exe()?;
    Ok(xtask.parent().and_then(Path::parent).context("xtask lies in the target folder")?.to_path_buf())
}

fn host_target() -> Result<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok("linux-x64"),
        ("linux", "aarch64") => Ok("linux-arm64"),
        ("macos", "x86_64") => Ok("darwin-x64"),
        ("macos", "aarch64") => Ok("darwin-arm64"),
        (os, arch) => bail!("Baton is not made for {os} on {arch} yet"),
    }
}

/// npm packages, types, texts, bundle.
pub(crate) fn build_extension() -> Result<()> {
    let folder = root().join("vscode-shim");
    let stamp = std::fs::read_to_string(folder.join("package-lock.json"))?;
    let modules = folder.join("node_modules");
    if !is_current(&modules, &stamp) {
        say("installing the extension's npm packages into vscode-shim/node_modules");
        logged("npm ci", npm(&folder).args(["ci", "--ignore-scripts"]))?;
        // esbuild checks its own binary when it is first run; nothing needs to be compiled.
        write_stamp(&modules, &stamp)?;
    }
    logged("tsc", npm_program("node_modules/typescript/lib/tsc.js").arg("--noEmit"))?;
    logged("texts of the extension", npm_program("scripts/check-strings.mjs").arg("--"))?;
    logged("esbuild", npm_program("esbuild.mjs").arg("--"))
}

fn install_chromium() -> Result<()> {
    if output_of(command("chromium").arg("--version")).is_some() {
        return Ok(());
    }
    say("installing Debian's Chromium");
    let install = || {
        let mut apt = command("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        logged("apt-get install chromium", apt.args(["install", "-y", "-qq"]).args(CHROMIUM_PACKAGES))
    };
    if install().is_err() {
        logged("apt-get update", command("apt-get").arg("update"))?;
        install().context("`sudo apt install chromium fonts-dejavu-core` does the same by hand")?;
    }
    Ok(())
}

fn install_code_server() -> Result<()> {
    let folder = cache().join("vscode");
    let stamp = format!("{CODE_SERVER} {PLAYWRIGHT}");
    if is_current(&folder, &stamp) {
        return Ok(());
    }
    say(&format!("installing {stamp} into .cache/vscode"));
    clear(&folder)?;
    install_packages(&folder.join("cs"), &[CODE_SERVER])?;
    install_packages(&folder.join("pw"), &[PLAYWRIGHT])?;
    // What code-server's own install script does; it insists on another Node and downloads what is not needed.
    let server = folder.join("cs/node_modules/code-server");
    let vscode = server.join("lib/vscode");
    for part in [vscode.clone(), vscode.join("extensions")] {
        let label = format!("npm install {}", part.file_name().unwrap_or_default().to_string_lossy());
        logged(&label, npm(&part).args(["install", "--ignore-scripts", "--omit=dev"]))?;
    }
    link("code-linux.sh", &vscode.join("bin/remote-cli/code-server"))?;
    link("browser-linux.sh", &vscode.join("bin/helpers/browser.sh"))?;
    for module in NATIVE_MODULES {
        compile(&vscode.join("node_modules/@vscode").join(module))?;
    }
    // 220 MB, and a slower start of every window.
    clear(&vscode.join("extensions/copilot"))?;
    write_stamp(&folder, &stamp)
}

fn install_packages(folder: &Path, packages: &[&str]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("package.json"), r#"{"private":true}"#)?;
    let label = format!("npm install {}", packages[0]);
    logged(&label, npm(folder).args(["install", "--ignore-scripts"]).args(packages))
        .context("is the npm registry reachable from here? then run the same command again")
}

/// Everything node-gyp needs is in the Node wheel; the headers of another Node would not fit.
fn compile(module: &Path) -> Result<()> {
    let gyp = node_home().join("lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js");
    let label = format!("compile {}", module.file_name().unwrap_or_default().to_string_lossy());
    let mut build = with_node(gyp);
    build.arg("rebuild").arg(format!("--nodedir={}", node_home().display())).current_dir(module);
    logged(&label, &mut build).context("a C++ compiler is needed (Debian: `apt install g++ make`)")
}

fn link(target: &str, at: &Path) -> Result<()> {
    let _ = std::fs::remove_file(at);
    std::os::unix::fs::symlink(target, at).with_context(|| format!("{} cannot be made", at.display()))
}

/// npm of the Node wheel, in that folder.
fn npm(folder: &Path) -> Command {
    let mut npm = with_node(node_home().join("lib/node_modules/npm/bin/npm-cli.js"));
    npm.args(["--no-audit", "--no-fund", "--no-update-notifier"]).current_dir(folder);
    npm
}

/// A script of the extension's folder.
fn npm_program(script: &str) -> Command {
    let folder = root().join("vscode-shim");
    let mut program = with_node(folder.join(script));
    program.current_dir(folder);
    program
}

fn with_node(script: PathBuf) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(node_home().join("bin")).chain(std::env::split_paths(&path));
    let mut program = command(node());
    if let Ok(path) = std::env::join_paths(folders) {
        program.env("PATH", path);
    }
    program.arg(script);
    program
}
