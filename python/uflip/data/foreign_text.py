"""The text of a small file of another program: UTF-8 or, from Windows, UTF-16; also in gzip."""

import zlib
from contextlib import suppress
from pathlib import Path

from uflip.data.document import DocumentKind, decode_text, read_document, read_start
from uflip.errors import UflipError

START_BYTES = 1 << 16
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_foreign_text(path: Path, kind: DocumentKind) -> str:
    """Read the text of a whole file of another program."""
    content = unpacked(path, kind, read_document(path, kind))
    if content.startswith(_UTF16):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError as error:
            raise kind.unreadable(path, "bytes that are not UTF-16", "UTF-8 or UTF-16") from error
    return decode_text(path, kind, content.removeprefix(b"\xef\xbb\xbf"))


def start_of_text(path: Path, kind: DocumentKind) -> str:
    """Return the beginning of a file as text; empty if it cannot be read."""
    try:
        content = read_start(path, kind, START_BYTES)
    except UflipError:
        return ""
    if content.startswith(_GZIP):
        with suppress(zlib.error):
            content = zlib.decompressobj(_GZIP_WINDOW).decompress(content, START_BYTES)
    if content.startswith(_UTF16):
        return content.decode("utf-16", errors="ignore")
    return content.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")


def unpacked(path: Path, kind: DocumentKind, content: bytes) -> bytes:
    """Return the content of a file of gzip, or that of any other one as it is."""
    if not content.startswith(_GZIP):
        return content
    decompressor = zlib.decompressobj(_GZIP_WINDOW)
    try:
        text = decompressor.decompress(content, kind.limit_bytes + 1)
    except zlib.error as error:
        raise kind.unreadable(path, str(error), "a whole file of gzip") from error
    if len(text) > kind.limit_bytes:
        allowed = f"up to {kind.limit_bytes} bytes"
        raise kind.unreadable(path, "more text than a file of this kind has", allowed)
    if not decompressor.eof:
        raise kind.unreadable(path, "a part of a file of gzip", "a whole one")
    return text
