//! One string: its views, their signals, the rules that hold.

use crate::codes;
use crate::decode;
use crate::finding::{Confidence, Finding, Place, Severity, escaped};
use crate::hidden::{self, Odd};
use crate::rules::{self, Rule, definition, manner, orders, result};
use crate::sentence;
use crate::signal::{Mask, Sig};
use crate::stretch::{self, boundary};
use crate::view::{View, is_json};

/// Shorter strings can give no order, in bytes.
const SHORTEST: usize = 8;
/// A word of fewer bytes is a name and no encoded text.
const LONGEST_NAME: usize = 24;

/// How often a text is decoded. Each time costs as much as the text is long; whoever encodes
/// one more often than this hides it.
const DEEPEST: usize = 4;

/// What is known of a string beside its bytes.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) place: Place,
    /// Whether it belongs to a parameter.
    pub(crate) field: bool,
    /// Whether a name is the tool's own, in lower case.
    pub(crate) own: &'a dyn Fn(&str) -> bool,
}

/// What is found in a string. Who knows the pointer to it puts it in.
pub(crate) fn scan(raw: &str, about: About<'_>) -> Vec<Finding> {
    let mut out = Findings {
        raw,
        about,
        found: Vec::new(),
    };
    let json = about.place == Place::Result && is_json(raw);
    let extra = match about.place {
        Place::Value => Mask::of(&[Sig::Value]),
        Place::Description if about.field => Mask::of(&[Sig::Field]),
        _ => Mask::EMPTY,
    };
    // A word alone tells nothing.
    if raw.len() < SHORTEST || (raw.len() < LONGEST_NAME && raw.is_ascii() && !raw.contains(' ')) {
        out.odd_characters();
        return out.found;
    }
    let parts = match about.place {
        Place::Result => stretch::around_anchors(raw, json),
        _ => stretch::all(raw),
    };
    for (start, end) in parts {
        out.read(&raw[start..end], start, json, extra, None);
    }
    for region in hidden::regions(raw) {
        out.read(
            &raw[region.start..region.end],
            region.start,
            json,
            extra.with(Sig::Hidden),
            None,
        );
    }
    for found in decode::all(raw) {
        out.decoded(&found.text, (found.start, found.end), extra, found.how, 1);
    }
    if mentions_rot13(raw) {
        out.decoded(&decode::rot13(raw), (0, raw.len()), extra, "rot13", 1);
    }
    out.odd_characters();
    out.found
}

fn mentions_rot13(raw: &str) -> bool {
    raw.match_indices("13").any(|(at, _)| {
        let before = raw.as_bytes().get(at.saturating_sub(3)..at);
        before.is_some_and(|before| before.eq_ignore_ascii_case(b"rot"))
    })
}

struct Findings<'a> {
    raw: &'a str,
    about: About<'a>,
    found: Vec<Finding>,
}

impl Findings<'_> {
    fn rules(&self) -> impl Iterator<Item = &'static [Rule]> + use<> {
        match self.about.place {
            Place::Result => [result::RULES, &[], &[]],
            _ => [definition::RULES, orders::RULES, manner::RULES],
        }
        .into_iter()
    }

    /// Reads a piece that begins at `base`, or that was decoded from the bytes of `from`.
    fn read(
        &mut self,
        piece: &str,
        base: usize,
        json: bool,
        extra: Mask,
        from: Option<(usize, usize, &str)>,
    ) {
        let view = View::of(piece, base, json);
        let sentences = sentence::read(&view, self.about.own);
        let hits = self
            .rules()
            .flat_map(|rules| rules::apply(rules, &sentences, extra));
        for hit in hits {
            let (start, end) = match from {
                Some((start, end, _)) => (start, end),
                None => view.raw(hit.start, hit.end),
            };
            let decoded = from.map(|(_, _, how)| {
                let text = view
                    .text
                    .get(hit.start as usize..hit.end as usize)
                    .unwrap_or("");
                format!("{how}: {}", escaped(text.trim()))
            });
            self.push(
                hit.rule.code,
                hit.severity,
                hit.rule.confidence,
                (start, end),
                decoded,
            );
        }
    }

    fn decoded(&mut self, text: &str, span: (usize, usize), extra: Mask, how: &str, depth: usize) {
        let extra = extra.with(Sig::Decoded);
        for region in hidden::regions(text) {
            self.read(
                &text[region.start..region.end],
                0,
                false,
                extra.with(Sig::Hidden),
                Some((span.0, span.1, how)),
            );
        }
        for (start, end) in stretch::all(text) {
            self.read(
                &text[start..end],
                0,
                false,
                extra,
                Some((span.0, span.1, how)),
            );
        }
        for inner in decode::all(text) {
            if depth < DEEPEST {
                self.decoded(&inner.text, span, extra, inner.how, depth + 1);
            } else {
                self.push("AT1106", Severity::Medium, Confidence::High, span, None);
            }
        }
    }

    fn odd_characters(&mut self) {
        let in_definition = self.about.place != Place::Result;
        for (odd, start, end) in hidden::odd(self.raw) {
            let (code, severity) = match odd {
                Odd::Invisible => ("AT1101", Severity::Medium),
                Odd::Tags => ("AT1102", Severity::High),
                Odd::Direction => ("AT1103", Severity::Medium),
                Odd::Terminal => ("AT1104", Severity::Medium),
                Odd::Mixed => ("AT1105", Severity::Medium),
            };
            let severity = if in_definition || odd == Odd::Tags {
                severity
            } else {
                Severity::Info
            };
            self.push(code, severity, Confidence::High, (start, end), None);
        }
    }

    /// Each code is reported once for a string: where it is worst, and there where it is first.
    fn push(
        &mut self,
        code: &'static str,
        severity: Severity,
        confidence: Confidence,
        span: (usize, usize),
        decoded: Option<String>,
    ) {
        if self
            .found
            .iter()
            .any(|known| known.code == code && known.severity >= severity)
        {
            return;
        }
        self.found.retain(|known| known.code != code);
        let (start, end) = trimmed(self.raw, span);
        self.found.push(Finding {
            code,
            title: codes::title(code),
            severity,
            confidence,
            server: None,
            tool: None,
            place: self.about.place,
            pointer: String::new(),
            start,
            end,
            quote: escaped(&self.raw[start..end]),
            decoded,
        });
    }
}

/// The span without white space at its ends, on boundaries of characters.
fn trimmed(raw: &str, (start, end): (usize, usize)) -> (usize, usize) {
    let end = boundary(raw, end);
    let start = boundary(raw, start).min(end);
    let text = &raw[start..end];
    let front = text.len() - text.trim_start().len();
    let back = text.len() - text.trim_end().len();
    if front == text.len() {
        (start, end)
    } else {
        (start + front, end - back)
    }
}

/// The signals in each sentence, one line each.
pub(crate) fn signals(raw: &str, about: About<'_>) -> String {
    let json = about.place == Place::Result && is_json(raw);
    let view = View::of(raw, 0, json);
    let sentences = sentence::read(&view, about.own);
    let line = |sentence: sentence::Sentence| {
        let span = sentence.start as usize..sentence.end as usize;
        format!(
            "{}\n    {:?}\n",
            view.text.get(span).unwrap_or(""),
            sentence.mask
        )
    };
    sentences.into_iter().map(line).collect()
}
