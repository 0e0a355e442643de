"""Do acknowledged results survive a power failure, with any subset of the unflushed writes?

The real code runs once, under a library that records its calls. Then `power_failure` cuts the power
at thousands of moments of that recording, and the real readers check the remaining files
(`power_scenarios`). `UFLIP_SEED` reproduces a failure; `make soak` tries 10,000 seeds.
"""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import PACKAGE_ROOT
from power_failure import CREATE, FOLDER, MARK, RENAME, SYNC, WRITE, Call, Disk, Recording
from power_scenarios import SCENARIOS

TESTS = Path(__file__).parent
SEED = int(os.environ.get("UFLIP_SEED") or time.time_ns() % 2**32)
SEEDS = 10_000 if "UFLIP_SOAK" in os.environ else 300


@pytest.fixture(scope="module")
def recordings_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record every scenario in a separate process."""
    folder = tmp_path_factory.mktemp("recorded")
    library = folder / "oplog.so"
    source = TESTS.parent / "native" / "oplog.c"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler")
    paths = os.pathsep.join((str(PACKAGE_ROOT), str(TESTS)))
    environment = os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": paths}
    made = [sys.executable, TESTS / "power_scenarios.py", folder]
    subprocess.run(made, check=True, env=environment, timeout=120)
    return folder


@pytest.mark.parametrize("name", SCENARIOS)
def test_acknowledged_data_survives_power_loss(
    recordings_dir: Path, name: str, in_memory: Path
) -> None:
    work = recordings_dir / name / "work"
    recording = Recording.read(work.stat().st_ino, recordings_dir / name / "log")
    marks = [call.name for call in recording.calls if call.kind == MARK]
    assert marks, "something was acknowledged"
    lost = 0
    for number in range(SEEDS // len(SCENARIOS)):
        rng = random.Random(f"{SEED} {name} {number}")
        acknowledged = recording.crash(rng, in_memory / "left")
        try:
            SCENARIOS[name].check(in_memory / "left", acknowledged, work)
        except Exception as error:
            error.add_note(f"UFLIP_SEED={SEED} {name} {number}, acknowledged: {acknowledged}")
            raise
        lost += len(acknowledged) < len(marks)
        shutil.rmtree(in_memory / "left")
    assert lost, "the power was lost in the middle of it"


# The model itself, compared with cases worked out by hand

ROOT, ONE, TWO = 1, 10, 11


def call(kind: int, inode: int, *, other: int = 0, name: str = "", second: str = "",
         data: bytes = b"", offset: int = 0) -> Call:  # fmt: skip
    return Call(kind, inode, other, offset, name, second, data)


def possible_contents(calls: list[Call], folder: Path) -> set[tuple[tuple[str, bytes], ...]]:
    """Return everything that may be left after all of these calls: names with their contents."""
    contents = set()
    recording = Recording(ROOT, [*calls, call(MARK, 0, name="end")])
    for seed in range(600):
        made = folder / str(seed)
        if recording.crash(random.Random(seed), made) == ["end"]:
            files = [path for path in sorted(made.rglob("*")) if path.is_file()]
            contents.add(tuple((str(path.relative_to(made)), path.read_bytes()) for path in files))
        shutil.rmtree(made)
    return contents


def test_unsynced_file_may_be_missing_empty_or_torn(in_memory: Path) -> None:
    data = b"a" * 512 + b"b" * 512
    calls = [call(CREATE, ROOT, other=ONE, name="f"), call(WRITE, ONE, data=data)]
    torn = bytes(512) + b"b" * 512
    contents = (b"", b"a" * 512, torn, data)
    assert possible_contents(calls, in_memory) == {(), *((("f", each),) for each in contents)}


def test_synced_file_in_synced_folder_is_whole(in_memory: Path) -> None:
    calls = [call(CREATE, ROOT, other=ONE, name="f"), call(WRITE, ONE, data=b"x"),
             call(SYNC, ONE), call(SYNC, ROOT)]  # fmt: skip
    assert possible_contents(calls, in_memory) == {(("f", b"x"),)}


def test_rename_leaves_old_or_new_file(in_memory: Path) -> None:
    old = [call(CREATE, ROOT, other=ONE, name="f"), call(WRITE, ONE, data=b"old"),
           call(SYNC, ONE), call(SYNC, ROOT)]  # fmt: skip
    new = [call(CREATE, ROOT, other=TWO, name=".f"), call(WRITE, TWO, data=b"new")]
    renamed = call(RENAME, ROOT, other=ROOT, name=".f", second="f")
    outcomes = possible_contents([*old, *new, call(SYNC, TWO), renamed], in_memory)
    whole = {(("f", b"old"),), ((".f", b"new"), ("f", b"old")), (("f", b"new"),)}
    assert outcomes == whole
    assert (("f", b""),) in possible_contents([*old, *new, renamed], in_memory), (
        "without a sync of its data"
    )


def test_folder_without_durable_name_loses_its_content(
    in_memory: Path,
) -> None:
    calls = [call(FOLDER, ROOT, other=ONE, name="d"), call(CREATE, ONE, other=TWO, name="f"),
             call(SYNC, TWO), call(SYNC, ONE)]  # fmt: skip
    assert possible_contents(calls, in_memory) == {(), (("d/f", b""),)}
    disk = Disk(ROOT)
    for each in [*calls, call(SYNC, ROOT)]:
        disk.do(each)
    assert len(disk.durable) == 2
