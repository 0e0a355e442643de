"""`uflip reproduce drives`: tables, workloads, simulated lines, and the fit of constants."""

import re
import shutil
from pathlib import Path

import pytest
from command_line import uflip

from uflip.errors import ResultsError
from uflip.models import write_amplification as theory
from uflip.reproduce import figure
from uflip.reproduce.drives import line_device
from uflip.reproduce.drives.comparison import (
    REPRODUCTION,
    ComparedResponse,
    ComparedRow,
    SimulatedDrive,
    format_drives,
    reproduction_rows,
)
from uflip.reproduce.drives.drive_model import Constants
from uflip.reproduce.drives.fit import POLICIES, calibration_rows, fit, policy_errors, policy_name
from uflip.reproduce.drives.line_device import (
    RANDOM_LINE_PAGES,
    RANDOM_LINES,
    Lines,
    write_amplification,
)
from uflip.reproduce.drives.loaded_response import ResponseConstants, fit_responses
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
from uflip.reproduce.reproduction import ReproductionOutcome

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


LOADED = ResponseConstants(70_000.0, 60.0, 300.0, 3_000.0, 900.0)


def test_saturated_stream_obeys_littles_law() -> None:
    """384 writes in flight, of which 70,000 complete in a second."""
    middle = LOADED.predict(100_000, 0.99, "write", 50)
    assert middle == pytest.approx(384 / 70_000 * 1e6)
    assert LOADED.predict(100_000, 0.99, "read", 50) - 900 == pytest.approx(middle - 3_000)
    assert LOADED.predict(200_000, 0.5, "write", 50) == 3_000


def test_reads_of_an_idle_drive_do_not_wait() -> None:
    quiet = ResponseConstants(1e9, 60.0, 300.0, 3_000.0, 900.0)
    assert quiet.predict(10, 0.99, "read", 99) == 60
    waits = [LOADED.predict(rate, 0.99, "read", 99) for rate in (10_000, 30_000, 60_000)]
    assert waits == sorted(waits)
    assert 60 < waits[0] < waits[-1] < 60 + 300


def test_fit_finds_the_constants_of_a_made_up_load() -> None:
    responses = [
        LoadedResponse(rate, share, what, percent, LOADED.predict(rate, share, what, percent))
        for rate in (10_000, 30_000, 50_000, 200_000)
        for share in (0.5, 0.99)
        for what in ("read", "write")
        for percent in (50, 99)
    ]
    found = fit_responses(responses, 90_000.0)
    assert found is not None
    for name, expected in vars(LOADED).items():
        assert getattr(found, name) == pytest.approx(expected, rel=0.02)
    assert fit_responses([row for row in responses if row.what == "write"], 90_000.0) is None


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


def test_drive_without_calibration_rows_has_no_constants() -> None:
    row = Observation("unknown", Phase("uniform", "", 50), RATE, 100.0, 5, 1)
    assert fit(Drive("unknown", 100, (row,))) is None
    assert reproduction_rows([]) == []
