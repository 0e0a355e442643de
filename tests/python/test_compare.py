"""Does a comparison find all differences with their size, and no others?"""

import csv
import io
import itertools
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip
from scipy import stats

import uflip as api
from self_comparison import FAILS_BY_CHANCE, measure_self
from uflip.report.comparison import HEAD, OPTIONAL, lines_of, sentences
from uflip.report.figures import ratios, side_by_side
from uflip.report.page import render
from uflip.result_views import summary
from uflip.results import Results
from uflip.results.comparability import missing_verdict_reason, same_window
from uflip.results.comparison import ComparedExperiment, slower_than
from uflip.results.statistics import VERDICTS, Mean, ratio_interval
from uflip.results.statistics.ratio import difference_chance, student_tail

# The controller of the second device takes this much longer for a read request: its response time
# grows by exactly this amount.
ADDED_NS = 20_000
FIRST = "sim:demo?blocks_per_die=64"
SECOND = f"{FIRST}&command_read_ns={20_000 + ADDED_NS}"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same benchmark of two devices that differ in one constant."""
    folder = tmp_path_factory.mktemp("pair")
    for name, device in (("first", FIRST), ("second", SECOND)):
        api.run(
            device, folder / name, scale="quick", only=["granularity", "baseline"], repetitions=3
        )
    return folder / "first", folder / "second"


@pytest.mark.parametrize("spread", [(0.05, 0.05), (0.3, 0.1), (0.01, 0.4)])
def test_ratio_interval_has_its_coverage(
    spread: tuple[float, float],
) -> None:
    """Estimates of two means of 100 and 150, drawn repeatedly."""
    rng = np.random.default_rng(1)
    means = np.array([100.0, 150.0])
    errors = means * np.array(spread) / 1.959964
    covered = 0
    for one, other in rng.normal(means, errors, (20_000, 2)):
        bounds = ratio_interval(one, 1.959964 * errors[0], other, 1.959964 * errors[1])
        covered += bounds is not None and bounds[0] <= 1.5 <= bounds[1]
    assert covered / 20_000 == pytest.approx(0.95, abs=0.005)


@pytest.mark.parametrize("half_widths", [(None, 1.0), (1.0, None), (100.0, 1.0), (250.0, 0.0)])
def test_ratio_without_a_certain_denominator_has_no_interval(
    half_widths: tuple[float | None, float | None],
) -> None:
    assert ratio_interval(100.0, half_widths[0], 150.0, half_widths[1]) is None


def test_changed_constant_is_detected_with_its_size(pair: tuple[Path, Path]) -> None:
    comparison = api.compare(*pair)
    assert comparison.devices["timing.command_read_ns"] == (20_000, 20_000 + ADDED_NS)
    assert not comparison.conditions
    reads = [row for row in comparison.rows if row.pattern in ("SR", "RR")]
    assert len(reads) >= 10
    for row in reads:
        if isinstance(row.value, int) and row.value <= 4096:
            # Reads of one page; larger ones wait for the slowest die.
            assert row.second_ns - row.first_ns == pytest.approx(ADDED_NS, rel=1e-6), row
        assert row.low is not None
        assert row.high is not None
        expected = 1 + ADDED_NS / row.first_ns
        assert row.low <= expected * 1.001
        assert row.high >= expected * 0.999
        assert row.verdict != "faster"
    small = [row for row in reads if row.ratio > 1.1]
    assert small
    assert {row.verdict for row in small if row.unknown_because is None} == {"slower"}
    assert not [
        row for row in comparison.rows if row.pattern in ("SW", "RW") and row.verdict == "slower"
    ]


def test_result_compared_with_itself_is_the_same(pair: tuple[Path, Path]) -> None:
    comparison = api.compare(pair[0], pair[0])
    assert {row.ratio for row in comparison.rows} == {1.0}
    assert {row.verdict for row in comparison.rows} <= {
        "same",
        "not_apart",
        "unknown",
    }
    assert not comparison.devices
    assert (
        sum(comparison.count().values())
        == len(comparison.rows)
        == len(api.load(pair[0]).experiments)
    )


def test_different_conditions_are_reported(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = api.run(FIRST, tmp_path / "other", scale="quick", only=["granularity"], seed=2)
    comparison = api.compare(pair[0], other)
    codes = {each.code for each in comparison.conditions}
    assert {"different_seed", "one_repetition"} <= codes
    assert {name.split()[0] for name in comparison.only_in_first} == {"baseline"}
    assert not comparison.only_in_second
    (condition,) = (each for each in comparison.conditions if each.code == "only_in_one")
    assert condition.numbers == {"first": len(comparison.only_in_first), "second": 0}
    assert condition.message in " ".join(uflip("compare", pair[0], other.path).out.split())


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({"io_size": 4096}, "different_io_size", "io_size 32 KiB and 4 KiB"),
        (
            {"target_size": 64 << 20},
            "different_target_size",
            "target_size the whole device and 64 MiB",
        ),
        ({"pause": "1ms"}, "different_pause", "pause 1 s and 1 ms"),
    ],
)
@pytest.mark.parametrize("only", ["order", "order,baseline"])
def test_different_sizes_and_pauses_are_reported(
    tmp_path: Path, changed: dict[str, Any], code: str, words: str, only: str
) -> None:
    """Varied parameters are matched by value; other parameters are reported where they differ."""
    for name, options in (("one", {}), ("other", changed)):
        api.run(FIRST, tmp_path / name, scale="quick", only=only.split(","), **options)
    comparison = api.compare(tmp_path / "one", tmp_path / "other")
    assert comparison.rows
    assert [each.message.rpartition("conditions. ")[2] for each in comparison.conditions
            if each.code == code] == [words]  # fmt: skip
    # A micro-benchmark that varies io_size has no io_size that could differ.
    without = api.run(FIRST, tmp_path / "without", scale="quick", only=["granularity"])
    codes = {each.code for each in api.compare(tmp_path / "one", without).conditions}
    assert "different_io_size" not in codes
    itself = api.compare(tmp_path / "other", tmp_path / "other")
    assert not [each for each in itself.conditions if each.code.startswith("different")]


def write_iolog(path: Path, blocks: list[int], *, interval_us: int = 500) -> Path:
    """Write reads of 4 KiB at these places, one per interval [µs], in fio 3's format."""
    path.parent.mkdir(parents=True)
    lines = [f"{n * interval_us} x read {block * 4096} 4096" for n, block in enumerate(blocks)]
    head = ["fio version 3 iolog", "0 x add", "0 x open"]
    path.write_text("\n".join([*head, *lines, f"{len(blocks) * interval_us} x close"]) + "\n")
    return path


def replay(name: str, trace: Path, *options: str, device: str = FIRST) -> str:
    outcome = uflip("replay", trace, device, "--out", name, "-q", *options)
    assert outcome.code == 0, outcome.err
    return name


def test_replays_of_other_ios_are_different_experiments(workdir: Path) -> None:
    """Replays of different traces with one name are different experiments."""
    one = write_iolog(Path("one/t.iolog"), list(range(400)))
    other = write_iolog(Path("other/t.iolog"), list(reversed(range(400))))
    comparison = api.compare(replay("a", one), replay("b", other))
    assert not comparison.rows
    assert (
        comparison.only_in_first == comparison.only_in_second == ("replay t.iolog queue_depth 1",)
    )
    assert {"different_replayed", "only_in_one"} <= {each.code for each in comparison.conditions}
    assert uflip("compare", "a", "b", "--fail-if-slower", "5%").code == 2
    # The same trace on another device is the same experiment.
    same = api.compare("a", replay("c", one, device=SECOND))
    assert [row.verdict for row in same.rows] == ["slower"]
    assert not [each for each in same.conditions if each.code.startswith("different")]


def test_replays_at_another_speed_are_reported(workdir: Path) -> None:
    trace = write_iolog(Path("t/t.iolog"), list(range(400)))
    for name, speed in (("a", "1"), ("b", "2"), ("c", "1")):
        replay(name, trace, "--speed", speed)
    comparison = api.compare("a", "b")
    messages = {each.code: each.message for each in comparison.conditions}
    assert not comparison.rows
    assert messages["different_speed"].endswith("speed 200 ms and 99.8 ms")
    assert [row.ratio for row in api.compare("a", "c").rows] == [1.0]


def test_fitted_trace_is_the_same_experiment(workdir: Path) -> None:
    """The comparison reports that its I/Os have other addresses."""
    trace = write_iolog(Path("t/t.iolog"), list(range(0, 600_000, 1500)))
    small = "sim:demo?blocks_per_die=32"
    comparison = api.compare(
        replay("a", trace, "--fit", "wrap", device="sim:demo"),
        replay("b", trace, "--fit", "wrap", device=small),
    )
    assert len(comparison.rows) == 1
    assert "different_replayed" in {each.code for each in comparison.conditions}


def test_gate_fails_without_common_experiments(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    api.run(FIRST, other, scale="quick", only=["order"])
    empty = uflip("compare", pair[0], other)
    assert empty.code == 0
    assert "verdict\n" not in empty.out, "no table without rows"
    outcome = uflip("compare", pair[0], other, "--fail-if-slower", "5%")
    assert outcome.code == 2
    assert "0 experiments in both" in outcome.err
    assert "do       measure both with the same options" in outcome.err
    # A pair without common experiments is an error unless another pair is slower.
    assert uflip("compare", pair[0], pair[0], other, "--fail-if-slower", "5%").code == 2
    assert uflip("compare", *pair, other, "--fail-if-slower", "5%").code == 7


def test_error_is_in_the_json_document(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """With --json standard output is always one document."""
    for second, share, code, kind in (
        (pair[1], "5%", 7, "slower"),
        (tmp_path / "other", "5%", 2, "usage"),
        (pair[0], "5%", 0, None),
    ):
        if not second.exists():
            api.run(FIRST, second, scale="quick", only=["order"])
        arguments = ("compare", pair[0], second, "--fail-if-slower", share)
        outcome = uflip(*arguments, "--json")
        document = json.loads(outcome.out)
        assert outcome.code == code
        assert not outcome.err
        assert len(document["comparisons"]) == 1
        assert set(document) == {"comparisons", "error"} if kind else {"comparisons"}
        if kind:
            assert (document["error"]["kind"], document["error"]["exit_code"]) == (kind, code)
            assert document["error"]["what"] in uflip(*arguments).err


def test_exit_code_reports_slower_experiments(pair: tuple[Path, Path]) -> None:
    assert uflip("compare", *pair, "--fail-if-slower", "60%").code == 0
    outcome = uflip("compare", *pair, "--fail-if-slower", "5%")
    assert outcome.code == 7
    assert "granularity SR io_size 512" in outcome.err
    assert uflip("compare", *reversed(pair), "--fail-if-slower", "5%").code == 0
    outcome = uflip("compare", *pair, "--fail-if-slower", "5%", "--json")
    assert outcome.code == 7


@pytest.fixture(scope="module")
def slightly_slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first of the pair with 3 µs more for each read: some 3 % of a read of one page."""
    folder = tmp_path_factory.mktemp("little") / "little"
    api.run(
        f"{FIRST}&command_read_ns=23000", folder, scale="quick",
        only=["granularity", "baseline"], repetitions=3,
    )  # fmt: skip
    return folder


def test_significantly_slower_within_agreement_fails_a_small_limit(
    pair: tuple[Path, Path], slightly_slower: Path
) -> None:
    comparison = api.compare(pair[0], slightly_slower)
    small = [row for row in comparison.rows if row.value == 512 and row.pattern in ("SR", "RR")]
    assert [row.verdict for row in small] == ["same", "same"]
    assert all(row.low is not None and row.low > 1.03 for row in small)
    slower = comparison.slower_than(0.01)
    assert set(small) <= set(slower)
    assert [row.ratio for row in slower] == sorted((row.ratio for row in slower), reverse=True)
    assert not comparison.slower_than(0.05)
    outcome = uflip("compare", pair[0], slightly_slower, "--fail-if-slower", "1%")
    assert outcome.code == 7
    assert "granularity RR io_size 512: x1.03" in outcome.err
    assert uflip("compare", pair[0], slightly_slower, "--fail-if-slower", "5%").code == 0


def test_repeatability_of_a_pattern_bounds_slower_verdicts(
    pair: tuple[Path, Path], slightly_slower: Path
) -> None:
    """A difference within the repeatability of a pattern is neither a verdict nor a failure."""
    for other in (pair[1], slightly_slower):
        comparison = api.compare(pair[0], other)
        write_repeatability = {
            row.repeats_to for row in comparison.rows if row.pattern in ("SW", "RW")
        }
        assert min(write_repeatability) > 1
        assert all(row.ratio > row.repeats_to for row in comparison.slower_than(0.0))
        assert all(row.ratio > row.repeats_to for row in comparison.rows if row.verdict == "slower")


def test_every_format_has_the_same_comparison(pair: tuple[Path, Path], tmp_path: Path) -> None:
    comparison = api.compare(*pair)
    documents = json.loads(uflip("compare", *pair, "--json").out)["comparisons"]
    assert [each["results"] for each in documents] == [[str(pair[0]), str(pair[1])]]
    assert documents[0]["rows"] == [asdict(row) for row in comparison.rows]
    table = tmp_path / "c.csv"
    assert uflip("compare", *pair, "-o", table).code == 0
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [float(row["ratio"]) for row in rows] == [row.ratio for row in comparison.rows]
    text = uflip("compare", *pair, "--all").out
    assert text.count("\n") > len(comparison.rows)
    page = tmp_path / "c.html"
    assert uflip("compare", pair[0], pair[1], pair[0], "-o", page).code == 0
    content = page.read_text()
    assert content.count("<section") == 4
    assert all(verdict.replace("_", " ") in content for verdict in VERDICTS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "two results"),
        (("one",), "two results"),
        (("here", "nowhere"), "no results here"),
        (("here", "here", "--fail-if-slower", "5"), "percentage"),
        (("here", "here", "--fail-if-slower", "-5%"), "percentage"),
        (("here", "here", "-o", "x.txt"), "format"),
        (("here", "here", "-o", "here/x.html"), "result"),
    ],
)
def test_bad_input_is_an_error(
    pair: tuple[Path, Path], workdir: Path, arguments: tuple[str, ...], words: str
) -> None:
    Path("here").symlink_to(pair[0])
    outcome = uflip("compare", *arguments)
    assert outcome.code in (2, 3, 5), outcome.err
    assert words in outcome.err
    assert not outcome.out


# Failing if any is slower

# Degrees of freedom of a known error.
UNLIMITED_DEGREES = 10**6


def draw_experiments(
    rng: np.random.Generator, true_ratios: list[float], error: float = 0.02
) -> list[ComparedExperiment]:
    """Draw an experiment for each true ratio, with means of 2 % standard error each."""
    rows = []
    for each in true_ratios:
        first, second = rng.normal([100.0, 100.0 * each], [100 * error, 100 * each * error])
        one, other = (mean * error * 1.959964 for mean in (100, 100 * each))
        low, high = ratio_interval(first, one, second, other) or (None, None)
        drawn_row = compared_row(
            second / first, low=low, high=high, first_half_ns=one, second_half_ns=other
        )
        drawn_row = replace(
            drawn_row, first_degrees=UNLIMITED_DEGREES, second_degrees=UNLIMITED_DEGREES
        )
        rows.append(replace(drawn_row, first_ns=first, second_ns=second))
    return rows


def test_equal_devices_seldom_fail_on_many_experiments() -> None:
    """Devices 5 % slower, as allowed; each interval is wrong once in forty times."""
    rng = np.random.default_rng(1)
    one_by_one = together = 0
    for _ in range(400):
        rows = draw_experiments(rng, [1.05] * 100)
        one_by_one += any(each.low is not None and each.low > 1.05 for each in rows)
        together += bool(slower_than(rows, 0.05))
    assert one_by_one / 400 > 0.8, "1 - 0.975^100 = 92 %"
    assert together / 400 < 0.05, "2.5 %"
    (slower,) = draw_experiments(rng, [2.0])
    assert slower_than([slower], 0.05) == [slower]


def test_one_slower_experiment_is_found_among_many() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        rows = draw_experiments(rng, [1.0] * 100 + [1.25])
        assert rows[-1] in slower_than(rows, 0.05)


@pytest.mark.parametrize("degrees", [1, 1.4, 2, 3.7, 4, 15, 200, 1e4])
@pytest.mark.parametrize("t", [-3.0, 0.0, 0.4, 1.7, 4.3, 51.0, 4e3])
def test_student_tail_matches_scipy(t: float, degrees: float) -> None:
    expected = stats.t.sf(t, degrees)
    assert student_tail(t, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-290)


def test_difference_chance_matches_welchs_test() -> None:
    """As computed by scipy for three repetitions each, with the variances of the experiment."""
    rng = np.random.default_rng(3)
    one, other = rng.normal(100, 3, 3), rng.normal(110, 5, 3)
    first, second = (
        Mean(x.mean(), stats.t.ppf(0.975, 2) * x.std(ddof=1) / np.sqrt(3), degrees=2)
        for x in (one, other)
    )
    spread = (second.error / first.error) ** 2
    expected = stats.ttest_ind(other, one, equal_var=False, alternative="greater").pvalue
    assert difference_chance(first, second, 1.0, spread) == pytest.approx(expected, rel=1e-6)
    # Where other experiments show that one side scatters much more, that side alone counts.
    one_sided = stats.t.sf((other.mean() - one.mean()) / np.hypot(first.error, second.error), 2)
    assert difference_chance(first, second, 1.0, 1e9) == pytest.approx(one_sided, rel=1e-6)


def test_device_compared_with_itself_seldom_fails() -> None:
    """One comparison in forty fails, over all distributions of scatter."""
    repeats = 10
    failed = sum(repeats * measure_self(case, 130, repeats).failed for case in FAILS_BY_CHANCE)
    assert failed <= stats.binom.ppf(0.99, repeats * len(FAILS_BY_CHANCE), 0.025)


def test_ratio_at_the_limit_passes() -> None:
    for percent in range(1, 60):
        ratio = 1 + percent / 100
        exact = compared_row(ratio, first_half_ns=0.0, second_half_ns=0.0, low=ratio, high=ratio)
        assert slower_than([exact], percent / 100) == []
        assert slower_than([exact], (percent - 0.001) / 100) == [exact]


def test_rows_without_a_verdict_do_not_fail() -> None:
    slower = compared_row(3.0, first_half_ns=0.0, second_half_ns=0.0)
    assert slower_than([slower], 0.1) == [slower]
    once = replace(slower, verdict="unknown", unknown_because="one_repetition")
    assert slower_than([once], 0.1) == []


# Measured windows


def experiment_of(begin: int, end: int, *, stops: bool = False, **changes: Any) -> Any:
    """Three repetitions that ignored the I/Os before `begin`, and made `end`."""
    runs = [{"run": f"{end}-{n}", "reasons": []} for n in range(3)]
    spec = {"stop": {"min_ios": 1024}} if stops else {}
    combined = {"mean_ns": 1e5, "half_width_ns": 1e3, "converged": True}
    fields = {"io_ignore": begin, "io_count": end, "spec": spec, "repetitions": runs}
    return fields | {"together": combined} | changes


@pytest.mark.parametrize(
    ("first", "second", "stops", "same"),
    [
        ((0, 1024), (0, 1024), False, True),
        ((128, 1152), (150, 1174), False, True),
        ((1350, 1620), (2304, 2574), False, False),  # a mix of mtron with two seeds
        ((0, 256), (0, 1024), False, False),  # two scales
        ((0, 1088), (0, 8000), True, True),  # the rule stopped later
        ((0, 1088), (2000, 8000), True, False),
    ],
)
def test_means_of_different_windows_have_no_verdict(
    first: tuple[int, int], second: tuple[int, int], stops: bool, same: bool
) -> None:
    both = experiment_of(*first, stops=stops), experiment_of(*second, stops=stops)
    for one, other in (both, both[::-1]):
        assert same_window(one, other) == same
        assert missing_verdict_reason(one, other) == (None if same else "different_window")


def test_run_inside_the_startup_has_no_verdict() -> None:
    clear, early = experiment_of(0, 1024), experiment_of(0, 1024)
    assert missing_verdict_reason(clear, early, {"1024-1"}) == "inside_startup"
    assert (
        missing_verdict_reason(clear, experiment_of(0, 1024, repetitions=[{}])) == "one_repetition"
    )


def test_plans_of_different_length_are_reported(workdir: Path) -> None:
    arguments = ("plan", FIRST, "--scale", "quick", "--only", "order", "--repetitions", "2")
    assert uflip(*arguments, "--out", "short.toml").code == 0
    text = Path("short.toml").read_text(encoding="utf-8")
    Path("long.toml").write_text(text.replace("io_count = 256", "io_count = 512"), encoding="utf-8")
    for name in ("short", "long"):
        outcome = uflip("run", FIRST, "--plan", f"{name}.toml", "--out", name, "-q")
        assert outcome.code == 0, outcome.err
    comparison = api.compare("short", "long")
    (condition,) = (each for each in comparison.conditions if each.code == "different_window")
    read_reasons = {row.unknown_because for row in comparison.rows if row.pattern == "SR"}
    assert read_reasons == {"different_window"}
    assert condition.numbers == {
        "experiments": 5, "of": 10, "example": "order SR incr -1",
        "first": [0, 256], "second": [0, 512],
    }  # fmt: skip
    assert condition.message in " ".join(uflip("compare", "short", "long").out.split())
    assert not api.compare("long", "long").conditions


@pytest.mark.parametrize(("percent", "fails", "passes"), [(10, "5%", "15%"), (20, "10%", "25%")])
def test_uniformly_slower_device_fails_the_limit(
    pair: tuple[Path, Path], tmp_path: Path, percent: int, fails: str, passes: str
) -> None:
    times = {
        "read_ns": 50_000, "program_ns": 300_000, "program_high_ns": 300_000,
        "erase_ns": 2_000_000, "command_read_ns": 20_000, "command_write_ns": 20_000,
    }  # fmt: skip
    rates = {"channel_bytes_per_s": 166_000_000, "link_bytes_per_s": 280_000_000}
    keys = {name: ns * (100 + percent) // 100 for name, ns in times.items()}
    keys |= {name: rate * 100 // (100 + percent) for name, rate in rates.items()}
    url = "&".join([FIRST, *(f"{name}={value}" for name, value in keys.items())])
    slow = tmp_path / "slow"
    api.run(url, slow, scale="quick", only=["granularity", "baseline"], repetitions=3)
    assert uflip("compare", pair[0], slow, "--fail-if-slower", fails).code == 7
    assert uflip("compare", pair[0], slow, "--fail-if-slower", passes).code == 0


def test_single_repetition_experiments_are_counted(pair: tuple[Path, Path], tmp_path: Path) -> None:
    once = tmp_path / "once"
    api.run(FIRST, once, scale="quick", only=["baseline"])
    document = json.loads(uflip("compare", pair[0], once, "--json").out)["comparisons"][0]
    (condition,) = (each for each in document["conditions"] if each["code"] == "one_repetition")
    assert condition["numbers"] == {"experiments": 4, "of": 4}
    assert {each["repetitions"] for each in document["rows"]} == {1}
    assert {each["verdict"] for each in document["rows"]} == {"unknown"}
    assert {each["unknown_because"] for each in document["rows"]} == {"one_repetition"}
    # Without any verdict, the check fails.
    outcome = uflip("compare", pair[1], once, "--fail-if-slower", "0%")
    assert outcome.code == 2
    assert "do       measure both with --repetitions 3 or more" in outcome.err
    assert condition["message"] in " ".join(uflip("compare", pair[0], once).out.split())


# The figure


def compared_row(ratio: float, verdict: str = "slower", **changes: Any) -> ComparedExperiment:
    fields = {"low": ratio * 0.9, "high": ratio * 1.1} | changes
    fields |= {"verdict": verdict, "p50_ratio": None, "p99_ratio": None, "repeats_to": 1.0}
    fields |= {"first_half_ns": 1.0, "second_half_ns": 1.0, "repetitions": 3}
    fields |= {"first_degrees": 2, "second_degrees": 2, "unknown_because": None} | changes
    return ComparedExperiment(
        "order", "SW", "incr", int(ratio * 100), "", 100.0, 100 * ratio, ratio, **fields
    )


def test_figure_has_the_largest_differences_first() -> None:
    rows = [
        compared_row(1.5),
        compared_row(9.0, "not_apart"),
        compared_row(0.25, "faster"),
        compared_row(1.0, "same"),
        compared_row(3.0),
    ]
    # A quarter is a factor of 4; uncertain differences come last.
    assert [each.ratio for each in ratios.largest(rows)] == [0.25, 3.0, 1.5, 9.0, 1.0]
    assert [each.ratio for each in ratios.largest(rows, 2)] == [0.25, 3.0]


def test_comparison_figure_shows_its_rows(pair: tuple[Path, Path]) -> None:
    comparison = api.compare(*pair)
    axis = comparison.plot()
    rows = ratios.largest(comparison.rows)
    assert len(axis.get_yticklabels()) == len(rows) > 10
    upper, lower = axis.get_ylim()
    assert upper > lower, "the first row is on top"
    # A mark for each row at its ratio, and none outside of the axis.
    marks = [line for line in axis.get_lines() if len(line.get_xdata()) == 1]
    at = {float(line.get_ydata()[0]): float(line.get_xdata()[0]) for line in marks
          if line.get_marker() not in "<>"}  # fmt: skip
    assert at == {position: pytest.approx(each.ratio) for position, each in enumerate(rows)}
    low, high = axis.get_xlim()
    assert all(low <= each.ratio <= high for each in rows)


@pytest.mark.parametrize(
    "wide",
    [
        compared_row(2.0, low=-5.0, high=1e9),
        compared_row(2.0, low=None, high=None),
        compared_row(1e6),
        compared_row(1e-6),
    ],
)
def test_any_interval_width_can_be_drawn(wide: ComparedExperiment) -> None:
    drawing = ratios.draw([wide, compared_row(1.1)], "wide")
    assert not re.search(r"inf|nan", render("blocks/drawing.html", drawing=drawing))


def test_comparison_page_has_the_figure(pair: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "c.html"
    assert uflip("compare", *pair, "-o", page).code == 0
    text = page.read_text()
    assert text.count('id="figure-ratios-1"') == 1
    assert "mean of the second over mean of the first" in text


def test_comparison_and_report_do_not_overwrite_each_other(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    first, second = map(str, pair)
    page, report = tmp_path / "c.html", tmp_path / "r.html"
    compare = ("compare", first, second, "--out")
    assert uflip(*compare, str(page)).code == 0
    assert uflip("report", first, "-o", str(report)).code == 0
    written = page.read_bytes(), report.read_bytes()
    assert uflip("report", first, "-o", str(page)).code == 3
    assert uflip(*compare, str(report)).code == 3
    assert (page.read_bytes(), report.read_bytes()) == written
    assert uflip(*compare, str(page)).code == 0, "a comparison replaces itself"


# Differences in words, as Markdown and as one figure


def test_sentences_name_exactly_the_differences(pair: tuple[Path, Path]) -> None:
    comparison = api.compare(*pair)
    found = sentences(comparison, ("first", "second"))
    slower = [row for row in comparison.rows if row.verdict == "slower"]
    assert "faster" not in {row.verdict for row in comparison.rows}
    granularity = next(each for each in found if each.startswith("Granularity: second takes "))
    rows = [row for row in slower if (row.micro_benchmark, row.pattern) == ("granularity", "RR")]
    low, high = (f"{end(row.ratio for row in rows):.2f}" for end in (min, max))
    assert f"{low} to {high} times as long for random reads" in granularity
    assert len(found) == len({row.micro_benchmark for row in slower})
    assert sentences(api.compare(pair[0], pair[0]), ("first", "first")) == []


def test_single_runs_get_sentences_without_a_verdict(pair: tuple[Path, Path]) -> None:
    comparison = api.compare(*pair)
    single = replace(comparison.rows[0], verdict="unknown", unknown_because="one_repetition")
    faster = replace(single, ratio=0.25, low=0.24, high=0.26, pattern="SW")
    near = replace(single, ratio=1.2, low=1.1, high=1.24, pattern="RW")
    (sentence,) = sentences(replace(comparison, rows=(faster, near)), ("a", "b"))
    assert sentence == (
        "Baseline: b is 4.00 times as fast for sequential writes (single runs, no verdict)."
    )


@pytest.mark.parametrize(("ratio", "words"), [(0.0012, "833"), (0.03, "33.3"), (0.4, "2.50")])
def test_factors_of_a_faster_result_have_digits(
    pair: tuple[Path, Path], ratio: float, words: str
) -> None:
    comparison = api.compare(*pair)
    row = replace(comparison.rows[0], ratio=ratio, low=ratio, high=ratio, verdict="faster")
    (sentence,) = sentences(replace(comparison, rows=(row,)), ("a", "b"))
    assert f"b is {words} times as fast" in sentence


@pytest.mark.parametrize(("columns", "lost"), [(300, ()), (100, ("p99", "p50")), (80, OPTIONAL)])
def test_comparison_fits_the_terminal(
    pair: tuple[Path, Path], columns: int, lost: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = lines_of(api.compare(*pair), ("first", "second"), every=True)
    assert max(map(len, lines)) <= columns
    (head,) = (line for line in lines if line.startswith("micro-benchmark"))
    assert [name for name in HEAD if name not in head] == [n for n in HEAD if n in lost]


def test_markdown_and_figure_of_three_results(pair: tuple[Path, Path], workdir: Path) -> None:
    results = (*pair, pair[0])
    outcome = uflip("compare", *results, "-o", "out.md")
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "out.md")
    text = Path("out.md").read_text()
    assert text.count("### ") == 2
    rows = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert set(rows) == {11}
    assert all(f"- {each}" in text for each in sentences(api.compare(*pair), pair))
    for name in ("out.svg", "out.png", "out.pdf"):
        assert uflip("compare", *results, "-o", name).code == 0
        assert Path(name).stat().st_size > 10_000


def test_figure_has_a_line_per_result(pair: tuple[Path, Path]) -> None:
    summaries = [summary(Results.load(folder)) for folder in pair]
    chart = side_by_side.chart(summaries, ["first", "second"])
    assert chart is not None
    assert [mark.label for mark in chart.legend] == ["first", "second"]
    titles = [panel.title for panel in chart.panels]
    assert titles == [f"Granularity, {pattern}" for pattern in ("SR", "RR", "SW", "RW")]
    for document, mark in zip(summaries, chart.panels[1].marks, strict=True):
        runs = document["micro_benchmarks"]["granularity"]
        means = {
            run["value"]: run["statistics"]["mean_ns"] for run in runs if run["pattern"] == "RR"
        }
        assert [1e6 * y for y in mark.y] == pytest.approx([means[value] for value in sorted(means)])
    other = [{**document, "micro_benchmarks": {}} for document in summaries]
    assert side_by_side.chart([summaries[0], other[1]], ["first", "second"]) is None


def test_thumbnails_name_each_line_once(tmp_path: Path) -> None:
    api.run(FIRST, tmp_path / "r", scale="quick", only=["order", "mix"])
    chart = side_by_side.thumbnails(summary(Results.load(tmp_path / "r")))
    assert chart is not None
    named = {(each.color, each.marker): each.label for each in chart.legend}
    mixes = [f"{one}/{other}" for one, other in itertools.combinations(("SR", "RR", "SW", "RW"), 2)]
    assert list(named.values()) == ["SR", "SW", *mixes]
    drawn = [each for panel in chart.panels for each in panel.marks]
    assert len(drawn) == 2 + len(mixes)
    assert {(each.color, each.marker) for each in drawn} == set(named)
