//! `baton serve --listen`: the coordinator for other machines.

use std::net::SocketAddr;
use std::path::PathBuf;

use baton_gateway::{Gateway, Network, Networks, OpenError, Options};
use baton_link::find::{FindOptions, find_or_start};
use baton_link::home::Home;
use clap::Args;

use super::outcome::{Done, Failed, exit};
use super::output;
use crate::logging;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Over a network")]
pub(crate) struct NetworkOptions {
    /// Answer other machines there, with TLS: an address of this one and a port, or 0.0.0.0:PORT for all
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address, requires_all = ["tls_cert", "tls_key", "allow"])]
    listen: Option<SocketAddr>,
    /// Certificate for the name that clients call this machine by, in PEM, with those that vouch for it
    #[arg(long, value_name = "FILE", requires = "listen")]
    tls_cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "listen")]
    tls_key: Option<PathBuf>,
    /// Who may connect: a network as 192.168.1.0/24, or an address; may be given several times
    #[arg(long, value_name = "CIDR", requires = "listen")]
    allow: Vec<Network>,
}

/// Where it listens, and with which files.
pub(super) struct Wanted {
    listen: SocketAddr,
    certificate: PathBuf,
    key: PathBuf,
    networks: Networks,
}

impl NetworkOptions {
    /// What the user wants, when that is an answer to other machines.
    pub(super) fn wanted(self) -> Option<Wanted> {
        let (listen, certificate, key) = (self.listen?, self.tls_cert?, self.tls_key?);
        Some(Wanted { listen, certificate, key, networks: Networks(self.allow) })
    }
}

/// Answers other machines until `ending`; the coordinator is started when there is none.
pub(super) async fn run(wanted: Wanted, port: Option<u16>, ending: impl Future<Output = ()>) -> Done {
    let home = Home::from_env()?;
    logging::start_daemon(&home, true);
    let find = FindOptions { port, ..FindOptions::new(home) };
    let Wanted { listen, certificate, key, networks } = wanted;
    let everybody = networks.everybody();
    let gateway = Gateway::open(Options { listen, certificate, key, networks, find: find.clone() }).await?;
    find_or_start(&find).await?;
    for url in gateway.urls() {
        output::line(format!("Baton answers other machines at {url}"));
    }
    output::hint("they need the token that `baton token` prints; anyone who has it can run programs as you");
    if let Some(network) = everybody {
        output::warning(format!("{network} is everybody: the token alone keeps others out"));
    }
    gateway.run(ending).await;
    Ok(())
}

impl From<OpenError> for Failed {
    fn from(error: OpenError) -> Self {
        Self::from_error(exit::UNAVAILABLE, &error, error.hint())
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "give an address of this machine and a port, as 0.0.0.0:8443 or [::]:8443".to_owned())
}
