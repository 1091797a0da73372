//! How a verb reaches the coordinator, and its port.

use baton_link::connection::Connection;
use baton_link::find::{FindOptions, find, find_or_start};
use baton_link::home::Home;
use clap::Args;

use super::outcome::Failed;

#[derive(Debug, Args)]
pub(super) struct PortOption {
    /// Port to listen on (0 for any free port); remembered for later starts
    #[arg(long, env = "BATON_PORT", value_parser = parse_port)]
    pub(super) port: Option<u16>,
}

/// The coordinator that runs.
pub(super) async fn running() -> Result<Connection, Failed> {
    Ok(find(&Home::from_env()?).await?)
}

/// The coordinator, started when there is none.
pub(super) async fn started(port: Option<u16>) -> Result<Connection, Failed> {
    let options = FindOptions { port, ..FindOptions::new(Home::from_env()?) };
    Ok(find_or_start(&options).await?)
}

/// The URL for MCP clients.
pub(super) fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/mcp")
}

/// A port that needs no privilege, or 0.
pub(super) fn parse_port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port == 0 || port >= 1024 => Ok(port),
        _ => Err("a port must be a number from 1024 to 65535".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_need_no_privilege() {
        assert_eq!(parse_port("0"), Ok(0));
        assert_eq!(parse_port("7717"), Ok(7717));
        for bad in ["80", "65536", "-1", "x", ""] {
            assert!(parse_port(bad).is_err(), "{bad}");
        }
    }
}
