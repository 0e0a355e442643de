"""Completion of queued I/Os: devices that cannot be polled are refused, results store the method.

Polling itself is tested on an NVMe drive that QEMU emulates (`tests/guest/zoned_disk.py`, in
`make soak`), with the kernel's own count of interrupts.
"""

import os
from pathlib import Path

import pytest
from command_line import uflip
from stored import baseline_run, writer

from uflip.data.device import with_details
from uflip.device.catalogue import report_block
from uflip.device.opener import open_device
from uflip.errors import UnavailableError, UsageError
from uflip.results import Results
from uflip.spec import basic

QUEUE = basic("read", "random", io_size=4096, io_count=50, queue_depth=4)


def test_device_without_poll_queues_is_refused(loop_device: str) -> None:
    """The queue's `io_poll` attribute is 0."""
    poll = Path("/sys/block") / loop_device.removeprefix("/dev/") / "queue" / "io_poll"
    assert poll.read_text(encoding="utf-8").strip() == "0"
    token = str(report_block(loop_device)["token"])
    with pytest.raises(UsageError) as caught:
        open_device(loop_device, destroy=token, completion="polled")
    assert caught.value.what == "The device cannot be polled"
    assert caught.value.where == loop_device
    assert "queue/io_poll is 0" in caught.value.got
    assert "nvme.poll_queues" in caught.value.allowed
    del caught  # a referenced error keeps the device open
    for completion in (None, "auto", "interrupt"):
        with open_device(loop_device, destroy=token, completion=completion) as device:
            assert device.info.completion == "interrupt"
            try:
                assert len(device.run(QUEUE)) == 50
            except UnavailableError as error:
                pytest.skip(str(error))


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ("file:target", "--size", "1MiB", "--buffered", "--completion", "polled"),
            2,
            "page cache",
        ),
        (("sim:demo", "--completion", "polled"), 2, "only to files and block devices"),
        (("null", "--completion", "interrupt"), 2, "only to files and block devices"),
        (("sim:demo", "--completion", "sometimes"), 2, "auto, interrupt, polled"),
    ],
)
def test_invalid_completion_is_refused(
    workdir: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    outcome = uflip("pattern", *arguments, "--pattern", "RR", "--io-count", "10")
    assert outcome.code == code
    assert words in outcome.err
    assert "Traceback" not in outcome.err
    assert not (workdir / "target").exists()


def test_unpollable_file_is_neither_created_nor_enlarged(workdir: Path) -> None:
    disk = workdir.stat().st_dev
    node = Path(f"/sys/dev/block/{os.major(disk)}:{os.minor(disk)}")
    poll_files = [queue_dir / "queue" / "io_poll" for queue_dir in (node, node.resolve().parent)]
    if any(
        queue_dir.is_file() and queue_dir.read_text().strip() == "1" for queue_dir in poll_files
    ):
        pytest.skip("the disk here can be polled")
    for grown in (False, True):
        if grown:
            with open_device("file:target", size="1MiB"):
                pass
        with pytest.raises(UsageError) as caught:
            open_device("file:target", size="2MiB", completion="polled")
        assert caught.value.what == "The device cannot be polled"
        assert caught.value.where == "file:target"
        assert (workdir / "target").exists() == grown
    assert (workdir / "target").stat().st_size == 1 << 20


RUNS = (
    baseline_run(1, "RR", io_size=4096, target_size=1 << 20, queue_depth=4),
    baseline_run(2, "RR", io_size=4096, target_size=1 << 20),
)


@pytest.mark.parametrize("verb", [("pattern", "--pattern", "RW"), ("run", "--scale", "quick")])
def test_unpollable_target_is_refused_before_work_begins(
    workdir: Path, verb: tuple[str, ...]
) -> None:
    name, *arguments = verb
    options = ("--size", "1MiB", "--buffered", "--completion", "polled")
    outcome = uflip(name, "file:target", *arguments, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: The device cannot be polled\n"), outcome.err
    assert list(workdir.iterdir()) == []


@pytest.fixture
def polled_dir(workdir: Path) -> Path:
    """Make interrupted results stored as polled, next to finished ones; return their folder."""
    with open_device("file:target", size="1MiB", buffered=True, durability="cached") as device:
        for name, completion, finished in (("first", None, 2), ("polled", "polled", 1)):
            info = with_details(device.info, completion=completion)
            results_writer = writer(workdir / name, RUNS, device, device=info, durability="cached")
            for run in RUNS[:finished]:
                results_writer.commit(run, device.run(run.spec))
            results_writer.finish("interrupted")
    return workdir / "polled"


def test_polled_results_are_compared_with_a_warning_and_exported_polled(polled_dir: Path) -> None:
    assert Results.load(polled_dir).manifest.device.completion == "polled"
    text = uflip("compare", "first", "polled").out
    assert "completion interrupt and polled" in text
    assert "--completion" in text
    assert "completion" not in uflip("compare", "first", "first").out
    for name, line in (("first", ""), ("polled", "hipri=1")):
        assert uflip("export", name, "--format", "fio-job", "--out", f"{name}-jobs").code == 0
        for path in Path(f"{name}-jobs").glob("*.fio"):
            job = path.read_text(encoding="utf-8").splitlines()
            assert ("hipri=1" in job) == (bool(line) and "ioengine=io_uring" in job)


def test_polled_results_are_resumed_polled_only(polled_dir: Path) -> None:
    outcome = uflip("run", "--resume", str(polled_dir), "-q")
    assert outcome.code == 2, outcome.err
    assert "cannot be polled" in outcome.err
