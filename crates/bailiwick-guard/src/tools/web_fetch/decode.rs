//! Bodies as they were before they were compressed, up to a bound and no further.
//!
//! Decoders write into a buffer that takes no more than it may hold, so that nothing is unpacked in vain.
//!
//! Fails closed when a coding is not known, codings are stacked, or a small body unpacks to a very large one.

use std::io::Write;

use brotli_decompressor::DecompressorWriter;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// From here on a body must not have unpacked to more than `MAX_RATIO` times its size.
const SUSPICIOUS: usize = 1024 * 1024;
const MAX_RATIO: usize = 200;
/// How much is unpacked between looks.
const STEP: usize = 1024;

/// Whether a body is wanted further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fed {
    More,
    Full,
}

/// A body while it is unpacked.
pub(super) struct Decoder {
    coding: Coding,
    fed: usize,
}

enum Coding {
    Plain(Capped),
    Gzip(MultiGzDecoder<Capped>),
    /// Zlib or bare deflate, which the first bytes tell: servers send either.
    Deflate(Vec<u8>, Capped),
    Zlib(ZlibDecoder<Capped>),
    Bare(DeflateDecoder<Capped>),
    Brotli(Box<DecompressorWriter<Capped>>),
}

/// A buffer that takes so much and then no more.
#[derive(Default)]
struct Capped {
    kept: Vec<u8>,
    limit: usize,
    /// More came than it takes.
    full: bool,
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.limit - self.kept.len();
        let taken = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.kept.extend_from_slice(taken);
        self.full |= taken.len() < bytes.len();
        if self.full { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    #[error("the body's coding `{}` is not known", .0.escape_debug())]
    Coding(String),
    #[error("the body unpacks to more than {MAX_RATIO} times its size")]
    Bomb,
    #[error("the body cannot be unpacked: {0}")]
    Packed(std::io::Error),
}

impl Decoder {
    pub(super) fn new(coding: Option<&str>, limit: usize) -> Result<Self, DecodeError> {
        let capped = Capped { limit, ..Capped::default() };
        let name = coding.unwrap_or_default().trim().to_ascii_lowercase();
        let coding = match &*name {
            "" | "identity" => Coding::Plain(capped),
            "gzip" | "x-gzip" => Coding::Gzip(MultiGzDecoder::new(capped)),
            "deflate" => Coding::Deflate(Vec::new(), capped),
            "br" => Coding::Brotli(Box::new(DecompressorWriter::new(capped, 4096))),
            other => return Err(DecodeError::Coding(other.to_owned())),
        };
        Ok(Self { coding, fed: 0 })
    }

    /// Unpacks the next piece.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Fed, DecodeError> {
        for step in bytes.chunks(STEP) {
            self.fed += step.len();
            let written = self.step(step);
            let bound = SUSPICIOUS.max(self.fed.saturating_mul(MAX_RATIO));
            let unpacks = !matches!(self.coding, Coding::Plain(_));
            let held = self.held();
            if unpacks && held.kept.len() > bound {
                return Err(DecodeError::Bomb);
            }
            if held.full {
                return Ok(Fed::Full);
            }
            written.map_err(DecodeError::Packed)?;
        }
        Ok(Fed::More)
    }

    /// The whole body, and whether it broke off.
    pub(super) fn finish(mut self) -> Result<(Vec<u8>, bool), DecodeError> {
        if self.fed == 0 {
            return Ok((Vec::new(), false));
        }
        let ended = match &mut self.coding {
            Coding::Plain(_) => Ok(()),
            // One byte says nothing.
            Coding::Deflate(_, _) => Err(std::io::ErrorKind::UnexpectedEof.into()),
            Coding::Gzip(decoder) => decoder.try_finish(),
            Coding::Zlib(decoder) => decoder.try_finish(),
            Coding::Bare(decoder) => decoder.try_finish(),
            Coding::Brotli(decoder) => decoder.close(),
        };
        Ok((self.into_body(), ended.is_err()))
    }

    /// What there is of the body.
    pub(super) fn into_body(mut self) -> Vec<u8> {
        std::mem::take(&mut self.held().kept)
    }

    fn step(&mut self, step: &[u8]) -> std::io::Result<()> {
        if let Coding::Deflate(first, _) = &mut self.coding {
            first.extend_from_slice(step);
            if first.len() < 2 {
                return Ok(());
            }
            let first = std::mem::take(first);
            self.settle_on(&first);
            return self.step(&first);
        }
        match &mut self.coding {
            Coding::Plain(capped) => capped.write_all(step),
            Coding::Gzip(decoder) => decoder.write_all(step),
            Coding::Zlib(decoder) => decoder.write_all(step),
            Coding::Bare(decoder) => decoder.write_all(step),
            Coding::Brotli(decoder) => decoder.write_all(step),
            Coding::Deflate(_, _) => Ok(()),
        }
    }

    fn settle_on(&mut self, first: &[u8]) {
        let Coding::Deflate(_, capped) = &mut self.coding else { return };
        let capped = std::mem::take(capped);
        let is_zlib =
            matches!(first, [a, b, ..] if a & 15 == 8 && (u16::from(*a) << 8 | u16::from(*b)) % 31 == 0);
        self.coding = if is_zlib {
            Coding::Zlib(ZlibDecoder::new(capped))
        } else {
            Coding::Bare(DeflateDecoder::new(capped))
        };
    }

    fn held(&mut self) -> &mut Capped {
        match &mut self.coding {
            Coding::Plain(capped) | Coding::Deflate(_, capped) => capped,
            Coding::Gzip(decoder) => decoder.get_mut(),
            Coding::Zlib(decoder) => decoder.get_mut(),
            Coding::Bare(decoder) => decoder.get_mut(),
            Coding::Brotli(decoder) => decoder.get_mut(),
        }
    }
}
