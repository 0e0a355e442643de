"""Reads during writes at a set rate, on a simulated device with one die: a queue with one server.

Arrivals are Poisson's, service times two constants, so that the mean wait is that of Pollaczek and
Khinchine: W = λ E[S²] / (2 (1 − ρ)); and an arrival finds the average state (PASTA).
"""

from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

from uflip.device.opener import open_device
from uflip.microbench.experiment import Context
from uflip.microbench.today import write_rate
from uflip.results import Results
from uflip.spec import basic

PAGE = 4096
# Commands, link and channel take no time: only the die does. Half of it is free.
ONE_DIE = (
    "sim:ofc?channels=1&dies_per_channel=1&blocks_per_die=4096&pages_per_block=64&metadata_pages=0"
    "&spare_factor=0.5&state=sequential&command_read_ns=0&command_write_ns=0"
    "&channel_bytes_per_s=1000000000000000&bus_bytes_per_s=1000000000000000"
)


@pytest.mark.parametrize("percent", [80, 90, 93])
def test_reads_wait_as_queueing_theory_predicts(percent: int) -> None:
    with open_device(ONE_DIE) as device:
        context = Context(device.info, "quick", 1, io_size=PAGE)
        single_ns = {
            mode: int(np.median(np.asarray(device.run(
                basic(mode, "random", io_size=PAGE, io_count=99)).column("response_time_ns"))))
            for mode in ("read", "write")
        }  # fmt: skip
        spec = write_rate._describe(context, percent).but(
            io_count=100_000, io_ignore=0, seed=percent
        )
        trace = device.run(spec)
    assert spec.interval is not None
    rate, share = 1e9 / spec.interval, percent / 100
    assert rate * (1 - share) == pytest.approx(write_rate.READS_PER_S, rel=1e-3)
    assert rate * share == pytest.approx(write_rate.rate_of(percent), rel=0.01)
    service = {mode: ns / 1e9 for mode, ns in single_ns.items()}
    busy = rate * (share * service["write"] + (1 - share) * service["read"])
    square = share * service["write"] ** 2 + (1 - share) * service["read"] ** 2
    expected = rate * square / (2 * (1 - busy))
    took = np.asarray(trace.column("response_time_ns"))
    reads = np.asarray(trace.column("component")) == 1
    waited = took[reads].mean() / 1e9 - service["read"]
    assert waited == pytest.approx(expected, rel=0.08)
    # Theory predicts the same wait for reads and writes together.
    overall = (took.mean() / 1e9) - (share * service["write"] + (1 - share) * service["read"])
    assert overall == pytest.approx(expected, rel=0.05)


def test_suite_reports_cost_of_write_rate(workdir: Path) -> None:
    outcome = uflip("run", "sim:demo", "--suite", "today", "--scale", "quick", "--only",
                    "write_rate", "--out", "out", "-q")  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert uflip("report", "out", "-o", "r.html").code == 0
    page = Path("r.html").read_text()
    assert "At 200 reads per second, their p95 is" in page
    assert "56.25 MiB/s of writes are too many" in page
    runs = Results.load(Path("out")).runs
    rates = [run.value for run in runs if run.micro_benchmark == "write_rate"]
    assert rates == [32768 * rate for rate in (2, 200, 1800, 9800)]
