//! What is found in the answers of a session while it is read.
//!
//! A list of definitions that was scanned before is not scanned again, whichever session it is
//! told in: see [`Scanner`].

use crate::rows::scan::{MOST_FOUND, MOST_LISTS, count};
use crate::rows::{
    CodeTally, DefinitionRow, FiledRow, FoundAt, FoundRow, ListRow, ListedAt, StepAt,
};
use agent_trace_model::step::StepKind;
use agent_trace_model::story::is_own;
use agent_trace_scanners::pin::{self, Hash, Kind};
use agent_trace_scanners::storm::Storm;
use agent_trace_scanners::{Severity, listing, run};
use agent_trace_store::trace::{Session, Step};
use agent_trace_wire::message::{member, member_at};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest canonical form that is kept, in bytes, …
const LONGEST: usize = 64 << 10;
/// … and of all definitions of a list together.
const MOST_TEXT: usize = 1 << 20;
/// So many lists are remembered, as long as they take no more than so many bytes.
const REMEMBERED: usize = 4_096;
const MOST_REMEMBERED: usize = 32 << 20;

/// What definitions stand in, of the `result` of an answer.
const MEMBERS: [&str; 6] = [
    "tools",
    "prompts",
    "resources",
    "resourceTemplates",
    "instructions",
    "serverInfo",
];

/// The lists that were scanned: shared by all who read journals for one index.
#[derive(Debug, Default)]
pub struct Scanner {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// By the hash of the whole result: a model may be shown anything in it.
    lists: HashMap<Hash, Arc<List>>,
    bytes: usize,
}

/// A list of definitions that was scanned.
#[derive(Debug)]
pub struct List {
    pub(crate) hash: Hash,
    /// Without the server's identity.
    pub(crate) row: ListRow,
    tally: Vec<CodeTally>,
}

impl Scanner {
    /// Scans the `result` of an answer with definitions, or remembers what was found in it;
    /// none if it has none and nothing was found.
    fn list(&self, result: &[u8]) -> Option<Arc<List>> {
        let whole = *blake3::hash(result).as_bytes();
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().lists.get(&whole).cloned();
        let list = match known {
            Some(list) => list,
            None => {
                let list = Arc::new(List::of(result, whole)?);
                lock().remember(whole, &list, result.len());
                list
            }
        };
        let row = &list.row;
        (!row.definitions.is_empty() || !row.found.is_empty()).then_some(list)
    }
}

impl Known {
    fn remember(&mut self, whole: Hash, list: &Arc<List>, bytes: usize) {
        if self.lists.len() >= REMEMBERED || self.bytes + bytes > MOST_REMEMBERED {
            self.lists.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.lists.insert(whole, Arc::clone(list));
    }
}

impl List {
    /// A list is the same where its definitions are, and what was found beside them.
    fn of(text: &[u8], whole: Hash) -> Option<Self> {
        let result: Value = serde_json::from_slice(text).ok()?;
        let definitions = pin::definitions(&result);
        // As it stands in the answer, so that pointers begin there.
        let answer = serde_json::json!({ "jsonrpc": "2.0", "result": result });
        let found = listing(None, &answer).unwrap_or_default().findings;
        let mut hasher = blake3::Hasher::new();
        for name in MEMBERS {
            let value = member(text, name).unwrap_or_default();
            hasher.update(&(value.len() as u64).to_le_bytes());
            hasher.update(value);
        }
        if !found.iter().all(|finding| is_in_members(&finding.pointer)) {
            hasher.update(&whole);
        }
        let hash = *hasher.finalize().as_bytes();
        let mut tally = Vec::new();
        let mut worst: BTreeMap<(Kind, usize), Severity> = BTreeMap::new();
        for finding in &found {
            count(&mut tally, finding.code, finding.severity, 1);
            if let Some(place) = place(&finding.pointer) {
                let known = worst.entry(place).or_insert(finding.severity);
                *known = finding.severity.max(*known);
            }
        }
        let mut left = MOST_TEXT;
        let definition = |definition: pin::Definition| {
            let keep = definition.text.len() <= LONGEST.min(left);
            left -= if keep { definition.text.len() } else { 0 };
            DefinitionRow {
                kind: definition.kind,
                position: u32::try_from(definition.position).unwrap_or(u32::MAX),
                worst: worst.get(&(definition.kind, definition.position)).copied(),
                name: definition.name,
                hash: definition.hash,
                text: if keep { definition.text } else { String::new() },
            }
        };
        let row = ListRow {
            identity: String::new(),
            definitions: definitions.into_iter().map(definition).collect(),
            more: found.len().saturating_sub(MOST_FOUND) as u64,
            found: found
                .into_iter()
                .take(MOST_FOUND)
                .map(FoundRow::of)
                .collect(),
        };
        Some(Self { hash, row, tally })
    }
}

/// Whether a pointer from the answer on leads into what [`MEMBERS`] names.
fn is_in_members(pointer: &str) -> bool {
    let member = pointer.strip_prefix("/result/").unwrap_or_default();
    MEMBERS.contains(&member.split('/').next().unwrap_or_default())
}

/// The definition that a pointer from the answer on leads into.
fn place(pointer: &str) -> Option<(Kind, usize)> {
    let mut keys = pointer.strip_prefix("/result/")?.split('/');
    let member = keys.next()?;
    let kinds = [Kind::Tool, Kind::Prompt, Kind::Resource, Kind::Template];
    if member == Kind::Instructions.member() {
        return Some((Kind::Instructions, 0));
    }
    let kind = kinds.into_iter().find(|kind| kind.member() == member)?;
    Some((kind, keys.next()?.parse().ok()?))
}

/// What was found in a session so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    lists: Vec<(ListedAt, Arc<List>)>,
    known: BTreeSet<Hash>,
    filed: FiledRow,
    storm: Storm,
    /// What the client said that it can do, hashed.
    capabilities: [u8; 8],
}

/// What a session's rows have of it.
#[derive(Clone, Debug, Default)]
pub struct Scanned {
    /// What was found in results.
    pub filed: FiledRow,
    /// The lists that it was told, each once, in the order of their hashes.
    pub lists: Vec<Arc<List>>,
}

impl Scan {
    /// Takes a step of which nothing more will be learned, and counts what is found in it.
    pub(super) fn take(
        &mut self,
        scanner: &Scanner,
        session: &Session,
        step: &Step,
        at: StepAt,
        tally: &mut Vec<CodeTally>,
    ) {
        let frames = &session.frames;
        let method = step.method.as_deref().unwrap_or_default();
        if !step.is_clients() {
            if let Some(found) = self.storm.take(method, step.monotonic) {
                self.file(at, FoundRow::of(found), tally);
            }
            let said = step.request(frames);
            let is_message = matches!(step.kind, StepKind::Request | StepKind::Notification);
            if is_message && !is_own(&session.opening.command) {
                self.message(said, at, tally);
            }
            return;
        }
        if method == "initialize" {
            let capable = member_at(step.request(frames), &["params", "capabilities"]);
            self.capabilities = short(capable.unwrap_or_default());
        }
        let Some(answer) = step.response(frames).filter(|answer| !answer.is_empty()) else {
            return;
        };
        if run::defines(method) {
            self.list(scanner, answer, at, tally);
            if member(answer, "error").is_some() {
                self.message(answer, at, tally);
            }
        } else if !is_own(&session.opening.command) {
            // What our own server quotes of attacks is none.
            self.message(answer, at, tally);
        }
    }

    /// Takes a message that holds no definitions.
    fn message(&mut self, text: &[u8], at: StepAt, tally: &mut Vec<CodeTally>) {
        let value: Value = serde_json::from_slice(text).unwrap_or_default();
        for finding in run::of_result(&value) {
            self.file(at, FoundRow::of(finding), tally);
        }
    }

    fn list(&mut self, scanner: &Scanner, answer: &[u8], at: StepAt, tally: &mut Vec<CodeTally>) {
        let list = member(answer, "result").and_then(|result| scanner.list(result));
        let Some(list) = list.filter(|list| !self.known.contains(&list.hash)) else {
            return;
        };
        for known in &list.tally {
            count(tally, &known.code, known.severity, known.count);
        }
        if self.known.len() < MOST_LISTS {
            self.known.insert(list.hash);
            let told = ListedAt {
                at,
                list: list.hash,
            };
            self.lists.push((told, list));
        } else {
            // Whoever asks knows then that this is not all.
            self.filed.more += list.row.found.len() as u64 + list.row.more;
        }
    }

    fn file(&mut self, at: StepAt, found: FoundRow, tally: &mut Vec<CodeTally>) {
        count(tally, &found.code, found.severity, 1);
        if self.filed.found.len() < MOST_FOUND {
            self.filed.found.push(FoundAt { at, found });
        } else {
            self.filed.more += 1;
        }
    }

    /// The lists that the session was told.
    pub(super) fn lists(&self) -> Vec<ListedAt> {
        let mut lists: Vec<ListedAt> = self.lists.iter().map(|(told, _)| *told).collect();
        lists.sort_unstable();
        lists
    }

    /// Who asks, where it is this client, in this revision.
    pub(super) fn view(&self, client: &str, revision: Option<&str>) -> [u8; 8] {
        let mut all = Vec::new();
        for part in [client, revision.unwrap_or_default()] {
            all.extend_from_slice(&(part.len() as u64).to_le_bytes());
            all.extend_from_slice(part.as_bytes());
        }
        all.extend_from_slice(&self.capabilities);
        short(&all)
    }

    pub(super) fn scanned(mut self) -> Scanned {
        self.filed.found.sort_by_key(|found| found.at);
        let mut lists: Vec<Arc<List>> = self.lists.into_iter().map(|(_, list)| list).collect();
        lists.sort_by_key(|list| list.hash);
        Scanned {
            filed: self.filed,
            lists,
        }
    }
}

fn short(bytes: &[u8]) -> [u8; 8] {
    let hash = blake3::hash(bytes);
    let mut short = [0; 8];
    short.copy_from_slice(&hash.as_bytes()[..8]);
    short
}
