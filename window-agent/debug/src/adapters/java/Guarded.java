import com.sun.jdi.Bootstrap;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.spi.Connection;

import java.io.*;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

/**
 * Keeps other users of the machine from the Java adapter and its program.
 *
 * The adapter as it comes listens on a port, and has its program listen on another one, for whoever is first; both
 * run code. With this it speaks over its standard streams, and the program comes to it: who comes is heard when the
 * kernel knows the other end as this user's.
 */
final class Guarded {
    private static final byte[] HELLO = "JDWP-Handshake".getBytes(StandardCharsets.US_ASCII);
    private static final int LOOK_MS = 100;
    private static final int PATIENCE_MS = 10_000;

    /** The standard streams, in the place of a socket. What prints to standard output goes to the other one. */
    static final class Stdio implements Closeable {
        private final InputStream in = new BufferedInputStream(System.in);
        private final OutputStream out = new BufferedOutputStream(new FileOutputStream(FileDescriptor.out));

        Stdio() {
            System.setOut(System.err);
        }

        InputStream getInputStream() {
            return in;
        }

        OutputStream getOutputStream() {
            return out;
        }

        @Override
        public void close() {
        }
    }

    /** Where the program comes to. */
    static final class Awaited {
        private final ServerSocket listener;

        Awaited() throws IOException {
            listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
            listener.setSoTimeout(LOOK_MS);
        }

        int port() {
            return listener.getLocalPort();
        }

        /** The program's virtual machine; nobody listens afterwards. What fails is not worth a second try. */
        VirtualMachine accept(Process program) throws IOException {
            try {
                return await(program);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private VirtualMachine await(Process program) throws IOException {
            try (listener) {
                long deadline = System.currentTimeMillis() + PATIENCE_MS;
                while (System.currentTimeMillis() < deadline) {
                    try {
                        Socket socket = listener.accept();
                        if (isOwn(socket)) return Bootstrap.virtualMachineManager().createVirtualMachine(new Wire(socket));
                        socket.close();
                    } catch (SocketTimeoutException e) {
                        if (!program.isAlive()) throw new IllegalStateException("the program ended before it could be debugged");
                    }
                }
            }
            throw new IllegalStateException("the program did not connect to its debugger");
        }
    }

    /** The debugger's protocol over a socket. */
    private static final class Wire extends Connection {
        private final Socket socket;
        private final DataInputStream in;
        private final OutputStream out;

        Wire(Socket socket) throws IOException {
            this.socket = socket;
            socket.setTcpNoDelay(true);
            in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
            out = socket.getOutputStream();
            out.write(HELLO);
            byte[] answer = new byte[HELLO.length];
            in.readFully(answer);
            if (!Arrays.equals(answer, HELLO)) throw new IllegalStateException("what connected is no Java program");
        }

        @Override
        public byte[] readPacket() throws IOException {
            byte[] packet;
            try {
                int length = in.readInt();
                if (length < 11) throw new IOException("a packet without a head");
                packet = new byte[length];
                for (int n = 0; n < 4; n++) packet[n] = (byte) (length >> (24 - 8 * n));
                in.readFully(packet, 4, length - 4);
            } catch (EOFException | SocketException e) {
                return new byte[0];
            }
            return packet;
        }

        @Override
        public void writePacket(byte[] packet) throws IOException {
            synchronized (out) {
                out.write(packet);
                out.flush();
            }
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }

        @Override
        public boolean isOpen() {
            return !socket.isClosed();
        }
    }

    /** Whether the other end is this user's, or root's; where the system does not tell, it counts as such. */
    private static boolean isOwn(Socket socket) throws IOException {
        List<String> own = written(socket.getLocalAddress(), socket.getLocalPort());
        List<String> other = written(socket.getInetAddress(), socket.getPort());
        boolean isTold = false;
        for (String name : new String[] {"/proc/net/tcp", "/proc/net/tcp6"}) {
            Path table = Path.of(name);
            if (!Files.isReadable(table)) continue;
            isTold = true;
            for (String line : Files.readAllLines(table)) {
                // sl local_address rem_address st queues timer retransmissions uid; 01 is an open connection.
                String[] fields = line.trim().split("\\s+");
                if (other.contains(fields[1]) && own.contains(fields[2]) && fields[3].equals("01")) {
                    int owner = Integer.parseInt(fields[7]);
                    return owner == 0 || owner == (Integer) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
                }
            }
        }
        return !isTold;
    }

    /** An IPv4 address as both of the kernel's tables have it: its words are as the machine keeps them. */
    private static List<String> written(InetAddress address, int port) {
        byte[] b = address.getAddress();
        boolean isLittle = java.nio.ByteOrder.nativeOrder() == java.nio.ByteOrder.LITTLE_ENDIAN;
        String word = isLittle
            ? String.format("%02X%02X%02X%02X", b[3], b[2], b[1], b[0])
            : String.format("%02X%02X%02X%02X", b[0], b[1], b[2], b[3]);
        String mapped = "0000000000000000" + (isLittle ? "FFFF0000" : "0000FFFF") + word;
        String end = String.format(":%04X", port);
        return List.of(word + end, mapped + end);
    }
}
