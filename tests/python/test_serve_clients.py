"""Do fio, nbdinfo, nbdcopy, qemu-img and qemu-io find a served device to be a block device?

They are real, and packages of every distribution; where one is not installed its cases are skipped.
"""

import hashlib
import json
import os
import random
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbd import serving, stop_and_report

SMALL = "sim:demo?blocks_per_die=64"
MIB = 1 << 20


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server of a device that takes no time, and of a simulated one that keeps no time."""
    path = tmp_path_factory.mktemp("serve") / "s"
    with serving("null", SMALL, "--speed", "0", path=path):
        yield path


def run(command: str, timeout_s: float = 120) -> str:
    name, *_ = words = shlex.split(command)
    process = subprocess.run(
        [tool(name), *words[1:]], capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert process.returncode == 0, f"{command}\n{process.stdout}{process.stderr}"
    return process.stdout


@pytest.fixture
def uri(quick: Path) -> str:
    return f"nbd+unix:///?socket={quick}"


def test_nbdinfo_reports_export(uri: str) -> None:
    export = json.loads(run(f"nbdinfo --json {uri}"))["exports"][0]
    assert export["export-size"] == 64 << 30
    assert export["block_size_minimum"] == 512
    for can in ("can_flush", "can_fua", "can_trim", "can_zero", "can_multi_conn", "can_df"):
        assert export[can] is True, can
    assert export["is_read_only"] is False
    assert len(json.loads(run(f"nbdinfo --list --json {uri}"))["exports"]) == 2


NBDCOPY = [
    "", "--connections=1", "--requests=1", "--flush", "--request-size=4096", "--no-extents",
    "--synchronous",
]  # fmt: skip


@pytest.mark.parametrize("options", NBDCOPY)
def test_nbdcopy_copies_data_both_ways(workdir: Path, uri: str, options: str) -> None:
    Path("in").write_bytes(random.Random(3).randbytes(3 * MIB) + bytes(MIB))
    run(f"nbdcopy {options} in {uri}")
    run(f"qemu-img dd -f raw -O raw bs=1M count=4 if={uri} of=out")
    assert digest("in") == digest("out")


def digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.mark.parametrize("form", ["raw", "qcow2", "vmdk", "vdi", "qed", "vpc", "vhdx", "parallels"])
def test_qemu_img_converts_every_format(workdir: Path, uri: str, form: str) -> None:
    Path("in").write_bytes(random.Random(form).randbytes(2 * MIB))
    run(f"qemu-img convert -f raw -O {form} in image")
    run(f"qemu-img convert -n -f {form} -O raw image {uri}")
    run(f"qemu-img dd -f raw -O raw bs=1M count=2 if={uri} of=out")
    assert digest("in") == digest("out")


def test_qcow2_image_on_served_device_is_consistent(workdir: Path) -> None:
    with serving(SMALL, "--speed", "0"):
        uri = "nbd+unix:///?socket=s"
        run(f"qemu-img create -f qcow2 {uri} 16M")
        run(f"qemu-io -f qcow2 -c 'write -P 9 1M 1M' -c 'write -z 0 64k' {uri}")
        assert "No errors" in run(f"qemu-img check -f qcow2 {uri}")
        run(f"qemu-io -f qcow2 -c 'read -P 9 1M 1M' -c 'read -P 0 2M 1M' {uri}")


# Commands of qemu-io with the pattern that it must read back; the device's content is unknown.
QEMU_IO = [
    "write -P 1 {at} 512; read -P 1 {at} 512",
    "write -P 2 {at} 4k; read -P 2 {at} 4k",
    "write -P 3 {at} 64k; read -P 3 {at} 64k",
    "write -P 4 {at} 1M; read -P 4 {at} 1M",
    "write -P 5 {at} 8M; read -P 5 {at} 8M",
    "write -f -P 6 {at} 4k; read -P 6 {at} 4k",
    "write -f -P 7 {at} 1M; flush; read -P 7 {at} 1M",
    "write -P 8 {at} 64k; write -z {at} 64k; read -P 0 {at} 64k",
    "write -P 9 {at} 64k; write -z -u {at} 64k; read -P 0 {at} 64k",
    "write -P 10 {at} 64k; write -z -f {at} 32k; read -P 0 {at} 32k",
    "write -P 11 {at} 64k; discard {at} 64k; read -P 0 {at} 64k",
    "aio_write -P 12 {at} 64k; aio_flush; read -P 12 {at} 64k",
    "aio_write -P 13 {at} 1M; aio_write -P 13 {at} 1M; aio_flush; read -P 13 {at} 1M",
    "aio_write -z {at} 1M; aio_flush; read -P 0 {at} 1M",
    "writev -P 14 {at} 512 4k 64k; readv -P 14 {at} 64k 4k 512",
    "write -P 15 {at} 4k; aio_read -P 15 {at} 4k; aio_flush",
    "write -P 16 {at} 1536; read -P 16 {at} 1536",
    "flush; flush; flush",
]
OFFSETS = ["0", "63G", "4k"]


@pytest.mark.parametrize("at", OFFSETS)
@pytest.mark.parametrize("script", QEMU_IO)
def test_qemu_io_reads_what_it_wrote(uri: str, script: str, at: str) -> None:
    commands = (f"-c {shlex.quote(each.strip())}" for each in script.format(at=at).split(";"))
    out = run(f"qemu-io -f raw {' '.join(commands)} {uri}")
    assert "Pattern verification failed" not in out
    assert "failed" not in out


@pytest.mark.parametrize("depth", [1, 16])
def test_fio_verifies_every_checksum(workdir: Path, depth: int) -> None:
    """Half a minute at both depths; ten in `make soak` (UFLIP_SOAK=1)."""
    seconds = 300 if "UFLIP_SOAK" in os.environ else 15
    long = f"--time_based --runtime={seconds}"
    job = f"--rw=randrw --bs=4k --size=4m --iodepth={depth} --fsync=64 {long}"
    words = f"fio --name=x --ioengine=nbd --uri=nbd+unix:///?socket=s --verify=crc32c {job}"
    with serving(SMALL, "--speed", "0", "--data", "disk") as process:
        assert "err= 0" in run(f"{words} --verify_fatal=1", timeout_s=600)
        export = stop_and_report(process)["exports"][0]
    # It has read back everything that it wrote.
    assert export["bytes_read"] >= 4 * MIB
    assert export["failed"] == 0
