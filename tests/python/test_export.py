"""Do the exported tables hold every I/O, and can other programs read them?"""

import csv
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import stored
from command_line import uflip, unchanged

from uflip.cli.export import CSV_ROW_BYTES
from uflip.errors import ResultsError, UsageError
from uflip.results import Results
from uflip.results.columns import as_array
from uflip.results.export import export

RUNS = (
    stored.baseline_run(1, "SR"),
    stored.baseline_run(2, "RW", io_ignore=10, parallel_degree=2),
    stored.mix_run(3, "SR", "SW", 2),
)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return stored.results(tmp_path / "r", RUNS)


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_has_one_row_per_io(results: Results, tmp_path: Path) -> None:
    written = export(results, tmp_path / "out", "csv")
    assert [path.name for path in written] == ["columns.csv", "ios.csv", "summary.csv"]
    table = read_rows(tmp_path / "out" / "ios.csv")
    assert len(table) == 100 + 200 + 120
    for run in results.runs:
        run_rows = [row for row in table if row["run"] == run.id]
        trace = run.trace()
        for name in trace.columns:
            if name != "mode":
                assert [int(row[name]) for row in run_rows] == as_array(trace, name).tolist()
        assert [row["mode"] == "write" for row in run_rows] == as_array(trace, "mode").tolist()
        assert [int(row["index"]) for row in run_rows] == list(range(len(trace)))
        assert {row["pattern"] for row in run_rows} == {run.pattern}
        assert {row["value"] for row in run_rows} == {str(run.value)}


def test_parquet_is_one_table_in_other_programs(results: Results, tmp_path: Path) -> None:
    export(results, tmp_path / "out", "parquet")
    table = ds.dataset(tmp_path / "out" / "ios", format="parquet").to_table()
    assert table.num_rows == 100 + 200 + 120
    for run in results.runs:
        run_rows = table.filter(ds.field("run") == run.id)
        stored_run = pq.read_table(run.path)
        assert (
            run_rows["response_time_ns"].to_pylist() == stored_run["response_time_ns"].to_pylist()
        )
        offsets = as_array(run.trace(), "offset_bytes")
        assert np.array_equal(run_rows["offset_bytes"].to_numpy(), offsets)
        assert run_rows["unit"].unique().to_pylist() == [run.unit]


def test_csv_and_parquet_tables_are_equal(results: Results, tmp_path: Path) -> None:
    for file_format in ("csv", "parquet"):
        export(results, tmp_path / file_format, file_format)
    table = ds.dataset(tmp_path / "parquet" / "ios", format="parquet").to_table()
    lines = read_rows(tmp_path / "csv" / "ios.csv")
    assert list(lines[0]) == table.column_names
    as_texts = [{name: str(value) for name, value in row.items()} for row in table.to_pylist()]
    key = lambda row: (row["run"], int(row["index"]))  # noqa: E731
    assert sorted(as_texts, key=key) == sorted(lines, key=key)
    assert set(table["mode"].to_pylist()) == {"read", "write"}
    explained = {row["column"] for row in read_rows(tmp_path / "csv" / "columns.csv")}
    assert (tmp_path / "csv" / "columns.csv").read_bytes() == (
        tmp_path / "parquet" / "columns.csv"
    ).read_bytes()
    assert set(table.column_names) <= explained


def test_pattern_trace_has_the_export_columns(workdir: Path) -> None:
    words = ("pattern", "sim:demo?blocks_per_die=64", "--pattern", "RW", "--io-count", "50", "-q")
    for name in ("io.csv", "io.parquet"):
        assert uflip(*words, "--trace", name).code == 0
    table = pq.read_table(workdir / "io.parquet")
    lines = read_rows(workdir / "io.csv")
    assert list(lines[0]) == table.column_names
    assert [{k: str(v) for k, v in row.items()} for row in table.to_pylist()] == lines
    assert [row["index"] for row in lines] == [str(number) for number in range(50)]


def test_summary_table_repeats_the_statistics(results: Results, tmp_path: Path) -> None:
    export(results, tmp_path / "out", "csv")
    table = read_rows(tmp_path / "out" / "summary.csv")
    assert [row["run"] for row in table] == [run.id for run in RUNS]
    times = pq.read_table(results.runs[0].path)["response_time_ns"].to_numpy()
    assert float(table[0]["mean_ns"]) == pytest.approx(times.mean())
    assert int(table[0]["max_ns"]) == times.max()
    assert table[0]["p99_ns"] == "", "a hundred I/Os do not support p99"
    assert (table[1]["io_count"], table[1]["io_ignore"], table[1]["count"]) == ("200", "20", "180")
    assert table[0]["first_mean_ns"] == ""
    assert float(table[2]["first_mean_ns"]) > 0


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_every_column_is_explained(results: Results, tmp_path: Path, file_format: str) -> None:
    out = tmp_path / "out"
    export(results, out, file_format)
    explained = {row["column"]: row for row in read_rows(out / "columns.csv")}
    names = set(read_rows(out / "summary.csv")[0])
    if file_format == "csv":
        names |= set(read_rows(out / "ios.csv")[0])
    else:
        names |= set(pq.read_schema(next((out / "ios").iterdir())).names)
    assert names - set(explained) == set()
    for name, row in explained.items():
        assert row["meaning"], name
        assert (row["unit"] == "ns") == name.endswith("_ns"), name


def test_export_never_overwrites(results: Results, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with unchanged(tmp_path), pytest.raises(ResultsError, match="never overwrites"):
        export(results, tmp_path / "out", "csv")


def test_an_unknown_format_is_refused(results: Results, tmp_path: Path) -> None:
    with unchanged(tmp_path), pytest.raises(UsageError, match="Unknown export format"):
        export(results, tmp_path / "out", "xlsx")


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_failed_export_leaves_nothing(results: Results, tmp_path: Path, file_format: str) -> None:
    path = results.runs[2].path
    content = path.read_bytes()
    path.write_bytes(content[:100] + content[200:])
    with unchanged(tmp_path), pytest.raises(ResultsError, match="damaged"):
        export(results, tmp_path / "out", file_format)


def test_unfinished_results_export_the_existing_runs(tmp_path: Path) -> None:
    results = stored.results(tmp_path / "r", RUNS, finished=1, status="interrupted")
    export(results, tmp_path / "out", "csv")
    assert len(read_rows(tmp_path / "out" / "ios.csv")) == 100
    empty = stored.results(tmp_path / "e", RUNS, finished=0, status="interrupted")
    export(empty, tmp_path / "none", "csv")
    assert read_rows(tmp_path / "none" / "ios.csv") == []


def test_large_table_is_announced_before_writing(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uflip.cli.export.LARGE_BYTES", 1000)
    err = uflip("export", results.path, "-o", tmp_path / "a").err
    assert "--format parquet" in err
    for options in (("--format", "parquet"), ("--quiet",), ("--json",)):
        outcome = uflip("export", results.path, *options, "-o", tmp_path / options[-1])
        assert (outcome.code, outcome.err) == (0, "")


def test_table_size_matches_the_announcement(tmp_path: Path) -> None:
    """Within a factor of two on a simulated device and on the null device."""
    for url in ("sim:demo", "null"):
        out = tmp_path / url.removeprefix("sim:")
        options = ("--scale", "quick", "--only", "order,granularity", "--pause", "0ms", "--quiet")
        assert uflip("run", url, *options, "--out", out).code == 0
        results = Results.load(out)
        export(results, tmp_path / f"{out.name}-csv", "csv")
        expected = CSV_ROW_BYTES * sum(results.summary_of([run]).io_count for run in results.runs)
        size_bytes = (tmp_path / f"{out.name}-csv" / "ios.csv").stat().st_size
        assert expected / 2 < size_bytes < 2 * expected, url


def test_open_and_closed_loop_runs_are_one_table(workdir: Path) -> None:
    """The suite `today` has both; the submission wait of closed-loop runs is 0."""
    duckdb, pandas, polars = (pytest.importorskip(n) for n in ("duckdb", "pandas", "polars"))
    outcome = uflip("run", "sim:demo?blocks_per_die=64", "--suite", "today", "--scale", "quick",
                    "--only", "write_rate,queue_depth", "--out", "r", "-q")  # fmt: skip
    assert outcome.code == 0, outcome.err
    results = Results.load("r")
    traces = {run.id: run.trace() for run in results.runs}
    wait = "submission_wait_ns"
    opened = {run for run, trace in traces.items() if wait in trace.columns}
    assert opened
    assert opened != traces.keys()
    for file_format in ("csv", "parquet"):
        export(results, Path(file_format), file_format)
    header = Path("csv/ios.csv").read_text().split("\n", 1)[0].strip().split(",")
    for file in Path("parquet/ios").iterdir():
        schema = pq.read_schema(file)
        assert schema.names == header
        assert schema.field(wait).type == "uint64"
    tables = [
        polars.scan_parquet("parquet/ios/*.parquet").collect().to_pandas(),
        pandas.read_parquet("parquet/ios"),
        duckdb.sql("select * from 'parquet/ios/*.parquet'").df(),
        pandas.read_csv("csv/ios.csv", low_memory=False),
    ]
    for table in tables:
        assert list(table.columns) == header
        assert len(table) == sum(map(len, traces.values()))
        for run, trace in traces.items():
            run_rows = table[table["run"] == run].sort_values("index")
            waited = as_array(trace, wait).tolist() if run in opened else [0] * len(trace)
            assert run_rows[wait].tolist() == waited
            assert (
                run_rows["response_time_ns"].tolist()
                == as_array(trace, "response_time_ns").tolist()
            )
