//! What servers were seen to define, what of it was approved, and what changed.
//!
//! Sightings are rows, derived from journals; approvals are read from the state log. What comes
//! of both is found out when it is asked: see [`agent_trace_scanners::pin::history`].

use crate::engine::{Engine, EngineError};
use crate::fit::{Cut, Fit};
use crate::keys;
use crate::listing::Projects;
use crate::local::Local;
use crate::rows::{self, DefinitionRow, FoundRow, ListRow, SeenRow, StepAt};
use crate::runs::RunsError;
use agent_trace_scanners::pin::history::{self, Seen};
use agent_trace_scanners::pin::{Hash, Kind, diff};
use agent_trace_scanners::{Confidence, Place, Severity};
use agent_trace_store::state::Approval;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The most lists of one workspace that are looked at, those of the same servers together.
const MOST: usize = 10_000;
/// The code of a change.
pub const CHANGED: &str = "AT1401";

/// Which pins are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinsQuery {
    /// The workspace that they belong to.
    pub workspace: String,
    /// The project directories in which they were seen.
    #[serde(default)]
    pub projects: Projects,
    /// Only of servers that are identified or called so, or whose identity ends so.
    #[serde(default)]
    pub server: Option<String>,
    /// Only definitions with this name.
    #[serde(default)]
    pub name: Option<String>,
    /// Whether the canonical forms are wanted.
    #[serde(default)]
    pub texts: bool,
    /// Only those after so many.
    #[serde(default)]
    pub after: usize,
}

/// Some pins, sorted by server, kind and name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PinsPage {
    /// The pins.
    pub pins: Vec<Pin>,
    /// Where to go on; none where there are no more.
    #[serde(default)]
    pub next: Option<usize>,
}

/// How a definition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It changed, and nobody approved that.
    Changed,
    /// It is not approved, and others of its server are.
    New,
    /// It was seen, and nothing of its server is approved.
    Seen,
    /// It is as it was approved.
    Approved,
}

impl Standing {
    /// The word for it, as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::New => "new",
            Self::Seen => "seen",
            Self::Approved => "approved",
        }
    }
}

/// A definition of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pin {
    /// What identifies the server.
    pub server: String,
    /// What it was called when it was seen, sorted.
    pub called: Vec<String>,
    /// What is defined.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub standing: Standing,
    /// The forms in which those who ask are told it now, the newest first; those that were
    /// approved where none was seen.
    pub forms: Vec<PinForm>,
    /// When it was first seen, in nanoseconds since 1970; none where that is not recorded any
    /// more.
    pub first: Option<u64>,
    /// When it was approved, likewise.
    pub approved: Option<u64>,
    /// What changed and was not approved, in the order in which it did.
    pub changes: Vec<PinChange>,
}

/// A form of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinForm {
    /// The hash of its canonical form, 64 hexadecimal digits.
    pub hash: String,
    /// Whether it is approved.
    pub approved: bool,
    /// Who is told it, 16 hexadecimal digits each.
    pub views: Vec<String>,
    /// The canonical form; empty where it was not asked for or is too long to be kept.
    #[serde(default)]
    pub text: String,
}

/// A change of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinChange {
    /// When it was first seen, in nanoseconds since 1970.
    pub when: u64,
    /// The step in whose answer.
    pub at: StepAt,
    /// What the server was called there.
    pub called: String,
    /// The hash before, 64 hexadecimal digits.
    pub old: String,
    /// The hash from then on.
    pub new: String,
    /// Whether what was before is what was approved.
    pub from_approved: bool,
    /// What is different, field by field; empty where a form is too long to be kept.
    pub fields: Vec<diff::Change>,
    /// The same as a finding.
    pub found: FoundRow,
}

impl Cut for Pin {
    fn cut(&mut self, most: usize) -> u64 {
        let left = self.changes.len().saturating_sub(most) as u64;
        self.changes.truncate(most);
        if most < 1_000 {
            self.forms.iter_mut().for_each(|form| form.text.clear());
        }
        left
    }
}

/// A list as one view was told it.
struct Told {
    view: [u8; 8],
    wall: u64,
    first: SeenRow,
    /// When it was last told to this view.
    last: u64,
    row: Arc<ListRow>,
}

/// Where a definition was seen.
#[derive(Clone, Copy)]
enum At {
    Told(usize, usize),
    Approved(usize, usize),
}

impl Local {
    /// The pins that are asked for.
    pub(crate) fn pins(&self, query: &PinsQuery) -> Result<PinsPage, RunsError> {
        let mut page = PinsPage::default();
        let mut fit = Fit::default();
        let all = self.all_pins(&query.workspace, &query.projects, true)?;
        let wanted = all.iter().filter(|pin| query.wants(pin)).skip(query.after);
        for pin in wanted {
            let mut pin = pin.clone();
            if !query.texts {
                pin.forms.iter_mut().for_each(|form| form.text.clear());
            }
            if !fit.takes(&mut pin) {
                page.next = Some(query.after + page.pins.len());
                break;
            }
            page.pins.push(pin);
        }
        Ok(page)
    }

    /// All pins of a workspace. Whether forms are to be those that are told now is asked apart:
    /// finding out takes a while.
    pub(crate) fn all_pins(
        &self,
        workspace: &str,
        projects: &Projects,
        now: bool,
    ) -> Result<Vec<Pin>, RunsError> {
        let told = told(&**self.engine(), workspace, projects, now)?;
        let approvals = self.approvals();
        let mut servers: BTreeMap<String, (Vec<Told>, Vec<&Approval>)> = BTreeMap::new();
        for (server, told) in told {
            servers.entry(server).or_default().0 = told;
        }
        // What was approved in another project is approved.
        for approval in approvals.of(workspace) {
            match servers.get_mut(&approval.server) {
                Some(server) => server.1.push(approval),
                None if *projects == Projects::All => {
                    let server = servers.entry(approval.server.clone()).or_default();
                    server.1.push(approval);
                }
                None => {}
            }
        }
        let pins = servers.iter();
        Ok(pins
            .flat_map(|(server, (told, approved))| pins_of(server, told, approved))
            .collect())
    }
}

impl PinsQuery {
    fn wants(&self, pin: &Pin) -> bool {
        let ends = |wanted: &String| {
            pin.server == *wanted
                || pin.called.contains(wanted)
                || pin.server.rsplit([':', '/']).next() == Some(wanted)
                || pin.server.split_once(':').map(|(_, rest)| rest) == Some(wanted)
        };
        self.server.as_ref().is_none_or(ends)
            && self.name.as_ref().is_none_or(|name| pin.name == *name)
    }
}

/// All lists that were told in a workspace, each once for each view, by server.
fn told(
    engine: &dyn Engine,
    workspace: &str,
    projects: &Projects,
    now: bool,
) -> Result<BTreeMap<String, Vec<Told>>, EngineError> {
    let prefix = keys::seen_in(workspace);
    let mut lists: HashMap<([u8; 16], Hash), Arc<ListRow>> = HashMap::new();
    let mut all: BTreeMap<String, Vec<Told>> = BTreeMap::new();
    let mut after: Option<Vec<u8>> = None;
    let mut count = 0;
    while count < MOST {
        let mut found: Option<(Vec<u8>, SeenRow)> = None;
        engine.scan(&prefix, after.as_deref(), &mut |key, row| {
            let row = rows::decode::<SeenRow>(row);
            let row = row.filter(|row| projects.include(row.project.as_deref()));
            found = row.map(|row| (key.to_vec(), row));
            found.is_none()
        })?;
        let Some((key, first)) = found else { break };
        let Some(at) = keys::seen_at(&prefix, &key) else {
            break;
        };
        let keys::Seen {
            server,
            list,
            view,
            wall,
            length,
        } = at;
        count += 1;
        let of = &key[..length];
        let last = match now {
            true => last(engine, of, wall)?,
            false => wall,
        };
        // What this view was told later is passed over.
        after = Some([of, &[0xff; 29]].concat());
        let row = match lists.get(&(server, list)) {
            Some(row) => Arc::clone(row),
            None => {
                let row = engine.get(&keys::list_of(workspace, server, &list))?;
                let row: Option<ListRow> = row.as_deref().and_then(rows::decode);
                let row = Arc::new(row.unwrap_or_default());
                lists.insert((server, list), Arc::clone(&row));
                row
            }
        };
        all.entry(row.identity.clone()).or_default().push(Told {
            view,
            wall,
            first,
            last,
            row,
        });
    }
    Ok(all)
}

/// When a list was last told to a view: keys are found by what they are greater than, so that
/// it is narrowed down.
fn last(engine: &dyn Engine, of: &[u8], first: u64) -> Result<u64, EngineError> {
    let next = |wall: u64| -> Result<Option<u64>, EngineError> {
        let after = [of, &wall.to_be_bytes(), &[0xff; 21]].concat();
        let mut found = None;
        engine.scan(of, Some(&after), &mut |key, _| {
            let wall = key.get(of.len()..).and_then(|rest| rest.first_chunk::<8>());
            found = wall.map(|wall| u64::from_be_bytes(*wall));
            false
        })?;
        Ok(found)
    };
    let mut known = first;
    let mut step = 1_u64 << 62;
    while step > 1_000_000 {
        match next(known.saturating_add(step))? {
            Some(later) => known = later,
            None => step /= 2,
        }
    }
    while let Some(later) = next(known)? {
        known = later;
    }
    Ok(known)
}

fn pins_of(server: &str, told: &[Told], approvals: &[&Approval]) -> Vec<Pin> {
    let mut seen = Vec::new();
    for (number, one) in told.iter().enumerate() {
        for (position, definition) in one.row.definitions.iter().enumerate() {
            seen.push(Seen {
                kind: definition.kind,
                name: &definition.name,
                hash: definition.hash,
                view: one.view,
                when: one.wall,
                approved: false,
                place: At::Told(number, position),
            });
        }
    }
    for (number, approval) in approvals.iter().enumerate() {
        let Some(kind) = kind_named(&approval.kind) else {
            continue;
        };
        for (position, form) in approval.forms.iter().enumerate() {
            let Some(hash) = unhex::<32>(&form.hash) else {
                continue;
            };
            for view in form.views.iter().filter_map(|view| unhex::<8>(view)) {
                seen.push(Seen {
                    kind,
                    name: &approval.name,
                    hash,
                    view,
                    when: approval.at,
                    approved: true,
                    place: At::Approved(number, position),
                });
            }
        }
    }
    let mut changes: BTreeMap<(Kind, &str), Vec<PinChange>> = BTreeMap::new();
    for change in history::changes(seen.clone()) {
        let about = (change.new.kind, change.new.name);
        let told = self::change(&change, told, approvals);
        changes.entry(about).or_default().extend(told);
    }
    let mut called: BTreeSet<&str> = told.iter().map(|one| &one.first.server[..]).collect();
    called.remove("");
    let mut pins = Vec::new();
    for (about, _) in history::latest(&seen) {
        let own = seen.iter().filter(|one| (one.kind, one.name) == about);
        let approved: BTreeSet<Hash> = own.clone().filter(|s| s.approved).map(|s| s.hash).collect();
        let changes = changes.remove(&about).unwrap_or_default();
        let forms = forms(own.clone(), told, approvals, &approved);
        let is_approved = forms.iter().all(|form| form.approved);
        pins.push(Pin {
            server: server.to_owned(),
            called: called.iter().map(|name| (*name).to_owned()).collect(),
            kind: about.0,
            name: about.1.to_owned(),
            standing: match (changes.is_empty(), is_approved) {
                (false, _) => Standing::Changed,
                (true, true) => Standing::Approved,
                (true, false) if approvals.is_empty() => Standing::Seen,
                (true, false) => Standing::New,
            },
            forms,
            first: own.clone().filter(|s| !s.approved).map(|s| s.when).min(),
            approved: own.filter(|s| s.approved).map(|s| s.when).max(),
            changes,
        });
    }
    pins
}

/// The forms that those who ask are told now: of each the last.
fn forms<'a>(
    own: impl Iterator<Item = &'a Seen<'a, At>> + Clone,
    told: &[Told],
    approvals: &[&Approval],
    approved: &BTreeSet<Hash>,
) -> Vec<PinForm> {
    let last = |one: &Seen<'_, At>| match one.place {
        At::Told(number, _) => told[number].last,
        At::Approved(..) => 0,
    };
    let mut now: BTreeMap<[u8; 8], &Seen<'_, At>> = BTreeMap::new();
    let is_seen = own.clone().any(|one| !one.approved);
    for one in own.filter(|one| !(is_seen && one.approved)) {
        let known = now.entry(one.view).or_insert(one);
        if last(known) <= last(one) {
            *known = one;
        }
    }
    let mut forms: Vec<(u64, Hash, PinForm)> = Vec::new();
    for (view, one) in now {
        match forms.iter_mut().find(|(_, hash, _)| *hash == one.hash) {
            Some((when, _, form)) => {
                *when = last(one).max(*when);
                form.views.push(hex(&view));
            }
            None => {
                let form = PinForm {
                    hash: hex(&one.hash),
                    approved: approved.contains(&one.hash),
                    views: vec![hex(&view)],
                    text: text(one.place, told, approvals).to_owned(),
                };
                forms.push((last(one), one.hash, form));
            }
        }
    }
    forms.sort_by_key(|(when, hash, _)| (std::cmp::Reverse(*when), *hash));
    forms.into_iter().map(|(.., form)| form).collect()
}

fn definition(at: At, told: &[Told]) -> Option<(&Told, &DefinitionRow)> {
    match at {
        At::Told(number, position) => {
            let one = told.get(number)?;
            Some((one, one.row.definitions.get(position)?))
        }
        At::Approved(..) => None,
    }
}

fn text<'a>(at: At, told: &'a [Told], approvals: &'a [&Approval]) -> &'a str {
    let text = match at {
        At::Told(..) => definition(at, told).map(|(_, definition)| &definition.text),
        At::Approved(number, position) => {
            let approval = approvals.get(number);
            approval.and_then(|approval| Some(&approval.forms.get(position)?.text))
        }
    };
    text.map_or("", |text| text)
}

fn change(
    change: &history::Change<'_, At>,
    told: &[Told],
    approvals: &[&Approval],
) -> Option<PinChange> {
    let (one, new) = definition(change.new.place, told)?;
    let (before, after) = (text(change.old.place, told, approvals), &new.text[..]);
    let fields = match before.is_empty() || after.is_empty() {
        true => Vec::new(),
        false => diff::of(before, after),
    };
    let old_worst = definition(change.old.place, told).and_then(|(_, old)| old.worst);
    // What was found in it before was there when it was trusted.
    let is_worse = new.worst >= Some(Severity::Medium) && new.worst > old_worst;
    let first = fields.first();
    let place = match new.kind {
        Kind::Instructions => String::new(),
        _ => format!("/{}", new.position),
    };
    let quote = first.map(|field| match (&field.old, &field.new) {
        (_, Some(new)) => new.clone(),
        (Some(old), None) => format!("removed: {old}"),
        (None, None) => String::new(),
    });
    let found = FoundRow {
        code: CHANGED.into(),
        severity: match is_worse {
            true => Severity::High,
            false => Severity::Medium,
        },
        confidence: Confidence::High,
        tool: (new.kind == Kind::Tool).then(|| new.name.clone()),
        place: Place::Description,
        pointer: format!(
            "/result/{}{place}{}",
            new.kind.member(),
            first.map_or("", |field| &field.pointer)
        ),
        bytes: first.map_or((0, 0), |field| (field.bytes.0 as u64, field.bytes.1 as u64)),
        quote: quote.unwrap_or_else(|| "it is too long to be compared field by field".into()),
        decoded: first.and_then(|field| Some(format!("was: {}", field.old.as_ref()?))),
    };
    Some(PinChange {
        when: change.new.when,
        at: one.first.at,
        called: one.first.server.clone(),
        old: hex(&change.old.hash),
        new: hex(&change.new.hash),
        from_approved: change.old.approved,
        fields,
        found,
    })
}

fn kind_named(word: &str) -> Option<Kind> {
    let kinds = [
        Kind::Tool,
        Kind::Prompt,
        Kind::Resource,
        Kind::Template,
        Kind::Instructions,
    ];
    kinds.into_iter().find(|kind| kind.as_str() == word)
}

/// The approval of a pin as it is told now, at this moment. Its canonical forms have to be
/// there.
#[must_use]
pub fn approval(workspace: &str, pin: &Pin, at: u64) -> Approval {
    let form = |form: &PinForm| agent_trace_store::state::pins::Form {
        hash: form.hash.clone(),
        text: form.text.clone(),
        views: form.views.clone(),
    };
    Approval {
        workspace: workspace.to_owned(),
        server: pin.server.clone(),
        kind: pin.kind.as_str().into(),
        name: pin.name.clone(),
        forms: pin.forms.iter().map(form).collect(),
        at,
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(out)
}
