//! Configuration files with the place of each value.
//!
//! What is edited is spliced into the text, so that comments, formatting and whatever else
//! stands in a file stay as they are. Nothing is ever written from this tree.
//!
//! - `json`: JSON as the assistants read it: with comments and trailing commas
//! - `toml`: TOML
//! - `yaml`: YAML

mod json;
mod toml;
mod yaml;

use std::fmt;
use std::ops::Range;

/// Files with more bytes are not read. State files of several megabytes exist.
pub const LARGEST: usize = 32 << 20;
/// A file with more values is not read: each takes much more memory than text.
const MOST_NODES: usize = 1_000_000;
/// How deep values may lie in each other.
const DEEPEST: usize = 200;
/// A UTF-8 byte order mark.
const BOM: &str = "\u{feff}";

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments, trailing commas and a byte order mark are read in every such file,
    /// since most assistants do.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// A value, and where in the text it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its bytes, including quotes and brackets. Of a table in TOML that is not written in
    /// braces: those of its heading, or of one of its keys.
    pub span: Range<usize>,
    /// What it is.
    pub value: Value,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string. Surrogates without their other half read as U+FFFD.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the text (of TOML: of the keys). Keys may occur twice.
    Map(Vec<Member>),
    /// True or false.
    Bool(bool),
    /// Null, or a file without a value.
    Null,
    /// Anything else: numbers, dates, and in YAML what is marked with an anchor or a tag, or
    /// stands elsewhere.
    Other,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The key.
    pub key: String,
    /// Its bytes, including quotes.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Node,
}

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The byte at which that shows.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

impl Fault {
    fn new(at: usize, what: impl Into<String>) -> Self {
        Self {
            at,
            what: what.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Fault {}

impl Format {
    /// Reads a file. Time and memory are linear in its length.
    ///
    /// # Errors
    /// When it is not written in this format, or beyond the limits.
    pub fn read(self, bytes: &[u8]) -> Result<Node, Fault> {
        if bytes.len() > LARGEST {
            return Err(Fault::new(LARGEST, "the file is too large"));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Fault::new(error.valid_up_to(), "the file is no UTF-8 text"))?;
        match self {
            Self::Json => json::read(text),
            Self::Toml => toml::read(text),
            Self::Yaml => yaml::read(text),
        }
    }
}

impl Node {
    /// The value under this key. Of several the last counts, as it does to those who read
    /// such files.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.member(key).map(|member| &member.value)
    }

    /// The member with this key, the last of several.
    #[must_use]
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members().iter().rev().find(|member| member.key == key)
    }

    /// The members of a map; none of anything else.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        match &self.value {
            Value::Map(members) => members,
            _ => &[],
        }
    }

    /// The values of a list; none of anything else.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The text, of a string.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The texts of a list of strings.
    #[must_use]
    pub fn texts(&self) -> Option<Vec<&str>> {
        match &self.value {
            Value::List(items) => items.iter().map(Self::text).collect(),
            _ => None,
        }
    }
}

/// The line and column of a byte, both from 1. Columns are counted in characters.
#[must_use]
pub fn place(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = &bytes[..at.min(bytes.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n');
    let line = &before[line_start.map_or(0, |end| end + 1)..];
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    (lines + 1, String::from_utf8_lossy(line).chars().count() + 1)
}

/// Counts values against the limits.
#[derive(Debug, Default)]
struct Budget(usize);

impl Budget {
    fn take(&mut self, at: usize, depth: usize) -> Result<(), Fault> {
        self.0 += 1;
        if depth > DEEPEST {
            return Err(Fault::new(at, "values lie too deep in each other"));
        }
        if self.0 > MOST_NODES {
            return Err(Fault::new(at, "the file has too many values"));
        }
        Ok(())
    }
}
