//! Terminals of ours, for programs whose adapter asks for one.

use std::ffi::OsString;

use serde_json::Value;

use crate::dap::body::{RunInTerminal, read};
use crate::host::inbox::{FromHost, Inbox, TerminalWriter};
use crate::types::control::Category;
use baton_agent_base::process::{self, Program};

/// Texts for a program that it has not read yet.
const MAX_STDIN: usize = 64;
/// By itself node tells the address of its debugger to everybody who asks over HTTP.
pub(crate) const TOLD_TO_ALL: &str = "--inspect-publish-uid=http";
/// It is printed only, and left out of what the program printed.
pub(crate) const PRINTED: &str = "--inspect-publish-uid=stderr";

/// Runs a program in a terminal of its own, for an adapter that asked for it; answers it with the process id.
pub(crate) async fn run(arguments: Value, mark: String, inbox: Inbox) -> Result<Value, String> {
    let program = terminal_program(&arguments).ok_or("runInTerminal without a program")?;
    let spawned = tokio::task::spawn_blocking(move || process::spawn_in_terminal(&program, &mark));
    let terminal = spawned.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let pid = terminal.pid;
    let (texts, to_write) = std::sync::mpsc::sync_channel::<Vec<u8>>(MAX_STDIN);
    let mut writer = terminal.writer;
    // Writing blocks while the program does not read; the thread ends when nobody can write any more.
    std::thread::spawn(move || {
        while let Ok(bytes) = to_write.recv() {
            if writer.write_all(&bytes).and_then(|()| writer.flush()).is_err() {
                break;
            }
        }
    });
    inbox.tell(FromHost::Terminal(TerminalWriter { pid, texts })).await;
    // The terminal is read by blocking reads only; the thread ends with the last process in it.
    std::thread::spawn(move || {
        let (mut reader, mut buffer, mut rest) = (terminal.reader, [0; 4096], Vec::new());
        let (_master, mut child) = terminal.keep;
        while let Ok(n @ 1..) = std::io::Read::read(&mut reader, &mut buffer) {
            rest.extend_from_slice(&buffer[..n]);
            let n_whole = match std::str::from_utf8(&rest) {
                Ok(_) => rest.len(),
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Err(_) => rest.len(),
            };
            let text = String::from_utf8_lossy(&rest[..n_whole]).into_owned();
            rest.drain(..n_whole);
            if inbox.sender.blocking_send((inbox.key, FromHost::Printed(Category::Stdout, text))).is_err() {
                break;
            }
        }
        // One that a signal ended has no code of its own.
        let exit_code = child.wait().ok().filter(|status| status.signal().is_none());
        let exit_code = exit_code.map(|status| i64::from(status.exit_code()));
        let _ = inbox.sender.blocking_send((inbox.key, FromHost::TerminalEnded { exit_code }));
    });
    Ok(serde_json::json!({"processId": pid}))
}

fn terminal_program(arguments: &Value) -> Option<Program> {
    let wish: RunInTerminal = read(arguments);
    let mut args = wish.args.into_iter();
    let path = args.next()?.into();
    Some(Program {
        path,
        args: args.map(Into::into).collect(),
        cwd: wish.cwd.filter(|cwd| !cwd.is_empty()).map(Into::into),
        env: wish
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.as_str().map(|value| of_terminal(name, value))))
            .collect(),
    })
}

/// The value of a variable, as a program in a terminal gets it.
fn of_terminal(name: &str, value: &str) -> OsString {
    if name == "NODE_OPTIONS" { guarded_options(value).into() } else { value.into() }
}

/// What a program in a terminal is told of its debugger.
pub(crate) fn guarded_options(value: &str) -> String {
    value.replace(TOLD_TO_ALL, PRINTED)
}
