//! Proven connections to the coordinator, found or started when one is needed, and used again.

use std::time::Duration;

use baton_link::connection::Connection;
use baton_link::find::{self, FindError, FindOptions};
use baton_link::home::Home;
use baton_proto::discovery::Role;
use parking_lot::Mutex;

/// Idle connections that are kept.
const IDLE_MAX: usize = 8;
/// How often it is looked whether a coordinator that has not answered yet does anything at all.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Connections to the coordinator, as an MCP client has them.
pub struct Pool {
    find: FindOptions,
    idle: Mutex<Vec<Connection>>,
    /// One search at a time: the others find what it found.
    search: tokio::sync::Mutex<()>,
}

impl Pool {
    /// None is open yet.
    pub fn new(find: FindOptions) -> Self {
        Self { find, idle: Mutex::default(), search: tokio::sync::Mutex::default() }
    }

    /// The state folder.
    pub fn home(&self) -> &Home {
        &self.find.home
    }

    /// An idle connection, or a new one; with `may_start` to a coordinator that is started, if none runs.
    pub async fn connection(&self, may_start: bool) -> Result<Connection, FindError> {
        // The runtime looks at its sockets when a task yields: a coordinator that died before this call was made
        // is noticed before anything is written to it, and the call is not lost.
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
        if let Some(connection) = self.idle_connection() {
            return Ok(connection);
        }
        let searching = self.search.lock().await;
        let mut connection = if may_start {
            find::find_or_start(&self.find).await?
        } else {
            find::find(&self.find.home).await?
        };
        drop(searching);
        let epoch = self.find.home.stored_state().client_epoch;
        connection.set_role(Role::Client { epoch });
        Ok(connection)
    }

    /// Waits for what the coordinator is to say, which may take as long as a call takes; `None` when it was stopped or
    /// hangs. The next request ends it then, and starts another.
    pub async fn unless_hung<T>(&self, said: impl Future<Output = T>) -> Option<T> {
        let hung = async {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                if let Err(FindError::Hung { .. }) = find::find(&self.find.home).await {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            said = said => Some(said),
            () = hung => {
                tracing::warn!("the coordinator is not responding");
                self.forget();
                None
            }
        }
    }

    /// A connection may be used again once its answer is complete.
    pub fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && !connection.is_closed() {
            idle.push(connection);
        }
    }

    /// Forgets idle connections, for instance because their token is no longer good.
    pub fn forget(&self) {
        self.idle.lock().clear();
    }

    fn idle_connection(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some(connection) = idle.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        None
    }
}
