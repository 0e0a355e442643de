"""Consistent but forged results: the measured runs are not those of the plan.

Each folder has a new ledger that matches the change, which any user can make: only the checks
against the plan and the limits of the database can refuse it.
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
from uflip.site.client import redacted_copy
from uflip.site.folders import examine

Plan = list[dict[str, Any]]


@pytest.fixture(scope="module", params=["sim:demo?blocks_per_die=64", "sim:dfc"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _measure(request.param, tmp_path_factory.mktemp("forged"))


@pytest.fixture(scope="module")
def pattern_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _measure("sim:demo?blocks_per_die=64", tmp_path_factory.mktemp("forged"))


def _measure(device: str, root: Path) -> Path:
    only = "oc0" if "dfc" in device else "order"
    outcome = uflip("run", device, "--scale", "quick", "--only", only, "-q", "--out", root / "r")
    assert outcome.code == 0, outcome.err
    redacted_copy(root / "r", root / "copy")
    return root / "copy"


def change_metadata(path: Path, key: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the metadata of a run file."""
    table = pq.read_table(path)
    values = json.loads(table.schema.metadata[key.encode()])
    change(values)
    metadata = table.schema.metadata | {key.encode(): json.dumps(values).encode()}
    fields = [field.with_nullable(False) for field in table.schema]
    path.unlink()
    pq.write_table(table.cast(pa.schema(fields, metadata)), path, compression="zstd")


def _refusal(folder: Path) -> ResultsError:
    with pytest.raises(ResultsError) as raised:
        examine(folder)
    return raised.value


def test_unchanged_folder_with_new_ledger_is_accepted(folder: Path, tmp_path: Path) -> None:
    """The unchanged folder is accepted, so that the others are refused for their changes."""
    same = forge_results(folder, tmp_path / "copy", lambda _content: None)
    assert examine(same).row.runs == len(list((folder / "runs").iterdir()))


def test_swapped_runs_are_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    first, second = sorted((tmp_path / "copy" / "runs").iterdir())[:2]
    first.rename(tmp_path / "between")
    second.rename(first)
    (tmp_path / "between").rename(second)
    rewrite_ledger(tmp_path / "copy")
    error = _refusal(tmp_path / "copy")
    assert (error.what, error.where) == ("This run is not the one that was planned", first.name)
    assert second.stem in error.got


def change_entry(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["plan"][1].update({name: value})


def change_spec(**values: object) -> Callable[[dict[str, Any]], None]:
    return lambda content: content["plan"][1]["spec"].update(values)


PLANS = {
    "another value": change_entry("value", 12345),
    "another pattern": change_entry("pattern", "XX"),
    "another micro-benchmark": change_entry("micro_benchmark", "mix"),
    "a repetition": change_entry("repetition", 7),
    "another seed": change_spec(seed=42),
    "other I/Os": change_spec(io_size=4096),
    "reads for writes": change_spec(mode="read"),
    "fewer I/Os": change_spec(io_count=300),
    "more I/Os": change_spec(io_count=4096),
    "a device of hardware": lambda content: content["device"].update(kind="block", simulated=False),
    "another folder": lambda content: content.update(folder_id="0" * 32),
}


@pytest.mark.parametrize("change", PLANS.values(), ids=PLANS.keys())
def test_forged_plan_is_refused(
    pattern_folder: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    """The micro-benchmark is what a result is read as: a forged plan makes other findings."""
    error = _refusal(forge_results(pattern_folder, tmp_path / "copy", change))
    assert error.what == "This run is not the one that was planned", error


def test_run_with_forged_metadata_is_refused(pattern_folder: Path, tmp_path: Path) -> None:
    """Plan and metadata agree; the I/Os are of another pattern."""
    folder = forge_results(pattern_folder, tmp_path / "copy", change_spec(mode="read", seed=5))
    second = sorted((folder / "runs").iterdir())[1]
    change_metadata(second, "uflip.run", lambda values: values["spec"].update(mode="read", seed=5))
    rewrite_ledger(folder)
    assert "mode write" in _refusal(folder).got


def test_irrelevant_metadata_change_is_accepted(pattern_folder: Path, tmp_path: Path) -> None:
    """A harmless change is accepted, so that the others are refused for theirs."""
    folder = tmp_path / "copy"
    shutil.copytree(pattern_folder, folder)
    change_metadata(
        sorted((folder / "runs").iterdir())[1],
        "uflip.run",
        lambda values: values.update(pause_ns=7),
    )
    rewrite_ledger(folder)
    assert examine(folder).row.runs


def test_job_of_unplanned_length_is_refused(tmp_path: Path) -> None:
    jobs = _measure("sim:dfc", tmp_path)
    error = _refusal(forge_results(jobs, tmp_path / "forged", change_spec(pages=7)))
    assert error.where.endswith(".parquet"), error


TEXTS = {
    "a firmware that is too long": ("firmware", "F" * 5000),
    "a model that is too long": ("model", "M" * 5000),
    "a NUL in a model": ("model", "a\0b"),
}


@pytest.mark.parametrize(("name", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_text_beyond_database_limits_is_refused(
    pattern_folder: Path, tmp_path: Path, name: str, text: str
) -> None:
    folder = forge_results(
        pattern_folder, tmp_path / "copy", lambda content: content["device"].update({name: text})
    )
    assert name in _refusal(folder).where
