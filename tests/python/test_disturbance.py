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
from fuse_file import fuse_file, needs_fuse, stop_process

from uflip.device.handle import Device
from uflip.device.identity import check_target, count_disturbances
from uflip.device.opener import open_device
from uflip.errors import DeviceError, RefusedError
from uflip.results import Results
from uflip.spec import baseline

MIB = 1 << 20
FOREIGN = b"precious data of a user\n" * 1000
READS = baseline("RR", io_size=4096, io_count=400)


@pytest.fixture
def target(workdir: Path) -> Path:
    path = workdir / "scratch.bin"
    open_device(f"file:{path}", size=4 * MIB, buffered=True)
    return path


def disturbances_during(device: Device, action: Callable[[], object]) -> dict[str, int]:
    before = device.target_status()
    trace = device.run(READS)
    action()
    after = device.target_status()
    check_target(before, after, device.url)
    return count_disturbances(before, after, [trace], buffered=device.info.buffered)


def test_undisturbed_run_has_no_counts(target: Path) -> None:
    with open_device(f"file:{target}", buffered=True) as device:
        assert disturbances_during(device, lambda: None) == {}


@needs_fuse
def test_hanging_file_server_does_not_delay_other_files(target: Path, tmp_path: Path) -> None:
    with fuse_file(tmp_path, "memory", "1M") as (image, _), image.open() as open_image:
        pgrep = subprocess.run(
            ["pgrep", "-f", f"^nbdfuse {image} "], capture_output=True, text=True, check=True
        )
        pid = int(pgrep.stdout)
        holder = subprocess.Popen(["sleep", "60"], stdin=open_image)
        try:
            # The kernel keeps attributes for a second; then it asks the server, which is stopped.
            time.sleep(1.1)
            stop_process(pid)
            program = (
                "from uflip.device.opener import open_device; "
                f"device = open_device('file:{target}', buffered=True); device.target_status()"
            )
            subprocess.run([sys.executable, "-c", program], timeout=30, check=True)
        finally:
            os.kill(pid, signal.SIGCONT)
            holder.kill()
            holder.wait()


def test_simulated_device_is_never_disturbed() -> None:
    with open_device("sim:demo?blocks_per_die=64") as device:
        assert device.target_status() is None
        assert disturbances_during(device, lambda: None) == {}


def test_opens_and_writes_of_others_are_counted(target: Path) -> None:
    with open_device(f"file:{target}", buffered=True) as device:
        assert disturbances_during(device, target.read_bytes)["opened"] == 1

        def write() -> None:
            with target.open("r+b") as file:
                file.write(b"x")

        assert disturbances_during(device, write) == {
            "opened": 1,
            "closed_by_writers": 1,
            "modified": 1,
        }


def overwrite(path: Path) -> None:
    """Overwrite the middle of the file, as a foreign program does."""
    with path.open("r+b") as file:
        file.seek(MIB)
        file.write(FOREIGN)


def write_blocks(device: Device) -> None:
    device.run(baseline("RW", io_size=4096, io_count=20, target_size=MIB))


def between_two_runs(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device:
        write_blocks(device)
        overwrite(path)
        write_blocks(device)


def before_the_first_run(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device:
        overwrite(path)
        write_blocks(device)


def after_the_last_run(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device:
        write_blocks(device)
        overwrite(path)


def by_a_writer_that_stays_open(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device, path.open("r+b") as file:
        write_blocks(device)
        file.seek(MIB)
        file.write(FOREIGN)
        file.flush()
        device.run(READS)


def during_a_run(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device:
        stopped, written = threading.Event(), threading.Event()

        def overwrite_repeatedly() -> None:
            while not stopped.is_set():
                overwrite(path)
                written.set()

        other = threading.Thread(target=overwrite_repeatedly)
        other.start()
        written.wait()
        device.run(baseline("RW", io_size=4096, io_count=200, target_size=MIB))
        stopped.set()
        other.join()


def with_its_mtime_reset(path: Path) -> None:
    with open_device(f"file:{path}", buffered=True) as device:
        before = path.stat()
        write_blocks(device)
        overwrite(path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "write_foreign",
    [
        between_two_runs,
        before_the_first_run,
        after_the_last_run,
        by_a_writer_that_stays_open,
        during_a_run,
        with_its_mtime_reset,
    ],
)
def test_foreign_write_voids_the_mark(target: Path, write_foreign: Callable[[Path], None]) -> None:
    if "user.uflip" not in os.listxattr(target):
        pytest.skip("no extended attributes in the folder for temporary files")
    write_foreign(target)
    with pytest.raises(RefusedError, match="not made by uflip") as caught:
        open_device(f"file:{target}", buffered=True)
    assert "another process wrote to it" in caught.value.got
    assert target.read_bytes()[MIB : MIB + len(FOREIGN)] == FOREIGN
    # Confirmed by name, the file is marked again.
    open_device(f"file:{target}", buffered=True, destroy=str(target))
    open_device(f"file:{target}", buffered=True)


def test_foreign_reads_keep_the_mark(target: Path) -> None:
    with open_device(f"file:{target}", buffered=True) as device:
        write_blocks(device)
        target.read_bytes()
        target.open("r+b").close()
        write_blocks(device)
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
def test_changed_target_is_an_error(
    target: Path, change: Callable[[Path], object], words: str
) -> None:
    with open_device(f"file:{target}", buffered=True) as device:
        with pytest.raises(DeviceError) as caught:
            disturbances_during(device, lambda: change(target))
        assert words in caught.value.got


def test_file_truncated_during_a_run_is_an_error(workdir: Path) -> None:
    """Its final length is the same as before."""
    path = workdir / "scratch.bin"
    with open_device(f"file:{path}", size=64 * MIB, buffered=True) as device:
        running = threading.Event()

        def truncate() -> None:
            running.wait()
            os.truncate(path, MIB)
            with path.open("r+b") as file:  # as a write at the end of the file would
                file.seek(64 * MIB - 512)
                file.write(bytes(512))

        other = threading.Thread(target=truncate)
        other.start()
        with pytest.raises(DeviceError, match="The target shrank") as caught:
            device.run(baseline("RW", io_size=512, io_count=1 << 24), lambda *_: running.set())
        other.join()
        assert "it was cut, and has grown since" in caught.value.got
    assert path.stat().st_size == 64 * MIB


def repeat_while_running(
    process: subprocess.Popen[str], action: Callable[[], object]
) -> tuple[int, str]:
    """Repeat an action while a benchmark makes its runs; return its exit code and errors."""
    while not list(Path("out", "runs").glob("0*.parquet")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.002)
    while process.poll() is None:
        action()
        time.sleep(0.005)
    return process.returncode, process.communicate()[1]


RUN = ("--scale", "quick", "--only", "mix", "--io-size", "4k", "--pause", "10ms", "--buffered",
       "--state", "as-is", "--out", "out", "-q")  # fmt: skip


def test_disturbed_benchmark_is_complete_with_a_warning(target: Path) -> None:
    def reads() -> None:
        with target.open("rb") as file:
            file.read(1)

    process = start("run", f"file:{target}", *RUN)
    code, err = repeat_while_running(process, reads)
    assert code == 0, err
    warnings = {warning["code"]: warning for warning in Results.load("out").warnings}
    numbers = warnings["disturbed"]["numbers"]
    assert numbers["worst"]["opened"] >= 1
    assert set(numbers["runs"]) <= {run.id for run in Results.load("out").runs}
    assert "fuser" in warnings["disturbed"]["advice"]


def test_write_in_a_pause_disturbs_the_next_run(target: Path) -> None:
    prepared = uflip("prepare", f"file:{target}", "--buffered", "--state", "sequential",
                  "--record", "record.json", "-q")  # fmt: skip
    assert prepared.code == 0, prepared.err
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
    assert not Path("record.json").exists(), "the state of the target is unknown"


def test_deleted_target_ends_the_benchmark_and_keeps_finished_runs(
    target: Path,
) -> None:
    process = start("run", f"file:{target}", *RUN)
    code, err = repeat_while_running(process, lambda: target.unlink(missing_ok=True))
    assert code == 4, err
    assert "The target has changed" in err
    results = Results.load("out")
    assert results.manifest.status == "failed"
    assert results.runs
    assert results.missing


def test_foreign_sector_reads_are_counted(loop_device: str) -> None:
    with open_device(loop_device, writable=False) as device:

        def read() -> None:
            subprocess.run(
                ["dd", f"if={loop_device}", "of=/dev/null", "bs=64k", "count=4", "iflag=direct"],
                check=True,
                capture_output=True,
            )

        assert disturbances_during(device, read)["sectors_read"] >= 4 * 128


def test_moved_result_folder_ends_the_benchmark(workdir: Path) -> None:
    process = start("run", "null", "--scale", "quick", "--only", "order", "--pause", "30ms",
                    "--out", "out", "-q")  # fmt: skip
    moved = threading.Event()

    def move() -> None:
        if not moved.is_set():
            Path("out").rename("moved")
            shutil.copytree("moved", "out")
            moved.set()

    code, err = repeat_while_running(process, move)
    assert code == 5, err
    assert "moved or deleted" in err
    outcome = uflip("run", "--resume", "moved", "-q")
    assert outcome.code == 0, outcome.err
    assert Results.load("moved").missing == []
