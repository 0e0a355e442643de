"""`python -m uflip.accuracy`: reported numbers beside those of long runs, as a table.

    python -m uflip.accuracy                               every device of the table, both scales
    python -m uflip.accuracy sim:tlc-nvme --scale quick    one device at one scale
    python -m uflip.accuracy 'sim:my.toml?spare_factor=0.1'
    python -m uflip.accuracy RESULT...                     existing results

Long runs are cached beside the cache of devices (`uflip cache`), so that only the first table of a
device takes long.
"""

import argparse
import os
import re
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from uflip.accuracy.table import DEVICES, SCALES, SUITES, TableEntry, format_table, results, rows
from uflip.executors import Processes, using

ALL = 1_000_000
LONGEST_NAME = 80
"""Characters of a device in the name of a folder; longer ones end with a hash."""


def main() -> None:
    """Make results, compare them, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m uflip.accuracy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("targets", nargs="*", metavar="DEVICE|RESULT", help="what to check")
    parser.add_argument("--scale", nargs="+", choices=SCALES, default=SCALES)
    parser.add_argument("--suite", nargs="+", choices=SUITES, default=SUITES)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="micro-benchmarks")
    parser.add_argument("--seed", type=int, default=1, help="of the benchmarks")
    parser.add_argument("--worst", type=int, default=ALL, help="maximum number listed for each row")
    parser.add_argument(
        "--keep", type=Path, help="a folder for the results; existing ones are used"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processors")
    args = parser.parse_args()
    with (
        TemporaryDirectory(prefix="uflip-accuracy-") as temporary,
        Processes(args.workers) as processes,
        using(processes),
    ):
        folder = args.keep or Path(temporary)
        folders: list[Path] = []
        entries: list[TableEntry] = []
        for target in args.targets or DEVICES:
            if not target.startswith("sim:"):
                folders.append(Path(target))
                continue
            entries += [
                TableEntry(
                    target, suite, scale, args.seed, folder / folder_name(target, suite, scale),
                    args.only and tuple(args.only),
                )
                for scale in args.scale
                for suite in args.suite
            ]  # fmt: skip
        folders += results(entries, _report)
        print(format_table(rows(folders, _report), args.worst))


def folder_name(target: str, suite: str, scale: str) -> str:
    """Return the name of a result's folder, of a length that file systems allow."""
    name = re.sub(r"[^\w.=-]+", "_", target)
    if len(name) > LONGEST_NAME:
        name = f"{name[:LONGEST_NAME]}-{sha256(target.encode()).hexdigest()[:8]}"
    return f"{name}-{suite}-{scale}"


def _report(done: int, name: str) -> None:
    print(f"{done:5} {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
