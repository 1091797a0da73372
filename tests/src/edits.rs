//! Clients that edit, undo and are refused, beside another program that saves, and a model of the files: after each step
//! the files are what the model says, nothing is lost, and nothing is there twice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};

use crate::bridge::{Bridge, Shown};
use crate::process::kill9;
use crate::world::{WindowOptions, World, find};

const FILES: [&str; 3] = ["a.txt", "b.txt", "deep/c.txt"];
const N_CLIENTS: usize = 3;
const WINDOW: &str = "shop";
/// More are not kept, of all clients: the oldest cannot be undone any longer.
const MAX_CHANGES: usize = 1_000;
/// A kill comes within so long after the call that it is meant for, which takes a few milliseconds.
const MAX_DELAY_US: u64 = 8_000;

/// What is searched.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Of the order of everything.
    pub seed: u64,
    /// Ends after so many.
    pub n_rounds: u64,
    /// Ends when that is over.
    pub until: Option<Instant>,
    /// Also two edits at once, and kills in the middle of one: what comes of these is another thing each time.
    pub is_rough: bool,
}

/// What was done, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Steps of all kinds.
    pub rounds: u64,
    /// Edits that were made.
    pub made: u64,
    /// Edits that were refused as they should be.
    pub refused: u64,
    /// Changes that were undone.
    pub undone: u64,
    /// Undos that were refused as they should be.
    pub kept: u64,
    /// What another program did.
    pub saves: u64,
    /// Kills of the agent between two calls.
    pub kills: u64,
    /// Pairs of edits at once.
    pub pairs: u64,
    /// Kills in the middle of an edit, or of an undo.
    pub cut_off: u64,
    /// How many of these were complete all the same.
    pub complete: u64,
}

/// Goes on until the time is over, or something is not as the model says.
pub fn search(options: &Options, tell: &mut dyn FnMut(&str)) -> Result<Counts, String> {
    let mut place = Place::new(options.seed);
    let is_over = |counts: &Counts| {
        counts.rounds >= options.n_rounds || options.until.is_some_and(|until| Instant::now() >= until)
    };
    while !is_over(&place.counts) {
        place.counts.rounds += 1;
        let told = place.round(options.is_rough)?;
        tell(&format!("{} {told}", place.counts.rounds));
        place.check().map_err(|why| format!("{why}\nafter: {told}"))?;
    }
    Ok(place.counts)
}

/// What is at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum There {
    Nothing,
    Folder,
    Text(String),
}

/// A change of a client.
#[derive(Clone, Debug)]
struct Change {
    /// Each one's is larger than those before.
    number: u64,
    file: &'static str,
    before: String,
    after: String,
}

struct Speaker {
    bridge: Bridge,
    /// The hash of what it read or wrote last, and the text.
    known: BTreeMap<&'static str, (Value, String)>,
    changes: Vec<Change>,
}

struct Place {
    /// They end before the world does.
    speakers: Vec<Speaker>,
    world: World,
    folder: PathBuf,
    rng: Rng,
    files: BTreeMap<&'static str, There>,
    n_lines: u64,
    counts: Counts,
}

/// An edit, and what should come of it.
struct Edit {
    file: &'static str,
    arguments: Value,
    expected: Result<String, &'static str>,
}

impl Place {
    fn new(seed: u64) -> Self {
        let mut world = World::new();
        let folder = world.folder(WINDOW);
        fs::create_dir_all(folder.join("deep")).expect("a folder is made");
        let options = WindowOptions { folder: Some(folder.clone()), ..WindowOptions::default() };
        world.window_with(WINDOW, options);
        world.await_live(WINDOW);
        let speaker = |_| {
            let bridge = Bridge::start(&world, &folder, &[]);
            Speaker { bridge, known: BTreeMap::new(), changes: Vec::new() }
        };
        let speakers = (0..N_CLIENTS).map(speaker).collect();
        let files = FILES.iter().map(|file| (*file, There::Nothing)).collect();
        let (rng, counts) = (Rng::with_seed(seed), Counts::default());
        let mut place = Self { world, folder, rng, speakers, files, n_lines: 0, counts };
        for file in FILES {
            place.save(file);
        }
        place
    }

    /// One of its kind: each line is written once, by one who says so.
    fn line(&mut self, who: &str) -> String {
        self.n_lines += 1;
        format!("line {:06} of {who}", self.n_lines)
    }

    fn file(&mut self) -> &'static str {
        FILES[self.rng.usize(..FILES.len())]
    }

    fn text(&self, file: &str) -> Option<&str> {
        match &self.files[file] {
            There::Text(text) => Some(text),
            There::Nothing | There::Folder => None,
        }
    }

    fn round(&mut self, is_rough: bool) -> Result<String, String> {
        let (client, file) = (self.rng.usize(..N_CLIENTS), self.file());
        match self.rng.u32(..100) {
            0..42 => self.edit(client, file),
            42..54 => self.read(client, file),
            54..80 => self.undo(client),
            80..86 => Ok(self.save(file)),
            86..95 => Ok(self.put_back(client)),
            95 => Ok(self.put_away(file)),
            96..98 if is_rough => self.pair(file),
            98 if is_rough => self.cut_off(client, file),
            99 if self.rng.u32(..if is_rough { 4 } else { 1 }) == 0 => Ok(self.kill()),
            _ => self.edit(client, file),
        }
    }

    /// Any edit that a client may make: some fit, some do not.
    fn any_edit(&mut self, client: usize, file: &'static str) -> Edit {
        let line = self.line(&format!("client {client}"));
        let text = self.text(file).map(str::to_owned);
        let lines: Vec<String> = text.iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
        let n_lines = lines.len();
        let at = if lines.is_empty() { 0 } else { self.rng.usize(..n_lines) };
        let join = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let with = |change: &dyn Fn(&mut Vec<String>)| {
            let mut lines = lines.clone();
            change(&mut lines);
            Ok(join(&lines))
        };
        let (edit, expected) = match self.rng.u32(..8) {
            0..3 => {
                let edit = json!({"start_line": n_lines + 1, "end_line": n_lines, "new_text": line});
                (edit, with(&|lines| lines.push(line.clone())))
            }
            3..5 if n_lines > 0 => {
                let edit = json!({"start_line": at + 1, "new_text": line});
                (edit, with(&|lines| lines[at] = line.clone()))
            }
            5 if n_lines > 1 => {
                let edit = json!({"start_line": at + 1, "new_text": ""});
                (edit, with(&|lines| drop(lines.remove(at))))
            }
            6 if n_lines > 0 => {
                let edit = json!({"old_text": lines[at], "new_text": line});
                (edit, with(&|lines| lines[at] = line.clone()))
            }
            7 => (json!({"old_text": "line that nobody wrote", "new_text": line}), Err("text_not_found")),
            _ => {
                let edit = json!({"start_line": n_lines + 7, "new_text": line});
                (edit, Err("invalid_range"))
            }
        };
        let mut arguments = json!({"file_path": file, "edits": [edit]});
        let known = self.speakers[client].known.get(file).filter(|_| self.rng.bool());
        let is_stale = known.is_some_and(|(_, known)| Some(known) != text.as_ref());
        if let Some((hash, _)) = known {
            arguments["hash"] = hash.clone();
        }
        let expected = match &self.files[file] {
            There::Nothing => Err("file_not_found"),
            There::Folder => Err("not_a_file"),
            There::Text(_) if is_stale => Err("changed_meanwhile"),
            There::Text(_) => expected,
        };
        Edit { file, arguments, expected }
    }

    fn edit(&mut self, client: usize, file: &'static str) -> Result<String, String> {
        let Edit { file, arguments, expected } = self.any_edit(client, file);
        let shown = self.speakers[client].bridge.call("lcp_apply_edit", arguments.clone());
        let told = format!("client {client} edits {arguments}: {:?}", shown.code());
        if shown.code() != expected.as_ref().err().copied().unwrap_or_default() {
            return Err(format!("{told}, not {expected:?}: {shown:?}"));
        }
        match expected {
            Ok(after) => self.is_made(client, file, &shown, after),
            Err(_) => self.counts.refused += 1,
        }
        Ok(told)
    }

    fn is_made(&mut self, client: usize, file: &'static str, shown: &Shown, after: String) {
        self.counts.made += 1;
        let before = self.text(file).unwrap_or_default().to_owned();
        self.files.insert(file, There::Text(after.clone()));
        let speaker = &mut self.speakers[client];
        speaker.known.insert(file, (shown.content["hash"].clone(), after.clone()));
        speaker.changes.push(Change { number: self.counts.made, file, before, after });
        let all = self.speakers.iter().flat_map(|speaker| &speaker.changes);
        let mut numbers: Vec<u64> = all.map(|change| change.number).collect();
        numbers.sort_unstable();
        let first = numbers[numbers.len().saturating_sub(MAX_CHANGES)];
        self.speakers.iter_mut().for_each(|speaker| speaker.changes.retain(|change| change.number >= first));
    }

    fn read(&mut self, client: usize, file: &'static str) -> Result<String, String> {
        let text = self.text(file).map(str::to_owned);
        let speaker = &mut self.speakers[client];
        let shown = speaker.bridge.call("lcp_get_outline", json!({"file_path": file}));
        let told = format!("client {client} reads {file}: {:?}", shown.code());
        match text {
            Some(text) if shown.content["hash"].is_i64() => {
                speaker.known.insert(file, (shown.content["hash"].clone(), text));
            }
            None if !shown.code().is_empty() => {}
            _ => return Err(format!("{told}: {shown:?}")),
        }
        Ok(told)
    }

    fn undo(&mut self, client: usize) -> Result<String, String> {
        let shown = self.speakers[client].bridge.call("lcp_undo", json!({}));
        let told = format!("client {client} undoes: {:?}", shown.code());
        let last = self.speakers[client].changes.last().cloned();
        let wrong = |expected: &str| Err(format!("{told}, not {expected:?} of {last:?}: {shown:?}"));
        match &last {
            None if shown.code() == "nothing_to_undo" => self.counts.kept += 1,
            None => return wrong("nothing_to_undo"),
            Some(Change { file, after, .. }) if self.text(file) != Some(after) => {
                if shown.code() != "changed_meanwhile" || !shown.text.contains(file) {
                    return wrong("changed_meanwhile");
                }
                self.counts.kept += 1;
            }
            Some(_) if !shown.code().is_empty() => return wrong(""),
            Some(Change { file, before, .. }) => {
                self.counts.undone += 1;
                self.files.insert(file, There::Text(before.clone()));
                self.speakers[client].changes.pop();
            }
        }
        Ok(told)
    }

    /// Another program saves a file, with all that is in it or with less.
    fn save(&mut self, file: &'static str) -> String {
        let line = self.line("another program");
        let is_whole = self.rng.u32(..4) > 0;
        let mut text = self.text(file).filter(|_| is_whole).unwrap_or_default().to_owned();
        text.push_str(&format!("{line}\n"));
        self.write(file, &text);
        format!("{file} is saved with {line}")
    }

    /// Another program writes what the last change of a client made: that can be undone again.
    fn put_back(&mut self, client: usize) -> String {
        let last = self.speakers[client].changes.last().cloned();
        let Some(Change { file, after, .. }) = last else { return self.save(FILES[0]) };
        self.write(file, &after);
        format!("{file} is what client {client} made of it")
    }

    fn write(&mut self, file: &'static str, text: &str) {
        self.counts.saves += 1;
        let path = self.folder.join(file);
        if path.is_dir() {
            fs::remove_dir(&path).expect("it is empty");
        }
        // As some programs do it, and as others do.
        if self.rng.bool() {
            fs::write(&path, text).expect("a file is written");
        } else {
            let aside = self.folder.with_extension("saved");
            fs::write(&aside, text).expect("a file is written");
            fs::rename(&aside, &path).expect("a file is saved");
        }
        self.files.insert(file, There::Text(text.to_owned()));
    }

    /// A file goes, and perhaps a folder comes in its place.
    fn put_away(&mut self, file: &'static str) -> String {
        self.counts.saves += 1;
        let path = self.folder.join(file);
        if self.text(file).is_some() {
            fs::remove_file(&path).expect("it is there");
        }
        let is_folder = self.rng.bool() || path.is_dir();
        if is_folder && !path.is_dir() {
            fs::create_dir(&path).expect("nothing is there");
        }
        self.files.insert(file, if is_folder { There::Folder } else { There::Nothing });
        format!("{file} is gone; a folder: {is_folder}")
    }

    /// The agent dies between two calls.
    fn kill(&mut self) -> String {
        self.counts.kills += 1;
        let agent = self.world.agent_pid(WINDOW);
        kill9(agent);
        self.await_other(agent);
        "the agent is killed".to_owned()
    }

    fn await_other(&self, agent: u32) {
        self.world.await_status("another agent is live", |status| {
            let other = find(status, WINDOW).is_some_and(|window| window.pid != agent && window.responsive);
            other && status.live.is_some()
        });
    }

    /// Two clients edit one file at once: each edit that is told as made is there.
    fn pair(&mut self, file: &'static str) -> Result<String, String> {
        let Some(text) = self.text(file).map(str::to_owned) else { return Ok(self.save(file)) };
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() < 2 {
            return Ok(self.save(file));
        }
        self.counts.pairs += 1;
        let (one, other) = (self.rng.usize(..lines.len()), self.rng.usize(1..lines.len()));
        let places = [one, (one + other) % lines.len()];
        let news = [self.line("client 0"), self.line("client 1")];
        let [first, second, ..] = &mut self.speakers[..] else { return Err("two clients".to_owned()) };
        let shown: Vec<Shown> = std::thread::scope(|scope| {
            let calls =
                [first, second].into_iter().zip(places.iter().zip(&news)).map(|(speaker, (at, new))| {
                    let edits = json!([{"old_text": lines[*at], "new_text": new}]);
                    let arguments = json!({"file_path": file, "edits": edits});
                    scope.spawn(move || speaker.bridge.call("lcp_apply_edit", arguments))
                });
            let calls: Vec<_> = calls.collect();
            calls.into_iter().map(|call| call.join().expect("it is answered")).collect()
        });
        let of = |made: &[bool]| -> String {
            let new =
                |at: usize| (0..2).find(|idx| made[*idx] && places[*idx] == at).map(|idx| news[idx].as_str());
            lines.iter().enumerate().map(|(at, line)| format!("{}\n", new(at).unwrap_or(line))).collect()
        };
        let made: Vec<bool> = shown.iter().map(|shown| shown.code().is_empty()).collect();
        let odd = |shown: &&Shown| !["", "changed_meanwhile"].contains(&shown.code());
        if let Some(odd) = shown.iter().find(odd) {
            return Err(format!("of two edits at once one is {odd:?}"));
        }
        // Whose text is the last one, and the file's.
        let hash =
            self.speakers[2].bridge.call("lcp_get_outline", json!({"file_path": file})).content["hash"]
                .clone();
        let is_last = |idx: &usize| made[*idx] && shown[*idx].content["hash"] == hash;
        let order: Vec<usize> = match (0..2).find(is_last) {
            Some(last) => [1 - last, last].into_iter().filter(|idx| made[*idx]).collect(),
            None if made.contains(&true) => {
                return Err(format!("no edit made the text that is there: {shown:?}"));
            }
            None => Vec::new(),
        };
        let mut so_far = [false, false];
        for idx in order {
            so_far[idx] = true;
            self.is_made(idx, file, &shown[idx], of(&so_far));
        }
        Ok(format!("two clients edit {file} at once: {made:?}"))
    }

    /// The agent is killed while it edits or undoes: all of it is done, or nothing.
    fn cut_off(&mut self, client: usize, file: &'static str) -> Result<String, String> {
        let undoes = self.speakers[client].changes.last().cloned();
        let undoes = undoes.filter(|last| self.text(last.file) == Some(&last.after) && self.rng.bool());
        let (tool, arguments, file, after) = match &undoes {
            Some(last) => ("lcp_undo", json!({}), last.file, last.before.clone()),
            None => {
                let Edit { file, arguments, expected } = self.any_edit(client, file);
                let Ok(after) = expected else { return self.edit(client, file) };
                ("lcp_apply_edit", arguments, file, after)
            }
        };
        self.counts.cut_off += 1;
        let (agent, delay) =
            (self.world.agent_pid(WINDOW), Duration::from_micros(self.rng.u64(..MAX_DELAY_US)));
        let bridge = &mut self.speakers[client].bridge;
        let shown = std::thread::scope(|scope| {
            let call = scope.spawn(|| bridge.call(tool, arguments.clone()));
            std::thread::sleep(delay);
            kill9(agent);
            call.join().expect("it is answered")
        });
        self.await_other(agent);
        let now = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        let told =
            format!("killed {delay:?} after client {client} calls {tool} {arguments}: {:?}", shown.code());
        let is_done = now == after;
        if !is_done && (shown.code().is_empty() || self.text(file) != Some(&now)) {
            return Err(format!("{told}, {now:?} is not {after:?}"));
        }
        self.counts.complete += u64::from(is_done);
        match (is_done, undoes) {
            (true, Some(_)) => {
                self.speakers[client].changes.pop();
                self.files.insert(file, There::Text(after));
            }
            (true, None) => {
                self.is_made(client, file, &shown, after);
                // Nobody may have told it.
                if !shown.content["hash"].is_i64() {
                    self.speakers[client].known.remove(file);
                }
            }
            (false, _) => {}
        }
        Ok(format!("{told}; done: {is_done}"))
    }

    /// The files are what the model says, nothing is beside them, and as many changes are kept as can be undone.
    fn check(&self) -> Result<(), String> {
        for (file, there) in &self.files {
            let path = self.folder.join(file);
            let now = match fs::read_to_string(&path) {
                Ok(text) => There::Text(text),
                Err(_) if path.is_dir() => There::Folder,
                Err(_) => There::Nothing,
            };
            if now != *there {
                return Err(format!("{file} is {now:?}, not {there:?}"));
            }
        }
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let n_there = self.files.values().filter(|there| **there != There::Nothing).count();
        let all = [names(&self.folder), names(&self.folder.join("deep"))].concat();
        // And the folder `deep`.
        if all.len() != n_there + 1 {
            return Err(format!("{all:?} are there"));
        }
        let kept = names(&self.world.home().join("changes/undo"));
        let n_changes: usize = self.speakers.iter().map(|speaker| speaker.changes.len()).sum();
        if kept.len() != n_changes {
            return Err(format!("{} changes are kept, {n_changes} can be undone", kept.len()));
        }
        Ok(())
    }
}
