//! The store's secret key, from which fingerprints and digests are made.
//!
//! 32 random bytes in `<data>/key`. Without it a fingerprint cannot be tested against
//! guesses; with it equal secrets stay comparable within one store.

use crate::layout::{Store, write_new};
use crate::redact::Key;
use std::fs;
use std::io::{self, ErrorKind};

/// Length of the key in bytes.
const LENGTH: usize = 32;

/// The store's key; made if there is none yet.
///
/// # Errors
/// When the file can be neither read nor made, or holds something else than a key.
pub fn load_or_create(store: &Store) -> io::Result<Key> {
    match load(store) {
        Err(error) if error.kind() == ErrorKind::NotFound => create(store),
        Err(error) if error.kind() == ErrorKind::InvalidData && is_lost(store) => {
            fs::remove_file(store.key_file())?;
            create(store)
        }
        loaded => loaded,
    }
}

/// Whether the key's file is empty (the power failed when it was made) and nothing was
/// recorded with it, so that another key does no harm.
fn is_lost(store: &Store) -> bool {
    fs::metadata(store.key_file()).is_ok_and(|file| file.len() == 0)
        && store.segments().is_ok_and(|segments| segments.is_empty())
}

/// The store's key, which must exist.
///
/// # Errors
/// As for [`load_or_create`]; [`ErrorKind::NotFound`] where there is no key yet.
pub fn load(store: &Store) -> io::Result<Key> {
    let file = store.key_file();
    let bytes = fs::read(&file)?;
    match <[u8; LENGTH]>::try_from(bytes.as_slice()) {
        Ok(key) => Ok(Key::from_bytes(key)),
        Err(_) => {
            let what = format!("{} does not hold a key of {LENGTH} bytes", file.display());
            Err(io::Error::new(ErrorKind::InvalidData, what))
        }
    }
}

/// A key for this once, which belongs to no store.
///
/// # Errors
/// When the system has no random numbers.
pub fn random() -> io::Result<Key> {
    random_bytes().map(Key::from_bytes)
}

fn random_bytes() -> io::Result<[u8; LENGTH]> {
    let mut key = [0; LENGTH];
    getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(key)
}

fn create(store: &Store) -> io::Result<Key> {
    store.make(store.root())?;
    // The file is never there half written, and of several that are made at once one wins.
    match write_new(&store.key_file(), &random_bytes()?) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => load(store),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("new"));
        assert_eq!(load(&store).err().unwrap().kind(), ErrorKind::NotFound);
        let made = load_or_create(&store).unwrap();
        assert_eq!(load_or_create(&store).unwrap().id(), made.id());
    }

    #[test]
    fn a_damaged_key_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        fs::write(store.key_file(), b"").unwrap();
        assert!(load_or_create(&store).is_ok(), "lost before it was used");
        fs::write(store.key_file(), b"short").unwrap();
        let error = load_or_create(&store).err().unwrap();
        assert!(error.to_string().contains("key does not hold"), "{error}");
    }
}
