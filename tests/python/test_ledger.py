"""Verification of results: is every change of a file found and named?

Damage is made by hand: bits are flipped, files swapped, copied and cut, a writer is killed at every
system call. Afterwards a reader shows the content that was written before, or nothing.
"""

import json
import os
import random
import shutil
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import stored
from command_line import uflip

from uflip import _native
from uflip.data import manifest
from uflip.data.ledger import ManifestEntry
from uflip.data.ledger import line as line_of
from uflip.device.opener import open_device
from uflip.errors import ResultsError
from uflip.results import Results, ResultsWriter, integrity, summary
from uflip.results.integrity import FolderVerification, examine, read_ledger, verify
from uflip.results.writer import LedgerWriter

RUNS = [
    stored.baseline_run(1, "SR"),
    stored.baseline_run(2, "RW", io_ignore=10, queue_depth=4),
    stored.mix_run(3, "SR", "RW", 3),
]
IDS = [run.id for run in RUNS]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "r"
    stored.results(path, RUNS, status="interrupted")
    return path


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "r")
    return tmp_path / "r"


def content(folder: Path) -> dict[str, Any]:
    """Return the content of a folder: its manifest, and every I/O of its runs."""
    results = Results.load(folder)
    contents: dict[str, Any] = {"manifest": manifest.encode(results.manifest)}
    for run in results.runs:
        trace = run.trace()
        contents[run.id] = [trace.spec_json, trace.metadata_json] + [
            np.asarray(trace.column(name)).tobytes() for name in trace.columns
        ]
    return contents


def states(verification: FolderVerification) -> dict[str, str]:
    return {verdict.file: verdict.state for verdict in verification.verdicts}


def path_of(folder: Path, ordinal: int) -> Path:
    return folder / "runs" / f"{IDS[ordinal]}.parquet"


# Undamaged folders


def test_new_folder_proves_every_file(folder: Path) -> None:
    assert states(examine(folder)) == {
        "manifest.json": "proven",
        "ledger.jsonl": "proven",
        **{f"runs/{run}.parquet": "proven" for run in IDS},
    }
    assert not [w for w in Results.load(folder).warnings if w["code"] in ("damaged", "unproven")]


def test_ledger_links_each_line_to_previous_lines(folder: Path) -> None:
    lines = (folder / "ledger.jsonl").read_text().splitlines()
    link = ""
    for line in lines:
        body, _, link_text = line.partition(',"link":')
        link = _native.digest(f"{link}{body}".encode())
        assert link_text == f'"{link}"}}'
    entries = [json.loads(line) for line in lines]
    assert [line["kind"] for line in entries] == [
        "begin",
        "manifest",
        "run",
        "run",
        "run",
        "manifest",
    ]
    for line, run in zip(entries[2:5], IDS, strict=True):
        file = (folder / "runs" / f"{run}.parquet").read_bytes()
        assert (line["run"], line["bytes"], line["digest"]) == (
            run,
            len(file),
            _native.digest(file),
        )
    document = json.loads((folder / "manifest.json").read_text())
    assert entries[0]["folder_id"] == document["folder_id"]
    assert entries[5]["digest"] == _native.digest((folder / "manifest.json").read_bytes())
    meta = json.loads(Results.load(folder).runs[0].trace().metadata_json)
    assert (meta["id"], meta["folder_id"]) == (IDS[0], document["folder_id"])


# Bits that flip


def test_flipped_bit_is_detected_or_harmless(folder: Path, original: Path) -> None:
    """In the manifest it costs the folder, in a run that run, in the ledger nothing."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng, before = random.Random(seed), content(original)
    files = [folder / "manifest.json", folder / "ledger.jsonl", *(folder / "runs").iterdir()]
    for _ in range(FLIPS):
        path = rng.choice(files)
        intact = path.read_bytes()
        bit = rng.randrange(8 * len(intact))
        flipped = bytearray(intact)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        name = str(path.relative_to(folder))
        try:
            after = content(folder)
        except ResultsError:
            after = None
        assert (after is None) == (name == "manifest.json"), (name, bit)
        if after is not None:
            verification, lost = examine(folder), path.stem if name.startswith("runs") else None
            assert states(verification)[name] != "proven", (name, bit)
            assert after == {run: value for run, value in before.items() if run != lost}, (
                name,
                bit,
            )
            codes = ("damaged", "unproven")
            warned = [w for w in Results.load(folder).warnings if w["code"] in codes]
            assert name in json.dumps(warned), (name, bit)
        path.write_bytes(intact)
    assert content(folder) == before


FLIPS = int(os.environ.get("UFLIP_FLIPS", "600"))


def test_damaged_run_affects_only_itself(folder: Path, tmp_path: Path) -> None:
    path = path_of(folder, 1)
    flipped = bytearray(path.read_bytes())
    flipped[len(flipped) // 2] ^= 4
    path.write_bytes(flipped)
    results = Results.load(folder)
    assert [run.id for run in results.runs] == [IDS[0], IDS[2]]
    assert results.missing == [IDS[1]]
    document = summary(results)
    assert [w["code"] for w in document["warnings"]][-1] == "damaged"
    outcome = uflip("show", folder)
    assert outcome.code == 0
    assert path.name in "".join(outcome.out.split()), "lines are broken where they are full"
    page = tmp_path / "page.html"
    assert uflip("report", folder, "-o", page).code == 0
    assert path.name in page.read_text()
    assert uflip("export", folder, "--out", tmp_path / "tables").code == 0
    assert IDS[1] not in (tmp_path / "tables" / "summary.csv").read_text()


# Files in the wrong place


def test_run_copied_over_another_is_foreign(folder: Path) -> None:
    shutil.copy(path_of(folder, 0), path_of(folder, 1))
    verdict = examine(folder).runs[IDS[1]]
    assert (verdict.state, verdict.reason) == ("foreign", f"it is run {IDS[0]}")
    assert [run.id for run in Results.load(folder).runs] == [IDS[0], IDS[2]]


def test_run_of_another_folder_is_foreign(folder: Path, tmp_path: Path) -> None:
    stored.results(tmp_path / "other", RUNS)
    shutil.copy(path_of(tmp_path / "other", 1), path_of(folder, 1))
    verdict = examine(folder).runs[IDS[1]]
    assert verdict.state == "foreign"
    assert verdict.reason == f"it is run {IDS[1]} of another folder"


@pytest.mark.parametrize("name", ["manifest.json", "ledger.jsonl"])
def test_document_of_another_folder_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    stored.results(tmp_path / "other", RUNS)
    shutil.copy(tmp_path / "other" / name, folder / name)
    with pytest.raises(ResultsError) as caught:
        Results.load(folder)
    assert "have changed" in caught.value.got
    assert states(examine(folder))["manifest.json"] == "damaged"


def test_manifest_rollback_is_detected(folder: Path) -> None:
    """A kill between line and file looks the same once; twice, it was not a kill."""
    for worth in ("unproven", "damaged"):
        current = read_ledger(folder)
        assert current is not None
        newer = _native.digest(worth.encode())
        text, _ = line_of(ManifestEntry(bytes=5, digest=newer, plan=newer), current.link)
        with (folder / "ledger.jsonl").open("ab") as file:
            file.write(text)
        assert states(examine(folder))["manifest.json"] == worth
    assert "manifest.json" in uflip("verify", folder).out


def test_run_without_ledger_line_is_unproven_or_foreign(folder: Path, tmp_path: Path) -> None:
    """As in a folder that was put together by hand."""
    (folder / "ledger.jsonl").unlink()
    assert set(states(examine(folder)).values()) == {"unproven"}
    assert content(folder).keys() == {"manifest", *IDS}
    stored.results(tmp_path / "other", RUNS)
    shutil.copy(path_of(tmp_path / "other", 1), path_of(folder, 1))
    assert examine(folder).runs[IDS[1]].state == "foreign"


def test_removed_run_is_missing(folder: Path) -> None:
    path_of(folder, 1).unlink()
    assert examine(folder).runs[IDS[1]].state == "missing"
    assert [run.id for run in Results.load(folder).runs] == [IDS[0], IDS[2]]


@pytest.mark.parametrize("made", ["folder", "pipe", "empty", "link to /dev/zero"])
def test_non_file_in_place_of_run_is_damaged(folder: Path, made: str) -> None:
    path = path_of(folder, 1)
    path.unlink()
    if made == "folder":
        path.mkdir()
    elif made == "pipe":
        os.mkfifo(path)
    elif made == "empty":
        path.touch()
    else:
        path.symlink_to("/dev/zero")
    assert examine(folder).runs[IDS[1]].state == "damaged"
    assert len(Results.load(folder).runs) == 2


# A ledger that was cut


def test_truncated_ledger_proves_less_and_keeps_content(folder: Path, original: Path) -> None:
    path, before = folder / "ledger.jsonl", content(original)
    whole = path.read_bytes()
    ends = [at for at in range(len(whole) + 1) if at == 0 or whole[at - 1 : at] == b"\n"]
    cuts = {*ends, *range(0, len(whole), 41), len(whole) - 1}
    for cut in sorted(cuts):
        path.write_bytes(whole[:cut])
        verification = examine(folder)
        assert {verdict.state for verdict in verification.verdicts} <= {"proven", "unproven"}, cut
        proven = sum(verdict.state == "proven" for verdict in verification.runs.values())
        assert proven == sum(f'"{run}"'.encode() in whole[: ends_before(whole, cut)] for run in IDS)
        assert content(folder) == before, cut


def ends_before(whole: bytes, cut: int) -> int:
    return whole.rfind(b"\n", 0, cut) + 1


# Kills

KILLABLE = ("open", "write", "fsync", "rename", "replace", "mkdir", "unlink", "truncate", "close")


def killed_at(call: int, work: Any, acknowledge: int) -> bool:
    """Work in a process that dies before its system call number `call`; return whether it died."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in (0, 9), "neither killed nor done"
        return os.waitstatus_to_exitcode(status) == 9
    remaining = call
    real = {name: getattr(os, name) for name in KILLABLE}

    def intercept(name: str) -> Any:
        def counted_call(*args: Any, **kwargs: Any) -> Any:
            nonlocal remaining
            remaining -= 1
            if remaining < 0:
                os._exit(9)
            return real[name](*args, **kwargs)

        return counted_call

    for name in KILLABLE:
        setattr(os, name, intercept(name))
    try:
        work(lambda text: real["write"](acknowledge, f"{text}\n".encode()))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def test_kill_at_any_system_call_keeps_acknowledged_runs(tmp_path: Path) -> None:
    with open_device("sim:demo") as device:
        traces = [device.run(run.spec) for run in RUNS]

        def fill(folder: Path, acknowledge: Any) -> None:
            writer = stored.writer(folder, RUNS, device)
            for run, trace in zip(RUNS, traces, strict=True):
                writer.commit(run, trace)
                acknowledge(run.id)
            writer.finish("complete")

        call, died = 0, True
        while died:
            folder = tmp_path / str(call)
            reading, writing = os.pipe()
            died = killed_at(
                call, lambda acknowledge, folder=folder: fill(folder, acknowledge), writing
            )
            os.close(writing)
            with os.fdopen(reading) as lines:
                acknowledged = lines.read().split()
            if (folder / "manifest.json").exists():
                check_killed(folder, acknowledged, traces, finished=not died)
            else:
                assert not acknowledged, call
            call += 1
    assert call > 40, "the writer was watched"


# Between the line of the manifest and its new name: truncate; open, write, fsync, close; fsync.
KILLS_OF_REPLAN = 6
PLAN = [msgspec.to_builtins(run) for run in RUNS]


def check_unharmed(folder: Path) -> None:
    """Check that every file is proven, except a manifest that a kill left without its name."""
    verdicts = [each for each in examine(folder).verdicts if each.state != "proven"]
    assert all("which was lost or never completed" in each.reason for each in verdicts), (
        folder,
        verdicts,
    )
    assert {each.file for each in verdicts} <= {"manifest.json"}, (folder, verdicts)


def check_killed(
    folder: Path, acknowledged: list[str], traces: list[_native.Trace], *, finished: bool
) -> None:
    """Check that acknowledged runs exist, nothing is damaged, and the others can be measured."""
    check_unharmed(folder)
    loaded = [run.id for run in Results.load(folder).runs]
    assert loaded[: len(acknowledged)] == acknowledged, folder
    assert len(loaded) - len(acknowledged) in (0, 1), folder
    if finished or Results.load(folder).manifest.status == "complete":
        return
    for _ in range(2):  # killed again right after resuming, twice
        resumed = ResultsWriter.resume(folder)
        assert killed_at(KILLS_OF_REPLAN, lambda _, resumed=resumed: resumed.replan(PLAN), 2)
        resumed.close()
        check_unharmed(folder)
    writer = ResultsWriter.resume(folder)
    assert writer.done == loaded
    writer.replan(PLAN)
    for run, trace in zip(RUNS, traces, strict=True):
        if run.id not in writer.done:
            writer.commit(run, trace)
    writer.finish("complete")
    assert set(states(examine(folder)).values()) == {"proven"}, folder
    assert len(Results.load(folder).runs) == len(RUNS)


def test_full_disk_between_line_and_file_loses_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_device("sim:demo") as device:
        writer = stored.writer(tmp_path / "r", RUNS, device)
        traces = [device.run(run.spec) for run in RUNS]
    writer.commit(RUNS[0], traces[0])

    def fail(temporary: Path, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("uflip.safe_files.publish", fail)
    with pytest.raises(ResultsError):
        writer.commit(RUNS[1], traces[1])
    monkeypatch.undo()
    writer.finish("failed")
    assert set(states(examine(tmp_path / "r")).values()) == {"proven"}
    assert [run.id for run in Results.load(tmp_path / "r").runs] == IDS[:1]


def test_partial_ledger_line_is_rolled_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "ledger.jsonl"
    whole = path.read_bytes()
    verification = examine(folder)
    assert verification.ledger is not None
    writer = LedgerWriter.resume(folder, verification.ledger, dangling=False)
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, text: real(descriptor, text[:10]))
    with pytest.raises(OSError, match="part of a line"):
        writer.append(ManifestEntry(0, "0" * 64, "0" * 64))
    monkeypatch.undo()
    assert path.read_bytes() == whole


# Resuming


def test_resume_remeasures_damaged_run_and_keeps_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert uflip("run", "sim:demo", "--scale", "quick", "--only", "order", "--out", "r").code == 0
    before = {run.id: run.path.read_bytes() for run in Results.load("r").runs}
    assert uflip("run", "--resume", "r").code == 5, "complete, and whole"
    run = Results.load("r").runs[2]
    bad = bytearray(run.path.read_bytes())
    bad[100] ^= 1
    run.path.write_bytes(bad)
    outcome = uflip("verify", "r")
    assert (outcome.code, run.path.name in outcome.out) == (5, True)
    assert uflip("run", "--resume", "r", "--quiet").code == 0
    assert uflip("verify", "r").code == 0
    aside = run.path.with_name(f"{run.path.name}.damaged-1")
    assert aside.read_bytes() == bad
    results = Results.load("r")
    assert (results.status, results.missing) == ("complete", [])
    for each in results.runs:
        if each.id != run.id:
            assert each.path.read_bytes() == before[each.id]
    assert not [w for w in results.warnings if w["code"] in ("damaged", "unproven")]


# The stored folder

GOLDEN = Path(__file__).parents[1] / "golden" / "results"


def test_golden_folder_loads_proven() -> None:
    """If it fails, a format has changed: see the rule in docs/reference/results-format.md."""
    results = Results.load(GOLDEN)
    assert {verdict.state for verdict in results.verification.verdicts} == {"proven"}
    assert (results.missing, results.manifest.durability) == ([], "cached")
    document = summary(results)
    assert [run["statistics"]["count"] for run in document["baselines"]] == [100, 180]


def test_folder_without_ledger_loads_unproven(folder: Path) -> None:
    (folder / "ledger.jsonl").unlink()
    results = Results.load(folder)
    assert [run.id for run in results.runs] == IDS
    assert {verdict.state for verdict in results.verification.verdicts} == {"unproven"}
    assert results.warnings[-1]["code"] == "unproven"
    assert uflip("verify", folder).code == 0


def test_folder_without_ledger_can_be_resumed(folder: Path) -> None:
    (folder / "ledger.jsonl").unlink()
    path_of(folder, 2).unlink()
    writer = ResultsWriter.resume(folder)
    assert writer.done == IDS[:2]
    writer.replan([msgspec.to_builtins(entry) for entry in writer.manifest.plan])
    with open_device("sim:demo") as device:
        writer.commit(RUNS[2], device.run(RUNS[2].spec))
    writer.finish("complete")
    results = Results.load(folder)
    assert [verdict.state for verdict in results.verification.verdicts] == [
        "proven", "proven", "unproven", "unproven", "proven"
    ]  # fmt: skip


# The command


def test_verify_reports_state_of_each_file(folder: Path) -> None:
    shutil.copy(path_of(folder, 0), path_of(folder, 1))
    path_of(folder, 2).unlink()
    outcome = uflip("verify", folder, "--json")
    assert outcome.code == ResultsError.exit_code
    document = json.loads(outcome.out)
    (report,) = document["folders"]
    assert (report["proven"], report["unproven"], report["lost"]) == (3, 0, 2)
    by_file = {file["file"]: file for file in report["files"]}
    assert by_file[f"runs/{IDS[1]}.parquet"]["state"] == "foreign"
    assert by_file[f"runs/{IDS[2]}.parquet"]["costs"] == "this run"


def test_verify_reports_files_without_planned_run(folder: Path, tmp_path: Path) -> None:
    assert uflip("verify", folder).code == 0
    # A run of another benchmark, and a file that is not a run.
    stored.results(tmp_path / "other", [stored.baseline_run(9, "RR")], status="interrupted")
    foreign_run = next((tmp_path / "other" / "runs").iterdir())
    shutil.copy(foreign_run, folder / "runs")
    (folder / "runs" / "notes.parquet").write_text("nothing")
    outcome = uflip("verify", folder)
    assert outcome.code == ResultsError.exit_code
    for name in (foreign_run.name, "notes.parquet"):
        assert f"foreign   {folder}/runs/{name}: the plan has no such run" in outcome.out
    assert "--resume" not in outcome.out, "no run of the plan is lost"
    # Nothing of them is shown, and nothing else suffers from them.
    assert [run.id for run in Results.load(folder).runs] == IDS


def test_verify_continues_after_damaged_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text("{}")
    outcome = uflip("verify", folder)
    assert outcome.code == ResultsError.exit_code
    assert "manifest.json" in outcome.out
    assert f"{len(IDS) + 1} of {len(IDS) + 2} files proven" in outcome.out


def test_verify_accepts_several_folders_and_refuses_empty(folder: Path, tmp_path: Path) -> None:
    assert uflip("verify", folder, GOLDEN).code == 0
    (tmp_path / "empty").mkdir()
    assert uflip("verify", tmp_path / "empty").code == ResultsError.exit_code


@pytest.fixture
def open_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    arguments = ("oc", "sim:dfc", "--scale", "quick", "--only", "oc2", "--out", "r")
    assert uflip(*arguments).code == 0
    return tmp_path / "r"


def test_verify_open_channel_folder(open_channel: Path) -> None:
    verdicts = verify(open_channel)
    assert {verdict.state for verdict in verdicts} == {"proven"}
    jobs = sorted((open_channel / "runs").iterdir())
    assert len(jobs) == len(verdicts) - 2
    flipped = bytearray(jobs[0].read_bytes())
    flipped[50] ^= 1
    jobs[0].write_bytes(flipped)
    shutil.copy(jobs[1], jobs[2])
    lost = {
        Path(verdict.file).name: verdict.state for verdict in verify(open_channel) if verdict.reason
    }
    assert lost == {jobs[0].name: "damaged", jobs[2].name: "foreign"}


def test_unreadable_file_is_not_judged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_of(folder, 1)
    path.write_bytes(b"as if it could not be read")
    access = os.access
    monkeypatch.setattr(os, "access", lambda name, mode: name != path and access(name, mode))
    for command in (("verify", folder), ("run", "--resume", folder)):
        outcome = uflip(*command)
        assert (outcome.code, "No permission to read" in outcome.err) == (5, True), outcome.err
        assert str(path) in outcome.err
    assert path.read_bytes() == b"as if it could not be read"


def test_unreadable_folder_does_not_stop_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    shutil.copytree(folder, closed)

    def names_in(directory: Path) -> list[str]:
        if directory.parent == closed:
            raise PermissionError(13, "Permission denied", str(directory))
        return real_runs_in(directory)

    real_runs_in = integrity.runs_in
    monkeypatch.setattr(integrity, "runs_in", names_in)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # as without permissions
    outcome = uflip("verify", closed, folder)
    assert (outcome.code, "Permission denied" in outcome.err) == (5, True), outcome.err
    assert f"{folder}: " in outcome.out


def test_verify_skips_state_files_beside_results(tmp_path: Path) -> None:
    """`uflip verify results/*`: states of devices lie there as soon as a file was measured."""
    stored.results(tmp_path / "results" / "a")
    (tmp_path / "results" / "states").mkdir()
    (tmp_path / "results" / "states" / "file-x.bin.json").write_text("{}")
    (tmp_path / "results" / "devices.json").write_text("{}")
    everything = sorted(map(str, (tmp_path / "results").iterdir()))
    outcome = uflip("verify", *everything)
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("not results: a file or folder that uflip keeps next to them") == 2
    document = json.loads(uflip("verify", *everything, "--json").out)
    assert ["skipped" in each for each in document["folders"]] == [False, True, True]


def test_verify_continues_after_missing_folder(tmp_path: Path) -> None:
    stored.results(tmp_path / "a")
    stored.results(tmp_path / "c")
    names = [str(tmp_path / name) for name in ("a", "nowhere", "c")]
    outcome = uflip("verify", *names)
    assert outcome.code == 5
    assert "files proven" in outcome.out.splitlines()[0]
    assert outcome.out.splitlines()[1].startswith(names[2])
    assert names[1] in outcome.err
    document = json.loads(uflip("verify", *names, "--json").out)
    assert [each["results"] for each in document["folders"]] == names
    assert document["folders"][1]["error"]["exit_code"] == 5
