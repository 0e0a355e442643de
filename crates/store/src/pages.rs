//! Headers of Parquet pages, in Thrift's compact protocol: written before our compressed pages, and
//! read before decompression.
//!
//! A page header states the decompressed size, and readers allocate that much: a few kilobytes of a
//! hostile file could demand gigabytes. All headers of a column are therefore checked first.
//! Nothing is decompressed if one page, or all of them, would exceed the size of the rows.

use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;

/// The largest decompressed page [bytes]: 2^20 rows, the largest row group ever written.
const PAGE_BYTES: u64 = 16 << 20;

/// The largest decompressed size of a column per row [bytes]: a plain number and its dictionary
/// index take 12.
const ROW_BYTES: u64 = 16;

/// The same for a column of few rows.
const COLUMN_BYTES: u64 = 64 << 10;

/// The longest header [bytes]: ours take 20, those with number statistics 100.
const HEADER_BYTES: u64 = 4 << 10;

/// The limit of nested structures; valid headers have two levels.
const DEPTH: u8 = 8;

/// Type codes of Thrift's compact protocol.
const I32: u8 = 5;
const STRUCT: u8 = 12;

/// The sizes of a page, from its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sizes {
    /// The decompressed size [bytes].
    pub(crate) unpacked: u64,
    /// The size in the file, without the header [bytes].
    pub(crate) packed: u64,
}

/// Append the header of a data page of `values` to `bytes`.
pub(crate) fn write_header(bytes: &mut Vec<u8>, sizes: Sizes, values: usize, encoding: Encoding) {
    let mut field = |step: u8, kind: u8, value: Option<u64>| {
        bytes.push(step << 4 | kind);
        let mut rest = value.map(|value| value << 1); // zigzag of a number that is not negative
        while let Some(value) = rest {
            let more = value >> 7;
            bytes.push(value as u8 & 0x7f | if more > 0 { 0x80 } else { 0 });
            rest = (more > 0).then_some(more);
        }
    };
    field(1, I32, Some(0)); // a data page
    field(1, I32, Some(sizes.unpacked));
    field(1, I32, Some(sizes.packed));
    field(2, STRUCT, None);
    field(1, I32, Some(values as u64));
    field(1, I32, Some(encoding as u64));
    field(1, I32, Some(Encoding::RLE as u64)); // encoding of levels, which are not used
    field(1, I32, Some(Encoding::RLE as u64));
    bytes.extend([0, 0]);
}

/// Return whether the pages of a column are compressed.
pub(crate) fn is_packed(chunk: &ColumnChunkMetaData) -> bool {
    chunk.compression() != Compression::UNCOMPRESSED
}

/// Return an error if a column of `rows` would decompress to more than such a column can hold.
pub(crate) fn check(
    source: &impl ChunkReader,
    chunk: &ColumnChunkMetaData,
    rows: u64,
) -> Result<(), String> {
    if !is_packed(chunk) {
        return Ok(());
    }
    let (mut offset, length) = chunk.byte_range();
    let end = offset.checked_add(length).filter(|end| *end <= source.len());
    let end = end.ok_or("a column beyond the end of the file")?;
    let limit = rows.saturating_mul(ROW_BYTES).saturating_add(COLUMN_BYTES);
    let mut total = 0;
    while offset < end {
        let bytes = source.get_bytes(offset, HEADER_BYTES.min(end - offset) as usize);
        let bytes = bytes.map_err(|error| error.to_string())?;
        let (sizes, header) = read_header(&bytes).ok_or("a page without a header")?;
        total += sizes.unpacked;
        if sizes.unpacked > PAGE_BYTES || total > limit {
            let name = chunk.column_path().string();
            return Err(format!("{total} bytes or more in '{name}', packed, for {rows} rows"));
        }
        offset = offset.saturating_add(header).saturating_add(sizes.packed);
    }
    Ok(())
}

/// Parse the header at the beginning of `bytes`; return its sizes and its length [bytes].
fn read_header(bytes: &[u8]) -> Option<(Sizes, u64)> {
    let mut reader = ThriftReader { bytes };
    let mut sizes = [None, None];
    reader.fields(0, |reader, number, kind| match (number, kind) {
        (2 | 3, I32) => {
            let value = reader.varint()?;
            // Odd zigzag values are negative.
            sizes[number as usize - 2] = Some(value >> 1).filter(|_| value & 1 == 0);
            Some(())
        }
        _ => reader.skip(kind, 0),
    })?;
    let sizes = Sizes { unpacked: sizes[0]?, packed: sizes[1]? };
    Some((sizes, (bytes.len() - reader.bytes.len()) as u64))
}

struct ThriftReader<'a> {
    bytes: &'a [u8],
}

impl ThriftReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Call `read_value` for each field of a structure; it reads the value.
    fn fields(
        &mut self,
        depth: u8,
        mut read_value: impl FnMut(&mut Self, u64, u8) -> Option<()>,
    ) -> Option<()> {
        if depth > DEPTH {
            return None;
        }
        let mut number = 0u64;
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Some(());
            }
            let step = u64::from(header >> 4);
            number = if step == 0 { self.varint()? >> 1 } else { number + step };
            read_value(self, number, header & 0xf)?;
        }
    }

    /// Skip a value.
    fn skip(&mut self, kind: u8, depth: u8) -> Option<()> {
        let bytes = match kind {
            1 | 2 => 0, // true and false
            3 => 1,
            4..=6 => return self.varint().map(drop),
            7 => 8,
            8 => usize::try_from(self.varint()?).ok()?,
            STRUCT => {
                return self.fields(depth + 1, |reader, _, kind| reader.skip(kind, depth + 1));
            }
            _ => return None, // page headers contain no lists
        };
        self.bytes = self.bytes.get(bytes..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_headers_round_trip() {
        for size in [0, 1, 63, 64, 127, 128, 16_384, 1 << 20, u64::from(i32::MAX.unsigned_abs())] {
            let sizes = Sizes { unpacked: size, packed: size / 3 };
            let mut bytes = Vec::new();
            write_header(&mut bytes, sizes, 7, Encoding::PLAIN);
            let length = bytes.len() as u64;
            assert_eq!(read_header(&bytes), Some((sizes, length)));
            for cut in 0..bytes.len() {
                assert_eq!(read_header(&bytes[..cut]), None, "{cut} of {length} bytes");
            }
        }
    }

    #[test]
    fn page_header_of_another_writer_is_skipped() {
        // type 0, unpacked 300, packed 20, crc, page header {values 4, encoding 0, 3, 3, statistics}
        let bytes = [
            0x15, 0x00, 0x15, 0xd8, 0x04, 0x15, 0x28, 0x15, 0x99, 0x03, 0x1c, 0x15, 0x08, 0x15,
            0x00, 0x15, 0x06, 0x15, 0x06, 0x1c, 0x18, 0x02, 0xff, 0xff, 0x16, 0x00, 0x11, 0x00,
            0x00, 0x00,
        ];
        let expected = Sizes { unpacked: 300, packed: 20 };
        assert_eq!(read_header(&bytes), Some((expected, bytes.len() as u64)));
        // Sizes below zero, a structure without an end, and one in one in one.
        assert_eq!(read_header(&[0x15, 0x00, 0x15, 0x01, 0x15, 0x28, 0x00]), None);
        assert_eq!(read_header(&[0x1c; 4096]), None);
        assert_eq!(read_header(&[0xff; 64]), None);
    }
}
