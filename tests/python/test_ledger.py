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
from uflip.data.ledger import Document
from uflip.data.ledger import line as line_of
from uflip.device.opener import open_device
from uflip.errors import ResultsError
from uflip.results import Results, ResultsWriter, integrity, ledger, summary
from uflip.results.integrity import FolderProof, examine, read_ledger, verify

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
    """Everything that a folder says: its manifest, and every I/O of its runs."""
    results = Results.load(folder)
    said: dict[str, Any] = {"manifest": manifest.encode(results.manifest)}
    for run in results.runs:
        trace = run.trace()
        said[run.id] = [trace.spec_json, trace.metadata_json] + [
            np.asarray(trace.column(name)).tobytes() for name in trace.columns
        ]
    return said


def states(proof: FolderProof) -> dict[str, str]:
    return {verdict.file: verdict.state for verdict in proof.verdicts}


def path_of(folder: Path, ordinal: int) -> Path:
    return folder / "runs" / f"{IDS[ordinal]}.parquet"


# Undamaged folders


def test_every_file_of_a_new_folder_is_proven(folder: Path) -> None:
    assert states(examine(folder)) == {
        "manifest.json": "proven",
        "ledger.jsonl": "proven",
        **{f"runs/{run}.parquet": "proven" for run in IDS},
    }
    assert not [w for w in Results.load(folder).warnings if w["code"] in ("damaged", "unproven")]


def test_a_line_binds_its_file_to_the_lines_before(folder: Path) -> None:
    lines = (folder / "ledger.jsonl").read_text().splitlines()
    link = ""
    for line in lines:
        body, _, rest = line.partition(',"link":')
        link = _native.digest(f"{link}{body}".encode())
        assert rest == f'"{link}"}}'
    said = [json.loads(line) for line in lines]
    assert [line["kind"] for line in said] == ["begin", "manifest", "run", "run", "run", "manifest"]
    for line, run in zip(said[2:5], IDS, strict=True):
        file = (folder / "runs" / f"{run}.parquet").read_bytes()
        assert (line["run"], line["bytes"], line["digest"]) == (
            run,
            len(file),
            _native.digest(file),
        )
    kept = json.loads((folder / "manifest.json").read_text())
    assert said[0]["folder_id"] == kept["folder_id"]
    assert said[5]["digest"] == _native.digest((folder / "manifest.json").read_bytes())
    meta = json.loads(Results.load(folder).runs[0].trace().metadata_json)
    assert (meta["id"], meta["folder_id"]) == (IDS[0], kept["folder_id"])


# Bits that flip


def test_a_flipped_bit_is_found_or_changes_nothing(folder: Path, original: Path) -> None:
    """In the manifest it costs the folder, in a run that run, in the ledger nothing."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng, before = random.Random(seed), content(original)
    files = [folder / "manifest.json", folder / "ledger.jsonl", *(folder / "runs").iterdir()]
    for _ in range(FLIPS):
        path = rng.choice(files)
        kept = path.read_bytes()
        place = rng.randrange(8 * len(kept))
        flipped = bytearray(kept)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        name = str(path.relative_to(folder))
        try:
            after = content(folder)
        except ResultsError:
            after = None
        assert (after is None) == (name == "manifest.json"), (name, place)
        if after is not None:
            proof, lost = examine(folder), path.stem if name.startswith("runs") else None
            assert states(proof)[name] != "proven", (name, place)
            assert after == {run: said for run, said in before.items() if run != lost}, (
                name,
                place,
            )
            told = ("damaged", "unproven")
            warned = [w for w in Results.load(folder).warnings if w["code"] in told]
            assert name in json.dumps(warned), (name, place)
        path.write_bytes(kept)
    assert content(folder) == before


FLIPS = int(os.environ.get("UFLIP_FLIPS", "600"))


def test_a_lost_run_costs_nothing_but_itself(folder: Path, tmp_path: Path) -> None:
    path = path_of(folder, 1)
    flipped = bytearray(path.read_bytes())
    flipped[len(flipped) // 2] ^= 4
    path.write_bytes(flipped)
    results = Results.load(folder)
    assert [run.id for run in results.runs] == [IDS[0], IDS[2]]
    assert results.missing == [IDS[1]]
    document = summary(results)
    assert [w["code"] for w in document["warnings"]][-1] == "damaged"
    shown = uflip("show", folder)
    assert shown.code == 0
    assert path.name in "".join(shown.out.split()), "lines are broken where they are full"
    page = tmp_path / "page.html"
    assert uflip("report", folder, "-o", page).code == 0
    assert path.name in page.read_text()
    assert uflip("export", folder, "--out", tmp_path / "tables").code == 0
    assert IDS[1] not in (tmp_path / "tables" / "summary.csv").read_text()


# Files in the wrong place


def test_a_run_copied_over_another_is_named(folder: Path) -> None:
    shutil.copy(path_of(folder, 0), path_of(folder, 1))
    verdict = examine(folder).runs[IDS[1]]
    assert (verdict.state, verdict.reason) == ("foreign", f"it is run {IDS[0]}")
    assert [run.id for run in Results.load(folder).runs] == [IDS[0], IDS[2]]


def test_a_run_of_another_folder_is_named(folder: Path, tmp_path: Path) -> None:
    stored.results(tmp_path / "other", RUNS)
    shutil.copy(path_of(tmp_path / "other", 1), path_of(folder, 1))
    verdict = examine(folder).runs[IDS[1]]
    assert verdict.state == "foreign"
    assert verdict.reason == f"it is run {IDS[1]} of another folder"


@pytest.mark.parametrize("name", ["manifest.json", "ledger.jsonl"])
def test_a_document_of_another_folder_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    stored.results(tmp_path / "other", RUNS)
    shutil.copy(tmp_path / "other" / name, folder / name)
    with pytest.raises(ResultsError) as caught:
        Results.load(folder)
    assert "have changed" in caught.value.got
    assert states(examine(folder))["manifest.json"] == "damaged"


def test_a_manifest_that_was_rolled_back_is_not_proven(folder: Path) -> None:
    """A kill between line and file looks the same, once; twice it is no kill."""
    for worth in ("unproven", "damaged"):
        found = read_ledger(folder)
        assert found is not None
        newer = _native.digest(worth.encode())
        text, _ = line_of(Document(bytes=5, digest=newer, plan=newer), found.link)
        with (folder / "ledger.jsonl").open("ab") as file:
            file.write(text)
        assert states(examine(folder))["manifest.json"] == worth
    assert "manifest.json" in uflip("verify", folder).out


def test_a_run_without_a_line_is_shown_unproven_and_one_of_another_folder_is_not(
    folder: Path, tmp_path: Path
) -> None:
    """As in a folder that was put together by hand."""
    (folder / "ledger.jsonl").unlink()
    assert set(states(examine(folder)).values()) == {"unproven"}
    assert content(folder).keys() == {"manifest", *IDS}
    stored.results(tmp_path / "other", RUNS)
    shutil.copy(path_of(tmp_path / "other", 1), path_of(folder, 1))
    assert examine(folder).runs[IDS[1]].state == "foreign"


def test_a_run_that_was_removed_is_missing(folder: Path) -> None:
    path_of(folder, 1).unlink()
    assert examine(folder).runs[IDS[1]].state == "missing"
    assert [run.id for run in Results.load(folder).runs] == [IDS[0], IDS[2]]


@pytest.mark.parametrize("made", ["folder", "pipe", "empty", "link to /dev/zero"])
def test_what_is_no_file_costs_its_run(folder: Path, made: str) -> None:
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


def test_a_cut_ledger_proves_less_and_changes_nothing(folder: Path, original: Path) -> None:
    path, before = folder / "ledger.jsonl", content(original)
    whole = path.read_bytes()
    ends = [at for at in range(len(whole) + 1) if at == 0 or whole[at - 1 : at] == b"\n"]
    places = {*ends, *range(0, len(whole), 41), len(whole) - 1}
    for place in sorted(places):
        path.write_bytes(whole[:place])
        proof = examine(folder)
        assert {verdict.state for verdict in proof.verdicts} <= {"proven", "unproven"}, place
        proven = sum(verdict.state == "proven" for verdict in proof.runs.values())
        assert proven == sum(
            f'"{run}"'.encode() in whole[: ends_before(whole, place)] for run in IDS
        )
        assert content(folder) == before, place


def ends_before(whole: bytes, place: int) -> int:
    return whole.rfind(b"\n", 0, place) + 1


# Kills

KILLABLE = ("open", "write", "fsync", "rename", "replace", "mkdir", "unlink", "truncate", "close")


def killed_at(call: int, work: Any, acknowledge: int) -> bool:
    """Do work in a process that dies before its system call number `call`; say whether it died."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in (0, 9), "neither killed nor done"
        return os.waitstatus_to_exitcode(status) == 9
    left = call
    real = {name: getattr(os, name) for name in KILLABLE}

    def before(name: str) -> Any:
        def made(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os._exit(9)
            return real[name](*args, **kwargs)

        return made

    for name in KILLABLE:
        setattr(os, name, before(name))
    try:
        work(lambda text: real["write"](acknowledge, f"{text}\n".encode()))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def test_a_kill_at_any_call_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with open_device("sim:demo") as device:
        traces = [device.run(run.spec) for run in RUNS]

        def fill(folder: Path, said: Any) -> None:
            writer = stored.writer(folder, RUNS, device)
            for run, trace in zip(RUNS, traces, strict=True):
                writer.commit(run, trace)
                said(run.id)
            writer.finish("complete")

        call, died = 0, True
        while died:
            folder = tmp_path / str(call)
            reading, writing = os.pipe()
            died = killed_at(call, lambda said, folder=folder: fill(folder, said), writing)
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
    """All is proven, but that a kill may have kept a manifest from its name after its line."""
    verdicts = [each for each in examine(folder).verdicts if each.state != "proven"]
    assert all("a kill kept that" in each.reason for each in verdicts), (folder, verdicts)
    assert {each.file for each in verdicts} <= {"manifest.json"}, (folder, verdicts)


def check_killed(
    folder: Path, acknowledged: list[str], traces: list[_native.Trace], *, finished: bool
) -> None:
    """Acknowledged runs are there, nothing looks damaged, and the rest can be measured."""
    check_unharmed(folder)
    there = [run.id for run in Results.load(folder).runs]
    assert there[: len(acknowledged)] == acknowledged, folder
    assert len(there) - len(acknowledged) in (0, 1), folder
    if finished or Results.load(folder).manifest.status == "complete":
        return
    for _ in range(2):  # killed again right after it went on, and once more
        again = ResultsWriter.resume(folder)
        assert killed_at(KILLS_OF_REPLAN, lambda _, again=again: again.replan(PLAN), 2)
        again.close()
        check_unharmed(folder)
    writer = ResultsWriter.resume(folder)
    assert writer.done == there
    writer.replan(PLAN)
    for run, trace in zip(RUNS, traces, strict=True):
        if run.id not in writer.done:
            writer.commit(run, trace)
    writer.finish("complete")
    assert set(states(examine(folder)).values()) == {"proven"}, folder
    assert len(Results.load(folder).runs) == len(RUNS)


def test_a_full_disk_between_line_and_file_leaves_no_run_that_seems_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_device("sim:demo") as device:
        writer = stored.writer(tmp_path / "r", RUNS, device)
        traces = [device.run(run.spec) for run in RUNS]
    writer.commit(RUNS[0], traces[0])

    def fail(temporary: Path, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("uflip.results.atomic.publish", fail)
    with pytest.raises(ResultsError):
        writer.commit(RUNS[1], traces[1])
    monkeypatch.undo()
    writer.finish("failed")
    assert set(states(examine(tmp_path / "r")).values()) == {"proven"}
    assert [run.id for run in Results.load(tmp_path / "r").runs] == IDS[:1]


def test_a_line_that_does_not_fit_leaves_the_ledger_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "ledger.jsonl"
    whole = path.read_bytes()
    proof = examine(folder)
    assert proof.ledger is not None
    writer = ledger.LedgerWriter.go_on(folder, proof.ledger, dangling=False)
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, text: real(descriptor, text[:10]))
    with pytest.raises(OSError, match="part of a line"):
        writer.append(Document(0, "0" * 64, "0" * 64))
    monkeypatch.undo()
    assert path.read_bytes() == whole


# Going on


def test_resume_measures_a_damaged_run_again_and_keeps_the_file(
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
    said = uflip("verify", "r")
    assert (said.code, run.path.name in said.out) == (5, True)
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


# Folders of earlier versions

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("version", [1, 2])
def test_folders_of_earlier_versions_load_unproven(version: int) -> None:
    folder = GOLDEN / f"results-{version}"
    results = Results.load(folder)
    assert results.manifest.format_version == version
    assert [run.id for run in results.runs] == IDS
    assert results.missing == ["0004-baseline-RR-io_size-32768"]
    assert {verdict.state for verdict in results.proof.verdicts} == {"unproven"}
    assert results.warnings[-1]["code"] == "unproven"
    document = summary(results)
    assert document["baselines"][0]["statistics"]["count"] == 100
    # The virtual clock is the same on every machine: these are the times of then.
    first = results.runs[0].response_time_ns()
    assert len(first) == 100
    assert uflip("verify", folder).code == 0


@pytest.mark.parametrize("version", [3, 4])
def test_folders_with_a_ledger_load_proven(version: int) -> None:
    """The current version among them: a golden folder that fails is a format that changed."""
    results = Results.load(GOLDEN / f"results-{version}")
    assert results.manifest.format_version == version
    assert {verdict.state for verdict in results.proof.verdicts} == {"proven"}
    assert (results.missing, results.manifest.durability) == ([], "cached")
    document = summary(results)
    assert [run["statistics"]["count"] for run in document["baselines"]] == [100, 180]


def test_there_is_a_folder_of_every_version() -> None:
    kept = {int(path.name.removeprefix("results-")) for path in GOLDEN.glob("results-*")}
    assert kept == set(range(1, manifest.FORMAT_VERSION + 1))


def test_a_folder_of_the_version_before_goes_on(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "results-2", tmp_path / "r")
    writer = ResultsWriter.resume(tmp_path / "r")
    assert writer.done == IDS
    plan = [msgspec.to_builtins(entry) for entry in writer.manifest.plan]
    writer.replan(plan)
    last = stored.baseline_run(4, "RR")
    with open_device("sim:demo") as device:
        writer.commit(last, device.run(last.spec))
    writer.finish("complete")
    results = Results.load(tmp_path / "r")
    assert results.manifest.format_version == manifest.FORMAT_VERSION
    assert [verdict.state for verdict in results.proof.verdicts] == [
        "proven", "proven", "unproven", "unproven", "unproven", "proven"
    ]  # fmt: skip


def test_a_folder_that_keeps_no_state_cannot_go_on(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "results-1", tmp_path / "r")
    with pytest.raises(ResultsError) as caught:
        ResultsWriter.resume(tmp_path / "r")
    assert "keeps no state" in caught.value.got


# The command


def test_verify_says_what_each_file_is_worth(folder: Path) -> None:
    shutil.copy(path_of(folder, 0), path_of(folder, 1))
    path_of(folder, 2).unlink()
    said = uflip("verify", folder, "--json")
    assert said.code == ResultsError.exit_code
    document = json.loads(said.out)
    (found,) = document["folders"]
    assert (found["proven"], found["unproven"], found["lost"]) == (3, 0, 2)
    by_file = {file["file"]: file for file in found["files"]}
    assert by_file[f"runs/{IDS[1]}.parquet"]["state"] == "foreign"
    assert by_file[f"runs/{IDS[2]}.parquet"]["costs"] == "this run"


def test_verify_names_files_that_are_of_no_run_of_the_plan(folder: Path, tmp_path: Path) -> None:
    assert uflip("verify", folder).code == 0
    # A run of another benchmark, and what is nothing at all.
    stored.results(tmp_path / "other", [stored.baseline_run(9, "RR")], status="interrupted")
    stranger = next((tmp_path / "other" / "runs").iterdir())
    shutil.copy(stranger, folder / "runs")
    (folder / "runs" / "notes.parquet").write_text("nothing")
    said = uflip("verify", folder)
    assert said.code == ResultsError.exit_code
    for name in (stranger.name, "notes.parquet"):
        assert f"foreign   {folder}/runs/{name}: the plan has no such run" in said.out
    assert "--resume" not in said.out, "no run of the plan is lost"
    # Nothing of them is shown, and nothing else suffers from them.
    assert [run.id for run in Results.load(folder).runs] == IDS


def test_verify_goes_on_where_the_manifest_is_damaged(folder: Path) -> None:
    (folder / "manifest.json").write_text("{}")
    said = uflip("verify", folder)
    assert said.code == ResultsError.exit_code
    assert "manifest.json" in said.out
    assert f"{len(IDS) + 1} of {len(IDS) + 2} files proven" in said.out


def test_verify_takes_several_folders_and_refuses_what_is_none(
    folder: Path, tmp_path: Path
) -> None:
    assert uflip("verify", folder, GOLDEN / "results-1").code == 0
    (tmp_path / "empty").mkdir()
    assert uflip("verify", tmp_path / "empty").code == ResultsError.exit_code


@pytest.fixture
def open_channel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    arguments = ("oc", "sim:dfc", "--scale", "quick", "--only", "oc2", "--out", "r")
    assert uflip(*arguments).code == 0
    return tmp_path / "r"


def test_a_folder_of_an_open_channel_device_proves_itself(open_channel: Path) -> None:
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


def test_a_file_that_may_not_be_read_is_not_judged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = path_of(folder, 1)
    path.write_bytes(b"as if it could not be read")
    access = os.access
    monkeypatch.setattr(os, "access", lambda of, mode: of != path and access(of, mode))
    for command in (("verify", folder), ("run", "--resume", folder)):
        done = uflip(*command)
        assert (done.code, "No permission to read" in done.err) == (5, True), done.err
        assert str(path) in done.err
    assert path.read_bytes() == b"as if it could not be read"


def test_a_folder_that_may_not_be_read_does_not_stop_the_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    shutil.copytree(folder, closed)

    def names_in(of: Path) -> list[str]:
        if of.parent == closed:
            raise PermissionError(13, "Permission denied", str(of))
        return found(of)

    found = integrity.runs_in
    monkeypatch.setattr(integrity, "runs_in", names_in)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # the command asks for nothing
    done = uflip("verify", closed, folder)
    assert (done.code, "Permission denied" in done.err) == (5, True), done.err
    assert f"{folder}: " in done.out


def test_what_uflip_keeps_beside_results_is_no_result_that_failed(tmp_path: Path) -> None:
    """`uflip verify results/*`: states of devices lie there as soon as a file was measured."""
    stored.results(tmp_path / "results" / "a")
    (tmp_path / "results" / "states").mkdir()
    (tmp_path / "results" / "states" / "file-x.bin.json").write_text("{}")
    (tmp_path / "results" / "devices.json").write_text("{}")
    everything = sorted(map(str, (tmp_path / "results").iterdir()))
    done = uflip("verify", *everything)
    assert done.code == 0, done.err
    assert done.out.count("not results: a file or folder that uflip keeps next to them") == 2
    found = json.loads(uflip("verify", *everything, "--json").out)
    assert ["skipped" in each for each in found["folders"]] == [False, True, True]


def test_each_folder_is_verified_whatever_the_others_are(tmp_path: Path) -> None:
    stored.results(tmp_path / "a")
    stored.results(tmp_path / "c")
    names = [str(tmp_path / name) for name in ("a", "nowhere", "c")]
    done = uflip("verify", *names)
    assert done.code == 5
    assert "files proven" in done.out.splitlines()[0]
    assert done.out.splitlines()[1].startswith(names[2])
    assert names[1] in done.err
    found = json.loads(uflip("verify", *names, "--json").out)
    assert [each["results"] for each in found["folders"]] == names
    assert found["folders"][1]["error"]["exit_code"] == 5
