//! The servers: one that answers MCP requests with as little work as it can, and one that
//! sends back every byte.

use crate::Result;
use crate::answers;
use crate::pump::own_streams;
use std::io::{Read, Write};

const CHUNK: usize = 64 << 10;

/// Answers requests, one message a line, until standard input ends.
pub(crate) fn answer() -> Result<()> {
    let (mut input, mut output) = own_streams()?;
    let mut buffer = vec![0; CHUNK];
    let (mut held, mut out) = (Vec::new(), Vec::new());
    loop {
        let n = input.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        held.extend_from_slice(&buffer[..n]);
        let end = held
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |at| at + 1);
        for line in held[..end].split_inclusive(|&b| b == b'\n') {
            out.clear();
            if answers::answer(line, &mut out)? {
                out.push(b'\n');
                output.write_all(&out)?;
            }
        }
        held.drain(..end);
    }
}

/// Sends back what it reads, so that what a client sends is put to both directions.
pub(crate) fn mirror() -> Result<()> {
    let (mut input, mut output) = own_streams()?;
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = input.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        output.write_all(&buffer[..n])?;
    }
}
