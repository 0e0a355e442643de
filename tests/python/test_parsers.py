"""Every Python parser on documents and mutated documents: a result, or a clear error.

`make fuzz` gives the same functions (`parsers`) to libFuzzer, which looks for more with coverage.
What fails is printed with the line that brings it back.
"""

import os
import random
from collections.abc import Sequence

import pytest
from parsers import TARGETS, documents, expect_no_internal_error

CASES = int(os.environ.get("UFLIP_FUZZ_CASES") or 150)
SEED = int(os.environ.get("UFLIP_FUZZ_SEED") or 1)
ODD = (
    b"0", b"1", b"-1", b"4096", b"4294967296", b"9223372036854775808", b"18446744073709551616",
    b"1e300", b"-0.0", b"nan", b"inf", b"1e999", b"null", b"true", b'""', b"[]", b"{}", b"\\u0000",
    b"\x00", b"\xff\xff", b"\xed\xa0\x80", b"\n", b"=", b"[[", b"{" * 90, b"9" * 400,
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bytes]]:
    return documents(tmp_path_factory.mktemp("corpus"))


def mutate(corpus: Sequence[bytes], rng: random.Random) -> bytes:
    """One of the documents, changed in one to four places."""
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        end = min(at + rng.randrange(1, 17), len(data))
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end]
        elif kind == 3 and rng.randrange(4) == 0:
            del data[at:]
        elif kind == 4:
            other = rng.choice(corpus)
            begin = rng.randrange(len(other) + 1)
            data[at:end] = other[begin : begin + 32]
        else:
            # Mostly replace a value by a value: a valid document tests more code.
            offsets = [n for n, byte in enumerate(data) if byte in b"0123456789"] or [at]
            offset = rng.choice(offsets)
            data[offset : offset + 1] = rng.choice(ODD)
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_corpus_document_is_read(name: str, corpus: dict[str, list[bytes]]) -> None:
    for content in corpus[name]:
        if name != "series":  # of CSV and Parquet it is one
            TARGETS[name](content)
        expect_no_internal_error(TARGETS[name], content)


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_document_is_read_or_explained(name: str, corpus: dict[str, list[bytes]]) -> None:
    for case in range(CASES):
        content = mutate(corpus[name], random.Random(f"{SEED}/{name}/{case}"))
        try:
            expect_no_internal_error(TARGETS[name], content)
        except Exception as error:
            at = f"UFLIP_FUZZ_SEED={SEED} UFLIP_FUZZ_CASES={CASES}"
            raise AssertionError(f"{at}: {name}, case {case}: {content!r}") from error


def test_every_parser_has_documents(corpus: dict[str, list[bytes]]) -> None:
    assert all(corpus[name] for name in TARGETS)
