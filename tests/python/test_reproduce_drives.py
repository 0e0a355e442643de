"""`uflip reproduce drives`: tables, workloads, simulated lines, and the fit of constants."""

import json
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

from uflip import reproduce
from uflip.device.opener import open_device
from uflip.errors import ResultsError
from uflip.models import write_amplification as theory
from uflip.reproduce import figure
from uflip.reproduce.drives import comparison, drive_model, line_device
from uflip.reproduce.drives.comparison import (
    REPRODUCTION,
    ComparedResponse,
    ComparedRow,
    SimulatedDrive,
    compare_drives,
    compare_responses,
    format_drives,
    reproduction_rows,
    unidentified_rates,
    unidentified_responses,
    usual_cost,
)
from uflip.reproduce.drives.drive_model import Constants
from uflip.reproduce.drives.drive_profile import drive_profile
from uflip.reproduce.drives.fit import POLICIES, calibration_rows, fit, policy_errors, policy_name
from uflip.reproduce.drives.knees import Knee, find_knees, predict_knee
from uflip.reproduce.drives.line_device import (
    RANDOM_LINE_PAGES,
    RANDOM_LINES,
    Lines,
    write_amplification,
)
from uflip.reproduce.drives.loaded_response import (
    ResponseConstants,
    fit_responses,
    stream_name,
)
from uflip.reproduce.drives.tables import (
    AMPLIFICATION,
    BUILT_IN,
    RATE,
    Drive,
    LoadedResponse,
    Observation,
    Phase,
    read_drives,
)
from uflip.reproduce.drives.workload import Workload, is_calibration, workload_of
from uflip.reproduce.drives.write_waits import MeasuredWrite, WriteWaits, fit_waits
from uflip.reproduce.reproduction import ReproductionOutcome
from uflip.spec import baseline

UNIFORM, SEQUENTIAL = Workload("uniform"), Workload("sequential")
HELD_LINES = 2
"""Lines that hold no victim: the reserve, and the open one; as in the self-test."""


# The tables


def value_of(drive: Drive, pattern: str, quantity: str, capacity_gib: float) -> Observation:
    return next(
        row for row in drive.observations
        if (row.phase.pattern, row.quantity, row.phase.capacity_gib)
        == (pattern, quantity, capacity_gib)
    )  # fmt: skip


def test_tables_have_the_measured_numbers() -> None:
    """Three numbers of the SSD-iq measurements, read off their tables by hand."""
    drives = {drive.name: drive for drive in read_drives(BUILT_IN)}
    assert len(drives) == 7
    hynix = value_of(drives["sk-hynix-pe8110-960"], "uniform", RATE, 894)
    assert (hynix.value, hynix.repetitions) == (326.658, 1)
    median_us = next(
        row.response_us
        for row in drives["samsung-pm9a3-960"].responses
        if (row.offered_per_s, row.write_share, row.what, row.percent) == (10_000, 0.5, "read", 50)
    )
    assert median_us == 64
    micron = value_of(drives["micron-7450-max-800"], "uniform", AMPLIFICATION, 745)
    assert micron.value == pytest.approx(1.89, abs=0.01)


def test_repetitions_of_a_phase_become_their_median() -> None:
    once = read_drives(BUILT_IN)
    twice = read_drives(BUILT_IN, BUILT_IN)
    for one, two in zip(once, twice, strict=True):
        assert [row.value for row in one.observations] == [row.value for row in two.observations]
        pairs = zip(one.observations, two.observations, strict=True)
        assert all(2 * first.repetitions == second.repetitions for first, second in pairs)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("894,uniform", "none,uniform", "none"), ("894,uniform", "0,uniform", "above 0")],
)
def test_wrong_value_names_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    shutil.copytree(BUILT_IN, tmp_path / "tables")
    path = tmp_path / "tables" / "throughput.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(ResultsError, match=message) as caught:
        read_drives(tmp_path / "tables")
    assert "line" in caught.value.where


def test_missing_tables_are_an_error(tmp_path: Path) -> None:
    outcome = uflip("reproduce", "drives", "--data", str(tmp_path))
    assert outcome.code == ResultsError.exit_code
    assert "throughput.csv" in outcome.err


def test_data_needs_drives(tmp_path: Path) -> None:
    outcome = uflip("reproduce", "ofc-fig7", "--data", str(tmp_path))
    assert outcome.code == 2
    assert "--data needs drives" in outcome.err


# Workloads


@pytest.mark.parametrize(
    ("pattern", "details", "workload"),
    [
        ("sequential-noshuffle", "", SEQUENTIAL),
        ("sequential-shuffle", "", None),
        ("uniform", "", UNIFORM),
        ("zipf-shuffle", "0.600000", Workload("zipf", skew_percent=60)),
        ("fiozipf-shuffle", "0.8", None),
        (
            "zones-shuffle", "s0.9 f0.1 s0.1 f0.9",
            Workload("two_areas", space_percent=90, writes_percent=10),
        ),
        ("zones-shuffle", "s0.5 f0.5 s0.2 f0.3 s0.3 f0.2", None),
        (
            "zns-noshuffle", "activeZones: 4 pagesPerZone: 4096",
            Workload("zones", zone_gib=2, open_zones=4),
        ),
        ("something", "else", None),
    ],
)  # fmt: skip
def test_phase_is_a_workload(pattern: str, details: str, workload: Workload | None) -> None:
    assert workload_of(Phase(pattern, details, 894)) == workload


def test_calibration_is_a_minority_of_phases() -> None:
    """The rule depends on pattern and details only, and leaves most phases to predictions."""
    for drive in read_drives(BUILT_IN):
        phases = {row.phase for row in drive.observations if workload_of(row.phase)}
        kept = {phase for phase in phases if is_calibration(phase, drive.capacity_gib)}
        assert 0 < len(kept) <= 0.55 * len(phases)
        assert not any(phase.capacity_gib != drive.capacity_gib for phase in kept)


# Lines


@pytest.mark.parametrize("spare", [0.1, 0.2, 0.4])
def test_uniform_writes_agree_with_the_closed_form(spare: float) -> None:
    pages = RANDOM_LINES * RANDOM_LINE_PAGES
    expected = theory.greedy(
        spare_factor=theory.pool_spare_factor(
            physical_blocks=RANDOM_LINES,
            pages_per_block=RANDOM_LINE_PAGES,
            logical_pages=round(pages * (1 - spare)),
            held_blocks=HELD_LINES,
        ),
        pages_per_block=RANDOM_LINE_PAGES,
    )
    found = write_amplification(UNIFORM, Lines(spare), 8, 0.0)
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    "workload",
    [UNIFORM, Workload("zipf", skew_percent=60), Workload("two_areas", space_percent=40)],
)
def test_size_of_the_simulated_drive_matters_little(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = write_amplification(workload, Lines(0.15), 5, 894.0)
    monkeypatch.setattr(line_device, "RANDOM_LINE_PAGES", 4 * RANDOM_LINE_PAGES)
    larger = write_amplification.__wrapped__(workload, Lines(0.15), 5, 894.0)
    assert usual == pytest.approx(larger, rel=0.03)


def test_zones_of_whole_lines_cost_nothing() -> None:
    """A zone that is discarded frees its lines, if they have no other zone's pages."""
    zones = Workload("zones", zone_gib=8)
    assert write_amplification(zones, Lines(0.2, 0.5 / 400), 4, 400.0) == pytest.approx(1, abs=0.02)
    within = Workload("zones", zone_gib=1)
    assert write_amplification(within, Lines(0.2, 4 / 400), 4, 400.0) > 1.5


@pytest.mark.parametrize("theta", [0.2, 0.8, 1.0])
def test_weight_of_ranks_is_their_sum(theta: float) -> None:
    expected = sum(rank**-theta for rank in range(1, 100_001))
    assert line_device.zipf_weight(theta, 100_000) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("details", "published"), [("0.6", 1.07), ("0.8", 1.12), ("1.0", 0.94)])
def test_skew_amplifies_as_published(details: str, published: float) -> None:
    """Haas et al. (PVLDB 2025): a Micron 7450 PRO, relative to uniform writes.

    The two rows with most skew are in none of the tables.
    """
    drive = Constants(1389.0, 1121.0, 1.62, 2.17, 1378.0)
    uniform, skewed = (
        drive.predict(Phase(pattern, text, 894), RATE, 5)
        for pattern, text in (("uniform", ""), ("zipf-shuffle", details))
    )
    assert uniform is not None
    assert skewed is not None
    assert uniform / skewed == pytest.approx(published, abs=0.04)


def test_partly_read_drive_amplifies_most_in_between() -> None:
    """The PM9A3 writes more when 60 % of it is only read (Haas et al., PVLDB 2025)."""
    drive = Constants(1439.0, 1035.0, 1.25, 4.51, 1439.0)
    amplification = {
        percent: drive.amplification(
            Workload("two_areas", space_percent=percent, writes_percent=0), 894, 7
        )
        for percent in (20, 60, 90)
    }
    assert amplification[20] < 0.97 * amplification[60]
    assert amplification[90] < 0.97 * amplification[60]


# The fit


PATTERNS = (
    ("sequential", ""), ("uniform", ""), ("zipf-shuffle", "0.4"),
    ("zones-shuffle", "s0.4 f0 s0.6 f1"), ("zones-shuffle", "s0.8 f0 s0.2 f1"),
)  # fmt: skip


def test_fit_finds_the_constants_of_a_made_up_drive() -> None:
    made_up = Constants(1000.0, 115.0, 1.4, 1.0, 1000.0)
    rows = []
    for pattern, details in PATTERNS:
        phase = Phase(pattern, details, 100)
        predicted = made_up.predict(phase, RATE, 5)
        assert predicted is not None
        rows.append(Observation("made up", phase, RATE, predicted, 5, 1))
    drive = Drive("made up", 100, tuple(rows))
    assert calibration_rows(drive) == rows
    found = fit(drive)
    assert found is not None
    assert found.physical_gib == pytest.approx(115, rel=0.01)
    assert found.relocation_cost == pytest.approx(1.4, rel=0.05)
    assert (found.policy, found.apart) == ("greedy", True)
    errors = policy_errors(drive, found)
    assert min(errors, key=lambda name: errors[name]) == "greedy apart"


# Response times under load


SATURATED = {
    stream_name(main, what, percent): 1_000.0 * us
    for main, what, percent, us in (
        (True, "write", 50, 5.5), (True, "write", 99, 6.5), (True, "read", 50, 3.0),
        (True, "read", 99, 4.0), (False, "write", 50, 3.0), (False, "write", 99, 5.0),
        (False, "read", 50, 0.9), (False, "read", 99, 2.0),
    )
}  # fmt: skip
LOADED = ResponseConstants(70_000.0, 60.0, 300.0, 9.0, 13.0, 2.0, WriteWaits(), SATURATED)


def test_saturated_stream_obeys_littles_law() -> None:
    """384 writes in flight of 5.5 ms each: 69,800 complete in a second."""
    rows = [
        LoadedResponse(rate, share, what, percent, LOADED.predict(rate, share, what, percent))
        for rate in (10_000, 200_000)
        for share in (0.5, 0.99)
        for what in ("read", "write")
        for percent in (50, 99)
    ]
    found = fit_responses(rows, 90_000.0)
    assert found is not None
    assert found.sustained_per_s == pytest.approx(384 / 5.5e-3)
    assert found.predict(150_000, 0.99, "write", 50) == 5_500


def test_reads_of_an_idle_drive_do_not_wait() -> None:
    quiet = ResponseConstants(1e9, 60.0, 300.0, 9.0, 13.0, 2.0, WriteWaits(), SATURATED)
    assert quiet.predict(10, 0.99, "read", 99) == 60
    waits = [LOADED.predict(rate, 0.99, "read", 99) for rate in (10_000, 30_000, 60_000)]
    assert waits == sorted(waits)
    assert 60 < waits[0] < waits[-1] < 60 + 300


def loaded_rows(constants: ResponseConstants) -> list[LoadedResponse]:
    return [
        LoadedResponse(rate, share, what, percent, constants.predict(rate, share, what, percent))
        for rate in (10_000, 30_000, 50_000, 200_000)
        for share in (0.5, 0.99)
        for what in ("read", "write")
        for percent in (50, 99)
    ]


def test_fit_finds_the_constants_of_a_made_up_load() -> None:
    rows = loaded_rows(LOADED)
    found = fit_responses(rows, 70_000.0)
    assert found is not None
    assert found.waits == WriteWaits()
    assert found.saturated_us == SATURATED
    for name in ("sustained_per_s", "read_us", "blocked_us", "buffered_us", "buffered_tail_us"):
        expected = getattr(LOADED, name)
        assert getattr(found, name) == pytest.approx(expected, rel=0.03), name
    writes = [row for row in rows if row.what == "write"]
    alone = fit_responses(writes, 70_000.0)
    assert alone is not None
    assert alone.buffered_us == found.buffered_us
    assert alone.predict(10_000, 0.99, "read", 50) is None
    assert fit_responses([row for row in rows if row.what == "read"], 70_000.0) is None


def simulated_waits_ms(per_s: int, buffer: int, turn_s: float, pace: float) -> list[float]:
    """Wait for buffer space, write by write, while turns of collection slow a drive down.

    A turn begins after every second of writes; outside of turns the drive frees space at once.
    """
    interval = 1 / per_s
    waits = []
    for number in range(per_s):
        arrival = number * interval
        freed = pace * per_s * min(arrival, turn_s)
        if arrival >= turn_s:
            waits.append(0.0)
            continue
        backlog = max(0.0, number + 1 - freed - buffer)
        waits.append(1e3 * min(backlog / (pace * per_s), turn_s - arrival + 1e-4 * backlog))
    return waits


@pytest.mark.parametrize("per_s", [20_000, 40_000, 80_000])
def test_waits_agree_with_a_simulated_buffer(per_s: int) -> None:
    """Turns of 100 ms a second, with 0.9 of the arrivals served and a buffer of 100 writes."""
    buffer, turn_s, pace = 100, 0.1, 0.9
    waits = sorted(simulated_waits_ms(per_s, buffer, turn_s, pace))
    onset = buffer / turn_s / (1 - pace)
    longest_us = (1 - pace) * turn_s / pace * 1e6
    # A sustained rate at which the formula's share of writes that wait is that of the turns.
    waiting = turn_s * (1 - onset / per_s)
    sustained = onset + (per_s - onset) / waiting
    formula = WriteWaits(onset, longest_us, 1.0, 1, pace)
    for percent in (92, 95, 99):
        simulated = waits[int(percent / 100 * len(waits))]
        expected = formula.wait_us(percent, per_s, sustained, 1e9) / 1e3
        assert simulated == pytest.approx(expected, rel=0.15, abs=0.3), percent


def test_depth_of_a_stream_limits_its_waits() -> None:
    """384 writes, of which 0.8 of 50,000 are served in a second."""
    waits = WriteWaits(10_000.0, 1e6, 1.0, 1, 0.8)
    assert waits.wait_us(99, 50_000, 60_000, 384) == pytest.approx(384 / 40_000 * 1e6)
    assert waits.wait_us(99, 10_000, 60_000, 384) == 0


@pytest.mark.parametrize("growth", [1.0, 1.6, 2.5])
def test_saturated_drive_makes_every_write_wait(growth: float) -> None:
    waits = WriteWaits(10_000.0, 8_000.0, growth, 1)
    times = [waits.wait_us(50, rate, 50_000, 1e9) for rate in (10_000, 20_000, 40_000, 50_000)]
    assert times == sorted(times)
    assert times[0] == 0
    assert times[-1] == pytest.approx(0.5 * 8_000 * 0.8)


@pytest.mark.parametrize(
    "made_up", [WriteWaits(14_000.0, 14_000.0, 2.0, 2, 0.85), WriteWaits(70_000.0, 9_000.0, 1.0, 1)]
)
def test_fit_finds_waits_that_predict_the_same(made_up: WriteWaits) -> None:
    """Constants trade for each other; the percentiles at rates in between are what counts."""
    sustained = 8 * made_up.onset_per_s

    def measure(percent: float, load: float) -> float:
        return 10 + made_up.wait_us(percent, load * sustained, sustained, 384)

    rows = [
        MeasuredWrite(percent, load * sustained, 10.0, measure(percent, load))
        for load in (0.1, 0.3, 0.5, 1.0)
        for percent in (50, 90, 99, 99.9)
    ]
    found = fit_waits(rows, sustained, 384)
    for load in (0.4, 0.7):
        predicted = 10 + found.wait_us(99, load * sustained, sustained, 384)
        assert predicted == pytest.approx(measure(99, load), rel=0.2)


# Knees


def test_knee_lies_between_two_measured_rates() -> None:
    rates = (10_000, 30_000, 50_000, 200_000)
    knees = list(find_knees(loaded_rows(LOADED), rates, LOADED))
    assert [(knee.below_per_s, knee.above_per_s) for knee in knees] == [(50_000, 200_000)] * 2
    assert all(knee.within and knee.fitted for knee in knees)
    # 0.99 of the offered rate are writes: the drive sustains 70,000 of them.
    assert predict_knee(LOADED, 50) == pytest.approx(70_000 / 0.99, rel=0.01)
    assert list(find_knees(loaded_rows(LOADED)[:8], rates, LOADED)) == []


@pytest.mark.parametrize(
    ("predicted", "deviation", "within"),
    [
        (None, None, False),
        (70.0, 0, True),
        (60.0, 0, True),
        (54.5, -1 / 11, True),
        (90.0, 0.125, 0),
    ],
)
def test_knee_deviates_from_the_nearer_end(
    predicted: float | None, deviation: float | None, within: bool
) -> None:
    knee = Knee(50, 60, 80, False, predicted)
    assert knee.deviation == (None if deviation is None else pytest.approx(deviation, abs=0.001))
    assert knee.within == within


# Drives that the program has not seen


def unseen(tmp_path: Path, change: Callable[[str, list[str]], list[str]]) -> Drive:
    """Return the PE8110 under another name, from tables whose lines `change` has changed."""
    for name in ("throughput.csv", "response.csv"):
        head, *lines = (BUILT_IN / name).read_text().splitlines()
        kept = [line.replace("sk-hynix-pe8110-960", "unseen") for line in lines if "hynix" in line]
        (tmp_path / name).write_text("\n".join([head, *change(name, kept)]) + "\n")
    drives = read_drives(BUILT_IN, tmp_path)
    return next(drive for drive in drives if drive.name == "unseen")


def test_renamed_drive_with_shuffled_rows_gets_the_same_constants(tmp_path: Path) -> None:
    def shuffle(_: str, lines: list[str]) -> list[str]:
        return random.Random(7).sample(lines, len(lines))

    drive = unseen(tmp_path, shuffle)
    known = next(one for one in read_drives(BUILT_IN) if one.name == "sk-hynix-pe8110-960")
    assert fit_responses(drive.responses, 80_000.0) == fit_responses(known.responses, 80_000.0)
    assert [row.value for row in drive.observations] == [row.value for row in known.observations]
    policy = [("greedy", True)]
    assert fit(drive, policies=policy) == fit(known, policies=policy)


@pytest.mark.parametrize(
    ("lacks", "rates", "times"),
    [
        (",sequential", True, True),  # its zones show the sequential rate
        (",zns", True, True),
        ("s0.4", True, True),
        (",uniform,", False, True),
        (",0.5,write", True, True),
        (",10000,", True, True),
        (",read,", True, True),
        ("-shuffle,,", True, False),  # nothing under load
    ],
)
def test_drive_with_missing_rows_is_fitted_as_far_as_possible(
    tmp_path: Path, lacks: str, rates: bool, times: bool
) -> None:
    def remove(name: str, lines: list[str]) -> list[str]:
        # Zipf's rows and the two areas are removed with the uniform ones: no random rate is left.
        random_only = lacks == ",uniform,"
        return [
            line for line in lines
            if lacks not in line
            and not (random_only and name == "throughput.csv" and "zns" not in line)
        ]  # fmt: skip

    drive = unseen(tmp_path, remove)
    constants = fit(drive, policies=[("greedy", True)])
    assert (constants is not None) == rates
    found = compare_responses([drive], drive)
    assert (found.load is not None) == times
    assert len(found.rows) == sum(row.percent in {50, 99} for row in drive.responses)
    unknown = {row.response.what for row in found.rows if row.predicted_us is None}
    assert unknown <= {"read"}


def amplify_at_once(workload: Workload, lines: Lines, written: float, capacity_gib: float) -> float:
    """Stand for a simulation that takes seconds: a write amplification of the right size."""
    if workload.kind == "sequential":
        return 1.0
    skew = workload.skew_percent / 1000 + lines.line_share + written / 1000
    return 1 + (1 - lines.spare_factor) / (2 * lines.spare_factor) * (1 + skew)


@pytest.mark.parametrize("seed", range(12))
def test_any_part_of_the_tables_can_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Without random patterns, rates and single rows nothing fails, and the unknown is named."""
    monkeypatch.setattr(drive_model, "write_amplification", amplify_at_once)
    monkeypatch.setattr(comparison, "on_all", lambda do, items, *_: [do(one) for one in items])
    monkeypatch.setattr(comparison, "BUILT_IN", tmp_path)
    rng = random.Random(seed)
    names = rng.sample([drive.name for drive in read_drives(BUILT_IN)], 2)
    for name in ("throughput.csv", "response.csv", "wear.csv"):
        head, *lines = (BUILT_IN / name).read_text().splitlines()
        columns = head.split(",")
        gone: dict[str, bool] = {}

        def is_kept(line: str, columns: list[str] = columns, gone: dict[str, bool] = gone) -> bool:
            cells = dict(zip(columns, line.split(","), strict=True))
            parts = (
                cells["pattern"] + cells["details"], cells["rate"],
                cells.get("what", "") + cells.get("write_share", ""),
            )  # fmt: skip
            lost = [gone.setdefault(part, rng.random() < 0.1 * (seed % 6)) for part in parts]
            return cells["drive"] in names and not any(lost) and rng.random() > 0.05

        (tmp_path / name).write_text("\n".join([head, *filter(is_kept, lines)]) + "\n")
    drives = compare_drives(lambda *_: None)
    assert format_drives(drives)
    for drive in drives:
        assert (drive.constants is None) == any("all rates" in text for text in drive.unidentified)
        if drive.constants is not None:
            assert drive_profile(drive)


def test_what_the_rows_do_not_show_is_named() -> None:
    sequential, uniform = (Phase(pattern, "", 100) for pattern in ("sequential", "uniform"))
    rows = [Observation("d", phase, RATE, 100.0, 5, 1) for phase in (sequential, uniform)]
    constants = Constants(100.0, 115.0, 1.4, 1.0, 100.0)
    assert list(unidentified_rates(Drive("d", 100, tuple(rows)), constants)) == [
        "line, rate of long writes: no zones; they are the usual ones of other drives",
        "policy, cost apart from the spare space: 1 phases of random writes",
    ]
    assert list(unidentified_rates(Drive("d", 100, tuple(rows[:1])), None)) == [
        "all rates: no random writes among the calibration rows"
    ]
    few = replace(LOADED, read_us=None, saturated_us={stream_name(True, "write", 50): 5_500.0})
    assert list(unidentified_responses(few)) == [
        "reads below saturation: no rows",
        "p50 and p99 of reads at saturation, main stream: no rows",
        "p99 of writes at saturation, main stream: no rows",
        "p50 and p99 of reads at saturation, stream beside: no rows",
        "p50 and p99 of writes at saturation, stream beside: no rows",
    ]


def test_parts_of_a_phase_can_be_missing(tmp_path: Path) -> None:
    """Two phases, of which one lacks its last part and one the first of the last fifth."""
    shutil.copy(BUILT_IN / "throughput.csv", tmp_path)
    columns = (
        "drive,capacity_gib,pattern,details,rate,part,host_written_capacities,write_amplification"
    )
    lines = [
        f"micron-7450-max-800,745,{pattern},,0,{part},{part},{value}"
        for pattern, parts in (("uniform", {17: 2, 18: 4}), ("sequential", {18: 1, 19: 1, 20: 1}))
        for part, value in parts.items()
    ]
    (tmp_path / "wear.csv").write_text("\n".join([columns, *lines]) + "\n")
    drive = next(one for one in read_drives(tmp_path) if one.name == "micron-7450-max-800")
    assert value_of(drive, "uniform", AMPLIFICATION, 745).value == 3
    assert value_of(drive, "sequential", AMPLIFICATION, 745).value == 1


def test_usual_cost_is_learned_from_the_other_drives() -> None:
    costs = {
        name: Constants(1000.0, 1100.0, cost, 1.0, 1000.0)
        for name, cost in (("a", 1.2), ("b", 1.4), ("c", 2.4))
    }
    assert usual_cost({**costs, "d": None}, "c") == pytest.approx(1.3)
    assert usual_cost({"c": costs["c"]}, "c") == 1.35


def test_all_rows_are_printed_and_drawn(tmp_path: Path) -> None:
    """A drive without calibration rows is printed, and has no predictions."""
    phase = Phase("uniform", "", 100)
    rows = [
        ComparedRow(Observation("known", phase, RATE, 100.0, 5, 1), False, 109.0, None, 80.0, None),
        ComparedRow(Observation("known", phase, RATE, 100.0, 5, 1), False, 111.0, None, 95.0, None),
        ComparedRow(Observation("known", phase, RATE, 100.0, 5, 1), True, 100.0, 101.0, 1.0, 99.0),
    ]
    response = LoadedResponse(10_000, 0.99, "read", 50, 60.0)
    known = SimulatedDrive(
        "known", 100.0, Constants(100.0, 115.0, 1.4, 1.0, 100.0), tuple(rows),
        dict.fromkeys((policy_name(*one) for one in POLICIES), 0.01), LOADED,
        (ComparedResponse(response, False, 80.0, 61.0),),
    )  # fmt: skip
    unknown = SimulatedDrive("unknown", 50.0, None, (), {}, None, ())
    text = format_drives([known, unknown])
    assert re.search(r"predicted, rate +2 +50 % +50 % +0 %", text)
    assert re.search(r"predicted, p50 within 20 % +1 +0 % +100 %", text)
    assert re.search(r"unknown +–", text)
    printed = reproduction_rows([known, unknown])
    assert [row.within for row in printed] == [True, False, True, False]
    outcome = ReproductionOutcome(REPRODUCTION, [known, unknown], printed)
    figure.write(outcome, tmp_path / "drives.png")
    assert (tmp_path / "drives.png").stat().st_size > 1000


# Profiles


def made_up_drive(name: str, constants: Constants) -> SimulatedDrive:
    return SimulatedDrive(name, 894.0, constants, (), {}, LOADED, ())


def write_profile(folder: Path, constants: Constants) -> str:
    path = folder / "drive.toml"
    path.write_text(drive_profile(made_up_drive("drive", constants)))
    assert uflip("profile", "check", path).code == 0
    return f"sim:{path}"


@pytest.mark.parametrize(("gib", "text"), [(1121.0, "1 of 1121 GiB"), (0.4712, "1 of 0.47 GiB")])
def test_profile_names_the_capacity_of_its_drive(gib: float, text: str) -> None:
    constants = Constants(1400.0, gib, 1.6, 2.2, 1400.0, None, "greedy", False)
    drive = SimulatedDrive("drive", gib * 0.8, constants, (), {}, LOADED, ())
    assert f"drive at {text}: rates" in drive_profile(drive)


def test_profile_writes_at_the_rate_of_its_drive(tmp_path: Path) -> None:
    """Greedy collection with a spare factor of 0.2025; each relocated page costs 1.6 times."""
    drive = Constants(1400.0, 1121.0, 1.6, 2.2, 1400.0, None, "greedy", False)
    url = write_profile(tmp_path, drive)
    lines, pages = RANDOM_LINES, 1024
    expected = theory.greedy(
        spare_factor=theory.pool_spare_factor(
            physical_blocks=lines, pages_per_block=pages,
            logical_pages=round(lines * pages * 894 / 1121), held_blocks=HELD_LINES,
        ),
        pages_per_block=pages,
    )  # fmt: skip
    with open_device(url) as device:
        write = baseline("RW", io_size=4096, queue_depth=32, io_count=1_200_000)
        device.run(write)
        before = device.counters()
        trace = device.run(baseline("RW", io_size=4096, queue_depth=32, io_count=400_000, seed=2))
        after = device.counters()
        reads = device.run(baseline("RR", io_size=4096, io_count=200))
    change = {name: after[name] - before[name] for name in after}
    amplification = change["pages_programmed"] / change["host_pages_written"]
    assert amplification == pytest.approx(expected, rel=0.02)
    submitted, times = (
        np.asarray(trace.column(name)) for name in ("submit_ns", "response_time_ns")
    )
    mib_s = 400_000 / 256 / ((submitted + times).max() - submitted.min()) * 1e9
    assert mib_s == pytest.approx(drive.rate(UNIFORM, amplification), rel=0.02)
    assert np.asarray(reads.column("response_time_ns")).min() == pytest.approx(
        1e3 * LOADED.read_us, rel=0.06
    )


def test_limit_of_random_writes_is_that_of_the_profile(tmp_path: Path) -> None:
    url = write_profile(tmp_path, Constants(1439.0, 1105.0, 1.47, 5.8, 1439.0, 279.0))
    document = json.loads(
        uflip("pattern", url, "--pattern", "RW", "--io-size", "4k", "--queue-depth", 32,
              "--io-count", 50_000, "--json").out
    )  # fmt: skip
    assert document["bytes_per_s"] / (1 << 20) == pytest.approx(279, rel=0.01)


def test_profiles_are_written_into_a_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drives = [
        made_up_drive("first", Constants(1400.0, 1121.0, 1.6, 2.2, 1400.0)),
        SimulatedDrive("without constants", 50.0, None, (), {}, None, ()),
    ]
    made_up = replace(REPRODUCTION, measure=lambda _: drives)
    monkeypatch.setitem(reproduce.REPRODUCTIONS, "drives", made_up)
    outcome = uflip("reproduce", "drives", "--profiles", tmp_path / "new", "--json")
    assert outcome.code == 0, outcome.err
    load = json.loads(outcome.out)["series"][0]["load"]
    assert load["saturated_us"]["p99 of writes, main stream"] == 6_500
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["first.toml"]
    again = uflip("reproduce", "drives", "--profiles", tmp_path / "new")
    assert again.code == ResultsError.exit_code
    assert "unused name" in again.err
    other = uflip("reproduce", "ofc-fig7", "--profiles", tmp_path / "other")
    assert other.code == 2
    assert "--profiles needs drives" in other.err


def test_drive_without_calibration_rows_has_no_constants() -> None:
    row = Observation("unknown", Phase("uniform", "", 50), RATE, 100.0, 5, 1)
    assert fit(Drive("unknown", 100, (row,))) is None
    assert reproduction_rows([]) == []
