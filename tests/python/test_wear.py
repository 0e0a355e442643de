"""Is wear reported if the device reports it, else marked unknown, and stored with results?"""

import json
from pathlib import Path

import pytest
from command_line import uflip

from uflip.benchmark import Choices, describe_wear, estimate, make_plan, wear_of
from uflip.benchmark.cost import wear_from_smart_log
from uflip.device.catalogue import inspect_device
from uflip.results import Results
from uflip.spec import Mix

TB, GIB = 10**12, 1 << 30


@pytest.mark.parametrize(
    ("percentage_used", "written", "adds", "share", "bound"),
    [
        # A drive of 600 TB written (as data sheets rate it) at 12 %: 72 TB were written.
        (12, 72 * TB, 6 * TB, 0.01, "about"),
        # It counts beyond its rated life.
        (130, 780 * TB, 6 * TB, 0.01, "about"),
        # 9 TB were less than 1 %: a tenth of it is less than 0.1 %.
        (0, 9 * TB, 9 * TB // 10, 0.001, "less than"),
    ],
)
def test_endurance_share_follows_from_earlier_writes(
    percentage_used: int, written: int, adds: int, share: float, bound: str
) -> None:
    wear = wear_from_smart_log(percentage_used, written)
    assert wear.share(adds) == pytest.approx(share)
    assert wear.bound == bound
    text = describe_wear(wear, adds)
    assert f"{percentage_used} % used" in text
    assert (bound in text) == (bound != "about")


def test_device_without_write_counter_reports_percentage() -> None:
    wear = wear_from_smart_log(7, 0)
    assert wear.share(TB) is None
    assert describe_wear(wear, TB).startswith("unknown: ")
    assert "7 % used" in describe_wear(wear, TB)


def test_simulated_device_uses_rated_erases_of_profile() -> None:
    wear = wear_of(inspect_device("sim:worn-mlc"))
    # worn-mlc.toml: 8 dies of 160 blocks of 64 pages of 4 KiB, rated for 3000 erases, after 7500.
    endurance = 8 * 160 * 64 * 4096 * 3000
    assert (wear.endurance_bytes, wear.percentage_used, wear.bound) == (endurance, 250, "at least")
    assert wear.share(endurance) == 1
    assert "rated_cycles" in wear_of(inspect_device("sim:demo")).unknown


def test_unknown_wear_is_reported_as_unknown(tmp_path: Path) -> None:
    for url, size in (("null", None), (f"file:{tmp_path}/new.bin", "1MiB")):
        wear = wear_of(inspect_device(url, size=size))
        if wear.unknown:  # the disk of the tests may report its wear
            assert wear.share(1) is None
            assert describe_wear(wear, 1) == f"unknown: {wear.unknown}"
    assert list(tmp_path.iterdir()) == []


def test_plan_prepare_and_run_report_wear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = ("plan", "sim:worn-mlc?random_overwrites=3", "--scale", "quick", "--only", "order")
    document = json.loads(uflip(*plan, "--json").out)
    assert document["wear"]["share"] == pytest.approx(
        document["estimate"]["bytes_written"] / document["wear"]["endurance_bytes"]
    )
    assert "wear: at least" in uflip(*plan).out
    dry = uflip("prepare", "sim:worn-mlc", "--dry-run")
    assert "% of the rated endurance" in dry.out
    outcome = uflip("run", *plan[1:], "--out", "out")
    assert outcome.code == 0, outcome.err
    assert "wear: at least" in outcome.err
    stored = Results.load("out").manifest.device.details.wear
    assert stored is not None
    assert stored.percentage_used == 250


def test_plan_counts_minimum_and_maximum() -> None:
    info = inspect_device("sim:demo")
    fixed = estimate(make_plan(info, "standard", 1, Choices(only=("order",), method="paper")))
    assert fixed.fewest.ios == fixed.ios
    assert fixed.fewest.time_ns == fixed.time_ns
    plan = make_plan(info, "standard", 1, Choices(only=("order", "mix")))
    estimated = estimate(plan)
    assert estimated.fewest.ios < estimated.ios
    # The minimum length of a run: `min_ios` of its rule; a mix counts its rarer pattern.
    fewest = sum(
        run.spec.stop.min_ios * (run.spec.ratio + 1 if isinstance(run.spec, Mix) else 1)
        if run.spec.stop is not None
        else run.spec.io_count
        for run in plan.runs
    )
    assert estimated.fewest.ios == fewest
    assert estimated.fewest.bytes_written < estimated.bytes_written
