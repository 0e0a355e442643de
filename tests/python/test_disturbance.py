"""Is a target detected that changes during a run, or that another process uses?"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import start, uflip
from fused import fused, needed, stop

from uflip.device.disturbance import check_target, count_disturbances
from uflip.device.handle import Device
from uflip.device.opener import open_device
from uflip.errors import DeviceError, RefusedError
from uflip.results import Results
from uflip.spec import baseline

MIB = 1 << 20
FOREIGN = b"precious data of a user\n" * 1000
READS = baseline("RR", io_size=4096, io_count=400)


@pytest.fixture
def target(here: Path) -> Path:
    path = here / "scratch.bin"
    open_device(f"file:{path}", size=4 * MIB, buffered=True)
    return path


def seen(device: Device, meanwhile: Callable[[], object]) -> dict[str, int]:
    before = device.standing()
    trace = device.run(READS)
    meanwhile()
    after = device.standing()
    check_target(before, after, device.url)
    return count_disturbances(before, after, [trace], buffered=device.info.buffered)


def test_a_quiet_run_is_not_disturbed(target: Path) -> None:
    with open_device(f"file:{target}", buffered=True) as device:
        assert seen(device, lambda: None) == {}


@needed
def test_a_file_server_that_hangs_delays_no_run_on_another_file(
    target: Path, tmp_path: Path
) -> None:
    with fused(tmp_path, "memory", "1M") as (image, _), image.open() as held:
        found = subprocess.run(
            ["pgrep", "-f", f"^nbdfuse {image} "], capture_output=True, text=True, check=True
        )
        pid = int(found.stdout)
        holder = subprocess.Popen(["sleep", "60"], stdin=held)
        try:
            # The kernel keeps attributes for a second; then it asks the server, which is stopped.
            time.sleep(1.1)
            stop(pid)
            program = (
                "from uflip.device.opener import open_device; "
                f"device = open_device('file:{target}', buffered=True); device.standing()"
            )
            subprocess.run([sys.executable, "-c", program], timeout=30, check=True)
        finally:
            os.kill(pid, signal.SIGCONT)
            holder.kill()
            holder.wait()


def test_a_simulated_device_cannot_be_disturbed() -> None:
    with open_device("sim:demo?blocks_per_die=64") as device:
        assert device.standing() is None
        assert seen(device, lambda: None) == {}


def test_who_opens_and_who_writes_is_counted(target: Path) -> None:
    with open_device(f"file:{target}", buffered=True) as device:
        assert seen(device, target.read_bytes)["opened"] == 1

        def write() -> None:
            with target.open("r+b") as file:
                file.write(b"x")

        assert seen(device, write) == {"opened": 1, "closed_by_writers": 1, "modified": 1}


def overwrite(path: Path) -> None:
    """Do what a program does that knows nothing of uflip: write over the file, in its middle."""
    with path.open("r+b") as file:
        file.seek(MIB)
        file.write(FOREIGN)


def writes(device: Device) -> None:
    device.run(baseline("RW", io_size=4096, io_count=20, target_size=MIB))


def between_two_runs(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device:
        writes(device)
        overwrite(path)
        writes(device)


def before_the_first_run(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device:
        overwrite(path)
        writes(device)


def after_the_last_run(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device:
        writes(device)
        overwrite(path)


def by_one_who_does_not_close_it(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device, path.open("r+b") as file:
        writes(device)
        file.seek(MIB)
        file.write(FOREIGN)
        file.flush()
        device.run(READS)


def in_a_run_of_ours(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device:
        stopped, written = threading.Event(), threading.Event()

        def others() -> None:
            while not stopped.is_set():
                overwrite(path)
                written.set()

        other = threading.Thread(target=others)
        other.start()
        written.wait()
        device.run(baseline("RW", io_size=4096, io_count=200, target_size=MIB))
        stopped.set()
        other.join()


def with_the_time_set_back_to_before_the_run(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device:
        before = path.stat()
        writes(device)
        overwrite(path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "written",
    [
        between_two_runs,
        before_the_first_run,
        after_the_last_run,
        by_one_who_does_not_close_it,
        in_a_run_of_ours,
        with_the_time_set_back_to_before_the_run,
    ],
)
def test_what_others_write_while_it_is_open_is_not_vouched_for(
    target: Path, written: Callable[[Path], None]
) -> None:
    if "user.uflip" not in os.listxattr(target):
        pytest.skip("no extended attributes in the folder for temporary files")
    written(target)
    with pytest.raises(RefusedError, match="not made by uflip") as caught:
        open_device(f"file:{target}", buffered=True)
    assert "somebody else wrote to it" in caught.value.got
    assert target.read_bytes()[MIB : MIB + len(FOREIGN)] == FOREIGN
    # Given up by name it is ours again.
    open_device(f"file:{target}", buffered=True, destroy=str(target))
    open_device(f"file:{target}", buffered=True)


def test_who_cannot_have_written_leaves_the_file_ours(target: Path) -> None:
    with open_device(f"file:{target}", buffered=True) as device:
        writes(device)
        target.read_bytes()
        target.open("r+b").close()
        writes(device)
        target.read_bytes()
    open_device(f"file:{target}", buffered=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda path: path.unlink(), "deleted"),
        (lambda path: os.truncate(path, MIB), "4194304 before"),
        (lambda path: path.rename(path.with_name("elsewhere")), "moved, or replaced"),
    ],
    ids=["deleted", "shorter", "moved"],
)
def test_a_target_that_is_not_what_it_was_is_no_target(
    target: Path, change: Callable[[Path], object], words: str
) -> None:
    with open_device(f"file:{target}", buffered=True) as device:
        with pytest.raises(DeviceError) as caught:
            seen(device, lambda: change(target))
        assert words in caught.value.got


def test_a_file_that_is_cut_in_a_run_and_grows_again_by_it_is_no_target(here: Path) -> None:
    """Its length at the end of the run says nothing."""
    path = here / "scratch.bin"
    with open_device(f"file:{path}", size=64 * MIB, buffered=True) as device:
        begun = threading.Event()

        def cut() -> None:
            begun.wait()
            os.truncate(path, MIB)
            with path.open("r+b") as file:  # as a write at the end of the file would
                file.seek(64 * MIB - 512)
                file.write(bytes(512))

        other = threading.Thread(target=cut)
        other.start()
        with pytest.raises(DeviceError, match="The target shrank") as caught:
            device.run(baseline("RW", io_size=512, io_count=1 << 24), lambda *_: begun.set())
        other.join()
        assert "it was cut, and has grown since" in caught.value.got
    assert path.stat().st_size == 64 * MIB


def meanwhile(process: subprocess.Popen[str], do: Callable[[], object]) -> tuple[int, str]:
    """Do something again and again while a benchmark makes its runs."""
    while not list(Path("out", "runs").glob("0*.parquet")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.002)
    while process.poll() is None:
        do()
        time.sleep(0.005)
    return process.returncode, process.communicate()[1]


RUN = ("--scale", "quick", "--only", "mix", "--io-size", "4k", "--pause", "10ms", "--buffered",
       "--state", "as-is", "--out", "out", "-q")  # fmt: skip


def test_a_disturbed_benchmark_is_complete_with_a_warning(target: Path) -> None:
    def reads() -> None:
        with target.open("rb") as file:
            file.read(1)

    process = start("run", f"file:{target}", *RUN)
    code, err = meanwhile(process, reads)
    assert code == 0, err
    found = {warning["code"]: warning for warning in Results.load("out").warnings}
    numbers = found["disturbed"]["numbers"]
    assert numbers["worst"]["opened"] >= 1
    assert set(numbers["runs"]) <= {run.id for run in Results.load("out").runs}
    assert "fuser" in found["disturbed"]["advice"]


def test_what_others_write_in_a_pause_is_told_of_the_run_behind_it(target: Path) -> None:
    begun = uflip("prepare", f"file:{target}", "--buffered", "--state", "sequential",
                  "--record", "record.json", "-q")  # fmt: skip
    assert begun.code == 0, begun.err
    process = start("run", f"file:{target}", "--scale", "quick", "--only", "order",
                    "--io-size", "4k", "--pause", "3s", "--buffered", "--state", "as-is",
                    "--record", "record.json", "--out", "out", "-q")  # fmt: skip
    while len(list(Path("out", "runs").glob("0*.parquet"))) < 2:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    time.sleep(0.5)
    overwrite(target)
    while len(list(Path("out", "runs").glob("0*.parquet"))) < 3:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    results = Results.load("out")
    third = sorted(run.id for run in results.runs)[2]
    numbers = {warning["code"]: warning for warning in results.warnings}["disturbed"]["numbers"]
    assert numbers["runs"] == [third]
    worst = {"opened": 1, "closed_by_writers": 1, "modified": 1}
    assert worst.items() <= numbers["worst"].items()
    assert not Path("record.json").exists(), "it is in no state that anybody knows"


def test_a_benchmark_whose_target_is_deleted_ends_and_keeps_what_was_finished(
    target: Path,
) -> None:
    process = start("run", f"file:{target}", *RUN)
    code, err = meanwhile(process, lambda: target.unlink(missing_ok=True))
    assert code == 4, err
    assert "The target has changed" in err
    results = Results.load("out")
    assert results.manifest.status == "failed"
    assert results.runs
    assert results.missing


def test_sectors_that_others_read_from_a_block_device_are_counted(loop_device: str) -> None:
    with open_device(loop_device, writable=False) as device:

        def read() -> None:
            subprocess.run(
                ["dd", f"if={loop_device}", "of=/dev/null", "bs=64k", "count=4", "iflag=direct"],
                check=True,
                capture_output=True,
            )

        assert seen(device, read)["sectors_read"] >= 4 * 128


def test_a_folder_that_was_moved_away_is_not_filled_half_here_half_there(here: Path) -> None:
    process = start("run", "null", "--scale", "quick", "--only", "order", "--pause", "30ms",
                    "--out", "out", "-q")  # fmt: skip
    moved = threading.Event()

    def move() -> None:
        if not moved.is_set():
            Path("out").rename("moved")
            shutil.copytree("moved", "out")
            moved.set()

    code, err = meanwhile(process, move)
    assert code == 5, err
    assert "moved or deleted" in err
    done = uflip("run", "--resume", "moved", "-q")
    assert done.code == 0, done.err
    assert Results.load("moved").missing == []
