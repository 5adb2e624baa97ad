//! From characters to tokens.

use super::error::FilterError;
use std::ops::Range;

/// A piece of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Open,
    Close,
    Not,
    And,
    Or,
    /// `~name`, without the tilde.
    Operator(String),
    /// A word, or a quoted text.
    Word(String),
    /// `/…/`
    Regex(String),
}

/// The tokens of a text with the bytes that each takes.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The next token as it is where an expression may stand.
    pub(super) fn next(&mut self) -> Result<Option<(Token, Range<usize>)>, FilterError> {
        self.skip_blanks();
        let start = self.at;
        let Some(first) = self.rest().chars().next() else {
            return Ok(None);
        };
        let token = match first {
            '(' => self.sign(Token::Open),
            ')' => self.sign(Token::Close),
            '!' => self.sign(Token::Not),
            '&' => self.doubled('&', Token::And),
            '|' => self.doubled('|', Token::Or),
            '~' => {
                let name = self.rest()[1..].split(|c: char| !c.is_ascii_alphabetic() && c != '_');
                let name = name.take(1).collect::<String>();
                self.at += 1 + name.len();
                Token::Operator(name)
            }
            _ => self.text_token()?,
        };
        Ok(Some((token, start..self.at)))
    }

    /// The operand of an operator: none where nothing stands that could be one.
    pub(super) fn operand(&mut self) -> Result<Option<(Token, Range<usize>)>, FilterError> {
        self.skip_blanks();
        let start = self.at;
        match self.rest().chars().next() {
            None | Some('(' | ')' | '!' | '&' | '|' | '~') => Ok(None),
            Some(_) => {
                let token = self.text_token()?;
                Ok(Some((token, start..self.at)))
            }
        }
    }

    /// Where the lexer stands.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn sign(&mut self, token: Token) -> Token {
        self.at += 1;
        token
    }

    fn doubled(&mut self, sign: char, token: Token) -> Token {
        self.at += if self.rest()[1..].starts_with(sign) {
            2
        } else {
            1
        };
        token
    }

    fn text_token(&mut self) -> Result<Token, FilterError> {
        match self.rest().as_bytes().first() {
            Some(b'"') => self.quoted('"'),
            Some(b'\'') => self.quoted('\''),
            Some(b'/') => self.regex(),
            _ => Ok(self.word()),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Token, FilterError> {
        let start = self.at;
        let mut content = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.at = start + at + 1;
                self.ends_here("a quoted text")?;
                return Ok(Token::Word(content));
            }
            match c {
                '\\' => content.extend(chars.next().map(|(_, c)| c)),
                c => content.push(c),
            }
        }
        let what = format!("expected {quote} at the end of the text that begins here");
        Err(FilterError::new(self.text, start, start + 1, what))
    }

    fn regex(&mut self) -> Result<Token, FilterError> {
        let start = self.at;
        let mut pattern = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '/' => {
                    self.at = start + at + 1;
                    self.ends_here("a regular expression")?;
                    return Ok(Token::Regex(pattern));
                }
                // All but `\/` is the expression's own.
                '\\' => match chars.next() {
                    Some((_, '/')) => pattern.push('/'),
                    Some((_, c)) => pattern.extend(['\\', c]),
                    None => {}
                },
                c => pattern.push(c),
            }
        }
        let what = "expected / at the end of the regular expression that begins here";
        let error = FilterError::new(self.text, start, start + 1, what);
        Err(error.hinted("a text that begins with / needs quotes"))
    }

    /// After a quoted text there is a blank or a sign.
    fn ends_here(&self, what: &str) -> Result<(), FilterError> {
        match self.rest().chars().next() {
            None | Some('(' | ')' | '!' | '&' | '|' | '~') => Ok(()),
            Some(c) if c.is_whitespace() => Ok(()),
            Some(c) => {
                let what = format!("expected a blank after {what}");
                let end = self.at + c.len_utf8();
                Err(FilterError::new(self.text, self.at, end, what))
            }
        }
    }

    fn word(&mut self) -> Token {
        let mut content = String::new();
        let rest = self.rest();
        let mut length = rest.len();
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            if c.is_whitespace() || matches!(c, '(' | ')' | '&' | '|') {
                length = at;
                break;
            }
            match c {
                '\\' => content.extend(chars.next().map(|(_, c)| c)),
                c => content.push(c),
            }
        }
        self.at += length;
        Token::Word(content)
    }
}
