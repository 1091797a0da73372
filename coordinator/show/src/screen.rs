//! Draws what there is to see, and says what a key means: nothing here asks anybody.

use std::time::{Duration, SystemTime};

use baton_proto::control::WindowState;
use baton_proto::ids::WindowId;
use baton_proto::page::{Call, CallState, Happening, Look, What, WindowView};
use baton_proto::shim::Verb;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table, TableState};

/// Windows that are shown at once; the chosen one among them.
const WINDOWS_MAX: u16 = 10;
/// Happenings that are shown at once.
const STORY_MAX: u16 = 6;
/// Bytes of a token, about.
const BYTES_OF_A_TOKEN: u64 = 4;
const KEYS: &str = "Up/Down choose, t make live, s stop, r restart, q quit";

/// What is on the screen.
pub(crate) struct Screen {
    look: Look,
    /// The window that keys mean.
    chosen: Option<WindowId>,
    /// The verb that waits for a yes.
    asked: Option<(WindowId, Verb)>,
    /// What went wrong with the last order, or with the coordinator.
    message: Option<String>,
    is_lost: bool,
}

/// What a key wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Quit,
    Order(WindowId, Verb),
}

impl Screen {
    pub(crate) fn new(look: Look) -> Self {
        let mut screen =
            Self { look: look.clone(), chosen: None, asked: None, message: None, is_lost: false };
        screen.show(look);
        screen
    }

    /// There is something newer to see.
    pub(crate) fn show(&mut self, look: Look) {
        if std::mem::take(&mut self.is_lost) {
            self.message = None;
        }
        self.look = look;
        let is_there = |id: &WindowId| self.look.overview.windows.iter().any(|window| window.id == *id);
        if self.chosen.as_ref().is_none_or(|chosen| !is_there(chosen)) {
            self.chosen = self.look.overview.windows.first().map(|window| window.id.clone());
        }
        self.asked.take_if(|(id, _)| !is_there(id));
    }

    /// The coordinator does not answer.
    pub(crate) fn lose(&mut self, why: String) {
        self.is_lost = true;
        self.message = Some(format!("{why}; trying again"));
    }

    /// An order was carried out, or this is why not.
    pub(crate) fn tell(&mut self, message: Option<String>) {
        self.message = message;
    }

    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Option<Wish> {
        let is_ctrl_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if let Some((id, verb)) = self.asked.take() {
            return match key.code {
                KeyCode::Char('y') => Some(Wish::Order(id, verb)),
                _ if is_ctrl_c => Some(Wish::Quit),
                _ => None,
            };
        }
        self.message = None;
        match key.code {
            _ if is_ctrl_c => Some(Wish::Quit),
            KeyCode::Char('q') | KeyCode::Esc => Some(Wish::Quit),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Char('t') | KeyCode::Enter => self.order(Verb::Take),
            KeyCode::Char('s') => self.order(Verb::Stop),
            KeyCode::Char('r') => self.order(Verb::Restart),
            _ => None,
        }
    }

    fn choose(&mut self, step: isize) -> Option<Wish> {
        let windows = &self.look.overview.windows;
        let next = self.chosen_idx()?.saturating_add_signed(step).min(windows.len().saturating_sub(1));
        self.chosen = windows.get(next).map(|window| window.id.clone());
        None
    }

    fn chosen_idx(&self) -> Option<usize> {
        self.look.overview.windows.iter().position(|window| Some(&window.id) == self.chosen.as_ref())
    }

    /// What ends a client's debugging, or takes the place from one, is asked first.
    fn order(&mut self, verb: Verb) -> Option<Wish> {
        let windows = &self.look.overview.windows;
        let window = windows.get(self.chosen_idx()?)?;
        let is_debugged = |window: &WindowView| window.sessions.iter().any(|session| !session.by_user);
        let harmed = match verb {
            Verb::Take | Verb::Start => windows.iter().find(|other| {
                other.state == WindowState::Live && other.id != window.id && is_debugged(other)
            }),
            Verb::Stop | Verb::Restart => Some(window).filter(|window| is_debugged(window)),
        };
        if let Some(harmed) = harmed {
            self.message = Some(format!("An AI client is debugging in {}. Go on? y/n", harmed.name));
            self.asked = Some((window.id.clone(), verb));
            return None;
        }
        Some(Wish::Order(window.id.clone(), verb))
    }

    pub(crate) fn draw(&self, frame: &mut Frame<'_>, now: SystemTime) {
        let overview = &self.look.overview;
        let rows = |n_items: usize, most: u16| u16::try_from(n_items).unwrap_or(most).clamp(1, most) + 2;
        let [head, windows, story, calls, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(rows(overview.windows.len(), WINDOWS_MAX)),
            Constraint::Length(rows(overview.story.len(), STORY_MAX)),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let about = format!("Baton {}, process {}, {}", overview.version, overview.pid, overview.url);
        frame.render_widget(Paragraph::new(vec![self.summary().bold().into(), about.dim().into()]), head);
        self.draw_windows(frame, windows);
        draw_story(frame, story, &overview.story, now);
        self.draw_calls(frame, calls, now);
        let foot_text = match &self.message {
            Some(message) => Line::from(message.as_str().fg(Color::Red)),
            None => KEYS.dim().into(),
        };
        frame.render_widget(Paragraph::new(foot_text), foot);
    }

    fn summary(&self) -> String {
        let overview = &self.look.overview;
        let named = |id: &WindowId| overview.windows.iter().find(|window| window.id == *id);
        match (&overview.awaiting, overview.live.as_ref().and_then(named)) {
            (Some(id), _) => {
                let name = named(id).map_or(id.as_str(), |window| &window.name);
                format!("Waiting for {name} to come back")
            }
            (None, Some(live)) => format!("{} is live: {}", live.name, live.why),
            (None, None) if overview.windows.is_empty() => {
                "No windows. Open a folder in VS Code with the Baton extension, or run `baton window DIR`."
                    .to_owned()
            }
            (None, None) => "No window is live. Choose one and press t.".to_owned(),
        }
    }

    fn draw_windows(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.look.overview.windows.iter().map(|window| {
            let (word, style) = match (window.responsive, window.state) {
                (false, _) => ("not responding", Style::new().fg(Color::Red)),
                (true, WindowState::Live) => ("live", Style::new().fg(Color::Green)),
                (true, WindowState::Standby) => ("standby", Style::new().fg(Color::Blue)),
                (true, WindowState::Off) => ("off", Style::new().add_modifier(Modifier::DIM)),
            };
            let why = if window.responsive {
                window.why.as_str()
            } else {
                "its agent is not responding; restart it"
            };
            let sessions: Vec<&str> = window.sessions.iter().map(|session| session.name.as_str()).collect();
            let running = window.programs.iter().filter(|tally| tally.running > 0);
            let running: Vec<&str> = running.map(|tally| tally.name.as_str()).collect();
            Row::new([
                Span::styled(word, style),
                Span::raw(&window.name),
                Span::raw(why),
                Span::raw(sessions.join(", ")),
                Span::raw(running.join(", ")),
                Span::raw(window.folders.join(", ")).dim(),
            ])
        });
        let widths = [
            Constraint::Length(14),
            Constraint::Fill(2),
            Constraint::Fill(3),
            Constraint::Fill(2),
            Constraint::Fill(2),
            Constraint::Fill(3),
        ];
        let table = Table::new(rows, widths)
            .header(head(["STATE", "WINDOW", "WHY", "SESSIONS", "RUNS", "FOLDERS"]))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let mut state = TableState::new().with_selected(self.chosen_idx());
        frame.render_stateful_widget(table, area, &mut state);
    }

    fn draw_calls(&self, frame: &mut Frame<'_>, area: Rect, now: SystemTime) {
        let rows =
            self.look.calls.iter().rev().take(usize::from(area.height)).map(|call| self.call_row(call, now));
        let widths = [
            Constraint::Length(6),
            Constraint::Fill(2),
            Constraint::Fill(2),
            Constraint::Fill(2),
            Constraint::Length(10),
            Constraint::Fill(2),
            Constraint::Length(8),
        ];
        let table = Table::new(rows, widths)
            .header(head(["AGE", "TOOL", "WINDOW", "CLIENT", "TOOK", "OUTCOME", "TOKENS"]));
        frame.render_widget(table, area);
    }

    fn call_row<'a>(&'a self, call: &'a Call, now: SystemTime) -> Row<'a> {
        let window = call.window.as_ref().map_or("", |id| {
            let known = self.look.overview.windows.iter().find(|window| window.id == *id);
            known.map_or(id.as_str(), |window| window.name.as_str())
        });
        let (took, outcome, tokens) = match &call.state {
            CallState::Running => (String::new(), Span::raw("running"), String::new()),
            CallState::Held => (String::new(), Span::raw("waiting"), String::new()),
            CallState::PassedOn => (String::new(), Span::raw("passed on"), String::new()),
            CallState::Done { ms, error, n_bytes } => {
                let outcome = match error {
                    Some(error) => Span::raw(error.as_str()).fg(Color::Red),
                    None => Span::raw("ok"),
                };
                let tokens =
                    if *n_bytes > 0 { n_bytes.div_ceil(BYTES_OF_A_TOKEN).to_string() } else { String::new() };
                (format!("{ms} ms"), outcome, tokens)
            }
        };
        let cells = [
            Span::raw(&call.tool),
            Span::raw(window),
            Span::raw(&call.client),
            Span::raw(took),
            outcome,
            tokens.into(),
        ];
        Row::new(std::iter::once(Span::raw(age(call.at_ms, now)).dim()).chain(cells))
    }
}

fn head<const N: usize>(words: [&'static str; N]) -> Row<'static> {
    Row::new(words).style(Style::new().add_modifier(Modifier::DIM))
}

fn draw_story(frame: &mut Frame<'_>, area: Rect, story: &[Happening], now: SystemTime) {
    let title = Line::from("WHAT HAPPENED").dim();
    let lines = story.iter().rev().take(usize::from(area.height)).map(|happening| {
        let rule = match &happening.what {
            What::Live { rule, .. } => format!("  {rule}"),
            _ => String::new(),
        };
        Line::from(vec![
            Span::raw(format!("{:7}", age(happening.at_ms, now))).dim(),
            Span::raw(sentence(happening)),
            Span::raw(rule).dim(),
        ])
    });
    frame.render_widget(Paragraph::new(std::iter::once(title).chain(lines).collect::<Vec<_>>()), area);
}

fn sentence(happening: &Happening) -> String {
    let window = &happening.window;
    match &happening.what {
        What::Opened => format!("{window} opened"),
        What::Closed => format!("{window} closed"),
        What::Live { why, .. } => format!("{window} became live: {why}"),
        What::Standby { why } => format!("{window} yields: {why}"),
        What::Off { why } => format!("{window} is off: {why}"),
        What::Silent => format!("{window} stopped responding"),
        What::Answers => format!("{window} responds again"),
    }
}

/// How long ago, in one number.
fn age(at_ms: u64, now: SystemTime) -> String {
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
    match now.duration_since(at).unwrap_or_default().as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;

    fn look() -> Look {
        let window = |id: &str,
                      name: &str,
                      state: &str,
                      why: &str,
                      sessions: serde_json::Value,
                      running: u64| {
            json!({ "id": id, "name": name, "kind": "headless", "folders": [format!("/src/{name}")], "state": state,
                "why": why, "responsive": true, "auto_start": true, "pid": 1, "sessions": sessions,
                "programs": [{ "kind": "adapter", "name": "debugpy", "started": 2, "died": 0, "running": running },
                    { "kind": "server", "name": "ty", "started": 1, "died": 1, "running": 0 }] })
        };
        let session = json!([{ "id": "s1", "name": "main.py" }]);
        serde_json::from_value(json!({
            "overview": {
                "instance": "i", "version": "0.1.0", "pid": 4711, "url": "http://127.0.0.1:7717/mcp", "since_ms": 0,
                "live": "a", "awaiting": null,
                "windows": [
                    window("a", "shop", "live", "you chose it", session, 1),
                    window("b", "weather", "standby", "shop is live", json!([]), 0),
                ],
                "story": [
                    { "at_ms": 1_000, "window": "shop", "what": { "kind": "opened" } },
                    { "at_ms": 2_000, "window": "shop", "what": { "kind": "live", "rule": "R4", "why": "you chose it" } },
                ],
                "clients": [],
            },
            "calls": [
                { "id": "c-1", "seq": 1, "at_ms": 1_000, "tool": "debug", "client": "codex", "window": "a",
                  "state": { "is": "done", "ms": 12, "error": "tool_error", "n_bytes": 401 } },
                { "id": "c-2", "seq": 2, "at_ms": 61_000, "tool": "code", "client": "cursor\u{1b}[31m", "state": { "is": "held" } },
            ],
        }))
        .unwrap()
    }

    fn drawn(screen: &Screen) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(100, 18)).unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(62);
        terminal.draw(|frame| screen.draw(frame, now)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..100).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..18).map(row).map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    fn press(screen: &mut Screen, code: KeyCode) -> Option<Wish> {
        screen.on_key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn the_screen_says_what_the_page_says() {
        let rows = drawn(&Screen::new(look()));
        let expected = [
            "shop is live: you chose it",
            "Baton 0.1.0, process 4711, http://127.0.0.1:7717/mcp",
            "STATE WINDOW WHY SESSIONS RUNS FOLDERS",
            "live shop you chose it main.py debugpy /src/shop",
            "standby weather shop is live /src/weather",
            "",
            "WHAT HAPPENED",
            "1m shop became live: you chose it R4",
            "1m shop opened",
            "",
            "AGE TOOL WINDOW CLIENT TOOK OUTCOME TOKENS",
            "1s code cursor[31m waiting",
            "1m debug shop codex 12 ms tool_error 101",
        ];
        assert_eq!(rows[..expected.len()], expected);
        assert_eq!(rows[17], KEYS);
    }

    #[test]
    fn keys_choose_a_window_and_say_what_to_do_with_it() {
        let mut screen = Screen::new(look());
        let id = |text: &str| text.parse::<WindowId>().unwrap();
        assert_eq!(press(&mut screen, KeyCode::Up), None);
        assert_eq!(press(&mut screen, KeyCode::Down), None);
        assert_eq!(press(&mut screen, KeyCode::Char('s')), Some(Wish::Order(id("b"), Verb::Stop)));
        // The client's debugging in the live window is worth a question.
        assert_eq!(press(&mut screen, KeyCode::Char('t')), None);
        assert_eq!(drawn(&screen)[17], "An AI client is debugging in shop. Go on? y/n");
        assert_eq!(press(&mut screen, KeyCode::Char('y')), Some(Wish::Order(id("b"), Verb::Take)));
        assert_eq!(press(&mut screen, KeyCode::Up), None);
        assert_eq!(press(&mut screen, KeyCode::Char('r')), None);
        assert_eq!(press(&mut screen, KeyCode::Char('n')), None);
        assert_eq!(press(&mut screen, KeyCode::Char('q')), Some(Wish::Quit));
    }

    #[test]
    fn a_window_that_goes_is_chosen_no_longer() {
        let mut screen = Screen::new(look());
        press(&mut screen, KeyCode::Down);
        let mut without = look();
        without.overview.windows.pop();
        screen.show(without);
        assert_eq!(screen.chosen_idx(), Some(0));
        let mut none = look();
        (none.overview.windows, none.overview.live) = (Vec::new(), None);
        screen.show(none);
        assert_eq!(press(&mut screen, KeyCode::Enter), None);
        assert!(drawn(&screen)[0].starts_with("No windows."));
        screen.lose("the coordinator is not running".to_owned());
        assert_eq!(drawn(&screen)[17], "the coordinator is not running; trying again");
        screen.show(look());
        assert_eq!(drawn(&screen)[17], KEYS);
    }
}
