//! Looks for secrets in one text whose escapes are resolved.
//!
//! The anchors of [`anchor`](super::anchor) give the places, and for each the matcher that
//! knows what an anchor means decides. Matchers run forward and never over the same bytes
//! twice without bound, so that hostile text costs no more than its length: a word within
//! what is hidden already is passed over, and the reach of a value is looked at in part
//! until the value is known to be one.

use std::ops::Range;

use super::anchor::{Candidate, Structure, What};
use super::literal::Found;
use super::mark::{Hit, Kind, Rank, print};
use super::prefix::SHAPES;
use super::shape::AwsSecrets;
use super::{Redactor, header, pair, shape, url};

/// A text, and what was found in it so far.
pub(super) struct Text<'a> {
    pub(super) bytes: &'a [u8],
    redactor: &'a Redactor,
    hits: &'a mut Vec<Hit>,
    notes: &'a mut Notes,
    /// Words before this are hidden already.
    pub(super) done: usize,
    /// Words before this belong to a name that was looked at.
    pub(super) named: usize,
    /// Shapes before this are hidden already.
    shaped: usize,
}

/// What one text tells about others of the same message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notes {
    /// An access key id of AWS: its secret may stand anywhere, without a mark.
    pub(super) aws: bool,
    /// A private key starts and does not end.
    pub(super) open_key: bool,
    /// There were more secrets than are kept apart.
    pub(super) too_many: bool,
}

/// Secrets of one message that are kept apart. A message with more is one secret: what it
/// would take to tell a million of them is memory that a hostile peer decides about.
const MAX_HITS: usize = 10_000;

impl Notes {
    /// Keeps a secret.
    pub(super) fn keep(&mut self, hits: &mut Vec<Hit>, hit: Hit) {
        if hits.len() < MAX_HITS {
            hits.push(hit);
        } else {
            self.too_many = true;
        }
    }
}

impl<'a> Text<'a> {
    pub(super) fn new(
        redactor: &'a Redactor,
        bytes: &'a [u8],
        hits: &'a mut Vec<Hit>,
        notes: &'a mut Notes,
    ) -> Self {
        Self {
            bytes,
            redactor,
            hits,
            notes,
            done: 0,
            named: 0,
            shaped: 0,
        }
    }

    /// Looks at one anchor. `opaque`: the text may look like a JWT and is none.
    pub(super) fn candidate(&mut self, candidate: Candidate, opaque: bool) {
        let at = candidate.at;
        match candidate.what {
            What::Word => pair::word(self, at),
            What::Shape(number) if at >= self.shaped => {
                let shape = &SHAPES[usize::from(number)];
                if let Some(range) = shape.read(self.bytes, at) {
                    self.shape(range, shape.kind);
                }
            }
            What::Structure(structure) => self.structure(structure, at, opaque),
            What::Literal(number) => {
                let found = self.redactor.literals.starting(number, self.bytes, at);
                self.literal(found);
            }
            What::LiteralEnd(number) => {
                let found = self
                    .redactor
                    .literals
                    .ending(number, self.bytes, at + candidate.len);
                self.literal(found);
            }
            What::Shape(_) | What::Look => {}
        }
    }

    fn structure(&mut self, structure: Structure, at: usize, opaque: bool) {
        let text = self.bytes;
        let (range, kind) = match structure {
            Structure::Url => return url::url(self, at),
            Structure::GoDsn => return url::go_dsn(self, at),
            Structure::UserFlag => return url::user_flag(self, at),
            Structure::IdentifiedBy => return pair::identified_by(self, at),
            Structure::Bearer => return header::bearer(self, at),
            Structure::Basic => return header::basic(self, at),
            _ if at < self.shaped => return,
            Structure::Jwt if opaque => return,
            Structure::Jwt => (shape::jwt(text, at), "jwt"),
            Structure::AwsId => {
                let id = shape::aws_id(text, at);
                self.notes.aws |= id.is_some();
                (id, "aws-access-key-id")
            }
            Structure::AzureClient => (shape::azure_client(text, at), "azure-client-secret"),
            Structure::AzureKey => (shape::azure_key(text, at), "azure-key"),
            Structure::Telegram => (shape::telegram(text, at), "telegram-token"),
            Structure::Pem | Structure::Putty => {
                let block = if structure == Structure::Pem {
                    shape::pem(text, at)
                } else {
                    Some(shape::putty(text, at))
                };
                self.notes.open_key |= block.as_ref().is_some_and(|(_, open)| *open);
                (block.map(|(range, _)| range), "private-key")
            }
        };
        if let Some(range) = range {
            self.shape(range, kind);
        }
    }

    fn shape(&mut self, range: Range<usize>, kind: &'static str) {
        self.shaped = self.shaped.max(range.end);
        self.known(range, kind, Rank::Shape);
    }

    fn literal(&mut self, found: Option<Found>) {
        let Some(found) = found else {
            return;
        };
        self.add(found.range, found.kind, Rank::Literal);
        // An encoding of a value has the value's fingerprint.
        if let (Some(print), Some(hit)) = (found.print, self.hits.last_mut()) {
            hit.print = print;
        }
    }

    /// A secret of a kind that is built in.
    pub(super) fn known(&mut self, range: Range<usize>, kind: &'static str, rank: Rank) {
        self.add(range, Kind::known(kind), rank);
    }

    pub(super) fn add(&mut self, range: Range<usize>, kind: Kind, rank: Rank) {
        if range.is_empty() {
            return;
        }
        self.done = self.done.max(range.end);
        let print = print(&self.redactor.key, &self.bytes[range.clone()]);
        let hit = Hit {
            range,
            kind,
            rank,
            print,
            bare: None,
        };
        self.notes.keep(self.hits, hit);
    }

    /// What needs no anchor: the user's rules, and secrets of AWS.
    pub(super) fn whole(&mut self, aws: Option<AwsSecrets>) {
        for (rule, kind) in &self.redactor.user {
            for found in rule.captures_iter(self.bytes) {
                if let Some(secret) = found.get(1).or_else(|| found.get(0)) {
                    self.add(secret.range(), kind.clone(), Rank::User);
                }
            }
        }
        if let Some(sure) = aws {
            let text = self.bytes;
            for range in shape::aws_secrets(text, sure) {
                self.known(range, "aws-secret-key", Rank::Shape);
            }
        }
    }
}
