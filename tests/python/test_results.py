"""Are all measurements read back, whatever happened in between?"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import stored
from command_line import PACKAGE_ROOT, unchanged
from hypothesis import given, settings
from hypothesis import strategies as st

from uflip.data.device import DeviceWear, with_details
from uflip.data.document import plain
from uflip.data.manifest import DeviceState, Host
from uflip.data.spec import table_of
from uflip.device.opener import open_device
from uflip.errors import ResultsError, UsageError
from uflip.results import Results, host_provenance
from uflip.results.benchmark_warnings import condition_warnings, interference_warnings
from uflip.results.columns import as_array, measured_column
from uflip.results.run_warnings import CHECKS, RunArrays, achieved_pauses
from uflip.results.writer import refuse_existing
from uflip.spec import baseline, parallel, read_spec

TESTS = Path(__file__).parent


# Reading back measured results


def test_stored_run_reads_back_identically(tmp_path: Path) -> None:
    run = stored.baseline_run(1, "RW", io_ignore=10)
    with open_device("sim:demo") as device:
        writer = stored.writer(tmp_path / "r", [run], device)
        trace = device.run(run.spec)
        writer.commit(run, trace, {"note": "kept"})
        writer.finish("complete")
    (stored_run,) = Results.load(tmp_path / "r").runs
    loaded = stored_run.trace()
    assert loaded.columns == trace.columns
    for name in trace.columns:
        assert np.array_equal(as_array(loaded, name), as_array(trace, name)), name
    assert json.loads(loaded.spec_json) == json.loads(trace.spec_json)
    assert loaded.elapsed_ns() == trace.elapsed_ns()
    assert json.loads(loaded.metadata_json)["note"] == "kept"
    assert stored_run.meta.counters == json.loads(trace.counters_json() or "null")
    assert stored_run.meta.id == stored_run.id == run.id
    assert stored_run.spec == run.spec


def test_pyarrow_reads_same_columns(tmp_path: Path) -> None:
    results = stored.results(tmp_path / "r", [stored.baseline_run(1, "RW")])
    (run,) = results.runs
    table = pq.read_table(run.path)
    trace = run.trace()
    for name in ("response_time_ns", *trace.causes):
        assert table[name].to_numpy().tolist() == as_array(trace, name).tolist()
    times = table["response_time_ns"].to_numpy().astype(np.int64)
    submitted = table["gap_ns"].to_numpy().cumsum() + times.cumsum() - times
    assert submitted.tolist() == as_array(trace, "submit_ns").tolist()
    causes = sum(table[name].to_numpy() for name in trace.causes)
    assert causes.tolist() == table["response_time_ns"].to_numpy().tolist()
    text = b" ".join((table.schema.metadata or {}).values()).decode()
    assert run.id in text
    assert '"seed":7' in text.replace(" ", "")


def test_startup_is_stored_and_excludable(tmp_path: Path) -> None:
    runs = [
        stored.baseline_run(1, "SR", io_ignore=30),
        stored.mix_run(2, "SR", "RR", 3, io_ignore=5),
        stored.baseline_run(3, "RR", io_ignore=10, parallel_degree=4),
    ]
    basic, mixed, parallel = stored.results(tmp_path / "r", runs).runs
    every = basic.response_time_ns(include_ignored=True)
    assert (len(every), basic.response_time_ns().tolist()) == (100, every[30:].tolist())
    assert len(mixed.response_time_ns(include_ignored=True)) == 40 * 4
    assert len(mixed.response_time_ns()) == (40 - 5) * 4
    assert len(parallel.response_time_ns(include_ignored=True)) == 4 * 100
    stream = as_array(parallel.trace(), "stream")
    ignored = as_array(parallel.trace(), "ignored")
    assert [int(ignored[stream == number].sum()) for number in range(4)] == [10] * 4


def test_manifest_is_complete(tmp_path: Path) -> None:
    experiment = {"pattern": "SR", "parameter": "target_size", "value": 512}
    skipped = [{"micro_benchmark": "locality", **experiment, "reason": "too small"}]
    warnings = [{"code": "x", "message": "m", "numbers": {}, "advice": "a"}]
    results = stored.results(tmp_path / "r", skipped=skipped, warnings=warnings)
    document = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert document == plain(results.manifest)
    assert (document["format"], document["format_version"], document["status"]) == (
        "uflip-results", 1, "complete",
    )  # fmt: skip
    assert document["device"]["url"] == "sim:demo"
    assert [entry["id"] for entry in document["plan"]] == [run.id for run in stored.FOUR]
    assert [entry["spec"] for entry in document["plan"]] == [
        table_of(run.spec) for run in stored.FOUR
    ]
    assert document["skipped"] == skipped
    assert document["warnings"][0] == warnings[0]
    assert document["elapsed_s"] > 0
    assert document["finished_utc"] >= document["created_utc"]
    assert (results.missing, results.status) == ([], "complete")


def test_provenance_names_machine_but_not_owner() -> None:
    provenance = host_provenance(["/home/someone/bin/uflip", "run", "null"])
    assert provenance["command_line"] == ["uflip", "run", "null"]
    expected = "kernel cpu_model cpus memory_bytes python uflip_version git_commit clock_source"
    assert set(expected.split()) | {"cpu_governor", "load_average_1min"} <= set(provenance)
    assert os.uname().nodename not in json.dumps(provenance).split('"')
    json.dumps(provenance, allow_nan=False)


# Nothing is overwritten


@pytest.mark.parametrize("kind", ["folder", "results", "file"])
def test_existing_name_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "taken"
    if kind == "folder":
        path.mkdir()
    elif kind == "results":
        stored.results(path, stored.FOUR[:1])
    else:
        path.write_text("mine")
    with open_device("sim:demo") as device, unchanged(tmp_path):
        with pytest.raises(ResultsError, match="never overwritten"):
            stored.writer(path, stored.FOUR, device)
        with pytest.raises(ResultsError, match="never overwritten"):
            refuse_existing(path)


def test_dangling_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with open_device("null") as device, pytest.raises(ResultsError, match="never overwritten"):
        stored.writer(tmp_path / "link", stored.FOUR, device)
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_impossible_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        open_device("null") as device,
        unchanged(tmp_path),
        pytest.raises(ResultsError, match="could not be made"),
    ):
        stored.writer(tmp_path / "file" / "r", stored.FOUR, device)


def test_device_with_a_long_name_is_read_back_or_refused(tmp_path: Path) -> None:
    keys = "page_bytes=4096&" * 700
    with open_device("sim:demo?page_bytes=4096") as device:
        long = stored.device_info(url=f"sim:demo?{keys[:9_000]}")
        stored.writer(tmp_path / "long", stored.FOUR, device, device=long)
        assert Results.load(tmp_path / "long").manifest.device.url == long.url
        endless = stored.device_info(url=f"sim:demo?{keys}")
        with pytest.raises(UsageError, match="cannot store"):
            stored.writer(tmp_path / "endless", stored.FOUR, device, device=endless)
    assert [path.name for path in tmp_path.iterdir()] == ["long"]


def test_run_is_committed_once_and_only_if_planned(tmp_path: Path) -> None:
    with open_device("sim:demo") as device:
        writer = stored.writer(tmp_path / "r", stored.FOUR, device)
        trace = device.run(stored.FOUR[0].spec)
        writer.commit(stored.FOUR[0], trace)
        with unchanged(tmp_path):
            with pytest.raises(ResultsError, match="once"):
                writer.commit(stored.FOUR[0], trace)
            with pytest.raises(ResultsError, match="not in the plan"):
                writer.commit(stored.baseline_run(9, "SR"), trace)
        writer.finish("complete")


# Kills and full disks

CHILD = """
import sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
import stored
from uflip import safe_files
from uflip.device.opener import open_device

publish = safe_files.publish
def slow(temporary, path):
    if "0003" in path.name:
        print("in the middle", flush=True)
        time.sleep(60)
    publish(temporary, path)
safe_files.publish = slow

with open_device("sim:demo") as device:
    writer = stored.writer(Path({out!r}), stored.FOUR, device)
    for run in stored.FOUR:
        writer.commit(run, device.run(run.spec))
"""


def child(code: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_kill_during_commit_keeps_earlier_runs(tmp_path: Path) -> None:
    out = tmp_path / "r"
    process = child(CHILD.format(tests=str(TESTS), out=str(out)))
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in the middle\n"
        assert Results.load(out).status == "running"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert list((out / "runs").glob(".*.tmp")), "the third run was being written"
    results = Results.load(out)
    assert results.status == "interrupted"
    assert json.loads((out / "manifest.json").read_text())["status"] == "running"
    assert [run.pattern for run in results.runs] == ["SR", "RR"]
    assert results.missing == [stored.FOUR[2].id, stored.FOUR[3].id]
    assert [len(run.trace()) for run in results.runs] == [100, 100]
    assert "unfinished" in {warning["code"] for warning in results.warnings}


def test_kill_at_any_time_leaves_whole_runs(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import stored
from uflip.device.opener import open_device
runs = [stored.baseline_run(number, "RW", seed=number) for number in range(1, 2000)]
with open_device("sim:demo") as device:
    writer = stored.writer(Path({out!r}), runs, device)
    for run in runs:
        writer.commit(run, device.run(run.spec))
"""
    for attempt, delay_s in enumerate((0.01, 0.037, 0.09)):
        out = tmp_path / f"r{attempt}"
        with child(code.format(tests=str(TESTS), out=str(out))) as process:
            deadline = time.monotonic() + 30
            while not (out / "manifest.json").exists() and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(delay_s)
            process.kill()
            process.wait()
        results = Results.load(out)
        assert results.status == "interrupted"
        assert len(results.runs) + len(results.missing) == 1999
        for run in results.runs:
            assert len(run.trace()) == 100


def test_full_disk_keeps_earlier_runs(tmp_path: Path) -> None:
    # A limit on the size of files fails as a full disk does: in the middle of writing.
    code = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
import stored
from uflip.errors import ResultsError, UsageError
from uflip.device.opener import open_device
runs = [stored.baseline_run(1, "SR"), stored.baseline_run(2, "RW", io_count=200_000)]
with open_device("sim:demo") as device:
    writer = stored.writer(Path({out!r}), runs, device)
    writer.commit(runs[0], device.run(runs[0].spec))
    trace = device.run(runs[1].spec)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        writer.commit(runs[1], trace)
    except ResultsError as error:
        print(error)
    writer.finish("failed")
"""
    out = tmp_path / "r"
    with child(code.format(tests=str(TESTS), out=str(out))) as process:
        output, complaint = process.communicate(timeout=60)
    assert process.returncode == 0, complaint
    assert stored.baseline_run(2, "RW").id in output
    assert [path.name for path in (out / "runs").iterdir()] == [
        f"{stored.baseline_run(1, 'SR').id}.parquet"
    ]
    results = Results.load(out)
    assert (results.status, len(results.runs), len(results.missing)) == ("failed", 1, 1)


# Invalid folders


def load_error(path: Path) -> str:
    with pytest.raises(ResultsError) as caught, unchanged(path.parent):
        Results.load(path)
    return str(caught.value)


def test_non_result_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    assert "nothing of this name" in load_error(tmp_path / "nowhere")
    assert "a file" in load_error(tmp_path / "file")
    assert "without manifest.json" in load_error(tmp_path / "empty")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored.results(tmp_path / "r", stored.FOUR[:2])
    return tmp_path / "r"


def rewrite(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    (folder / "ledger.jsonl").unlink()  # it does not match a manifest changed by hand


def test_newer_format_is_refused(folder: Path) -> None:
    rewrite(folder, format_version=5, uflip_version="9.9")
    message = load_error(folder)
    assert "of another version" in message
    assert "format_version 5, written by uflip 9.9" in message
    assert "format_version 1, which this uflip reads" in message


def test_newer_format_is_recognised_despite_other_changes(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"format": "uflip-results", "format_version": 7}')
    (folder / "ledger.jsonl").unlink()
    assert "format_version 7" in load_error(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ('{"format": "uflip-res', "not JSON"),
        ("[]", "got 'array'"),
        ("{}", "format None"),
        ('{"format": "something else", "format_version": 1}', "something else"),
        ('{"format": "uflip-results", "format_version": "1"}', "'$.format_version'"),
        (
            '{"format": "uflip-results", "format_version": 1}',
            "missing required field 'uflip_version'",
        ),
    ],
)
def test_damaged_manifest_is_an_error(folder: Path, text: str, message: str) -> None:
    (folder / "manifest.json").write_text(text)
    assert "have changed" in load_error(folder), "the ledger has the digest of the written manifest"
    (folder / "ledger.jsonl").unlink()
    assert message in load_error(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"plan": {}}, "got 'object', at '$.plan'"),
        ({"plan": ["0001"]}, "got 'str', at '$.plan[0]'"),
        ({"plan": [{"id": "0001"}]}, "missing required field 'micro_benchmark'"),
        ({"status": "sleeping"}, "sleeping"),
        ({"seed": None}, "'$.seed'"),
    ],
)
def test_manifest_with_wrong_values_is_an_error(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    rewrite(folder, **changes)
    assert message in load_error(folder)


@pytest.mark.parametrize("run_id", ["../../outside", "/etc/passwd", "a/b"])
def test_run_id_cannot_leave_folder(folder: Path, run_id: str) -> None:
    plan = json.loads((folder / "manifest.json").read_text())["plan"]
    rewrite(folder, plan=[plan[0] | {"id": run_id}])
    assert "a name that leads elsewhere" in load_error(folder)


@pytest.mark.parametrize("keep", [0, 3, 8, 0.3, 0.9, -1])
def test_truncated_run_file_is_reported(folder: Path, keep: float) -> None:
    path = Results.load(folder).runs[1].path
    content = path.read_bytes()
    size = int(len(content) * keep) if isinstance(keep, float) else keep
    path.write_bytes(content[:size])
    for ledger in (True, False):
        results = Results.load(folder)
        assert len(results.runs) == 1
        (warning,) = [each for each in results.warnings if each["code"] == "damaged"]
        assert path.name in warning["message"]
        assert warning["numbers"]["files"][0]["state"] == "damaged"
        if ledger:
            (folder / "ledger.jsonl").unlink()


@settings(deadline=None)
@given(position=st.floats(0.0, 1.0), cut=st.integers(1, 200))
def test_bytes_removed_inside_a_file_are_detected_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, position: float, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("lost")
    stored.results(folder / "r", stored.FOUR[:1], url="null")
    (folder / "r" / "ledger.jsonl").unlink()
    path = Results.load(folder / "r").runs[0].path
    content = path.read_bytes()
    start = 4 + int((len(content) - 8 - cut) * position)
    path.write_bytes(content[:start] + content[start + cut :])
    results = Results.load(folder / "r")
    if results.runs:
        assert len(results.runs[0].trace()) == 100
    else:
        assert path.name in str(results.warnings)


# Doubts


def run_arrays(**changes: Any) -> RunArrays:
    response = np.asarray(changes.pop("response_time_ns", [1000] * 100), dtype=np.uint64)
    fields: dict[str, Any] = {
        "micro_benchmark": "baseline",
        "spec": baseline("RR", time="consecutive"),
        "device": stored.device_info(),
        "harness": {"null_ns_per_io": 10.0},
        "stream": np.zeros(len(response), dtype=np.uint16),
        "submit_ns": np.arange(len(response), dtype=np.uint64) * 10_000,
        "response_time_ns": response,
        "measured_ns": response,
        "counters": {},
    }
    return RunArrays(**(fields | changes))


def raised(run: RunArrays) -> dict[str, dict[str, Any]]:
    answers = {check.code: check.check(run) for check in CHECKS}
    return {code: answer[1] for code, answer in answers.items() if answer is not None}


def test_steady_data_raise_no_warning() -> None:
    assert raised(run_arrays()) == {}


def test_each_check_raises_its_warning() -> None:
    assert raised(run_arrays(response_time_ns=[1000] * 29)) == {"few_ios": {"count": 29}}
    # 90 of 1 µs and 10 of 100 µs: mean 10.9, sample std 29.85, median 1
    wide = raised(run_arrays(response_time_ns=[1000] * 90 + [100_000] * 10))
    assert wide["wide_spread"] == {"mean_ns": 10_900, "std_ns": 29_850}
    assert wide["skewed"] == {"mean_ns": 10_900, "median_ns": 1000}
    slow = run_arrays(harness={"null_ns_per_io": 51.0})
    assert raised(slow) == {"harness_share": {"harness_ns": 51, "median_ns": 1000}}
    assert raised(run_arrays(harness={"null_ns_per_io": 50.0})) == {}
    assert (
        raised(run_arrays(harness={"null_ns_per_io": 51.0}, device=stored.device_info("sim"))) == {}
    )
    step = raised(run_arrays(response_time_ns=[1000] * 200 + [1500] * 200))
    assert step == {"unsteady": {"first_half_ns": 1000, "second_half_ns": 1500}}


def test_unreadable_pages_raise_a_warning() -> None:
    lost = raised(run_arrays(counters={"uncorrectable_reads": 3, "pages_read": 1000}))
    assert lost == {"unreadable": {"count": 3, "pages_read": 1000}}
    assert raised(run_arrays(counters={"uncorrectable_reads": 0, "pages_read": 1000})) == {}


def test_open_loop_falling_behind_is_reported() -> None:
    # One every 1 µs, 1.5 µs each, one after another: number i takes 1.5 + i / 2.
    arrivals = np.arange(1000, dtype=np.uint64) * 1000
    times = 1500 + np.arange(1000, dtype=np.uint64) * 500
    overload = {"submit_ns": arrivals, "response_time_ns": times}
    spec = baseline("RR", time="fixed", interval=1000)
    expected = raised(run_arrays(spec=spec, **overload))["falling_behind"]
    assert expected == {"behind_ns": 1500 + 949.5 * 500, "lasted_ns": 999_000}
    assert "falling_behind" not in raised(run_arrays(spec=baseline("RR"), **overload))
    steady = overload | {"response_time_ns": np.full(1000, 1500, dtype=np.uint64)}
    assert "falling_behind" not in raised(run_arrays(spec=spec, **steady))
    # With a parallel closed loop that is quick the same arrivals fall behind too.
    quick = {"submit_ns": arrivals, "response_time_ns": np.full(1000, 900, dtype=np.uint64)}
    for open_loop, falls_behind in ((overload, True), (steady, False)):
        other = overload if open_loop is steady else quick
        arrays = {
            name: np.concatenate([other[name], open_loop[name]])
            for name in ("submit_ns", "response_time_ns")
        }
        stream = np.repeat(np.array([0, 1], dtype=np.uint16), 1000)
        concurrent = parallel(baseline("SW"), spec)
        warnings = raised(run_arrays(spec=concurrent, stream=stream, **arrays))
        assert warnings.get("falling_behind") == (expected if falls_behind else None)


def test_startup_only_run_raises_no_false_warning() -> None:
    nothing = np.empty(0, dtype=np.uint64)
    assert raised(run_arrays(measured_ns=nothing)) == {"few_ios": {"count": 0}}


def test_achieved_pauses_of_hand_worked_series() -> None:
    # Two streams of three I/Os of 100 ns; pauses of 50, 60 and of 70, 80 between them.
    run = run_arrays(
        spec=baseline("RR", time="pause", pause=40),
        stream=np.array([0, 0, 0, 1, 1, 1], dtype=np.uint16),
        submit_ns=np.array([0, 150, 310, 5, 175, 355], dtype=np.uint64),
        response_time_ns=[100] * 6,
    )
    assert achieved_pauses(run).tolist() == [50, 60, 70, 80]
    assert raised(run)["pause_off"] == {"asked_ns": 40, "achieved_median_ns": 65}
    burst = run_arrays(
        spec=baseline("RR", time="burst", pause=40, burst=2),
        submit_ns=np.array([0, 100, 240, 340, 480], dtype=np.uint64),
        response_time_ns=[100] * 5,
    )
    assert achieved_pauses(burst).tolist() == [40, 40]
    assert "pause_off" not in raised(burst)


@pytest.mark.parametrize("change", [{"time": "pause"}, {"time": "burst", "burst": 7}])
@pytest.mark.parametrize(("degree", "depth"), [(1, 1), (3, 1), (2, 4)])
def test_simulated_pauses_are_exact(change: dict[str, Any], degree: int, depth: int) -> None:
    more = {"parallel_degree": degree, "queue_depth": depth} | change
    spec = baseline("RR", io_size=4096, io_count=50, pause="1ms", **more)
    with open_device("sim:demo") as device:
        trace = device.run(spec)
    run = run_arrays(
        spec=read_spec(trace.spec_json),
        stream=as_array(trace, "stream"),
        submit_ns=as_array(trace, "submit_ns"),
        response_time_ns=as_array(trace, "response_time_ns"),
        measured_ns=measured_column(trace),
    )
    pauses = achieved_pauses(run)
    per_stream = 49 if change["time"] == "pause" else 49 // 7
    assert pauses.tolist() == [1_000_000] * (per_stream * degree)


def test_warnings_are_merged_and_stored(tmp_path: Path) -> None:
    runs = [stored.baseline_run(number, "SR", io_count=20 + number) for number in (1, 2, 3)]
    results = stored.results(tmp_path / "r", [*runs, stored.baseline_run(4, "RR")])
    (few,) = (warning for warning in results.warnings if warning["code"] == "few_ios")
    assert few["numbers"]["runs"] == [run.id for run in runs]
    assert few["numbers"]["worst"] == {"run": runs[0].id, "count": 21}
    assert few["message"].startswith("In 3 of 4 runs ")
    assert few["advice"]
    assert (
        results.warnings == json.loads((tmp_path / "r" / "manifest.json").read_text())["warnings"]
    )


def test_condition_warnings_of_real_devices() -> None:
    device = stored.device_info(io="buffered", data="zeros")
    host = Host(load_average_1min=3.0, cpus_usable=2)
    state = DeviceState("as-is", None, None, None)
    assert [doubt.code for doubt in condition_warnings(device, host, state)] == [
        "state_not_enforced",
        "buffered_io",
        "compressible_data",
        "busy_host",
    ]
    enforced = DeviceState("random", "a", "enforced", {})
    opened = stored.device_info(io="O_DIRECT", data="random")
    assert condition_warnings(opened, Host(), enforced) == []
    assert condition_warnings(stored.device_info("sim", data="zeros"), host, state) == []
    for used, doubts in ((None, []), (100, []), (101, ["beyond_endurance"])):
        worn = with_details(opened, wear=DeviceWear(percentage_used=used))
        assert [doubt.code for doubt in condition_warnings(worn, Host(), enforced)] == doubts


def test_outlasting_effect_warns_about_pause() -> None:
    effect = {"reads_affected": 1024, "lingering_ns": 10**8, "pause_ns": 2 * 10**8, "over": True}
    assert interference_warnings(None) == interference_warnings(effect) == []
    (doubt,) = interference_warnings(effect | {"over": False})
    assert doubt.code == "pause_too_short"
    assert doubt.numbers["pause_ns"] == 2 * 10**8
    assert "--pause" in doubt.advice


def test_buffered_file_is_marked(tmp_path: Path) -> None:
    run = stored.baseline_run(1, "RW", target_size=1 << 20)
    url = f"file:{tmp_path / 'scratch.bin'}"
    with open_device(url, size=1 << 20, buffered=True, data="zeros") as device:
        writer = stored.writer(tmp_path / "r", [run], device)
        writer.commit(run, device.run(run.spec))
        writer.finish("complete")
    results = Results.load(tmp_path / "r")
    assert {"buffered_io", "compressible_data"} <= {doubt["code"] for doubt in results.warnings}
    assert results.runs[0].trace().causes == []
    assert results.runs[0].response_time_ns().min() > 0
