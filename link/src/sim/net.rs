//! Streams and listeners of a simulated machine: in memory, in one thread, as late as the weather has it.
//!
//! What the kernel of a real machine does on loopback is done here: what a process has sent before it was killed still
//! arrives, then the end; bytes that nobody has read make it a reset; who is stopped is connected to and says nothing;
//! nobody listens where nobody lives.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::sim;

/// Bytes under way in one direction: what a kernel takes without being asked for more.
const CAPACITY: usize = 208 * 1024;
/// Connections that wait until they are accepted.
const BACKLOG: usize = 1024;
/// How long a port is kept without a coordinator.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// The file that a socket is: its device and number.
type FileId = (u64, u64);

/// What is listened on, and what is under way.
#[derive(Default)]
struct Net {
    ports: BTreeMap<u16, Arc<Door>>,
    sockets: BTreeMap<PathBuf, (FileId, Arc<Door>)>,
    /// The door behind each file that stands for a listener on a port: who is given it listens there too.
    files: BTreeMap<FileId, Arc<Door>>,
    /// Ports that are kept, and since when nobody listens there.
    kept: BTreeMap<u16, Option<u64>>,
    /// Pipes in which something arrives then.
    due: BTreeMap<(u64, u64), Arc<Pipe>>,
    n_sent: u64,
    n_files: u64,
}

thread_local! {
    static NET: RefCell<Net> = RefCell::default();
}

/// Lets arrive what is due.
pub fn deliver() {
    let now = sim::now_ns();
    let (arrived, closed) = NET.with_borrow_mut(|net| {
        let later = net.due.split_off(&(now + 1, 0));
        let arrived = std::mem::replace(&mut net.due, later);
        let limit = u64::try_from(KEPT_FOR.as_nanos()).unwrap_or(u64::MAX);
        let is_over = |since: &Option<u64>| since.is_some_and(|since| now - since > limit);
        let over: Vec<u16> =
            net.kept.iter().filter(|(_, since)| is_over(since)).map(|(port, _)| *port).collect();
        let closed: Vec<_> = over.iter().filter_map(|port| net.ports.remove(port)).collect();
        net.kept.retain(|port, _| !over.contains(port));
        (arrived, closed)
    });
    for pipe in arrived.into_values() {
        pipe.wake_reader();
    }
    closed.iter().for_each(|door| door.close());
}

/// What comes in one direction.
struct Pipe {
    from: u32,
    to: u32,
    flow: Mutex<Flow>,
}

#[derive(Default)]
struct Flow {
    pieces: VecDeque<Piece>,
    n_bytes: usize,
    end: Option<(u64, How)>,
    /// Nobody reads it any more.
    is_deaf: bool,
    last_due: u64,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

struct Piece {
    due: u64,
    bytes: Vec<u8>,
    n_read: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Ended,
    Reset,
}

impl Pipe {
    fn new(from: u32, to: u32) -> Arc<Self> {
        Arc::new(Self { from, to, flow: Mutex::default() })
    }

    fn flow(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock()
    }

    fn wake_reader(&self) {
        let reader = self.flow().reader.take();
        reader.into_iter().for_each(Waker::wake);
    }

    /// Something was put in that arrives at `due`.
    fn on_sent(self: &Arc<Self>, due: u64) {
        if due <= sim::now_ns() {
            self.wake_reader();
            return;
        }
        NET.with_borrow_mut(|net| {
            net.n_sent += 1;
            net.due.insert((due, net.n_sent), self.clone());
        });
    }

    fn read(&self, cx: &Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let now = sim::now_ns();
        let mut flow = self.flow();
        let n_before = buffer.filled().len();
        while buffer.remaining() > 0
            && let Some(piece) = flow.pieces.front_mut().filter(|piece| piece.due <= now)
        {
            let n_read = buffer.remaining().min(piece.bytes.len() - piece.n_read);
            buffer.put_slice(&piece.bytes[piece.n_read..piece.n_read + n_read]);
            piece.n_read += n_read;
            if piece.n_read == piece.bytes.len() {
                flow.pieces.pop_front();
            }
            flow.n_bytes -= n_read;
        }
        if buffer.filled().len() > n_before {
            let writer = flow.writer.take();
            drop(flow);
            writer.into_iter().for_each(Waker::wake);
            return Poll::Ready(Ok(()));
        }
        match flow.end {
            Some((due, how)) if due <= now && flow.pieces.is_empty() => match how {
                How::Ended => Poll::Ready(Ok(())),
                How::Reset => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            },
            _ => {
                let earlier = flow.reader.replace(cx.waker().clone());
                drop(flow);
                drop(earlier);
                Poll::Pending
            }
        }
    }

    fn write(self: &Arc<Self>, cx: Option<&Context<'_>>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut flow = self.flow();
        if flow.is_deaf || flow.end.is_some() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let n_written = bytes.len().min(CAPACITY - flow.n_bytes);
        if n_written == 0 && !bytes.is_empty() {
            let earlier = cx.and_then(|cx| flow.writer.replace(cx.waker().clone()));
            drop(flow);
            drop(earlier);
            return Poll::Pending;
        }
        let bytes = &bytes[..n_written];
        let due = sim::arrival(self.from, self.to).max(flow.last_due);
        flow.last_due = due;
        flow.n_bytes += n_written;
        flow.pieces.push_back(Piece { due, bytes: bytes.to_vec(), n_read: 0 });
        drop(flow);
        sim::digest(&due.to_be_bytes());
        sim::digest(bytes);
        self.on_sent(due);
        Poll::Ready(Ok(n_written))
    }

    fn end(self: &Arc<Self>, how: How) {
        let mut flow = self.flow();
        if flow.end.is_some() {
            return;
        }
        let due = sim::arrival(self.from, self.to).max(flow.last_due);
        flow.end = Some((due, how));
        let writer = flow.writer.take();
        drop(flow);
        drop(writer);
        self.on_sent(due);
    }

    /// Nobody reads it from now on; true when something was left.
    fn deafen(&self) -> bool {
        let mut flow = self.flow();
        flow.is_deaf = true;
        let (left, writer, reader) =
            (std::mem::take(&mut flow.pieces), flow.writer.take(), flow.reader.take());
        flow.n_bytes = 0;
        drop(flow);
        drop(reader);
        writer.into_iter().for_each(Waker::wake);
        !left.is_empty()
    }
}

/// A connection.
pub struct TcpStream {
    inbound: Arc<Pipe>,
    outbound: Arc<Pipe>,
    port: u16,
}

/// A connection to a socket in the state folder.
pub type UnixStream = TcpStream;

/// The two ends of a connection to `port`, and to the process `to`.
fn pair(to: u32, port: u16) -> (TcpStream, TcpStream) {
    let from = sim::current();
    let (there, back) = (Pipe::new(from, to), Pipe::new(to, from));
    let ours = TcpStream { inbound: back.clone(), outbound: there.clone(), port };
    (ours, TcpStream { inbound: there, outbound: back, port })
}

impl std::fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TcpStream({} to {})", self.outbound.from, self.outbound.to)
    }
}

impl TcpStream {
    /// Connects to a port of this machine.
    pub async fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        let address = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::InvalidInput)?;
        let door = NET.with_borrow(|net| net.ports.get(&address.port()).cloned());
        door.ok_or(io::ErrorKind::ConnectionRefused)?.connect()
    }

    /// Nothing waits for more here.
    pub fn set_nodelay(&self, _is_on: bool) -> io::Result<()> {
        Ok(())
    }

    /// Both ends are on this machine.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok((Ipv4Addr::LOCALHOST, self.port).into())
    }

    /// Both ends are on this machine.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    /// Whose the other end is.
    pub fn peer_cred(&self) -> io::Result<Credentials> {
        Ok(Credentials { pid: self.outbound.to })
    }

    /// Writes what can be written now.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.outbound.write(None, bytes) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// To look at what comes.
    pub fn look(&self) -> Look {
        Look(self.inbound.clone())
    }
}

impl Drop for TcpStream {
    fn drop(&mut self) {
        let is_left = self.inbound.deafen();
        self.outbound.end(if is_left { How::Reset } else { How::Ended });
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.inbound.read(cx, buffer)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.outbound.write(Some(cx), bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outbound.end(How::Ended);
        Poll::Ready(Ok(()))
    }
}

/// Whose the other end of a connection is.
#[derive(Clone, Copy, Debug)]
pub struct Credentials {
    pid: u32,
}

impl Credentials {
    /// This user.
    pub fn uid(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// The process.
    pub fn pid(&self) -> Option<i32> {
        i32::try_from(self.pid).ok()
    }
}

/// A look at a connection past the runtime.
pub struct Look(Arc<Pipe>);

impl Look {
    /// Nothing has been sent that is not read yet, and the other side has not ended. What is late here is known to the
    /// kernel of a real machine.
    pub fn is_silent(&self) -> bool {
        let flow = self.0.flow();
        flow.pieces.is_empty() && flow.end.is_none()
    }
}

/// Where connections come in.
struct Door {
    port: u16,
    queue: Mutex<Queue>,
}

struct Queue {
    /// Of each listener its process; who came last is who is connected to.
    pids: Vec<u32>,
    /// Who was connected to last.
    last: u32,
    waiting: VecDeque<TcpStream>,
    accepting: Vec<Waker>,
    is_closed: bool,
}

impl Door {
    fn new(port: u16) -> Arc<Self> {
        let queue = Queue {
            pids: vec![sim::current()],
            last: sim::current(),
            waiting: VecDeque::new(),
            accepting: Vec::new(),
            is_closed: false,
        };
        Arc::new(Self { port, queue: Mutex::new(queue) })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut queue = self.queue();
        if queue.is_closed {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if queue.waiting.len() >= BACKLOG {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (ours, theirs) = pair(queue.last, self.port);
        queue.waiting.push_back(theirs);
        let accepting = std::mem::take(&mut queue.accepting);
        drop(queue);
        accepting.into_iter().for_each(Waker::wake);
        Ok(ours)
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        poll_fn(|cx| {
            let mut queue = self.queue();
            match queue.waiting.pop_front() {
                Some(stream) => Poll::Ready(Ok(stream)),
                None => {
                    queue.accepting.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn close(&self) {
        let mut queue = self.queue();
        queue.is_closed = true;
        let left = (std::mem::take(&mut queue.waiting), std::mem::take(&mut queue.accepting));
        drop(queue);
        drop(left);
    }

    /// One listener more, of the process that runs now.
    fn join(&self) {
        let mut queue = self.queue();
        queue.pids.push(sim::current());
        queue.last = sim::current();
        queue.is_closed = false;
    }

    /// One listener less; true when it was the last.
    fn leave(&self) -> bool {
        let mut queue = self.queue();
        if let Some(idx) = queue.pids.iter().position(|pid| *pid == sim::current()) {
            queue.pids.remove(idx);
        } else {
            queue.pids.pop();
        }
        queue.last = queue.pids.last().copied().unwrap_or(queue.last);
        let accepting = std::mem::take(&mut queue.accepting);
        let is_last = queue.pids.is_empty();
        drop(queue);
        drop(accepting);
        is_last
    }
}

/// Listens on a port of this machine, which has no IPv6.
pub fn listen(address: IpAddr, port: u16, _backlog: u32) -> io::Result<TcpListener> {
    if address.is_ipv6() {
        return Err(io::ErrorKind::AddrNotAvailable.into());
    }
    if is_taken(port) {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let door = Door::new(port);
    NET.with_borrow_mut(|net| net.ports.insert(port, door.clone()));
    TcpListener::behind(door)
}

/// Whether somebody listens on a port, or keeps it.
pub fn is_taken(port: u16) -> bool {
    NET.with_borrow(|net| net.ports.contains_key(&port))
}

/// Who listens on a port: a process, or the holder, which is none here.
pub(crate) fn owner(port: u16) -> Option<Option<u32>> {
    let (door, is_kept) = NET.with_borrow(|net| {
        Some((net.ports.get(&port).cloned()?, matches!(net.kept.get(&port), Some(Some(_)))))
    })?;
    Some((!is_kept).then(|| door.queue().last))
}

/// Keeps a port when nobody listens there any more.
pub fn keep(port: u16) {
    NET.with_borrow_mut(|net| net.kept.insert(port, None));
}

/// The port that is kept, and a listener there.
pub fn kept() -> Option<(u16, TcpListener)> {
    let door = NET.with_borrow_mut(|net| {
        let (port, since) = net.kept.iter_mut().next()?;
        *since = None;
        net.ports.get(port).cloned()
    })?;
    door.join();
    Some((door.port, TcpListener::behind(door).ok()?))
}

/// Keeps a port no longer.
pub fn let_go(port: u16) {
    let left = NET.with_borrow_mut(|net| match net.kept.remove(&port) {
        Some(Some(_)) => net.ports.remove(&port),
        _ => None,
    });
    left.iter().for_each(|door| door.close());
}

/// What listens on a port.
pub struct TcpListener {
    door: Arc<Door>,
    /// What stands for it where it is given away.
    file: File,
}

impl std::fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TcpListener({})", self.door.port)
    }
}

impl TcpListener {
    fn behind(door: Arc<Door>) -> io::Result<Self> {
        let file = NET.with_borrow_mut(|net| {
            net.n_files += 1;
            let path = std::env::temp_dir().join(format!("door-{}-{}", std::process::id(), net.n_files));
            let file = File::create_new(&path)?;
            std::fs::remove_file(&path)?;
            net.files.insert(id_of(&file)?, door.clone());
            io::Result::Ok(file)
        })?;
        Ok(Self { door, file })
    }

    /// What another process gave away: it listens at the same door.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        let file = File::from(OwnedFd::from(listener));
        let id = id_of(&file)?;
        let door = NET.with_borrow(|net| net.files.get(&id).cloned()).ok_or(io::ErrorKind::NotFound)?;
        door.join();
        NET.with_borrow_mut(|net| {
            net.ports.entry(door.port).or_insert_with(|| door.clone());
            // Somebody listens there again.
            net.kept.entry(door.port).and_modify(|since| *since = None);
        });
        Ok(Self { door, file })
    }

    /// The next connection.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        Ok((self.door.accept().await?, self.local_addr()?))
    }

    /// The port.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok((Ipv4Addr::LOCALHOST, self.door.port).into())
    }

    /// Ends it, and gives the connections that wait.
    pub fn drain(self) -> Vec<TcpStream> {
        std::mem::take(&mut self.door.queue().waiting).into()
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        if !self.door.leave() {
            return;
        }
        let port = self.door.port;
        let is_kept = NET.with_borrow_mut(|net| {
            let is_ours = net.ports.get(&port).is_some_and(|door| Arc::ptr_eq(door, &self.door));
            match net.kept.get_mut(&port).filter(|_| is_ours) {
                Some(since) => {
                    *since = Some(sim::now_ns());
                    true
                }
                None => {
                    if is_ours {
                        net.ports.remove(&port);
                    }
                    false
                }
            }
        });
        if !is_kept {
            self.door.close();
        }
    }
}

/// What listens on a socket in the state folder.
#[derive(Debug)]
pub struct UnixListener {
    inner: TcpListener,
    /// The file that stands for it.
    _file: std::os::unix::net::UnixListener,
}

impl UnixListener {
    /// One that [`crate::socket::listen`] made.
    pub fn from_std(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        let file = File::from(listener.as_fd().try_clone_to_owned()?);
        let id = id_of(&file)?;
        let door = NET.with_borrow(|net| {
            net.sockets.values().find(|(known, _)| *known == id).map(|(_, door)| door.clone())
        });
        let door = door.ok_or(io::ErrorKind::NotFound)?;
        door.join();
        Ok(Self { inner: TcpListener { door, file }, _file: listener })
    }

    /// The next connection.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        self.inner.accept().await
    }
}

/// What connects to the socket `path`, as long as it is the file `place`, comes in where that file is listened at.
pub(crate) fn open_door(path: &Path, place: FileId) {
    // Who listens comes in when the runtime knows of it.
    let door = Door::new(0);
    door.queue().pids.clear();
    NET.with_borrow_mut(|net| net.sockets.insert(path.to_owned(), (place, door)));
}

/// Which file it is.
fn id_of(file: &File) -> io::Result<FileId> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
}

pub(crate) fn connect_to(path: &Path, place: FileId) -> io::Result<UnixStream> {
    let found = NET.with_borrow(|net| net.sockets.get(path).cloned());
    let door = found.filter(|(known, _)| *known == place).map(|(_, door)| door);
    door.ok_or(io::ErrorKind::ConnectionRefused)?.connect()
}

pub(crate) fn is_open(path: &Path, place: FileId) -> bool {
    let found = NET.with_borrow(|net| net.sockets.get(path).cloned());
    found.is_some_and(|(known, door)| known == place && !door.queue().is_closed)
}

/// A descriptor for those who want one: it leads nowhere.
fn nowhere() -> BorrowedFd<'static> {
    static NOWHERE: OnceLock<File> = OnceLock::new();
    NOWHERE.get_or_init(|| File::open("/dev/null").expect("every machine has it")).as_fd()
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        nowhere()
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
