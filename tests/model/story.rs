//! The way to a violation, in words.

use std::fmt::Write as _;

use crate::rules;
use crate::setup::Setup;
use crate::steps::Step;
use crate::world::World;
use crate::world::agent::Link;

pub(crate) fn tell(setup: &Setup, rule: &str, path: Vec<(World, Option<Step>)>) -> String {
    let mut story = String::new();
    let start = path.first().map(|(world, _)| world.ticks);
    for (n, (world, step)) in path.iter().enumerate() {
        let seconds = world.ticks - start.unwrap_or_default();
        let step = step.map_or("and then".to_owned(), |step| format!("{step:?}"));
        // Writing to a text does not fail.
        let _ = writeln!(story, "{n:3}. {seconds:2} s  {}\n            {step}", show(world));
    }
    let Some((last, _)) = path.last() else { return story };
    if last.violation.is_none() {
        for (second, world) in rules::quiet_times(setup, last).enumerate() {
            let broken = world.violation.unwrap_or_default();
            let _ = writeln!(story, "     {second:2} s later: {}{broken}", show(&world));
        }
    }
    let why = last.violation.unwrap_or(rule);
    format!("violated: {why}\n{story}")
}

fn show(world: &World) -> String {
    let mut text = String::new();
    for (at, one) in world.coordinators.iter().enumerate() {
        let live = world.live_of(at).map(|(window, term)| format!("w{window} live {term}"));
        let roster = one.election.roster(world.now().into(), 0);
        let awaiting = roster.awaiting.map(|(window, _)| format!(", awaits {window}"));
        let live = live.unwrap_or_else(|| "nobody live".to_owned());
        let _ = write!(text, "[{} {live}{}] ", one.number, awaiting.unwrap_or_default());
    }
    for (at, window) in world.windows.iter().enumerate().filter(|(_, window)| window.is_open) {
        let held = window.fence.held().map_or("nothing".to_owned(), |term| term.to_string());
        let fenced = if window.fence.is_fenced(world.now()) { " fenced" } else { "" };
        let stopped = if window.is_stopped { " stopped" } else { "" };
        let link = match &window.link {
            Link::None => " alone",
            Link::Asked { .. } => " registered",
            Link::Up { .. } => "",
        };
        let _ = write!(text, "w{at}#{}{link} holds {held}{fenced}{stopped}; ", window.incarnation);
    }
    text
}
