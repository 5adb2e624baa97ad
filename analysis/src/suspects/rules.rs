//! The rules. Each looks at a [`View`] and adds what it finds to the [`Evidence`]; what it had no
//! room for it tells.
//!
//! - `errors`: hard errors, retries, crashes, what was cancelled or declined
//! - `producer`: whose values a failing step was given
//! - `lacking`: empty and partial answers that the run went on with
//! - `texts`: answers that count as successes and say otherwise
//! - `arguments`: arguments that do not fit the tool's definition
//! - `definition`: definitions that changed
//! - `elsewhere`: other servers with the same tool, and steps that changed what a value stands for
//! - `repeats`: the same call with the same outcome again and again
//! - `slow`: latency outliers
//! - `siblings`: arguments that differ from those in passing siblings
//! - `spectrum`: what failing siblings have and passing ones have not
//! - `tested`: what experiments found
//! - `first`: what failed before everything else; after all others

mod arguments;
mod definition;
mod elsewhere;
mod errors;
mod first;
mod lacking;
mod producer;
mod repeats;
mod siblings;
mod slow;
mod spectrum;
mod tested;
mod texts;

use super::evidence::Evidence;
use super::left::Lefts;
use super::result::Element;
use super::view::View;
use super::{Input, Siblings};

/// Applies all rules.
pub(super) fn apply(
    input: &Input<'_>,
    view: &View<'_>,
    siblings: &Siblings,
    left: &mut Lefts,
) -> (Evidence, Vec<Element>) {
    let mut evidence = Evidence::default();
    let found = &mut evidence;
    errors::find(view, found);
    lacking::find(input, view, found);
    texts::find(view, found);
    arguments::find(view, found, left);
    definition::find(input, view, found);
    elsewhere::find(view, found);
    repeats::find(view, found);
    slow::find(input, view, found);
    siblings::find(input, view, siblings, found, left);
    let missing = spectrum::find(input, view, siblings, found);
    // Those need what was found before.
    producer::find(input, view, found, left);
    first::find(view, found);
    tested::find(input, view, found);
    (evidence, missing)
}

/// So many hundredths of a weight.
fn share(weight: u32, hundredths: u32) -> u32 {
    weight * hundredths / 100
}
