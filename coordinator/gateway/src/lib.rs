//! The coordinator for other machines: `baton serve --listen`.
//!
//! The coordinator itself answers on loopback only. This stands before it, in a process of its own, and lets in who comes
//! from a network that the user named, is no other user of this machine, speaks TLS, calls us by a name of our certificate, and shows the client token; all
//! of these, for each request. Of what the coordinator has it passes on `/mcp` alone: nobody registers a window, takes
//! over, reads metrics or sees the page from afar. It finds the coordinator as `baton stdio` does, on the socket in the
//! state folder, and starts one when there is none; what becomes of that one ends no connection here.
//!
//! | module | what it does |
//! |---|---|
//! | `networks` | CORE: who may connect |
//! | `identity` | certificate and key: what is wrong with them, and when they change |
//! | `accept` | connections: whose, how many, for how long, and how they end |
//! | `refusals` | CORE: what the log says of those who are not let in |
//! | `pass` | one request to the coordinator, and its answer |

mod accept;
mod identity;
mod networks;
mod pass;
mod refusals;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use baton_link::find::FindOptions;
use tokio::net::TcpListener;

use identity::Identities;
pub use identity::IdentityError;
pub use networks::{Network, Networks};

/// What it answers for, and to whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// A certificate and those that vouch for it, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// Who may connect.
    pub networks: Networks,
    /// How the coordinator is found.
    pub find: FindOptions,
}

/// Why it does not run.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Certificate or key cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Identity(error) => error.hint(),
            Self::Bind { source, .. } => Some(
                match source.kind() {
                    io::ErrorKind::AddrInUse => "choose another port",
                    io::ErrorKind::AddrNotAvailable => {
                        "use an address of this machine, or 0.0.0.0 for all of them"
                    }
                    _ => "choose an address of this machine and a port from 1024 on",
                }
                .to_owned(),
            ),
        }
    }
}

/// Listens, and answers nobody before [`Gateway::run`].
pub struct Gateway {
    listener: TcpListener,
    identities: Identities,
    options: Options,
}

impl Gateway {
    /// Listens with what `options` name.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let identities = Identities::read(&options.certificate, &options.key)?;
        let address = options.listen;
        let listener =
            TcpListener::bind(address).await.map_err(|source| OpenError::Bind { address, source })?;
        Ok(Self { listener, identities, options })
    }

    /// The URLs for clients: one for each name of the certificate.
    pub fn urls(&self) -> Vec<String> {
        let port = self.listener.local_addr().unwrap_or(self.options.listen).port();
        let names = self.identities.current().names.clone();
        names.into_iter().map(|name| format!("https://{name}:{port}/mcp")).collect()
    }

    /// Answers until `ending`, and ends when the last answer is complete, or a little later.
    pub async fn run(self, ending: impl Future<Output = ()>) {
        let Self { listener, identities, options } = self;
        accept::run(listener, Arc::new(identities), options, ending).await;
    }
}
