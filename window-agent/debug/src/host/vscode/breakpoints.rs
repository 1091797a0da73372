//! Breakpoints between the engine and VS Code: each has an id of ours, and the engine is told what the adapter made of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Host, plain_path};
use crate::dap::Response;
use crate::dap::body::{self, read};

/// How long VS Code may take to hand a changed breakpoint to the adapter; afterwards it is told as it stands.
const BIND_GRACE: Duration = Duration::from_millis(400);

/// A place of a breakpoint: file, line, column. That of a function has its name for a file, and no line.
pub(super) type Place = (PathBuf, i64, Option<i64>);
/// Lines count from 1.
const NO_LINE: i64 = 0;

/// A breakpoint as the engine knows it through us.
#[derive(Clone, Debug)]
pub(super) struct Virtual {
    pub(super) id: i64,
    /// What the adapter made of it; `None` until it said so.
    pub(super) bound: Option<body::Breakpoint>,
}

/// A `setBreakpoints` of the engine that waits for the adapter's word.
pub(super) struct Waiting {
    request_seq: i64,
    places: Vec<Place>,
    pub(super) until: tokio::time::Instant,
}

impl Host {
    /// VS Code has been told already and tells the adapter; here the engine is told what came of it.
    pub(super) async fn on_set_breakpoints(&mut self, request_seq: i64, arguments: &Value) {
        let asked: body::SetBreakpoints = read(arguments);
        let path = asked.source.path.map(PathBuf::from);
        let places: Vec<Place> =
            asked.breakpoints.iter().map(|wanted| place_of(path.as_deref(), wanted)).collect();
        for place in &places {
            self.virtual_at(place.clone());
        }
        let is_other = |place: &Place| match &path {
            Some(path) => place.0 != *path || place.1 == NO_LINE,
            None => place.1 != NO_LINE,
        };
        self.breakpoints.retain(|place, _| is_other(place) || places.contains(place));
        let grace = if self.is_configured { BIND_GRACE } else { Duration::ZERO };
        let until = tokio::time::Instant::now() + grace;
        self.waiting.push(Waiting { request_seq, places, until });
        self.drive_waiting().await;
    }

    /// Answers what the adapter has spoken about, or what waited long enough.
    pub(super) async fn drive_waiting(&mut self) {
        let now = tokio::time::Instant::now();
        for waiting in std::mem::take(&mut self.waiting) {
            let known: Vec<Option<&Virtual>> =
                waiting.places.iter().map(|place| self.breakpoints.get(place)).collect();
            let is_settled = known.iter().all(|known| known.is_none_or(|known| known.bound.is_some()));
            if !is_settled && waiting.until > now {
                self.waiting.push(waiting);
                continue;
            }
            let to_body = |known: &Virtual| {
                let bound = known.bound.clone().unwrap_or_default();
                body::Breakpoint { id: Some(known.id), ..bound }
            };
            let bodies: Vec<_> = known.into_iter().flatten().map(to_body).collect();
            self.respond(waiting.request_seq, Ok(json!({"breakpoints": bodies}))).await;
        }
    }

    /// What the adapter made of the breakpoints that VS Code handed to it.
    pub(super) async fn on_adapter_breakpoints(&mut self, response: &Response) {
        let Some(asked) = self.asked.remove(&response.request_seq) else { return };
        let path = asked.source.path.as_deref().and_then(plain_path);
        let bound = read::<body::Breakpoints>(&response.body).breakpoints.unwrap_or_default();
        for (wanted, mut breakpoint) in asked.breakpoints.iter().zip(bound) {
            let place = place_of(path.as_deref(), wanted);
            let Some(known) = self.find_mut(&place) else { continue };
            let id = known.id;
            known.bound = Some(breakpoint.clone());
            if let Some(theirs) = breakpoint.id.replace(id) {
                self.ours.insert(theirs, id);
            }
            self.event("breakpoint", json!({"reason": "changed", "breakpoint": breakpoint})).await;
        }
        self.drive_waiting().await;
    }

    /// VS Code gives a breakpoint without a column one when it hands it over.
    fn find_mut(&mut self, (path, line, column): &Place) -> Option<&mut Virtual> {
        let exact = (path.clone(), *line, *column);
        let key = if self.breakpoints.contains_key(&exact) { exact } else { (path.clone(), *line, None) };
        self.breakpoints.get_mut(&key)
    }

    fn virtual_at(&mut self, place: Place) {
        let next_id = self.last_id + 1;
        let known = self.breakpoints.entry(place).or_insert(Virtual { id: next_id, bound: None });
        self.last_id = self.last_id.max(known.id);
    }
}

/// Where a breakpoint in a file is, or on a function.
fn place_of(path: Option<&Path>, breakpoint: &body::WantedBreakpoint) -> Place {
    match path {
        Some(path) => (path.to_owned(), breakpoint.line, breakpoint.column),
        None => (PathBuf::from(&breakpoint.name), NO_LINE, None),
    }
}
