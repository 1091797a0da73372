//! `baton raw-sse`: the events that went to clients, byte by byte.

use std::time::Duration;

use baton_proto::control::{RawEvent, RawWish};
use clap::{Args, ValueEnum};

use super::outcome::Done;
use super::reach::running;
use super::{output, record};

/// How often it is looked for more.
const LOOK_EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
#[command(after_help = "\
Events are kept only after `baton raw-sse on`: the last 1,000 of all clients, in the coordinator's memory, at most 512,000
characters of all and 64,000 of one. They hold what clients see, secrets too. Answers that are no streams are not there;
`baton record` has those.")]
pub(crate) struct RawSseOptions {
    /// Keep events from now on, or forget them [default: print those that are kept]
    switch: Option<Switch>,
    /// Print those of one client only
    #[arg(long, value_name = "NAME", conflicts_with = "switch")]
    client: Option<String>,
    /// Wait for more
    #[arg(long, short, conflicts_with = "switch")]
    follow: bool,
    /// Print JSON, one event a line
    #[arg(long, conflicts_with = "switch")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// Keep events from now on
    On,
    /// Forget them, and keep no more
    Off,
}

pub(super) async fn run(options: RawSseOptions) -> Done {
    let mut coordinator = running().await?;
    if let Some(switch) = options.switch {
        let wish = RawWish { on: Some(switch == Switch::On), after: 0 };
        let look = coordinator.raw(&wish).await?;
        output::line(if look.on { "Events are being kept" } else { "No events are being kept" });
        return Ok(());
    }
    let look = coordinator.raw(&RawWish::default()).await?;
    if !look.on {
        output::note("No events are being kept");
        output::hint("`baton raw-sse on` keeps those from then on");
        return Ok(());
    }
    let n_forgotten = look.events.first().map_or(0, |event| event.number - 1);
    if n_forgotten > 0 {
        output::note(format!("{n_forgotten} earlier events are forgotten"));
    }
    let (mut after, mut events) = (0, look.events);
    loop {
        for event in events {
            after = event.number;
            if options.client.as_ref().is_none_or(|client| *client == event.client) {
                show(&event, options.json);
            }
        }
        if !options.follow {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
        events = coordinator.raw(&RawWish { on: None, after }).await?.events;
    }
}

fn show(event: &RawEvent, as_json: bool) {
    if as_json {
        return output::line(serde_json::to_string(event).unwrap_or_default());
    }
    let at = record::time(event.at_ms).strftime("%H:%M:%S%.3f");
    let client = if event.client.is_empty() { "a client" } else { &event.client };
    output::line(format!("{at} stream {} to {client}", event.stream));
    output::line(format!("{}\n", event.text));
}
