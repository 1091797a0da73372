//! The page in a terminal: asks the coordinator twice a second, and does what keys say.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, SystemTime};

use baton_link::connection::{CallError, Connection};
use baton_link::explain::Explanation;
use baton_link::find::{FindError, find};
use baton_link::home::Home;
use baton_proto::page::Look;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::screen::{Screen, Wish};

/// How often the coordinator is asked.
const EVERY: Duration = Duration::from_millis(500);
/// How often whoever hears keys looks whether anybody still wants them.
const KEYS_EVERY: Duration = Duration::from_millis(200);
/// Keys that wait.
const KEYS: usize = 16;

/// Why it ended otherwise than by a key.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    /// There is no screen.
    #[error("standard output is not a terminal")]
    NoTerminal,
    /// No coordinator was there when it began.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The coordinator did not say what there is to see.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The terminal cannot be written to.
    #[error("cannot draw on the terminal")]
    Terminal(#[source] io::Error),
}

impl TopError {
    /// What to try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoTerminal => {
                Some("use `baton status`, or `baton open` for a page in the browser".to_owned())
            }
            Self::Find(error) => error.hint(),
            Self::Call(_) => Some("update Baton, then restart it with `baton up`".to_owned()),
            Self::Terminal(_) => None,
        }
    }
}

/// Shows what the coordinator of `home` does, until a key says that it is enough.
pub async fn run(home: &Home) -> Result<(), TopError> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(TopError::NoTerminal);
    }
    let mut connection: Connection = find(home).await?;
    let screen = Screen::new(connection.look().await?);
    let terminal = ratatui::try_init().map_err(TopError::Terminal)?;
    let ended = follow(home, connection, screen, terminal).await;
    ratatui::restore();
    ended.map_err(TopError::Terminal)
}

async fn follow(
    home: &Home,
    connection: Connection,
    mut screen: Screen,
    mut terminal: ratatui::DefaultTerminal,
) -> io::Result<()> {
    let mut connection = Some(connection);
    let mut keys = keys();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut terminated, mut hung_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    loop {
        terminal.draw(|frame| screen.draw(frame, SystemTime::now()))?;
        tokio::select! {
            event = keys.recv() => match event {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => match screen.on_key(key) {
                    Some(Wish::Quit) => return Ok(()),
                    Some(Wish::Order(window, verb)) => {
                        let done = match &mut connection {
                            Some(connection) => connection.order(window.as_str(), verb).await.map(drop),
                            None => Err(CallError::Lost),
                        };
                        screen.tell(done.err().map(|error| Explanation::new(&error).message));
                        ticks.reset_immediately();
                    }
                    None => {}
                },
                // Another size, at the next drawing.
                Some(_) => {}
                None => return Ok(()),
            },
            _ = ticks.tick() => match look(home, &mut connection).await {
                Ok(look) => screen.show(look),
                Err(why) => screen.lose(why),
            },
            _ = terminated.recv() => return Ok(()),
            _ = hung_up.recv() => return Ok(()),
        }
    }
}

/// What there is to see now; over another connection when the last one was lost.
async fn look(home: &Home, connection: &mut Option<Connection>) -> Result<Look, String> {
    let known = match connection {
        Some(known) => known,
        None => connection.insert(find(home).await.map_err(|error| error.to_string())?),
    };
    match known.look().await {
        Ok(look) => Ok(look),
        Err(error) => {
            *connection = None;
            Err(error.to_string())
        }
    }
}

/// What the user types, heard on a thread of its own for as long as somebody listens.
fn keys() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(KEYS);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            match event::poll(KEYS_EVERY) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(_) => return,
            }
            let Ok(event) = event::read() else { return };
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    });
    receiver
}
