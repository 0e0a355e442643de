"""Fixtures and hooks for all tests."""

import gc
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
import pytest
from browser_page import monitored_page
from command_line import Outcome, uflip
from fuse_file import attached_loop
from scheduling import RestartingScheduler

from uflip.benchmark import measure_harness
from uflip.device.opener import open_device
from uflip.errors import DeviceError
from uflip.reproduce import Reproduction, carry_out
from uflip.reproduce import ReproductionOutcome as CarriedOut
from uflip.web.server import Serving, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# A process that is started in the background of a shell inherits "ignore" for SIGINT, and so would
# this one and every program that it starts. The tests need Ctrl-C, however they were started.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The same holds for SIGHUP under nohup: programs that this one starts do not ignore it then.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)
# Imported and collected objects stay: garbage collection of them took a fifth of that time.
gc.disable()

ROOT = Path(__file__).resolve().parents[2]


# The longest files start first, so that no worker runs one alone at the end.
FIRST = (
    "test_uflip_devices.py", "test_reproduce.py", "test_serve_clients.py", "test_site.py",
    "test_disturbance.py", "test_resume.py", "test_proof_devices.py", "test_guard.py",
    "test_selftest.py", "test_hostile_inputs.py", "test_hostile.py", "test_faults.py",
    "test_fault_matrix.py", "test_agreement.py", "test_long_runs.py", "test_several_hosts.py",
    "test_site_bucket.py", "test_site_hostile.py", "test_site_kills.py", "test_site_concurrency.py",
    "test_ledger.py", "test_cli_run.py", "test_several_devices.py",
)  # fmt: skip
# Number of tests that wait at any time for a disk, another process or a clock.
WAITING = 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first; the others keep their order."""
    positions = {name: position for position, name in enumerate(FIRST)}
    items.sort(key=lambda item: positions.get(item.path.name, len(FIRST)))


def pytest_collection_finish() -> None:
    """Freeze imported and collected objects, so that garbage collection skips them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


@cache
def first_reproduction_of(page: str) -> str:
    """Return the first reproduction that a page carries out; empty if it has none."""
    text = (ROOT / page).read_text(encoding="utf-8")
    match = re.search(r"^\$ uflip reproduce ([\w-]+)$", text, re.M)
    return match[1] if match else ""


class ByWork(RestartingScheduler):
    """Schedule tests that share work on one worker; else by file, or by page of examples.

    Shared work is a reproduction, which tests and pages carry out, and the preparation of a device
    of Table 3, which takes longer than its use.
    """

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        file = scope.rpartition("/")[2]
        case = nodeid.removesuffix("]").partition("[")[2]
        reproduces = file == "test_reproduce.py"
        if "::test_examples_print_" in nodeid:
            page, case = case, first_reproduction_of(case)
            if not case:
                return f"{scope}: {page}"
            reproduces = True
        if file in ("test_uflip_devices.py", "test_profiles.py") or case.startswith("uflip-"):
            return "devices of uFLIP"
        if reproduces:
            return "open-channel" if case.startswith("oc-") else "other reproductions"
        return scope


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByWork:
    """Prevent two workers from doing the same long work."""
    return ByWork(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the name of the scheduler to each worker; test_scheduling.py checks it."""
    node.workerinput["shared_out_by"] = ByWork.__name__


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run a computing test on every processor, beside the waiting ones."""
    del config
    return len(os.sched_getaffinity(0)) + WAITING


@pytest.fixture(autouse=True, scope="session")
def no_progress_lines() -> None:
    """Make the output of commands independent of their duration."""
    os.environ["UFLIP_PROGRESS"] = "0"


@pytest.fixture(autouse=True, scope="session")
def shared_device_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Cache simulated devices in a folder of the tests, never in the user's cache.

    All workers share it, so that each device is prepared once.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UFLIP_CACHE_DIR", str(shared / "devices"))
        patch.delenv("UFLIP_CACHE_SIZE", raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def single_trusted_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Read one certificate for each client of a site, not 150: the sites of tests have none."""
    path = tmp_path_factory.mktemp("trusted") / "one.pem"
    path.write_text("".join(certifi.contents().partition("-----END CERTIFICATE-----")[:2]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(autouse=True, scope="session")
def harness_measured_once() -> Iterator[None]:
    """Measure the harness overhead once, not again for each of a thousand short benchmarks.

    Measuring takes a fifth of a second, and no benchmark depends on the value.
    """
    once = cache(measure_harness)
    with pytest.MonkeyPatch.context() as patch:
        for module in ("execute", "session"):
            patch.setattr(f"uflip.benchmark.{module}.measure_harness", lambda: dict(once()))
        yield


@pytest.fixture(scope="session")
def reproduce(shared_device_cache: None) -> Callable[..., Outcome]:
    """`uflip reproduce` with any options; no reproduction is carried out twice in a session."""
    done: dict[str, CarriedOut] = {}

    def carry_out_once(reproduction: Reproduction[Any], *on_step: Any) -> CarriedOut:
        if reproduction.id not in done:
            done[reproduction.id] = carry_out(reproduction, *on_step)
        return done[reproduction.id]

    def run(*arguments: object) -> Outcome:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("uflip.reproduce.carry_out", carry_out_once)
            return uflip("reproduce", *arguments)

    return run


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty folder, and return it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Change to an empty folder in memory, for tests of many runs that do not depend on a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        monkeypatch.chdir(folder)
        yield Path(folder)


@pytest.fixture
def make_file(workdir: Path) -> Callable[..., Path]:
    """Return a function that makes a file of a size, with device options, if direct I/O works."""

    def make(size: int, **options: Any) -> Path:
        path = workdir / "scratch.bin"
        try:
            open_device(f"file:{path}", size=size, **options)
        except DeviceError as error:
            pytest.skip(f"no direct I/O in the folder for temporary files: {error.got}")
        return path

    return make


@pytest.fixture
def loop_device(workdir: Path) -> Iterator[str]:
    """Attach a loop device of 8 MiB, and return its path."""
    if os.geteuid() != 0 or shutil.which("losetup") is None:
        pytest.skip("a loop device needs root and losetup")
    (workdir / "disk.img").write_bytes(bytes(8 << 20))
    with attached_loop(workdir / "disk.img") as name:
        yield name


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Start Chromium once for all tests of a file."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if path is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Serving]:
    """Serve the explorer of the results in the `folder` fixture of a test file."""
    with serving([folder]) as explorer:
        yield explorer


@pytest.fixture
def page(browser: "Browser", server: Serving) -> "Iterator[Page]":
    """Open a page of the explorer whose console stays empty."""
    with monitored_page(browser, server.url) as monitored:
        yield monitored.page
