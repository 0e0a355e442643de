"""Are results the same on every executor, and complete although a worker dies?"""

import os
import pickle
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import dask
import distributed
import executor_tasks as tasks
import pytest
from command_line import uflip

from uflip.device import cache
from uflip.errors import DeviceError, UnavailableError, UsageError
from uflip.executors import (
    CallingThread,
    Executor,
    Processes,
    Threads,
    cluster,
    iterate_outcomes,
    on_all,
    using,
)
from uflip.executors.cluster import Bundles
from uflip.executors.executor import WorkerTask
from uflip.reproduce import ofc, table3
from uflip.reproduce.ablation import measure_row
from uflip.reproduce.simulated_device import SimulatedDevice
from uflip.selftest import checks
from uflip.spec import baseline
from uflip.sweeping import Range, Sample, sweep

URL = "sim:demo?blocks_per_die=64"
WRITES = baseline("RW", io_size="4k", io_count=500)
VARY = {"spare_factor": [0.15, 0.3], "gc": ["greedy", "cyclic"]}
KINDS = ("here", "threads", "processes", "cluster")


@pytest.fixture(scope="module")
def executors() -> Iterator[dict[str, Executor]]:
    with ExitStack() as stack:
        yield {
            "here": CallingThread(),
            "threads": Threads(3),
            "processes": stack.enter_context(Processes(2)),
            "cluster": stack.enter_context(cluster.local(2)),
        }


@pytest.fixture(params=KINDS)
def executor(request: pytest.FixtureRequest, executors: dict[str, Executor]) -> Executor:
    return executors[request.param]


# Execution of tasks


def test_results_have_the_order_of_their_points(executor: Executor) -> None:
    progress: list[tuple[int, str]] = []
    with using(executor):
        results = on_all(abs, range(-40, 0), lambda *step: progress.append(step))
    assert results == list(range(40, 0, -1))
    assert [done for done, _ in progress] == list(range(1, 41))
    assert sorted(name for _, name in progress) == sorted(map(str, range(-40, 0)))


def test_sweep_is_identical_on_every_executor(executor: Executor) -> None:
    with using(executor):
        assert sweep(URL, WRITES, VARY, warm_up=0.5) == _serial_sweep()


def _serial_sweep() -> list[Any]:
    with using(CallingThread()):
        return sweep(URL, WRITES, VARY, warm_up=0.5)


def test_two_clusters_run_in_parallel_and_require_certificates(
    executors: dict[str, Executor],
) -> None:
    with cluster.local(1) as second:
        assert second.workers == 1
        pids = _descendants()
        listening = _listening(pids)
        assert len(listening) > 3
        assert [address for address, _ in listening if not address.startswith("127.")] == []
        protocols = [_protocol(port) for _, port in listening]
        assert {*protocols} == {"HTTP", "TLS"}, protocols
        # Each cluster has a scheduler, and a nanny and a process for each worker (two and one).
        assert protocols.count("TLS") == (1 + 2 * 2) + (1 + 2 * 1)
        for pid in pids:
            with suppress(OSError):
                for file in ("cmdline", "environ"):
                    assert b"PRIVATE KEY" not in Path(f"/proc/{pid}/{file}").read_bytes()


def _protocol(port: int) -> str:
    """Return the protocol of a port; check that it serves nothing without a certificate."""
    response = b""
    with (
        socket.create_connection(("127.0.0.1", port), 5) as connection,
        suppress(ConnectionResetError),
    ):
        connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        response = connection.recv(100)
    if response.startswith(b"HTTP"):
        assert b" 404 " in response, response
        return "HTTP"
    assert response == b"", response
    for other_security in (None, distributed.Security.temporary()):
        context = ssl._create_unverified_context()
        if other_security is not None:
            context = other_security.get_connection_args("client")["ssl_context"]
            context.verify_mode = ssl.CERT_NONE
        with (
            socket.create_connection(("127.0.0.1", port), 5) as plain,
            pytest.raises(OSError, match=r"certificate|unknown ca"),
            context.wrap_socket(plain) as connection,
        ):
            connection.recv(1)  # with TLS 1.3 the refusal comes after the client's handshake
    return "TLS"


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_local_scheduler_requires_a_certificate(
    executors: dict[str, Executor], scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    port = _scheduler_address(executors).rpartition(":")[2]
    with (
        pytest.raises(UnavailableError, match="does not answer"),
        cluster.connect(f"{scheme}://127.0.0.1:{port}"),
    ):
        raise AssertionError("a client without a certificate was admitted")


def test_cluster_names_its_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UnavailableError, match="needs cryptography"), cluster.local(1):
        raise AssertionError("it started without TLS")


def _scheduler_address(executors: dict[str, Executor]) -> str:
    return str(executors["cluster"]._client.scheduler.address)  # type: ignore[attr-defined]


def _descendants() -> set[int]:
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    pids = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= more
    return pids


def _listening(pids: set[int]) -> list[tuple[str, int]]:
    """Return the addresses and ports at which these processes listen, from procfs."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inodes.add(str(entry.readlink()).removeprefix("socket:[").rstrip("]"))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1].split(":") for row in rows if row[3] == "0A" and row[9] in inodes]
    return [
        (socket.inet_ntoa(bytes.fromhex(host)[::-1]), int(port, 16)) for host, port in listening
    ]


def test_error_of_a_task_is_raised(executor: Executor) -> None:
    with using(executor), pytest.raises(DeviceError, match="no such flash"):
        on_all(tasks.fails_at_7, range(20))


def test_switches_apply_in_workers(executor: Executor) -> None:
    with using(executor):
        with cache.switched_off():
            assert on_all(tasks.is_cached, [0, 1]) == [False, False]
        assert on_all(tasks.is_cached, [0, 1]) == [True, True]


def test_nested_points_stay_with_their_worker(executor: Executor) -> None:
    with using(executor):
        assert on_all(tasks.squares, [2, 3]) == [[0, 1], [0, 1, 4]]


def test_closed_generator_starts_no_more_tasks(executor: Executor, tmp_path: Path) -> None:
    with using(executor):
        outcomes = iterate_outcomes(partial(tasks.touch_numbered_file, tmp_path), range(2000))
        with closing(outcomes):  # type: ignore[type-var]
            next(outcomes)
        time.sleep(0.3)  # tasks that had begun have ended
        started = len([*tmp_path.iterdir()])
        assert started < 2000
        assert on_all(abs, [-1]) == [1], "the executor accepts more work"
    assert len([*tmp_path.iterdir()]) - started < 100


def test_other_simulator_version_is_refused() -> None:
    with pytest.raises(UnavailableError, match="another version of the simulator"):
        WorkerTask(abs, simulator="0.0.1")(-1)


@pytest.mark.parametrize(
    "work",
    [
        *checks()[:1],
        ofc._measure_rate,
        ofc.fixed_relocation,
        partial(measure_row, table3.TABLE[0].profile),
    ],
    ids=["self-test", "throughput", "relocation", "ablation"],
)
def test_tasks_of_papers_and_checks_can_be_pickled(work: Any) -> None:
    assert type(pickle.loads(pickle.dumps(work))) is type(work)


def test_pickled_device_keeps_its_state() -> None:
    device = SimulatedDevice("sim:demo?blocks_per_die=64&state=empty")
    device.apply(WRITES)
    copy = pickle.loads(pickle.dumps(device))
    assert (copy.url, copy.logical_pages) == (device.url, device.logical_pages)
    assert copy.run(WRITES).completed_ns.tolist() == device.run(WRITES).completed_ns.tolist()


def test_large_points_are_sent_without_a_warning(executors: dict[str, Executor]) -> None:
    large = [bytes(6_000_000)] * 3
    with using(executors["cluster"]):
        assert on_all(len, large, name=lambda _: "") == [6_000_000] * 3


# Workers that die


@pytest.mark.parametrize("kind", ["processes", "cluster"])
def test_task_of_a_dead_worker_is_repeated(
    kind: str, executors: dict[str, Executor], tmp_path: Path
) -> None:
    work = partial(tasks.kill_worker_once, tmp_path, os.getpid())
    with using(executors[kind]):
        assert on_all(work, range(12)) == list(range(12))
    assert (tmp_path / "3").exists(), "one died"


def test_death_of_a_worker_ends_tasks_of_the_other(tmp_path: Path) -> None:
    """Workers ignore the SIGTERM that Python sends to those of a broken pool."""
    work = partial(tasks.kill_worker_beside_long_task, tmp_path, os.getpid())
    with Processes(2) as both, using(both):
        assert on_all(work, range(4)) == list(range(4))
    assert (tmp_path / "killed").exists()


def test_sweep_survives_killed_workers(executors: dict[str, Executor], tmp_path: Path) -> None:
    """Workers are killed; `make soak` continues for minutes, with one kill every 10 s."""
    soak = "UFLIP_SOAK" in os.environ
    vary: dict[str, Range] = {"spare_factor": Range(0.1, 0.5)}
    sample = Sample("lhs", 6000 if soak else 24, 5)
    with using(Threads()):
        expected = sweep(URL, WRITES, vary, sample=sample, data=tmp_path / "here")
    over = threading.Event()
    client = executors["cluster"]._client  # type: ignore[attr-defined]
    killed: list[int] = []

    def kill() -> None:
        while not over.wait(10.0 if soak else 0.05):
            workers = [*client.run(os.getpid).values()] if soak or not killed else []
            if workers:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with using(executors["cluster"]):
            rows = sweep(URL, WRITES, vary, sample=sample, data=tmp_path / "there")
    finally:
        over.set()
        killer.join(timeout=60)
    assert rows == expected
    files = [(tmp_path / name / "points.parquet").read_bytes() for name in ("here", "there")]
    assert files[0] == files[1], f"{len(killed)} were killed"


def test_lost_dask_worker_is_restarted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Dask also gives up a worker that is killed again while it starts."""
    monkeypatch.setitem(cluster.SETTINGS, "distributed.deploy.lost-worker-timeout", "1ms")
    monkeypatch.setattr(cluster, "CHECK_S", 0.5)
    monkeypatch.setattr(cluster, "NO_WORKER_S", 30.0)
    with cluster.local(2) as both, using(both):
        for number in range(2):  # one worker continues; then both exist again
            folder = tmp_path / str(number)
            folder.mkdir()
            assert on_all(partial(tasks.kill_worker_once, folder, os.getpid()), range(12)) == [
                *range(12)
            ]
        for _ in range(100):
            if len({*on_all(tasks.own_pid, range(100))}) == 2:
                return
    raise AssertionError("one of the two was not started again")


def test_point_that_kills_every_worker_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uflip.executors.processes.MAX_WORKER_DEATHS", 2)
    with Processes(1) as single_worker, using(single_worker), pytest.raises(DeviceError) as raised:
        on_all(partial(tasks.kill_worker, os.getpid()), [41])
    assert "41" in str(raised.value)


def test_bundle_of_a_dead_worker_is_split() -> None:
    bundles = Bundles(20)
    first = bundles.next(100)
    assert first == [[point] for point in range(8)], "the duration of a point is not known yet"
    bundles.took([0.1] * 8)
    five = bundles.next(1)[0]
    assert len(five) == 5
    assert bundles.died(five) is None
    assert bundles.next(5) == [[point] for point in five]
    assert [bundles.died([five[0]]) for _ in range(5)] == [None] * 4 + [five[0]]


@pytest.mark.parametrize("kind", ["processes", "cluster"])
def test_workers_ignore_ctrl_c(kind: str, executors: dict[str, Executor]) -> None:
    """A terminal sends SIGINT to the workers as well: they continue until the parent stops them."""
    with using(executors[kind]):
        before = {*on_all(tasks.own_pid, range(64))}
        assert os.getpid() not in before
        for worker in before:
            os.kill(worker, signal.SIGINT)
            os.kill(worker, signal.SIGHUP)
        assert {*on_all(tasks.own_pid, range(64))} & before


# On the command line


def test_executor_options() -> None:
    arguments = ("--vary", "gc=greedy,cyclic", "--pattern", "RW", "--io-count", "200", "--json")
    outcome = uflip("sweep", URL, *arguments, "--jobs", "1")
    assert outcome.code == 0, outcome.err
    both = uflip("sweep", URL, *arguments, "--jobs", "2", "--workers", "1")
    assert (both.code, "Only one of these options" in both.out) == (UsageError.exit_code, True)
    unreachable = uflip("sweep", URL, *arguments, "--scheduler", "nowhere")
    assert (unreachable.code, "does not answer" in unreachable.out) == (6, True), unreachable.out


def test_external_scheduler_is_used(
    executors: dict[str, Executor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment names the certificate, as for any Dask cluster with TLS."""
    arguments = ("--vary", "gc=greedy,cyclic", "--pattern", "RW", "--io-count", "200", "--json")
    security = executors["cluster"]._client.security  # type: ignore[attr-defined]
    for name in ("tls_ca_file", "tls_client_cert", "tls_client_key"):
        (tmp_path / name).write_text(getattr(security, name))
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    monkeypatch.setenv(f"{tls}CA_FILE", str(tmp_path / "tls_ca_file"))
    monkeypatch.setenv(f"{tls}CLIENT__CERT", str(tmp_path / "tls_client_cert"))
    monkeypatch.setenv(f"{tls}CLIENT__KEY", str(tmp_path / "tls_client_key"))
    from_environment = dask.config.collect_env()["distributed"]["comm"]["tls"]
    before = dask.config.get("distributed.comm.tls")
    with dask.config.set({"distributed.comm.tls": dask.config.merge(before, from_environment)}):
        remote = uflip("sweep", URL, *arguments, "--scheduler", _scheduler_address(executors))
    assert remote.code == 0, remote.err
    assert remote.out == uflip("sweep", URL, *arguments).out
