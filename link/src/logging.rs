//! Where tracing goes: log files of the state folder, and standard error. What is told, and in which form, changes while
//! the process runs, as the user's settings do.
//!
//! A line of a file is `TIME PID LEVEL SPANS: TARGET: MESSAGE`, or an object of JSON with the same in it.
//!
//! **Invariant:** standard output is a protocol channel or an answer to the user; nothing is logged there.

use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use baton_proto::control::{LogFormat, Settings};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, dynamic_filter_fn, filter_fn};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, reload};

use crate::home::Home;
use crate::logs::{self, AUDIT, BODIES, DailyFile, JsonLine, OneLine, is_logged, without_bodies};
use crate::process::own_id;

/// Environment variable with the filter that a process starts with, as of `tracing-subscriber`.
pub const FILTER_VARIABLE: &str = "BATON_LOG";
/// The same by the name that another tool gives it; ours comes first.
pub const FILTER_ALIAS: &str = "LCP_LOG_LEVEL";

/// What coordinators and agents tell unless something else is asked for: lifecycles. rmcp tells three things about each
/// call at that level.
pub const LIFECYCLES: &str = "info,rmcp=warn";

/// Characters of a filter.
const FILTER_MAX: usize = 1_000;

/// Whether lines are objects of JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);
/// Set once by the process that logs; a simulated one has none.
static CHANGES: OnceLock<Changes> = OnceLock::new();
/// Set once by a process that can tell errors to somebody else.
static ERRORS: OnceLock<Box<dyn Errors>> = OnceLock::new();

/// Who is told of errors beside the log.
pub trait Errors: Send + Sync {
    /// They go there from now on, see [`Settings::error_dsn`]; empty for nowhere.
    fn aim(&self, dsn: &str);
    /// `part` of the program logged this at level `error`.
    fn tell(&self, part: &str, text: &str);
    /// Waits a moment until everything is told.
    fn flush(&self);
}

/// Errors are told to `errors` as well, which is where the settings say.
pub fn tell_errors(errors: Box<dyn Errors>) {
    // Only a second one fails, and then the first one goes on.
    let _ = ERRORS.set(errors);
}

/// Whoever holds it until a process ends waits a moment then, until the last errors are told; a panic ends it, too.
#[derive(Debug, Default)]
pub struct LastWords;

impl Drop for LastWords {
    fn drop(&mut self) {
        if let Some(errors) = ERRORS.get() {
            errors.flush();
        }
    }
}

struct Changes {
    handle: reload::Handle<EnvFilter, Registry>,
    /// The filter that the process began with.
    began: String,
    /// What was asked for since; empty is nothing.
    asked: Mutex<String>,
}

/// What of the log is told on standard error, too.
#[derive(Clone, Copy, Debug)]
pub struct Stderr {
    /// From this level on.
    pub from: LevelFilter,
    /// Whether each line begins with its time.
    pub has_time: bool,
}

/// The process logs from now on: to the files of a kind, and to standard error. `filter` is for when the user names none.
/// A full disk or a read-only folder costs the log, not the process; the error says so.
pub fn start(files: Option<(&Home, &'static str)>, filter: &str, stderr: Option<Stderr>) -> io::Result<()> {
    let file = files.map(|(home, kind)| DailyFile::open(&home.logs_path(), kind)).transpose();
    let (file, done) = match file {
        Ok(file) => (file.map(|file| Lines(Arc::new(Mutex::new(file)))), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let asked = std::env::var(FILTER_VARIABLE)
        .or_else(|_| std::env::var(FILTER_ALIAS))
        .ok()
        .map(|asked| without_bodies(&asked));
    let began = asked.filter(|asked| EnvFilter::try_new(asked).is_ok()).unwrap_or_else(|| filter.to_owned());
    let (filter, handle) = reload::Layer::new(EnvFilter::new(&began));
    let registry = tracing_subscriber::registry()
        .with(filter)
        .with(filter_fn(is_logged))
        .with(file.clone().map(text))
        .with(file.map(json))
        .with(stderr.map(to_stderr))
        .with(ErrorLayer);
    // Only a second call in one process fails, and then the first one is in force.
    if registry.try_init().is_ok() {
        let _ = CHANGES.set(Changes { handle, began, asked: Mutex::default() });
    }
    done
}

/// Panics are logged as well from now on: those of a process that nobody sees would be lost with its standard error.
pub fn log_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("{panic}");
        default(panic);
    }));
}

/// From now on it is as the settings say: what is told, in words of [`FILTER_VARIABLE`], with [`LIFECYCLES`] of the parts that
/// it does not name, empty for what the process began with; in which form; and who else is told of errors.
pub fn change(settings: &Settings) {
    let filter = settings.log.as_str();
    IS_JSON.store(settings.log_format == LogFormat::Json, Ordering::Relaxed);
    logs::keep_mb(settings.log_mb);
    if let Some(errors) = ERRORS.get() {
        errors.aim(&settings.error_dsn);
    }
    let Some(Changes { handle, began, asked }) = CHANGES.get() else { return };
    let mut asked = asked.lock();
    if *asked == filter {
        return;
    }
    let directives = match filter {
        "" => began.clone(),
        // Who names a part alone means that part, and messages are for who starts a process with their name.
        filter => format!("{LIFECYCLES},{},{AUDIT}=info,{BODIES}=off", without_blanks(filter)),
    };
    if let Ok(parsed) = EnvFilter::try_new(directives) {
        filter.clone_into(&mut asked);
        drop(asked);
        let _ = handle.reload(parsed);
        let filter = if filter.is_empty() { began } else { filter };
        tracing::info!(filter, "what is logged has changed");
    }
}

/// Why [`change`] takes no such filter.
pub fn check(filter: &str) -> Result<(), String> {
    if filter.len() > FILTER_MAX {
        return Err(format!("a filter has at most {FILTER_MAX} characters"));
    }
    if filter.contains(BODIES) {
        return Err(format!(
            "{BODIES} shows messages and source text, which only a process that is started with \
             {FILTER_VARIABLE}={BODIES}=trace does"
        ));
    }
    // Spans and their fields are the library's to read.
    let directives = filter.split(',').map(str::trim).filter(|one| !one.is_empty() && !one.contains('['));
    for directive in directives {
        let level = directive.split_once('=').map_or(directive, |(_, level)| level);
        if level.parse::<LevelFilter>().is_err() {
            return Err(format!(
                "{directive:?} is neither a level (off, error, warn, info, debug, trace) nor PART=LEVEL, such as \
                 baton_edge=debug"
            ));
        }
    }
    EnvFilter::try_new(without_blanks(filter)).map(drop).map_err(|error| error.to_string())
}

/// People write lists with blanks; those in the fields of spans count.
fn without_blanks(filter: &str) -> String {
    if filter.contains('[') { filter.to_owned() } else { filter.replace(' ', "") }
}

/// One file for both forms.
#[derive(Clone)]
struct Lines(Arc<Mutex<DailyFile>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().flush()
    }
}

/// The time, and whose line it is: all processes of a kind write to one file.
struct Stamp;

impl FormatTime for Stamp {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        SystemTime.format_time(writer)?;
        write!(writer, " {}", own_id())
    }
}

fn text<S>(lines: Lines) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = fmt::layer().with_ansi(false).with_timer(Stamp).log_internal_errors(false);
    let layer = layer.with_writer(move || OneLine(lines.clone()));
    layer.with_filter(dynamic_filter_fn(|metadata, context| is_form(false, metadata, context)))
}

fn json<S>(lines: Lines) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = fmt::layer().json().with_current_span(false).with_ansi(false).log_internal_errors(false);
    let layer = layer.with_writer(move || JsonLine { to: lines.clone(), pid: own_id() });
    layer.with_filter(dynamic_filter_fn(|metadata, context| is_form(true, metadata, context)))
}

/// Spans are known in both forms: one that is open when the form changes has a name in either.
fn is_form<S>(is_json: bool, metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
    metadata.is_span() || IS_JSON.load(Ordering::Relaxed) == is_json
}

fn to_stderr<S>(Stderr { from, has_time }: Stderr) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let layer = fmt::layer().with_target(false).with_ansi(false).log_internal_errors(false);
    let layer = layer.with_writer(|| OneLine(io::stderr()));
    let layer = if has_time { layer.boxed() } else { layer.without_time().boxed() };
    layer.with_filter(from)
}

/// Hands on what is told at level `error`.
struct ErrorLayer;

impl<S: Subscriber> Layer<S> for ErrorLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let Some(errors) = ERRORS.get().filter(|_| *event.metadata().level() == Level::ERROR) else { return };
        let mut text = Text::default();
        event.record(&mut text);
        errors.tell(event.metadata().target(), &text.0);
    }
}

/// A message and the fields beside it, as in a line of the log.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = &mut self.0;
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" if text.is_empty() => write!(text, "{value:?}"),
            "message" => {
                text.insert_str(0, &format!("{value:?} "));
                Ok(())
            }
            name if text.is_empty() => write!(text, "{name}={value:?}"),
            name => write!(text, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_of_levels_and_parts_and_never_shows_messages() {
        for right in
            ["", "debug", "info,baton_edge=debug", "WARN", "off", "info, baton_link=trace", "[mcp]=debug"]
        {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        for (wrong, why) in [
            ("debgu", "\"debgu\" is neither a level"),
            ("baton_edge=loud", "nor PART=LEVEL"),
            ("baton_edge", "nor PART=LEVEL"),
            ("trace,baton_bodies=trace", "BATON_LOG=baton_bodies=trace"),
            ("[mcp{call=]=", ""),
        ] {
            let error = check(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
        assert!(check(&"a=info,".repeat(200)).is_err());
    }

    #[test]
    fn who_has_not_begun_to_log_may_be_told_to() {
        change(&Settings { log: "debug".to_owned(), ..Settings::default() });
    }
}
