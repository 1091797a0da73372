//! One run of the agent, from its options to its exit code.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use baton_link::find::FindOptions;
use baton_link::home::Home;
use baton_link::spawn::port_of_env;
use baton_proto::ids::WindowId;
use baton_proto::shim::EXIT_RESTART;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info, info_span};

use crate::desk::Desk;
use crate::identity::Identity;
use crate::keeping::Keeping;
use crate::membership::{Ended, Membership};
use crate::options::{Kind, Options};
use crate::pulse::Pulse;
use crate::report::{self, Report, Reporter};
use baton_agent_base::shim::{FromExtension, Shim};
use baton_agent_base::workspace::Workspace;
use baton_agent_code::CodeIndex;
use baton_agent_code::servers::Places;
use baton_agent_debug::editor::Editor;
use baton_agent_debug::{Debugger, DebuggerOptions, Kept};
use baton_agent_mcp::lane::Lane;
use baton_agent_mcp::listening::{Address, Listening};
use baton_agent_mcp::{Access, Server};
use baton_agent_tools::window::Window;

/// Ending debug sessions may take this long; the process ends within two seconds of being told.
const END_TIMEOUT: Duration = Duration::from_millis(1_400);
/// Answers under way may take this long to leave.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(200);

/// Runs until the window ends.
pub async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let identity = Arc::new(identity(&options)?);
    let id = identity.id.clone();
    let home = Home::from_env()?;
    let (tokens, token) = watch::channel(home.secret()?.window_token(&id, None));
    let heart = Lane::start("heart")?;
    let extension = match options.kind {
        Kind::Headless => None,
        Kind::Vscode => Some(Extension::connect(&heart)),
    };
    let editor = extension.as_ref().map(|extension| extension.editor.clone());
    // Without a coordinator nobody follows this agent.
    let keeping = (!options.standalone).then(|| Keeping::of(&home, &id, editor.is_some()));
    let kept = keeping.as_ref().map(Keeping::begin).unwrap_or_default();
    let window = Arc::new(open_window(&options, id.clone(), editor, kept)?);
    if let Some(keeping) = keeping.clone() {
        tokio::spawn(keeping.follow(window.debugger.watch_kept()));
    }
    let legacy = Legacy { identity: identity.clone(), keeping, kept: window.debugger.watch_kept() };
    // Before anybody asks about files that are half changed.
    window.code.undo_left(&window.workspace()).await;
    window.set_auto_start(identity.auto_start().unwrap_or(options.auto_start));
    if !options.standalone {
        window.set_home(&home);
    }
    let mut find = FindOptions::new(home);
    find.first_port = port_of_env().and_then(|port| port.parse().ok());
    let shutdown = end_signal()?;
    let (reporter, pulse) = {
        let _inside = heart.enter();
        supervisor(extension, &options, (&window, &identity), &find, &shutdown)?
    };
    let (closing, access) = (CancellationToken::new(), access(&options));
    let server = Server::new(window.clone(), token, access, closing.clone());
    let mut listening = Listening::open(&find.home, &id, options.port, server.clone())
        .with_context(|| format!("cannot listen on 127.0.0.1:{}", options.port))?;
    if access == Access::Standalone {
        listening.port().context("cannot listen on 127.0.0.1")?;
    }
    let Address { port, socket } = listening.current();
    info!(port, socket, window = %window.id, "serves MCP");
    reporter.send(Report::Ready { port, socket, window: id });
    let ended = match access {
        Access::Standalone => {
            shutdown.cancelled().await;
            legacy.pass_on(Ended::Shutdown);
            Ended::Shutdown
        }
        Access::Coordinator => {
            let membership = Membership::new(window.clone(), find, reporter, pulse, (listening, tokens));
            run_member(&heart, membership, (&window, &legacy), shutdown).await
        }
    };
    info!(?ended, "ends");
    // Waits end with their sessions, so that their answers can still leave.
    window.calls.close();
    let end = async {
        window.end_programs().await;
        window.calls.ended(END_TIMEOUT).await
    };
    let _ = tokio::time::timeout(END_TIMEOUT, end).await;
    closing.cancel();
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, server.ended()).await;
    legacy.pass_on(ended);
    Ok(match ended {
        // The agent that follows is of the same extension host.
        Ended::Restart => ExitCode::from(EXIT_RESTART),
        Ended::Shutdown | Ended::Superseded => ExitCode::SUCCESS,
    })
}

/// What the window's next agent begins with.
struct Legacy {
    identity: Arc<Identity>,
    /// None when nobody follows.
    keeping: Option<Keeping>,
    kept: watch::Receiver<Kept>,
}

impl Legacy {
    /// Called as soon as the window is to end: its next agent may be there already, when an editor loads it anew, and
    /// does not wait. First what that one reads, then the id by which it finds it. Later calls change nothing.
    fn pass_on(&self, ended: Ended) {
        if let Some(keeping) = &self.keeping {
            keeping.end(ended, &self.kept);
        }
        match ended {
            Ended::Shutdown => self.identity.release(),
            // The id stays with the extension host, or is the other agent's.
            Ended::Restart | Ended::Superseded => {}
        }
    }
}

/// Which window this is: the one that is named, or one that the editor's storage knows.
fn identity(options: &Options) -> anyhow::Result<Identity> {
    let given = options.window.clone().map(Identity::given);
    let claim = |folder: &PathBuf| Identity::claim(folder, std::os::unix::process::parent_id());
    given.or_else(|| options.storage.as_ref().map(claim)).context("no window was named: give --window")
}

/// Leaving and ending the sessions go side by side.
async fn run_member(
    heart: &Lane,
    membership: Membership,
    (window, legacy): (&Window, &Legacy),
    shutdown: CancellationToken,
) -> Ended {
    let end_sessions = async {
        shutdown.cancelled().await;
        legacy.pass_on(Ended::Shutdown);
        let _ = tokio::time::timeout(END_TIMEOUT, window.debugger.stop_all()).await;
    };
    let member = membership.run(shutdown.clone()).instrument(info_span!("member", window = %window.id));
    let member = heart.run(member);
    tokio::pin!(member, end_sessions);
    tokio::select! {
        ended = &mut member => ended,
        () = &mut end_sessions => member.await,
    }
}

fn access(options: &Options) -> Access {
    if options.standalone { Access::Standalone } else { Access::Coordinator }
}

/// The extension that started this agent.
struct Extension {
    shim: Shim,
    messages: mpsc::Receiver<FromExtension>,
    editor: Editor,
}

impl Extension {
    fn connect(heart: &Lane) -> Self {
        let _inside = heart.enter();
        let (shim, messages) = Shim::open(tokio::io::stdin(), tokio::io::stdout());
        Self { editor: Editor::new(shim.clone()), shim, messages }
    }
}

fn open_window(
    options: &Options,
    id: WindowId,
    editor: Option<Editor>,
    kept: Kept,
) -> anyhow::Result<Window> {
    let workspace = match options.kind {
        Kind::Headless => Workspace::open(&options.folders).context("cannot open a folder of the window")?,
        Kind::Vscode => Workspace::open_some(&options.folders).0,
    };
    let folders = workspace.folders();
    let name = options.name.clone().filter(|name| !name.is_empty());
    let name = name.or_else(|| folders.first().map(|folder| folder.name.clone()));
    let paths = folders.iter().map(|folder| folder.path.clone()).collect();
    let shim = editor.as_ref().map(|editor| editor.shim().clone());
    let more = DebuggerOptions::from_env(paths);
    let debugger = Debugger::spawn(DebuggerOptions { editor, has_own_ids: true, kept, ..more });
    let name = name.unwrap_or_else(|| id.to_string());
    let mut window = Window::new(id, name, options.kind.into(), workspace, debugger);
    if let Some(shim) = shim {
        window.code = CodeIndex::in_editor(Places::from_env(), shim);
    }
    Ok(window)
}

/// Cancelled when standard input ends or a signal says so.
fn end_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let shutdown = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    // The terminal of `baton window` was closed.
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let on_signal = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
        }
        on_signal.cancel();
    });
    Ok(shutdown)
}

/// Whoever started this agent: `baton window`, which reads lines and never says anything, or the extension, which
/// speaks JSON-RPC. Either ends it by closing its standard input.
fn supervisor(
    extension: Option<Extension>,
    options: &Options,
    (window, identity): (&Arc<Window>, &Arc<Identity>),
    find: &FindOptions,
    shutdown: &CancellationToken,
) -> anyhow::Result<(Reporter, Pulse)> {
    match extension {
        None => {
            end_with_input(shutdown.clone())?;
            Ok((Reporter::spawn(), Pulse::timer()))
        }
        Some(Extension { shim, messages, editor }) => {
            let (beats, last_beat) = watch::channel(None);
            let (reporter, reports) = mpsc::channel(report::MAX_WAITING);
            let desk = Desk::new(shim, window.clone(), identity.clone(), find.clone(), editor, beats);
            tokio::spawn(desk.clone().show(reports));
            tokio::spawn(desk.run(messages, shutdown.clone()));
            Ok((Reporter::to(reporter), Pulse::editor(last_beat, &options.folders)))
        }
    }
}

fn end_with_input(shutdown: CancellationToken) -> anyhow::Result<()> {
    // A thread, because a pipe, a socket, a file and a terminal can all be standard input; it ends with the
    // process.
    std::thread::Builder::new().name("stdin".to_owned()).stack_size(64 * 1024).spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        shutdown.cancel();
    })?;
    Ok(())
}
