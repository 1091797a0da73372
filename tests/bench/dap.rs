//! A minimal client of the debug adapter protocol: what a program would do without Baton.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

/// Longest wait for a message.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two tries to connect.
const RETRY: Duration = Duration::from_millis(2);
/// Frames asked for at a stop, as Baton asks for them.
const MAX_FRAMES: u64 = 20;

/// How one speaks to an adapter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transport {
    /// Over its standard streams.
    Stdio,
    /// It prints a line in which the port follows this text.
    Announced(&'static str),
    /// It listens on the port that stands in its arguments as `{port}`.
    Given,
}

/// One connection: messages in order of arrival.
struct Connection {
    input: Box<dyn Write>,
    messages: Receiver<Value>,
    /// Read while something else was waited for.
    seen: VecDeque<Value>,
    seq: i64,
}

/// An adapter that was started, with the program it debugs.
pub(crate) struct Session {
    child: Child,
    port: Option<u16>,
    root: Connection,
    /// js-debug's program is a session of its own.
    program: Option<Connection>,
    thread: Value,
    frame: Value,
}

/// What is debugged, and how it is asked for.
pub(crate) struct Wish<'a> {
    pub(crate) transport: Transport,
    /// `type` of the configuration.
    pub(crate) kind: &'a str,
    /// Arguments of the launch.
    pub(crate) launch: Value,
    pub(crate) source: &'a Path,
    pub(crate) line: u64,
}

impl Session {
    /// Starts the adapter and the program, up to the first stop with its stack and variables.
    pub(crate) fn start(command: &[String], folder: &Path, wish: &Wish<'_>) -> Result<Self> {
        let (mut child, port) = spawn(command, folder, wish.transport)?;
        let root = match port {
            Some(port) => Connection::tcp(port)?,
            None => Connection::stdio(&mut child)?,
        };
        let mut session = Self { child, port, root, program: None, thread: Value::Null, frame: Value::Null };
        session.root.begin(wish, "launch", wish.launch.clone())?;
        loop {
            let message = session
                .current()
                .next(|message| is_event(message, "stopped") || message["type"] == "request")?;
            if message["type"] == "event" {
                session.thread = message["body"]["threadId"].clone();
                break;
            }
            session.answer_request(&message, wish)?;
        }
        session.look()?;
        Ok(session)
    }

    fn current(&mut self) -> &mut Connection {
        self.program.as_mut().unwrap_or(&mut self.root)
    }

    fn answer_request(&mut self, message: &Value, wish: &Wish<'_>) -> Result<()> {
        self.root.reply(message)?;
        if message["command"] == "startDebugging" {
            let mut child = Connection::tcp(self.port.context("a child without a port")?)?;
            let arguments = &message["arguments"];
            let request = arguments["request"].as_str().unwrap_or("launch").to_owned();
            child.begin(wish, &request, arguments["configuration"].clone())?;
            self.program = Some(child);
        }
        Ok(())
    }

    /// Stack, scopes, and the variables of the nearest scope.
    pub(crate) fn look(&mut self) -> Result<()> {
        let thread = self.thread.clone();
        let connection = self.program.as_mut().unwrap_or(&mut self.root);
        let stack = connection.ask("stackTrace", json!({ "threadId": thread, "levels": MAX_FRAMES }))?;
        let frame = stack["stackFrames"][0]["id"].clone();
        let scopes = connection.ask("scopes", json!({ "frameId": frame }))?;
        let reference = &scopes["scopes"][0]["variablesReference"];
        let variables = connection.ask("variables", json!({ "variablesReference": reference }))?;
        ensure!(variables["variables"].is_array(), "no variables: {variables}");
        self.frame = frame;
        Ok(())
    }

    /// One step, with the stack and the variables where it ends.
    pub(crate) fn step(&mut self) -> Result<()> {
        let thread = self.thread.clone();
        let connection = self.current();
        connection.send("next", json!({ "threadId": thread }))?;
        let stopped = connection.next(|message| is_event(message, "stopped"))?;
        self.thread = stopped["body"]["threadId"].clone();
        self.look()
    }

    /// An expression in the topmost frame.
    pub(crate) fn evaluate(&mut self, expression: &str, context: &str) -> Result<Value> {
        let arguments = json!({ "expression": expression, "frameId": self.frame, "context": context });
        self.current().ask("evaluate", arguments)
    }

    /// Takes the breakpoint away.
    pub(crate) fn clear(&mut self, source: &Path) -> Result<()> {
        let arguments = json!({ "source": { "path": source }, "breakpoints": [] });
        self.current().ask("setBreakpoints", arguments).map(drop)
    }

    /// Ends program and adapter.
    pub(crate) fn end(mut self) -> Result<()> {
        self.root.send("disconnect", json!({ "terminateDebuggee": true }))?;
        let deadline = Instant::now() + Duration::from_millis(500);
        while self.child.try_wait()?.is_none() && Instant::now() < deadline {
            std::thread::sleep(RETRY);
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A server stays when its session ends; those that do not are gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Connection {
    fn stdio(child: &mut Child) -> Result<Self> {
        let output = child.stdout.take().context("its output is piped")?;
        let input = child.stdin.take().context("its input is piped")?;
        Ok(Self::over(output, Box::new(input)))
    }

    fn tcp(port: u16) -> Result<Self> {
        let deadline = Instant::now() + PATIENCE;
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => std::thread::sleep(RETRY),
            }
        };
        stream.set_nodelay(true)?;
        Ok(Self::over(Acknowledged(stream.try_clone()?), Box::new(stream)))
    }

    fn over(output: impl Read + Send + 'static, input: Box<dyn Write>) -> Self {
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Ok(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { input, messages, seen: VecDeque::new(), seq: 0 }
    }

    /// From `initialize` to `configurationDone`.
    fn begin(&mut self, wish: &Wish<'_>, request: &str, arguments: Value) -> Result<()> {
        let client = json!({
            "adapterID": wish.kind, "linesStartAt1": true, "columnsStartAt1": true, "pathFormat": "path",
            "supportsStartDebuggingRequest": true,
        });
        self.ask("initialize", client)?;
        self.send(request, arguments)?;
        self.next(|message| is_event(message, "initialized"))?;
        let breakpoints =
            json!({ "source": { "path": wish.source }, "breakpoints": [{ "line": wish.line }] });
        self.ask("setBreakpoints", breakpoints)?;
        self.send("configurationDone", json!({})).map(drop)
    }

    fn ask(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let seq = self.send(command, arguments)?;
        let is_answer = |message: &Value| message["type"] == "response" && message["request_seq"] == seq;
        let answer = self.next(is_answer).with_context(|| format!("waiting for {command}"))?;
        ensure!(answer["success"] == true, "{command} was refused: {answer}");
        Ok(answer["body"].clone())
    }

    fn send(&mut self, command: &str, arguments: Value) -> Result<i64> {
        self.seq += 1;
        let request =
            json!({ "seq": self.seq, "type": "request", "command": command, "arguments": arguments });
        self.write(&request)?;
        Ok(self.seq)
    }

    fn reply(&mut self, message: &Value) -> Result<()> {
        self.seq += 1;
        let reply = json!({
            "seq": self.seq, "type": "response", "request_seq": message["seq"], "success": true,
            "command": message["command"], "body": {},
        });
        self.write(&reply)
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        let body = message.to_string();
        let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.input.write_all(framed.as_bytes())?;
        Ok(self.input.flush()?)
    }

    /// The first message that is wanted; what came before it is kept. A failed launch is an error at once.
    fn next(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        if let Some(at) = self.seen.iter().position(&is_wanted) {
            return self.seen.remove(at).context("it was just there");
        }
        loop {
            let message = self.messages.recv_timeout(PATIENCE).context("the adapter says nothing more")?;
            if is_wanted(&message) {
                return Ok(message);
            }
            if is_event(&message, "terminated") || message["success"] == false {
                bail!("the session failed: {message}; before it came {:?}", self.seen);
            }
            // Output of a flood would only fill memory.
            if !is_event(&message, "output") {
                self.seen.push_back(message);
            }
        }
    }
}

fn is_event(message: &Value, name: &str) -> bool {
    message["type"] == "event" && message["event"] == name
}

fn read(output: &mut impl BufRead) -> Result<Value> {
    let mut len = 0;
    loop {
        let mut line = String::new();
        ensure!(output.read_line(&mut line)? > 0, "the adapter closed its output");
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                len = value.trim().parse()?
            }
            _ if line.trim_end().is_empty() && len > 0 => break,
            _ => {}
        }
    }
    let mut body = vec![0; len];
    output.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

/// Acknowledges at once what it reads, as Baton does: what is compared is not the kernel's patience.
struct Acknowledged(TcpStream);

impl Read for Acknowledged {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n_read = self.0.read(buffer);
        #[cfg(target_os = "linux")]
        let _ = rustix::net::sockopt::set_tcp_quickack(&self.0, true);
        n_read
    }
}

/// Starts an adapter; the port it listens on, if it does.
fn spawn(words: &[String], folder: &Path, transport: Transport) -> Result<(Child, Option<u16>)> {
    let given = match transport {
        Transport::Given => Some(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port()),
        _ => None,
    };
    let filled = |word: &String| word.replace("{port}", &given.unwrap_or_default().to_string());
    let mut command: Command = baton_tests::process::command(filled(&words[0]));
    command.args(words[1..].iter().map(filled)).current_dir(folder);
    let is_stdio = matches!(transport, Transport::Stdio);
    command.stdin(if is_stdio { Stdio::piped() } else { Stdio::null() });
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().with_context(|| words[0].clone())?;
    if is_stdio {
        return Ok((child, None));
    }
    let mut output = BufReader::new(child.stdout.take().context("its output is piped")?);
    let mut port = given;
    while let (Transport::Announced(sign), None) = (transport, port) {
        let mut line = String::new();
        ensure!(output.read_line(&mut line)? > 0, "{} announced no port", words[0]);
        port = line.split_once(sign).and_then(|(_, rest)| rest.trim().parse().ok());
    }
    // What it prints later must not block it.
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    Ok((child, port))
}
