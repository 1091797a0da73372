//! Who owns a TCP socket of this host, asked of the kernel: sock_diag(7). Linux has it, other systems do not.
//!
//! One question, one answer, and nothing that waits: it may be asked for every connection that comes in.
#![cfg(target_os = "linux")]

use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::{Socket, protocols::NETLINK_SOCK_DIAG};

/// Longest answer about one socket: its header, and attributes that were not asked for.
const ANSWER_LEN: usize = 4096;

/// The number of the protocol in a request.
const TCP: u8 = 6;

/// Any socket with these addresses: its cookie is not known.
const NO_COOKIE: [u8; 8] = [0xff; 8];

/// The numbers of the address families in a request.
const INET: u8 = 2;
const INET6: u8 = 10;

/// The user of the one TCP socket that is bound to `source` and connected to `destination`.
///
/// The error is of kind `Unsupported` in a sandbox without this kind of question, and `NotConnected` when nobody holds
/// such a socket any more.
pub fn owner_of(source: SocketAddr, destination: SocketAddr) -> io::Result<u32> {
    let socket =
        Socket::new(NETLINK_SOCK_DIAG).map_err(|error| io::Error::new(io::ErrorKind::Unsupported, error))?;
    let (source_ip, destination_ip) = (source.ip().to_canonical(), destination.ip().to_canonical());
    let (family, mut socket_id) = match source_ip {
        IpAddr::V4(_) => (INET, SocketId::new_v4()),
        IpAddr::V6(_) => (INET6, SocketId::new_v6()),
    };
    (socket_id.source_address, socket_id.destination_address) = (source_ip, destination_ip);
    (socket_id.source_port, socket_id.destination_port) = (source.port(), destination.port());
    socket_id.cookie = NO_COOKIE;
    let request = InetRequest {
        family,
        protocol: TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::all(),
        socket_id,
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut message =
        NetlinkMessage::new(header, NetlinkPayload::from(SockDiagMessage::InetRequest(request)));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    // The kernel answers while it takes the question: nothing here waits.
    socket.send(&bytes, 0)?;
    let mut answer = Vec::with_capacity(ANSWER_LEN);
    socket.recv(&mut answer, 0)?;
    read_owner(&answer)
}

fn read_owner(answer: &[u8]) -> io::Result<u32> {
    let message = NetlinkMessage::<SockDiagMessage>::deserialize(answer).map_err(io::Error::other)?;
    match message.payload {
        // What nobody holds any more has no inode, and no owner but root by default.
        NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response))
            if response.header.inode != 0 =>
        {
            Ok(response.header.uid)
        }
        _ => Err(io::ErrorKind::NotConnected.into()),
    }
}
