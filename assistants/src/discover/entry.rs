//! A server's entry in a document, before anything is decided about it.

use crate::catalogue::{Members, Place};
use crate::document::{Member, Node, Value};
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

/// Longer keys are no names: each entry has a copy of those that lead to it.
const LONGEST_KEY: usize = 4096;

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is started, and spoken to over its standard streams.
    Stdio {
        /// The command.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// The names of variables that the entry sets or passes on.
        env: Vec<String>,
    },
    /// It listens somewhere.
    Http {
        /// Where.
        url: String,
        /// The names of header lines that the entry sets.
        headers: Vec<String>,
    },
}

/// Whether we stand before a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No.
    Bare,
    /// Yes: the entry starts `record`, and that the server.
    Wrapped {
        /// The server's own command and arguments.
        original: Vec<String>,
        /// Where `record` is told to record.
        store: Option<String>,
    },
    /// It is a server of ours.
    Ours,
}

/// An entry in its document.
pub(crate) struct Raw<'a> {
    pub(crate) path: Vec<String>,
    pub(crate) name_span: Range<usize>,
    pub(crate) node: &'a Node,
}

/// Where the command is.
pub(crate) enum Form<'a> {
    /// A text, with arguments beside it if there are any. `holder` is the map that both are in.
    Apart {
        command: &'a Member,
        args: Option<&'a Member>,
        holder: &'a Node,
    },
    /// A list of the command and its arguments.
    Together(&'a Node),
}

/// The entries of a document, in the order of the catalogue and then of the text.
pub(crate) fn raw<'a>(root: &'a Node, place: &Place) -> Vec<Raw<'a>> {
    let mut found = Vec::new();
    for keys in place.servers {
        let mut nodes = vec![(Vec::new(), root)];
        for key in *keys {
            let mut inside = Vec::new();
            for (path, node) in nodes {
                let fits = |member: &&Member| *key == "*" || member.key == *key;
                for member in live(node).into_iter().filter(fits) {
                    let mut path = path.clone();
                    path.push(member.key.clone());
                    inside.push((path, &member.value));
                }
            }
            nodes = inside;
        }
        for (path, node) in nodes {
            for (name, name_span, node) in named(node) {
                // One more than are looked at, so that it shows.
                if found.len() > super::MOST_ENTRIES {
                    return found;
                }
                let mut path = path.clone();
                path.push(name);
                let raw = Raw {
                    path,
                    name_span,
                    node,
                };
                if raw.form(place.members).is_some() || raw.url(place.members).is_some() {
                    found.push(raw);
                }
            }
        }
    }
    found
}

/// The members that count: of equal keys the last.
fn live(node: &Node) -> Vec<&Member> {
    let mut seen = HashSet::new();
    let members = node.members().iter().rev();
    let members = members.filter(|member| member.key.len() <= LONGEST_KEY);
    let mut live: Vec<&Member> = members.filter(|member| seen.insert(&member.key)).collect();
    live.reverse();
    live
}

/// The entries of a map of servers, or of a list of them.
fn named(node: &Node) -> Vec<(String, Range<usize>, &Node)> {
    match &node.value {
        Value::Map(_) => live(node)
            .into_iter()
            .map(|member| (member.key.clone(), member.key_span.clone(), &member.value))
            .collect(),
        Value::List(items) => items
            .iter()
            .filter_map(|item| {
                let name = item.get("name")?;
                let text = name.text().filter(|text| text.len() <= LONGEST_KEY)?;
                Some((text.to_owned(), name.span.clone(), item))
            })
            .collect(),
        _ => Vec::new(),
    }
}

impl<'a> Raw<'a> {
    pub(crate) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// Where the command is; none where there is none, or none that can be understood.
    pub(crate) fn form(&self, members: &Members) -> Option<Form<'a>> {
        let node = self.node;
        let mut named = members.command.iter();
        let command = named.find_map(|name| node.member(name))?;
        match &command.value.value {
            Value::Text(_) => Some(Form::Apart {
                command,
                args: node.member(members.args),
                holder: node,
            }),
            Value::List(items) => {
                items.first()?.text()?;
                Some(Form::Together(&command.value))
            }
            // Zed had this form once.
            Value::Map(_) => {
                let holder = &command.value;
                let command = holder.member("path")?;
                command.value.text()?;
                Some(Form::Apart {
                    command,
                    args: holder.member(members.args),
                    holder,
                })
            }
            _ => None,
        }
    }

    /// The command and its arguments. Arguments that are no texts are left out.
    pub(crate) fn words(&self, members: &Members) -> Option<Vec<String>> {
        let texts = |node: &Node| -> Vec<String> {
            let texts = node.items().iter().filter_map(Node::text);
            texts.map(str::to_owned).collect()
        };
        Some(match self.form(members)? {
            Form::Apart { command, args, .. } => {
                let mut words = vec![command.value.text()?.to_owned()];
                words.extend(args.map(|args| texts(&args.value)).unwrap_or_default());
                words
            }
            Form::Together(list) => texts(list),
        })
    }

    /// The command and its arguments, each in its place.
    pub(crate) fn nodes(&self, members: &Members) -> Vec<&'a Node> {
        match self.form(members) {
            Some(Form::Apart { command, args, .. }) => {
                let args = args.map_or(&[][..], |args| args.value.items());
                std::iter::once(&command.value).chain(args).collect()
            }
            Some(Form::Together(list)) => list.items().iter().collect(),
            None => Vec::new(),
        }
    }

    /// The map that the command is in.
    pub(crate) fn holder(&self, members: &Members) -> Option<&'a Node> {
        match self.form(members) {
            Some(Form::Apart { holder, .. }) => Some(holder),
            _ => None,
        }
    }

    fn url(&self, members: &Members) -> Option<&'a str> {
        let mut named = members.url.iter();
        named.find_map(|name| self.node.get(name)?.text())
    }

    pub(crate) fn kind(&self, members: &Members) -> Kind {
        let keys = |names: &[&str], holder: &Node| -> Vec<String> {
            let maps = names.iter().filter_map(|name| holder.get(name));
            let keys = maps.flat_map(|map| map.members().iter());
            keys.map(|member| member.key.clone()).collect()
        };
        let Some(mut words) = self.words(members).filter(|words| !words.is_empty()) else {
            return Kind::Http {
                url: self.url(members).unwrap_or_default().to_owned(),
                headers: keys(members.headers, self.node),
            };
        };
        let args = words.split_off(1);
        let holder = match self.form(members) {
            Some(Form::Apart { holder, .. }) => holder,
            _ => self.node,
        };
        let mut env = keys(members.env, holder);
        for name in members.env_names {
            let names = self.node.get(name).map(Node::items).unwrap_or_default();
            env.extend(names.iter().filter_map(Node::text).map(str::to_owned));
        }
        Kind::Stdio {
            command: words.remove(0),
            args,
            env,
        }
    }

    pub(crate) fn is_enabled(&self, members: &Members) -> bool {
        let is = |name: &&str, is: bool| {
            self.node
                .get(name)
                .is_some_and(|node| node.value == Value::Bool(is))
        };
        !members.on.iter().any(|name| is(name, false))
            && !members.off.iter().any(|name| is(name, true))
    }

    pub(crate) fn standing(&self, members: &Members) -> Standing {
        standing(&self.words(members).unwrap_or_default())
    }
}

/// Whether a command line starts `record`, or another server of ours.
fn standing(words: &[String]) -> Standing {
    let Some((command, args)) = words.split_first() else {
        return Standing::Bare;
    };
    // Of either system: a file may come from the other.
    let file = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
    if stem != Some("agent-trace") {
        return Standing::Bare;
    }
    let dashes = args.iter().position(|arg| arg == "--");
    let own = &args[..dashes.unwrap_or(args.len())];
    let Some(dashes) = dashes.filter(|_| own.iter().any(|arg| arg == "record")) else {
        return Standing::Ours;
    };
    let store = own.iter().position(|arg| arg == "--store");
    Standing::Wrapped {
        original: args[dashes + 1..].to_vec(),
        store: store.and_then(|at| own.get(at + 1)).cloned(),
    }
}
