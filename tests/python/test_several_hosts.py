"""Drives in several hosts: is each measured on its host, with the guard there, and sent back?

Two workers of a Dask scheduler stand for two hosts: each was started in a separate folder, where a
file stands for its drive, so that no other process finds that file by its name. All have the
certificate that docs/how-to/use-several-machines.md requires, in Dask's configuration.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import dask
import distributed
import pytest
from command_line import PACKAGE_ROOT, Outcome, start, uflip, unchanged

from uflip.device.opener import open_device
from uflip.errors import DeviceError
from uflip.results import Results
from uflip.results.integrity import examine

MIB = 1 << 20
QUICK = ("--scale", "quick", "--only", "order", "--pause", "1ms", "-q")
SIM = "sim:demo?blocks_per_die=64"
DRIVES = ("left@file:drive.bin", "right@file:drive.bin")


class Rack:
    """A scheduler, and a host for each label."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._use_certificate()
        text = self._start(
            "scheduler", folder, "--host", "127.0.0.1", "--port", "0", "--protocol", "tls"
        )
        self.address = text
        for label in ("left", "right"):
            (folder / label).mkdir()
            self._start("worker", folder / label, text, "--resources", f"{label}=1")

    def _use_certificate(self) -> None:
        """Give one to this process, and to those that it starts."""
        made = distributed.Security.temporary()
        paths = {"cert": self.folder / "dask.crt", "key": self.folder / "dask.key"}
        paths["cert"].write_text(made.tls_client_cert)
        paths["key"].write_text(made.tls_client_key)
        pair = {name: str(path) for name, path in paths.items()}
        tls = {"ca-file": pair["cert"], "scheduler": pair, "worker": pair, "client": pair}
        comm = {"require-encryption": True, "tls": tls}
        (self.folder / "config").mkdir()
        (self.folder / "config" / "tls.yaml").write_text(
            json.dumps({"distributed": {"comm": comm}})
        )
        before = dask.config.get("distributed.comm")
        merged = dask.config.merge(before, comm)
        self._stack.enter_context(dask.config.set({"distributed.comm": merged}))
        patch = self._stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("DASK_CONFIG", str(self.folder / "config"))

    def _start(self, kind: str, folder: Path, *arguments: str) -> str:
        """Start a part of Dask, and return the address that it prints."""
        worker_options = () if kind == "scheduler" else ("--nthreads", "1", "--host", "127.0.0.1")
        log = self._stack.enter_context((folder / f"{kind}.log").open("w"))
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", kind, *arguments, *worker_options, "--no-dashboard"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(PACKAGE_ROOT)},
            stderr=log,
            stdout=subprocess.DEVNULL,
        )
        self._stack.callback(process.wait, 30)
        self._stack.callback(process.terminate)
        pattern = r"Scheduler at: +(tls://\S+)" if kind == "scheduler" else r"(Registered to)"
        deadline = time.monotonic() + 60
        while not (match := re.search(pattern, (folder / f"{kind}.log").read_text())):
            assert process.poll() is None, kind
            assert time.monotonic() < deadline, kind
            time.sleep(0.05)
        return match[1]

    def run(self, *arguments: object) -> Outcome:
        return uflip("run", *arguments, "--scheduler", self.address)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    with ExitStack() as stack:
        yield Rack(tmp_path_factory.mktemp("rack"), stack)


@pytest.fixture
def rack(started: Rack, workdir: Path) -> Rack:
    """Both hosts with an unused drive."""
    for label in ("left", "right"):
        host = started.folder / label
        for file in host.glob("**/*.json"):
            file.unlink()
        (host / "drive.bin").unlink(missing_ok=True)
        try:
            open_device(f"file:{host / 'drive.bin'}", size=64 * MIB)
        except DeviceError as error:
            pytest.skip(f"no direct I/O in the folder for temporary files: {error.got}")
    return started


def inode_of(results: Path) -> int:
    return Results.load(results).manifest.device.details.inode or 0


def test_drives_are_measured_on_their_hosts_and_results_sent_back(
    rack: Rack, workdir: Path
) -> None:
    outcome = rack.run(*DRIVES, SIM, *QUICK, "--out", "all")
    assert outcome.code == 0, outcome.err + outcome.out
    folders = [workdir / "all" / f"{label}-file-drive.bin" for label in ("left", "right")]
    for label, folder in zip(("left", "right"), folders, strict=True):
        assert Results.load(folder).status == "complete"
        assert not examine(folder).lost_runs
        assert inode_of(folder) == (rack.folder / label / "drive.bin").stat().st_ino
        assert [*(rack.folder / label / "results" / "states").iterdir()], "noted on its host"
        assert not (rack.folder / label / "results" / "sent").exists(), "nothing is left there"
    assert uflip("verify", *folders).code == 0
    assert uflip("run", SIM, *QUICK, "--out", "alone").code == 0
    remote, local = workdir / "all" / "sim-demo-blocks-per-die-64", workdir / "alone"
    for one, other in zip(Results.load(remote).runs, Results.load(local).runs, strict=True):
        assert (one.response_time_ns() == other.response_time_ns()).all()


def test_guard_applies_on_the_host(rack: Rack, workdir: Path) -> None:
    thesis = rack.folder / "right" / "thesis.bin"
    thesis.write_bytes(bytes(range(256)) * (16 * MIB // 256))
    before = thesis.read_bytes()
    devices = ("left@file:drive.bin", "right@file:thesis.bin")
    outcome = rack.run(*devices, *QUICK, "--out", "all")
    assert outcome.code == 3, outcome.out + outcome.err
    assert "--destroy thesis.bin" in outcome.err
    assert thesis.read_bytes() == before
    assert Results.load(workdir / "all" / "left-file-drive.bin").status == "complete"
    resumed = rack.run("--resume", "all", "--destroy", "thesis.bin", "-q")
    assert resumed.code == 0, resumed.err
    assert Results.load(workdir / "all" / "right-file-thesis.bin").status == "complete"
    assert thesis.read_bytes() != before


def test_unreachable_host_is_refused_before_start(rack: Rack, workdir: Path) -> None:
    with unchanged(workdir):
        unknown = rack.run("left@file:drive.bin", "middle@/dev/sdb", *QUICK, "--out", "all")
        without_scheduler = uflip("run", "left@file:drive.bin", "null", *QUICK, "--out", "all")
    assert (unknown.code, "left, right" in unknown.err) == (6, True), unknown.err
    assert (without_scheduler.code, "--scheduler" in without_scheduler.err) == (2, True), (
        without_scheduler.err
    )


def worker_of(host: Path) -> int:
    """The process that does the work, below the one that watches over it."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            if (folder / "cwd").readlink() == host and b"spawn_main" in command:
                return int(folder.name)
        except OSError:
            continue
    raise AssertionError("nobody works there")


def under_way(rack: Rack, label: str) -> bool:
    return bool([*(rack.folder / label / "results").glob("sent/*/*/runs/*.parquet")])


def test_killed_worker_resumes_its_drive(rack: Rack, workdir: Path) -> None:
    arguments = ("--scale", "quick", "--only", "order", "--pause", "300ms", "-q", "--out", "all")
    process = start("run", "left@file:drive.bin", *arguments, "--scheduler", rack.address)
    while not under_way(rack, "left"):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.kill(worker_of(rack.folder / "left"), signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err
    results = Results.load(workdir / "all" / "left-file-drive.bin")
    assert results.status == "complete"
    assert len(results.manifest.resumed_utc) == 1, "it went on, and did not begin again"


def test_interrupted_run_resumes_on_its_host(rack: Rack, workdir: Path) -> None:
    arguments = ("--scale", "quick", "--only", "order", "--pause", "300ms", "-q", "--out", "all")
    process = start("run", "right@file:drive.bin", *arguments, "--scheduler", rack.address)
    while not under_way(rack, "right"):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert "uflip run --resume all" in process.communicate()[1]
    # The worker notices within 0.1 s that its client has left, and ends its run.
    deadline = time.monotonic() + 30
    while "in use by another benchmark" in (resumed := rack.run("--resume", "all", "-q")).err:
        assert time.monotonic() < deadline, resumed.err
        time.sleep(0.5)
    assert resumed.code == 0, resumed.err + resumed.out
    results = Results.load(workdir / "all" / "right-file-drive.bin")
    assert (results.status, len(results.manifest.resumed_utc)) == ("complete", 1)
