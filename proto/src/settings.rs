//! The settings: each stands once, with what it is and its default, and all that is done with settings follows from that.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether an AI client may move the live place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AiHandover {
    /// The user is asked in the target window.
    #[default]
    Ask,
    /// Yes.
    Always,
    /// No.
    Never,
}

/// Which windows a call on `/mcp` may name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Routing {
    /// The live one only; others answer `not_live`.
    #[default]
    Live,
    /// Any.
    Any,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object of JSON, for programs.
    Json,
}

/// Makes [`Settings`], [`SettingsChange`], and what leads from one to the other.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ty = $default:expr;)+) => {
        /// Settings of the coordinator: what `config.toml` says. `state.json` keeps the last ones that were good.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $name: $kind,)+
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        /// A change of [`Settings`]; absent fields stay.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct SettingsChange {
            $($(#[doc = $doc])+ pub $name: Option<$kind>,)+
        }

        impl Settings {
            /// These, with a change.
            #[must_use]
            pub fn changed(self, change: SettingsChange) -> Self {
                Self { $($name: change.$name.unwrap_or(self.$name),)+ }
            }
        }

        impl SettingsChange {
            /// This change, and then a later one.
            #[must_use]
            pub fn and(self, later: Self) -> Self {
                Self { $($name: later.$name.or(self.$name),)+ }
            }
        }

        impl From<Settings> for SettingsChange {
            /// To exactly these.
            fn from(settings: Settings) -> Self {
                Self { $($name: Some(settings.$name),)+ }
            }
        }
    };
}

settings! {
    /// R12.
    follow_focus: bool = false;
    /// See [`AiHandover`].
    ai_handover: AiHandover = AiHandover::default();
    /// See [`Routing`].
    routing: Routing = Routing::default();
    /// How long a call waits for a live window, in milliseconds.
    hold_calls_ms: u64 = 10_000;
    /// Toolsets offered to a client that does not ask for others.
    toolsets: Vec<String> = ["debug", "code", "windows"].map(str::to_owned).to_vec();
    /// Offer tools that debug. Off, they are in no list, and a call of one is refused unless it ends a session.
    debug_enabled: bool = true;
    /// Hide the values of variables whose names look like those of secrets.
    redact: bool = false;
    /// Let tools change what git, editors and package managers keep for themselves: `.git`, launch.json, `node_modules`.
    allow_protected: bool = false;
    /// How long a debug session may be used by no call until it is ended, in seconds; 0 for what its toolset says. Not
    /// in VS Code windows, whose users see it.
    session_idle_s: u64 = 0;
    /// Memory that the processes of a debug session may take, in megabytes; 0 for three quarters of the machine's. A
    /// session that takes more is ended.
    session_memory_mb: u64 = 0;
    /// How many processes a debug session may have; 0 for any number.
    session_processes: u64 = 512;
    /// Memory that a language server may take, in megabytes, unless its entry in servers.json says otherwise. One that
    /// takes more is ended, and started again by the next call.
    server_memory_mb: u64 = 4096;
    /// How long a debug adapter may take to answer about a stopped program, in seconds.
    adapter_timeout_s: u64 = 10;
    /// How long an expression may run, in seconds, where a call does not say.
    expression_timeout_s: u64 = 30;
    /// How long a language server may take to start, in seconds.
    server_timeout_s: u64 = 60;
    /// How long a language server is kept that no call uses, in seconds: what it has read of a project is ready for the
    /// next one.
    server_idle_s: u64 = 600;
    /// Where debug adapters and language servers are, by name: absolute paths of their programs, in the place of what
    /// Baton installed or finds. They count for what is started from then on.
    programs: BTreeMap<String, String> = BTreeMap::new();
    /// The page shows the arguments of calls, but for what looks like a secret. They hold source text and expressions.
    show_arguments: bool = false;
    /// What coordinator and windows log, in words of `BATON_LOG`; empty for what each was started with.
    log: String = String::new();
    /// See [`LogFormat`].
    log_format: LogFormat = LogFormat::default();
    /// What the log files of coordinator and windows may take each, in megabytes; the oldest go first.
    log_mb: u64 = 128;
    /// The DSN of a service that speaks Sentry's protocol, which is told of errors and panics of coordinator and windows;
    /// empty for none.
    error_dsn: String = String::new();
    /// The URL of a collector that speaks OTLP over HTTP, which is sent what the coordinator counts, once a minute; empty
    /// for none.
    otlp_endpoint: String = String::new();
}
