"""Overhead of executors: `python benches/executors.py [--points N] [--seconds S]`.

For threads, processes and Dask's workers it prints the efficiency of two workers on a sweep (1.0 is
twice as fast as one), the overhead of tasks of `S` seconds, and the time of an empty task. Other
load on the machine makes the numbers worse: the load is printed, and first the upper limit, the
efficiency of two independent programs that share the points. With `--kill-every S` a worker is
killed at this interval while Dask sweeps, and rows are compared.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from uflip.device import cache
from uflip.executors import CallingThread, Executor, Processes, Threads, cluster, on_all, using
from uflip.spec import baseline
from uflip.sweeping import Range, Sample, sweep

URL = "sim:demo?blocks_per_die=256"
KINDS = ("threads", "processes", "dask")
NOTHINGS = 2000
# One worker and two, alternating; the fastest rounds count, which other load disturbed least.
ROUNDS = 3


@contextmanager
def executor_of(kind: str, workers: int) -> Iterator[Executor]:
    """Start an executor, with its processes, for this block."""
    with ExitStack() as stack:
        executor: Executor = Threads(workers)
        if kind == "processes":
            executor = stack.enter_context(Processes(workers))
        elif kind == "dask":
            executor = stack.enter_context(cluster.local(workers))
        stack.enter_context(using(executor))
        on_all(abs, range(4 * workers))  # starts the processes
        yield executor


def seconds(work: Callable[[], Any]) -> float:
    """Return the duration of some work [s]."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def sweep_devices(points: int, ios: int) -> Any:
    """Sweep `points` devices, with `ios` writes each."""
    writes = baseline("RW", io_size="4k", io_count=ios)
    return sweep(URL, writes, {"spare_factor": Range(0.1, 0.5)}, sample=Sample("lhs", points))


def time_of_programs(programs: int, points: int, ios: int) -> float:
    """Return the time of independent programs with equal shares of points, after start-up [s]."""
    command = [sys.executable, __file__, "--alone", "--points", str(points // programs)]
    started = [
        subprocess.Popen(
            [*command, "--ios", str(ios)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(programs)
    ]
    for each in started:
        assert each.stdout is not None
        each.stdout.readline()
    began = time.perf_counter()
    for each in started:
        assert each.stdin is not None
        each.stdin.close()
    for each in started:
        each.wait()
    return time.perf_counter() - began


def run_one_program(points: int, ios: int) -> None:
    """Run one of these programs: it reports when it is ready, and begins when its input ends."""
    with using(CallingThread()):
        sweep_devices(4, ios)
        print("ready", flush=True)
        sys.stdin.read()
        sweep_devices(points, ios)
    os._exit(0)  # skip the rest of the process


def wait(duration_s: float, _point: int) -> None:
    """Wait for a duration, without using the processor."""
    time.sleep(duration_s)


def ceiling(points: int, ios: int, rounds: int) -> None:
    """Print the efficiency of two programs without an executor."""
    one, two = [], []
    for _ in range(rounds):
        one.append(time_of_programs(1, points, ios))
        two.append(time_of_programs(2, points, ios))
    print(
        f"{'apart':10} {points} points: 1 program {min(one):.1f} s, 2 programs {min(two):.1f} s, "
        f"efficiency {min(one) / min(two) / 2:.2f}"
    )


def measure(kind: str, points: int, ios: int, duration_s: float, rounds: int) -> None:
    """Print the overhead of one kind of executor."""
    one_worker, two_workers = [], []
    for _ in range(rounds):
        with executor_of(kind, 1):
            sweep_devices(4, ios)  # the workers have loaded their modules
            one_worker.append(seconds(partial(sweep_devices, points, ios)))
        with executor_of(kind, 2):
            sweep_devices(8, ios)
            two_workers.append(seconds(partial(sweep_devices, points, ios)))
    quickest, quicker = min(one_worker), min(two_workers)
    with executor_of(kind, 2):
        tasks = 20
        duration = seconds(partial(on_all, partial(wait, duration_s), range(tasks)))
        nothing = seconds(partial(on_all, abs, range(NOTHINGS)))
    overhead = duration / (tasks / 2 * duration_s) - 1
    print(
        f"{kind:10} {points} points: 1 worker {quickest:.1f} s, 2 workers {quicker:.1f} s, "
        f"efficiency {quickest / quicker / 2:.2f}; tasks of {duration_s:g} s: {overhead:+.1%}; "
        f"nothing: {nothing / NOTHINGS * 1e3:.2f} ms"
    )


def killing(points: int, ios: int, every_s: float) -> None:
    """Sweep while workers are killed, and compare with threads."""
    with using(Threads()):
        expected = sweep_devices(points, ios)
    finished, killed = threading.Event(), 0
    with executor_of("dask", 2) as executor:
        client = executor._client  # type: ignore[attr-defined]

        def kill() -> None:
            nonlocal killed
            while not finished.wait(every_s):
                for worker in [*client.run(os.getpid).values()][:1]:
                    os.kill(worker, signal.SIGKILL)
                    killed += 1

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            began = time.perf_counter()
            rows = sweep_devices(points, ios)
            duration = time.perf_counter() - began
        finally:
            finished.set()
            killer.join(timeout=60)
    same = "the same" if rows == expected else "OTHERS"
    print(
        f"dask       {points} points in {duration:.1f} s, {killed} workers killed: rows are {same}"
    )


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--ios", type=int, default=50_000, help="writes of a point")
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--kill-every", type=float, default=0.0)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        with cache.switched_off():
            run_one_program(args.points, args.ios)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with cache.switched_off():
        if args.kinds:
            ceiling(args.points, args.ios, args.rounds)
        for kind in args.kinds:
            measure(kind, args.points, args.ios, args.seconds, args.rounds)
        if args.kill_every:
            killing(args.points, args.ios, args.kill_every)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
