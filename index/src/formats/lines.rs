//! The lines of a foreign file, one at a time and of bounded length.

use super::error::FormatError;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// A longer line is refused. What is made of one must fit into a record of 64 MiB.
pub(super) const MOST_LINE: usize = 16 << 20;
/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Opens a file that must be a plain one: a pipe would wait for whoever writes it, and a link
/// inside a folder could lead anywhere.
pub(super) fn open(path: &Path) -> Result<File, FormatError> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        // Not waiting for a writer of a pipe that was put here since the folder was read.
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.cast_signed());
    }
    let file = options.open(path).map_err(FormatError::at(path))?;
    let plain = file.metadata().map_err(FormatError::at(path))?.is_file();
    if !plain {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not a plain file");
        return Err(FormatError::Io {
            path: path.to_owned(),
            source,
        });
    }
    Ok(file)
}

/// Reads a small file as a whole; none where it is larger than `most`.
pub(super) fn read_small(path: &Path, most: u64) -> Result<Option<Vec<u8>>, FormatError> {
    let mut bytes = Vec::new();
    let mut file = open(path)?.take(most + 1);
    file.read_to_end(&mut bytes)
        .map_err(FormatError::at(path))?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// The lines of a file that are not blank.
pub(super) struct Lines<R> {
    path: PathBuf,
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(path: &Path, reader: R) -> Self {
        Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(CHUNK, reader),
            line: Vec::new(),
            number: 0,
        }
    }

    /// The next line that is not blank, without white space around it, and whether its line
    /// end is there.
    pub(super) fn next(&mut self) -> Result<Option<(&[u8], bool)>, FormatError> {
        loop {
            self.line.clear();
            // What the last long line took is given back.
            self.line.shrink_to(CHUNK);
            self.number += 1;
            let mut bounded = (&mut self.reader).take(MOST_LINE as u64 + 1);
            let read = bounded.read_until(b'\n', &mut self.line);
            if read.map_err(FormatError::at(&self.path))? == 0 {
                return Ok(None);
            }
            let whole = self.line.last() == Some(&b'\n');
            if !whole && self.line.len() > MOST_LINE {
                return Err(self.fault(format!("longer than {} MiB", MOST_LINE >> 20)));
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some((self.line.trim_ascii(), whole)));
            }
        }
    }

    /// What is wrong with the line that was read last.
    pub(super) fn fault(&self, what: impl Into<String>) -> FormatError {
        FormatError::Line {
            path: self.path.clone(),
            line: self.number,
            what: what.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_blank_ones_too() {
        let text = b"\n a \r\n\nb";
        let mut lines = Lines::new(Path::new("x"), &text[..]);
        assert_eq!(lines.next().unwrap(), Some((&b"a"[..], true)));
        assert_eq!(lines.fault("bad").to_string(), "x line 2: bad");
        assert_eq!(lines.next().unwrap(), Some((&b"b"[..], false)));
        assert_eq!(lines.fault("bad").to_string(), "x line 4: bad");
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let mut lines = Lines::new(Path::new("x"), io::repeat(b'x'));
        let error = lines.next().unwrap_err();
        assert_eq!(error.to_string(), "x line 1: longer than 16 MiB");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_no_file_and_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let error = open(&path).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap();
        assert_eq!(cause.to_string(), "not a plain file");
    }
}
