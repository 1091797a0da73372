//! Baton's entry in the configuration files of AI clients: printed, written, read, and taken out again.
//!
//! A file that is changed keeps everything that is not Baton's, to the last byte: comments, order, line ends and
//! indentation. What was written can be taken back as a whole, also after its client wrote to the file. A file that
//! cannot be understood is left alone, and so is one that changes meanwhile. Nothing but its owner can read a file
//! with the client token.
//!
//! Where each client keeps its file, and what it wants there, stands in its own documentation, named at [`Client`].
//! Claude Code, VS Code, Codex and Gemini CLI load theirs in the tests; for the others a test compares it with the
//! shape that the client's code takes.
//!
//! | module | what it does |
//! |---|---|
//! | [`file`](mod@file) | writes a file and takes Baton out again |
//! | `json`, `toml` | CORE: an entry in a text of that language |
//! | [`edit`] | CORE: how a text was changed, and undoing it |

pub mod edit;
pub mod file;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod json;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod tests;
mod toml;

use std::path::{Path, PathBuf};

use baton_link::home::HOME_VARIABLE;
use directories::BaseDirs;
use serde_json::{Value, json};

/// Name of the entry in every client's file.
pub const ENTRY: &str = "baton";

/// An AI client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// <https://code.claude.com/docs/en/mcp>
    ClaudeCode,
    /// <https://modelcontextprotocol.io/docs/develop/connect-local-servers>
    ClaudeDesktop,
    /// <https://cursor.com/docs/mcp>
    Cursor,
    /// <https://docs.cline.bot/mcp/configuring-mcp-servers>
    Cline,
    /// <https://docs.roocode.com/features/mcp/using-mcp-in-roo>
    Roo,
    /// <https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>
    Vscode,
    /// <https://docs.windsurf.com/windsurf/cascade/mcp>
    Windsurf,
    /// <https://developers.openai.com/codex/mcp>
    Codex,
    /// <https://geminicli.com/docs/tools/mcp-server>
    Gemini,
    /// <https://zed.dev/docs/ai/mcp>
    Zed,
}

/// How the client reaches Baton.
#[derive(Clone, Debug)]
pub enum Reach {
    /// By URL, with the client token.
    Http {
        /// The URL.
        url: String,
        /// The client token.
        token: String,
    },
    /// By a command, without any secret.
    Stdio {
        /// Absolute path of `baton`.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// The state folder, when it is not the user's usual one.
        home: Option<String>,
    },
}

/// The language of a client's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// JSON, with comments and trailing commas if there are any.
    Json,
    /// TOML.
    Toml,
}

impl Client {
    const ALL: [(Self, &'static str); 10] = [
        (Self::ClaudeCode, "claude-code"),
        (Self::ClaudeDesktop, "claude-desktop"),
        (Self::Cursor, "cursor"),
        (Self::Cline, "cline"),
        (Self::Roo, "roo"),
        (Self::Vscode, "vscode"),
        (Self::Windsurf, "windsurf"),
        (Self::Codex, "codex"),
        (Self::Gemini, "gemini"),
        (Self::Zed, "zed"),
    ];

    /// The client of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(client, _)| *client)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(client, _)| *client == self).map_or("", |(_, name)| name)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.iter().map(|(client, _)| *client)
    }

    /// False when its file takes nothing but commands.
    pub fn takes_http(self) -> bool {
        self != Self::ClaudeDesktop
    }

    /// The language of its file.
    pub fn language(self) -> Language {
        if self == Self::Codex { Language::Toml } else { Language::Json }
    }

    /// The object of its file that holds the servers.
    pub fn section(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    /// What it wants to know of Baton.
    pub fn entry(self, reach: &Reach) -> Value {
        match reach {
            Reach::Http { url, token } => self.http_entry(url, &format!("Bearer {token}")),
            Reach::Stdio { program, args, home } => {
                let mut entry = self.stdio_entry(program, args);
                if let Some(home) = home {
                    entry["env"] = json!({ HOME_VARIABLE: home });
                }
                entry
            }
        }
    }

    fn http_entry(self, url: &str, authorization: &str) -> Value {
        let headers = json!({ "Authorization": authorization });
        match self {
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Vscode => {
                json!({ "type": "http", "url": url, "headers": headers })
            }
            Self::Cline => json!({ "type": "streamableHttp", "url": url, "headers": headers }),
            Self::Roo => json!({ "type": "streamable-http", "url": url, "headers": headers }),
            Self::Cursor | Self::Zed => json!({ "url": url, "headers": headers }),
            Self::Windsurf => json!({ "serverUrl": url, "headers": headers }),
            Self::Gemini => json!({ "httpUrl": url, "headers": headers }),
            Self::Codex => json!({ "url": url, "http_headers": headers }),
        }
    }

    fn stdio_entry(self, program: &str, args: &[String]) -> Value {
        match self {
            Self::ClaudeCode | Self::Vscode => json!({ "type": "stdio", "command": program, "args": args }),
            _ => json!({ "command": program, "args": args }),
        }
    }

    /// Its file for all projects of the user; `None` when no home folder is known.
    pub fn default_file(self) -> Option<PathBuf> {
        let dirs = BaseDirs::new()?;
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = dirs.home_dir();
        let extension =
            |name: &str, file: &str| vscode_user(&dirs).join("globalStorage").join(name).join(file);
        Some(match self {
            Self::ClaudeCode => {
                variable("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.to_owned()).join(".claude.json")
            }
            Self::ClaudeDesktop => dirs.config_dir().join("Claude/claude_desktop_config.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Cline => extension("saoudrizwan.claude-dev", "settings/cline_mcp_settings.json"),
            Self::Roo => extension("rooveterinaryinc.roo-cline", "settings/mcp_settings.json"),
            Self::Vscode => vscode_user(&dirs).join("mcp.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Codex => variable("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml"),
            Self::Gemini => home.join(".gemini/settings.json"),
            Self::Zed if cfg!(target_os = "macos") => home.join(".config/zed/settings.json"),
            Self::Zed => dirs.config_dir().join("zed/settings.json"),
        })
    }

    /// A file that holds nothing but Baton, in the client's language.
    pub fn render(self, entry: &Value) -> String {
        match self.language() {
            Language::Json => json::render(&json!({ self.section(): { ENTRY: entry } })),
            Language::Toml => toml::render(self.section(), ENTRY, entry, "\n"),
        }
    }
}

/// Where VS Code keeps what belongs to the user.
fn vscode_user(dirs: &BaseDirs) -> PathBuf {
    dirs.config_dir().join("Code/User")
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
