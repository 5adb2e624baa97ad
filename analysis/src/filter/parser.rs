//! From tokens to an expression.
//!
//! ```text
//! any   = all ("|" all)*
//! all   = not ("&"? not)*
//! not   = "!"* ( "(" any ")" | "~" operator operand? | word | regex )
//! ```

use super::error::FilterError;
use super::lexer::{Lexer, Token};
use super::text::Text;
use super::units::{self, Comparison};
use super::{Atom, Expression, OPERATORS, Settings, Sides};
use crate::outcomes::OutcomeSet;
use agent_trace_model::{Outcome, Verdict};
use std::ops::Range;

/// Bytes of the longest filter.
const LONGEST: usize = 16 << 10;
/// How deeply parentheses may be nested.
const DEEPEST: usize = 100;
/// How many texts and regular expressions there may be: each may take a megabyte.
const MOST_TEXTS: usize = 64;
/// How alike (0 to 1) two names have to be for one to be taken for the other mistyped.
const ALIKE: f64 = 0.7;

pub(super) fn parse(text: &str, settings: &Settings) -> Result<Expression, FilterError> {
    if text.len() > LONGEST {
        let what = format!(
            "a filter may take {LONGEST} bytes, this takes {}",
            text.len()
        );
        return Err(FilterError::new(text, LONGEST, LONGEST, what));
    }
    let mut parser = Parser {
        text,
        settings,
        lexer: Lexer::new(text),
        ahead: None,
        depth: 0,
        texts: 0,
    };
    parser.advance()?;
    if parser.ahead.is_none() {
        return Ok(Expression::All(Vec::new()));
    }
    let root = parser.any()?;
    match parser.ahead.take() {
        Some((_, place)) => Err(parser.wrong(&place, "this closes nothing: expected the end")),
        None => Ok(root),
    }
}

struct Parser<'a> {
    text: &'a str,
    settings: &'a Settings,
    lexer: Lexer<'a>,
    /// The next token.
    ahead: Option<(Token, Range<usize>)>,
    depth: usize,
    texts: usize,
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<(), FilterError> {
        self.ahead = self.lexer.next()?;
        Ok(())
    }

    fn wrong(&self, place: &Range<usize>, what: impl Into<String>) -> FilterError {
        FilterError::new(self.text, place.start, place.end, what)
    }

    fn any(&mut self) -> Result<Expression, FilterError> {
        let mut parts = vec![self.all()?];
        while let Some((Token::Or, _)) = self.ahead {
            self.advance()?;
            parts.push(self.all()?);
        }
        Ok(join(parts, Expression::Any))
    }

    fn all(&mut self) -> Result<Expression, FilterError> {
        let mut parts = vec![self.not()?];
        loop {
            match self.ahead {
                Some((Token::And, _)) => self.advance()?,
                None | Some((Token::Or | Token::Close, _)) => break,
                Some(_) => {}
            }
            parts.push(self.not()?);
        }
        Ok(join(parts, Expression::All))
    }

    fn not(&mut self) -> Result<Expression, FilterError> {
        // A loop: however many there are, they are worth one or none.
        let mut negated = false;
        while let Some((Token::Not, _)) = self.ahead {
            negated = !negated;
            self.advance()?;
        }
        let part = self.part()?;
        Ok(if negated {
            Expression::Not(Box::new(part))
        } else {
            part
        })
    }

    fn part(&mut self) -> Result<Expression, FilterError> {
        let what = "expected a name, an operator such as ~t, ! or (";
        let Some((token, place)) = self.ahead.take() else {
            let end = self.text.trim_end().len();
            return Err(self.wrong(&(end..end), what));
        };
        let atom = match token {
            Token::Open => return self.group(&place),
            Token::Close | Token::And | Token::Or | Token::Not => {
                return Err(self.wrong(&place, what));
            }
            Token::Operator(name) => {
                let expression = self.operator(&name, &place)?;
                self.advance()?;
                return Ok(expression);
            }
            token => Atom::Name(self.matching(&token, &place, Text::name)?),
        };
        self.advance()?;
        Ok(Expression::Atom(atom))
    }

    fn group(&mut self, opened: &Range<usize>) -> Result<Expression, FilterError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let what = format!("parentheses may be nested {DEEPEST} deep");
            return Err(self.wrong(opened, what));
        }
        self.advance()?;
        let inner = self.any()?;
        // What ends an expression is the end or `)`.
        if self.ahead.is_none() {
            return Err(self.wrong(opened, "expected ) for the ( that stands here"));
        }
        self.advance()?;
        self.depth -= 1;
        Ok(inner)
    }

    fn operator(&mut self, name: &str, place: &Range<usize>) -> Result<Expression, FilterError> {
        let atom = match name {
            "all" => return Ok(Expression::All(Vec::new())),
            "e" => Atom::Outcome(OutcomeSet::of(Outcome::is_failure)),
            "q" => Atom::Outcome(OutcomeSet::of(Outcome::is_unanswered)),
            "failed" => Atom::RunFailed,
            "t" => Atom::Tool(self.text(name, place, Text::name)?),
            "s" => Atom::Server(self.text(name, place, Text::name)?),
            "c" => Atom::Client(self.text(name, place, Text::name)?),
            "k" => Atom::Task(self.text(name, place, Text::name)?),
            "m" => Atom::Method(self.text(name, place, Text::name)?),
            "h" => Atom::Header(self.text(name, place, Text::name)?),
            "b" => Atom::Body(Sides::Both, self.text(name, place, Text::body)?),
            "bq" => Atom::Body(Sides::Request, self.text(name, place, Text::body)?),
            "bs" => Atom::Body(Sides::Response, self.text(name, place, Text::body)?),
            "w" => Atom::Body(Sides::Both, self.words(place)?),
            "o" => return self.outcome(place),
            "d" => {
                let (comparison, bound) = self.amount(name, place, units::duration)?;
                Atom::Duration(comparison, bound)
            }
            "size" => {
                let (comparison, bound) = self.amount(name, place, units::size)?;
                Atom::Size(comparison, bound)
            }
            "r" => self.run(place)?,
            "x" => self.code(place)?,
            "v" => self.verdict(place)?,
            "since" => Atom::Since(self.moment(name, place, false)?),
            "until" => Atom::Until(self.moment(name, place, true)?),
            _ => return Err(self.unknown(name, place)),
        };
        Ok(Expression::Atom(atom))
    }

    fn unknown(&self, name: &str, place: &Range<usize>) -> FilterError {
        let known = || names();
        let near = known()
            .map(|known| (strsim::jaro_winkler(name, known), known))
            .filter(|(alike, _)| *alike >= ALIKE)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, known)| known);
        // `~tget_issue`: the longest operator that it begins with.
        let glued = || {
            known()
                .filter(|known| name.starts_with(known))
                .max_by_key(|k| k.len())
        };
        let what = match name {
            "" => "expected the name of an operator after ~".to_owned(),
            name => format!("there is no operator ~{name}"),
        };
        let error = self.wrong(place, what);
        match near.or_else(glued) {
            Some(known) => error.hinted(format!("did you mean ~{known}?")),
            None => {
                let all: Vec<String> = known().map(|name| format!("~{name}")).collect();
                error.hinted(format!("the operators are {}", all.join(" ")))
            }
        }
    }

    /// The operand of an operator, which stands at `place`.
    fn operand(
        &mut self,
        name: &str,
        place: &Range<usize>,
        needs: &str,
    ) -> Result<(Token, Range<usize>), FilterError> {
        if let Some(operand) = self.lexer.operand()? {
            return Ok(operand);
        }
        let at = self.lexer.at();
        let rest = self.text.get(at..).unwrap_or_default();
        let (at, end) = match rest.chars().next() {
            Some(c) => (at, at + c.len_utf8()),
            None => (place.end, place.end),
        };
        let error = self.wrong(&(at..end), format!("~{name} needs {needs}"));
        Err(match rest.chars().next() {
            Some('!') => error.hinted(format!("`!` stands before the operator: !~{name}")),
            Some(_) => error.hinted("a text that begins with a sign needs quotes"),
            None => error,
        })
    }

    fn text(
        &mut self,
        name: &str,
        place: &Range<usize>,
        plain: fn(&str) -> Result<Text, regex::Error>,
    ) -> Result<Text, FilterError> {
        let known = OPERATORS.iter().find(|(known, _)| *known == name);
        let needs = known.map_or("text", |(_, needs)| needs);
        let needs = format!("a {needs} or /regex/");
        let (token, place) = self.operand(name, place, &needs)?;
        self.matching(&token, &place, plain)
    }

    fn matching(
        &mut self,
        token: &Token,
        place: &Range<usize>,
        plain: fn(&str) -> Result<Text, regex::Error>,
    ) -> Result<Text, FilterError> {
        self.texts += 1;
        if self.texts > MOST_TEXTS {
            let what = format!("a filter may have {MOST_TEXTS} texts");
            return Err(self.wrong(place, what));
        }
        let text = match token {
            Token::Regex(pattern) => Text::regex(pattern),
            Token::Word(text) => plain(text),
            _ => return Err(self.wrong(place, "expected a text")),
        };
        text.map_err(|error| self.wrong(place, regex_error(&error)))
    }

    fn words(&mut self, place: &Range<usize>) -> Result<Text, FilterError> {
        match self.operand("w", place, "whole words")? {
            (token @ Token::Word(_), place) => self.matching(&token, &place, Text::word),
            (_, place) => Err(self.wrong(&place, "expected whole words; ~b takes a regex")),
        }
    }

    /// An operand that is no text to look for.
    fn plain(
        &mut self,
        name: &str,
        place: &Range<usize>,
        needs: &str,
    ) -> Result<(String, Range<usize>), FilterError> {
        match self.operand(name, place, needs)? {
            (Token::Word(word), place) => Ok((word, place)),
            (_, place) => Err(self.wrong(&place, format!("~{name} needs {needs}"))),
        }
    }

    fn amount(
        &mut self,
        name: &str,
        place: &Range<usize>,
        read: fn(&str) -> Result<u64, &'static str>,
    ) -> Result<(Comparison, u64), FilterError> {
        let needs = "a comparison: > >= < <= or = with an amount, as in ";
        let needs = format!("{needs}~{name} >{}", if name == "d" { "2s" } else { "1MB" });
        let (word, place) = self.plain(name, place, &needs)?;
        let Some((comparison, amount)) = Comparison::split(&word) else {
            return Err(self.wrong(&place, format!("~{name} needs {needs}")));
        };
        let sign = word.len() - amount.len();
        if !amount.is_empty() {
            let place = place.start + sign..place.end;
            let amount = read(amount);
            let amount = amount.map_err(|what| self.wrong(&place, format!("expected {what}")))?;
            return Ok((comparison, amount));
        }
        // The amount may stand apart.
        let (amount, place) = self.plain(name, &place, &needs)?;
        let amount = read(&amount);
        let amount = amount.map_err(|what| self.wrong(&place, format!("expected {what}")))?;
        Ok((comparison, amount))
    }

    fn outcome(&mut self, place: &Range<usize>) -> Result<Expression, FilterError> {
        let mut known: Vec<&str> = Outcome::ALL.iter().map(|o| o.as_str()).collect();
        known.push("slow");
        let needs = format!("an outcome: {}", known.join(", "));
        let (word, place) = self.plain("o", place, &needs)?;
        if word.eq_ignore_ascii_case("slow") {
            let slow = Atom::Duration(Comparison::AtLeast, self.settings.slow);
            return Ok(Expression::Atom(slow));
        }
        let mut all = Outcome::ALL.into_iter();
        match all.find(|outcome| outcome.as_str().eq_ignore_ascii_case(&word)) {
            Some(outcome) => Ok(Expression::Atom(Atom::Outcome(OutcomeSet::one(outcome)))),
            None => {
                let what = format!(
                    "there is no outcome {word:?}: expected {}",
                    known.join(", ")
                );
                Err(self.wrong(&place, what))
            }
        }
    }

    fn run(&mut self, place: &Range<usize>) -> Result<Atom, FilterError> {
        let needs = "the beginning of a run's id";
        let (word, place) = self.plain("r", place, needs)?;
        let id = word.replace('-', "").to_ascii_lowercase();
        if id.is_empty() || id.len() > 32 || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
            let what = format!("expected {needs}: hexadecimal digits");
            return Err(self.wrong(&place, what));
        }
        Ok(Atom::Run(id))
    }

    fn code(&mut self, place: &Range<usize>) -> Result<Atom, FilterError> {
        let needs = "a number: a JSON-RPC error code such as -32601, or an HTTP status";
        let (word, place) = self.plain("x", place, needs)?;
        let is_finding = word
            .get(..2)
            .is_some_and(|word| word.eq_ignore_ascii_case("AT"));
        if is_finding && word[2..].bytes().all(|b| b.is_ascii_digit()) && word.len() > 2 {
            return Ok(Atom::Found(word.to_ascii_uppercase()));
        }
        match word.parse() {
            Ok(code) => Ok(Atom::Code(code)),
            Err(_) => Err(self.wrong(&place, format!("expected {needs}"))),
        }
    }

    fn verdict(&mut self, place: &Range<usize>) -> Result<Atom, FilterError> {
        let needs = "a verdict: right, wrong or unjudged";
        let (word, place) = self.plain("v", place, needs)?;
        match word.parse::<Verdict>() {
            Ok(verdict) => Ok(Atom::Verdict(verdict)),
            Err(_) => Err(self.wrong(&place, format!("expected {needs}"))),
        }
    }

    fn moment(&mut self, name: &str, place: &Range<usize>, end: bool) -> Result<u64, FilterError> {
        let (word, place) = self.plain(name, place, "a time")?;
        let moment = units::moment(&word, self.settings, end);
        moment.map_err(|what| self.wrong(&place, format!("expected {what}")))
    }
}

/// Several parts as one, those first that cost less to know.
fn join(mut parts: Vec<Expression>, all: fn(Vec<Expression>) -> Expression) -> Expression {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    parts.sort_by_cached_key(Expression::cost);
    all(parts)
}

/// The names of all operators.
fn names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, _)| *name)
}

/// What the `regex` crate says, in one line.
fn regex_error(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "this regular expression is too large".into(),
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let last = last.strip_prefix("error: ").unwrap_or(last);
            format!("not a regular expression: {last}")
        }
    }
}
