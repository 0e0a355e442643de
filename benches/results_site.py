"""How fast a results site answers: `python benches/results_site.py [--results N] [--database URL]`.

Rows of so many results of so many devices are written into the database; then clients ask for the
list, filtered lists and devices' pages, all at once, through a server of its own process. Printed
are the 95th percentiles and the memory of the server.
"""

import argparse
import random
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

from uflip.site.accounts import new_token
from uflip.site.site import Site, open_site
from uflip.site.tables import Account, Device, Result

DEVICES = 500
CLIENTS = 20
SECONDS = 10.0
STATES = ("random", "sequential", "as-is")


def fill(site: Site, results: int) -> None:
    """Write rows as submissions would leave them."""
    random_ = random.Random(1)
    with site.sessions.begin() as session:
        new_token(session, "bench", "submitter")
        account = session.scalars(select(Account.id)).one()
        devices = [
            {"slug": f"device-{n}", "kind": random_.choice(["block", "sim", "file"]),
             "model": f"Maker Model {n}", "capacity_bytes": (1 + n % 7) << 36}
            for n in range(DEVICES)
        ]  # fmt: skip
        session.execute(insert(Device), devices)
    for begin in range(0, results, 10_000):
        rows = [_row(random_, account, n) for n in range(begin, min(begin + 10_000, results))]
        with site.sessions.begin() as session:
            session.execute(insert(Result), rows)


def _row(random_: random.Random, account: int, number: int) -> dict[str, object]:
    day = f"2026-{random_.randint(1, 12):02}-{random_.randint(1, 28):02}T00:00:00Z"
    means = {f"{name}_ms": random_.lognormvariate(0, 1) for name in ("sr", "rr", "sw", "rw")}
    return {
        "id": f"{number:012x}", "account_id": account, "device_id": 1 + random_.randrange(DEVICES),
        "folder_id": f"{number:032x}", "submitted_utc": day, "created_utc": day,
        "published_utc": day if random_.random() < 0.9 else None, "uflip_version": "0.1.0",
        "firmware": f"FW{random_.randrange(9)}", "scale": random_.choice(["quick", "standard"]),
        "state": random_.choice(STATES), "durability": "cached", "status": "complete",
        "runs": 900, "experiments": 310, "known": 250, "warnings": random_.randrange(9),
        "cells": ["1", "1", "1", "5", "5 s", "8 MB (=)", "4 (x2)", "x3", "=", "x4"],
        "bytes": 10_000_000,
    } | means  # fmt: skip


ADDRESSES: dict[str, Callable[[random.Random], str]] = {
    "list": lambda r: f"/?page={r.randrange(1, 50)}",
    "filter": lambda r: f"/?state={r.choice(STATES)}&kind=sim&sort=rw",
    "search": lambda r: f"/?q=Model+{r.randrange(DEVICES)}",
    "device": lambda r: f"/devices/device-{r.randrange(DEVICES)}",
    "devices": lambda _: "/devices",
}


def ask(url: str, name: str) -> list[float]:
    """Let all clients ask for one kind of address; returns what each answer took [s]."""
    taken: list[float] = []
    end = time.monotonic() + SECONDS

    def client(number: int) -> None:
        random_ = random.Random(number)
        with httpx.Client(base_url=url, timeout=60) as http:
            time.sleep(random_.expovariate(1.0))  # nobody comes on the same instant
            while time.monotonic() < end:
                begun = time.perf_counter()
                http.get(ADDRESSES[name](random_)).raise_for_status()
                taken.append(time.perf_counter() - begun)
                time.sleep(random_.expovariate(1.0))  # a person reads

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def main() -> None:
    """Fill, serve, ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=int, default=100_000)
    parser.add_argument("--database")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = open_site(Path(folder) / "site", given.database)
        fill(site, given.results)
        with site.sessions() as session, session.get_bind().engine.connect() as made:
            # What a server does by itself some minutes after so many rows came.
            alone = made.execution_options(isolation_level="AUTOCOMMIT")
            alone.exec_driver_sql("VACUUM ANALYZE" if given.database else "ANALYZE")
        site.close()
        command = [sys.executable, "-m", "uflip", "site", "serve", f"{folder}/site"]
        command += ["--port", "0", "--per-minute", str(10**8)]
        command += ["--database", given.database] if given.database else []
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
            print(f"{given.results} results of {DEVICES} devices, {CLIENTS} clients")
            for name in ADDRESSES:
                taken = np.array(ask(url, name)) * 1e3
                p50, p95 = np.percentile(taken, [50, 95])
                print(f"{name:10} {len(taken):6} answers  median {p50:6.1f} ms  p95 {p95:6.1f} ms")
            status = Path(f"/proc/{server.pid}/status").read_text().splitlines()
            rss = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
            print(f"memory of the server {rss / 1024:.0f} MiB")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
