"""Parts of many files in one body: only valid parts are accepted."""

import hashlib
import random
from pathlib import Path

import pytest

from uflip.errors import ResultsError, UsageError
from uflip.site import upload_files
from uflip.site.blobs import Blobs
from uflip.site.upload_files import (
    MAX_PART_BYTES,
    MAX_PARTS,
    FilePart,
    Missing,
    bodies,
    pack_parts,
    unpack_parts,
)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_files_arrive_intact_in_any_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    contents = [rng.randbytes(rng.choice([0, 1, 999, 1000, 1001, 5000])) for _ in range(60)]
    files = []
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}"
        path.write_bytes(content)
        files.append(Missing(path, digest(content), len(content), 0))
    blobs = Blobs(tmp_path / "site")
    monkeypatch.setattr(upload_files, "MAX_PART_BYTES", 1000)
    monkeypatch.setattr(upload_files, "MAX_PARTS", 7)
    sizes = {each.digest: each.bytes for each in files}
    received: dict[str, int] = {}
    for batch in bodies(files):
        assert len(batch) <= 7
        assert sum(len(each.content) for each in batch) <= 1000
        decoded = unpack_parts(pack_parts(batch))
        assert decoded == batch
        received |= blobs.receive("upload", [(each, sizes[each.digest]) for each in decoded])
    assert received == sizes
    for content in contents:
        assert blobs.path(digest(content)).read_bytes() == content
    sent = [*(tmp_path / "site" / "arriving" / "upload").iterdir()]
    assert {each.name for each in sent} == {*sizes}, "the upload holds them"
    assert all(each.samefile(blobs.path(each.name)) for each in sent), "each is kept once"
    blobs.remove_upload("upload")
    assert not [*(tmp_path / "site" / "arriving").iterdir()]


def test_file_of_two_senders_is_stored_once(
    tmp_path: Path,
) -> None:
    blobs, content = Blobs(tmp_path / "site"), b"some content"
    name, size = digest(content), len(content)
    whole = [(FilePart(name, 0, content), size)]
    assert blobs.receive("first", whole) == {name: size}
    assert blobs.received("second", name, size) == 0
    half = (FilePart(name, 0, content[:5]), size)
    assert blobs.receive("second", [half]) == {name: 5}
    assert blobs.receive("second", [(FilePart(name, 5, content[5:]), size)]) == {name: size}
    assert blobs.receive("second", whole) == {name: size}, "again"
    links = [tmp_path / "site" / "arriving" / each / name for each in ("first", "second")]
    assert all(each.samefile(blobs.path(name)) for each in links)
    assert [*links[1].parent.iterdir()] == [links[1]]
    blobs.remove_upload("first")
    assert blobs.received("second", name, size) == size
    assert blobs.path(name).read_bytes() == content


GOOD = pack_parts([FilePart("0" * 64, 0, b"abc")])


@pytest.mark.parametrize(
    "body",
    [b"x", GOOD[:-1], GOOD + b"x", GOOD + GOOD[:40], bytes(32) + b"\xff" * 16,
     pack_parts([FilePart("0" * 64, 0, b"")] * (MAX_PARTS + 1)),
     pack_parts([FilePart("0" * 64, 0, bytes(MAX_PART_BYTES)), FilePart("0" * 64, 0, b"x")])],
    ids=["a letter", "cut", "more", "half a head", "a huge length", "many", "long"],
)  # fmt: skip
def test_malformed_body_is_refused(body: bytes) -> None:
    with pytest.raises(UsageError, match="Not parts of files"):
        unpack_parts(body)


def test_invalid_part_affects_no_other(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "site")
    first, second = b"first", b"second"
    sent = [(FilePart(digest(first), 0, first), 5), (FilePart(digest(second), 3, second[3:]), 6)]
    with pytest.raises(UsageError, match="does not continue"):
        blobs.receive("upload", sent)
    assert blobs.received("upload", digest(first), 5) == 5
    assert blobs.exists(digest(first))
    # The part with a wrong digest is discarded; the other one is stored.
    sent = [(FilePart(digest(b"other!"), 0, second), 6), (FilePart(digest(second), 0, second), 6)]
    with pytest.raises(ResultsError, match="does not match its digest"):
        blobs.receive("upload", sent)
    assert blobs.exists(digest(second))
    assert blobs.received("upload", digest(b"other!"), 6) == 0
