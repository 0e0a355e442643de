"""Compare the simulator with MQSim, on setups that both can express.

python benches/mqsim.py                  runs uflip, prints a table beside MQSim's results
python benches/mqsim.py --check          fails if results differ by more than DIFFERS allows
python benches/mqsim.py --run BINARY     runs MQSim as well, and renews benches/mqsim.json
                                         (`--only WORD`: setups with this word in their name)

MQSim's results are in benches/mqsim.json, with the commit of MQSim. The table is in
docs/reference/mqsim.md, which explains how the two sets of parameters correspond, and why some
cells differ.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mqsim_program import LANE_GB_PER_S, LANES, SECTOR_BYTES, MqsimRun, Setup, run
from uflip.device.opener import open_device
from uflip.models.write_amplification import greedy, pool_spare_factor
from uflip.reproduce.simulated_device import device_url
from uflip.results.run_statistics import write_amplification
from uflip.spec import Spec, baseline

TOLERANCE = 0.05
NO_LIMIT = 1024  # I/Os under way where they arrive at a rate; both queues are that long
COLUMNS = ("write_amplification", "mean_us", "p99_us")

RECORDED = Path(__file__).with_name("mqsim.json")
COMMIT = "7ec40e3b198e8bd117f992f051cd610e330e079e"

# Transfers over MQSim's PCIe link for an I/O besides its data, over all lanes: a doorbell, the
# request for the submission entry and the entry itself, the completion entry, each with 28 bytes of
# headers; for a write the request for the data as well. Data is sent in packets of 128 bytes.
PACKET, HEADERS = 128, 28
DOORBELL, ENTRY, COMPLETION, REQUEST = 2 + HEADERS, 64 + HEADERS, 16 + HEADERS, 4 + HEADERS

# Cycles of commands and addresses on the channel (src/ssd/ONFI_Channel_NVDDR2.cpp). The die is busy
# all that time in both; ours counts this time of the channel as time of the cells.
READ_CYCLES_NS, PROGRAM_CYCLES_NS, ERASE_CYCLES_NS = 290, 361, 220

ONE_DIE = Setup("", blocks_per_die=2048, warm_up_sizes=8)
EIGHT_DIES = Setup("", channels=4, dies_per_channel=2)
FOUR_DIES = replace(EIGHT_DIES, channels=2)
READS = replace(EIGHT_DIES, pattern="RR")
SETUPS = (
    replace(ONE_DIE, name="random writes, 7 % spare", spare_factor=9 / 128),
    replace(ONE_DIE, name="random writes, 12.5 % spare"),
    replace(ONE_DIE, name="random writes, 25 % spare", spare_factor=0.25),
    replace(FOUR_DIES, name="random writes, 2 × 2 dies, 2.5 ms apart", interval_ns=2_500_000),
    replace(
        FOUR_DIES,
        name="random writes, 2 × 2 dies, 25 % spare, 1 ms apart",
        spare_factor=0.25,
        interval_ns=1_000_000,
    ),
    replace(READS, name="random reads, 4 × 2 dies"),
    replace(READS, name="random reads, 4 × 2 dies, depth 16", queue_depth=16),
    replace(
        READS,
        name="random reads, 1 × 8 dies, slow channel, depth 32",
        channels=1,
        dies_per_channel=8,
        transfers_per_us=100,
        read_ns=25_000,
        queue_depth=32,
    ),
    replace(
        READS,
        name="random reads, 8 × 1 dies, depth 16",
        channels=8,
        dies_per_channel=1,
        queue_depth=16,
    ),
    replace(READS, name="sequential reads, 4 × 2 dies, depth 16", pattern="SR", queue_depth=16),
    replace(
        READS,
        name="sequential reads, 8 × 1 dies, depth 16",
        channels=8,
        dies_per_channel=1,
        pattern="SR",
        queue_depth=16,
    ),
)


# Columns that differ from MQSim by more than TOLERANCE; docs/reference/mqsim.md has the reasons.
CHAINS = ("p99_us",)
COMMANDS = ("mean_us", "p99_us")
DIFFERS = {
    "random writes, 7 % spare": CHAINS,
    "random writes, 12.5 % spare": CHAINS,
    "random writes, 25 % spare": CHAINS,
    "random writes, 2 × 2 dies, 2.5 ms apart": ("write_amplification", "p99_us"),
    "random writes, 2 × 2 dies, 25 % spare, 1 ms apart": ("mean_us", "p99_us"),
    "random reads, 4 × 2 dies, depth 16": COMMANDS,
    "random reads, 1 × 8 dies, slow channel, depth 32": ("p99_us",),
    "sequential reads, 4 × 2 dies, depth 16": COMMANDS,
    "sequential reads, 8 × 1 dies, depth 16": ("p99_us",),
}


@dataclass(frozen=True)
class WindowStatistics:
    """The results of a simulator in the window.

    Attributes
    ----------
    write_amplification
        Pages programmed over pages that the host wrote; None where it wrote none.
    mean_us, p50_us, p99_us, max_us
        Of response times in whole microseconds, rounded down, which is how MQSim prints them.
    held_up
        Share of I/Os that took more than ten times the median.
    """

    write_amplification: float | None
    mean_us: float
    p50_us: int
    p99_us: int
    max_us: int
    held_up: float


def statistics_of(
    amplification: float | None, response_us: NDArray[np.integer]
) -> WindowStatistics:
    """Summarise response times; percentiles are measured values."""
    ordered = np.sort(response_us)
    p50, p99 = (int(ordered[-(-percent * len(ordered) // 100) - 1]) for percent in (50, 99))
    held_up = float((ordered > 10 * p50).mean())
    return WindowStatistics(
        amplification, float(ordered.mean()), p50, p99, int(ordered[-1]), held_up
    )


def window_between(before: MqsimRun | None, after: MqsimRun) -> WindowStatistics:
    """Return the window between the ends of a shorter and a longer run with the same begin."""
    warm_up_ios = 0 if before is None else before.serviced
    programs = after.programs - (0 if before is None else before.programs)
    written = after.serviced - warm_up_ios
    times = after.response_us[warm_up_ios:]
    return statistics_of(programs / written if programs else None, times)


def link_ns(payload: int) -> float:
    """Return the time of a payload, headers included, on all lanes [ns]."""
    return payload / LANES / LANE_GB_PER_S


def url_of(setup: Setup) -> str:
    """Return the URL of our device of a setup."""
    physical = setup.dies * (setup.blocks_per_die - 1) * setup.pages_per_block
    # The host capacity is rounded down to whole MiB: half a MiB more avoids rounding errors.
    usable = (setup.logical_pages * setup.page_bytes + (1 << 19)) / (physical * setup.page_bytes)
    packets = setup.page_bytes // PACKET * (PACKET + HEADERS)
    overhead = DOORBELL + REQUEST + ENTRY + COMPLETION
    return device_url(
        "demo",
        channels=setup.channels,
        dies_per_channel=setup.dies_per_channel,
        blocks_per_die=setup.blocks_per_die - 1,
        pages_per_block=setup.pages_per_block,
        page_bytes=setup.page_bytes,
        spare_bytes=0,
        sector_bytes=SECTOR_BYTES,
        bits_per_cell=1,
        read_ns=setup.read_ns + READ_CYCLES_NS,
        program_ns=setup.program_ns + PROGRAM_CYCLES_NS,
        program_high_ns=setup.program_ns + PROGRAM_CYCLES_NS,
        erase_ns=setup.erase_ns + ERASE_CYCLES_NS,
        # MQSim rounds the time of two transfers down to whole nanoseconds.
        channel_bytes_per_s=round(2e9 / (1000 // setup.transfers_per_us * 2)),
        link_bytes_per_s=round(setup.page_bytes / link_ns(packets) * 1e9),
        command_read_ns=round(link_ns(overhead)),
        command_write_ns=round(link_ns(overhead + REQUEST)),
        spare_factor=f"{1 - usable:.9f}",
        allocator="static",
        die_queue="collection_first",
        gc="greedy",
        reserved_blocks=setup.free_blocks - 1,
        idle_free_blocks=0,
        relocation="same_die",
        separate_streams=True,
        relocations_at_once=setup.pages_per_block,
        dynamic_wear_levelling=True,
        state="random" if setup.pattern == "RW" else "sequential",
        random_overwrites=setup.warm_up_sizes if setup.pattern == "RW" else 1,
    )


def spec_of(setup: Setup) -> Spec:
    """Return the specification of the I/Os of the window."""
    whole: dict[str, int | str] = {"io_count": setup.ios, "seed": 2}
    if setup.interval_ns:
        whole |= {"time": "poisson", "interval": setup.interval_ns, "queue_depth": NO_LIMIT}
    else:
        whole["queue_depth"] = setup.queue_depth
    return baseline(setup.pattern, io_size=setup.page_bytes, **whole)


def ours(setup: Setup) -> WindowStatistics:
    """Run our simulator."""
    with open_device(url_of(setup)) as device:
        trace = device.run(spec_of(setup))
        times = np.asarray(trace.column("response_time_ns"))
        counters = json.loads(trace.counters_json() or "{}")
    amplification = write_amplification(counters, setup.page_bytes, trace.bytes_written)
    return statistics_of(amplification, times // 1000)


def stored_results() -> dict[str, WindowStatistics]:
    """Return the stored results of MQSim, by name of the setup."""
    setups = json.loads(RECORDED.read_text(encoding="utf-8"))["setups"]
    return {name: WindowStatistics(**values["measured"]) for name, values in setups.items()}


def record(binary: Path, only: str) -> None:
    """Run MQSim, and store its results."""
    stored = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.is_file() else {}
    setups = {} if stored.get("commit") != COMMIT else stored["setups"]
    for setup in SETUPS:
        if only in setup.name:
            print(setup.name, file=sys.stderr, flush=True)
            warm_up = run(binary, setup, setup.warm_up_ios) if setup.warm_up_ios else None
            whole = run(binary, setup, setup.warm_up_ios + setup.ios)
            setups[setup.name] = {
                "setup": asdict(setup),
                "measured": asdict(window_between(warm_up, whole)),
                "unanswered": whole.unanswered,
                "levelled": whole.levelled,
            }
            write(setups)


def write(setups: dict[str, Any]) -> None:
    """Store the results of MQSim, in the order of the setups."""
    ordered = {setup.name: setups[setup.name] for setup in SETUPS if setup.name in setups}
    document = {"program": "github.com/CMU-SAFARI/MQSim", "commit": COMMIT, "setups": ordered}
    RECORDED.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def closed_form(setup: Setup) -> float:
    """Return the write amplification of greedy collection under uniform random writes."""
    dies = setup.dies
    spare_factor = pool_spare_factor(
        physical_blocks=dies * (setup.blocks_per_die - 1),
        pages_per_block=setup.pages_per_block,
        logical_pages=setup.logical_pages,
        held_blocks=dies * setup.free_blocks,
    )
    return greedy(spare_factor=spare_factor, pages_per_block=setup.pages_per_block)


def cells(theirs: float | None, our: float | None, digits: int) -> list[str]:
    """Return MQSim's value, ours, and the relative difference."""
    if theirs is None or our is None:
        return ["", "", ""]
    return [f"{theirs:,.{digits}f}", f"{our:,.{digits}f}", f"{(our / theirs - 1) * 100:+.1f} %"]


def unexpected_differences(
    setup: Setup, theirs: WindowStatistics, our: WindowStatistics
) -> list[str]:
    """Return unexpected differences, and expected differences that do not occur."""
    lines = []
    for column in COLUMNS:
        one, other = getattr(theirs, column), getattr(our, column)
        if one is None or other is None:
            continue
        agrees = abs(other / one - 1) <= TOLERANCE
        if agrees == (column in DIFFERS.get(setup.name, ())):
            lines.append(f"{setup.name}: {column} is {other}, and MQSim's {one}")
    return lines


def row(setup: Setup, theirs: WindowStatistics, our: WindowStatistics) -> str:
    """Return a row of the table."""
    values = [
        setup.name,
        f"{closed_form(setup):.3f}" if setup.pattern == "RW" else "",
        *cells(theirs.write_amplification, our.write_amplification, 3),
        *cells(theirs.mean_us, our.mean_us, 1),
        *cells(theirs.p99_us, our.p99_us, 0),
    ]
    return "| " + " | ".join(values) + " |"


def main() -> None:
    """Run the requested simulators, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, metavar="BINARY", help="MQSim, to be run as well")
    parser.add_argument("--only", default="", metavar="WORD", help="setups with this word")
    parser.add_argument("--check", action="store_true", help="fail if an unexpected cell differs")
    args = parser.parse_args()
    if args.run is not None:
        record(args.run.resolve(), args.only)
    theirs = stored_results()
    if args.check:
        lines = [
            line
            for setup in SETUPS
            for line in unexpected_differences(setup, theirs[setup.name], ours(setup))
        ]
        sys.exit("\n".join(lines) or 0)
    head = (
        "setup | WA: greedy | MQSim | ours | | mean [µs]: MQSim | ours | | p99 [µs]: MQSim | ours |"
    )
    print(f"| {head} |")
    print("|---" + "|--:" * 10 + "|")
    for setup in SETUPS:
        if args.only in setup.name and setup.name in theirs:
            print(row(setup, theirs[setup.name], ours(setup)), flush=True)


if __name__ == "__main__":
    main()
