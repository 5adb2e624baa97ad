//! Content codings of HTTP bodies, undone incrementally: gzip, deflate, br, zstd, and lists of
//! them (RFC 9110, section 8.4).
//!
//! What comes out with a chunk comes out at once, so that a compressed event stream gives its
//! events as they come. Nothing grows with the input: output goes to the caller in pieces of
//! a fixed size, the windows that codings need are taken from a [`Budget`], and what expands
//! beyond [`FREE`] and [`RATIO`] is given up.
//!
//! - `inflate`: gzip and deflate; the others are a few calls of their libraries

mod inflate;

use std::ops::ControlFlow;

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

use crate::assembly::Budget;
use inflate::Inflate;

/// Bytes that any body may expand to: as much as is kept of a frame.
pub const FREE: u64 = 8 << 20;
/// Bytes of output for each byte of input beyond [`FREE`]. Text of tool results compresses 5
/// to 30 times; gzip reaches 1000 times with nothing but zeros.
pub const RATIO: u64 = 100;
/// More codings one after another are no body that anybody means to read.
const MOST_STAGES: usize = 4;
/// Output is handed on in pieces of this size.
const PIECE: usize = 8 << 10;
/// The largest window of zstd that is decoded, as the power of two: what RFC 9659 allows in
/// HTTP.
const ZSTD_WINDOW_LOG: u32 = 23;
/// What a decoder needs beside its window, about.
const OVERHEAD: usize = 64 << 10;

/// Why a body is not decoded, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A coding that is not known here.
    Unknown,
    /// The body is not in that coding.
    Broken,
    /// It needs more memory, or grows more, than is allowed.
    Bound,
}

impl Problem {
    /// As it is recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Broken => "broken",
            Self::Bound => "bound",
        }
    }
}

/// Takes decoded bytes.
type Sink<'s> = &'s mut dyn FnMut(&[u8]);

/// Undoes the codings of one body.
pub struct Decoder {
    /// The last one that was applied comes first.
    stages: Vec<Stage>,
    fed: u64,
    windows: Budget,
    taken: usize,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("stages", &self.stages.len())
            .field("fed", &self.fed)
            .finish_non_exhaustive()
    }
}

struct Stage {
    coding: Coding,
    made: u64,
}

enum Coding {
    Inflate(Box<Inflate>),
    /// Made with the first byte, which tells its window.
    Brotli(Option<Box<Brotli>>),
    Zstd(Box<Zstd>),
}

type Brotli = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

struct Zstd {
    decoder: zstd::stream::raw::Decoder<'static>,
    /// Within a frame.
    open: bool,
}

impl Decoder {
    /// A decoder for the values of `Content-Encoding`; none where they say `identity` or
    /// nothing.
    ///
    /// # Errors
    /// A coding is not known, or the `windows` are used up.
    pub fn new<'a>(
        values: impl IntoIterator<Item = &'a [u8]>,
        windows: &Budget,
    ) -> Result<Option<Self>, Problem> {
        let mut decoder = Self {
            stages: Vec::new(),
            fed: 0,
            windows: windows.clone(),
            taken: 0,
        };
        let names = values
            .into_iter()
            .flat_map(|value| value.split(|&byte| byte == b','))
            .map(<[u8]>::trim_ascii);
        for name in names {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            if name.is_empty() || is("identity") {
                continue;
            }
            let coding = if is("gzip") || is("x-gzip") {
                decoder.take(OVERHEAD)?;
                Coding::Inflate(Box::new(Inflate::gzip()))
            } else if is("deflate") {
                decoder.take(OVERHEAD)?;
                Coding::Inflate(Box::new(Inflate::deflate()))
            } else if is("br") {
                Coding::Brotli(None)
            } else if is("zstd") {
                decoder.take(OVERHEAD + (1 << ZSTD_WINDOW_LOG))?;
                let mut zstd = zstd::stream::raw::Decoder::new().map_err(|_| Problem::Bound)?;
                zstd.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))
                    .map_err(|_| Problem::Bound)?;
                Coding::Zstd(Box::new(Zstd {
                    decoder: zstd,
                    open: false,
                }))
            } else {
                return Err(Problem::Unknown);
            };
            if decoder.stages.len() == MOST_STAGES {
                return Err(Problem::Bound);
            }
            decoder.stages.insert(0, Stage { coding, made: 0 });
        }
        Ok((!decoder.stages.is_empty()).then_some(decoder))
    }

    /// Takes the next bytes of the body, and hands on what they complete.
    ///
    /// # Errors
    /// After one, nothing more comes out.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), Problem> {
        self.fed += bytes.len() as u64;
        for at in 0..self.stages.len() {
            // A later stage begins when the first bytes reach it, so its window is reckoned
            // as the largest there is.
            if let Coding::Brotli(state @ None) = &mut self.stages[at].coding
                && let Some(&first) = bytes.first()
            {
                let window = if at == 0 {
                    brotli_window(first)
                } else {
                    1 << 24
                };
                *state = Some(Box::new(brotli()));
                self.take(OVERHEAD + window)?;
            }
        }
        let most = FREE.saturating_add(RATIO.saturating_mul(self.fed));
        let done = run(&mut self.stages, bytes, most, sink);
        if done.is_err() {
            self.stages.clear();
        }
        done
    }

    /// The body is over.
    ///
    /// # Errors
    /// It is not, in its coding.
    pub fn finish(self) -> Result<(), Problem> {
        let whole = self.fed == 0 || self.stages.iter().all(Stage::is_whole);
        if whole { Ok(()) } else { Err(Problem::Broken) }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Problem> {
        if !self.windows.take(bytes) {
            return Err(Problem::Bound);
        }
        self.taken += bytes;
        Ok(())
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        self.windows.give_back(self.taken);
    }
}

/// Runs the bytes through the first of these stages, and what comes out through the others.
fn run(stages: &mut [Stage], bytes: &[u8], most: u64, sink: Sink<'_>) -> Result<(), Problem> {
    let Some((stage, later)) = stages.split_first_mut() else {
        sink(bytes);
        return Ok(());
    };
    let made = &mut stage.made;
    stage.coding.run(bytes, &mut |piece| {
        *made += piece.len() as u64;
        if *made > most {
            return Err(Problem::Bound);
        }
        run(later, piece, most, sink)
    })
}

impl Stage {
    fn is_whole(&self) -> bool {
        match &self.coding {
            Coding::Inflate(inflate) => inflate.is_whole(),
            Coding::Brotli(state) => state
                .as_ref()
                .is_none_or(|state| brotli_decompressor::BrotliDecoderIsFinished(state)),
            Coding::Zstd(zstd) => !zstd.open,
        }
    }
}

/// Takes a piece of output.
type Next<'n> = &'n mut dyn FnMut(&[u8]) -> Result<(), Problem>;

impl Coding {
    fn run(&mut self, mut input: &[u8], next: Next<'_>) -> Result<(), Problem> {
        let mut piece = [0; PIECE];
        loop {
            let (used, made, flow) = match self {
                Self::Inflate(inflate) => inflate.step(input, &mut piece)?,
                Self::Brotli(Some(state)) => brotli_step(state, input, &mut piece)?,
                Self::Brotli(None) => return Ok(()),
                Self::Zstd(zstd) => zstd.step(input, &mut piece)?,
            };
            input = &input[used..];
            if made > 0 {
                next(&piece[..made])?;
            }
            let moved = used + made > 0;
            if flow.is_break() || !moved || input.is_empty() && made < PIECE {
                return Ok(());
            }
        }
    }
}

/// How many bytes were used and made, and whether more can come.
type Step = Result<(usize, usize, ControlFlow<()>), Problem>;

impl Zstd {
    fn step(&mut self, input: &[u8], piece: &mut [u8]) -> Step {
        // Without input it would begin another frame.
        if input.is_empty() && !self.open {
            return Ok((0, 0, ControlFlow::Break(())));
        }
        let mut input = InBuffer::around(input);
        let mut output = OutBuffer::around(piece);
        let wants = self
            .decoder
            .run(&mut input, &mut output)
            .map_err(|_| Problem::Broken)?;
        self.open = wants > 0;
        Ok((input.pos(), output.pos(), ControlFlow::Continue(())))
    }
}

fn brotli() -> Brotli {
    let (bytes, numbers, codes) = Default::default();
    let mut state: Brotli = BrotliState::new(bytes, numbers, codes);
    // Windows beyond 16 MiB are no part of HTTP's coding (RFC 7932).
    state.large_window = false;
    state
}

fn brotli_step(state: &mut Brotli, input: &[u8], piece: &mut [u8]) -> Step {
    let (mut input_left, mut used) = (input.len(), 0);
    let (mut output_left, mut made, mut total) = (piece.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut input_left,
        &mut used,
        input,
        &mut output_left,
        &mut made,
        piece,
        &mut total,
        state,
    );
    match result {
        BrotliResult::ResultFailure => Err(Problem::Broken),
        BrotliResult::ResultSuccess => Ok((used, made, ControlFlow::Break(()))),
        _ => Ok((used, made, ControlFlow::Continue(()))),
    }
}

/// The window that the first byte of a brotli stream announces (RFC 7932, section 9.1).
fn brotli_window(first: u8) -> usize {
    let bits = match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, ..) => 16,
        (_, 0, 0) => 17,
        (_, 0, low) => 8 + low,
        (_, high, _) => 17 + high,
    };
    1 << bits
}

#[cfg(test)]
mod tests;
