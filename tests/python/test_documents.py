"""Is every document read, or refused with an error? Can no document do harm?

Hostile documents are mutations of valid ones: a value is replaced by an unusual one, or bytes
change. Each is read, or raises an error of uflip.
"""

import copy
import json
import os
import random
import re
import shutil
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import stored
from command_line import uflip
from parsers import STATE

from uflip import _native
from uflip.benchmark.plan_file import read_plan
from uflip.data import manifest, multi_device, run_summary, state_record, sweep
from uflip.data.document import (
    MAX_DEPTH,
    DocumentKind,
    decode_text,
    file_name_problem,
    nesting_depth,
    plain,
    read_document,
    read_if_exists,
    read_text,
)
from uflip.data.spec import read_spec
from uflip.data.summary import Summary
from uflip.device.catalogue import inspect_device
from uflip.device.opener import open_device
from uflip.errors import ResultsError, UflipError, UsageError, native_errors
from uflip.oc import Job, open_flash_device
from uflip.report.text import render
from uflip.results import Results, summary
from uflip.spec import baseline
from uflip.web.open_results import Folders, OpenResults
from uflip.web.views import Listing

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "results"

HOSTILE_VALUES: list[Any] = [
    None, True, -1, 0, 1.5, 1e308, 2**63, 2**64, -(2**63) - 1, "", "x", "x" * 20_000, "\x00",
    "../../etc/passwd", "/dev/zero", "\u202e", "\x1b[2J", "=cmd|' /C calc'!A0", "<script>", [], {},
    [[]], [None], {"": {}}, {"a": {"b": {"c": 1}}}, [1] * 1000, "9999-99-99T99:99:99Z", "nan",
]  # fmt: skip
# Values that Python's JSON writes, and that uflip refuses.
NOT_JSON = [b"NaN", b"Infinity", b"1e400", b"9" * 5000, b'"\\ud800"', b"\xff", b'"\xed\xa0\x80"']


def value_paths(document: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Find every path to a value of a document."""
    paths = [prefix] if prefix else []
    if isinstance(document, dict | list):
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        for key in keys:
            paths += value_paths(document[key], (*prefix, key))
    return paths


def mutate(document: Any, rng: random.Random) -> bytes:
    """Return a document with one or two values that were removed or replaced, as JSON."""
    document = copy.deepcopy(document)
    mark = "%%"
    for _ in range(rng.choice([1, 1, 2])):
        # All depths are equally likely, although most values are deep inside.
        depth = rng.randrange(1, 6)
        candidates = [each for each in value_paths(document) if len(each) <= depth]
        if not candidates:
            break
        *path, last = rng.choice(candidates)
        inside = document
        for key in path:
            inside = inside[key]
        kind = rng.randrange(10)
        if kind == 0:
            del inside[last]
        elif kind == 1:
            inside[last] = mark
        elif kind == 2 and isinstance(inside, dict):
            inside["unheard of"] = inside.pop(last)
        else:
            inside[last] = copy.deepcopy(rng.choice(HOSTILE_VALUES))
    text = json.dumps(document).encode("utf-8", "surrogatepass")
    return text.replace(f'"{mark}"'.encode(), rng.choice(NOT_JSON))


def seeded_random() -> random.Random:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    return random.Random(seed)


def error_of(work: Callable[[], object]) -> UflipError | None:
    """Return the uflip error that work raises, if any; any other exception fails the test."""
    caught = None
    try:
        work()
    except UflipError as error:
        caught = error
    if caught is not None:
        assert all((caught.what, caught.where, caught.got, caught.action)), caught
        assert caught.exit_code != 1, caught
    return caught


# Manifests


@pytest.fixture(scope="module")
def without_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results without a ledger, so that the parsers alone detect faults."""
    path = tmp_path_factory.mktemp("unproven") / "r"
    runs = [stored.baseline_run(1, "SR"), stored.mix_run(2, "SR", "RW", 3)]
    stored.results(path, runs, status="interrupted")
    (path / "ledger.jsonl").unlink()
    return path


def test_mutated_manifest_is_read_or_an_error(without_ledger: Path, tmp_path: Path) -> None:
    shutil.copytree(without_ledger, tmp_path / "r")
    path, rng = tmp_path / "r" / "manifest.json", seeded_random()
    honest = json.loads(path.read_text())
    refused = 0
    for _ in range(400):
        path.write_bytes(mutate(honest, rng))
        error = error_of(lambda: render(summary(Results.load(tmp_path / "r")), full=True))
        refused += error is not None
    assert refused > 100, "most mutations are wrong"


def test_mutated_golden_manifest_is_read_or_an_error(tmp_path: Path) -> None:
    rng = seeded_random()
    folder = tmp_path / "r"
    shutil.copytree(GOLDEN, folder)
    (folder / "ledger.jsonl").unlink()
    honest = json.loads((folder / "manifest.json").read_text())
    for _ in range(200):
        (folder / "manifest.json").write_bytes(mutate(honest, rng))
        error_of(lambda: render(summary(Results.load(folder)), full=True))


def test_golden_summary_matches_its_type() -> None:
    """The keys are exactly those of the schema that other programs use."""
    document = plain(summary(Results.load(GOLDEN)))
    typed = msgspec.convert(document, Summary)
    assert set(document) <= set(Summary.__annotations__)
    assert plain(typed) == document


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, f"more than {MAX_DEPTH} levels"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, f"more than {MAX_DEPTH} levels"),
        (
            b'{"format": "uflip-results", "format_version": 1, "seed": ' + b"9" * 5000 + b"}",
            "out of range",
        ),
        (b'{"format": "\xff"}', "not JSON"),
        (b'{"format": "\\ud800"}', "not JSON"),
        (b'{"format": "uflip-results", "format_version": NaN}', "not JSON"),
    ],
)
def test_invalid_json_is_an_error(
    without_ledger: Path, tmp_path: Path, text: bytes, words: str
) -> None:
    shutil.copytree(without_ledger, tmp_path / "r")
    (tmp_path / "r" / "manifest.json").write_bytes(text)
    with pytest.raises(ResultsError) as caught:
        Results.load(tmp_path / "r")
    assert words in caught.value.got


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../manifest", "leads elsewhere"),
        ("a/b", "leads elsewhere"),
        (".hidden", "leads elsewhere"),
        ("", "1 to 200 bytes"),
        ("x" * 201, "1 to 200 bytes"),
        ("é" * 101, "1 to 200 bytes"),
        ("a\nb", "cannot be printed"),
        ("a\x00b", "cannot be printed"),
        ("a\u202eb", "cannot be printed"),
    ],
)
def test_run_id_must_be_a_file_name(
    without_ledger: Path, tmp_path: Path, name: str, problem: str
) -> None:
    assert problem in str(file_name_problem(name))
    shutil.copytree(without_ledger, tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    document = json.loads(path.read_text())
    document["plan"][0]["id"] = name
    path.write_text(json.dumps(document))
    with pytest.raises(ResultsError) as caught:
        Results.load(tmp_path / "r")
    assert problem in caught.value.got
    assert "plan" in caught.value.got


def test_duplicate_run_ids_are_refused(without_ledger: Path, tmp_path: Path) -> None:
    shutil.copytree(without_ledger, tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    document = json.loads(path.read_text())
    document["plan"].append(document["plan"][0])
    path.write_text(json.dumps(document))
    with pytest.raises(ResultsError) as caught:
        Results.load(tmp_path / "r")
    assert "two runs of one id" in caught.value.got


WARNING = {"code": "c", "message": "m", "numbers": {}, "advice": "a"}
LINGERING = {
    "reads_affected": 0, "lingering_ns": 0, "over": True, "slow_ns": 1.0, "pause_ns": 0,
    "device_busy_ns": None, "gap_ns": 0,
    "windows": {
        "ios": 64,
        "before": {"mean_ns": [1.0], "max_ns": [1.0]},
        "writes": {"mean_ns": [1.0], "max_ns": [1.0]},
        "after": {"mean_ns": [1.0, 1.0], "max_ns": [1.0]},
    },
}  # fmt: skip
TOO_MUCH: dict[str, Callable[[dict[str, Any]], None]] = {
    "warnings": lambda content: content.update(warnings=[WARNING] * 1001),
    "skipped": lambda content: content.update(
        skipped=[dict.fromkeys(("parameter", "value")) | dict.fromkeys(SKIPPED_FIELDS, "x")]
        * 100_001
    ),
    "resumed_utc": lambda content: content.update(resumed_utc=["2026-01-01T00:00:00Z"] * 100_001),
    "other numbers": lambda content: content.update(interference=LINGERING),
}
SKIPPED_FIELDS = ("micro_benchmark", "pattern", "reason")


@pytest.mark.parametrize("fault", TOO_MUCH)
def test_manifest_lists_are_bounded_and_of_equal_length(
    without_ledger: Path, tmp_path: Path, fault: str
) -> None:
    shutil.copytree(without_ledger, tmp_path / "r")
    path = tmp_path / "r" / "manifest.json"
    document = json.loads(path.read_text())
    TOO_MUCH[fault](document)
    path.write_text(json.dumps(document))
    with pytest.raises(ResultsError) as caught:
        Results.load(tmp_path / "r")
    assert fault in caught.value.got or "length <=" in caught.value.got
    assert uflip("report", tmp_path / "r", "-o", tmp_path / "r.html").code == 5
    (listed,) = Listing(OpenResults(Folders([tmp_path / "r"]))).glances()
    assert ("error" in listed) == (fault == "warnings"), "a row of the list reads warnings only"


def test_manifest_round_trips(without_ledger: Path) -> None:
    path = without_ledger / "manifest.json"
    assert manifest.encode(manifest.parse(path, path.read_bytes())) == path.read_bytes()


def test_nesting_depth_ignores_strings() -> None:
    assert nesting_depth(b"1") == 0
    assert nesting_depth(b'{"a": [1, {"b": []}], "c": {}}') == 4
    assert nesting_depth(b'{"a": "[[[[ \\" ]["}') == 1


@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 16])
def test_nesting_depth_matches_a_bytewise_reader(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr("uflip.data.document._CHUNK", chunk)
    rng = random.Random(chunk)
    for _ in range(2000):
        texts = ["".join(rng.choices('[]{}a\\"', k=rng.randrange(8))) for _ in range(4)]
        parts = ["".join(rng.choices("[]{},", k=3)) + json.dumps(text) for text in texts]
        content = "".join(parts).encode()
        # Some contents are truncated, so that the last string does not end.
        content = content[: len(content) - rng.choice([0, 0, 1])]
        assert nesting_depth(content) == _naive_nesting_depth(content), content


def _naive_nesting_depth(content: bytes) -> int:
    depth = deepest = 0
    in_text = escaped = False
    for byte in content.decode():
        if in_text:
            in_text = byte != '"' or escaped
            escaped = byte == "\\" and not escaped
        elif byte == '"':
            in_text = True
        else:
            depth += (byte in "[{") - (byte in "]}")
            deepest = max(deepest, depth)
    return deepest


@pytest.mark.timeout(60)  # far above the usual 0.1 s; quadratic time would take hours
@pytest.mark.parametrize("unit", [b'\\"', b'"', b"\\", b"a", b"[", b'"[\\'])
def test_nesting_depth_takes_linear_time_and_constant_memory(unit: bytes) -> None:
    hostile = b'{"x":"' + unit * ((2 << 20) // len(unit))
    tracemalloc.start()
    try:
        nesting_depth(hostile)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    with pytest.raises(UsageError):
        read_spec(hostile)


# The record of a device's state


@pytest.fixture
def scratch(make_file: Callable[..., Path]) -> Path:
    return make_file(8 << 20)


@pytest.fixture
def record(scratch: Path) -> Path:
    path = scratch.parent / "record.json"
    arguments = ("prepare", f"file:{scratch}", "--state", "sequential", "--record", path, "--quiet")
    assert uflip(*arguments, "--destroy", scratch).code == 0
    return path


def test_mutated_state_record_is_read_or_an_error(record: Path) -> None:
    rng, honest = seeded_random(), json.loads(record.read_text())
    refused = 0
    for _ in range(1000):
        record.write_bytes(mutate(honest, rng))
        refused += error_of(lambda: state_record.read(record)) is not None
    assert refused > 500


def test_state_record_round_trips(record: Path) -> None:
    stored_state = state_record.read(record)
    assert stored_state is not None
    assert state_record.encode(stored_state) == record.read_bytes()


def test_resume_does_not_write_a_record_named_by_the_results(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A foreign result folder must not choose which file is written."""
    monkeypatch.chdir(scratch.parent)
    arguments = ("run", f"file:{scratch}", "--destroy", scratch, "--only", "order")
    shared = ("--scale", "quick", "--state", "sequential", "--max-time", "5s", "--quiet")
    assert uflip(*arguments, *shared, "--out", "r").code == 0
    path = scratch.parent / "r" / "manifest.json"
    document = json.loads(path.read_text())
    document["state"]["record"] = str(scratch.parent / "chosen.json")
    document["status"] = "interrupted"
    path.write_text(json.dumps(document))
    (scratch.parent / "r" / "ledger.jsonl").unlink()
    outcome = uflip("run", "--resume", "r", "--destroy", scratch, "--quiet")
    assert outcome.code == 2
    assert "chosen.json" in outcome.err
    assert "--record" in outcome.err
    assert not (scratch.parent / "chosen.json").exists()


# Foreign files: the parts that are read, and the refusal of others.


KIND = DocumentKind("plan", 100, "give another file", UsageError)


def refusal(path: Path, kind: DocumentKind = KIND) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_document(path, kind)
    error = caught.value
    assert error.what == "The plan cannot be read"
    assert error.where == str(path)
    assert error.got
    assert error.action == "give another file"
    return error


def test_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(b"x" * 100)
    assert read_document(tmp_path / "plan", KIND) == b"x" * 100


def test_file_above_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(b"x" * 101)
    assert refusal(tmp_path / "plan").got == "more than 100 B"


def test_link_is_followed_and_link_loop_refused(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(b"x")
    (tmp_path / "link").symlink_to("plan")
    assert read_document(tmp_path / "link", KIND) == b"x"
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path / "loop").got == "a link that leads to itself"


def test_missing_file_is_none_or_an_error(tmp_path: Path) -> None:
    assert read_if_exists(tmp_path / "plan", KIND) is None
    assert refusal(tmp_path / "plan").got == "no such file"


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan")
    assert refusal(tmp_path / "plan").got == "a pipe"


def test_non_regular_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path).got == "a folder"
    assert refusal(Path("/dev/zero")).got == "a character device"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert refusal(tmp_path / "socket").got == "a socket"


def test_file_of_reported_size_zero_is_not_read() -> None:
    assert Path("/proc/self/maps").stat().st_size == 0
    assert Path("/proc/self/maps").read_bytes()
    assert read_document(Path("/proc/self/maps"), KIND) == b""


def test_impossible_file_names_are_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / ("x" * 300)).got == "File name too long"
    assert "null" in refusal(tmp_path / "a\0b").got


def test_invalid_utf8_is_reported_with_position(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(b"seed\xff")
    with pytest.raises(UsageError) as caught:
        read_text(tmp_path / "plan", KIND)
    assert caught.value.got == "byte 0xff at 4, which is not UTF-8"


def test_error_class_follows_document_kind() -> None:
    with pytest.raises(ResultsError):
        decode_text(Path("x"), DocumentKind("manifest", 1, "restore it"), b"\x80")


# Is a file of another version of its format refused with both versions, whatever the format?


def other_document(path: Path) -> Path:
    """Change the version of a document."""
    text = path.read_text()
    changed = re.sub(r"(format_version\W+)1\b", r"\g<1>2", text, count=1)
    assert changed != text
    path.write_text(changed)
    return path


def other_table(path: Path, key: str) -> Path:
    """Change the version in the metadata of a table: a text of one byte after its key."""
    content = path.read_bytes()
    version = key.encode() + b"\x18\x01"
    assert content.count(version + b"1") == 1
    path.write_bytes(content.replace(version + b"1", version + b"2"))
    return path


def manifest_case(folder: Path) -> Callable[[], object]:
    shutil.copytree(GOLDEN, folder / "r")
    (folder / "r" / "ledger.jsonl").unlink()
    other_document(folder / "r" / "manifest.json")
    return lambda: Results.load(folder / "r")


def ledger_case(folder: Path) -> Callable[[], object]:
    shutil.copytree(GOLDEN, folder / "r")
    path = folder / "r" / "ledger.jsonl"
    body = path.read_bytes().partition(b',"link"')[0].replace(b'version":1', b'version":2')
    path.write_bytes(body + f',"link":"{_native.digest(body)}"}}\n'.encode())
    return lambda: Results.load(folder / "r")


def state_case(folder: Path) -> Callable[[], object]:
    path = folder / "record.json"
    path.write_bytes(STATE)
    other_document(path)
    return lambda: state_record.read(path)


def plan_case(folder: Path) -> Callable[[], object]:
    path = folder / "plan.toml"
    assert uflip("plan", "sim:demo", "--only", "order", "--out", path).code == 0
    other_document(path)
    return lambda: read_plan(path, inspect_device("sim:demo"))


def devices_case(folder: Path) -> Callable[[], object]:
    (folder / "devices.json").write_text('{"format": "uflip-devices", "format_version": 2}')
    return lambda: multi_device.read(folder)


def sweep_case(folder: Path) -> Callable[[], object]:
    (folder / "sweep.json").write_text('{"format": "uflip-sweep", "format_version": 2}')
    return lambda: sweep.read(folder)


def trace_case(folder: Path) -> Callable[[], object]:
    path = folder / "trace.parquet"
    shutil.copy(next((GOLDEN / "runs").iterdir()), path)
    other_table(path, "uflip.trace_version")
    return lambda: _native.read_trace(str(path))


def log_case(folder: Path) -> Callable[[], object]:
    path = folder / "log.parquet"
    trace = open_flash_device("sim:dfc").run(Job(pages=8, mix="W"))
    trace.write_parquet(str(path), "{}")
    other_table(path, "uflip.flash_table_version")
    return lambda: _native.read_flash_trace(str(path))


def inside_case(folder: Path) -> Callable[[], object]:
    path = folder / "inside.parquet"
    with open_device("sim:demo") as device:
        device.looks_inside = True
        trace = device.run(baseline("RW", io_count=10))
    trace.write_inside(str(path), "{}")
    other_table(path, "uflip.inside_version")
    return lambda: _native.read_inside(str(path))


CASES = {
    "manifest": manifest_case, "ledger": ledger_case, "state": state_case, "plan": plan_case,
    "devices": devices_case, "sweep": sweep_case, "trace": trace_case, "log": log_case,
    "inside": inside_case,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_other_version_is_refused(tmp_path: Path, name: str) -> None:
    read = CASES[name](tmp_path)
    with pytest.raises(UflipError) as caught, native_errors():
        read()
    error = caught.value
    assert isinstance(error, UsageError if name == "plan" else ResultsError)
    assert "is of another version" in error.what
    assert str(tmp_path) in error.where
    assert "version 2" in error.got
    assert "version 1, which this uflip reads" in error.allowed
    assert error.action


def test_summary_of_another_version_is_ignored(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "r")
    cached = tmp_path / "r" / run_summary.FOLDER / f"{run_summary.ALL}.json"
    assert run_summary.read(cached)
    other_document(cached)
    assert run_summary.read(cached) == ()
