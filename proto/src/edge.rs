//! What the coordinator says to an agent beside the bytes of an MCP call, and how an agent refuses one.
//!
//! An agent serves MCP on `POST http://127.0.0.1:<its port>/mcp`, stateless, in every revision.

use crate::ids::WindowId;
use crate::percent;

/// Header on a call routed to the live window: the term it was routed under, as `generation.seq`.
///
/// The agent refuses, unrun, a call whose term is lower than the highest one it has seen, and every such call
/// while it is fenced. A higher term is taken as a grant that overtook its notice.
pub const TERM_HEADER: &str = "baton-term";

/// Header on a call that names its window (pin, `window` argument, session handle): no term is needed.
pub const PIN_HEADER: &str = "baton-pin";

/// Header of an answer with status 409: the call was refused and provably not run; its value says why.
pub const REFUSED_HEADER: &str = "baton-refused";

/// [`REFUSED_HEADER`]: the call's term is over.
pub const REFUSED_STALE_TERM: &str = "stale-term";

/// [`REFUSED_HEADER`]: the agent lost touch with the coordinator and does not run calls of its term.
pub const REFUSED_FENCED: &str = "fenced";

/// [`REFUSED_HEADER`]: the agent finishes the calls that it has and takes no more.
pub const REFUSED_ENDING: &str = "ending";

/// [`REFUSED_HEADER`]: the agent has as many bytes of calls under way as it takes.
pub const REFUSED_BUSY: &str = "busy";

/// `GET` on this path of an agent, with `?seconds=N`, is answered with a [`crate::control::Profile`] when the time has
/// passed; with status 404 by an agent that cannot take one, and 409 while another one is taken.
pub const PROFILE_PATH: &str = "/profile";

/// Header on a forwarded call: what the client calls itself, in printable ASCII; for the agent's log.
pub const CLIENT_HEADER: &str = "baton-client";

/// Header on a forwarded call: its ID in the logs, the beginning of the coordinator's instance and a number; it says
/// nothing to a client.
pub const CALL_HEADER: &str = "baton-call";

/// Header on a forwarded call: the same text for all calls of one client, as far as it can be told from the others:
/// its MCP session, or else its name. Debug sessions belong to it; it opens nothing.
pub const CALLER_HEADER: &str = "baton-caller";

/// Header that the bridge sends with its client's working directory, in [`percent`]'s form: its calls belong to the
/// window that holds it. The edge passes it on to an agent, where relative paths mean that folder first.
pub const FOLDER_HEADER: &str = "baton-folder";

/// Header beside [`FOLDER_HEADER`]: the root of the tree that the folder is in, when it is in one. No window outside of
/// it answers, and to an agent relative paths mean no file outside of it.
pub const TREE_HEADER: &str = "baton-tree";

/// Header beside [`TREE_HEADER`], of any value: another tree is around that one. A window on a folder that is in no tree
/// has the trees in it, and none that is in one of them.
pub const NESTED_HEADER: &str = "baton-nested";

/// Header of an answer to the bridge, which repeats it from then on: the folder by which its window was found. No
/// window of another folder answers, also once that window is closed.
pub const BOUND_HEADER: &str = "baton-bound";

/// Header of an answer to the bridge, which repeats it from then on: id and name of the window that its client heard of
/// last, as [`Heard`] writes them. Empty: of none yet.
pub const HEARD_HEADER: &str = "baton-heard";

/// Header of an answer to the bridge: the port that the coordinator has now. A bridge never learns of a change otherwise,
/// and starts the next coordinator when nothing else is left that knows the port.
pub const PORT_HEADER: &str = "baton-port";

/// Header on a forwarded call, in [`percent`]'s form: a word for this window that stands in the answer, because
/// several windows are open.
pub const LABEL_HEADER: &str = "baton-label";

/// Header on a forwarded call, in [`percent`]'s form: a sentence with which the answer begins, because the client
/// has not heard of this window before.
pub const NOTICE_HEADER: &str = "baton-notice";

/// Key of `_meta` that names the window and term on every result.
pub const META_WINDOW: &str = "baton/window";

/// Name of the optional tool argument that names a window; every tool has it.
pub const WINDOW_ARGUMENT: &str = "window";

/// Name of the optional tool argument that names a debug session, and with it a window.
pub const SESSION_ARGUMENT: &str = "session_id";

/// A window as a client heard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its id.
    pub id: WindowId,
    /// Which start of its agent it was.
    pub incarnation: u64,
    /// What it was called then.
    pub name: String,
}

impl Heard {
    /// As [`HEARD_HEADER`] has it.
    pub fn to_header(&self) -> String {
        format!("{} {} {}", self.id, self.incarnation, percent::encode(&self.name))
    }

    /// What [`Heard::to_header`] made.
    pub fn from_header(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let mut next = || parts.next();
        Some(Self {
            id: next()?.parse().ok()?,
            incarnation: next()?.parse().ok()?,
            name: percent::decode(next()?)?,
        })
    }
}

/// What a handle in the shape of a UUID stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handle {
    /// A debug session.
    Session,
    /// A breakpoint.
    Breakpoint,
}

impl Handle {
    /// The UUID (version 4 in its shape) that stands for an id like `a1b2c3d4-7`: eight hexadecimal digits of the
    /// agent, and a number. It can be read back, so that nobody has to keep a table of them.
    pub fn to_uuid(self, id: &str) -> Option<String> {
        let (agent, number) = id.split_once('-')?;
        let agent = u32::from_str_radix(agent, 16).ok().filter(|_| agent.len() == 8)?;
        let number: u64 = number.parse().ok().filter(|number| *number < 1 << 48)?;
        let [high, middle, low] = self.check_digits(agent, number);
        Some(format!("{agent:08x}-{high:04x}-4{middle:03x}-8{low:03x}-{number:012x}"))
    }

    /// The id that a UUID made by [`Handle::to_uuid`] stands for.
    pub fn read_uuid(self, uuid: &str) -> Option<String> {
        let uuid = uuid.trim().to_ascii_lowercase();
        let id = format!(
            "{}-{}",
            uuid.get(..8)?,
            u64::from_str_radix(uuid.get(24..).filter(|number| number.len() == 12)?, 16).ok()?
        );
        (self.to_uuid(&id)? == uuid).then_some(id)
    }

    /// 16, 12 and 12 bits that tell a UUID of ours from any other, and of this kind from the other (FNV-1a).
    fn check_digits(self, agent: u32, number: u64) -> [u64; 3] {
        let bytes = [&[self as u8][..], &agent.to_be_bytes(), &number.to_be_bytes()].concat();
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        [hash >> 48, (hash >> 36) & 0xfff, (hash >> 24) & 0xfff]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_windows_come_through_a_header() {
        let heard = Heard { id: "a-1".parse().unwrap(), incarnation: 7, name: "my äpp\n%".to_owned() };
        assert_eq!(heard.to_header(), "a-1 7 my%20%C3%A4pp%0A%25");
        assert_eq!(Heard::from_header(&heard.to_header()), Some(heard));
        for wrong in ["", "a-1", "%zz", "a-1 7", "a-1 x a", "a-1 7 %f", "a-1 7 %ff"] {
            assert_eq!(Heard::from_header(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn handles_are_read_back_from_their_uuids() {
        let uuid = Handle::Session.to_uuid("a1b2c3d4-17").unwrap();
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4");
        assert_eq!(Handle::Session.read_uuid(&uuid).as_deref(), Some("a1b2c3d4-17"));
        assert_eq!(Handle::Session.read_uuid(&uuid.to_uppercase()).as_deref(), Some("a1b2c3d4-17"));
        assert_eq!(Handle::Breakpoint.read_uuid(&uuid), None, "one kind is not the other");
        let forged = uuid.replace(&uuid[9..13], "0000");
        assert_eq!(Handle::Session.read_uuid(&forged), None);
        for id in ["", "a1b2c3d4", "a1b2c3d4-x", "a1b2c3d-1", "a1b2c3d4--1", "main-1"] {
            assert_eq!(Handle::Session.to_uuid(id), None, "{id}");
        }
        for text in ["", "a1b2c3d4-17", "é1b2c3d4-0000-4000-8000-000000000001", "no"] {
            assert_eq!(Handle::Session.read_uuid(text), None, "{text}");
        }
    }
}
