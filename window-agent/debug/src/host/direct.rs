//! Connects to an adapter that is there already, and hands messages over.

use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, with_late_output};
use crate::error::DebugError;
use crate::host::end::EXIT_GRACE;
use crate::host::inbox::{FromHost, Inbox};
use crate::host::reach::{Plan, Reach};
use crate::host::server;
use crate::host::tcp::{from_tcp, open};

/// A connection to an adapter that is there already.
async fn connected(reach: &Reach) -> Result<Connection, DebugError> {
    match reach {
        Reach::Unix(path) => server::open_unix(path).await.map_err(|error| {
            let message = format!("the debug adapter takes no further connection: {error}");
            DebugError::StartFailed { message }
        }),
        Reach::Tcp { host, port } => Ok(from_tcp(open(host, *port).await?)),
        _ => Err(DebugError::StartFailed { message: "there is no adapter to connect to".to_owned() }),
    }
}

/// Speaks with it until it goes away, or its session is over.
pub(super) async fn run_connected(reach: &Reach, plan: &Plan, over: &CancellationToken, inbox: &Inbox) {
    let connected = tokio::select! {
        connected = connected(reach) => connected,
        () = over.cancelled() => return,
    };
    let connection = match connected {
        Ok(connection) => connection,
        Err(error) => return inbox.tell(FromHost::Failed(error)).await,
    };
    let connection = if plan.session.adapter.late_output { with_late_output(connection) } else { connection };
    let Connection { outgoing, mut incoming, writer } = connection;
    inbox.tell(FromHost::Reached(outgoing)).await;
    loop {
        tokio::select! {
            message = incoming.recv() => match message {
                Some(message) => inbox.tell(FromHost::Message(message)).await,
                None => {
                    inbox.tell(FromHost::Closed { how: "closed its connection".to_owned() }).await;
                    break;
                }
            },
            () = over.cancelled() => {
                // Let the farewell go out.
                let _ = tokio::time::timeout(EXIT_GRACE, writer).await;
                break;
            }
        }
    }
}
