"""Count the converged experiments of a simulated device and their I/Os, and compare seeds.

python tools/seeds_agree.py [DEVICE] [SEEDS] [REPETITIONS]    print counts, and seeds that disagree

SEEDS is their number, from 1 on, or FIRST-LAST: 4-4 is the fourth alone.

Every benchmark has a folder of its own and the repetitions of its plan; with three seeds of the
demo it takes some eight minutes. Counted are the I/Os that were measured, and those that refreshed
the device between runs; resets of the state are counted separately. An experiment has converged if
its mean has: over its repetitions, with their scatter in the interval. A further line counts
the intervals of 95 % that are narrow enough (not all of them are claimed) and tests them: in each
pair of seeds, the means that are further apart than both intervals allow; 5 % are by chance. Seeds
agree if the largest mean of any benchmark is at most 5 % above the smallest (uFLIP §5.1).
Experiments that have converged with every seed and do not agree are named.
"""

import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from itertools import combinations
from math import hypot
from pathlib import Path

from uflip.benchmark.plan import REFRESH_IO_SIZE
from uflip.data.run import metadata_of
from uflip.data.summary import Together
from uflip.results import Results, summary
from uflip.results.statistics import AGREEMENT, allowed_ns
from uflip.results.summary_document import experiments_of

DEVICE, SEEDS, REPETITIONS = "sim:demo", "3", 3
BASELINE = "baseline"

Name = tuple[str, str, int | float | None]


def experiments(folder: Path) -> dict[Name, Together]:
    """Return mean, interval and convergence of each experiment of a benchmark."""
    return {
        (name, run["pattern"], run["value"]): run["together"]
        for name, run in experiments_of(summary(Results.load(folder)))
    }


def effort(folder: Path) -> str:
    """Return the number of I/Os of a benchmark, as text."""
    results = Results.load(folder)
    ios = refreshed = 0
    for run in results.runs:
        trace = run.trace()
        ios += len(trace)
        refreshed += metadata_of(run.path, trace.metadata_json).refreshed_bytes or 0
    resets = sum(run.reset_before for run in results.manifest.plan)
    return f"{ios:,} I/Os measured, {refreshed // REFRESH_IO_SIZE:,} between runs, {resets} resets"


def benchmarks(
    device: str, seeds: range, repetitions: int
) -> tuple[list[dict[Name, Together]], list[str]]:
    """Run a whole benchmark for each seed; return the experiments and the effort of each."""
    every, efforts = [], []
    with tempfile.TemporaryDirectory(prefix="uflip-seeds-") as folder:
        for seed in seeds:
            out = Path(folder) / str(seed)
            options = ["--repetitions", repetitions, "--seed", seed, "--out", out, "--quiet"]
            command = [sys.executable, "-m", "uflip", "run", device, *map(str, options)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            every.append(experiments(out))
            efforts.append(effort(out))
            shutil.rmtree(out)
    return every, efforts


def mean_spread(name: Name, every: list[dict[Name, Together]]) -> float:
    """Return the relative distance of the largest mean of an experiment from the smallest."""
    means = [mean for one in every if (mean := one[name]["mean_ns"]) is not None]
    return max(means) / min(means) - 1


def narrow_experiments(every: list[dict[Name, Together]]) -> list[list[Name]]:
    """Return the experiments of each benchmark whose interval is narrow enough."""
    narrow_names = []
    for one in every:
        slowest = max(
            mean for name, each in one.items() if name[0] == BASELINE and (mean := each["mean_ns"])
        )
        narrow_names.append(
            [
                name
                for name, each in one.items()
                if each["half_width_ns"] is not None
                and each["mean_ns"] is not None
                and each["half_width_ns"] <= allowed_ns(each["mean_ns"], slowest)
            ]
        )
    return narrow_names


def pairs_apart(every: list[dict[Name, Together]], of_each: list[list[Name]]) -> tuple[int, int]:
    """Return the pairs of means of two benchmarks that are too far apart, and all pairs."""
    further = pairs = 0
    for (one, ours), (other, theirs) in combinations(zip(every, of_each, strict=True), 2):
        for name in {*ours} & {*theirs}:
            between = abs((one[name]["mean_ns"] or 0.0) - (other[name]["mean_ns"] or 0.0))
            widths = (one[name]["half_width_ns"] or 0.0, other[name]["half_width_ns"] or 0.0)
            further += between > hypot(*widths)
            pairs += 1
    return further, pairs


def seeds_of(text: str) -> range:
    """Read "3" as seeds 1 to 3, and "4-6" as these."""
    first, _, last = text.rpartition("-")
    return range(int(first or 1), int(last) + 1)


def main() -> int:
    """Run the benchmarks and compare them."""
    arguments = [*sys.argv[1:], *("",) * 3]
    device = arguments[0] or DEVICE
    seeds, repetitions = seeds_of(arguments[1] or SEEDS), int(arguments[2] or REPETITIONS)
    every, efforts = benchmarks(device, seeds, repetitions)
    names = list(every[0])
    in_each = [sum(one[name]["converged"] is True for name in names) for one in every]
    converged = [name for name in names if all(one[name]["converged"] for one in every)]
    disagreeing = [name for name in converged if mean_spread(name, every) > AGREEMENT]
    of_seeds = f"{len(seeds)} seeds" if seeds[0] == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    print(f"{device}, {of_seeds}, {repetitions} repetitions: {len(names)} experiments")
    for effort_of_one in efforts:
        print(f"  {effort_of_one}")
    print(f"converged: {', '.join(map(str, in_each))}; with every seed {len(converged)}")
    print(f"of these within {AGREEMENT:.0%}: {len(converged) - len(disagreeing)}")
    narrow_of_each = narrow_experiments(every)
    counts = ", ".join(str(len(each)) for each in narrow_of_each)
    print(f"intervals of 95% that are narrow enough: {counts}")
    further, pairs = pairs_apart(every, narrow_of_each)
    if pairs:
        print(f"of {pairs:,} pairs of these from two seeds {further / pairs:.1%} are further apart")
    for name in disagreeing:
        print(f"  {' '.join(map(str, name))}: {mean_spread(name, every):.1%} apart")
    patterns: dict[str, list[Name]] = defaultdict(list)
    for name in names:
        patterns[name[1]].append(name)
    print("\n| pattern | experiments | converged | with every seed | furthest apart |")
    print("|---|---|---|---|---|")
    for pattern, pattern_names in patterns.items():
        of_converged = [name for name in pattern_names if name in converged]
        furthest = (
            f"{max(mean_spread(name, every) for name in of_converged):.1%}" if of_converged else ""
        )
        each = ", ".join(
            str(sum(one[name]["converged"] is True for name in pattern_names)) for one in every
        )
        print(f"| {pattern} | {len(pattern_names)} | {each} | {len(of_converged)} | {furthest} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
