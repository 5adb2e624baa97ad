//! Pages: rows of neighbouring keys as one compressed value.
//!
//! Rows of runs and sessions are full of ids, times and names that stand in their neighbours
//! too: compressed together they take two thirds of what they take one by one.
//!
//! ```text
//! page   pack of: u32 key length   u32 value length   key   value   for each row, by key
//! ```
//! A page lies under a key that is not greater than its first row's, and holds the rows from
//! there to the next page. The first one of a kind lies under the kind alone.

use super::EngineError;
use super::pack;
use std::collections::BTreeMap;

/// Rows by their keys.
pub(super) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A page that has more bytes than this, and more than one row, becomes several of …
const MOST: usize = 12 << 10;
/// … about so many bytes. sled keeps up to 16 of them together and writes them anew together: of
/// larger pages that becomes more than is gained.
const USUAL: usize = 8 << 10;
/// Before each row stand the lengths of key and value.
const LENGTHS: usize = 8;

/// The rows of a page.
#[derive(Debug)]
pub(super) struct Page<'a>(std::borrow::Cow<'a, [u8]>);

impl<'a> Page<'a> {
    /// The page that is kept so.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn read(kept: &'a [u8]) -> Result<Self, EngineError> {
        let page = pack::unpack(kept).map(Self);
        page.ok_or_else(|| EngineError("a page of rows cannot be read".into()))
    }

    /// Its rows, in the order of their keys.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (lengths, after) = rest.split_first_chunk::<LENGTHS>()?;
            let [a, b, c, d, e, f, g, h] = *lengths;
            let key = u32::from_le_bytes([a, b, c, d]) as usize;
            let value = u32::from_le_bytes([e, f, g, h]) as usize;
            let (key, after) = after.split_at_checked(key)?;
            let (value, after) = after.split_at_checked(value)?;
            rest = after;
            Some((key, value))
        })
    }

    /// The value of a key.
    pub(super) fn get(&self, wanted: &[u8]) -> Option<Vec<u8>> {
        let found = self.rows().find(|(key, _)| *key >= wanted);
        found
            .filter(|(key, _)| *key == wanted)
            .map(|(_, value)| value.to_vec())
    }

    /// A copy that can be changed.
    pub(super) fn to_rows(&self) -> Rows {
        let rows = self.rows();
        rows.map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect()
    }
}

/// The pages that these rows make, which lay under this key: each with its key.
pub(super) fn pages(under: &[u8], rows: &Rows) -> Vec<(Vec<u8>, Vec<u8>)> {
    let size = |(key, value): (&Vec<u8>, &Vec<u8>)| LENGTHS + key.len() + value.len();
    let all: usize = rows.iter().map(size).sum();
    let most = match all > MOST {
        true => all.div_ceil(all.div_ceil(USUAL)),
        false => all,
    };
    let (mut pages, mut page) = (Vec::new(), Vec::with_capacity(most));
    let mut under = under.to_vec();
    for (key, value) in rows {
        if !page.is_empty() && page.len() + size((key, value)) > most {
            pages.push((
                std::mem::replace(&mut under, key.clone()),
                pack::pack(&page),
            ));
            page.clear();
        }
        for part in [key, value] {
            // None is so long: the engine could not take it.
            let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
            page.extend_from_slice(&length.to_le_bytes());
        }
        page.extend_from_slice(key);
        page.extend_from_slice(value);
    }
    if !page.is_empty() {
        pages.push((under, pack::pack(&page)));
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_from_pages_of_a_bounded_size() {
        let mut rows = Rows::new();
        for number in 0..500_u32 {
            let value = vec![number as u8; number as usize % 600];
            rows.insert(number.to_be_bytes().to_vec(), value);
        }
        rows.insert(7_u32.to_be_bytes().to_vec(), vec![1; 2 * MOST]);
        let pages = pages(b"", &rows);
        assert!(pages.len() > 9 && pages[0].0.is_empty());
        let mut all = Rows::new();
        for (under, kept) in &pages {
            let page = Page::read(kept).unwrap();
            let own = page.to_rows();
            assert!(own.keys().all(|key| key >= under));
            assert!(own.len() == 1 || page.0.len() <= MOST);
            let (key, value) = own.last_key_value().unwrap();
            assert_eq!(page.get(key).as_ref(), Some(value));
            assert_eq!(page.get(b"\xff"), None);
            all.extend(own);
        }
        assert_eq!(all, rows);
        assert!(Page::read(b"\x09").is_err());
    }
}
