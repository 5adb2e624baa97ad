//! What an entry says in full, values of variables and header lines too: for who starts the
//! server as the assistant would, or looks for secrets in the file.

use super::{Entry, Raw, raw};
use crate::catalogue::Members;
use crate::document::{Node, Value};
use crate::machine::Machine;
use std::fmt;
use std::io;
use std::ops::Range;

/// A text of an entry, and its bytes in the file.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    /// What it says.
    pub text: String,
    /// Where it stands, including quotes.
    pub span: Range<usize>,
}

/// A name with its value.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Text,
}

/// An entry in full. It may hold secrets, which its `Debug` does not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Values {
    /// Command and arguments; empty where the server is called.
    pub words: Vec<Text>,
    /// Variables that it sets.
    pub env: Vec<Pair>,
    /// Names of variables that are passed on.
    pub passed: Vec<Text>,
    /// Where the server is called.
    pub url: Option<Text>,
    /// Header lines that it sends.
    pub headers: Vec<Pair>,
    /// Header lines whose values are in the variables that are named.
    pub headers_from: Vec<Pair>,
    /// The folder that the server is started in.
    pub folder: Option<Text>,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").finish_non_exhaustive()
    }
}

/// Reads an entry again, in full; none if it is not there any more.
///
/// # Errors
/// When its file cannot be read.
pub fn values(machine: &Machine<'_>, entry: &Entry) -> io::Result<Option<Values>> {
    let Some(bytes) = machine.files.read(&entry.file)? else {
        return Ok(None);
    };
    let places = entry.client.places.iter();
    for place in places.filter(|place| machine.paths(place).contains(&entry.file)) {
        let root = place.format.read(&bytes).map_err(io::Error::other)?;
        let same = |raw: &Raw<'_>| raw.path == entry.path && raw.node.span == entry.span;
        if let Some(raw) = raw(&root, place).into_iter().find(same) {
            return Ok(Some(of(&raw, place.members)));
        }
    }
    Ok(None)
}

fn of(raw: &Raw<'_>, members: &Members) -> Values {
    let node = raw.node;
    let holder = raw.holder(members).unwrap_or(node);
    let list = |names: &[&str]| {
        let lists = names.iter().filter_map(|name| node.get(name));
        lists.flat_map(Node::items).filter_map(text).collect()
    };
    // In these the values are names of variables.
    let (from, plain): (Vec<&str>, Vec<&str>) = members
        .headers
        .iter()
        .partition(|name| name.starts_with("env_"));
    Values {
        words: raw.nodes(members).into_iter().filter_map(text).collect(),
        env: pairs(members.env, holder),
        passed: list(members.env_names),
        url: members.url.iter().find_map(|name| text(node.get(name)?)),
        headers: pairs(&plain, node),
        headers_from: pairs(&from, node),
        folder: holder.get("cwd").and_then(text),
    }
}

fn pairs(names: &[&str], holder: &Node) -> Vec<Pair> {
    let maps = names.iter().filter_map(|name| holder.get(name));
    let members = maps.flat_map(Node::members);
    let pair = |member: &crate::document::Member| {
        let value = match &member.value.value {
            Value::Bool(is) => Text {
                text: is.to_string(),
                span: member.value.span.clone(),
            },
            _ => text(&member.value)?,
        };
        Some(Pair {
            name: member.key.clone(),
            value,
        })
    };
    members.filter_map(pair).collect()
}

fn text(node: &Node) -> Option<Text> {
    Some(Text {
        text: node.text()?.to_owned(),
        span: node.span.clone(),
    })
}
