//! CORE: sealed session ids of the older revisions.
//!
//! A session id says everything there is to know about the session, encrypted and authenticated under a key that
//! every coordinator of this user has: a restarted one needs no table to know its clients again.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

use crate::revision::Revision;

/// Longest client name that is remembered, in bytes.
const CLIENT_NAME_MAX: usize = 64;
/// Bytes of an XChaCha20 nonce, which is long enough to be random.
const NONCE_LEN: usize = 24;
/// Bytes of [`Session::number`].
const NUMBER_LEN: usize = 16;
/// What the seal is for, so that it opens nothing else.
const PURPOSE: &[u8] = b"baton mcp session 1";

/// A session of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// What was agreed in `initialize`.
    pub revision: Revision,
    /// Which client token it was opened with.
    pub epoch: u32,
    /// Random; tells sessions apart.
    pub number: [u8; NUMBER_LEN],
    /// Who the client said it is.
    pub client: String,
}

/// Makes and reads session ids.
pub struct Sealer(XChaCha20Poly1305);

impl Sealer {
    /// Seals under `key`, which every coordinator of this user has.
    pub fn new(key: [u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&key.into()))
    }

    /// The id of `session`; `nonce` is random.
    pub fn seal(&self, session: &Session, nonce: [u8; NONCE_LEN]) -> String {
        let mut plain = Vec::with_capacity(5 + NUMBER_LEN + CLIENT_NAME_MAX);
        plain.push(Revision::ALL.iter().position(|it| *it == session.revision).map_or(0, |idx| idx as u8));
        plain.extend_from_slice(&session.epoch.to_be_bytes());
        plain.extend_from_slice(&session.number);
        let name_len = session.client.floor_char_boundary(CLIENT_NAME_MAX);
        plain.extend_from_slice(&session.client.as_bytes()[..name_len]);
        let sealed = self
            .0
            .encrypt(&XNonce::from(nonce), Payload { msg: &plain, aad: PURPOSE })
            .expect("invariant: a hundred bytes can be encrypted");
        let mut id = nonce.to_vec();
        id.extend_from_slice(&sealed);
        URL_SAFE_NO_PAD.encode(id)
    }

    /// The session behind `id`, when we made it.
    pub fn open(&self, id: &[u8]) -> Option<Session> {
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let plain = self.0.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: PURPOSE }).ok()?;
        let (revision, rest) = plain.split_first()?;
        let (epoch, rest) = rest.split_first_chunk::<4>()?;
        let (number, name) = rest.split_first_chunk::<NUMBER_LEN>()?;
        Some(Session {
            revision: *Revision::ALL.get(usize::from(*revision))?,
            epoch: u32::from_be_bytes(*epoch),
            number: *number,
            client: String::from_utf8(name.to_vec()).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        Session {
            revision: Revision::V2025_06_18,
            epoch: 3,
            number: [9; 16],
            client: "claude-code".to_owned(),
        }
    }

    #[test]
    fn a_session_is_known_again_by_whoever_has_the_key() {
        let id = Sealer::new([1; 32]).seal(&session(), [2; 24]);
        assert_eq!(Sealer::new([1; 32]).open(id.as_bytes()), Some(session()));
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "fit for a header");
    }

    #[test]
    fn a_forged_or_foreign_session_is_not() {
        let sealer = Sealer::new([1; 32]);
        let id = sealer.seal(&session(), [2; 24]);
        assert_eq!(Sealer::new([7; 32]).open(id.as_bytes()), None);
        for idx in 0..id.len() {
            let mut forged = id.clone().into_bytes();
            forged[idx] = if forged[idx] == b'A' { b'B' } else { b'A' };
            assert_eq!(sealer.open(&forged), None, "byte {idx}");
        }
        for short in ["", "AAAA", &id[..id.len() - 1], &id[..30], "\0", &"A".repeat(100_000)] {
            assert_eq!(sealer.open(short.as_bytes()), None);
        }
    }

    #[test]
    fn long_names_are_cut_at_a_character() {
        let mut session = session();
        session.client = "é".repeat(100);
        let sealer = Sealer::new([1; 32]);
        let id = sealer.seal(&session, [0; 24]);
        assert_eq!(sealer.open(id.as_bytes()).unwrap().client, "é".repeat(32));
    }
}
