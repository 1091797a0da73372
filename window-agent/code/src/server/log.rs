//! What a server says beside the protocol.

use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Longest line of a server's standard error that is logged.
const MAX_LOGGED: usize = 400;

/// Logs what a server says beside the protocol, and keeps its first words: a server that cannot start says why.
pub(super) fn log_lines(
    server: String,
    read: impl AsyncRead + Send + Unpin + 'static,
) -> Arc<OnceLock<String>> {
    let first = Arc::new(OnceLock::new());
    let said = first.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line: String = line.chars().take(MAX_LOGGED).collect();
            tracing::debug!(%server, %line, "said");
            if !line.trim().is_empty() {
                let _ = said.set(line);
            }
        }
    });
    first
}
