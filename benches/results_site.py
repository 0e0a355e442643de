"""Response times of a results site: `python benches/results_site.py [--database URL] [--submit]`.

Rows of many results of 500 devices are written into the database as submissions write them. Then 20
independent clients send requests, with pauses of a second on average, to a server in a process of
its own: they page through the list, filter it, search a model, open devices and the table of all
devices. The output has medians, 95th percentiles and the peak memory of the server. SQLite has
10,000 results; PostgreSQL, with the URL of an empty database, 100,000. With `--submit` a benchmark
of a thousand runs is submitted to both: the time until it is verified and published, and the time
to fetch it. The load of the machine is printed first.
"""

import argparse
import hashlib
import html
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
from sqlalchemy import insert, select

from uflip.hints import CLASSES
from uflip.site.accounts import new_token
from uflip.site.publishing import update_device
from uflip.site.site import Site, open_site
from uflip.site.tables import Account, DeviceRecord, ResultRecord, words_of

UFLIP = (sys.executable, "-m", "uflip")
DEVICES = 500
CLIENTS = 20
SECONDS = 10.0
STATES = ("random", "sequential", "as-is")


def fill(site: Site, results: int) -> None:
    """Write rows as submissions write them."""
    rng = random.Random(1)
    with site.sessions.begin() as session:
        new_token(session, "bench", "submitter")
        account = session.scalars(select(Account.id)).one()
        devices = [
            {"slug": f"device-{n}", "kind": rng.choice(["block", "sim", "file"]),
             "model": f"Maker Model {n}", "capacity_bytes": (1 + n % 7) << 36}
            for n in range(DEVICES)
        ]  # fmt: skip
        session.execute(insert(DeviceRecord), devices)
    for begin in range(0, results, 10_000):
        rows = [_row(rng, account, n) for n in range(begin, min(begin + 10_000, results))]
        with site.sessions.begin() as session:
            session.execute(insert(ResultRecord), rows)
    with site.sessions.begin() as session:
        for device in session.scalars(select(DeviceRecord.id)):
            update_device(session, device)


def _row(rng: random.Random, account: int, number: int) -> dict[str, object]:
    day = f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}T00:00:00Z"
    means = {f"{name}_ms": rng.lognormvariate(0, 1) for name in ("sr", "rr", "sw", "rw")}
    result, device = (
        hashlib.sha256(str(number).encode()).hexdigest()[:12],
        rng.randrange(DEVICES),
    )
    firmware = f"FW{rng.randrange(9)}"
    return {
        "id": result, "account_id": account, "device_id": 1 + device,
        "folder_id": f"{number:032x}", "submitted_utc": day, "created_utc": day,
        "published_utc": day if rng.random() < 0.9 else None, "uflip_version": "0.1.0",
        "firmware": firmware, "words": words_of(f"Maker Model {device}", firmware, result),
        "device_class": rng.choice([*CLASSES]), "scale": rng.choice(["quick", "standard"]),
        "state": rng.choice(STATES), "durability": "cached", "status": "complete",
        "runs": 900, "experiments": 310, "known": 250, "warnings": rng.randrange(9),
        "cells": ["1", "1", "1", "5", "5 s", "8 MB (=)", "4 (x2)", "x3", "=", "x4"],
        "bytes": 10_000_000,
    } | means  # fmt: skip


FIRST = "/"
NEXT = re.compile(r'rel="next" href="([^"]+)"')
ADDRESSES: dict[str, Callable[[random.Random], str]] = {
    "list": lambda _: FIRST,
    "filter": lambda r: f"/?state={r.choice(STATES)}&kind=sim&sort=rw",
    "search": lambda r: f"/?q=Model+{r.randrange(DEVICES)}",
    "device": lambda r: f"/devices/device-{r.randrange(DEVICES)}",
    "devices": lambda _: "/devices",
}


def response_times(url: str, name: str) -> list[float]:
    """Let all clients request one kind of address; return the duration of each answer [s]."""
    durations: list[float] = []
    end = time.monotonic() + SECONDS

    def client(number: int) -> None:
        rng = random.Random(number)
        with httpx.Client(base_url=url, timeout=60) as http:
            time.sleep(rng.expovariate(1.0))  # clients do not start at the same instant
            page = ""
            while time.monotonic() < end:
                begin = time.perf_counter()
                answer = http.get(page or ADDRESSES[name](rng)).raise_for_status()
                durations.append(time.perf_counter() - begin)
                next_page = NEXT.search(answer.text) if name == "list" else None
                page = f"/{html.unescape(next_page[1])}" if next_page else ""
                time.sleep(rng.expovariate(1.0))  # the user reads the page

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return durations


def measure(results: int, database: str | None, benchmark: Path | None) -> None:
    """Fill a site, serve it, and measure its answers."""
    with tempfile.TemporaryDirectory() as folder:
        site = open_site(Path(folder) / "site", database)
        fill(site, results)
        with site.sessions.begin() as session:
            token = new_token(session, "sender", "submitter")
        with site.sessions() as session, session.get_bind().engine.connect() as connection:
            # A server does this itself some minutes after many new rows.
            autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
            autocommit.exec_driver_sql("VACUUM ANALYZE" if database else "ANALYZE")
        site.close()
        command = [*UFLIP, "site", "serve", f"{folder}/site"]
        command += ["--port", "0", "--per-minute", str(10**8)]
        command += ["--database", database] if database else []
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            while True:
                try:
                    httpx.get(f"{url}/health").raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.1)
            kind = "PostgreSQL" if database else "SQLite"
            print(f"{kind}: {results} results of {DEVICES} devices, {CLIENTS} clients", flush=True)
            for name in ADDRESSES:
                durations_ms = np.array(response_times(url, name)) * 1e3
                p50, p95 = np.percentile(durations_ms, [50, 95])
                count = len(durations_ms)
                print(f"{name:10} {count:6} answers  median {p50:6.1f} ms  p95 {p95:6.1f} ms")
            if benchmark is not None:
                submit(url, token, benchmark)
            status = Path(f"/proc/{server.pid}/status").read_text().splitlines()
            rss = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
            print(f"memory of the server {rss / 1024:.0f} MiB", flush=True)
        finally:
            server.terminate()
            server.wait()


def submit(url: str, token: str, benchmark: Path) -> None:
    """Submit a benchmark with the command line, and wait until it is verified and published."""
    start = time.perf_counter()
    command = [*UFLIP, "submit", str(benchmark), url, "--token", token, "--publish", "--json"]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    duration = time.perf_counter() - start
    submitted = json.loads(process.stdout)
    assert submitted["new"]
    runs = httpx.get(f"{url}/api/v1/results/{submitted['id']}").raise_for_status().json()["runs"]
    print(f"submission of {runs} runs, verified and published: {duration:.1f} s")
    with tempfile.TemporaryDirectory() as scratch:
        start = time.perf_counter()
        command = [*UFLIP, "pull", url, submitted["id"], "--out", f"{scratch}/pulled"]
        subprocess.run(command, check=True, capture_output=True)
    print(f"the same fetched: {time.perf_counter() - start:.1f} s")


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", help="of PostgreSQL: empty")
    parser.add_argument("--submit", action="store_true")
    args = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as scratch:
        benchmark = Path(scratch) / "benchmark" if args.submit else None
        if benchmark is not None:
            device = ["sim:demo?blocks_per_die=64", "--scale", "quick", "--repetitions", "8"]
            subprocess.run([*UFLIP, "run", *device, "-q", "--out", str(benchmark)], check=True)
        measure(10_000, None, benchmark)
        if args.database:
            measure(100_000, args.database, benchmark)


if __name__ == "__main__":
    main()
