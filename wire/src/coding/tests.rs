//! What the codings of real bodies become, and what is given up.

use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use std::io::Write;

/// `a lot of text` in brotli, as Node's zlib writes it: the crate here only reads.
const BROTLI: &[u8] = &[
    0x0b, 0x06, 0x80, b'a', b' ', b'l', b'o', b't', b' ', b'o', b'f', b' ', b't', b'e', b'x', b't',
    0x03,
];

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn raw(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(text, 3).unwrap()
}

/// What a body says once its codings are undone, and how that went.
fn decode(codings: &str, body: &[u8], size: usize) -> (Vec<u8>, Result<(), Problem>) {
    let windows = Budget::new(64 << 20);
    let mut out = Vec::new();
    let done = (|| {
        let values = codings.split(';').map(str::as_bytes);
        let Some(mut decoder) = Decoder::new(values, &windows)? else {
            out.extend_from_slice(body);
            return Ok(());
        };
        for chunk in body.chunks(size) {
            decoder.push(chunk, &mut |piece| out.extend_from_slice(piece))?;
        }
        decoder.finish()
    })();
    assert_eq!(windows.used(), 0);
    (out, done)
}

#[test]
fn every_coding_is_undone_whatever_the_chunks() {
    let text = "a lot of text ".repeat(5000).into_bytes();
    let members = [gzip(&text[..100]), gzip(&text[100..])].concat();
    let frames = [zstd(&text[..100]), zstd(&text[100..])].concat();
    let padded = [gzip(&text), vec![0; 20]].concat();
    for (codings, body) in [
        ("gzip", gzip(&text)),
        ("x-GZIP", members),
        ("gzip", padded),
        ("deflate", zlib(&text)),
        ("deflate", raw(&text)),
        ("zstd", zstd(&text)),
        ("zstd", frames),
        ("identity", text.clone()),
        ("", text.clone()),
        ("gzip, zstd", zstd(&gzip(&text))),
        ("deflate;identity, gzip", gzip(&zlib(&text))),
    ] {
        for size in [1, 7, 1000, usize::MAX] {
            let (out, done) = decode(codings, &body, size);
            assert_eq!(done, Ok(()), "{codings} {size}");
            assert!(out == text, "{codings} {size}");
        }
    }
    for size in [1, 99] {
        assert_eq!(
            decode("br", BROTLI, size),
            (b"a lot of text".to_vec(), Ok(()))
        );
        let twice = gzip(BROTLI);
        assert_eq!(
            decode("br, gzip", &twice, size),
            (b"a lot of text".to_vec(), Ok(()))
        );
    }
}

#[test]
fn what_a_chunk_completes_comes_out_with_it() {
    let windows = Budget::new(64 << 20);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut decoder = Decoder::new([&b"gzip"[..]], &windows).unwrap().unwrap();
    for event in ["data: one\n\n", "data: two\n\n"] {
        encoder.write_all(event.as_bytes()).unwrap();
        encoder.flush().unwrap();
        let mut out = Vec::new();
        let chunk = std::mem::take(encoder.get_mut());
        decoder
            .push(&chunk, &mut |piece| out.extend_from_slice(piece))
            .unwrap();
        assert_eq!(out, event.as_bytes());
    }
    assert_eq!(decoder.finish(), Err(Problem::Broken), "it is not over");
}

#[test]
fn problems_are_told_apart() {
    let text = b"some text that is long enough to be worth it".repeat(9);
    assert_eq!(decode("compress", b"x", 9).1, Err(Problem::Unknown));
    assert_eq!(
        decode("gzip, aws-chunked", b"x", 9).1,
        Err(Problem::Unknown)
    );
    for coding in ["gzip", "deflate", "zstd", "br"] {
        assert_eq!(
            decode(coding, &[0xFF; 90], 9).1,
            Err(Problem::Broken),
            "{coding}"
        );
        assert_eq!(decode(coding, b"", 9).1, Ok(()), "no body at all");
    }
    for (coding, body) in [
        ("gzip", gzip(&text)),
        ("deflate", zlib(&text)),
        ("zstd", zstd(&text)),
    ] {
        let cut = &body[..body.len() - 1];
        assert_eq!(decode(coding, cut, 9).1, Err(Problem::Broken), "{coding}");
    }
    let mut damaged = gzip(&text);
    let crc = damaged.len() - 8;
    damaged[crc] ^= 1;
    assert_eq!(decode("gzip", &damaged, 9).1, Err(Problem::Broken));
    let five = "gzip, gzip, gzip, gzip, gzip";
    assert_eq!(decode(five, b"x", 9).1, Err(Problem::Bound));
}

#[test]
fn a_bomb_is_given_up_and_its_output_is_bounded() {
    let zeros = vec![0; 64 << 20];
    for (coding, bomb) in [("gzip", gzip(&zeros)), ("zstd", zstd(&zeros))] {
        let (out, done) = decode(coding, &bomb, 4096);
        assert_eq!(done, Err(Problem::Bound), "{coding}");
        assert!(out.len() as u64 <= FREE + RATIO * bomb.len() as u64);
    }
    let twice = gzip(&gzip(&zeros));
    assert_eq!(decode("gzip, gzip", &twice, 4096).1, Err(Problem::Bound));
}

#[test]
fn windows_are_bounded() {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(24).unwrap();
    encoder.write_all(&[1; 100]).unwrap();
    let large = encoder.finish().unwrap();
    assert_eq!(decode("zstd", &large, 99).1, Err(Problem::Broken));
    let windows = Budget::new(100 << 10);
    let first = Decoder::new([&b"gzip"[..]], &windows).unwrap();
    assert!(matches!(
        Decoder::new([&b"gzip"[..]], &windows),
        Err(Problem::Bound)
    ));
    drop(first);
    assert!(Decoder::new([&b"gzip"[..]], &windows).is_ok());
    assert_eq!(
        [0x0b, 0x0c, 0x01, 0x21, 0x71].map(brotli_window),
        [22, 16, 17, 10, 15].map(|b| 1 << b)
    );
}

proptest! {
    #[test]
    fn any_bytes_are_taken_without_panic(
        body: Vec<u8>,
        keep in 0..40_usize,
        coding in prop::sample::select(vec!["gzip", "deflate", "br", "zstd", "zstd, gzip", "br, br"]),
        size in 1..50_usize,
    ) {
        let start = match coding { "gzip" => gzip(b"text"), "zstd" => zstd(b"text"), "br" => BROTLI.to_vec(), _ => zlib(b"text") };
        let body = [&start[..keep.min(start.len())], &body].concat();
        let whole = decode(coding, &body, usize::MAX);
        let split = decode(coding, &body, size);
        prop_assert_eq!(whole.1, split.1);
        if whole.1.is_ok() {
            prop_assert_eq!(whole.0, split.0);
        }
    }
}
