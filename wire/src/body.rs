//! The body of an HTTP message as one frame.

use crate::assembly::{Assembly, Budget};
use crate::frame::{Event, Framing};
use crate::{json, stdio};

/// Collects the body of one HTTP message. An empty one gives no frame.
#[derive(Debug)]
pub struct Decoder {
    frame: Assembly,
    /// The first byte that is neither a blank nor of a byte order mark.
    first: Option<u8>,
}

impl Decoder {
    /// A decoder that keeps at most `limit` bytes of the body, and takes them from `budget`.
    #[must_use]
    pub fn new(limit: usize, budget: &Budget) -> Self {
        Self {
            frame: Assembly::new(limit, budget),
            first: None,
        }
    }

    /// How many bytes are held.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.frame.held().len()
    }

    /// Takes the next bytes of the body.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event<'_>)) {
        if bytes.is_empty() {
            return;
        }
        let padding = |byte: &u8| byte.is_ascii_whitespace() || json::BOM.contains(byte);
        if self.first.is_none() && !self.frame.has_hole() {
            self.first = bytes.iter().copied().find(|byte| !padding(byte));
        }
        self.frame.keep(bytes, sink);
    }

    /// Takes note that the next `lost` bytes of the body are missing from the copy.
    pub fn skip(&mut self, lost: u64) {
        if lost > 0 {
            self.frame.lose(lost);
        }
    }

    /// Ends the body; `broken` if its sender did not get to its end. The decoder is then as
    /// new.
    ///
    /// It is a [`Framing::Body`] if it is JSON. Where that cannot be checked, as it is not all
    /// there, it is judged by how it begins.
    pub fn finish(&mut self, broken: bool, sink: &mut dyn FnMut(Event<'_>)) {
        let first = self.first.take();
        if self.frame.is_fresh() {
            return;
        }
        let is_json = if broken || !self.frame.is_whole_with(&[]) {
            matches!(first, Some(b'{' | b'['))
        } else {
            json::is_valid(stdio::body(self.frame.held(), Framing::Body))
        };
        let framing = if is_json {
            Framing::Body
        } else {
            Framing::Stray
        };
        self.frame.end(&[], framing, broken, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Framing, length, kept bytes, incomplete, and the bytes beyond.
    fn decode(limit: usize, chunks: &[&[u8]], broken: bool) -> Vec<(Framing, u64, usize, bool)> {
        let mut decoder = Decoder::new(limit, &Budget::new(1 << 20));
        let (mut frames, mut beyond) = (Vec::new(), 0);
        let mut sink = |event: Event<'_>| match event {
            Event::Overflow { more, .. } => beyond += more.len(),
            Event::Frame(frame) => {
                assert_eq!(frame.raw.len() + beyond, frame.length as usize);
                let kept = frame.raw.len();
                frames.push((frame.framing, frame.length, kept, frame.incomplete));
            }
        };
        for chunk in chunks {
            decoder.push(chunk, &mut sink);
        }
        decoder.finish(broken, &mut sink);
        assert_eq!(decoder.pending(), 0);
        frames
    }

    #[test]
    fn a_body_is_one_frame_and_json_or_stray() {
        use Framing::{Body, Stray};
        assert_eq!(
            decode(99, &[b"{\"a\"", b":1}"], false),
            [(Body, 7, 7, false)]
        );
        assert_eq!(
            decode(99, &[b" \xef\xbb\xbf[]\r\n"], false),
            [(Body, 8, 8, false)]
        );
        assert_eq!(decode(99, &[b"null"], false), [(Body, 4, 4, false)]);
        assert_eq!(decode(99, &[b"{oops}"], false), [(Stray, 6, 6, false)]);
        assert_eq!(decode(99, &[b"<html>"], false), [(Stray, 6, 6, false)]);
        assert_eq!(decode(99, &[b"{\"a\"", b""], true), [(Body, 4, 4, true)]);
        assert_eq!(decode(99, &[b"<ht"], true), [(Stray, 3, 3, true)]);
        assert_eq!(
            decode(4, &[b"{\"a\"", b":1}", b" "], false),
            [(Body, 8, 4, false)]
        );
        assert_eq!(decode(99, &[], false), []);
        assert_eq!(decode(99, &[b""], true), []);
    }

    #[test]
    fn a_loss_counts_and_says_so() {
        let mut decoder = Decoder::new(99, &Budget::new(99));
        let mut seen = Vec::new();
        let mut sink = |event: Event<'_>| {
            if let Event::Frame(frame) = event {
                seen.push((frame.framing, frame.length, frame.lossy));
            }
        };
        decoder.push(b"{", &mut sink);
        decoder.skip(10);
        decoder.push(b"}", &mut sink);
        decoder.finish(false, &mut sink);
        decoder.skip(5);
        decoder.push(b"{}", &mut sink);
        decoder.finish(false, &mut sink);
        assert_eq!(seen, [(Framing::Body, 12, true), (Framing::Stray, 7, true)]);
    }

    #[test]
    fn what_the_budget_has_no_room_for_is_counted_and_given_back() {
        let budget = Budget::new(100);
        let mut bodies: Vec<_> = (0..4).map(|_| Decoder::new(1000, &budget)).collect();
        let mut told = Vec::new();
        for _ in 0..5 {
            for body in &mut bodies {
                body.push(&[b'['; 16], &mut |_| {});
                assert!(budget.used() <= 100);
            }
        }
        for mut body in bodies {
            body.finish(false, &mut |event| {
                if let Event::Frame(frame) = event {
                    told.push((frame.length, frame.raw.len()));
                }
            });
        }
        assert!(told.iter().all(|&(length, kept)| length == 80 && kept < 80));
        assert!(told.iter().any(|&(_, kept)| kept >= 16));
        assert_eq!(budget.used(), 0);
        let mut next = Decoder::new(1000, &budget);
        next.push(&[b'['; 90], &mut |_| {});
        assert_eq!(next.pending(), 90);
    }
}
