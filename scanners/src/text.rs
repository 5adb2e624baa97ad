//! One string: its views, their signals, the rules that hold.

use crate::codes;
use crate::decode;
use crate::finding::{Confidence, Finding, Place, Severity, escaped};
use crate::hidden::{self, Odd};
use crate::lexicon::Lexicon;
use crate::rules::{self, Rule, definition, manner, result};
use crate::sentence;
use crate::signal::{Mask, Sig};
use crate::view::View;

/// How much around an anchor in a result is read closely, in bytes.
const AROUND: usize = 700;
/// A stretch that is read closely is cut after this many bytes.
const STRETCH: usize = 64 << 10;

/// Shorter strings can give no order, in bytes.
const SHORTEST: usize = 8;
/// A word of fewer bytes is a name and no encoded text.
const LONGEST_NAME: usize = 24;

/// What is known of a string beside its bytes.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) place: Place,
    pub(crate) pointer: &'a str,
    /// Whether a name is the tool's own, in lower case.
    pub(crate) own: &'a dyn Fn(&str) -> bool,
}

/// What is found in a string.
pub(crate) fn scan(raw: &str, about: About<'_>) -> Vec<Finding> {
    let mut out = Findings {
        raw,
        about,
        found: Vec::new(),
    };
    let json = about.place == Place::Result && raw.trim_start().starts_with(['{', '[']);
    let extra = match about.place {
        Place::Value => Mask::of(&[Sig::Value]),
        Place::Description if about.pointer.contains("/properties/") => Mask::of(&[Sig::Field]),
        _ => Mask::EMPTY,
    };
    // A word alone tells nothing.
    if raw.len() < SHORTEST || (raw.len() < LONGEST_NAME && raw.is_ascii() && !raw.contains(' ')) {
        out.odd_characters();
        return out.found;
    }
    for (start, end) in stretches(raw, about.place) {
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
    if raw.len() < STRETCH && mentions_rot13(raw) {
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

/// The parts of a string that are read closely: all of a definition, what is around anchors in
/// a result.
fn stretches(raw: &str, place: Place) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    let mut add = |start: usize, end: usize| {
        let start = boundary(raw, start);
        let end = boundary(raw, end);
        match out.last_mut() {
            Some(last) if start <= last.1 && end - last.0 <= STRETCH => last.1 = end.max(last.1),
            _ => out.push((start, end)),
        }
    };
    if place != Place::Result || raw.len() <= 2 * AROUND {
        let mut start = 0;
        while start < raw.len() {
            add(start, start + STRETCH);
            start += STRETCH;
        }
        return out;
    }
    let lexicon = Lexicon::get();
    let mut from = 0;
    while let Some((start, end)) = lexicon.anchor(raw, from) {
        add(start.saturating_sub(AROUND), end + AROUND);
        from = end;
        // What is close by is read anyway.
        from = boundary(raw, from + AROUND / 2);
    }
    out
}

/// The next boundary of a character, or the end.
fn boundary(raw: &str, at: usize) -> usize {
    let mut at = at.min(raw.len());
    while !raw.is_char_boundary(at) {
        at += 1;
    }
    at
}

struct Findings<'a> {
    raw: &'a str,
    about: About<'a>,
    found: Vec<Finding>,
}

impl Findings<'_> {
    fn rules(&self) -> impl Iterator<Item = &'static [Rule]> + use<> {
        match self.about.place {
            Place::Result => [result::RULES, &[]],
            _ => [definition::RULES, manner::RULES],
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
                hit.rule.severity,
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
        for (start, end) in stretches(text, self.about.place) {
            self.read(
                &text[start..end],
                0,
                false,
                extra,
                Some((span.0, span.1, how)),
            );
        }
        if depth < 2 {
            for inner in decode::all(text) {
                self.decoded(&inner.text, span, extra, inner.how, depth + 1);
            }
        }
    }

    fn odd_characters(&mut self) {
        if self.about.place == Place::Result && self.raw.len() > 4 * STRETCH {
            return;
        }
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
            pointer: self.about.pointer.to_owned(),
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
    let json = about.place == Place::Result && raw.trim_start().starts_with(['{', '[']);
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
