//! What is read: files of a folder, a single file, or standard input.

use super::error::FormatError;
use super::lines::{self, Lines};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Something that can be read more than once.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A file.
    File(PathBuf),
    /// What standard input gave.
    Memory(Vec<u8>),
}

impl Source {
    /// Where it is, for errors.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Memory(_) => Path::new("-"),
        }
    }

    /// What a person calls it without the folders around it.
    pub(super) fn stem(&self) -> String {
        let stem = self.path().file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    pub(super) fn open(&self) -> Result<Box<dyn Read + '_>, FormatError> {
        Ok(match self {
            Self::File(path) => Box::new(lines::open(path)?),
            Self::Memory(bytes) => Box::new(&bytes[..]),
        })
    }

    pub(super) fn lines(&self) -> Result<Lines<Box<dyn Read + '_>>, FormatError> {
        Ok(Lines::new(self.path(), self.open()?))
    }

    /// Its first bytes.
    pub(super) fn start(&self, most: u64) -> Result<Vec<u8>, FormatError> {
        let mut start = Vec::new();
        let mut reader = self.open()?.take(most);
        reader.read_to_end(&mut start).map_err(self.at())?;
        Ok(start)
    }

    /// All of it, if that is no more than `most` bytes.
    pub(super) fn whole(&self, most: u64) -> Result<Vec<u8>, FormatError> {
        let bytes = self.start(most + 1)?;
        if bytes.len() as u64 > most {
            let what = format!("larger than {} MiB, which one document may be", most >> 20);
            return Err(self.at()(io::Error::new(io::ErrorKind::FileTooLarge, what)));
        }
        Ok(bytes)
    }

    /// Feeds all of it to a hasher.
    pub(super) fn hash(&self, hasher: &mut blake3::Hasher) -> Result<(), FormatError> {
        let mut reader = self.open()?;
        let mut chunk = vec![0; 256 << 10];
        loop {
            match reader.read(&mut chunk).map_err(self.at())? {
                0 => return Ok(()),
                read => hasher.update(&chunk[..read]),
            };
        }
    }

    fn at(&self) -> impl FnOnce(io::Error) -> FormatError {
        FormatError::at(self.path())
    }
}

/// A digest as it is stored.
pub(super) fn digits(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..32].to_owned()
}
