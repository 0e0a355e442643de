"""Decompression bombs: invalid Parquet files, written in Thrift's compact protocol.

A file has columns of numbers, each of pages `(unpacked, values, packed)`: the unpacked size and
the number of values as its header claims, and the actual content.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
NONE, ZSTD = 0, 6
PLAIN, RLE = 0, 3
INT32, INT64 = 1, 2


class Page(NamedTuple):
    """A page with the claims of its header."""

    unpacked: int
    values: int
    packed: bytes


def varint(value: int) -> bytes:
    """Return a variable-length integer: seven bits a byte, the lowest ones first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def encoded(kind: int, value: object) -> bytes:
    """Encode a value of a Thrift type: a list as `(type, values)`, a structure as its fields."""
    if isinstance(value, int):
        return _number(value)
    if isinstance(value, bytes):
        return varint(len(value)) + value
    if kind == LIST:
        assert isinstance(value, tuple)
        of, items = value
        head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of])
        length = b"" if len(items) < 15 else varint(len(items))
        return head + length + b"".join(encoded(of, item) for item in items)
    assert isinstance(value, list)
    return structure(value)


def structure(fields: Sequence[tuple[int, int, object]]) -> bytes:
    """Encode the fields `(number, type, value)` of a structure, in order."""
    out, last = b"", 0
    for number, kind, value in fields:
        out += bytes([(number - last) << 4 | kind]) + encoded(kind, value)
        last = number
    return out + b"\0"


def page(of: Page) -> bytes:
    """Return a data page with its header."""
    data = [(1, I32, of.values), (2, I32, PLAIN), (3, I32, RLE), (4, I32, RLE)]
    header = [(1, I32, 0), (2, I32, of.unpacked), (3, I32, len(of.packed)), (5, STRUCT, data)]
    return structure(header) + of.packed


def zeros(length: int) -> bytes:
    """Return a zstd frame that unpacks to `length` zeros [bytes]: four bytes for each 128 KiB."""
    block, out = 128 << 10, bytearray(b"\x28\xb5\x2f\xfd\x00\x38")
    while True:
        size = min(block, length)
        length -= size
        out += struct.pack("<I", size << 3 | 1 << 1 | (length == 0))[:3] + b"\0"
        if not length:
            return bytes(out)


def parquet(
    columns: Mapping[str, Sequence[Sequence[Page]]],
    rows: Sequence[int],
    metadata: Mapping[str, str],
    *,
    codec: int = ZSTD,
    narrow: Sequence[str] = ("stream",),
) -> bytes:
    """Return a file with a row group for each number in `rows`; each column has a list of pages."""
    out, groups = bytearray(b"PAR1"), []
    for number, count in enumerate(rows):
        chunks = []
        for name, of in columns.items():
            begin = len(out)
            for one in of[number]:
                out += page(one)
            kind = INT32 if name in narrow else INT64
            about = [
                (1, I32, kind),
                (2, LIST, (I32, [PLAIN])),
                (3, LIST, (BINARY, [name.encode()])),
                (4, I32, codec),
                (5, I64, count),
                (6, I64, sum(one.unpacked for one in of[number])),
                (7, I64, len(out) - begin),
                (9, I64, begin),
            ]
            chunks.append([(2, I64, begin), (3, STRUCT, about)])
        groups.append([(1, LIST, (STRUCT, chunks)), (2, I64, len(out)), (3, I64, count)])
    root = [(4, BINARY, b"uflip"), (5, I32, len(columns))]
    schema = [root]
    for name in columns:
        kind = INT32 if name in narrow else INT64
        schema.append([(1, I32, kind), (3, I32, 0), (4, BINARY, name.encode())])
    pairs = [[(1, BINARY, k.encode()), (2, BINARY, v.encode())] for k, v in metadata.items()]
    footer = structure(
        [
            (1, I32, 1),
            (2, LIST, (STRUCT, schema)),
            (3, I64, sum(rows)),
            (4, LIST, (STRUCT, groups)),
            (5, LIST, (STRUCT, pairs)),
        ]
    )
    return bytes(out) + footer + struct.pack("<I", len(footer)) + b"PAR1"
