"""Does the Python API do what the command line does, and can other programs read its tables?"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, is_typeddict

import duckdb
import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command_line import uflip as command
from pyarrow import parquet as pq

import uflip
from uflip import analysis, models, spec, stats
from uflip.arrow_table import frame
from uflip.errors import ResultsError, UsageError

DEVICE = "sim:demo?blocks_per_die=64"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> uflip.Result:
    folder = tmp_path_factory.mktemp("api") / "r"
    return uflip.run(DEVICE, folder, scale="quick", only=["order", "pause"], pause="1ms", seed=3)


def test_run_matches_the_command_line(result: uflip.Result, tmp_path: Path) -> None:
    out = tmp_path / "r"
    options = ("--scale", "quick", "--only", "order,pause", "--pause", "1ms", "--seed", "3")
    assert command("run", DEVICE, *options, "--out", out, "-q").code == 0
    ours = {run.id: run.trace() for run in result.runs}
    theirs = {run.id: run.trace() for run in uflip.load(out).runs}
    assert ours.keys() == theirs.keys()
    for name, trace in ours.items():
        for column in trace.columns:
            assert np.array_equal(trace.column(column), theirs[name].column(column)), (name, column)
    assert result.status == "complete"
    assert not [each for each in result.warnings if each["code"] == "unfinished"]


PUBLIC = (uflip, analysis, models, spec, stats)
"""The modules whose lists name the public functions, see CONTRIBUTING.md."""


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public functions and methods of the package, including native ones."""
    listed = [(module, name) for module in PUBLIC for name in module.__all__]
    for home, name in listed:
        member = getattr(home, name)
        if inspect.isfunction(member) or (inspect.isclass(member) and member is not uflip.Trace):
            yield name, member
        if inspect.isclass(member):
            for method in vars(member):
                if not method.startswith("_") and callable(getattr(member, method)):
                    yield f"{name}.{method}", getattr(member, method)


def test_public_functions_document_parameters_and_returns() -> None:
    lacking = []
    for name, member in public_functions():
        text = inspect.getdoc(member) or ""
        section = re.search(r"(?:Parameters|Attributes)\n-+\n(.*?)(?=\n\w+\n---|\Z)", text, re.S)
        described = set(re.findall(r"[\w*]+", " ".join(
            line.partition(" : ")[0]
            for line in (section[1] if section else "").splitlines()
            if line[:1].strip()
        )))  # fmt: skip
        if is_typeddict(member):
            lacking += [f"{name}: {key}" for key in member.__annotations__ if key not in described]
            continue
        for each in inspect.signature(member).parameters.values():
            stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
            if each.name != "self" and stars + each.name not in described:
                lacking.append(f"{name}: {stars}{each.name}")
        returned = inspect.signature(member).return_annotation
        writes = name.startswith(("Trace.write", "Trace.append"))  # native: no annotation
        returns_nothing = inspect.isclass(member) or returned in (None, "None") or writes
        if (
            not returns_nothing
            and "Returns\n---" not in text
            and not text.startswith(("Return", "Copy"))
        ):
            lacking.append(f"{name}: what it returns")
    assert lacking == []


def test_run_sends_progress_events(tmp_path: Path) -> None:
    events: list[object] = []
    uflip.run(
        DEVICE, tmp_path / "r", scale="quick", only=["order"], pause="1ms", on_event=events.append
    )
    names = [type(event).__name__ for event in events]
    assert names[0] == "StateBegins", "the quick scale writes before it measures"
    assert names.index("RunsBegin") < names.index("RunStarted")
    assert names.count("RunStarted") == names.count("RunFinished") == 10


def test_interrupted_benchmark_is_resumed(tmp_path: Path) -> None:
    class EnoughError(Exception):
        pass

    def stop(event: object) -> None:
        if type(event).__name__ == "RunFinished":
            raise EnoughError

    with pytest.raises(EnoughError):
        uflip.run(DEVICE, tmp_path / "r", scale="quick", only=["order"], pause="1ms", on_event=stop)
    assert len(uflip.load(tmp_path / "r").runs) == 1
    assert uflip.load(tmp_path / "r").status == "failed"
    assert len(uflip.resume(tmp_path / "r").runs) == 10


def test_plan_matches_the_command_line() -> None:
    printed = json.loads(
        command("plan", DEVICE, "--scale", "quick", "--io-size", "4k", "--json").out
    )
    plan = uflip.plan(DEVICE, scale="quick", io_size="4k")
    assert [msgspec.to_builtins(run) for run in plan.runs] == printed["runs"]


def test_trace_repr_describes_its_ios() -> None:
    spec = uflip.mix(uflip.baseline("RR"), uflip.baseline("RW"), 3, io_count=5)
    assert repr(uflip.pattern(DEVICE, spec)) == (
        "<Trace of 20 I/Os, mix: 491520 bytes read, 163840 written>"
    )
    assert repr(uflip.pattern(DEVICE, "RW", io_size="4k", io_count=100)) == (
        "<Trace of 100 I/Os, random write: 0 bytes read, 409600 written>"
    )
    assert f"{uflip.Trace.__module__}.{uflip.Trace.__qualname__}" == "uflip.Trace"


def test_trace_statistics_equal_those_of_the_command_line() -> None:
    options = {"io_size": "4k", "io_count": 2000, "io_ignore": 100}
    trace = uflip.pattern(DEVICE, "RW", **options)  # type: ignore[arg-type]
    printed = json.loads(
        command(
            "pattern", DEVICE, "--pattern", "RW", "--io-size", "4k", "--io-count", 2000,
            "--io-ignore", 100, "--json",
        ).out
    )["statistics"]  # fmt: skip
    assert trace.mean == printed["mean_ns"]
    assert trace.percentiles([5, 50, 99]).tolist() == [
        printed[name] for name in ("p5_ns", "p50_ns", "p99_ns")
    ]
    assert np.isnan(trace.percentiles([99.9])).all(), "2 of 1900 I/Os do not support it"
    with pytest.raises(UsageError):
        trace.percentiles([101])
    with uflip.open_device("null") as device:
        assert device.run(uflip.baseline("RR", io_count=3)).mean > 0


def test_trace_is_drawn_on_given_axes() -> None:
    from matplotlib.figure import Figure

    mixed = uflip.mix(uflip.baseline("RR"), uflip.baseline("RW"), 3, io_count=50)
    for trace in (uflip.pattern(DEVICE, "RW", io_count=600, io_ignore=20),
                  uflip.pattern(DEVICE, mixed)):  # fmt: skip
        axis = Figure().subplots()
        assert trace.plot(axis) is axis
        drawn = np.asarray(axis.lines[0].get_ydata(), float)
        times_ns = np.asarray(trace.column("response_time_ns"))
        assert np.array_equal(np.round(drawn * 1e6), times_ns)


def test_frame_matches_show_and_loads_in_other_libraries(result: uflip.Result) -> None:
    shown = json.loads(command("show", result.path, "--json").out)
    means = [
        run["statistics"]["mean_ns"]
        for runs in (shown["baselines"], *shown["micro_benchmarks"].values())
        for run in runs
    ]
    table = result.frame()
    assert pl.DataFrame(table)["mean_ns"].to_list() == means
    assert pd.DataFrame.from_arrow(table)["mean_ns"].tolist() == means
    assert pa.table(table).column("mean_ns").to_pylist() == means
    assert duckdb.sql('select mean_ns from "table"').fetchall() == [(mean,) for mean in means]
    assert table.column("micro_benchmark").to_pylist().count("order") == 10
    labelled = result.frame(labels=True)
    assert labelled.num_columns == table.num_columns
    stall = "mean GC stall [ns]"
    assert labelled.column(stall).to_pylist() == table.column("mean_free_page_wait_ns").to_pylist()
    assert {"micro benchmark", "mean [ns]", "p99.9 [ns]"} <= set(labelled.column_names)


def test_frame_keeps_values_and_nulls() -> None:
    rows = [
        {"whole": 2**62, "real": 1.5, "text": "a", "truth": True},
        {"whole": None, "real": 2, "text": None, "truth": False, "late": 7},
    ]
    columns = {
        "whole": int, "real": float, "text": str, "truth": bool, "late": int, "never": float,
    }  # fmt: skip
    table = pa.table(frame(rows, columns))
    assert table.to_pylist() == [
        {"whole": 2**62, "real": 1.5, "text": "a", "truth": True, "late": None, "never": None},
        {"whole": None, "real": 2.0, "text": None, "truth": False, "late": 7, "never": None},
    ]
    assert str(table.schema.field("never").type) == "double"
    assert pa.table(frame([], columns)).schema == table.schema
    with pytest.raises(ResultsError, match=r"0\.5"):
        frame([{"whole": 0.5}], {"whole": int})


@pytest.fixture(scope="module")
def frames(result: uflip.Result, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return frames of results with and without baselines, percentiles and causes."""
    folder = tmp_path_factory.mktemp("frames")
    part = uflip.run(DEVICE, folder / "part", scale="quick", only=["pause"], pause="1ms")
    real = uflip.run("null", folder / "real", scale="quick", only=["order"], pause="1ms")
    return [each.frame() for each in (result, part, real)]


def test_column_types_do_not_depend_on_the_data(frames: list[Any]) -> None:
    theirs = [pa.table(each).schema for each in frames]
    for name in theirs[-1].names:
        types = {str(schema.field(name).type) for schema in theirs}
        assert len(types) == 1, (name, types)
        if name.endswith("_ns") or name in ("value", "count", "write_amplification"):
            assert types <= {"int64", "double"}, (name, types)
    simulated = frames[:2]
    assert pl.concat([pl.DataFrame(each) for each in simulated]).height == sum(
        each.num_rows for each in simulated
    )
    assert pl.concat([pl.DataFrame(each) for each in frames], how="diagonal").height == sum(
        each.num_rows for each in frames
    )
    assert pa.concat_tables([pa.table(each) for each in simulated]).num_rows > 0
    in_pandas = pd.concat([pd.DataFrame.from_arrow(each) for each in frames])
    assert {str(in_pandas[name].dtype) for name in ("p99_ns", "p99_9_ns", "half_width_ns")} <= {
        "float64", "int64", "Int64",
    }  # fmt: skip
    real = duckdb.from_arrow(pa.table(frames[2])).limit(1)
    types_sql = real.select("typeof(p99_9_ns), typeof(write_amplification)")
    assert types_sql.fetchall() == [("BIGINT", "DOUBLE")]


def test_comparison_columns_are_numeric_when_all_null(result: uflip.Result) -> None:
    comparison = result.compare(result)
    fewer = replace(
        comparison, rows=tuple(replace(row, p99_ratio=None, low=None) for row in comparison.rows)
    )
    schemas = [pa.table(each.frame()).schema for each in (comparison, fewer)]
    assert schemas[0] == schemas[1]
    assert {str(schemas[1].field(name).type) for name in ("p99_ratio", "low")} == {"double"}


def test_pattern_by_name_equals_pattern_by_spec() -> None:
    by_name = uflip.pattern(DEVICE, "RW", io_size="4k", io_count=100)
    spec = uflip.baseline("RW", io_size="4k", io_count=100)
    by_spec = uflip.pattern(DEVICE, spec)
    times = [np.asarray(trace.column("response_time_ns")) for trace in (by_name, by_spec)]
    assert len(times[0]) == 100
    assert np.array_equal(*times)


def test_comparison_has_an_html_repr(result: uflip.Result) -> None:
    comparison = result.compare(result)
    page = comparison._repr_html_()
    # One repetition has no scatter: nothing is slower or faster.
    assert comparison.count()["slower"] == comparison.count()["faster"] == 0
    assert f"{len(comparison.rows)} experiments in both" in page
    assert page.count("<table") == 1
    baselines = [row for row in comparison.rows if row.micro_benchmark == "baseline"]
    assert page.count("<tr") == 1 + len(baselines), "nothing else differs"


def test_figure_is_drawn_on_given_axes(result: uflip.Result) -> None:
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    assert result.plot("order", axis) is axis
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in axis.lines])
    for run in result.summary["micro_benchmarks"]["order"]:
        assert np.isclose(drawn, run["statistics"]["mean_ns"] / 1e6, rtol=1e-12).any(), run
    with pytest.raises(uflip.UflipError, match="order"):
        result.plot("ordre", axis)


def test_result_html_repr_escapes_markup(tmp_path: Path) -> None:
    text = repr(uflip.load(_small(tmp_path / "<b>")))
    assert "10 of 10 runs" in text
    html = uflip.load(tmp_path / "<b>")._repr_html_()
    assert html.startswith("<div")
    assert "<b>" not in html


def _small(path: Path) -> Path:
    return uflip.run(DEVICE, path, scale="quick", only=["order"], pause="1ms").path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": "fast"}, "quick"),
        ({"speed": 3}, "io_size"),
        ({"io_size": "4q"}, "io_size"),
        ({"pause": "soon"}, "pause"),
        ({"plan": "nowhere.toml"}, "nowhere.toml"),
        ({"only": ["ordre"]}, "order"),
        ({"repetitions": 0}, "repetitions"),
    ],
)
def test_bad_option_is_named_in_the_error(
    workdir: Path, options: dict[str, object], words: str
) -> None:
    with pytest.raises(uflip.UflipError) as error:
        uflip.run("sim:demo", "out", **options)  # type: ignore[arg-type]
    assert words in str(error.value)
    assert not list(workdir.iterdir())


def test_public_names_exist_and_are_not_modules() -> None:
    """A module of the same name would replace a function as soon as it is imported."""
    for name in uflip.__all__:
        assert f"uflip.{name}" not in sys.modules, name
        assert getattr(uflip, name) is not None
    package = Path(uflip.__file__).parent
    modules = {path.stem for path in package.iterdir()}
    assert not modules & set(uflip.__all__)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("seed", "x"), ("seed", 1.5), ("seed", -1), ("seed", 2**64), ("seed", True),
        ("repetitions", "2.5"), ("repetitions", 1e9), ("scale", 1), ("only", [1]), ("suite", 3),
        ("durability", 3), ("inside", "no"), ("buffered", 1), ("io_size", 4096.0), ("pause", 1.5),
    ],
)  # fmt: skip
def test_invalid_option_is_a_usage_error_without_side_effects(
    option: str, value: Any, tmp_path: Path
) -> None:
    file = tmp_path / "new.bin"
    options: Any = {"scale": "quick", "only": ["order"], "size": "2MiB", option: value}
    with pytest.raises(UsageError):
        uflip.run(f"file:{file}", tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError):
        uflip.plan(DEVICE, **{name: each for name, each in options.items() if name != "size"})


def test_numpy_numbers_are_accepted(tmp_path: Path) -> None:
    options: Any = {"scale": "quick", "seed": np.int64(3), "repetitions": np.uint8(2)}
    plan = uflip.plan(DEVICE, only="order", io_size=np.int64(4096), **options)
    assert (plan.seed, plan.repetitions) == (3, 2)
    assert len(uflip.pattern("null", "RR", io_size=np.int32(4096), io_count=np.int64(5))) == 5
    rows = uflip.sweep(
        DEVICE, uflip.baseline("RW", io_count=50), {"spare_factor": np.array([0.15, 0.3])},
        data=str(tmp_path / "swept"),
    )  # fmt: skip
    assert [row.values["spare_factor"] for row in rows] == [0.15, 0.3]


def test_spec_cannot_be_combined_with_options() -> None:
    with pytest.raises(UsageError, match="io_size, seed"):
        uflip.pattern("null", uflip.baseline("RR", io_count=10), io_size="64k", seed=0)
    with pytest.raises(UsageError, match="'nope'"):
        uflip.pattern("null", uflip.baseline("RR", io_count=10), nope=3)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"SR\|RR\|SW\|RW"):
        uflip.pattern("null", None)
    with pytest.raises(UsageError, match="two basic patterns"):
        uflip.mix("RR", "RW", 2)  # type: ignore[arg-type]


def test_pattern_takes_the_options_of_the_command_line(tmp_path: Path) -> None:
    for options in (
        {"io_size": "4k", "io_count": 60, "incr": None, "io_ignore": 0},
        {"mix": "SR", "ratio": 3, "io_count": 20},
        {"mix": "RR", "first_percent": 30, "io_count": 20, "durability": "fua"},
        {"bssplit": "4k/60:64k/30:16k/10", "io_count": 50, "target_size": "4m"},
        {"until_converged": True, "max_ios": 600, "max_time": "1min"},
    ):
        typed: list[object] = []
        for name, value in options.items():
            typed += [] if value is None else [f"--{name.replace('_', '-')}"]
            typed += [] if value is None or value is True else [value]
        out = tmp_path / "theirs.parquet"
        outcome = command("pattern", DEVICE, "--pattern", "RW", *typed, "--trace", out, "--force")
        assert outcome.code == 0, outcome.err
        ours = uflip.pattern(DEVICE, "RW", **options).column("response_time_ns")
        theirs = pq.read_table(out)["response_time_ns"].to_numpy()
        assert np.array_equal(np.asarray(ours), theirs), options


def test_pattern_creates_its_file_after_validation(tmp_path: Path) -> None:
    file = tmp_path / "new.bin"
    wrong: Any
    for wrong in (
        {"size": "1MiB", "target_size": "1GiB"}, {"size": "1MiB", "io_cuont": 3},
        {"size": "1MiB", "durability": "soon"}, {"size": "1MiB", "max_time": "1s"},
        {"size": "1MiB", "buffered": 1}, {"size": "large"},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            uflip.pattern(f"file:{file}", "RW", **wrong)
        assert not file.exists(), wrong
    trace = uflip.pattern(f"file:{file}", "RW", size="1MiB", buffered=True, io_count=5)
    assert (len(trace), file.stat().st_size) == (5, 1 << 20)
    # Writing to a foreign file needs its name as confirmation; reading does not.
    other = tmp_path / "other.bin"
    other.write_bytes(b"x" * (1 << 20))
    with pytest.raises(uflip.UflipError, match="destroy"):
        uflip.pattern(f"file:{other}", "RW", buffered=True, io_count=5)
    assert len(uflip.pattern(f"file:{other}", "RR", buffered=True, io_count=5)) == 5
    spec = uflip.baseline("RW", io_count=5)
    overwritten = uflip.pattern(f"file:{other}", spec, buffered=True, destroy=str(other))
    assert len(overwritten) == 5


RW = uflip.baseline("RW")


def test_invalid_arguments_raise_usage_errors() -> None:
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("did you mean io_count", lambda: uflip.pattern(DEVICE, "RW", io_cuont=3)),  # type: ignore[call-arg]
        ("determines the location", lambda: uflip.pattern(DEVICE, "RW", location="sequential")),
        ("Unknown parameter", lambda: uflip.baseline("RW", mode="read")),
        ("did you mean io_count", lambda: uflip.baseline("RW").but(io_cuont=3)),
        ("did you mean 'sim:demo'", lambda: uflip.run(Path("sim:demo"))),  # type: ignore[arg-type]
        ("must be a string", lambda: uflip.open_device(Path("null"))),  # type: ignore[arg-type]
        ("response_time_ns", lambda: uflip.analyse(uflip.pattern("null", "RR", io_count=50))),
        ("response_time_ns", lambda: uflip.analyse(["1", "fast"])),
        ("name one device", lambda: uflip.run(["sim:demo", "null"])),  # type: ignore[arg-type]
        ("name a device", lambda: uflip.run(None)),  # type: ignore[arg-type]
        ("pass them as separate arguments", lambda: uflip.parallel([RW, RW])),  # type: ignore[arg-type]
        ("made by uflip.basic or ", lambda: uflip.parallel("RW", "RR")),  # type: ignore[arg-type]
        ("made by uflip.basic or ", lambda: uflip.parallel(uflip.parallel(RW, RW), RW)),  # type: ignore[arg-type]
        ("SR, RR, SW, RW", lambda: uflip.baseline(["RW"])),  # type: ignore[arg-type]
        ("name of a file or folder", lambda: uflip.run(DEVICE, ["out"])),  # type: ignore[arg-type]
        ("name of a file or folder", lambda: uflip.run(DEVICE, record=3)),  # type: ignore[arg-type]
        ("name of a file or folder", lambda: uflip.load(None)),  # type: ignore[arg-type]
        ("name of a file or folder", lambda: uflip.resume(["out"])),  # type: ignore[arg-type]
        ("name of a file or folder", lambda: uflip.compare(3, b"out")),  # type: ignore[arg-type]
        ("dict of names", lambda: uflip.sweep(DEVICE, "RW", ["gc"])),  # type: ignore[arg-type]
        (r"\['greedy'\]", lambda: uflip.sweep(DEVICE, "RW", {"gc": "greedy"})),
        (r"\[4\]", lambda: uflip.sweep(DEVICE, "RW", {"channels": 4})),  # type: ignore[dict-item]
        ("did you mean RW", lambda: uflip.sweep(DEVICE, "RWX", {"channels": [4]})),
    ]
    for words, call in cases:
        with pytest.raises(UsageError, match=words):
            call()


def test_sweep_accepts_a_pattern_name() -> None:
    vary = {"spare_factor": [0.15, 0.3]}
    by_name, by_spec = (
        uflip.sweep(DEVICE, spec, vary, timed=False) for spec in ("RW", uflip.baseline("RW"))
    )
    assert by_name == by_spec


@pytest.mark.parametrize("rule", [{"confidence": float("nan")}, {"half_width": float("inf")}])
def test_non_finite_stopping_rule_is_refused(rule: Any) -> None:
    with pytest.raises(UsageError):
        uflip.pattern(DEVICE, spec.until_converged(uflip.baseline("RW"), **rule))


def test_trace_raises_usage_errors() -> None:
    trace = uflip.pattern("null", "RR", io_size="4k", io_count=10)
    with pytest.raises(UsageError, match="response_time_ns"):
        trace.column("latency")
    for start, stop in [(300, 400), (-1, 5), (0, -2)]:
        with pytest.raises(UsageError):
            trace.column("offset_bytes", start, stop)


@pytest.mark.parametrize(
    "wrong",
    [{"warm_up": float("nan")}, {"warm_up": -1}, {"warm_up": float("inf")}, {"timed": "no"},
     {"vary": {}}],
)  # fmt: skip
@pytest.mark.parametrize("stored", [True, False])
def test_invalid_sweep_leaves_no_files(wrong: Any, stored: bool, tmp_path: Path) -> None:
    spec, options = uflip.baseline("RW", io_count=50), {"vary": {"channels": [2]}} | wrong
    with pytest.raises(UsageError):
        uflip.sweep(DEVICE, spec, data=tmp_path / "swept" if stored else None, **options)
    assert list(tmp_path.iterdir()) == []


def test_run_length_requires_response_times() -> None:
    for times in ([float("nan")] * 50, [-5.0] * 50, [0] * 50, [], [1000.0] * 31):
        with pytest.raises(UsageError):
            analysis.run_length(times)
    with pytest.raises(UsageError):
        analysis.run_length([1000] * 50, min_ios=-1)


def test_out_of_range_device_arguments_are_usage_errors() -> None:
    lossy = "sim:demo?blocks_per_die=64&power_loss_protection=false&spare_read_bytes=16"
    with uflip.open_device(lossy) as device:
        for call in (
            lambda: device.trim(-512, 512),
            lambda: device.trim(2**64, 512),
            lambda: device.idle(-1),
            lambda: device.idle(2**64),
            lambda: device.cut_power(-1),
            lambda: device.cut_power(1000, uflip.baseline("RW", io_count=3), 0),
        ):
            with pytest.raises(UsageError):
                call()


def test_a_seed_has_64_bits() -> None:
    for seed in (2**63, 2**64 - 1):
        assert len(uflip.pattern(f"{DEVICE}&seed={seed}", "RW", io_count=5)) == 5
