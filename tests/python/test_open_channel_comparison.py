"""Open-channel devices side by side: write completion on each, and which of them is slower."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

import uflip as api
from uflip.analysis import analyse
from uflip.benchmark import BenchmarkRequest, begin
from uflip.results.statistics import job_convergence

SMALL = "sim:dfc?channels=3&luns_per_channel=2&planes=1&pages_per_block=16&blocks_per_plane=8"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(BenchmarkRequest(device=SMALL, scale="quick"), tmp_path_factory.mktemp("oc") / "r")


def test_manifest_durability_follows_write_completion(folder: Path, workdir: Path) -> None:
    """Comparing a device that writes back with one that writes through warns."""
    command = ("oc", "run", f"{SMALL}&write_back=false", "--scale", "quick", "--only", "oc0")
    assert uflip(*command, "--out", "through", "-q").code == 0
    for results, expected in ((folder, "cached"), (Path("through"), "fua")):
        assert json.loads((results / "manifest.json").read_text())["durability"] == expected
    text = uflip("compare", folder, "through").out
    assert "cached" in text
    assert "a write is complete when its data would survive a loss of power" in text


def test_compare_finds_slower_reads_of_twin_device(folder: Path, workdir: Path) -> None:
    """A twin with twice the cell read time differs only in reads."""
    options = ("--scale", "quick", "--only", "oc0,oc2,oc3", "--out")
    assert uflip("oc", "run", f"{SMALL}&read_ns=300us", *options, "twin", "-q").code == 0
    comparison = api.compare(folder, "twin")
    # A single write, out of its order; the wear job has no mean.
    assert [row.parameter for row in comparison.rows if row.verdict == "unknown"] == ["first_page"]
    verdicts: dict[str, set[str]] = {row.pattern: set() for row in comparison.rows}
    for row in comparison.rows:
        verdicts[row.pattern].add(row.verdict)
    assert verdicts["R"] == verdicts["RRRR"] == {"slower"}
    assert verdicts["WWWWW"] | verdicts["W"] <= {"same", "not_apart", "unknown"}
    assert comparison.slower_than(0.05)
    # The mean is that of all commands, and the interval of the same.
    run = next(each for each in api.load("twin").runs if each.pattern == "WRRR")
    log = run.log()
    analysis = analyse(np.asarray(log.column("response_time_ns")))
    row = next(row for row in comparison.rows if row.pattern == "WRRR")
    assert row.second_ns == pytest.approx(np.asarray(log.column("response_time_ns")).mean())
    assert row.second_half_ns is not None
    assert row.second_half_ns >= (analysis.half_width_ns or 0) - 1e-3
    # The advice can be followed.
    advice = {each.code: each.advice for each in comparison.conditions}
    assert "different_state" not in advice
    assert "measure one of the devices twice" in advice["one_repetition"]
    assert not [text for text in advice.values() if "--repetitions" in text or "--state" in text]
    self_comparison = api.compare(folder, folder)
    assert {row.verdict for row in self_comparison.rows} == {"same", "not_apart", "unknown"}


def test_job_interval_combines_threads_in_step() -> None:
    rng = np.random.default_rng(5)
    pace = rng.normal(1e6, 2e5, 4000)
    threads = np.tile([3, 5], 4000)
    together = np.repeat(pace, 2)
    two, one = job_convergence(together, threads), job_convergence(pace, np.zeros(4000, int))
    assert two == one
    assert one["half_width_ns"] == pytest.approx(1.96 * 2e5 / np.sqrt(4000), rel=0.4)
    # Threads of different lengths have no pace in common, and one command none at all.
    for times, streams in ((pace, np.arange(4000) // 3000), (pace[:1], np.zeros(1, int))):
        convergence = job_convergence(times, streams)
        assert (convergence["converged"], convergence["half_width_ns"]) == (None, None)
