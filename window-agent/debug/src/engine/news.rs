//! CORE: what happened to the programs of clients by another's doing, until each client is told.

use std::collections::VecDeque;
use std::mem::discriminant;

use crate::types::control::{News, UserAct, What};

/// News that are remembered, of all clients together: one that never calls again hears none.
const MAX_UNTOLD: usize = 64;

/// See the top of the file.
#[derive(Debug, Default)]
pub(crate) struct Untold {
    untold: VecDeque<(String, News)>,
}

impl Untold {
    /// There is something to tell of a program that this client started. Of what its user did to one program the last
    /// counts, and its end most.
    pub(crate) fn note(&mut self, client: &str, news: News) {
        let is_same = |known: &News| {
            known.session == news.session && discriminant(&known.what) == discriminant(&news.what)
        };
        let is_end = |known: &News| known.what == What::Act(UserAct::Stopped);
        if self.untold.iter().any(|(_, known)| is_same(known) && is_end(known)) {
            return;
        }
        self.untold.retain(|(_, known)| !is_same(known));
        if self.untold.len() >= MAX_UNTOLD {
            self.untold.pop_front();
        }
        self.untold.push_back((client.to_owned(), news));
    }

    /// What this client has not been told.
    pub(crate) fn take(&mut self, client: &str) -> Vec<News> {
        let (told, untold) = self.untold.drain(..).partition(|(whose, _)| whose == client);
        self.untold = untold;
        let told: VecDeque<(String, News)> = told;
        told.into_iter().map(|(_, news)| news).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::SessionId;

    fn news(session: &str, act: UserAct) -> News {
        News { session: SessionId(session.to_owned()), name: "main".to_owned(), what: What::Act(act) }
    }

    #[test]
    fn each_client_hears_the_last_of_its_own_programs_once() {
        let mut untold = Untold::default();
        untold.note("a", news("1", UserAct::Continued));
        untold.note("b", news("2", UserAct::Stopped));
        untold.note("a", news("3", UserAct::Stepped));
        untold.note("a", news("1", UserAct::Stepped));
        // VS Code lets a program run that it ends.
        untold.note("b", news("2", UserAct::Continued));
        assert_eq!(untold.take("c"), []);
        assert_eq!(untold.take("a"), [news("3", UserAct::Stepped), news("1", UserAct::Stepped)]);
        assert_eq!(untold.take("a"), []);
        assert_eq!(untold.take("b"), [news("2", UserAct::Stopped)]);
        let near = News { what: What::Limit("takes much".to_owned()), ..news("4", UserAct::Continued) };
        untold.note("a", near.clone());
        untold.note("a", news("4", UserAct::Continued));
        assert_eq!(untold.take("a"), [near, news("4", UserAct::Continued)]);
    }

    #[test]
    fn it_is_bounded() {
        let mut untold = Untold::default();
        for number in 0..=MAX_UNTOLD {
            untold.note("a", news(&number.to_string(), UserAct::Stopped));
        }
        let told = untold.take("a");
        assert_eq!((told.len(), told[0].session.as_str()), (MAX_UNTOLD, "1"));
    }
}
