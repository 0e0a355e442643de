"""Is a file of another version of its format refused with both versions, whatever the format?"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import uflip
from parsers import STATE

from uflip import _native
from uflip.benchmark.plan_file import read_plan
from uflip.data import multi_device, run_summary, state_record, sweep
from uflip.device.catalogue import inspect_device
from uflip.device.opener import open_device
from uflip.errors import ResultsError, UflipError, UsageError, native_errors
from uflip.oc import Job, open_flash_device
from uflip.results import Results
from uflip.spec import baseline

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "results"


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
