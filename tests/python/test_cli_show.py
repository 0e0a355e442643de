"""The verbs that show results: their output and their errors."""

import csv
import io
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import stored
from command_line import start, uflip, unchanged

from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.results import Results
from uflip.results.time_rows import COLUMNS, time_rows
from uflip.spec import baseline


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored.results(tmp_path / "demo", [*stored.FOUR, stored.mix_run(5, "SR", "RR", 2)])
    return tmp_path / "demo"


def test_show_prints_the_summary_and_changes_nothing(folder: Path) -> None:
    with unchanged(folder.parent):
        compact, full = uflip("show", folder), uflip("show", folder, "--full")
    assert (compact.code, compact.err) == (0, "")
    assert compact.out.startswith("demo, ")
    assert "SIMULATED" in compact.out
    assert "SR/RR" in compact.out
    assert full.code == 0


def test_runs_omitted_by_a_limit_are_not_blamed_on_the_device(workdir: Path) -> None:
    options = ("--scale", "quick", "--only", "order", "--max-bytes-written", "4MiB", "--out", "r")
    assert uflip("run", "sim:demo?blocks_per_die=64", *options, "-q").code == 0
    assert uflip("report", "r", "-o", "r.html").code == 0
    text, page = uflip("show", "r").out, Path("r.html").read_text(encoding="utf-8")
    assert "the plan may write 4 MiB at most" in " ".join(text.split())
    for output in (text, page):
        assert "left out of the plan" in output
        assert "this device cannot" not in output.lower()


def test_show_json_has_the_documented_keys(folder: Path) -> None:
    outcome = uflip("show", folder, "--json")
    assert outcome.code == 0
    document = json.loads(outcome.out)
    assert {"device", "baselines_ms", "micro_benchmarks", "warnings", "skipped", "status", "scale",
            "seed", "harness", "host", "format_version"} <= set(document)  # fmt: skip
    assert set(document["baselines_ms"]) == {"SR", "RR", "SW", "RW"}
    (experiment,) = document["micro_benchmarks"]["mix"]
    assert (experiment["pattern"], experiment["parameter"], experiment["value"]) == (
        "SR/RR", "ratio", 2,
    )  # fmt: skip
    assert experiment["statistics"]["mean_ns"] > 0


def test_report_writes_one_file(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    outcome = uflip("report", folder, "-o", out)
    assert outcome.code == 0, outcome.err
    assert str(out) in outcome.out
    first = out.read_bytes()
    again = uflip("report", folder, "-o", out, "--json")
    assert json.loads(again.out) == {"report": str(out), "size_bytes": len(first), "runs": 5}
    assert out.read_bytes() == first
    assert uflip("report", folder, "-o", out, "--quiet").out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo", "report.html"]


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_export_creates_a_folder_next_to_the_results(folder: Path, file_format: str) -> None:
    outcome = uflip("export", folder, "--format", file_format, "--json")
    assert outcome.code == 0, outcome.err
    made = json.loads(outcome.out)
    assert made["folder"] == f"{folder}-{file_format}"
    assert sorted(path.name for path in Path(made["folder"]).iterdir()) == made["files"]
    with unchanged(folder.parent):
        again = uflip("export", folder, "--format", file_format)
    assert again.code == 5


@pytest.mark.parametrize("verb", ["show", "report", "export"])
def test_folder_without_results_exits_with_5(verb: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with unchanged(tmp_path):
        for name in ("nowhere", "empty"):
            outcome = uflip(verb, tmp_path / name)
            assert (outcome.code, outcome.out) == (5, "")
            assert str(tmp_path / name) in outcome.err
            assert "uflip run" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "output_name"),
    [
        (("show",), ""),
        (("report", "-o", "page.html"), "page.html"),
        (("export", "--out", "tables"), "tables/summary.csv"),
    ],
)
def test_truncated_run_file_is_named_and_others_are_shown(
    arguments: tuple[str, ...], output_name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    path = next((folder / "runs").glob("0002*"))
    path.write_bytes(path.read_bytes()[:-20])
    with unchanged(folder):
        outcome = uflip(arguments[0], folder, *arguments[1:], "--json")
    assert outcome.code == 0, outcome.err
    output = (folder.parent / output_name).read_text() if output_name else outcome.out
    others = [run.stem for run in (folder / "runs").iterdir() if run != path]
    assert all(run in output for run in others) or arguments[0] == "report"
    assert (path.name in output) == (arguments[0] != "export")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("export", "--format", "xlsx"), "csv, parquet"),
        (("report", "-o", "."), "a folder"),
        (("report", "-o", "nowhere/report.html"), "does not exist"),
        (("show", "--nonsense"), "nonsense"),
    ],
)
def test_invalid_options_exit_with_2(
    folder: Path, arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    with unchanged(folder.parent):
        outcome = uflip(arguments[0], folder, *arguments[1:])
    assert outcome.code == 2
    assert words in outcome.err


def test_results_argument_is_required() -> None:
    for verb in ("show", "report", "export"):
        assert uflip(verb).code == 2


@pytest.mark.parametrize(("library", "refused"), [("jinja2", "report"), ("matplotlib", "figure")])
def test_missing_library_fails_only_its_verb(folder: Path, library: str, refused: str) -> None:
    verbs = {
        "show": ("show", folder),
        "report": ("report", folder, "-o", folder.parent / "out.html"),
        "figure": ("figure", folder, "traces", "-o", folder.parent / "out.svg"),
    }
    without = (
        f"import sys; sys.modules[{library!r}] = None; from uflip.cli.main import main; main()"
    )
    for verb, arguments in verbs.items():
        command = [sys.executable, "-c", without, *map(str, arguments)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        assert process.returncode == (6 if verb == refused else 0), process.stderr
        if verb == refused:
            assert library in process.stderr
            assert "pip install" in process.stderr
    suffixes = {path.suffix for path in folder.parent.glob("out.*")}
    assert suffixes == {".html", ".svg"} - {".html" if refused == "report" else ".svg"}


def test_show_imports_no_heavy_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with start("show", folder) as process:
        _, imports = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "uflip.results" in imports
    assert not re.search(r"\b(matplotlib|rich|pyarrow|pandas|scipy)\b", imports)


# Runs over time: against a plain count, and against the whole run.


DEVICE = "sim:demo?blocks_per_die=64"


@pytest.mark.parametrize("interval_ns", [100_000, 1_000_000, 7_777_777])
@pytest.mark.parametrize("depth", [1, 8])
def test_rows_match_a_plain_count(interval_ns: int, depth: int) -> None:
    with open_device(DEVICE) as device:
        trace = device.run(baseline("RW", io_count=400, queue_depth=depth, io_size=16384))
    begins, took, sizes = (
        [int(each) for each in np.asarray(trace.column(name))]
        for name in ("submit_ns", "response_time_ns", "io_size_bytes")
    )
    begins = [each - min(begins) for each in begins]
    ios = list(zip(begins, took, sizes, strict=True))
    rows = time_rows(trace, interval_ns)
    last = max(begin + time for begin, time, _ in ios)
    assert sum(row.length_ns for row in rows) == last
    for row in rows:
        low, high = row.start_ns, row.start_ns + row.length_ns
        ended = [io for io in ios if low < io[0] + io[1] <= high]
        assert (row.ios, row.bytes) == (len(ended), sum(size for *_, size in ended))
        overlap = sum(max(0, min(begin + time, high) - max(begin, low)) for begin, time, _ in ios)
        assert row.in_flight == pytest.approx(overlap / row.length_ns)
        assert row.in_flight <= depth + 1e-9
        assert row.ios_per_s == pytest.approx(len(ended) * 1e9 / row.length_ns)
        expected = np.percentile([time for _, time, _ in ended], 99) if ended else None
        assert row.p99_ns == pytest.approx(expected)
    assert sum(row.ios for row in rows) == 400
    with pytest.raises(UsageError, match="too short"):
        time_rows(trace, 1)


def test_show_prints_text_csv_and_json(tmp_path: Path) -> None:
    out = tmp_path / "out"
    pattern = ("--pattern", "RW", "--io-count", "300", "--inside", out, "-q")
    outcome = uflip("pattern", DEVICE, *pattern)
    assert outcome.code == 0, outcome.err
    document = json.loads(uflip("show", out, "--every", "5ms", "--json").out)
    (run,) = document["runs"]
    assert sum(row["ios"] for row in run["rows"]) == 300
    table = list(csv.DictReader(io.StringIO(uflip("show", out, "--every", "5ms", "--csv").out)))
    assert list(table[0]) == ["run", *COLUMNS]
    assert [int(row["ios"]) for row in table] == [row["ios"] for row in run["rows"]]
    assert {row["run"] for row in table} == {run["run"]}
    text = uflip("show", out, "--every", "5ms").out
    assert len(text.splitlines()) == 2 + len(table), "a title, a head, and the rows"
    for wrong in (("--csv",), ("--every", "0"), ("--every", "x")):
        assert uflip("show", out, *wrong).code == 2


@pytest.mark.parametrize("depth", [1, 8])
def test_live_rows_match_those_of_the_trace(depth: int, workdir: Path) -> None:
    """Compare the rows printed during a run with plain counts over its trace."""
    every = 20_000_000
    pattern = ("--pattern", "RW", "--io-size", "4k", "--io-count", "3000", "--queue-depth", depth)
    more = ("--live", "--every", "20ms", "--json", "--trace", "ios.csv")
    outcome = uflip("pattern", DEVICE, *pattern, *more)
    assert outcome.code == 0, outcome.err
    *lines, last = map(json.loads, outcome.out.splitlines())
    rows = [line["row"] for line in lines]
    assert {line["clock"] for line in lines} == {"virtual"}
    ios = list(csv.DictReader(Path("ios.csv").read_text().splitlines()))
    begins, took = ([int(io[name]) for io in ios] for name in ("submit_ns", "response_time_ns"))
    ends = [begin + time for begin, time in zip(begins, took, strict=True)]
    assert len(rows) == -(-max(ends) // every)
    for number, row in enumerate(rows):
        low, high = number * every, number * every + row["length_ns"]
        times = sorted(time for end, time in zip(ends, took, strict=True) if low < end <= high)
        assert (row["start_ns"], row["ios"], row["bytes"]) == (low, len(times), 4096 * len(times))
        assert row["ios_per_s"] == pytest.approx(len(times) * 1e9 / row["length_ns"])
        assert row["in_flight"] == pytest.approx(sum(times) / row["length_ns"])
        for name, share in (("p50_ns", 0.5), ("p99_ns", 0.99), ("p999_ns", 0.999)):
            exact = times[max(1, math.ceil(len(times) * share)) - 1]
            assert exact <= row[name] <= exact * (1 + 1 / 128)
    amplified = sum(row["bytes"] * row["write_amplification"] for row in rows)
    pages = last["counters"]["pages_programmed"]
    assert amplified == pytest.approx(
        pages * last["device"]["details"]["profile"]["geometry"]["page_bytes"]
    )


def test_live_lines_are_one_for_each_interval() -> None:
    outcome = uflip(
        "pattern", DEVICE, "--pattern", "RR", "--io-count", "200", "--live", "--every", "5ms"
    )
    assert outcome.code == 0, outcome.err
    head, *rows = outcome.out.split("\nrandom")[0].splitlines()
    assert head.startswith("simulated time")
    assert sum(int(row.split()[2]) for row in rows[:-1]) <= 200
    refused = uflip("pattern", DEVICE, "--pattern", "RR", "--every", "1s")
    assert (refused.code, "--live" in refused.err) == (2, True)


def test_live_rows_of_a_benchmark_count_each_run(workdir: Path) -> None:
    """The rows of each run add up to its I/Os and bytes, as its stored trace has them."""
    Path("trace.iolog").write_text(
        "fio version 2 iolog\nf add\nf open\n"
        + "".join(f"f write {4096 * number} 4096\n" for number in range(300))
    )
    live = ("--live", "--every", "5ms", "--json", "--out", "r")
    for verb in (
        ("replay", "trace.iolog", DEVICE),
        ("run", DEVICE, "--scale", "quick", "--only", "order", "--state", "as-is"),
    ):
        outcome = uflip(*verb, *live)
        assert outcome.code == 0, outcome.err
        *lines, last = map(json.loads, outcome.out.splitlines())
        assert last["results"] == "r"
        counted: dict[str, list[int]] = {}
        for line in lines:
            total = counted.setdefault(line["run"], [0, 0])
            total[0] += line["row"]["ios"]
            total[1] += line["row"]["bytes"]
        runs = Results.load("r").runs
        traces = {run.id: run.trace() for run in runs if run.micro_benchmark != "interference"}
        assert counted == {
            name: [len(trace), trace.bytes_read + trace.bytes_written]
            for name, trace in traces.items()
        }
        for wrong in (("--resume", "r", "--live"), (DEVICE, "null", "--every", "1s")):
            refused = uflip("run", *wrong)
            assert (refused.code, "--live" in refused.err) == (2, True)
        shutil.rmtree("r")
