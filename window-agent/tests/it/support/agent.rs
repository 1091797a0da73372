//! An agent in process: its MCP server on a real port, its real debugger, its folder with files.

#![expect(unreachable_pub, clippy::unwrap_used, reason = "a module of test binaries")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_agent_base::workspace::Workspace;
use baton_agent_debug::{Debugger, DebuggerOptions};
use baton_agent_mcp::listening::Listening;
use baton_agent_mcp::{Access, Server};
use baton_agent_tools::window::Window;
use baton_proto::control::WindowKind;
use baton_proto::discovery::Secret;
use baton_proto::ids::WindowId;
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, DropGuard};

pub type Client = RunningService<RoleClient, ClientConfig>;

/// See the module. Ends when it is dropped.
pub struct Agent {
    pub window: Arc<Window>,
    pub port: u16,
    pub token: String,
    pub root: PathBuf,
    _folder: tempfile::TempDir,
    _shutdown: DropGuard,
}

/// A raw answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Agent {
    /// An agent whose folder holds these files.
    pub async fn start(files: &[(&str, &str)]) -> Self {
        Self::start_with(files, |_| ()).await
    }

    /// The same with changed options of its debugger.
    pub async fn start_with(files: &[(&str, &str)], change: impl FnOnce(&mut DebuggerOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let id: WindowId = "w-test".parse().unwrap();
        let workspace = Workspace::open(std::slice::from_ref(&root)).unwrap();
        let mut options =
            DebuggerOptions { python: Some(python()), ..DebuggerOptions::from_env(vec![root.clone()]) };
        options.shelf.folder = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/adapters"));
        change(&mut options);
        let debugger = Debugger::spawn(options);
        let window =
            Arc::new(Window::new(id.clone(), "test".to_owned(), WindowKind::Headless, workspace, debugger));
        let token = Secret::new([7; 32]).window_token(&id, Some(1));
        let shutdown = CancellationToken::new();
        let exposed = token.expose().to_owned();
        let token = tokio::sync::watch::channel(token).1;
        let server = Server::new(window.clone(), token, Access::Coordinator, shutdown.clone());
        let (_, port) = Listening::on_port(0, server).unwrap();
        Self { window, port, token: exposed, root, _folder: folder, _shutdown: shutdown.drop_guard() }
    }

    /// The official client, pinned to this window.
    pub async fn client(&self, lifecycle: ClientLifecycleMode) -> Client {
        let headers = HashMap::from([("baton-pin".parse().unwrap(), "1".parse().unwrap())]);
        let config =
            StreamableHttpClientTransportConfig::with_uri(format!("http://127.0.0.1:{}/mcp", self.port))
                .auth_header(&self.token)
                .custom_headers(headers);
        let transport = StreamableHttpClientTransport::from_config(config);
        ClientConfig::default().serve_with_lifecycle(transport, lifecycle).await.unwrap()
    }

    /// Everything a call needs, and `more`.
    pub fn headers(&self, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut headers = vec![
            ("host".to_owned(), format!("127.0.0.1:{}", self.port)),
            ("authorization".to_owned(), format!("Bearer {}", self.token)),
        ];
        headers.extend(more.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        headers
    }

    /// A request as bytes. Content type and Accept are added unless they are given.
    pub fn request(&self, method: &str, path: &str, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !headers.iter().any(|(name, _)| name == "content-type") {
            head.push_str("content-type: application/json\r\n");
        }
        head.push_str("accept: application/json, text/event-stream\r\n");
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        [head.as_bytes(), body].concat()
    }

    /// Sends exactly these headers on a connection of its own.
    pub async fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        headers.push(("connection".to_owned(), "close".to_owned()));
        let request = self.request(method, path, &headers, body);
        let (mut reader, mut writer) =
            TcpStream::connect(("127.0.0.1", self.port)).await.unwrap().into_split();
        // The server may answer and close before it has read everything.
        let writing = tokio::spawn(async move {
            let _ = writer.write_all(&request).await;
            writer
        });
        let mut bytes = Vec::new();
        let _ = reader.read_to_end(&mut bytes).await;
        writing.abort();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// A call with the right token.
    pub async fn post_bytes(&self, more: &[(&str, &str)], body: &[u8]) -> Answer {
        let headers = self.headers(more);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.raw("POST", "/mcp", &headers, body).await
    }

    pub async fn post(&self, more: &[(&str, &str)], body: &Value) -> Answer {
        self.post_bytes(more, body.to_string().as_bytes()).await
    }

    /// Text without what differs from run to run.
    pub fn stable(&self, text: &str) -> String {
        text.replace(&*self.root.to_string_lossy(), "ROOT")
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<String> {
        let prefix = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

pub async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let request = CallToolRequestParams::new(tool.to_owned())
        .with_arguments(arguments.as_object().cloned().unwrap_or_default());
    client.call_tool(request).await.unwrap()
}

/// A Python that has debugpy.
pub fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("BATON_TEST_PYTHON") {
        return python.into();
    }
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/py/bin/python");
    assert!(python.exists(), "{} is missing; `cargo xtask test` installs it", python.display());
    python
}
