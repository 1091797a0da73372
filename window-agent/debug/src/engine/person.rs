//! CORE: what the user of an editor did to the programs of clients, until each client is told.

use std::collections::VecDeque;

use crate::types::control::{UserAct, UserNews};

/// News that are remembered, of all clients together: one that never calls again hears none.
const MAX_UNTOLD: usize = 64;

/// See the top of the file.
#[derive(Debug, Default)]
pub(crate) struct Person {
    untold: VecDeque<(String, UserNews)>,
}

impl Person {
    /// The user did something to a program that this client started. Of one program the last counts, and its end most.
    pub(crate) fn note(&mut self, client: &str, news: UserNews) {
        let is_same = |known: &UserNews| known.session == news.session;
        if self.untold.iter().any(|(_, known)| is_same(known) && known.act == UserAct::Stopped) {
            return;
        }
        self.untold.retain(|(_, known)| !is_same(known));
        if self.untold.len() >= MAX_UNTOLD {
            self.untold.pop_front();
        }
        self.untold.push_back((client.to_owned(), news));
    }

    /// What this client has not been told.
    pub(crate) fn take(&mut self, client: &str) -> Vec<UserNews> {
        let (told, untold) = self.untold.drain(..).partition(|(whose, _)| whose == client);
        self.untold = untold;
        let told: VecDeque<(String, UserNews)> = told;
        told.into_iter().map(|(_, news)| news).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::SessionId;

    fn news(session: &str, act: UserAct) -> UserNews {
        UserNews { session: SessionId(session.to_owned()), name: "main".to_owned(), act }
    }

    #[test]
    fn each_client_hears_the_last_of_its_own_programs_once() {
        let mut person = Person::default();
        person.note("a", news("1", UserAct::Continued));
        person.note("b", news("2", UserAct::Stopped));
        person.note("a", news("3", UserAct::Stepped));
        person.note("a", news("1", UserAct::Stepped));
        // VS Code lets a program run that it ends.
        person.note("b", news("2", UserAct::Continued));
        assert_eq!(person.take("c"), []);
        assert_eq!(person.take("a"), [news("3", UserAct::Stepped), news("1", UserAct::Stepped)]);
        assert_eq!(person.take("a"), []);
        assert_eq!(person.take("b"), [news("2", UserAct::Stopped)]);
    }

    #[test]
    fn it_is_bounded() {
        let mut person = Person::default();
        for number in 0..=MAX_UNTOLD {
            person.note("a", news(&number.to_string(), UserAct::Stopped));
        }
        let told = person.take("a");
        assert_eq!((told.len(), told[0].session.as_str()), (MAX_UNTOLD, "1"));
    }
}
