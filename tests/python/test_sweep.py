"""Is a sweep every combination, each equal to a single run, in order, on all cores?"""

import csv
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip

from uflip.data.spec import PLURALS, text_of
from uflip.device.opener import open_device
from uflip.device.resolve import resolve
from uflip.errors import UsageError
from uflip.executors import Threads, using
from uflip.report.figures import design_space
from uflip.report.figures.design_space import draw_points
from uflip.spec import Spec, baseline, basic, changed, mix, parallel
from uflip.stats import summarise
from uflip.sweeping import SweepRow, points, sweep
from uflip.sweeping.data_set import read_data_set
from uflip.sweeping.ranking import best, measures

URL = "sim:demo?blocks_per_die=64"
VARY = {"spare_factor": [0.15, 0.3], "gc": ["greedy", "d_choices:5"], "queue_depth": [1, 8]}
WRITES = baseline("RW", io_size="4k", io_count=2000)


# Points


def test_points_are_all_combinations_in_order() -> None:
    swept = points(URL, WRITES, VARY)
    expected = [
        dict(zip(VARY, values, strict=True)) for values in itertools.product(*VARY.values())
    ]
    assert [point.values for point in swept] == expected
    assert swept[5].url == URL + "&spare_factor=0.3&gc=greedy"
    assert swept[5].spec.queue_depth == 8


@pytest.mark.parametrize(
    ("spec", "name", "value", "changes"),
    [
        (baseline("SR"), "pattern", "RW", {"mode": "write", "location": "random"}),
        (baseline("SR"), "io_size", "4KiB", {"io_size": 4096}),
        (mix(baseline("SR"), baseline("RW"), 3), "ratio", 5, {"ratio": 5}),
        (mix(baseline("SR"), baseline("RW"), 3), "queue_depth", "2", {"queue_depth": 2}),
    ],
)
def test_pattern_parameter_can_vary(
    spec: Spec, name: str, value: Any, changes: dict[str, Any]
) -> None:
    assert changed(spec, name, value) == spec.but(**changes)


def test_change_applies_to_every_part_of_pattern() -> None:
    combined = parallel(mix(baseline("SR"), baseline("RW"), 3), baseline("RR"))
    complete = resolve(
        changed(combined, "io_size", 8192), open_device("sim:demo?state=empty").info
    ).spec
    first, second = complete.patterns
    sizes = [part.io_size for part in (first.first, first.second, second)]
    assert sizes == [8192] * 3


@pytest.mark.parametrize(
    ("url", "vary", "message"),
    [
        ("null", {"io_size": [512]}, "Only simulated devices"),
        (URL, {"spare_fator": [0.1]}, "spare_factor"),
        (URL, {"gc": ["greedy", "gredy"]}, "greedy_window"),
        (URL, {"spare_factor": [0.3, 0.99999]}, "no capacity for the host"),
        (URL, {"queue_depth": [1, 0]}, "queue_depth"),
        (URL, {"pattern": ["SQ"]}, "RW"),
        (URL, {"gc": []}, "Nothing varies"),
        (URL, {"durability": ["cached", "sync"]}, "flush:N"),
    ],
)
def test_impossible_point_is_found_before_any_device_is_made(
    url: str, vary: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "uflip.sweeping.measure_point.open_device", lambda *_, **__: pytest.fail("it has begun")
    )
    with pytest.raises(UsageError) as raised:
        sweep(url, WRITES, vary)
    assert message in str(raised.value)


def test_untimed_sweep_refuses_durability() -> None:
    with pytest.raises(UsageError, match="cannot be combined with"):
        sweep(URL, WRITES, {"durability": ["cached", "fua"]}, timed=False)


def test_warm_up_needs_a_writing_pattern() -> None:
    with pytest.raises(UsageError, match="needs a pattern that writes data"):
        sweep(URL, baseline("RR"), {"queue_depth": [1]}, warm_up=1)
    with pytest.raises(UsageError, match="needs a pattern that writes data"):
        sweep(URL, basic("trim", "random"), {"queue_depth": [1]}, warm_up=1)


# Rows


def test_durability_can_vary() -> None:
    url = URL + "&write_cache_bytes=64k"
    rows = sweep(url, WRITES, {"durability": ["cached", "fua", "flush:8"]})
    assert [row.durability for row in rows] == ["cached", "fua", "flush:8"]
    for row in rows:
        with open_device(url, durability=row.durability) as device:
            single = summarise(device.run(WRITES).column("response_time_ns"))
        assert row.writes == single
    assert len({row.writes["mean_ns"] for row in rows if row.writes}) == 3
    (same,) = sweep(url, WRITES, {"queue_depth": [1]}, durability="fua")
    assert (same.durability, same.writes) == ("fua", rows[1].writes)


def test_row_equals_a_single_run() -> None:
    rows = sweep(URL, WRITES, VARY, warm_up=0.5)
    assert [row.values for row in rows] == [point.values for point in points(URL, WRITES, VARY)]
    row = rows[6]
    with open_device(f"{URL}&spare_factor=0.3&gc=d_choices:5") as device:
        capacity = device.info.capacity_bytes
        pages = round(capacity / 2 / 4096)
        device.apply(basic("write", "random", io_size=4096, io_count=pages, seed=2010))
        trace = device.run(WRITES)
    counters = json.loads(trace.counters_json() or "")
    assert row.counters == counters
    assert row.writes == summarise(trace.column("response_time_ns"))
    assert row.elapsed_ns == trace.elapsed_ns()
    assert row.ios_per_s == pytest.approx(2000e9 / trace.elapsed_ns())
    assert row.bytes_per_s == pytest.approx(4096 * 2000e9 / trace.elapsed_ns())
    programmed, moved = counters["pages_programmed"], counters["pages_relocated"]
    assert row.write_amplification == pytest.approx(programmed / 2000)
    assert row.relocated_pages_per_block == pytest.approx(moved / counters["blocks_collected"])


def test_appends_count_as_writes() -> None:
    # Zones relocate nothing: whole flash pages are programmed once, whatever brings them.
    for mode, timed in itertools.product(("write", "append"), (True, False)):
        spec = basic(mode, "sequential", io_size="64k", io_count=128)
        (row,) = sweep("sim:zns", spec, {"stripe_pages": [1]}, timed=timed)
        assert row.write_amplification == 1.0


def test_rows_do_not_depend_on_parallelism() -> None:
    steps: list[tuple[int, str]] = []
    with using(Threads(1)):
        serial = sweep(URL, WRITES, VARY, on_step=lambda *step: steps.append(step))
    with using(Threads(4)):
        assert sweep(URL, WRITES, VARY) == serial
    assert [done for done, _ in steps] == list(range(1, 9))
    assert steps[1][1] == "spare_factor=0.15 gc=greedy queue_depth=8"


def test_untimed_sweep_counts_the_same() -> None:
    timed = sweep(URL, WRITES, {"gc": ["greedy"]})
    (untimed,) = sweep(URL, WRITES, {"gc": ["greedy"]}, timed=False)
    assert (untimed.reads, untimed.writes) == (None, None)
    assert untimed.elapsed_ns is None
    assert untimed.ios == timed[0].ios
    assert untimed.counters["host_pages_written"] == timed[0].counters["host_pages_written"]
    assert untimed.write_amplification == pytest.approx(timed[0].write_amplification, rel=0.1)


def test_ignored_ios_are_excluded_from_statistics() -> None:
    (row,) = sweep(URL, WRITES.but(io_ignore=500), {"gc": ["greedy"]})
    assert (row.ios, (row.writes or {})["count"]) == (2000, 1500)


MIX = mix(baseline("RR", io_size="4k"), baseline("RW", io_size="4k"), 3, io_count=1200)


def test_reads_and_writes_of_a_mix_are_separate() -> None:
    (row,) = sweep(URL, MIX, {"gc": ["greedy"]})
    with open_device(f"{URL}&gc=greedy") as device:
        trace = device.run(MIX)
    times, modes = trace.column("response_time_ns"), np.asarray(trace.column("mode"))
    for statistics, mode in ((row.reads, 0), (row.writes, 1)):
        assert statistics == summarise(np.asarray(times)[modes == mode])
    assert (row.reads or {})["count"] == 3 * (row.writes or {})["count"]


ZONE = 96 << 20
ZONED = {
    mode: basic(mode, "sequential", io_size=size, io_count=24, target_size=24 * size)
    for mode, size in (("append", 64 << 10), ("reset", ZONE), ("finish", ZONE), ("open", ZONE))
}


@pytest.mark.parametrize(
    ("url", "spec", "kinds"),
    [
        *(("sim:zns?stripe_pages=1", spec, [mode]) for mode, spec in ZONED.items()),
        (URL, basic("trim", "random", io_count=100), ["trim"]),
        (URL, mix(basic("trim", "random"), baseline("RR"), 2, io_count=100), ["read", "trim"]),
        (URL, MIX, ["read", "write"]),
    ],
)
def test_row_equals_single_run_for_every_mode(
    url: str, spec: Spec, kinds: list[str], workdir: Path
) -> None:
    """The same numbers, whatever is done to the device, and those of each kind apart."""
    plain, _, override = url.partition("?")
    name, value = override.split("=")
    (row,) = sweep(plain, spec, {name: [value]}, data=workdir / "rows")
    Path("spec.json").write_text(text_of(spec), encoding="utf-8")
    single = json.loads(uflip("pattern", url, "--spec", "spec.json", "--json").out)
    assert row.statistics == single["statistics"]
    assert (row.ios_per_s, row.bytes_per_s) == (single["ios_per_s"], single["bytes_per_s"])
    assert [*row.times] == kinds
    assert sum(times["count"] or 0 for times in row.times.values()) == row.ios == single["ios"]
    if "components" in single:
        means = [single["components"][part]["mean_ns"] for part in ("first", "second")]
        assert sorted(times["mean_ns"] or 0 for times in row.times.values()) == sorted(means)
        assert {f"{kind}_mean" for kind in kinds} < set(measures(spec))
        assert "mean" not in measures(spec)
    else:
        assert row.times[kinds[0]] == row.statistics
        assert best([row], "mean") == row
    assert read_data_set(workdir / "rows")[1] == {0: row}, "the stored row is the measured one"
    named = ("sweep", plain, "--vary", f"{name}={value}", "--spec", "spec.json")
    printed = uflip(*named, "--csv", "rows.csv", "-o", "rows.svg")
    assert printed.code == 0, printed.err
    assert "IOPS" in printed.out
    assert all(f"{PLURALS[kind]} mean" in printed.out for kind in kinds if len(kinds) > 1)
    with Path("rows.csv").open(encoding="utf-8") as lines:
        (line,) = csv.DictReader(lines)
    assert float(line["all_mean_ns"]) == single["statistics"]["mean_ns"]
    assert {float(line[f"{kind}_mean_ns"]) for kind in kinds} == {
        times["mean_ns"] for times in row.times.values()
    }


# Which is best


@pytest.mark.parametrize(("spec", "prefix"), [(WRITES, ""), (MIX, "read_"), (MIX, "write_")])
def test_best_point_is_the_minimum_of_its_column(spec: Spec, prefix: str) -> None:
    rows = sweep(URL, spec, {"queue_depth": [1, 4, 16], "spare_factor": [0.15, 0.3]})
    field = "reads" if prefix == "read_" else "writes"
    for name in ("mean", "p50", "p99", "max"):
        values = [getattr(row, field)[f"{name}_ns"] for row in rows]
        present = [value for value in values if value is not None]
        winner = best(rows, prefix + name)
        assert winner is not None
        assert getattr(winner, field)[f"{name}_ns"] == min(present)
    fastest = best(rows, "iops")
    assert fastest is not None
    assert fastest.ios_per_s == max(row.ios_per_s or 0 for row in rows)
    assert set(measures(spec)) >= {prefix + "p99", "iops", "write_amplification"}


def test_column_with_too_few_ios_is_not_ranked() -> None:
    rows = sweep(URL, baseline("RR", io_count=50), {"queue_depth": [1, 4]})
    assert best(rows, "p99") is None
    assert best(rows, "p50") is not None


def test_best_point_is_printed(workdir: Path) -> None:
    outcome = uflip("sweep", URL, *ARGUMENTS, "--best", "p50")
    document = json.loads(uflip("sweep", URL, *ARGUMENTS, "--best", "p50", "--json").out)
    values = document["best"]["values"]
    rows = document["rows"]
    assert document["best"]["value"] == min(row["writes"]["p50_ns"] for row in rows)
    assert f"best p50: gc={values['gc']} io_size={values['io_size']}, " in outcome.out
    for options, allowed in (
        (["--best", "p42"], "p99"),
        (["--best", "p99", "--untimed"], "write_amplification"),
        (["--best", "p99", "--mix", "RR", "--ratio", "2"], "read_p99"),
    ):
        outcome = uflip("sweep", URL, *ARGUMENTS, *options)
        assert (outcome.code, allowed in outcome.err) == (2, True), outcome.err


def test_legend_stays_inside_figure(workdir: Path) -> None:
    from matplotlib.figure import Figure

    figures: list[Figure] = []
    times = {"mean_ns": 5e6, "p99_ns": 9e6}
    rows = [
        SweepRow(
            values={"queue_depth": depth, "die_queue": queue, "allocator": allocator},
            device="sim:demo", durability="cached", spare_bytes=None, memory_bytes=None, ios=1,
            elapsed_ns=None, ios_per_s=5.0, bytes_per_s=None, reads=None, writes=times,
            write_amplification=None, relocated_pages_per_block=None, counters={},
        )
        for depth in (1, 2)
        for queue in ("fifo", "collection_first", "reads_first")
        for allocator in ("round_robin", "most_free")
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design_space, "save", lambda figure, *_, **__: figures.append(figure))
        draw_points(rows, "sim:demo", workdir / "x.svg")
    (figure,) = figures
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box, whole = legend.get_window_extent(), figure.bbox
    assert len(legend.get_texts()) == 6
    assert whole.x0 <= box.x0
    assert box.x1 <= whole.x1
    assert whole.y0 <= box.y0


# On the command line

ARGUMENTS = ("--vary", "gc=greedy,cyclic", "--vary", "io_size=4k,16KiB", "--pattern", "RW")


def test_rows_are_printed_written_and_drawn(workdir: Path) -> None:
    outcome = uflip("sweep", URL, *ARGUMENTS, "--csv", "rows.csv", "-o", "rows.svg")
    assert outcome.code == 0, outcome.err
    head, *lines = outcome.out.splitlines()
    assert head.split()[:2] == ["gc", "io_size"]
    assert [line.split()[:2] for line in lines] == [
        ["greedy", "4k"], ["greedy", "16KiB"], ["cyclic", "4k"], ["cyclic", "16KiB"],
    ]  # fmt: skip
    document = json.loads(uflip("sweep", URL, *ARGUMENTS, "--json").out)
    assert document["vary"] == {"gc": ["greedy", "cyclic"], "io_size": ["4k", "16KiB"]}
    with (workdir / "rows.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    for row, line in zip(document["rows"], table, strict=True):
        assert line["gc"] == row["values"]["gc"]
        assert float(line["write_mean_ns"]) == row["writes"]["mean_ns"]
        assert line["read_mean_ns"] == ""
        assert int(line["blocks_erased"]) == row["counters"]["blocks_erased"]
    figure = (workdir / "rows.svg").read_bytes()
    assert uflip("sweep", URL, *ARGUMENTS, "-o", "rows.svg").code == 0
    assert (workdir / "rows.svg").read_bytes() == figure, "the same data, the same figure"


@pytest.mark.parametrize(
    ("vary", "extra"),
    [
        ("ratio=1,2", ("--ratio", 1)),
        ("first_percent=20,50", ("--first-percent", 20)),
        ("ratio=1..3", ("--ratio", 1)),
    ],
)
def test_varied_mix_order_needs_no_option(vary: str, extra: tuple[object, ...]) -> None:
    command = ("sweep", URL, "--pattern", "RR", "--mix", "RW", "--io-count", 50, "--json")
    if ".." in vary:
        command += ("--sample", "lhs:2")
    varied = uflip(*command, "--vary", vary)
    assert varied.code == 0, varied.err
    rows = json.loads(varied.out)["rows"]
    assert rows == json.loads(uflip(*command, "--vary", vary, *extra).out)["rows"]
    name = vary.partition("=")[0]
    for row in rows:
        single = uflip(
            "pattern", row["device"], "--pattern", "RR", "--mix", "RW", "--io-count", 50,
            f"--{name.replace('_', '-')}", row["values"][name], "--json",
        )  # fmt: skip
        assert row["statistics"] == json.loads(single.out)["statistics"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--vary", "ratio=1,2"), "--mix"),
        (("--mix", "RW", "--vary", "ratio=x,2"), "ratio"),
        (("--mix", "RW", "--vary", "ratio=1,2", "--vary", "first_percent=20,50"), "first_percent"),
    ],
)
def test_invalid_mix_orders_are_refused(options: tuple[str, ...], message: str) -> None:
    outcome = uflip("sweep", URL, "--pattern", "RR", "--io-count", 50, *options)
    assert (outcome.code, message in outcome.err) == (2, True), outcome.err


def test_varied_pattern_needs_no_option() -> None:
    command = ("sweep", "sim:demo?blocks_per_die=64", "--io-count", 30, "--json")
    varied = uflip(*command, "--vary", "pattern=SR,RR,SW,RW")
    assert varied.code == 0, varied.err
    with_option = uflip(*command, "--vary", "pattern=SR,RR,SW,RW", "--pattern", "SR")
    assert json.loads(varied.out)["rows"] == json.loads(with_option.out)["rows"]
    modes = uflip(*command, "--vary", "mode=read,write", "--location", "random")
    rows = [json.loads(done.out)["rows"] for done in (modes, varied)]
    assert [row["elapsed_ns"] for row in rows[0]] == [rows[1][n]["elapsed_ns"] for n in (1, 3)]
    for wrong in (("--vary", "mode=read,write"), ("--vary", "pattern=SR,RR", "--mode", "read")):
        assert uflip(*command, *wrong).code == 2, wrong


def test_untimed_sweep_prints_no_times(workdir: Path) -> None:
    outcome = uflip("sweep", URL, *ARGUMENTS, "--untimed", "-o", "wa.png")
    assert outcome.code == 0
    assert "p99" not in outcome.out
    assert "write amplification" in outcome.out
    assert (workdir / "wa.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--vary", "gc"], 2, ["NAME=V1,V2"]),
        (["--vary", "gc="], 2, ["NAME=V1,V2"]),
        (["--vary", "gc=greedy", "--vary", "gc=cyclic"], 2, ["varied twice"]),
        (["--vary", "gc=greedy", "-o", "x.gif"], 2, [".png"]),
        (["--vary", "gc=greedy", "--csv", "x.txt"], 2, ["FILE.csv"]),
        (["--vary", "gc=greedy", "--csv", "there.csv"], 3, ["there.csv", "--force"]),
        (["--vary", "chanels=1"], 2, ["chanels", "did you mean channels"]),
        (["--vary", "spare=0.1..0.3"], 2, ["where    spare", "did you mean spare_factor"]),
        (["--vary", "io_sze=4k"], 2, ["where    io_sze", "durability", "did you mean io_size"]),
    ],
)
def test_invalid_arguments_are_refused_before_any_work(
    workdir: Path,
    arguments: list[str],
    code: int,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (workdir / "there.csv").write_text("mine")
    monkeypatch.setattr(
        "uflip.sweeping.measure_point.open_device", lambda *_: pytest.fail("it has begun")
    )
    outcome = uflip("sweep", URL, *arguments, "--pattern", "RW")
    assert outcome.code == code
    assert all(word in outcome.err for word in words), outcome.err
    assert (workdir / "there.csv").read_text() == "mine"
