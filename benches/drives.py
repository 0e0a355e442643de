"""The nine micro-benchmarks on the drives of docs/explanation/drives.md: results and causes.

python benches/drives.py DEVICE... [--scale standard]

For each device: the four baselines, then for each micro-benchmark the reads and the writes that
differ most between two values of its parameter, and the causes of the slower one's time.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uflip
from uflip.microbench.finding import format_ms
from uflip.units import format_size

Point = Mapping[str, Any]
MAX_CAUSES = 2  # of a row
MIN_SHARE = 0.1  # causes with less are not shown


def main_causes(point: Point) -> str:
    """Return the main causes of the time of an I/O."""
    causes = point["time_spent_ns"] or {}
    whole = sum(causes.values())
    shares = sorted(((ns / whole, name) for name, ns in causes.items()), reverse=True)
    causes_shown = [
        f"{share:.0%} {name.removesuffix('_ns').replace('_', ' ')}"
        for share, name in shares[:MAX_CAUSES]
        if share >= MIN_SHARE
    ]
    return ", ".join(causes_shown)


def mean(point: Point) -> str:
    """Return the formatted mean response time."""
    return format_ms(point["statistics"]["mean_ns"] / 1e6)


def value(point: Point) -> str:
    """Return the value of the varied parameter, with its unit."""
    parameter = point["value"]
    if point["unit"] == "bytes":
        return format_size(parameter)
    if point["unit"] == "ns":
        return format_ms(parameter / 1e6)
    return str(parameter)


def extremes(points: Sequence[Point], letter: str) -> tuple[Point, Point] | None:
    """Return the fastest and the slowest value of the reads or writes that differ most."""
    spans: list[tuple[float, Point, Point]] = []
    for pattern in dict.fromkeys(point["pattern"] for point in points):
        if pattern[1] == letter or (letter == "W" and "W" in pattern):
            ordered = sorted(
                (point for point in points if point["pattern"] == pattern),
                key=lambda point: float(point["statistics"]["mean_ns"]),
            )
            low, high = ordered[0], ordered[-1]
            ratio = high["statistics"]["mean_ns"] / low["statistics"]["mean_ns"]
            spans.append((ratio, low, high))
    return max(spans, key=lambda each: each[0])[1:] if spans else None


def rows(document: Mapping[str, Any]) -> Iterator[list[str]]:
    """Return the rows of the table of a device."""
    for name, points in document["micro_benchmarks"].items():
        for letter in "RW":
            if (both := extremes(points, letter)) is not None:
                low, high = both
                cheapest = f"{value(low)}: {mean(low)}"
                dearest = f"{value(high)}: {mean(high)}"
                yield [name, low["pattern"], cheapest, dearest, main_causes(high)]


def baselines(document: Mapping[str, Any]) -> Iterator[list[str]]:
    """Return the rows of the long runs."""
    for point in document["baselines"]:
        statistics, amplification = point["statistics"], point["write_amplification"]
        tail = statistics["p99_ns"]
        yield [
            point["pattern"],
            mean(point),
            "" if tail is None else format_ms(tail / 1e6),
            "" if amplification is None else f"{amplification:.2f}",
            main_causes(point),
        ]


def table(head: Sequence[str], body: Iterator[list[str]]) -> None:
    """Print a table of a document."""
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in body:
        print("| " + " | ".join(row) + " |")
    print()


def main() -> None:
    """Measure every named device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("devices", nargs="+", metavar="DEVICE")
    parser.add_argument("--scale", default="standard")
    args = parser.parse_args()
    for device in args.devices:
        with TemporaryDirectory(prefix="uflip-") as folder:
            result = uflip.run(device, Path(folder) / "result", scale=args.scale)
            document = result.summary
        table(["32 KiB", "mean", "p99", "write amplification", "spent on"], baselines(document))
        table(["micro-benchmark", "", "cheapest", "dearest", "spent on"], rows(document))


if __name__ == "__main__":
    main()
