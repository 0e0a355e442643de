"""Consistent but forged results: the measured runs are not those of the plan.

Each is a folder whose ledger was made anew around the change, which anybody can do, so that nothing
but the plan and the limits of a database stand between it and the site.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import uflip
from forged_results import forge_results, rewrite_ledger

from uflip.errors import ResultsError
from uflip.site.examination import examine
from uflip.site.redaction import redacted_copy

Plan = list[dict[str, Any]]


@pytest.fixture(scope="module", params=["sim:demo?blocks_per_die=64", "sim:dfc"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _measured(request.param, tmp_path_factory.mktemp("forged"))


@pytest.fixture(scope="module")
def of_patterns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _measured("sim:demo?blocks_per_die=64", tmp_path_factory.mktemp("forged"))


def _measured(device: str, root: Path) -> Path:
    only = "oc0" if "dfc" in device else "order"
    done = uflip("run", device, "--scale", "quick", "--only", only, "-q", "--out", root / "r")
    assert done.code == 0, done.err
    redacted_copy(root / "r", root / "copy")
    return root / "copy"


def _said(path: Path, key: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the metadata of a run file."""
    table = pq.read_table(path)
    said = json.loads(table.schema.metadata[key.encode()])
    change(said)
    metadata = table.schema.metadata | {key.encode(): json.dumps(said).encode()}
    fields = [field.with_nullable(False) for field in table.schema]
    path.unlink()
    pq.write_table(table.cast(pa.schema(fields, metadata)), path, compression="zstd")


def _refusal(folder: Path) -> ResultsError:
    with pytest.raises(ResultsError) as raised:
        examine(folder)
    return raised.value


def test_a_folder_that_is_proven_again_is_taken(folder: Path, tmp_path: Path) -> None:
    """The unchanged folder is accepted, so that the others are refused for their changes."""
    same = forge_results(folder, tmp_path / "copy", lambda _content: None)
    assert examine(same).row.runs == len(list((folder / "runs").iterdir()))


def test_runs_that_changed_places_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    first, second = sorted((tmp_path / "copy" / "runs").iterdir())[:2]
    first.rename(tmp_path / "between")
    second.rename(first)
    (tmp_path / "between").rename(second)
    rewrite_ledger(tmp_path / "copy")
    error = _refusal(tmp_path / "copy")
    assert (error.what, error.where) == ("This run is not the one that was planned", first.name)
    assert second.stem in error.got


def _of_entry(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["plan"][1].update({name: value})


def _of_spec(**values: object) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["plan"][1]["spec"].update(values)


PLANS = {
    "another value": _of_entry("value", 12345),
    "another pattern": _of_entry("pattern", "XX"),
    "another micro-benchmark": _of_entry("micro_benchmark", "mix"),
    "a repetition": _of_entry("repetition", 7),
    "another seed": _of_spec(seed=42),
    "other I/Os": _of_spec(io_size=4096),
    "reads for writes": _of_spec(mode="read"),
    "fewer I/Os": _of_spec(io_count=300),
    "more I/Os": _of_spec(io_count=4096),
    "a device of hardware": lambda content: content["device"].update(kind="block", simulated=False),
    "another folder": lambda content: content.update(folder_id="0" * 32),
}


@pytest.mark.parametrize("change", PLANS.values(), ids=PLANS.keys())
def test_a_plan_that_says_otherwise_is_refused(
    of_patterns: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    """The micro-benchmark is what a result is read as: a forged plan makes other findings."""
    error = _refusal(forge_results(of_patterns, tmp_path / "copy", change))
    assert error.what == "This run is not the one that was planned", error


def test_a_run_of_another_pattern_than_it_says_is_refused(
    of_patterns: Path, tmp_path: Path
) -> None:
    """Plan and metadata agree; the I/Os are of another pattern."""
    folder = forge_results(of_patterns, tmp_path / "copy", _of_spec(mode="read", seed=5))
    second = sorted((folder / "runs").iterdir())[1]
    _said(second, "uflip.run", lambda said: said["spec"].update(mode="read", seed=5))
    rewrite_ledger(folder)
    assert "mode write" in _refusal(folder).got


def test_a_run_that_says_what_it_measured_otherwise_is_taken_where_the_plan_agrees(
    of_patterns: Path, tmp_path: Path
) -> None:
    """The way by which the others go is one that is open."""
    folder = tmp_path / "copy"
    shutil.copytree(of_patterns, folder)
    _said(sorted((folder / "runs").iterdir())[1], "uflip.run", lambda said: said.update(pause_ns=7))
    rewrite_ledger(folder)
    assert examine(folder).row.runs


def test_a_job_of_another_length_than_planned_is_refused(tmp_path: Path) -> None:
    jobs = _measured("sim:dfc", tmp_path)
    error = _refusal(forge_results(jobs, tmp_path / "forged", _of_spec(pages=7)))
    assert error.where.endswith(".parquet"), error


TEXTS = {
    "a firmware that is too long": ("firmware", "F" * 5000),
    "a model that is too long": ("model", "M" * 5000),
    "a NUL in a model": ("model", "a\0b"),
}


@pytest.mark.parametrize(("name", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_what_no_database_keeps_is_refused(
    of_patterns: Path, tmp_path: Path, name: str, text: str
) -> None:
    folder = forge_results(
        of_patterns, tmp_path / "copy", lambda content: content["device"].update({name: text})
    )
    assert name in _refusal(folder).where
