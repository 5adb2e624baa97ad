//! Hides secrets before anything reaches the disk.
//!
//! What a peer sends, prints or is started with goes through a [`Redactor`] first. Secrets
//! become markers as `[REDACTED:kind:abcd1234]`, whose digits are a keyed fingerprint: equal
//! secrets give equal markers, in bodies, arguments and environments alike. Markers are left
//! alone, so that redacting twice is redacting once, and JSON stays JSON.
//!
//! - `anchor`: one pass that finds where a secret could be
//! - `text`: what to do there. `prefix`, `shape`, `header`, `url`, `query`, `literal` know how
//!   the kinds of secrets look, `pair` knows names with values
//! - `binding`, `name`, `value`, `judge`, `words`, `entropy`: what binds a value to a name, does
//!   the name say secret, how far does the value reach, and can it be one
//! - `view`, `json`: the layers in which a text hides in a text
//! - `head`: heads of HTTP messages
//! - `argv`: arguments of commands; `rules`: what is compiled when
//! - `mark`: markers, fingerprints, and hits that meet
//!
//! What cannot be found: a password without a name that nobody has told us of.

mod anchor;
mod argv;
mod binding;
mod class;
mod entropy;
mod head;
mod header;
mod json;
mod judge;
mod literal;
mod mark;
mod name;
mod pair;
mod prefix;
mod query;
mod rules;
mod shape;
mod text;
mod url;
mod value;
mod view;
mod words;

use anchor::Filter;
use literal::Literals;
use mark::Hit;
use regex::bytes::Regex;
use view::Scan;

pub use mark::{Kind, Redaction};
pub use name::{Says, Strength, name_says_secret};
pub use rules::{RuleError, UserRule};

/// The store's secret key for fingerprints. It is never printed.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// A key from its bytes, which should be random.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Eight hexadecimal digits that identify the key and do not give it away.
    #[must_use]
    pub fn id(&self) -> String {
        let hash = blake3::derive_key("agent-trace 2026 redaction key id", &self.0);
        hash[..4].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A hasher for the chains of journals. Its key is another one: digests of contents, which
    /// peers choose, must not be of use there.
    #[must_use]
    pub fn chain(&self) -> blake3::Hasher {
        let context = crate::journal::chain::CONTEXT;
        blake3::Hasher::new_keyed(&blake3::derive_key(context, &self.0))
    }

    /// A hasher with this key.
    #[must_use]
    pub fn hasher(&self) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.0)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.id())
    }
}

/// What is hidden and how: all rules, compiled. Made once for a process.
pub struct Redactor {
    key: Key,
    user: Vec<(Regex, Kind)>,
    literals: Literals,
    /// Some literal holds bytes that JSON escapes.
    literals_escaped: bool,
    filter: Filter,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor")
            .field("key", &self.key)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Markers that make new hits are redacted again, at most so often. Each pass leaves fewer
/// bytes that are no marker; real texts need one pass and one that finds nothing.
const MAX_PASSES: usize = 8;

impl Redactor {
    /// A redactor with the built-in rules and those of the user.
    ///
    /// # Errors
    ///
    /// A user's rule has a kind or a pattern that cannot be used.
    pub fn new(key: Key, user: &[UserRule]) -> Result<Self, RuleError> {
        let user = rules::compile(user)?;
        let literals = Literals::default();
        let filter = rules::filter(&literals);
        Ok(Self {
            key,
            user,
            literals,
            literals_escaped: false,
            filter,
        })
    }

    /// Adds values that are secret wherever they occur.
    ///
    /// Values that are too short or too common are left out: under six bytes, numbers of
    /// fewer than eight digits, words as `true`, `localhost` or `postgres`, paths, URLs, and
    /// references as `${TOKEN}`. The values are also found percent-encoded, in base64, and by
    /// their beginning or end of eight bytes or more.
    pub fn add_literals<'a>(&mut self, values: impl IntoIterator<Item = &'a [u8]>) {
        for value in values {
            self.literals.add(&self.key, value, Kind::known("secret"));
        }
        self.compile();
    }

    /// Adds the secrets of an environment: the values of variables whose names say secret, and
    /// what the rules find in the others, as the password in `DATABASE_URL`.
    pub fn add_environment(
        &mut self,
        variables: impl IntoIterator<Item = (impl AsRef<[u8]>, impl AsRef<[u8]>)>,
    ) {
        for (name, value) in variables {
            let (name, value) = (name.as_ref(), value.as_ref());
            if let Some(kind) = rules::variable_says_secret(name, value) {
                let secret = header::secret_part(value, "authorization");
                self.literals
                    .add(&self.key, &value[secret], Kind::known(kind));
            }
            for hit in self.hits(value) {
                self.literals
                    .add_found(&self.key, &value[hit.range], hit.kind);
            }
        }
        self.compile();
    }

    /// Adds the secrets of the environment of this process.
    pub fn add_own_environment(&mut self) {
        let own: Vec<_> = std::env::vars_os().collect();
        let pairs = own.iter();
        self.add_environment(pairs.map(|(n, v)| (n.as_encoded_bytes(), v.as_encoded_bytes())));
    }

    /// Adds the secrets in the arguments of a command.
    pub fn add_argv<S: AsRef<str>>(&mut self, args: &[S]) {
        for (arg, hits) in args.iter().zip(argv::scan(self, args)) {
            for hit in hits {
                self.literals
                    .add_found(&self.key, &arg.as_ref().as_bytes()[hit.range], hit.kind);
            }
        }
        self.compile();
    }

    /// The secrets in the arguments of a command, for [`add_literals`](Self::add_literals).
    #[must_use]
    pub fn argv_secrets<S: AsRef<str>>(&self, args: &[S]) -> Vec<Vec<u8>> {
        let secrets = |(arg, hits): (&S, Vec<Hit>)| {
            let arg = arg.as_ref().as_bytes().to_vec();
            hits.into_iter().map(move |hit| arg[hit.range].to_vec())
        };
        args.iter()
            .zip(argv::scan(self, args))
            .flat_map(secrets)
            .collect()
    }

    /// Redacts one JSON text, or any other bytes.
    ///
    /// Appends the redacted text to `out` and what was hidden to `spans` (offsets count from
    /// the start of the appended text), and returns `true`. If nothing is to be hidden it
    /// leaves both as they are and returns `false`.
    pub fn bytes(&self, text: &[u8], out: &mut Vec<u8>, spans: &mut Vec<Redaction>) -> bool {
        if !self.is_worth_a_look(text) {
            return false;
        }
        let hits = self.hits(text);
        self.rewrite(text, &hits, out, spans)
    }

    /// As [`bytes`](Self::bytes), for one of several lines that belong together (of a server's
    /// stderr, say): a private key that is printed line by line is hidden in each.
    pub fn line(
        &self,
        carry: &mut Carry,
        text: &[u8],
        out: &mut Vec<u8>,
        spans: &mut Vec<Redaction>,
    ) -> bool {
        if carry.is_closed() && !self.is_worth_a_look(text) {
            return false;
        }
        let (mut hits, notes) = Scan::message(self, text);
        hits.extend(carry.advance(&self.key, text, notes.open_key));
        self.settle(text, &mut hits);
        self.rewrite(text, &hits, out, spans)
    }

    /// Redacts the arguments of a command.
    #[must_use]
    pub fn argv<S: AsRef<str>>(&self, args: &[S]) -> Vec<String> {
        args.iter()
            .zip(argv::scan(self, args))
            .map(|(arg, hits)| {
                let arg = arg.as_ref();
                let mut out = Vec::new();
                if self.rewrite(arg.as_bytes(), &hits, &mut out, &mut Vec::new()) {
                    String::from_utf8_lossy(&out).into_owned()
                } else {
                    arg.to_owned()
                }
            })
            .collect()
    }

    /// Redacts a text.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut out = Vec::new();
        if self.bytes(text.as_bytes(), &mut out, &mut Vec::new()) {
            String::from_utf8_lossy(&out).into_owned()
        } else {
            text.to_owned()
        }
    }

    /// A hasher with the store's key, for contents that come in pieces.
    #[must_use]
    pub fn hasher(&self) -> blake3::Hasher {
        self.key.hasher()
    }

    fn compile(&mut self) {
        self.literals_escaped = self.literals.are_escaped();
        self.filter = rules::filter(&self.literals);
    }

    /// Whether `text` can hold a secret at all. Most messages cannot.
    fn is_worth_a_look(&self, text: &[u8]) -> bool {
        !self.user.is_empty()
            || self.filter.find(text).peek().is_some()
            || view::has_odd_escape(text)
            || view::has_lone_secret(text)
            || self.literals_escaped && memchr::memchr(b'\\', text).is_some()
    }

    /// What is to be hidden in `text`, in order and without overlap.
    fn hits(&self, text: &[u8]) -> Vec<Hit> {
        let (mut hits, _) = Scan::message(self, text);
        self.settle(text, &mut hits);
        hits
    }

    fn settle(&self, text: &[u8], hits: &mut Vec<Hit>) {
        if !hits.is_empty() {
            mark::settle(text, hits, |range| {
                mark::print(
                    &self.key,
                    &agent_trace_wire::json::unescape(&text[range]).bytes,
                )
            });
        }
    }

    /// Writes `text` with its hits hidden, and hides again until nothing is left to hide.
    fn rewrite(
        &self,
        text: &[u8],
        hits: &[Hit],
        out: &mut Vec<u8>,
        spans: &mut Vec<Redaction>,
    ) -> bool {
        if hits.is_empty() {
            return false;
        }
        let (mut now, mut own) = (Vec::with_capacity(text.len()), Vec::new());
        mark::write(text, hits, &mut now, &mut own);
        for _ in 1..MAX_PASSES {
            let again = self.hits(&now);
            if again.is_empty() {
                break;
            }
            let mut next = Vec::with_capacity(now.len());
            mark::write(&now, &again, &mut next, &mut own);
            now = next;
        }
        if out.is_empty() {
            *out = now;
        } else {
            out.extend_from_slice(&now);
        }
        spans.append(&mut own);
        true
    }
}

/// What one line leaves open for the next: see [`Redactor::line`].
#[derive(Clone, Debug, Default)]
pub struct Carry {
    /// Bytes of a private key so far; 0 outside of one.
    hidden: usize,
}

impl Carry {
    fn is_closed(&self) -> bool {
        self.hidden == 0
    }

    /// Takes notice of a line and gives what of it belongs to a key that an earlier line began.
    fn advance(&mut self, key: &Key, text: &[u8], opens: bool) -> Option<Hit> {
        let within = !self.is_closed() && shape::is_key_line(text);
        let ends = memchr::memmem::find(text, b"-----END").is_some();
        self.hidden = if opens {
            1
        } else if within && !ends && self.hidden < shape::MAX_PEM {
            self.hidden + text.len()
        } else {
            0
        };
        let range = value::trim(text, 0..text.len());
        let secret =
            (within && !range.is_empty()).then(|| mark::print(key, &text[range.clone()]))?;
        Some(Hit {
            range,
            kind: Kind::known("private-key"),
            rank: mark::Rank::Shape,
            print: secret,
            bare: None,
        })
    }
}
