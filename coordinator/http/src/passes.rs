//! Who may see the page: one-time links, and the cookies that they become.
//!
//! A link is for one use within a minute. What it opens is good for twelve hours, with this run of the coordinator and
//! with the present client token alone. Nothing here is random: each is derived from the secret, the run and a number,
//! so that nobody without the secret can guess one, and no two are the same.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use baton_proto::discovery::{PagePass, Secret, Token};
use baton_proto::ids::InstanceId;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// How long a link can be used.
pub const LINK_LIFE: Duration = Duration::from_secs(60);
/// How long a page stays open without a new link.
pub const PAGE_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// Links that wait for their use, and pages that are open; one more takes the place of the oldest.
const PASSES_MAX: usize = 16;

/// All that are good at the moment; cheap to clone.
#[derive(Clone, Debug)]
pub struct Passes(Arc<Mutex<Held>>);

#[derive(Debug)]
struct Held {
    secret: Secret,
    instance: InstanceId,
    host: Arc<str>,
    n_made: u64,
    links: VecDeque<(Token, Instant)>,
    open: VecDeque<Open>,
}

/// A page that a browser may see.
#[derive(Debug)]
struct Open {
    cookie: Token,
    form: Token,
    /// Rotations of the client token when it was opened.
    epoch: u32,
    until: Instant,
}

impl Passes {
    /// None yet, of one run of the coordinator.
    pub fn new(secret: &Secret, instance: &InstanceId) -> Self {
        Self(Arc::new(Mutex::new(Held {
            host: secret.page_host().into(),
            secret: secret.clone(),
            instance: instance.clone(),
            n_made: 0,
            links: VecDeque::new(),
            open: VecDeque::new(),
        })))
    }

    /// The name under which browsers reach the page.
    pub fn host(&self) -> Arc<str> {
        self.held().host.clone()
    }

    /// A new link, good for [`LINK_LIFE`].
    pub fn link(&self, now: Instant) -> Token {
        let mut held = self.held();
        held.n_made += 1;
        let link = held.secret.page_token(PagePass::Link, &held.instance, held.n_made);
        push(&mut held.links, (link.clone(), now + LINK_LIFE));
        link
    }

    /// The cookie for whoever shows this link, once.
    pub fn redeem(&self, link: &[u8], epoch: u32, now: Instant) -> Option<Token> {
        let mut held = self.held();
        held.links.retain(|(_, until)| *until > now);
        let idx = held.links.iter().position(|(known, _)| known.matches(link))?;
        held.links.remove(idx);
        held.n_made += 1;
        let make = |pass| held.secret.page_token(pass, &held.instance, held.n_made);
        let (cookie, form) = (make(PagePass::Cookie), make(PagePass::Form));
        push(&mut held.open, Open { cookie: cookie.clone(), form, epoch, until: now + PAGE_LIFE });
        Some(cookie)
    }

    /// What a page that has this cookie shows with a request that changes something; `None`: the page is not open.
    pub fn form(&self, cookie: &[u8], epoch: u32, now: Instant) -> Option<Token> {
        let mut held = self.held();
        held.open.retain(|open| open.until > now && open.epoch == epoch);
        held.open.iter().find(|open| open.cookie.matches(cookie)).map(|open| open.form.clone())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock()
    }
}

fn push<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() >= PASSES_MAX {
        list.pop_front();
    }
    list.push_back(item);
}

#[cfg(test)]
mod tests {
    use baton_proto::discovery::KEY_LEN;

    use super::*;

    fn passes(run: &str) -> Passes {
        Passes::new(&Secret::new([7; KEY_LEN]), &InstanceId(run.to_owned()))
    }

    fn open(passes: &Passes, now: Instant) -> Token {
        let link = passes.link(now);
        passes.redeem(link.expose().as_bytes(), 0, now).unwrap()
    }

    #[test]
    fn a_link_is_for_one_use_within_a_minute() {
        let (passes, now) = (passes("a"), Instant::now());
        let (first, second) = (passes.link(now), passes.link(now));
        assert!(passes.redeem(b"guessed", 0, now).is_none());
        assert!(passes.redeem(first.expose().as_bytes(), 0, now + LINK_LIFE / 2).is_some());
        assert!(passes.redeem(first.expose().as_bytes(), 0, now).is_none(), "it was used");
        assert!(passes.redeem(second.expose().as_bytes(), 0, now + LINK_LIFE).is_none(), "it has expired");
    }

    #[test]
    fn a_page_stays_open_for_its_coordinator_its_token_and_half_a_day() {
        let (here, now) = (passes("a"), Instant::now());
        let cookie = open(&here, now);
        let form = |passes: &Passes, epoch, now| passes.form(cookie.expose().as_bytes(), epoch, now);
        assert!(form(&here, 0, now + PAGE_LIFE / 2).is_some());
        assert!(form(&passes("b"), 0, now).is_none(), "another coordinator");
        assert!(here.form(b"", 0, now).is_none() && here.form(here.host().as_bytes(), 0, now).is_none());
        let form = form(&here, 0, now).unwrap();
        assert!(!form.matches(cookie.expose().as_bytes()), "one does not tell the other");
        assert!(here.form(cookie.expose().as_bytes(), 1, now).is_none(), "the client token was rotated");
        let cookie = open(&here, now);
        assert!(here.form(cookie.expose().as_bytes(), 0, now + PAGE_LIFE).is_none(), "it has expired");
    }

    #[test]
    fn nobody_fills_the_memory_with_links() {
        let (passes, now) = (passes("a"), Instant::now());
        let first = passes.link(now);
        let rest: Vec<Token> = (0..PASSES_MAX).map(|_| passes.link(now)).collect();
        assert!(passes.redeem(first.expose().as_bytes(), 0, now).is_none());
        assert!(rest.iter().all(|link| passes.redeem(link.expose().as_bytes(), 0, now).is_some()));
    }
}
