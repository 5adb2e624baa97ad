//! Heads that are nearly as one before them.
//!
//! From one request to the next on a connection little more than `Content-Length` changes.
//! What the lines before and after the changed ones became is copied as a whole.

use std::io;

/// So many heads are kept.
const SLOTS: usize = 32;
/// The longest that are kept: the head, its lines, and what became of it.
const LONGEST: usize = 4 << 10;
const MOST_LINES: usize = 128;
const LARGEST: usize = 16 << 10;
/// Where more has changed, the newer head is kept in place of the older one.
const CHANGED: usize = 128;

/// What became of heads, each `of` something that it depends on beside its bytes.
#[derive(Debug)]
pub(super) struct Repeated<K> {
    slots: Vec<Option<Kept<K>>>,
}

#[derive(Debug)]
struct Kept<K> {
    of: K,
    /// Ends with a line feed.
    head: Box<[u8]>,
    out: Box<[u8]>,
    /// Where each line ends, in `head` and in `out`.
    ends: Vec<(usize, usize)>,
}

/// What of a kept head can be taken over.
#[derive(Clone, Copy, Default)]
struct Same {
    /// So many lines from its beginning, which end here in its head and output.
    lines: usize,
    before: (usize, usize),
    /// All lines from this one on; so long is the head from there, and there its output
    /// begins.
    from: usize,
    after: (usize, usize),
}

impl<K> Default for Repeated<K> {
    fn default() -> Self {
        Self { slots: Vec::new() }
    }
}

impl<K: PartialEq> Repeated<K> {
    /// Appends to `out` what `write` makes of each line of `head`, in order; it is told
    /// whether the line is the first. Heads under the same `slot` are compared.
    pub(super) fn append(
        &mut self,
        slot: u32,
        of: K,
        head: &[u8],
        out: &mut Vec<u8>,
        mut write: impl FnMut(&[u8], bool, &mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        let slot = &mut self.slots[slot as usize % SLOTS];
        let kept = slot.take().filter(|kept| kept.of == of);
        let same = kept.as_ref().map(|kept| kept.same(head));
        let (start, part) = (out.len(), same.unwrap_or_default());
        let changed = &head[part.before.0..head.len() - part.after.0];
        let mut ends = Vec::new();
        let keep = head.ends_with(b"\n") && (same.is_none() || changed.len() > CHANGED);
        if let Some(kept) = &kept {
            out.extend_from_slice(&kept.out[..part.before.1]);
            if keep {
                ends.extend_from_slice(&kept.ends[..part.lines]);
            }
        }
        let mut is_first = part.lines == 0;
        let mut end = part.before.0;
        for line in changed.split_inclusive(|&byte| byte == b'\n') {
            write(line, std::mem::take(&mut is_first), out)?;
            end += line.len();
            if keep && ends.len() <= MOST_LINES {
                ends.push((end, out.len() - start));
            }
        }
        if is_first {
            write(&[], true, out)?;
        }
        if let Some(kept) = &kept {
            let moved = (out.len() - start, part.after.1);
            out.extend_from_slice(&kept.out[part.after.1..]);
            if keep {
                let rest = kept.ends[part.from..].iter();
                let moved = rest.map(|&(raw, made)| {
                    let raw = raw + head.len() - kept.head.len();
                    (raw, made + moved.0 - moved.1)
                });
                ends.extend(moved);
            }
        }
        let made = &out[start..];
        let fits = head.len() <= LONGEST && ends.len() <= MOST_LINES && made.len() <= LARGEST;
        *slot = match kept {
            _ if keep && fits => Some(Kept {
                of,
                head: head.into(),
                out: made.into(),
                ends,
            }),
            kept => kept,
        };
        Ok(())
    }
}

impl<K> Kept<K> {
    /// Which whole lines `head` has in common with this one, at its beginning and at its end.
    fn same(&self, head: &[u8]) -> Same {
        let start = common(&self.head, head);
        let lines = self.ends.partition_point(|&(end, _)| end <= start);
        let before = lines.checked_sub(1).map_or((0, 0), |line| self.ends[line]);
        let tail = common_at_end(&self.head[before.0..], &head[before.0..]);
        let least = self.head.len() - tail;
        let mut line = self.ends.partition_point(|&(end, _)| end < least);
        line = line.max(lines.saturating_sub(1));
        let at = |line: usize| self.ends.get(line).copied();
        let length = |(end, _): (usize, usize)| self.head.len() - end;
        // It must begin a line in the other head too.
        let begins = |end| head[..head.len() - length(end)].ends_with(b"\n");
        if !at(line).is_some_and(begins) {
            line += 1;
        }
        let end = at(line).unwrap_or((self.head.len(), self.out.len()));
        Same {
            lines,
            before,
            from: (line + 1).min(self.ends.len()),
            after: (length(end), end.1),
        }
    }
}

const STEP: usize = 16;

/// How many bytes both begin with.
fn common(a: &[u8], b: &[u8]) -> usize {
    let (steps, _) = a.as_chunks::<STEP>();
    let (others, _) = b.as_chunks::<STEP>();
    let same = steps.iter().zip(others).take_while(|(a, b)| a == b).count() * STEP;
    let rest = a[same..].iter().zip(&b[same..]);
    same + rest.take_while(|(a, b)| a == b).count()
}

/// How many bytes both end with.
fn common_at_end(a: &[u8], b: &[u8]) -> usize {
    let (_, steps) = a.as_rchunks::<STEP>();
    let (_, others) = b.as_rchunks::<STEP>();
    let steps = steps.iter().rev().zip(others.iter().rev());
    let same = steps.take_while(|(a, b)| a == b).count() * STEP;
    let (a, b) = (&a[..a.len() - same], &b[..b.len() - same]);
    let rest = a.iter().rev().zip(b.iter().rev());
    same + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(line: &[u8], is_first: bool, out: &mut Vec<u8>) -> io::Result<()> {
        out.push(if is_first { b'<' } else { b'(' });
        out.extend(line.iter().map(u8::to_ascii_uppercase));
        out.push(b')');
        Ok(())
    }

    fn plain(head: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Repeated::default()
            .append(0, (), head, &mut out, write)
            .unwrap();
        out
    }

    #[test]
    fn only_what_changed_is_written_anew() {
        let mut heads = Repeated::default();
        let mut written = Vec::new();
        for head in [
            &b"post\na: 1\nlength: 5\nb: 2\nc: 3\n"[..],
            b"post\na: 1\nlength: 77\nb: 2\nc: 3\n",
            b"post\na: 1\nlength: 5\nb: 2\nc: 3\n",
            b"post\na: 1\nb: 2\nc: 3\n",
            b"get\na: 1\nlength: 5\nb: 2\nc: 3\n",
        ] {
            let (mut out, mut lines) = (Vec::new(), Vec::new());
            heads
                .append(7, 1, head, &mut out, |line, is_first, out| {
                    lines.push(String::from_utf8_lossy(line).trim().to_owned());
                    write(line, is_first, out)
                })
                .unwrap();
            assert_eq!(out, plain(head));
            written.push(lines.join("|"));
        }
        assert_eq!(
            written,
            ["post|a: 1|length: 5|b: 2|c: 3", "length: 77", "", "", "get"]
        );
    }

    #[test]
    fn another_caller_takes_nothing_over() {
        let mut heads = Repeated::default();
        for of in [1, 2] {
            let mut lines = 0;
            let count = |_: &[u8], _, _: &mut Vec<u8>| {
                lines += 1;
                Ok(())
            };
            heads
                .append(0, of, b"a\nb\n", &mut Vec::new(), count)
                .unwrap();
            assert_eq!(lines, 2);
        }
    }

    proptest! {
        #[test]
        fn what_was_before_makes_no_difference(
            heads in prop::collection::vec(
                prop::collection::vec("[ab]{0,3}|[a-c]{60,90}", 0..8), 1..12
            ),
            ended: bool,
        ) {
            let mut known = Repeated::default();
            for head in heads {
                let mut head = head.join("\n");
                if ended {
                    head.push('\n');
                }
                let mut out = b"before".to_vec();
                known.append(0, (), head.as_bytes(), &mut out, write).unwrap();
                prop_assert_eq!(&out[6..], plain(head.as_bytes()));
            }
        }
    }
}
