//! CORE: what servers say of themselves, tell without being asked, and ask.

use serde_json::Value;

use super::answers::TextDocument;
use super::lenient::{Each, Or};
use baton_agent_base::wire::bodies;

bodies! {
    pub(crate),

    /// The answer to `initialize`.
    Initialized { capabilities: Capabilities, }

    /// What a server can.
    Capabilities {
        position_encoding: String,
        text_document_sync: Option<Or<u64, SyncOptions>>,
        diagnostic_provider: Option<Options>,
        completion_provider: Options,
        code_action_provider: Options,
    }

    /// How it wants to hear of changed texts.
    SyncOptions { change: u64, }

    /// How it does something, as far as the engine minds.
    Options { resolve_provider: bool, workspace_diagnostics: bool, watchers: Each<Watcher>, }

    /// Changed files that it wants to hear of.
    Watcher { glob_pattern: Option<Or<String, RelativePattern>>, kind: Option<u64>, }

    /// A pattern inside a folder: one of the workspace's, or by its address.
    RelativePattern { base_uri: Option<Or<String, TextDocument>>, pattern: String, }

    /// What a server asks. One of the names is the protocol's own slip of the pen.
    Asked {
        registrations: Each<Registration>,
        #[serde(rename = "unregisterations")]
        unregistrations: Each<Registration>,
        edit: Value,
        items: Each<Setting>,
    }

    /// Something that it can, or no longer can, since it came up.
    Registration { id: String, method: String, register_options: Options, }

    /// A part of its settings.
    Setting { section: String, }

    /// Of some work.
    Progress { token: Value, value: Step, }

    /// How far it is.
    Step { kind: String, title: Option<String>, message: String, percentage: Option<u64>, }

    /// A line of its log.
    Logged { message: String, }

    /// rust-analyzer's word on itself.
    ServerStatus { quiescent: Option<bool>, health: String, message: Option<String>, }

    /// clangd's word on an open file.
    FileStatus { uri: Value, state: Option<String>, }
}
