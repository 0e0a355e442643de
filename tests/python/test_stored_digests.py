"""Is every stored digest checked? For each, one bit of the content and one of the digest flips.

The reader then refuses the file with an error, or ignores it (a cache). A place without a function
here names the test of another file that flips the bit.
"""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import stored
from local_site import open_test_site, submit
from msgspec.structs import replace
from site_server import small_result

from uflip import _native
from uflip.accuracy import long_run
from uflip.benchmark import multi_device
from uflip.data import run_summary
from uflip.device import cache
from uflip.device.opener import open_device
from uflip.errors import ResultsError, UsageError
from uflip.results import Results, outputs
from uflip.results.device_log import read_device_log
from uflip.results.integrity import examine
from uflip.results.run_summary import SummaryCache
from uflip.site import client as site_client
from uflip.site.accounts import account_of, new_token
from uflip.site.backup import back_up, restore_from
from uflip.site.blobs import Blobs, Bucket
from uflip.site.client import prepare
from uflip.site.tables import Account
from uflip.site.upload_files import FilePart
from uflip.spec import baseline, read_spec
from uflip.sweeping import load_plan, sweep
from uflip.sweeping.data_set import DataSet, read_data_set

ROOT = Path(__file__).resolve().parents[2]
DEVICE = "sim:demo?blocks_per_die=64"
CONTENT, DIGEST = "content", "digest"
RUNS = [stored.baseline_run(1, "SR", io_count=32), stored.baseline_run(2, "RW", io_count=32)]
FIO_LOG = "fio version 2 iolog\nx add\nx open\nx write 4096 4096\nx read 8192 4096\nx close\n"


def flip_in(path: Path, position: int) -> None:
    """Flip the lowest bit of one byte of a file."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)


def flip_hex(digest: str) -> str:
    """Flip one bit of a digest in hexadecimal digits."""
    return f"{int(digest[0], 16) ^ 1:x}{digest[1:]}"


def flip_text(path: Path, digest: str) -> None:
    """Flip one bit of a digest that a file contains once or more."""
    content = path.read_bytes()
    assert digest.encode() in content
    path.chmod(0o644)
    path.write_bytes(content.replace(digest.encode(), flip_hex(digest).encode()))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a result of two runs, one of them with a device log."""
    folder = tmp_path_factory.mktemp("digests")
    with open_device(DEVICE) as device:
        device.looks_inside = True
        writer = stored.writer(folder / "result", RUNS, device)
        for run in RUNS:
            writer.commit(run, device.run(run.spec))
        writer.finish("complete")
    return folder


@dataclass(frozen=True)
class Workspace:
    """An empty folder, and one with files that a case copies."""

    folder: Path
    originals: Path

    def result(self) -> Path:
        shutil.copytree(self.originals / "result", self.folder / "result")
        return self.folder / "result"


# Result folders


def check_ledger_field(kind: str, field: str) -> Callable[[Workspace, str], None]:
    """Return the case of a digest in the last ledger line of a kind."""

    def check(workspace: Workspace, _: str) -> None:
        folder = workspace.result()
        lines = (folder / "ledger.jsonl").read_text().splitlines()
        number, line = [each for each in enumerate(lines) if f'"kind":"{kind}"' in each[1]][-1]
        digest = json.loads(line)[field]
        lines[number] = line.replace(digest, flip_hex(digest))
        (folder / "ledger.jsonl").write_text("\n".join(lines) + "\n")
        (damaged,) = [each for each in examine(folder).verdicts if each.file == "ledger.jsonl"]
        assert (damaged.state, damaged.reason) == ("damaged", f"line {number + 1} was changed")
        assert "damaged" in [warning["code"] for warning in Results.load(folder).warnings]

    return check


def check_device_log(workspace: Workspace, _: str) -> None:
    folder = workspace.result()
    run = Results.load(folder).runs[1]
    assert run.meta.inside is not None
    flip_text(run.path, run.meta.inside.digest)
    assert examine(folder).runs[run.id].state == "damaged"
    (folder / "ledger.jsonl").unlink()
    with pytest.raises(ResultsError):
        read_device_log(Results.load(folder).runs[1])


def check_summary(workspace: Workspace, part: str) -> None:
    path = workspace.result() / run_summary.FOLDER / f"{RUNS[1].id}.json"
    assert run_summary.read(path)
    if part == DIGEST:
        flip_text(path, json.loads(path.read_bytes())["digest"])
    else:
        flip_in(path, path.read_bytes().index(b'"mean_ns":') + len('"mean_ns":'))
    assert run_summary.read(path) == ()


def check_pyramid(workspace: Workspace, part: str) -> None:
    folder = workspace.result()
    run = Results.load(folder).runs[1]
    assert SummaryCache(folder).pyramid(run.id, run.expected) is not None
    if part == CONTENT:
        flip_in(folder / run_summary.FOLDER / f"{run.id}.pyramid.npy", -1)
    else:  # with a new digest of the document around it
        path = folder / run_summary.FOLDER / f"{run.id}.json"
        (summary,) = run_summary.read(path)
        assert summary.pyramid is not None
        changed = replace(summary.pyramid, digest=flip_hex(summary.pyramid.digest))
        path.write_bytes(run_summary.encode((replace(summary, pyramid=changed),)))
        assert run_summary.read(path)
    assert SummaryCache(folder).pyramid(run.id, run.expected) is None


def check_replayed_list(workspace: Workspace, part: str) -> None:
    path = workspace.folder / "fio.log"
    path.write_text(FIO_LOG)
    with open_device(DEVICE) as device:

        def fit() -> _native.Ios:
            recording = _native.read_recording([str(path)])
            return recording.fit(device.info.capacity_bytes, 4096, "refuse", None)

        spec = fit().spec_json(1)
        if part == CONTENT:
            path.write_text(FIO_LOG.replace("read 8192", "read 12288"))
        else:
            digest = json.loads(spec)["list"]["ios"]
            spec = spec.replace(digest, flip_hex(digest))
        device.set_replay_ios(fit())
        with pytest.raises(UsageError, match="does not match the one that the pattern names"):
            device.run(read_spec(spec))


def check_seals(workspace: Workspace, part: str) -> None:
    content = b"<p>one</p>\n"
    kinds = [outputs.REPORT, outputs.COMPARISON, outputs.PLAN, *outputs.FIGURES.values()]
    for kind in kinds:
        path = workspace.folder / "output"
        path.write_bytes(outputs.add_seal(content + kind.end, kind))
        assert outputs.has_valid_seal(path, kind)
        seal_at = path.read_bytes().index(f"uflip {kind.name} ".encode())
        flip_in(path, 4 if part == CONTENT else seal_at + len(f"uflip {kind.name} "))
        assert not outputs.has_valid_seal(path, kind), kind


# Devices


def check_snapshot(section: str) -> Callable[[Workspace, str], None]:
    """Return the case of the header or the state of a saved device."""

    def check(workspace: Workspace, part: str) -> None:
        path = workspace.folder / "device.snapshot"
        with open_device(DEVICE) as device:
            device.save(path)
        open_device(f"sim:{path}")
        digest_at, content_at = {"header": (16, 45), "state": (32, -100)}[section]
        flip_in(path, digest_at if part == DIGEST else content_at)
        with pytest.raises(ResultsError, match="The snapshot is damaged"):
            open_device(f"sim:{path}")

    return check


def check_cached_device(workspace: Workspace, _: str) -> None:
    open_device(DEVICE)
    (path,) = cache.folder().iterdir()
    whole = path.read_bytes()
    flip_in(path, 32)
    open_device(DEVICE)
    assert path.read_bytes() == whole, "made again"


def check_long_run(workspace: Workspace, part: str) -> None:
    path = workspace.folder / "run.json"
    result = long_run.LongRun(1e5, 1e4, 1e5, 1e5, 1000, 0, True)
    path.write_bytes(long_run._encode(result))
    assert long_run._read(path) == result
    if part == DIGEST:
        flip_text(path, json.loads(path.read_bytes())["digest"])
    else:
        flip_in(path, path.read_bytes().index(b"100000.0"))
    assert long_run._read(path) is None


# Sweeps


def swept(workspace: Workspace, name: str) -> list[Any]:
    spec = baseline("RR", io_size="4k", io_count=32)
    return sweep(DEVICE, spec, {"spare_factor": [0.2, 0.3]}, data=workspace.folder / name)


def check_rows_are_measured_again(folder: Path, rows: list[Any]) -> None:
    steps: list[int] = []
    assert load_plan(folder).carry_out(lambda done, _: steps.append(done)) == rows
    assert steps == [1, 2], "no row was stored"


def check_sweep_rows(workspace: Workspace, _: str) -> None:
    rows = swept(workspace, "data")
    folder = workspace.folder / "data"
    (path,) = folder.glob("*.json")
    flip_text(path, json.loads(path.read_bytes())["rows"])
    with pytest.raises(ResultsError, match="The rows of the sweep are damaged"):
        read_data_set(folder)
    check_rows_are_measured_again(folder, rows)


def check_sweep_part(workspace: Workspace, _: str) -> None:
    with pytest.MonkeyPatch.context() as patch:  # as a kill leaves it
        patch.setattr(DataSet, "finish", lambda self, rows: self._write())
        rows = swept(workspace, "data")
    (path,) = (workspace.folder / "data" / "parts").iterdir()
    number, digest = path.stem.split("-")
    path.rename(path.with_stem(f"{number}-{flip_hex(digest)}"))
    check_rows_are_measured_again(workspace.folder / "data", rows)


# Files from elsewhere


class Worker:
    """A worker that reads a file, and sends it with one bit changed."""

    def __init__(self, flipped: bool) -> None:
        self.flipped = flipped

    def ask(self, _: str, function: Callable[..., bytes], *arguments: Any) -> bytes:
        content = bytearray(function(*arguments))
        content[0] ^= self.flipped
        return bytes(content)


def check_remote_file(workspace: Workspace, part: str) -> None:
    folder = workspace.folder / "remote"
    folder.mkdir()
    (folder / "a").write_bytes(b"content")
    digest = multi_device._digest(folder / "a")
    if part == DIGEST:
        digest = flip_hex(digest)
    remote = multi_device.RemoteFolder("tcp://worker", str(folder), (("a", 7, digest),))
    worker: Any = Worker(part == CONTENT)
    with pytest.raises(ResultsError, match="damaged in transit"):
        multi_device.fetch(worker, remote, workspace.folder / "fetched")
    assert not (workspace.folder / "fetched").exists()
    assert (folder / "a").exists(), "the worker keeps its copy"


def digest_and_size(path: Path) -> tuple[str, int]:
    """What a client says of a file before it sends it."""
    offered = site_client._digested(path.parent, path.name)
    return offered.digest, offered.bytes


def check_upload(workspace: Workspace, part: str) -> None:
    path = workspace.folder / "file"
    path.write_bytes(b"content")
    digest, size = digest_and_size(path)
    content = b"bontent" if part == CONTENT else b"content"
    sent = FilePart(flip_hex(digest) if part == DIGEST else digest, 0, content)
    blobs = Blobs(workspace.folder / "site")
    with pytest.raises(ResultsError, match="The file does not match its digest"):
        blobs.receive("upload", [(sent, size)])
    assert not blobs.exists(digest)
    assert not blobs.exists(sent.digest)


def check_download(workspace: Workspace, part: str) -> None:
    path = workspace.folder / "file"
    path.write_bytes(b"content")
    digest, size = digest_and_size(path)
    names = ["manifest.json", "ledger.jsonl"]
    offered = flip_hex(digest) if part == DIGEST else digest
    files = [{"path": name, "digest": offered, "bytes": size} for name in names]

    def answer(request: httpx.Request) -> httpx.Response:
        content = json.dumps({"files": files}).encode()
        if "/files/" in request.url.path:
            content = b"bontent" if part == CONTENT else b"content"
        return httpx.Response(200, content=iter([content]))

    with site_client.Client("http://site.example") as client:
        client._http.close()
        client._http = httpx.Client(
            base_url="http://site.example/api/v1/", transport=httpx.MockTransport(answer)
        )
        with pytest.raises(ResultsError, match="does not match its digest on the site"):
            client.pull("0" * 32, workspace.folder / "pulled")
    assert not (workspace.folder / "pulled").exists()


def check_bucket_object(workspace: Workspace, part: str) -> None:
    from obstore.exceptions import BaseError
    from obstore.store import MemoryStore

    path = workspace.folder / "file"
    path.write_bytes(b"content")
    digest, _ = digest_and_size(path)
    bucket = object.__new__(Bucket)
    bucket._url, bucket._failed, bucket._store = "s3://bucket", BaseError, MemoryStore()
    offered = flip_hex(digest) if part == DIGEST else digest
    bucket._store.put(offered, b"bontent" if part == CONTENT else b"content")
    with pytest.raises(ResultsError, match="A file in the bucket is damaged"):
        bucket.fetch([workspace.folder / "cached" / offered])
    assert not list((workspace.folder / "cached").iterdir())


def check_site_files(workspace: Workspace, part: str) -> None:
    """Damage a file of a site before its backup, and one of the backup before it is restored."""
    backup, restored = workspace.folder / "backup", workspace.folder / "restored"
    (workspace.folder / "scratch").mkdir()
    prepared = prepare(small_result(workspace.folder / "result"), workspace.folder / "scratch")
    with open_test_site(workspace.folder / "site") as site:
        submit(site, prepared)
        back_up(site, backup)
        digest = prepared.files[0].digest
        blob = site.blobs.path(digest)
        if part == DIGEST:
            blob.rename(blob.with_name(flip_hex(digest)))
        else:
            flip_in(blob, 100)
        with pytest.raises(ResultsError, match=r"A file of the site is (damaged|missing)"):
            back_up(site, workspace.folder / "again")
    assert not (workspace.folder / "again").exists()
    if part == DIGEST:
        flip_text(backup / "rows.jsonl", digest)
    else:
        flip_in(backup / "blobs" / digest[:2] / digest, 100)
    with pytest.raises(ResultsError, match="A file of the backup is damaged"):
        restore_from(backup, restored)
    assert not restored.exists()


def check_token(workspace: Workspace, part: str) -> None:
    with open_test_site(workspace.folder / "site") as site, site.sessions.begin() as session:
        token = new_token(session, "bob", "submitter")
        owner = account_of(session, token)
        assert isinstance(owner, Account)
        if part == DIGEST:
            owner.token_digest = flip_hex(owner.token_digest)
            session.flush()
        else:
            token = token[:-1] + chr(ord(token[-1]) ^ 1)
        assert account_of(session, token) is None


@dataclass(frozen=True)
class StoredDigest:
    """A stored digest: the modules that compute or compare it, and the two checks.

    A check is a function that flips the bit, or the name of a test that flips it.
    """

    name: str
    modules: Sequence[str]
    content: Callable[[Workspace, str], None] | str
    digest: Callable[[Workspace, str], None] | str


RESULT_FOLDER = "test_ledger.py::test_flipped_bit_is_detected_or_harmless"
SECTOR_STAMP = "crates/host/src/guard/ownership.rs::single_foreign_byte_is_detected"
LEDGER = ("results/integrity.py", "results/writer.py", "data/ledger.py")
STORE = ("crates/store/src/digest.rs", "crates/store/src/read.rs")
PLACES = (
    StoredDigest(
        "run file", (*LEDGER, *STORE, "results/integrity.py"), RESULT_FOLDER,
        check_ledger_field("run", "digest"),
    ),
    StoredDigest("manifest", LEDGER, RESULT_FOLDER, check_ledger_field("manifest", "digest")),
    StoredDigest("planned run", LEDGER, RESULT_FOLDER, check_ledger_field("run", "spec")),
    StoredDigest("plan", LEDGER, RESULT_FOLDER, check_ledger_field("begin", "plan")),
    StoredDigest("ledger line", LEDGER, RESULT_FOLDER, check_ledger_field("run", "link")),
    StoredDigest(
        "device log", ("results/device_log.py",),
        "test_device_log.py::test_damaged_device_log_leaves_the_run_readable", check_device_log,
    ),
    StoredDigest("summary", ("data/run_summary.py",), check_summary, check_summary),
    StoredDigest("pyramid", ("results/run_summary.py",), check_pyramid, check_pyramid),
    StoredDigest(
        "replayed list", ("crates/engine/src/list.rs",), check_replayed_list, check_replayed_list,
    ),
    StoredDigest("output", ("results/outputs.py",), check_seals, check_seals),
    StoredDigest(
        "header of a saved device", ("crates/sim/src/snapshot.rs",),
        check_snapshot("header"), check_snapshot("header"),
    ),
    StoredDigest(
        "state of a saved device", ("crates/sim/src/snapshot.rs",),
        check_snapshot("state"), check_snapshot("state"),
    ),
    StoredDigest(
        "cached device", ("crates/sim/src/snapshot.rs",),
        "test_device_cache.py::test_damaged_file_is_recreated", check_cached_device,
    ),
    StoredDigest("long run", ("accuracy/long_run.py",), check_long_run, check_long_run),
    StoredDigest(
        "sweep", ("sweeping/data_set.py",),
        "test_sweep_data.py::test_damaged_rows_are_measured_again", check_sweep_rows,
    ),
    StoredDigest(
        "part of a sweep", ("sweeping/data_set.py",),
        "test_sweep_data.py::test_damaged_rows_are_measured_again", check_sweep_part,
    ),
    StoredDigest(
        "result on a worker", ("benchmark/multi_device.py",), check_remote_file, check_remote_file
    ),
    StoredDigest("upload", ("site/blobs.py",), check_upload, check_upload),
    StoredDigest("download", ("site/client.py",), check_download, check_download),
    StoredDigest("bucket", ("site/blobs.py",), check_bucket_object, check_bucket_object),
    StoredDigest("site", ("site/backup.py",), check_site_files, check_site_files),
    StoredDigest("token", ("site/accounts.py",), check_token, check_token),
    StoredDigest("sector", ("crates/host/src/guard/ownership.rs",), SECTOR_STAMP, SECTOR_STAMP),
)  # fmt: skip
NOT_STORED = {
    "crates/fuzz/src/lib.rs": "writes correct checksums, for the parser behind them",
    "crates/py/src/trace.rs": "binds the functions of crates/store",
    "crates/sim/src/device/cache.rs": "a hash table",
    "device/cache.py": "the name of a file, from its key",
    "device/identity.py": "a short form of a profile",
    "microbench/experiment.py": "a seed",
    "accuracy/__main__.py": "part of a folder name",
    "benchmark/state.py": "the id of a state",
    "report/figures/svg.py": "PNG: readers of images check it",
    "report/labels.py": "an anchor on a page",
    "results/state_record.py": "part of a file name",
    "site/browse.py": "a query by digest",
    "site/examiner.py": "part of a label",
    "site/folders.py": "passes digests to the blobs",
    "site/intake.py": "compares lengths; the blobs check the digests",
    "site/seed.py": "part of a folder name",
    "site/upload_files.py": "the id of a result",
    "web/app.py": "a token in memory",
    "web/open_results.py": "the key of a folder",
}
"""Other modules with a hash function, and the use they make of it."""
IN_PYTHON = re.compile(
    r"_native\.digest\w*\(|hashlib\.\w|blake2b\(|crc32\(|\bdigest_of\(|compare_digest\(|hexdigest"
    r"|\bdigest\w*\b[^\n\"]*[!=]=|[!=]=[^\n\"]*\bdigest\w*\b"
)
IN_RUST = re.compile(r"^(?!\s*//).*(blake3::|XxHash|crc32|\w*digest\w*\(|Hasher)", re.MULTILINE)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
@pytest.mark.parametrize("part", [CONTENT, DIGEST])
def test_flipped_bit_is_detected(
    place: StoredDigest,
    part: str,
    originals: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = place.content if part == CONTENT else place.digest
    if isinstance(check, str):
        file, test = check.split("::")
        path = ROOT / file if "/" in file else Path(__file__).with_name(file)
        assert re.search(rf"^\s*(def|fn) {test}\(", path.read_text(), re.MULTILINE), check
        return
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "devices"))
    (tmp_path / "work").mkdir()
    check(Workspace(tmp_path / "work", originals), part)


def test_table_has_every_module_with_a_digest() -> None:
    """A new digest belongs into the table above, with both checks."""
    package, crates = ROOT / "python" / "uflip", ROOT / "crates"
    modules = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if IN_PYTHON.search(path.read_text())
    } | {
        str(path.relative_to(ROOT))
        for path in crates.glob("*/src/**/*.rs")
        if IN_RUST.search(path.read_text().partition("#[cfg(test)]")[0])
    }
    in_table = {module for place in PLACES for module in place.modules}
    assert not in_table & NOT_STORED.keys()
    assert modules == in_table | NOT_STORED.keys()
