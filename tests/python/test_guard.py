"""Is existing data never overwritten without permission, on any path?"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import signatures
import stored
from command_line import PACKAGE_ROOT, start, uflip
from fuse_file import forget_partitions

from uflip.device.catalogue import inspect_device, known_devices, report_block
from uflip.device.handle import Device
from uflip.device.identity import medium_difference
from uflip.device.opener import open_device
from uflip.errors import EXIT_CODES, DeviceError, RefusedError, UflipError
from uflip.spec import baseline

Words = np.ndarray[Any, np.dtype[np.uint64]]
MIB = 1 << 20
TESTS_DIR = Path(__file__).parent
# Minimum numbers of targets and attempts, so that the matrix cannot become empty unnoticed.
TARGETS, ATTEMPTS = 80, 700
# Each opening looks through every process of the host; `make soak` makes ten times as many.
RACES = 3000 if os.environ.get("UFLIP_SOAK") else 300


def skip_without_xattrs(path: Path) -> None:
    if "user.uflip" not in os.listxattr(path):
        pytest.skip("no extended attributes in the folder for temporary files")


def write_some_blocks(url: str, **options: Any) -> None:
    with open_device(url, **options) as device:
        device.run(baseline("RW", io_count=5, target_size="1MiB"))


@pytest.fixture
def scratch(make_file: Callable[..., Path]) -> Path:
    path = make_file(MIB)
    skip_without_xattrs(path)
    return path


@pytest.fixture
def loop(workdir: Path) -> Iterator[Callable[..., str]]:
    """Return a function that attaches files to loop devices; detach them at the end."""
    if os.geteuid() != 0 or not shutil.which("losetup") or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root, losetup and /dev/loop-control")
    attached: list[str] = []

    def attach(path: Path, *options: str) -> str:
        command = ["losetup", "-f", "--show", *options, str(path)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            pytest.skip(f"no loop device: {process.stderr.strip()}")
        attached.append(process.stdout.strip())
        forget_partitions(attached[-1])
        return attached[-1]

    yield attach
    for device in attached:
        forget_partitions(device)
        subprocess.run(["losetup", "-d", device], capture_output=True, check=False)


@pytest.fixture
def empty_loop_device() -> Iterator[str]:
    """Make a loop device of an unused number, without a file behind it."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root and /dev/loop-control")
    number, add, remove = 70_000 + os.getpid() % 10_000, 0x4C80, 0x4C81
    control = os.open("/dev/loop-control", os.O_RDWR)
    try:
        fcntl.ioctl(control, add, number)
        if not Path(f"/dev/loop{number}").exists():
            pytest.skip("no device node is created for a loop device")
        yield f"/dev/loop{number}"
    finally:
        with suppress(OSError):
            fcntl.ioctl(control, remove, number)
        os.close(control)


def test_device_without_a_medium_is_refused(empty_loop_device: str, workdir: Path) -> None:
    destroy = ("--destroy", token(empty_loop_device))
    for arguments in (
        ("run", empty_loop_device, "--scale", "quick", "--out", "r", *destroy),
        ("plan", empty_loop_device),
        ("pattern", empty_loop_device, "--pattern", "RR"),
        ("pattern", empty_loop_device, "--pattern", "RW", *destroy),
        ("prepare", empty_loop_device, *destroy),
    ):
        outcome = uflip(*arguments)
        assert outcome.code == 4, arguments
        assert "There is no medium in the device" in outcome.err
        assert empty_loop_device in outcome.err
    with pytest.raises(DeviceError, match="no medium"):
        open_device(empty_loop_device, writable=False)
    assert not Path("r").exists()
    # A description needs no medium.
    assert uflip("info", empty_loop_device).code == 0


# The whole matrix


def test_no_write_path_overwrites_a_protected_target(
    workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("the matrix needs root and loop devices")
    for program in ("unshare", "losetup", "mkfs.ext2", "addpart", "swapon", "flock"):
        if shutil.which(program) is None:
            pytest.skip(f"the matrix needs {program}")
    if subprocess.run(["unshare", "-m", "-u", "true"], check=False).returncode:
        pytest.skip("no mount namespace can be made here")
    # The helpers are in the folder of the tests; the matrix works in a folder of its own.
    environment = os.environ | {"PYTHONPATH": f"{PACKAGE_ROOT}:{TESTS_DIR}"}
    command = [
        "unshare",
        "-m",
        "-u",
        sys.executable,
        str(TESTS_DIR / "guard_matrix.py"),
        str(workdir),
    ]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-4000:]
    outcome = json.loads(process.stdout.splitlines()[-1])
    with capsys.disabled():
        refusals = outcome["refusal_ms"]
        print(
            f"\nguard: {outcome['attempts']} attempts on {outcome['targets']} targets "
            f"({outcome['kinds']}), {outcome['resumed']} resumes; "
            f"{len(outcome['changed'])} changed; refusals in Python "
            f"{refusals['median']:.1f} ms, at worst {refusals['worst']:.1f} ms"
        )
    assert outcome["changed"] == []
    assert outcome["wrong"] == []
    assert outcome["targets"] >= TARGETS
    assert outcome["attempts"] >= ATTEMPTS
    assert len(outcome["written"]) >= 9


# Content of a medium


@pytest.mark.parametrize("kind", signatures.KINDS)
def test_content_of_a_file_must_be_typed_in_its_token(workdir: Path, kind: str) -> None:
    image = workdir / "image"
    signatures.write(image, kind)
    before = image.read_bytes()
    with pytest.raises(RefusedError) as caught:
        open_device(f"file:{image}", destroy=str(image), buffered=True)
    assert f"+{kind}" in caught.value.allowed
    assert kind in caught.value.got
    assert image.read_bytes() == before
    typed = caught.value.allowed.removeprefix("--destroy ")
    write_some_blocks(f"file:{image}", destroy=typed, buffered=True)
    assert image.read_bytes() != before


# The mark


def test_other_content_voids_the_mark(scratch: Path) -> None:
    precious = scratch.with_name("precious")
    precious.write_bytes(b"precious" * (MIB // 8))
    shutil.copyfile(precious, scratch)
    outcome = uflip("pattern", f"file:{scratch}", "--pattern", "RW", "--io-count", "20")
    assert outcome.code == EXIT_CODES["refused"][0]
    assert "changed since uflip closed it" in outcome.err
    assert scratch.read_bytes() == precious.read_bytes()


def test_copy_with_attributes_is_refused(scratch: Path) -> None:
    copy = scratch.with_name("copy")
    subprocess.run(["cp", "-a", scratch, copy], check=True)
    assert os.getxattr(copy, "user.uflip") == os.getxattr(scratch, "user.uflip")
    with pytest.raises(RefusedError) as caught:
        open_device(f"file:{copy}")
    assert "a copy" in caught.value.got
    write_some_blocks(f"file:{scratch}")


def test_mark_survives_rename_and_runs(scratch: Path) -> None:
    moved = scratch.rename(scratch.with_name("moved"))
    for _ in range(3):
        write_some_blocks(f"file:{moved}")


def test_mark_survives_reads(scratch: Path) -> None:
    with open_device(f"file:{scratch}", writable=False) as device:
        device.run(baseline("RR", io_count=5))
    write_some_blocks(f"file:{scratch}")


def test_mark_of_another_version_is_invalid(scratch: Path) -> None:
    try:
        mark = os.getxattr(scratch, "user.uflip")
    except OSError:
        pytest.skip("no extended attributes in the folder for temporary files")
    assert mark.startswith(b"1 ")
    assert b" brand=" in mark
    os.setxattr(scratch, "user.uflip", b"2" + mark[1:])
    with pytest.raises(RefusedError) as caught:
        open_device(f"file:{scratch}", buffered=True)
    assert "its mark has version 2, and this uflip reads version 1" in str(caught.value)
    os.setxattr(scratch, "user.uflip", b"expendable")
    with pytest.raises(RefusedError, match="its mark cannot be read"):
        open_device(f"file:{scratch}", buffered=True)


def test_foreign_empty_file_is_refused(workdir: Path) -> None:
    path = workdir / "empty"
    path.touch()
    for verb in (("run", "--out", "out"), ("prepare",), ("pattern", "--pattern", "RW")):
        outcome = uflip(verb[0], "file:empty", "--size", "1MiB", *verb[1:])
        assert outcome.code == EXIT_CODES["refused"][0], outcome.err
        assert "--destroy empty" in outcome.err
        assert path.stat().st_size == 0


def kill_during_a_run(path: Path) -> None:
    """Kill uflip while it writes to a file."""
    process = start(
        "pattern", f"file:{path}", "--pattern", "RW", "--io-count", "100000000", "--quiet"
    )
    before = path.stat().st_mtime_ns
    for _ in range(12000):
        if path.stat().st_mtime_ns != before or process.poll() is not None:
            break
        time.sleep(0.005)
    time.sleep(0.05)
    process.kill()
    process.communicate(timeout=30)
    assert b"open=1" in os.getxattr(path, "user.uflip")


def test_mark_survives_a_kill(scratch: Path) -> None:
    kill_during_a_run(scratch)
    write_some_blocks(f"file:{scratch}")


def test_foreign_write_after_a_kill_voids_the_mark(scratch: Path) -> None:
    kill_during_a_run(scratch)
    with scratch.open("r+b") as file:
        file.seek(MIB // 2 + 100)
        file.write(b"a diary")
    content = scratch.read_bytes()
    with pytest.raises(RefusedError) as caught:
        open_device(f"file:{scratch}")
    assert "data that uflip did not write" in caught.value.got
    assert scratch.read_bytes() == content


# Links and renamed files


RETARGET_PROGRAM = """
import os, sys
link, *targets = sys.argv[1:]
print("begun", flush=True)
while True:
    for target in targets:
        os.symlink(target, "new")
        os.rename("new", link)
"""


def test_link_retargeted_during_open_writes_no_foreign_file(workdir: Path) -> None:
    """The opened file is the checked one: the precious file is never written, nor marked."""
    expendable, precious, link = workdir / "ours", workdir / "precious", workdir / "link"
    with open_device(f"file:{expendable}", size="64KiB", buffered=True):
        pass
    skip_without_xattrs(expendable)
    precious.write_bytes(b"precious" * 8192)
    link.symlink_to(expendable)
    # A process of its own, because a thread and the opening would wait for each other.
    retargeting = subprocess.Popen(
        [sys.executable, "-c", RETARGET_PROGRAM, link, precious, expendable], stdout=subprocess.PIPE
    )
    assert retargeting.stdout is not None
    retargeting.stdout.readline()
    written = refused = 0
    kinds = set()
    try:
        for _ in range(RACES):
            try:
                with open_device(f"file:{link}", buffered=True) as device:
                    device.run(baseline("RW", io_count=1, io_size=512, target_size="64KiB"))
                written += 1
            except UflipError as error:
                kinds.add(error.kind)
                refused += 1
    finally:
        retargeting.kill()
        retargeting.communicate()
    assert precious.read_bytes() == b"precious" * 8192
    assert os.listxattr(precious) == []
    assert kinds <= {"refused", "device"}
    assert written > 0
    assert refused > 0, "the race took place"


def test_ctrl_c_keeps_a_foreign_file_under_the_same_name(workdir: Path) -> None:
    path, precious = workdir / "large.bin", workdir / "precious"
    precious.write_text("precious")
    process = start("pattern", "file:large.bin", "--size", "8GiB", "--pattern", "RW")
    for _ in range(6000):
        if (path.exists() and path.stat().st_size > 4 * MIB) or process.poll() is not None:
            break
        time.sleep(0.005)
    if process.poll() is None:
        precious.rename(path)
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if "O_DIRECT" in err:
        pytest.skip("no direct I/O in the folder for temporary files")
    assert process.returncode == 130, err
    assert path.read_text() == "precious"
    assert [entry.name for entry in workdir.iterdir()] == ["large.bin"]


@pytest.mark.parametrize("path", ["/proc/sys/kernel/domainname", "/sys/kernel/mm/lru_gen/enabled"])
def test_kernel_pseudo_file_is_refused(path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"{path} does not exist")
    before = Path(path).read_bytes()
    options = ("--size", "512", "--buffered", "--io-size", "512", "--io-count", "1")
    outcome = uflip("pattern", f"file:{path}", "--pattern", "SW", *options)
    assert outcome.code == EXIT_CODES["refused"][0], outcome.err
    assert "does not store files" in outcome.err
    assert Path(path).read_bytes() == before


def test_running_program_is_never_overwritten() -> None:
    import uflip._native as native

    path = native.__file__
    assert path is not None
    with pytest.raises(RefusedError) as caught:
        open_device(f"file:{path}", destroy=path)
    assert "this running program" in caught.value.got


# Exclusion


@pytest.mark.parametrize("verb", ["run", "prepare", "pattern"])
def test_refusal_imports_no_heavy_module(workdir: Path, verb: str) -> None:
    foreign = workdir / "thesis"
    foreign.write_bytes(b"mine" * 4096)
    program = """
import sys
from uflip.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    work = {"numpy", "uflip.benchmark", "uflip.results"}
    # A pattern is read before anything is opened, and is a document.
    work |= set() if sys.argv[1] == "pattern" else {"msgspec"}
    loaded = work & sys.modules.keys()
    print(end.code, sorted(loaded))
"""
    command = [sys.executable, "-c", program, verb, f"file:{foreign}"]
    command += ["--pattern", "RW"] if verb == "pattern" else []
    environment = os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    refused = EXIT_CODES["refused"][0]
    assert process.stdout == f"{refused} []\n", process.stderr


def test_two_openings_of_one_file_exclude_each_other(scratch: Path) -> None:
    url = f"file:{scratch}"
    with open_device(url) as device:
        for writable in (True, False):
            with pytest.raises(RefusedError) as caught:
                open_device(url, writable=writable)
            assert str(os.getpid()) in caught.value.got
        device.run(baseline("RW", io_count=5))
    with (
        open_device(url, writable=False),
        open_device(url, writable=False),
        pytest.raises(RefusedError, match="in use"),
    ):
        open_device(url)
    write_some_blocks(url)


def test_locking_process_is_named(scratch: Path) -> None:
    command = ["flock", str(scratch), "sh", "-c", "echo ready; exec sleep 60"]
    if shutil.which("flock") is None:
        pytest.skip("needs flock")
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        outcome = uflip("prepare", f"file:{scratch}")
        os.killpg(holder.pid, signal.SIGKILL)  # it, and what it started
    assert outcome.code == EXIT_CODES["refused"][0]
    assert "process" in outcome.err


# Block devices


def token(device: str) -> str:
    return str(report_block(device)["token"])


def test_device_in_use_is_listed_without_a_token(loop: Any, workdir: Path) -> None:
    # No loop devices, because those of other tests appear and disappear meanwhile.
    used = [
        device
        for device in known_devices()
        if device.get("in_use") and not device["url"].startswith("/dev/loop")
    ]
    path = workdir / "lower"
    path.write_bytes(bytes(4 * MIB))
    lower = loop(path)
    upper = loop(Path(lower))
    outcome = uflip("devices")
    line = next(line for line in outcome.out.splitlines() if f"{lower} " in line)
    assert f"in use: the backing device of {Path(upper).name}" in line
    assert "--destroy" not in line
    info = uflip("info", lower).out
    assert "in_use" in info
    assert "token" not in info
    for device in used:
        with pytest.raises(RefusedError) as caught:
            open_device(device["url"], destroy=device["token"])
        assert caught.value.got.startswith(device["in_use"][:40])


def test_loop_device_of_a_locked_file_is_refused(loop: Any, workdir: Path) -> None:
    path = workdir / "measured"
    path.write_bytes(bytes(4 * MIB))
    device = loop(path)
    # `flock` opens the file for reading: a writer would be refused for another reason.
    command = ["flock", "-F", path, "sh", "-c", "echo ready; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(RefusedError, match="in use") as caught:
            open_device(device, destroy=token(device))
        holder.kill()
    assert f"locked by process {holder.pid}" in caught.value.got
    with open_device(device, destroy=token(device)) as opened:
        assert opened.info.capacity_bytes == 4 * MIB


def test_partitions_and_equal_media_have_distinct_tokens(loop: Any, workdir: Path) -> None:
    tokens = []
    for name in ("one", "two"):
        path = workdir / name
        path.write_bytes(bytes(8 * MIB))
        device = loop(path)
        tokens.append(token(device))
        if shutil.which("addpart") is None:
            continue
        for number, begin in ((1, 2048), (2, 8192)):
            command = ["addpart", device, str(number), str(begin), "4096"]
            subprocess.run(command, check=True)
            tokens.append(token(f"{device}p{number}"))
    assert len(set(tokens)) == len(tokens) >= 2, tokens
    for name in tokens:
        assert f":{8 * MIB}" in name or f":{2 * MIB}" in name


def test_read_only_device_is_refused_at_opening(loop: Any, workdir: Path) -> None:
    path = workdir / "medium"
    path.write_bytes(bytes(4 * MIB))
    device = loop(path, "-r")
    with pytest.raises(DeviceError, match="read-only"):
        open_device(device, destroy=token(device))
    outcome = uflip("prepare", device, "--destroy", token(device))
    assert outcome.code == EXIT_CODES["device"][0]
    assert "read-only" in outcome.err
    with open_device(device, writable=False) as opened:
        opened.run(baseline("RR", io_count=5, target_size="1MiB"))


def test_device_opened_by_token_is_branded(loop: Any, workdir: Path) -> None:
    path = workdir / "medium"
    path.write_bytes(bytes(4 * MIB))
    device = loop(path)
    assert inspect_device(device).details.brand is None
    with open_device(device, destroy=token(device)) as opened:
        brand = opened.info.details.brand
        assert opened.info.details.brand_is_new
        opened.run(baseline("SW", io_count=128))
    assert inspect_device(device).details.brand == brand
    with open_device(device, destroy=token(device)) as opened:
        assert opened.info.details.brand == brand
        assert not opened.info.details.brand_is_new


def test_state_of_another_medium_is_ignored(loop: Any, workdir: Path) -> None:
    media = [workdir / "one", workdir / "two"]
    for medium in media:
        medium.write_bytes(bytes(4 * MIB))
    device = loop(media[0])
    prepare = ("prepare", device, "--state", "sequential", "--record", "record.json", "--destroy")
    assert uflip(*prepare, token(device)).code == 0
    again = uflip(*prepare, token(device))
    assert "is in this state already" in again.out
    subprocess.run(["losetup", "-d", device], check=True)
    for _ in range(200):
        if not Path(f"/sys/block/{Path(device).name}/loop").exists():
            break
        time.sleep(0.02)
    subprocess.run(["losetup", device, str(media[1])], check=True)
    other = uflip(*prepare, token(device))
    assert other.code == 0, other.err
    assert "is in this state already" not in other.out
    assert media[1].read_bytes() != bytes(4 * MIB)


@pytest.mark.parametrize(
    ("recorded", "current", "same"),
    [
        ({}, {}, True),
        ({"brand": "a"}, {"brand": "a"}, True),
        ({"brand": "a"}, {"brand": "b"}, False),
        ({"brand": "a"}, {}, False),
        ({"brand": "a"}, {"brand": "b", "brand_is_new": True}, False),
        ({"brand": "a", "boot_id": "x", "diskseq": "1"}, {"boot_id": "x", "diskseq": "1"}, True),
        ({"brand": "a", "boot_id": "x", "diskseq": "1"}, {"boot_id": "x", "diskseq": "2"}, False),
        ({"boot_id": "x", "diskseq": "1"}, {"boot_id": "x", "diskseq": "2"}, False),
        ({"boot_id": "x", "diskseq": "1"}, {"boot_id": "y", "diskseq": "2"}, True),
        (
            {"brand": "a", "boot_id": "x", "diskseq": "1"},
            {"brand": "a", "boot_id": "x", "diskseq": "2"},
            True,
        ),
    ],
)
def test_medium_is_identified_by_brand_or_diskseq(
    recorded: dict[str, Any], current: dict[str, Any], same: bool
) -> None:
    assert (
        medium_difference(recorded, stored.device_info("block", details=current)) is None
    ) is same


def test_written_data_is_never_the_data_read(make_file: Callable[..., Path]) -> None:
    """Zeros stay zeros, and branded data branded, after any number of reads."""
    path = make_file(4 * MIB)
    url = f"file:{path}"

    def read_and_write(device: Device) -> None:
        device.run(baseline("RR", io_count=50))
        device.run(baseline("SW", io_count=128))

    with open_device(url, data="zeros") as device:
        read_and_write(device)
    assert path.read_bytes() == bytes(4 * MIB)
    with open_device(url) as device:
        read_and_write(device)
        brand = int(device.info.details.brand or "", 16)
    sectors = np.fromfile(path, dtype="<u8").reshape(-1, 64)
    digest = np.zeros(len(sectors), dtype=np.uint64)
    for word in range(1, 64):
        digest = splitmix64(digest ^ sectors[:, word])
    assert set(sectors[:, 0] ^ digest) == {brand}


def splitmix64(words: Words) -> Words:
    """Return the finaliser of SplitMix64 (Steele, Lea & Flood 2014), with which data is branded."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
