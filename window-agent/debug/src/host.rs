//! How the engine reaches debug adapters: without an editor, or through VS Code.
//!
//! | module | what |
//! |---|---|
//! | `reach` | what is known before: how to reach the adapter of a session |
//! | `spawned`, `direct`, `server` | an adapter that is run; one that is connected to; one that is a server |
//! | `vscode` | an adapter that VS Code runs |
//! | `inbox` | what a host tells the engine |
//! | `tcp`, `terminal`, `end` | connections; terminals of ours; last words |
//! | `inspector`, `debugpy`, `nodelay` | takes 40 ms waits out of node's inspector and debugpy's adapter |

use tokio_util::sync::CancellationToken;

use self::inbox::{FromHost, Inbox};
use self::reach::{Host, Plan, Reach};

pub(crate) mod debugpy;
mod direct;
mod end;
pub(crate) mod inbox;
pub(crate) mod inspector;
mod nodelay;
pub(crate) mod reach;
pub(crate) mod server;
#[cfg_attr(sim, path = "host/sim/spawned.rs")]
mod spawned;
pub(crate) mod tcp;
pub(crate) mod terminal;
pub(crate) mod vscode;

/// Runs the host of one session until nothing of it is left. `over` says that the session is.
pub(crate) async fn run(plan: Plan, mark: Option<String>, over: CancellationToken, inbox: Inbox) {
    match &plan.host {
        Host::Direct(Reach::Stdio(programs)) => {
            spawned::run_spawned(programs, &plan, mark.as_deref(), &over, &inbox).await
        }
        Host::Direct(Reach::Server(server)) => server::run(server, mark.as_deref(), &over, &inbox).await,
        Host::Direct(reach @ (Reach::Tcp { .. } | Reach::Unix(_))) => {
            direct::run_connected(reach, &plan, &over, &inbox).await
        }
        Host::Editor(editor, target) => {
            return vscode::run(editor.clone(), target.clone(), over, inbox).await;
        }
    }
    if let Some(mark) = mark {
        spawned::sweep(mark).await;
    }
    inbox.tell(FromHost::Gone).await;
}
