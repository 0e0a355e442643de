"""Is a served device the one in virtual time: rows of Table 3 over NBD and without, and ratios.

The same benchmark, twice on each device: in virtual time, and as a client of `uflip serve`, whose
times are divided by how many times slower the device was served. A row is of means; over NBD the
way through the socket comes on top, which a slower clock makes small beside the device. Both
devices leave garbage alone while the host is idle: one that does not is another device to a host
that takes a moment between two I/Os (`docs/how-to/serve-a-simulated-device.md`). Below a row
stands how much of a mean response time was the device's, and how much the host was late.

Takes about ten minutes. Where it may, it asks for real-time priority, and stays on one processor,
as `serving.py` does: otherwise the times of a client are those of its scheduler, and of waking
another processor.
"""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from uflip.benchmarks import summary
from uflip.data.document import plain
from uflip.results import Results

# Device, how many times slower it is served, and what is run: pauses do not become slower with it.
DEVICES = (
    ("sim:transcend-module", 1, "baseline,locality,partitioning,order,pause"),
    ("sim:samsung", 4, "baseline,locality,partitioning,order"),
)
MEANS = ("SR_ms", "RR_ms", "SW_ms", "RW_ms")
FACTORS = ("pause", "locality", "partitions", "reverse", "in_place", "large_increments")
URL = "nbd:unix:s"
UFLIP = (sys.executable, "-m", "uflip")


def uflip(*words: str) -> None:
    """Run a command of uflip in the present folder."""
    subprocess.run([*UFLIP, *words], check=True, stdout=subprocess.DEVNULL)


def measured(url: str, out: str, only: str, *more: str) -> tuple[str, ...]:
    """Return what is run on a device, at fixed lengths, from the state in which it is."""
    words = f"run {url} --scale quick --method paper --pause 100ms --state as-is --only {only}"
    return (*words.split(), "--out", out, "--quiet", *more)


def row_of(folder: str, slower: int) -> dict[str, float | None]:
    """Read the numbers of a row [ms, and factors]."""
    characteristics: dict[str, Any] = plain(summary(Results.load(folder)))["key_characteristics"]
    means = {name: characteristics[name] for name in MEANS}
    row = {name: None if mean is None else mean / slower for name, mean in means.items()}
    return row | {name: characteristics[name].get("factor") for name in FACTORS}


def compared(url: str, slower: int, only: str) -> None:
    """Print both rows of a device, and their ratios."""
    uflip(*measured(url, "virtual", only))
    client = " ".join((*UFLIP, *measured(URL, "served", only, "--destroy", URL)))
    ways = ("serve", url, "--socket", "s", "--speed", str(slower))
    told = subprocess.run(
        [*UFLIP, *ways, "--json", "--run", client], check=True, capture_output=True, text=True
    )
    export = json.loads(told.stdout)["exports"][0]
    virtual, served = row_of("virtual", 1), row_of("served", slower)
    print(f"{url}, served {slower} times slower")
    print(f"  {'':18}{'virtual':>10}{'over NBD':>10}{'ratio':>8}")
    for name, expected in virtual.items():
        found = served[name]
        if expected is None or found is None:
            continue
        print(f"  {name:18}{expected:10.3f}{found:10.3f}{found / expected:8.3f}", flush=True)
    means = {key: export[key]["mean_ns"] / slower / 1e6 for key in ("simulated", "lag")}
    print(f"  of all requests: device {means['simulated']:.3f}, late by {means['lag']:.3f}")


def main() -> None:
    """Compare all devices."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
        # To wake somebody on another one takes longer than all the rest of the way.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    except PermissionError:
        print("without real-time priority: only a quiet machine keeps time")
    for url, slower, only in DEVICES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            compared(url, slower, only)
            os.chdir("/")


if __name__ == "__main__":
    main()
