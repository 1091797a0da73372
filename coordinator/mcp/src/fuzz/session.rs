//! Sealed session ids: nothing opens but what was sealed under the key, to the last bit.

use arbitrary::{Result, Unstructured};

use crate::revision::Revision;
use crate::session::{Sealer, Session};

/// A session, its nonce, and what somebody makes of its id.
struct Attempt {
    session: Session,
    nonce: [u8; 24],
    steps: Vec<Step>,
    other: Vec<u8>,
}

enum Step {
    Flip { at: usize, bit: u8 },
    Put { at: usize, byte: u8 },
    Insert { at: usize, byte: u8 },
    Remove { at: usize },
}

pub(super) fn run(bytes: &[u8]) {
    let Ok(attempt) = read(&mut Unstructured::new(bytes)) else { return };
    let sealer = Sealer::new([7; 32]);
    let id = sealer.seal(&attempt.session, attempt.nonce);
    let opened = sealer.open(id.as_bytes()).expect("what was sealed opens");
    let client = &attempt.session.client;
    assert!(client.starts_with(&opened.client) && opened.client.len() <= 64);
    assert!(client.len() <= 64 || opened.client.len() > 60, "no more is cut than must be");
    assert_eq!(Session { client: client.clone(), ..opened }, attempt.session);
    assert_eq!(Sealer::new([8; 32]).open(id.as_bytes()), None, "another user's key");
    let forged = forge(id.as_bytes(), &attempt.steps);
    assert_eq!(
        sealer.open(&forged).is_some(),
        forged == id.as_bytes(),
        "{}",
        String::from_utf8_lossy(&forged)
    );
    assert_eq!(sealer.open(&attempt.other).is_some(), attempt.other == id.as_bytes());
}

fn read(input: &mut Unstructured<'_>) -> Result<Attempt> {
    let revision = *input.choose(&Revision::ALL)?;
    let (epoch, number, nonce) = (input.arbitrary()?, input.arbitrary()?, input.arbitrary()?);
    let n_steps = input.int_in_range(0..=4)?;
    let steps = (0..n_steps).map(|_| step(input)).collect::<Result<_>>()?;
    let client: String = input.arbitrary()?;
    let session = Session { revision, epoch, number, client };
    let other = input.bytes(input.len())?.to_vec();
    Ok(Attempt { session, nonce, steps, other })
}

fn step(input: &mut Unstructured<'_>) -> Result<Step> {
    let at = usize::from(input.arbitrary::<u8>()?);
    Ok(match input.int_in_range(0..=3)? {
        0 => Step::Flip { at, bit: input.int_in_range(0..=7)? },
        1 => Step::Put { at, byte: input.arbitrary()? },
        2 => Step::Insert { at, byte: input.arbitrary()? },
        _ => Step::Remove { at },
    })
}

fn forge(id: &[u8], steps: &[Step]) -> Vec<u8> {
    let mut forged = id.to_vec();
    for step in steps {
        let len = forged.len();
        match *step {
            Step::Flip { at, bit } => forged[at % len] ^= 1 << bit,
            Step::Put { at, byte } => forged[at % len] = byte,
            Step::Insert { at, byte } => forged.insert(at % (len + 1), byte),
            Step::Remove { at } => drop(forged.remove(at % len)),
        }
    }
    forged
}
