"""Instructions of a timed write by stage of the simulator, counted by Valgrind.

Needs `valgrind`, and `uflip-bench` built with line numbers, which `make instructions` does. A count
of instructions is the same under every load of the machine, so two versions can be compared where
their times cannot. Nothing passes or fails.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target" / "release" / "uflip-bench"
PAGES = 200_000
LOADS = ("alone", "copied-back", "32-at-once", "32-KiB")
OTHERS = ("untimed", "fast", "full-cache", "today", "worn")

# The first stage with a part of a source file's name gets the instructions of that file.
STAGES = (
    (
        "host workload: draws and submits addresses",
        ("crates/bench/src/", "crates/engine/src/", "/rand_", "crates/core/src/random.rs"),
    ),
    ("event calendar", ("crates/sim/src/timeline/calendar.rs",)),
    ("timing of dies, channels, buses and link", ("crates/sim/src/timeline/",)),
    (
        "FTL and block pool",
        ("crates/sim/src/ftl/", "crates/sim/src/pool/", "crates/sim/src/collections/"),
    ),
    ("flash: geometry, NAND rules, counters", ("crates/sim/src/flash/",)),
    (
        "garbage collection and its operations",
        (
            "crates/sim/src/device/collector.rs",
            "crates/sim/src/device/event.rs",
            "crates/sim/src/device/paged.rs",
            "crates/sim/src/device/timed_flash.rs",
            "crates/sim/src/device/write_backlog.rs",
        ),
    ),
    ("host I/Os: accepted, split, completed", ("crates/sim/src/", "crates/core/src/")),
    ("memory copies (time accounts, events)", ("memmove", "memcpy")),
)
NO_SOURCE = "without source line"
LIBRARY = "/library/"


def lines_of(profile: str) -> tuple[Counter[str], int]:
    """Count instructions by source file, for inlined functions by the file of the inner one.

    Inlined code of the standard library is counted with the file before it in its function; its
    total is returned as well.
    """
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    file, owner, library, of_call = "", "", 0, False
    for line in profile.splitlines():
        if match := re.match(r"(c?f[ieln])=\((\d+)\)(?: (.*))?", line):
            kind, number, name = match.groups()
            if name:
                names[number] = name
            if kind == "fn":
                owner = ""
            elif not kind.startswith("c"):
                file = names[number]
                owner = owner if LIBRARY in file and owner else file
        elif line.startswith("calls="):
            of_call = True
        elif re.match(r"[+\-*\d]", line):
            # The cost of a call is counted in the callee.
            if not of_call:
                count = int(line.split()[1])
                counts[owner or file] += count
                library += count if LIBRARY in file else 0
            of_call = False
    return counts, library


def stage_of(file: str) -> str:
    """Return the stage of a source file."""
    for stage, parts in STAGES:
        if any(part in file for part in parts):
            return stage
    return NO_SOURCE


def stages(load: str) -> tuple[dict[str, float], float, float]:
    """Return instructions per host page: by stage, of the library; and pages programmed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "profile"
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        toggles = [f"--toggle-collect=uflip_bench::loads::{name}" for name in ("timed", "untimed")]
        command = [*valgrind, *toggles, str(PROGRAM), load, str(PAGES)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        profile = out.read_text()
        counts, library = lines_of(profile)
    (total,) = re.findall(r"^totals: (\d+)$", profile, re.MULTILINE)
    if sum(counts.values()) != int(total):
        raise SystemExit(f"{sum(counts.values())} instructions were found of {total}")
    by_stage = dict.fromkeys([*(name for name, _ in STAGES), NO_SOURCE], 0.0)
    for file, count in counts.items():
        by_stage[stage_of(file)] += count / PAGES
    return by_stage, library / PAGES, float(done.stdout)


def main() -> None:
    """Print tables of all loads, or one of the named loads."""
    for loads in [sys.argv[1:]] if sys.argv[1:] else (LOADS, OTHERS):
        table_of(loads)
        print()


def table_of(loads: Sequence[str]) -> None:
    """Print a table with a column for each load."""
    tables = [stages(load) for load in loads]
    print(f"| instructions a page | {' | '.join(loads)} |")
    print("|---" * (len(loads) + 1) + "|")
    for name in [*(stage for stage, _ in STAGES), NO_SOURCE]:
        if any(table[name] >= 1 for table, *_ in tables):
            row(name, [table[name] for table, *_ in tables])
    row("**total**", [sum(table.values()) for table, *_ in tables])
    row(
        "of these, inlined code of arrays, options and comparisons",
        [of for _, of, _ in tables],
    )
    programmed = [pages for *_, pages in tables]
    print(f"| pages programmed | {' | '.join(f'{pages:.2f}' for pages in programmed)} |")


def row(name: str, values: list[float]) -> None:
    """Print a line of the table."""
    print(f"| {name} | {' | '.join(f'{value:,.0f}' for value in values)} |")


if __name__ == "__main__":
    main()
