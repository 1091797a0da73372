# Runs debugpy.adapter over stdio, without the 40 ms that its sockets cost by default.
#
# The program's side writes head and body of a message apart, with Nagle's algorithm on; our delayed
# acknowledgement would hold the body back. So acknowledgements are sent at once here: TCP_QUICKACK is not
# permanent and is armed again around each recv. Reads are buffered too: debugpy reads heads byte by byte.
import sys

sys.path[:] = [entry for entry in sys.path if entry]  # the working directory may hold a json.py
try:
    from debugpy.common import messaging
except ImportError:
    sys.exit(86)
import socket

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

from debugpy.adapter.__main__ import main

sys.argv[:] = ["debugpy.adapter"]
main()
