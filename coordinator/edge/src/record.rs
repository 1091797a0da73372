//! The record of calls that a user asks for: what clients said and were answered, and which window was live, in a file
//! of their own.
//!
//! **Invariant:** a call never waits for the record, and while none runs a call costs one look at a flag. What comes faster
//! than it can be written, or than [`MAX_PER_SECOND`], is left out, counted, and said at the end.
//!
//! | module | what it does |
//! |---|---|
//! | `pace` | CORE: how many calls of a second are recorded |
//! | `taped` | CORE: a call and its answer as a line of the record |
//! | `windows` | CORE: what became of the windows, as lines of the record |

mod pace;
mod taped;
mod windows;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use baton_election::roster::Roster;
use baton_link::blocking;
use baton_link::explain::Explanation;
use baton_link::home::Home;
use baton_proto::control::Recorded;
use baton_proto::record::{ENDING, FOLDER, Line, MAX_BYTES};
use bytes::Bytes;
use parking_lot::Mutex;

use pace::Pace;
pub(crate) use taped::{Answer, Taped};
use windows::Windows;

/// What waits to be written, in pieces.
const QUEUE: usize = 8_192;
/// The same in bytes.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;
/// Most calls of a second: a client that calls in a loop would otherwise pay for it, and fill the record with that alone.
pub(crate) const MAX_PER_SECOND: u32 = 250;
/// Longest name of a record.
const MAX_NAME: usize = 64;

/// The record, or none.
pub(crate) struct Recorder {
    home: Option<Home>,
    /// One that has grown so far ends.
    max_bytes: u64,
    /// Whether one is being written.
    is_on: Arc<AtomicBool>,
    /// The one that runs, or the last one.
    record: Mutex<Option<Record>>,
    /// One is started or ended at a time.
    changing: tokio::sync::Mutex<()>,
}

/// A record whose file is open, or was.
struct Record {
    told: Arc<Told>,
    pace: Pace,
    pieces: SyncSender<Piece>,
    writer: JoinHandle<()>,
}

/// What its writer tells of it.
struct Told {
    name: String,
    path: String,
    since_ms: u64,
    n_calls: AtomicU64,
    n_bytes: AtomicU64,
    n_left_out: AtomicU64,
    /// What waits to be written.
    n_waiting: AtomicUsize,
    ended: Mutex<Option<String>>,
}

/// Something for the record.
enum Piece {
    Call(Box<Taped>),
    Roster(Arc<Roster>),
    End,
}

impl Told {
    fn recorded(&self) -> Recorded {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Recorded {
            name: self.name.clone(),
            path: self.path.clone(),
            since_ms: self.since_ms,
            n_calls: read(&self.n_calls),
            n_bytes: read(&self.n_bytes),
            n_left_out: read(&self.n_left_out),
            ended: self.ended.lock().clone(),
        }
    }
}

impl Recorder {
    /// None runs yet.
    pub(crate) fn new(home: Option<Home>) -> Arc<Self> {
        Arc::new(Self::bounded(home, MAX_BYTES))
    }

    fn bounded(home: Option<Home>, max_bytes: u64) -> Self {
        Self {
            home,
            max_bytes,
            is_on: Arc::default(),
            record: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
        }
    }

    /// The beginning of a call that is to be recorded, if there is a record.
    pub(crate) fn tape(self: &Arc<Self>, request: &Bytes) -> Option<Box<Tape>> {
        let at_ms = self.is_on.load(Ordering::Relaxed).then(now_ms)?;
        if !self.has_room(at_ms) {
            return None;
        }
        let taped = Mutex::new(Taped::begin(at_ms, request.clone()));
        Some(Box::new(Tape { recorder: self.clone(), taped }))
    }

    /// The windows have changed.
    pub(crate) fn roster(&self, roster: &Arc<Roster>) {
        if self.is_on.load(Ordering::Relaxed) {
            self.put(Piece::Roster(roster.clone()), 0);
        }
    }

    /// Starts a record of that name.
    pub(crate) async fn start(&self, name: String, roster: Arc<Roster>) -> Result<Recorded, Explanation> {
        if !is_plain(&name) {
            let why = "a record's name has letters, digits, `-`, `_` and `.`, and at most 64 of them";
            return Err(Explanation::new(why));
        }
        let _changing = self.changing.lock().await;
        let Some(home) = &self.home else { return Err(Explanation::new("there is no state folder")) };
        if self.is_on.load(Ordering::Relaxed) {
            return Err(
                Explanation::new("a record is running already").with_hint("end it with `baton record stop`")
            );
        }
        let folder = home.path().join(FOLDER);
        let path = folder.join(format!("{name}{ENDING}"));
        let shown = path.display().to_string();
        let opened = blocking::run(move || open(&folder, &path))
            .await
            .map_err(|error| Explanation::new(error.to_string()))?;
        let file = opened.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Explanation::new(format!("there is a record named {name:?} already"))
                .with_hint("give it another name"),
            _ => Explanation::new(format!("cannot write {shown}: {error}")),
        })?;
        let told = Arc::new(Told {
            name,
            path: shown,
            since_ms: now_ms(),
            n_calls: AtomicU64::new(0),
            n_bytes: AtomicU64::new(0),
            n_left_out: AtomicU64::new(0),
            n_waiting: AtomicUsize::new(0),
            ended: Mutex::default(),
        });
        let (pieces, receiver) = sync_channel(QUEUE);
        let (writing, is_on, max_bytes) = (told.clone(), self.is_on.clone(), self.max_bytes);
        let writer = std::thread::Builder::new().name("record".to_owned()).spawn(move || {
            let windows = Windows::default();
            Writer { file: BufWriter::new(file), told: writing, windows, max_bytes }.run(&receiver);
            is_on.store(false, Ordering::Relaxed);
        });
        let writer = writer.map_err(|error| Explanation::new(format!("cannot start a thread: {error}")))?;
        let recorded = told.recorded();
        // Nobody puts anything before the windows.
        let _ = pieces.try_send(Piece::Roster(roster));
        *self.record.lock() = Some(Record { told, pace: Pace::default(), pieces, writer });
        self.is_on.store(true, Ordering::Relaxed);
        Ok(recorded)
    }

    /// Ends the record that runs, once everything is written.
    pub(crate) async fn stop(&self) -> Result<Recorded, Explanation> {
        let _changing = self.changing.lock().await;
        self.is_on.store(false, Ordering::Relaxed);
        // At once, so that nothing of it is left when whoever asked is gone before it has ended.
        let ending = self.record.lock().take();
        let Some(Record { told, pieces, writer, .. }) = ending else {
            return Err(
                Explanation::new("no record is running").with_hint("start one with `baton record start`")
            );
        };
        let ended = blocking::run(move || {
            // It may have ended by itself.
            let _ = pieces.send(Piece::End);
            writer.join()
        });
        match ended.await {
            Ok(Ok(())) => Ok(told.recorded()),
            _ => Err(Explanation::new("the record ended in the middle")),
        }
    }

    /// The record that runs, or has ended by itself and is not stopped yet.
    pub(crate) fn recorded(&self) -> Option<Recorded> {
        let record = self.record.lock();
        record.as_ref().map(|record| record.told.recorded())
    }

    /// Whether one more call of this second is recorded; counts it when not.
    fn has_room(&self, at_ms: u64) -> bool {
        let mut record = self.record.lock();
        let Some(Record { told, pace, .. }) = record.as_mut() else { return false };
        let has_room = pace.take(at_ms, MAX_PER_SECOND);
        told.n_left_out.fetch_add(u64::from(!has_room), Ordering::Relaxed);
        has_room
    }

    fn put(&self, piece: Piece, n_bytes: usize) {
        let record = self.record.lock();
        let Some(Record { told, pieces, .. }) = record.as_ref() else { return };
        let is_call = matches!(piece, Piece::Call(_));
        let n_waiting = told.n_waiting.fetch_add(n_bytes, Ordering::Relaxed);
        if n_waiting + n_bytes > QUEUE_BYTES || pieces.try_send(piece).is_err() {
            told.n_waiting.fetch_sub(n_bytes, Ordering::Relaxed);
            // What became of the windows is told with the next change of them.
            told.n_left_out.fetch_add(u64::from(is_call), Ordering::Relaxed);
        }
    }
}

/// A call that is recorded; its line is written when it is over.
pub(crate) struct Tape {
    recorder: Arc<Recorder>,
    taped: Mutex<Taped>,
}

impl Tape {
    /// More is known of the call.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Taped)) {
        note(&mut self.taped.lock());
    }

    /// The call is over.
    pub(crate) fn end(self, end: impl FnOnce(&mut Taped)) {
        let mut taped = self.taped.into_inner();
        end(&mut taped);
        let n_bytes = taped.n_bytes();
        self.recorder.put(Piece::Call(Box::new(taped)), n_bytes);
    }
}

/// Writes a record, on a thread of its own.
struct Writer {
    file: BufWriter<File>,
    told: Arc<Told>,
    windows: Windows,
    max_bytes: u64,
}

impl Writer {
    fn run(mut self, pieces: &Receiver<Piece>) {
        let begin = Line::Begin { at_ms: self.told.since_ms, version: env!("CARGO_PKG_VERSION").to_owned() };
        let why = self.write(&begin).and_then(|()| self.write_all(pieces)).unwrap_or_else(|error| {
            tracing::warn!(path = self.told.path, %error, "the record of calls ends");
            Some(format!("it cannot be written: {error}"))
        });
        *self.told.ended.lock() = why;
    }

    /// Writes until the end; gives why it came by itself.
    fn write_all(&mut self, pieces: &Receiver<Piece>) -> io::Result<Option<String>> {
        loop {
            let piece = match pieces.try_recv() {
                Ok(piece) => piece,
                Err(TryRecvError::Disconnected) => return Ok(None),
                Err(TryRecvError::Empty) => {
                    self.file.flush()?;
                    let Ok(piece) = pieces.recv() else { return Ok(None) };
                    piece
                }
            };
            match piece {
                Piece::Call(taped) => {
                    self.told.n_waiting.fetch_sub(taped.n_bytes(), Ordering::Relaxed);
                    self.write(&Line::Call(Box::new(taped.into_call())))?;
                    self.told.n_calls.fetch_add(1, Ordering::Relaxed);
                }
                Piece::Roster(roster) => {
                    for line in self.windows.lines(&roster, now_ms()) {
                        self.write(&line)?;
                    }
                }
                Piece::End => {
                    self.end("the user ended it")?;
                    return Ok(None);
                }
            }
            if self.told.n_bytes.load(Ordering::Relaxed) > self.max_bytes {
                let why = format!("it has grown to {} kB", self.max_bytes / 1_000);
                self.end(&why)?;
                tracing::info!(path = self.told.path, why, "the record of calls ends");
                return Ok(Some(why));
            }
        }
    }

    fn end(&mut self, why: &str) -> io::Result<()> {
        let n_left_out = self.told.n_left_out.load(Ordering::Relaxed);
        self.write(&Line::End { at_ms: now_ms(), why: why.to_owned(), n_left_out })?;
        self.file.flush()?;
        self.file.get_ref().sync_all()
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)?;
        self.told.n_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// A new file of this user's alone.
fn open(folder: &Path, path: &Path) -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn is_plain(name: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&char);
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.chars().all(is_plain)
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::route::tests::roster;

    fn recorder(max_bytes: u64) -> (tempfile::TempDir, Arc<Recorder>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let home = Home::open(folder.path()).unwrap();
        (folder, Arc::new(Recorder::bounded(Some(home), max_bytes)))
    }

    fn call(recorder: &Arc<Recorder>) -> bool {
        let request =
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}"#;
        let tape = recorder.tape(&Bytes::from_static(request));
        tape.map(|tape| tape.end(|taped| taped.id = "a-1".to_owned())).is_some()
    }

    async fn refused(recorder: &Recorder, name: &str) -> String {
        recorder.start(name.to_owned(), Arc::new(roster())).await.unwrap_err().message
    }

    #[tokio::test]
    async fn what_comes_too_fast_is_left_out_and_counted() {
        let (_folder, recorder) = recorder(MAX_BYTES);
        recorder.start("a".to_owned(), Arc::new(roster())).await.unwrap();
        let mut n_taken = 0;
        while recorder.recorded().unwrap().n_left_out == 0 {
            n_taken += u64::from(call(&recorder));
        }
        let ended = recorder.stop().await.unwrap();
        assert_eq!((ended.n_calls + ended.n_left_out, ended.ended), (n_taken + 1, None));
        assert!(n_taken >= u64::from(MAX_PER_SECOND), "{n_taken}");
    }

    #[tokio::test]
    async fn a_record_is_one_file_and_one_at_a_time() {
        let (_folder, recorder) = recorder(MAX_BYTES);
        assert!(!call(&recorder), "nothing is recorded before it is asked for");
        assert!(recorder.stop().await.is_err() && recorder.recorded().is_none());
        for name in ["", "a/b", "..", ".a", "a b", "\u{e9}", &"a".repeat(65)] {
            assert!(refused(&recorder, name).await.starts_with("a record's name has letters"), "{name}");
        }
        let begun = recorder.start("a".to_owned(), Arc::new(roster())).await.unwrap();
        assert_eq!(refused(&recorder, "b").await, "a record is running already");
        assert!(call(&recorder));
        let ended = recorder.stop().await.unwrap();
        assert_eq!((ended.n_calls, ended.n_left_out, ended.ended), (1, 0, None));
        assert!(!call(&recorder));
        assert_eq!(refused(&recorder, "a").await, "there is a record named \"a\" already");
        let mode = std::fs::metadata(&begun.path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let text = std::fs::read_to_string(begun.path).unwrap();
        let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(matches!((&lines[0], lines.last()), (Line::Begin { .. }, Some(Line::End { .. }))), "{text}");
        assert_eq!(lines.iter().filter(|line| matches!(line, Line::Call(_))).count(), 1);
    }

    #[tokio::test]
    async fn a_record_that_has_grown_too_far_ends_and_says_so() {
        let (_folder, recorder) = recorder(2_000);
        recorder.start("a".to_owned(), Arc::new(roster())).await.unwrap();
        while call(&recorder) {
            tokio::task::yield_now().await;
        }
        let ended = recorder.stop().await.unwrap();
        assert_eq!(ended.ended.as_deref(), Some("it has grown to 2 kB"));
        let text = std::fs::read_to_string(ended.path).unwrap();
        assert!(text.len() < 4_000 && text.lines().last().unwrap().contains("\"kind\":\"end\""), "{text}");
        recorder.start("b".to_owned(), Arc::new(roster())).await.unwrap();
        assert!(call(&recorder), "the next one begins anew");
        recorder.stop().await.unwrap();
    }
}
