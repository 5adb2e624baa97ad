//! What the words are worth that only some texts need: they are left out, and these texts are
//! scanned again. For measuring, see `examples/held_out.rs`.

use crate::lexicon::{self, Lexicon};
use crate::signal::Sig;
use crate::view::{View, is_json};
use std::collections::BTreeSet;

/// The entries of the lexicon that stand in a text, a line each.
#[must_use]
pub fn entries(raw: &str) -> BTreeSet<String> {
    let view = View::of(raw, 0, is_json(raw));
    let entries = Lexicon::get().entries(&view.text);
    entries
        .into_iter()
        .map(|(sig, word)| format!("{} {word}", sig.name()))
        .collect()
}

/// Leaves these entries out, in the form of [`entries`]. To be called before anything is
/// scanned.
pub fn leave_out(lines: &str) {
    let entry = |line: &str| {
        let (class, word) = line.split_once(' ')?;
        Some((Sig::named(class)?, word.to_owned()))
    };
    lexicon::leave_out(lines.lines().filter_map(entry).collect());
}
