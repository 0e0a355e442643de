"""Compare served devices with virtual time: rows of Table 3 over NBD and without, and ratios.

The same benchmark runs twice on each device: in virtual time, and as a client of `uflip serve`,
whose times are divided by the slow-down of the served device. A row consists of means. Over NBD the
transport through the socket is added; a slower clock makes its share small. Neither device collects
garbage while the host is idle: one that does behaves differently for a host that pauses between two
I/Os (`docs/how-to/serve-a-simulated-device.md`). The line below a row has the share of the device
in the mean response time, and the mean lag of the host.

Takes about ten minutes. If permitted, it uses real-time priority on one processor, as `serving.py`
does: otherwise the times of a client include the scheduler and the wake-up of another processor.
"""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from uflip.data.document import plain
from uflip.result_views import summary
from uflip.results import Results

# Device, slow-down while served, and micro-benchmarks: pauses do not scale with the slow-down.
DEVICES = (
    ("sim:transcend-module", 1, "baseline,locality,partitioning,order,pause"),
    ("sim:samsung", 4, "baseline,locality,partitioning,order"),
)
MEANS = ("SR_ms", "RR_ms", "SW_ms", "RW_ms")
FACTORS = ("pause", "locality", "partitions", "reverse", "in_place", "large_increments")
URL = "nbd:unix:s"
UFLIP = (sys.executable, "-m", "uflip")


def uflip(*arguments: str) -> None:
    """Run a command of uflip in the current folder."""
    subprocess.run([*UFLIP, *arguments], check=True, stdout=subprocess.DEVNULL)


def command_of(url: str, out: str, only: str, *more: str) -> tuple[str, ...]:
    """Return the command for a device, with fixed lengths, from its current state."""
    words = f"run {url} --scale quick --method paper --pause 100ms --state as-is --only {only}"
    return (*words.split(), "--out", out, "--quiet", *more)


def row_of(folder: str, slower: int) -> dict[str, float | None]:
    """Return the numbers of a row [ms, and factors]."""
    characteristics: dict[str, Any] = plain(summary(Results.load(folder)))["key_characteristics"]
    means = {name: characteristics[name] for name in MEANS}
    row = {name: None if mean is None else mean / slower for name, mean in means.items()}
    return row | {name: characteristics[name].get("factor") for name in FACTORS}


def compare(url: str, slower: int, only: str) -> None:
    """Print both rows of a device, and their ratios."""
    uflip(*command_of(url, "virtual", only))
    client = " ".join((*UFLIP, *command_of(URL, "served", only, "--destroy", URL)))
    options = ("serve", url, "--socket", "s", "--speed", str(slower))
    process = subprocess.run(
        [*UFLIP, *options, "--json", "--run", client], check=True, capture_output=True, text=True
    )
    export = json.loads(process.stdout)["exports"][0]
    virtual, served = row_of("virtual", 1), row_of("served", slower)
    print(f"{url}, served {slower} times slower")
    print(f"  {'':18}{'virtual':>10}{'over NBD':>10}{'ratio':>8}")
    for name, expected in virtual.items():
        value = served[name]
        if expected is None or value is None:
            continue
        print(f"  {name:18}{expected:10.3f}{value:10.3f}{value / expected:8.3f}", flush=True)
    means = {key: export[key]["mean_ns"] / slower / 1e6 for key in ("simulated", "lag")}
    print(f"  of all requests: device {means['simulated']:.3f}, late by {means['lag']:.3f}")


def main() -> None:
    """Compare all devices."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
        # Waking a process on another processor takes longer than the rest of the transport.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    except PermissionError:
        print("without real-time priority: times are exact only on an idle machine")
    for url, slower, only in DEVICES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            compare(url, slower, only)
            os.chdir("/")


if __name__ == "__main__":
    main()
