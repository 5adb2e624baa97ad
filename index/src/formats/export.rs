//! Runs on their way out, one after the other into one output.
//!
//! Nothing is un-hidden: what was redacted when it was recorded stays so. What a format has no
//! place for is left out and counted.

use super::error::FormatError;
use agent_trace_model::step::Message;
use agent_trace_model::story::Story;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;

/// The formats that are one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One step a line.
    Jsonl,
    /// One step a row.
    Csv,
    /// HTTP Archive 1.2.
    Har,
    /// Trace events, for Perfetto.
    Chrome,
}

/// What was left out, in words, and how often.
pub type Left = BTreeMap<String, u64>;

/// Takes runs.
pub trait Export {
    /// Adds a run.
    ///
    /// # Errors
    /// When the output cannot be written, or the format has no place for anything in the run.
    fn add(&mut self, story: &Story) -> Result<(), FormatError>;

    /// Ends the output, and says what was left out.
    ///
    /// # Errors
    /// When the output cannot be written.
    fn finish(&mut self) -> Result<Left, FormatError>;
}

/// Begins an output in this format.
///
/// # Errors
/// When it cannot be written.
pub fn begin<'a>(
    format: Format,
    out: impl Write + 'a,
) -> Result<Box<dyn Export + 'a>, FormatError> {
    Ok(match format {
        Format::Jsonl => Box::new(super::jsonl::Jsonl::new(out)),
        Format::Csv => Box::new(super::csv::Csv::begin(out)?),
        Format::Har => Box::new(super::har::Har::begin(out)?),
        Format::Chrome => Box::new(super::chrome::Chrome::begin(out)?),
    })
}

/// Takes note of something that was left out.
pub(super) fn leave(left: &mut Left, what: impl Into<String>) {
    *left.entry(what.into()).or_default() += 1;
}

/// A message as [`raw`] JSON; none where nothing of it was kept.
pub(super) fn recorded(message: &Message) -> Option<Cow<'_, RawValue>> {
    let text = &message.text[..];
    (!text.is_empty()).then(|| raw(text)).flatten()
}

/// A recorded text as JSON, digit by digit as it was recorded, on one line; of what is no JSON a
/// string in which bytes that are no UTF-8 became U+FFFD. None where that cannot be written,
/// which does not happen.
#[must_use]
pub fn raw(text: &[u8]) -> Option<Cow<'_, RawValue>> {
    let json: Option<&RawValue> = str::from_utf8(text)
        .ok()
        .and_then(|text| serde_json::from_str(text).ok());
    match json {
        // A Content-Length body may be spread over lines.
        Some(json) if json.get().contains(['\n', '\r']) => {
            let joined = json.get().replace(['\n', '\r'], "");
            RawValue::from_string(joined).ok().map(Cow::Owned)
        }
        Some(json) => Some(Cow::Borrowed(json)),
        None => serde_json::value::to_raw_value(&String::from_utf8_lossy(text))
            .ok()
            .map(Cow::Owned),
    }
}
