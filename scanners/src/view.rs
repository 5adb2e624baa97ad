//! A text as a model understands it, with the way back to the bytes as they were.
//!
//! Lower case; one blank between words; characters that are not seen left out; compatibility
//! forms (full width, mathematical, ligatures) as plain letters; look-alikes of Latin letters
//! as these, in words that mix scripts; JSON escapes resolved where the text is JSON.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::compose;

/// A normalised text.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) text: String,
    /// Pairs of offsets (here, in the raw text) from which on both advance alike.
    map: Vec<(u32, u32)>,
    /// Where sentences end, in this text.
    pub(crate) breaks: Vec<u32>,
    /// Where lines begin, in this text.
    pub(crate) lines: Vec<u32>,
    /// Quotation marks in this text that are JSON's own.
    structure: Vec<u32>,
}

/// A sentence without an end is cut after this many bytes.
const LONGEST_SENTENCE: usize = 420;

impl View {
    /// The view of `raw`, of which `base` bytes come before. `json`: escapes are resolved.
    pub(crate) fn of(raw: &str, base: usize, json: bool) -> Self {
        let mut view = Self {
            text: String::with_capacity(raw.len()),
            ..Self::default()
        };
        view.lines.push(0);
        Builder {
            view: &mut view,
            raw,
            base,
            next: None,
            gap: false,
            newlines: 0,
            stop: false,
            last_break: 0,
            word_end: 0,
            mixed: false,
        }
        .run(json);
        let end = view.text.len() as u32;
        view.breaks.push(end);
        view
    }

    /// The bytes of the raw text that a part of this one was made from.
    pub(crate) fn raw(&self, start: u32, end: u32) -> (usize, usize) {
        let first = self.raw_at(start);
        // From the last byte, so that what was left out behind it does not count.
        let last = if end > start {
            self.raw_at(end - 1) + 1
        } else {
            first
        };
        (first, last.max(first))
    }

    /// Whether a quotation mark is JSON's own and quotes nothing.
    pub(crate) fn is_structure(&self, at: u32) -> bool {
        self.structure.binary_search(&at).is_ok()
    }

    fn raw_at(&self, at: u32) -> usize {
        let i = self.map.partition_point(|(here, _)| *here <= at);
        match i.checked_sub(1).and_then(|i| self.map.get(i)) {
            Some((here, raw)) => (raw + (at - here)) as usize,
            None => at as usize,
        }
    }
}

struct Builder<'a> {
    view: &'a mut View,
    raw: &'a str,
    base: usize,
    /// The raw offset that the next byte would have if both advanced alike.
    next: Option<usize>,
    /// White space is waiting to be written.
    gap: bool,
    newlines: u32,
    /// The last character may have ended a sentence.
    stop: bool,
    last_break: usize,
    /// Until where the current word is known to mix scripts or not.
    word_end: usize,
    mixed: bool,
}

impl Builder<'_> {
    fn run(&mut self, json: bool) {
        let bytes = self.raw.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            match byte {
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                    self.gap = true;
                    at += 1;
                }
                b'\n' => {
                    self.gap = true;
                    self.newlines += 1;
                    at += 1;
                }
                b'\\' if json && at + 1 < bytes.len() => at = self.escape(at),
                b'"' if json => {
                    self.ascii(byte, at);
                    let mark = self.view.text.len() - 1;
                    self.view.structure.push(mark as u32);
                    at += 1;
                }
                0x21..=0x7e => {
                    self.ascii(byte.to_ascii_lowercase(), at);
                    at += 1;
                }
                0..=0x7f => at += 1,
                _ => {
                    let Some(c) = self.raw.get(at..).and_then(|rest| rest.chars().next()) else {
                        break;
                    };
                    self.other(c, at);
                    at += c.len_utf8();
                }
            }
        }
    }

    /// A JSON escape. Returns where the text goes on.
    fn escape(&mut self, at: usize) -> usize {
        let bytes = self.raw.as_bytes();
        match bytes[at + 1] {
            b'n' => {
                self.gap = true;
                self.newlines += 1;
                at + 2
            }
            b'r' | b't' => {
                self.gap = true;
                at + 2
            }
            b'u' => {
                let code = |at: usize| {
                    let digits = self.raw.get(at + 2..at + 6)?;
                    (self.raw.get(at..at + 2)? == "\\u")
                        .then(|| u32::from_str_radix(digits, 16).ok())?
                };
                let Some(high) = code(at) else {
                    self.ascii(b'\\', at);
                    return at + 1;
                };
                let (code, end) = match (high, code(at + 6)) {
                    (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
                        (0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), at + 12)
                    }
                    _ => (high, at + 6),
                };
                if let Some(c) = char::from_u32(code) {
                    if c.is_ascii() {
                        match c {
                            '\n' => self.newlines += 1,
                            ' '..='~' => self.put(&[c.to_ascii_lowercase() as u8], at),
                            _ => {}
                        }
                        self.gap |= c.is_ascii_whitespace();
                    } else {
                        self.other(c, at);
                    }
                }
                end
            }
            other @ (b'"' | b'\\' | b'/') => {
                self.ascii(other, at);
                at + 2
            }
            _ => {
                self.ascii(b'\\', at);
                at + 1
            }
        }
    }

    fn ascii(&mut self, byte: u8, at: usize) {
        self.put(&[byte], at);
        self.stop = match byte {
            b'.' | b'!' | b'?' | b';' => true,
            b')' | b'"' | b'\'' | b'*' | b']' | b'>' => self.stop,
            _ => false,
        };
    }

    /// A character beyond ASCII.
    fn other(&mut self, c: char, at: usize) {
        match c {
            _ if invisible(c) => {}
            '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}'
            | '\u{85}'
            | '\u{2028}'
            | '\u{2029}' => self.gap = true,
            '‘' | '’' | '‚' | '‛' | 'ʼ' | '′' | '´' => self.put(b"'", at),
            '“' | '”' | '„' | '«' | '»' | '「' | '」' | '『' | '』' => {
                self.put(b"\"", at);
            }
            '‐'..='―' => self.put(b"-", at),
            '。' | '！' | '？' | '｡' | '；' | '।' | '؟' | '۔' => {
                let mut buffer = [0; 4];
                self.put(c.encode_utf8(&mut buffer).as_bytes(), at);
                self.cut();
            }
            '\u{300}'..='\u{36f}' => {
                self.compose(c, at);
                return;
            }
            '\u{370}'..='\u{52f}' if self.in_mixed_word(at) => match latin(c) {
                Some(byte) => self.put(&[byte], at),
                None => self.lower(c, at),
            },
            _ if compatible(c) => {
                for plain in std::iter::once(c).nfkc() {
                    if plain.is_ascii() {
                        self.put(&[plain.to_ascii_lowercase() as u8], at);
                    } else {
                        self.lower(plain, at);
                    }
                }
            }
            _ => self.lower(c, at),
        }
        self.stop = false;
    }

    /// A mark on the letter before it: one letter with it, or left out where there is none.
    fn compose(&mut self, mark: char, at: usize) {
        if self.gap || self.newlines > 0 || self.view.text.len() == self.last_break {
            return;
        }
        let letter = self.view.text.chars().next_back();
        let both = letter.and_then(|letter| compose(letter, mark).map(|both| (letter, both)));
        if let Some((letter, both)) = both {
            let start = self.view.text.len() - letter.len_utf8();
            let raw = self.view.raw_at(start as u32);
            self.view.text.truncate(start);
            self.next = None;
            let mut buffer = [0; 4];
            self.put(both.encode_utf8(&mut buffer).as_bytes(), raw - self.base);
        }
        self.next = Some(self.base + at + mark.len_utf8());
    }

    fn lower(&mut self, c: char, at: usize) {
        let mut buffer = [0; 4];
        // The Turkish İ has a dot of its own in lower case.
        for lower in c.to_lowercase().filter(|lower| *lower != '\u{307}') {
            self.put(lower.encode_utf8(&mut buffer).as_bytes(), at);
        }
    }

    /// Writes what stands for the raw text at `at`.
    fn put(&mut self, bytes: &[u8], at: usize) {
        if self.gap || self.newlines > 0 {
            self.space(bytes);
        } else if self.view.text.len() - self.last_break > LONGEST_SENTENCE
            && bytes
                .first()
                .is_some_and(|byte| !byte.is_ascii_alphanumeric())
        {
            self.cut();
        }
        let raw = self.base + at;
        if self.next != Some(raw) {
            self.view
                .map
                .push((self.view.text.len() as u32, raw as u32));
        }
        // Only whole characters are ever given.
        self.view
            .text
            .push_str(std::str::from_utf8(bytes).unwrap_or_default());
        self.next = Some(raw + bytes.len());
    }

    /// Writes the white space before what comes next, and ends the sentence if it is over.
    fn space(&mut self, next: &[u8]) {
        let item = matches!(
            next.first(),
            Some(b'-' | b'*' | b'#' | b'>' | b'|' | b'<' | b'[' | b'/')
        );
        let over = self.stop && !abbreviated(&self.view.text);
        let long = self.view.text.len() - self.last_break > LONGEST_SENTENCE;
        if over || long || self.newlines > 1 || (self.newlines == 1 && item) {
            self.cut();
        }
        if !self.view.text.is_empty() {
            self.view.text.push(' ');
            self.next = None;
        }
        if self.newlines > 0 {
            self.view.lines.push(self.view.text.len() as u32);
        }
        self.gap = false;
        self.newlines = 0;
        self.stop = false;
    }

    fn cut(&mut self) {
        let end = self.view.text.len();
        if end > self.last_break {
            self.view.breaks.push(end as u32);
            self.last_break = end;
        }
    }

    /// Whether the word at `at` has Latin letters beside Greek or Cyrillic ones.
    fn in_mixed_word(&mut self, at: usize) -> bool {
        if at < self.word_end {
            return self.mixed;
        }
        let letter = |c: &char| c.is_alphabetic();
        let after = self.raw.get(at..).unwrap_or_default();
        let end = after
            .chars()
            .take(64)
            .take_while(letter)
            .map(char::len_utf8)
            .sum::<usize>();
        let before = self.raw.get(..at).unwrap_or_default();
        let start = before
            .chars()
            .rev()
            .take(64)
            .take_while(letter)
            .map(char::len_utf8)
            .sum::<usize>();
        let word = self.raw.get(at - start..at + end).unwrap_or_default();
        self.word_end = at + end;
        self.mixed = mixes_scripts(word);
        self.mixed
    }
}

/// Whether a text is JSON, by how it begins: `{"`, `[{`, `["` or `[1,`; `[1] said` is none.
pub(crate) fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let inner = text.get(1..).unwrap_or("").trim_start();
    match text.as_bytes().first() {
        Some(b'{') => inner.starts_with(['"', '}']),
        Some(b'[') => {
            let number = inner.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let listed = number.len() < inner.len() && number.trim_start().starts_with(',');
            listed || inner.starts_with(['{', '[', '"', ']'])
        }
        _ => false,
    }
}

/// Whether the sentence only seems to end, in an abbreviation.
fn abbreviated(text: &str) -> bool {
    [
        "e.g.", "i.e.", "etc.", " vs.", "z.b.", "bzw.", "p.s.", " no.", " mr.", " dr.", "p.ej.",
    ]
    .iter()
    .any(|end| text.ends_with(end))
}

/// Whether a word has Latin letters and letters that look like Latin ones.
pub(crate) fn mixes_scripts(word: &str) -> bool {
    let latin_letter = word.chars().any(|c| c.is_ascii_alphabetic());
    let foreign = |c: &char| matches!(u32::from(*c), 0x370..=0x52f);
    latin_letter
        && word.chars().any(|c| foreign(&c))
        && word.chars().filter(foreign).all(|c| latin(c).is_some())
}

/// Characters that show nothing: zero width, joiners, directions, selectors, tags.
pub(crate) fn invisible(c: char) -> bool {
    matches!(u32::from(c),
        0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f
        | 0xfeff | 0xffa0 | 0xe0000..=0xe0fff)
}

/// Whether a character may have a compatibility form.
fn compatible(c: char) -> bool {
    matches!(u32::from(c),
        0xaa | 0xb2..=0xb3 | 0xb9..=0xba | 0x1d2c..=0x1d6a | 0x2070..=0x209c | 0x2100..=0x214f
        | 0x2160..=0x217f | 0x2460..=0x24ff | 0x3300..=0x33ff | 0xfb00..=0xfb06
        | 0xff01..=0xff5e | 0x1d400..=0x1d7ff | 0x1f100..=0x1f1ff)
}

/// The Latin letter that a Greek or Cyrillic one looks like (from the confusables of UTS 39).
fn latin(c: char) -> Option<u8> {
    Some(match c {
        'а' | 'А' | 'α' | 'Α' => b'a',
        'в' | 'В' | 'Β' => b'b',
        'с' | 'С' | 'ϲ' => b'c',
        'ԁ' => b'd',
        'е' | 'Е' | 'Ε' | 'є' => b'e',
        'ɡ' | 'ԍ' => b'g',
        'һ' | 'Н' | 'н' | 'Η' => b'h',
        'і' | 'І' | 'Ι' | 'ι' | 'ї' => b'i',
        'ј' | 'Ј' => b'j',
        'к' | 'К' | 'Κ' | 'κ' => b'k',
        'ӏ' | 'Ӏ' => b'l',
        'м' | 'М' | 'Μ' => b'm',
        'п' | 'Ν' | 'ν' | 'η' => b'n',
        'о' | 'О' | 'ο' | 'Ο' | 'σ' => b'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => b'p',
        'ԛ' => b'q',
        'г' => b'r',
        'ѕ' | 'Ѕ' => b's',
        'т' | 'Т' | 'Τ' | 'τ' => b't',
        'υ' | 'ц' => b'u',
        'ѵ' => b'v',
        'ԝ' | 'ω' | 'ѡ' => b'w',
        'х' | 'Х' | 'χ' | 'Χ' => b'x',
        'у' | 'У' | 'γ' | 'Υ' => b'y',
        'Ζ' => b'z',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(raw: &str) -> String {
        View::of(raw, 0, false).text
    }

    #[test]
    fn what_hides_a_word_is_undone() {
        assert_eq!(view("Ｉｇｎｏｒｅ  \n this"), "ignore this");
        assert_eq!(view("s\u{200b}e\u{ad}n\u{e0041}d"), "send");
        assert_eq!(view("ѕеnd it"), "send it");
        assert_eq!(view("𝐬𝐞𝐧𝐝"), "send");
        assert_eq!(view("Отправь"), "отправь");
    }

    #[test]
    fn json_escapes_are_resolved_in_json_only() {
        assert_eq!(View::of("a\\n\\u0062\\\"", 0, true).text, "a b\"");
        assert_eq!(View::of("\\ud83d\\ude00\\u00fc", 0, true).text, "😀ü");
        assert_eq!(view("c:\\new"), "c:\\new");
    }

    #[test]
    fn quotes_of_json_are_told_from_those_in_its_strings() {
        let view = View::of(r#"{"a": "say \"b\""}"#, 0, true);
        let real: Vec<_> = view
            .text
            .match_indices('"')
            .map(|(at, _)| at as u32)
            .collect();
        let real: Vec<_> = real
            .into_iter()
            .filter(|at| !view.is_structure(*at))
            .collect();
        assert_eq!(real, [11, 13]);
        assert!(is_json("[1, 2]") && is_json(" {\n\"a\":1}"));
        assert!(!is_json("[1] He said \"x\"") && !is_json("{x}") && !is_json("[link](x)"));
    }

    #[test]
    fn a_place_leads_back_to_the_raw_bytes() {
        let raw = "ab \u{200b}\n  Ｓｅｎｄ the  file";
        let view = View::of(raw, 0, false);
        let at = view.text.find("send").unwrap() as u32;
        let (start, _) = view.raw(at, at + 4);
        assert!(raw[start..].starts_with('Ｓ'));
        let at = view.text.find("the").unwrap() as u32;
        let (start, end) = view.raw(at, at + 3);
        assert_eq!(&raw[start..end], "the");
    }

    #[test]
    fn sentences_end_where_they_should() {
        let parts = |raw: &str| {
            let view = View::of(raw, 0, false);
            let mut from = 0;
            let mut out = Vec::new();
            for end in view.breaks {
                out.push(view.text[from..end as usize].trim().to_owned());
                from = end as usize;
            }
            out
        };
        assert_eq!(
            parts("Reads ~/.ssh now. Then e.g. this"),
            ["reads ~/.ssh now.", "then e.g. this"]
        );
        assert_eq!(parts("one\ntwo\n\nthree"), ["one two", "three"]);
        assert_eq!(parts("先读取。然后"), ["先读取。", "然后"]);
    }
}
