# Runs debugpy.adapter over stdio, without the 40 ms that its sockets cost by default, and without other users.
#
# The program connects to ports on which debugpy hears everybody who speaks its language; here it hears only those
# whom the kernel knows as this user, or root.
#
# The program's side writes head and body of a message apart, with Nagle's algorithm on; our delayed
# acknowledgement would hold the body back. So acknowledgements are sent at once here: TCP_QUICKACK is not
# permanent and is armed again around each recv. Reads are buffered too: debugpy reads heads byte by byte.
import sys

sys.path[:] = [entry for entry in sys.path if entry]  # the working directory may hold a json.py
try:
    from debugpy.common import messaging, sockets
except ImportError:
    sys.exit(86)
import os
import signal
import socket
import struct
import threading

QUICKACK = getattr(socket, "TCP_QUICKACK", None)


class QuickSocket:
    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def arm(self):
        if QUICKACK is not None:
            try:
                self.sock.setsockopt(socket.IPPROTO_TCP, QUICKACK, 1)
            except OSError:
                pass

    def fill(self):
        self.arm()
        data = self.sock.recv(65536)
        self.arm()
        self.buffer += data
        return bool(data)

    def readline(self):
        while b"\n" not in self.buffer:
            if not self.fill():
                line, self.buffer = self.buffer, b""
                return line
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line + b"\n"

    def read(self, size):
        if not self.buffer:
            self.fill()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def write(self, data):
        self.sock.sendall(data)
        return len(data)

    def flush(self):
        pass

    def close(self):
        pass


def from_socket(cls, sock, name=None):
    sock.settimeout(None)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        pass
    quick = QuickSocket(sock)

    def cleanup():
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        sock.close()

    return cls(quick, quick, name or repr(sock), cleanup)


messaging.JsonIOStream.from_socket = classmethod(from_socket)


def written(address):
    """An address and port as the kernel's tables have them: of IPv4 in both."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, address[0])
    forms = [packed] if len(packed) == 16 else [packed, bytes(10) + b"\xff\xff" + packed]
    words = [struct.unpack(f"={len(form) // 4}I", form) for form in forms]
    return ["".join(f"{word:08X}" for word in form) + f":{address[1]:04X}" for form in words]


def owner(sock):
    """The user at the other end of a connection on this machine; None where the system does not tell, -1 when nobody
    is there any more: what is left of a closed end is called root's, and is not asked about."""
    try:
        own, other = written(sock.getsockname()), written(sock.getpeername())
    except OSError:
        return -1
    tables = [path for path in ("/proc/net/tcp", "/proc/net/tcp6") if os.path.exists(path)]
    for path in tables:
        with open(path) as table:
            for line in table:
                # sl local_address rem_address st queues timer retransmissions uid ...
                fields = line.split(None, 8)
                if fields[1] in other and fields[2] in own and fields[3] == "01":
                    return int(fields[7])
    return -1 if tables else None


def serve(name, handler, *args, **kwargs):
    def checked(sock):
        if owner(sock) in (None, 0, os.geteuid()):
            handler(sock)
        else:
            sockets.close_socket(sock)

    return serve_all(name, checked, *args, **kwargs)


serve_all = sockets.serve
sockets.serve = serve


def sweep():
    """Ends what the program left behind. The agent does it too, but it may have been killed."""
    mark = os.environ.get("BATON_DEBUG_SESSION")
    entry = f"BATON_DEBUG_SESSION={mark}".encode()
    for pid in os.listdir("/proc") if mark and os.path.isdir("/proc") else ():
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment:
                is_ours = entry in environment.read().split(b"\0")
            if is_ours:
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


class Input:
    """Standard input. Its end is the end of the session, whatever debugpy still waits for."""

    GRACE = 0.5  # seconds for debugpy to end by itself

    def __init__(self, stream):
        self.stream = stream

    def checked(self, data):
        if not data:
            timer = threading.Timer(self.GRACE, self.end)
            timer.daemon = True
            timer.start()
        return data

    def end(self):
        sweep()
        os._exit(0)

    def readline(self):
        return self.checked(self.stream.readline())

    def read(self, size):
        return self.checked(self.stream.read(size))

    def close(self):
        self.stream.close()


def from_stdio(cls, name="stdio"):
    return cls(Input(sys.stdin.buffer), sys.stdout.buffer, name)


messaging.JsonIOStream.from_stdio = classmethod(from_stdio)

from debugpy.adapter import launchers
from debugpy.adapter.__main__ import main


def disconnect(launcher):
    # One that was killed tells no exit code, and debugpy waits 30 s for it if the program's end is read first.
    with launcher.session:
        if launcher.exit_code is None:
            launcher.exit_code = -1
    disconnect_all(launcher)


disconnect_all = launchers.Launcher.disconnect
launchers.Launcher.disconnect = disconnect

sys.argv[:] = ["debugpy.adapter"]
try:
    main()
finally:
    sweep()
