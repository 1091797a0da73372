//! Real VS Code windows, and the package for them: code-server in `.cache/vscode`, the extension, `dist/*.vsix`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::install::{self, DEBUGPY, MCP_1, NODE_CLIENTS, clear, is_current, node, node_home, write_stamp};
use crate::junit::{self, Told};
use crate::report::{Case, Failure, Outcome};
use crate::run::{apt, cache, command, download, logged, output_of, root, say, shown};
use crate::suites::Suite;
use crate::task::check_case;

/// VS Code 1.139.1 with its workbench, from npm.
const CODE_SERVER: &str = "code-server@4.139.1";
/// Drives the browser; brings none.
const PLAYWRIGHT: &str = "playwright-core@1.65.1";
/// Says whether people who cannot see a page can use it.
const AXE: &str = "axe-core@4.14.1";
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

/// Files of window tests that run at a time: each has a browser and several extension hosts of its own.
const AT_ONCE: usize = 2;
/// No test of a window takes longer, in milliseconds.
const TEST_LIMIT_MS: u64 = 300_000;

/// The window tests that fit one of `words`, all when there is none, with the debug programs, which are built already.
pub(crate) fn test(words: &[String]) -> Result<Vec<Case>> {
    package_for_tests()?;
    let mut files: Vec<File> = files()?.into_iter().filter(|file| file.fits(words)).collect();
    files.reverse();
    say("running the tests in real windows");
    let left = Mutex::new(files);
    let done = Mutex::new(Vec::new());
    let work = || {
        // A lock is let go before a file runs.
        while let Some(file) = next(&left) {
            let cases = file.run(None);
            done.lock().unwrap_or_else(PoisonError::into_inner).push(cases);
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_iter().collect::<Result<Vec<_>>>().map(|cases| cases.concat())
}

fn next(left: &Mutex<Vec<File>>) -> Option<File> {
    left.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// Runs a test alone; `with_story`: with the whole of its file, for a file tells a story.
pub(crate) fn run_alone(case: &Case, with_story: bool) -> Result<Outcome> {
    let file = files()?.into_iter().find(|file| file.name == case.home).context("its file is gone")?;
    let cases = file.run((!with_story).then_some(case.name.as_str()))?;
    Ok(outcome_of(&case.name, &cases, with_story))
}

/// What became of a test in another run. `with_story`: all of its file ran, where what surrounds the tests is told only
/// when it failed.
fn outcome_of(name: &str, cases: &[Case], with_story: bool) -> Outcome {
    let same = cases.iter().find(|again| again.name == name);
    match same {
        Some(again) => again.outcome.clone(),
        None if with_story && !cases.is_empty() && !cases.iter().any(Case::has_failed) => Outcome::Passed,
        None => Outcome::Failed(Failure::new("it was not found again")),
    }
}

/// Files and names of the window tests, of those with a plain name, whose title holds `word`.
pub(crate) fn matching(word: &str) -> Result<Vec<(String, String)>> {
    let all = files()?
        .into_iter()
        .flat_map(|file| file.tests().into_iter().map(move |name| (file.name.clone(), name)));
    Ok(all.filter(|(file, name)| file == word || title(file, name).contains(word)).collect())
}

/// What all of them are called, and their files, of which some have no test with a plain name.
pub(crate) fn titles() -> Result<Vec<String>> {
    let titles = matching("")?.into_iter().map(|(file, name)| title(&file, &name));
    Ok(titles.chain(files()?.into_iter().map(|file| file.name)).collect())
}

fn title(file: &str, name: &str) -> String {
    format!("{file}: {name}")
}

/// A file of window tests.
struct File {
    path: PathBuf,
    /// `rules` of `rules.test.mjs`.
    name: String,
}

fn files() -> Result<Vec<File>> {
    let entries = std::fs::read_dir(root().join("tests/vscode"))?;
    let mut files: Vec<File> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.strip_suffix(".test.mjs")?.to_owned();
            Some(File { path, name })
        })
        .collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

impl File {
    fn fits(&self, words: &[String]) -> bool {
        let tests = self.tests();
        let fits = |word: &String| {
            self.name == *word || tests.iter().any(|name| title(&self.name, name).contains(word.as_str()))
        };
        words.is_empty() || words.iter().any(fits)
    }

    /// Names of its tests, of those with a plain one.
    fn tests(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let names =
            text.lines().filter_map(|line| line.trim_start().strip_prefix("test('")?.split_once("',"));
        names.map(|(name, _)| name.replace("\\'", "'")).collect()
    }

    /// Runs it, or the one test of that name in it; prints what it printed, once it has ended.
    fn run(&self, only: Option<&str>) -> Result<Vec<Case>> {
        let folder = target_folder()?.join("test-logs/windows");
        std::fs::create_dir_all(&folder)?;
        let [log, report] = ["txt", "xml"].map(|kind| folder.join(&self.name).with_extension(kind));
        let _ = std::fs::remove_file(&report);
        let mut tests = command(node());
        tests.env("BATON_TEST_BIN", target_folder()?.join("debug")).env("BATON_TEST_VSIX", vsix_for_tests()?);
        // Whatever a test that failed left open, a file ends with its last test.
        tests.args(["--test", "--test-force-exit"]).arg(format!("--test-timeout={TEST_LIMIT_MS}"));
        for (reporter, to) in [("spec", &log), ("junit", &report)] {
            tests.arg(format!("--test-reporter={reporter}"));
            tests.arg(format!("--test-reporter-destination={}", to.display()));
        }
        if let Some(name) = only {
            tests.arg(format!("--test-name-pattern=^{}$", escaped(name)));
        }
        let began = Instant::now();
        let status = shown(&format!("window tests {}", self.name), tests.arg(&self.path));
        let told = junit::read(&report).unwrap_or_default();
        let mut cases: Vec<Case> = told.into_iter().map(|told| self.case(told, &log)).collect();
        if let Err(error) = status
            && !cases.iter().any(Case::has_failed)
        {
            let words = format!("{error:#}; what it printed: {}", log.display());
            let outcome = Outcome::Failed(Failure::new(words));
            let told = Told { home: String::new(), name: "the whole file".to_owned(), seconds: 0.0, outcome };
            cases.push(self.case(told, &log));
        }
        let n_failed = cases.iter().filter(|case| case.has_failed()).count();
        if n_failed > 0 {
            say(&std::fs::read_to_string(&log).unwrap_or_default());
        }
        let took = began.elapsed().as_secs();
        say(&format!("  {}: {} tests, {n_failed} failed ({took} s)", self.name, cases.len()));
        Ok(cases)
    }

    fn case(&self, told: Told, log: &Path) -> Case {
        let outcome = match told.outcome {
            Outcome::Failed(failure) => {
                let text = format!("{}\n\nwhat its file printed: {}", failure.text, log.display());
                Outcome::Failed(Failure::new(text))
            }
            other => other,
        };
        Case {
            suite: Suite::Windows,
            home: self.name.clone(),
            name: told.name,
            seconds: told.seconds,
            outcome,
        }
    }
}

/// A name as a regular expression.
fn escaped(name: &str) -> String {
    let special = |c| "\\^$.|?*+()[]{}/".contains(c);
    name.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

fn vsix_for_tests() -> Result<PathBuf> {
    Ok(target_folder()?.join("windows").join(format!("baton-{}.vsix", host_target()?)))
}

/// The extension as its tests install it, with the debug programs.
pub(crate) fn package_for_tests() -> Result<()> {
    package(&target_folder()?.join("debug"), host_target()?, &vsix_for_tests()?)
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
    install_extension()?;
    logged("tsc", npm_program("node_modules/typescript/lib/tsc.js").arg("--noEmit"))?;
    logged("texts of the extension", npm_program("scripts/check-strings.mjs").arg("--"))?;
    logged("esbuild", npm_program("esbuild.mjs").arg("--"))
}

/// What the extension's sources break of the rules in `vscode-shim/eslint.config.mjs`.
pub(crate) fn lint() -> Result<Case> {
    install::install_node()?;
    install_extension()?;
    let mut eslint = npm_program("node_modules/eslint/bin/eslint.js");
    eslint.arg("src");
    Ok(check_case("eslint", eslint))
}

/// The tests of the extension's parts by themselves: they need no window.
pub(crate) fn test_parts() -> Result<Vec<Case>> {
    let file = files()?.into_iter().find(|file| file.name == "parts").context("parts.test.mjs is gone")?;
    file.run(None)
}

/// The npm packages of the extension.
fn install_extension() -> Result<()> {
    let folder = root().join("vscode-shim");
    let stamp = std::fs::read_to_string(folder.join("package-lock.json"))?;
    let modules = folder.join("node_modules");
    if !is_current(&modules, &stamp) {
        say("installing the extension's npm packages into vscode-shim/node_modules");
        download("npm ci", npm(&folder).args(["ci", "--ignore-scripts"]))?;
        // esbuild checks its own binary when it is first run; nothing needs to be compiled.
        write_stamp(&modules, &stamp)?;
    }
    Ok(())
}

fn install_chromium() -> Result<()> {
    if output_of(command("chromium").arg("--version")).is_some() {
        return Ok(());
    }
    say("installing Debian's Chromium");
    let arguments = [&["install", "-y", "-qq"][..], &CHROMIUM_PACKAGES].concat();
    apt("apt-get install chromium", &arguments, &root())
        .context("`sudo apt install chromium fonts-dejavu-core` does the same by hand")
}

fn install_code_server() -> Result<()> {
    let folder = cache().join("vscode");
    let stamp = format!("{CODE_SERVER} {PLAYWRIGHT} {AXE}");
    if is_current(&folder, &stamp) {
        return Ok(());
    }
    say(&format!("installing {stamp} into .cache/vscode"));
    clear(&folder)?;
    install_packages(&folder.join("cs"), &[CODE_SERVER])?;
    install_packages(&folder.join("pw"), &[PLAYWRIGHT, AXE])?;
    // What code-server's own install script does; it insists on another Node and downloads what is not needed.
    let server = folder.join("cs/node_modules/code-server");
    let vscode = server.join("lib/vscode");
    for part in [vscode.clone(), vscode.join("extensions")] {
        let label = format!("npm install {}", part.file_name().unwrap_or_default().to_string_lossy());
        download(&label, npm(&part).args(["install", "--ignore-scripts", "--omit=dev"]))?;
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
    download(&label, npm(folder).args(["install", "--ignore-scripts"]).args(packages))
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
    let mut program = command(node());
    if let Ok(path) = install::path_with_node() {
        program.env("PATH", path);
    }
    program.arg(script);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_surrounds_the_tests_of_a_file_passes_with_all_of_them() {
        let case = |name: &str, outcome| Case {
            suite: Suite::Windows,
            home: "rules".to_owned(),
            name: name.to_owned(),
            seconds: 0.0,
            outcome,
        };
        let failed = || Outcome::Failed(Failure::new("left behind"));
        let (whole, one) = (case("R1", Outcome::Passed), case("R2", failed()));
        assert_eq!(outcome_of("R1", std::slice::from_ref(&whole), false), Outcome::Passed);
        assert_eq!(outcome_of("stage.mjs", std::slice::from_ref(&whole), true), Outcome::Passed);
        for (cases, with_story) in
            [(vec![whole.clone()], false), (vec![whole.clone(), one], true), (vec![], true)]
        {
            assert!(matches!(outcome_of("stage.mjs", &cases, with_story), Outcome::Failed(_)));
        }
        assert_eq!(outcome_of("stage.mjs", &[case("stage.mjs", failed()), whole], true), failed());
    }
}
