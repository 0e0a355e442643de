"""Do whole benchmarks of a simulated device agree that differ only in their seed? uFLIP §5.1: 5 %.

python tools/seeds_agree.py [DEVICE] [SEEDS]    runs them in a folder of its own, prints who differs

Takes about a minute for each seed with one core. An experiment counts where its mean converged in
every benchmark. Two means that are known to 5 % each may well lie more than 5 % apart; what lies
further apart than both intervals allow is marked.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from uflip.results import Results, summary
from uflip.results.agreement import AGREEMENT, disagreement

DEVICE, SEEDS = "sim:demo", 3


def experiments(folder: Path) -> dict[tuple[str, str, int], Any]:
    """Return mean, interval and convergence of each experiment of a benchmark."""
    document = summary(Results.load(folder))
    named = {"baseline": document["baselines"], **document["micro_benchmarks"]}
    return {
        (name, run["pattern"], run["value"]): run["repetitions"][0]
        for name, runs in named.items()
        for run in runs
    }


def main() -> int:
    """Run the benchmarks and compare them."""
    device = sys.argv[1] if len(sys.argv) > 1 else DEVICE
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else SEEDS
    every = []
    with tempfile.TemporaryDirectory(prefix="uflip-seeds-") as folder:
        for seed in range(1, seeds + 1):
            out = Path(folder) / str(seed)
            arguments = ["run", device, "--repetitions", "1", "--seed", seed, "--out", out, "-q"]
            command = [sys.executable, "-m", "uflip", *map(str, arguments)]
            subprocess.run(command, check=True)
            every.append(experiments(out))
    converged = [name for name in every[0] if all(one[name]["converged"] for one in every)]
    apart: dict[Any, float] = {}
    for name in converged:
        value = disagreement([one[name]["mean_ns"] for one in every])
        if value is not None and value > AGREEMENT:
            apart[name] = value
    print(
        f"{device}, {seeds} seeds: {len(every[0])} experiments, {len(converged)} converged in all, "
        f"{len(converged) - len(apart)} of these within {AGREEMENT:.0%}"
    )
    for name, value in sorted(apart.items(), key=lambda item: -item[1]):
        runs = [one[name] for one in every]
        high = max(runs, key=lambda run: run["mean_ns"])
        low = min(runs, key=lambda run: run["mean_ns"])
        allowed = high["half_width_ns"] + low["half_width_ns"]
        mark = "  beyond both intervals" if high["mean_ns"] - low["mean_ns"] > allowed else ""
        print(f"  {name[0]} {name[1]} {name[2]}: {value:.1%} apart{mark}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
