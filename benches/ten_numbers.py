"""How much do ten numbers tell? uFLIP's central claim (CIDR 2009, §5.3), on drawn devices.

    python benches/ten_numbers.py --devices 300 --seed 11 --data build/ten-numbers.json
    python benches/ten_numbers.py --data build/ten-numbers.json --figure ten-numbers.png

§5.3 concludes that the performance of a device is captured "quite succinctly" by the columns of
Table 3: four baselines and six ratios. This study draws devices of four FTL families, runs the nine
micro-benchmarks on each, and predicts the mean response time of every experiment from ten numbers.
The explained share is 1 − (squared errors / variance over the devices) of the logarithms, on
devices that the regression has not seen (five folds).

The regression is kernel ridge with a linear and a Gaussian kernel; inside each fold its width and
penalty are those with the least leave-one-out error (a closed form). The same regression gets:

- the ten key characteristics of Table 3, as numbers (a factor is a ratio of means);
- the four baselines alone;
- the ten experiments that explain most, selected on the devices of the other folds;
- ten experiments at random, the median of several draws.

The ten principal components of the unseen devices themselves are a bound for ten linear numbers.
"""

import argparse
import itertools
import json
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import uflip
from uflip.device.cache import switched_off
from uflip.errors import UflipError
from uflip.executors import Processes, on_all, using
from uflip.results import Results, summary

FOLDS = 5
RANDOM_DRAWS = 9
Matrix = np.ndarray[Any, np.dtype[np.float64]]


def draw(chance: random.Random) -> str:
    """Draw a device: its FTL family, geometry, times, caches. Ranges are those of data sheets.

    The ranges of geometry and times are those of `benches/inference.py`, with their sources there.
    """
    family = chance.choice(("page_map", "dftl", "log_blocks", "stream_hybrid"))
    keys: dict[str, Any] = {
        "read_ns": _log_uniform(chance, 25_000, 100_000),
        "program_ns": _log_uniform(chance, 200_000, 1_500_000),
        "erase_ns": _log_uniform(chance, 1_500_000, 6_000_000),
        "channel_bytes_per_s": _log_uniform(chance, 40_000_000, 800_000_000),
        "link_bytes_per_s": _log_uniform(chance, 30_000_000, 3_500_000_000),
        "command_read_ns": _log_uniform(chance, 2_000, 200_000),
        "command_write_ns": _log_uniform(chance, 2_000, 200_000),
        "seed": chance.randrange(1, 1 << 31),
    }
    keys["program_high_ns"] = keys["program_ns"]
    base = {"page_map": _page_map, "dftl": _dftl, "log_blocks": _log_blocks,
            "stream_hybrid": _stream_hybrid}[family](chance, keys)  # fmt: skip
    return f"sim:{base}?" + "&".join(f"{key}={value}" for key, value in keys.items())


def _log_uniform(chance: random.Random, low: float, high: float) -> int:
    return round(math.exp(chance.uniform(math.log(low), math.log(high))))


def _page_map(chance: random.Random, keys: dict[str, Any]) -> str:
    keys |= {
        "channels": chance.choice((1, 2, 4, 8)),
        "dies_per_channel": chance.choice((1, 2, 4)),
        "page_bytes": chance.choice((4096, 8192, 16384)),
        "spare_factor": round(chance.uniform(0.07, 0.4), 4),
        "gc": chance.choice(("greedy", "cyclic", "random", "cost_benefit")),
        "idle_free_blocks": chance.choice((0, 0, 3)),
    }
    if chance.random() < 0.5:
        keys["write_cache_bytes"] = _log_uniform(chance, 1 << 18, 1 << 24) // 4096 * 4096
    _blocks(chance, keys, 64)
    return "demo"


def _dftl(chance: random.Random, keys: dict[str, Any]) -> str:
    keys |= {
        "mapping_cache_bytes": _log_uniform(chance, 1 << 14, 1 << 18) // 4096 * 4096,
        "spare_factor": round(chance.uniform(0.1, 0.3), 4),
        "channels": chance.choice((1, 2, 4)),
        "dies_per_channel": chance.choice((1, 2)),
    }
    _blocks(chance, keys, 64)
    return "dftl"


def _log_blocks(chance: random.Random, keys: dict[str, Any]) -> str:
    data_blocks = chance.randrange(600, 1600)
    log_blocks = _log_uniform(chance, 4, 256)
    blocks = data_blocks + log_blocks + 32
    keys |= {
        "ftl": chance.choice(("fast", "bast", "superblock")),
        "log_blocks": log_blocks,
        "blocks_per_die": blocks,
        "spare_factor": round(1 - data_blocks / blocks, 4),
    }
    return "fast-1gb"


def _stream_hybrid(chance: random.Random, keys: dict[str, Any]) -> str:
    keys |= {
        "blocks_per_die": chance.choice((128, 256, 512)),
        "log_clusters": _log_uniform(chance, 60, 600),
        "streams": chance.choice((1, 2, 4, 8)),
        "free_clusters": chance.choice((0, 60, 119)),
        "reverse_streams": chance.choice(("true", "false")),
    }
    return chance.choice(("samsung", "mtron"))


def _blocks(chance: random.Random, keys: dict[str, Any], pages_per_block: int) -> None:
    page = keys.get("page_bytes", 4096)
    dies = keys["channels"] * keys["dies_per_channel"]
    capacity = _log_uniform(chance, 192 << 20, 768 << 20)
    keys["blocks_per_die"] = max(24, round(capacity / (dies * page * pages_per_block)))


def draw_valid(chance: random.Random) -> str:
    """Draw until the profile of the device is valid."""
    while True:
        url = draw(chance)
        try:
            uflip.inspect_device(url)
        except UflipError:
            continue
        return url


def measure(url: str) -> dict[str, Any] | None:
    """Run the nine micro-benchmarks: key characteristics, and means [ns] of the experiments."""
    try:
        with switched_off(), TemporaryDirectory() as folder:
            uflip.run(url, scale="quick", seed=1, out=Path(folder) / "result")
            document = summary(Results.load(Path(folder) / "result"))
    except UflipError as error:
        print(f"left out: {url}: {error}", flush=True)
        return None
    means = {
        f"{name} {each['pattern']} {each['parameter']}={each['value']}": each["statistics"][
            "mean_ns"
        ]
        for name, experiments in document["micro_benchmarks"].items()
        for each in experiments
        if each["statistics"] is not None
    }
    return {"url": url, "characteristics": document["key_characteristics"], "means": means}


def characteristics(device: dict[str, Any]) -> list[float]:
    """Return the row of Table 3 as numbers: logarithms, and 0 for a value that is absent."""
    row = device["characteristics"]
    numbers = [math.log(row[f"{name}_ms"]) for name in uflip.spec.BASELINES]
    for name, value in (
        ("pause", "pause_ns"), ("locality", "locality_bytes"), ("partitions", "partitions"),
        ("reverse", None), ("in_place", None), ("large_increments", None),
    ):  # fmt: skip
        verdict = row[name]
        numbers.append(math.log(verdict["factor"] or 1.0))
        if value is not None:
            numbers += [math.log(verdict[value] or 1.0), float(verdict[value] is None)]
    return numbers


def predict(x: Matrix, y: Matrix, unseen: Matrix) -> Matrix:
    """Predict by kernel ridge; width and penalty have the least leave-one-out error."""
    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale == 0] = 1.0
    x, unseen = (x - centre) / scale, (unseen - centre) / scale
    offset = y.mean(axis=0)
    best: tuple[float, Callable[[Matrix], Matrix]] | None = None
    for width, penalty in itertools.product((0.5, 1.0, 2.0, 4.0), (1e-3, 1e-2, 1e-1, 1.0)):
        kernel = _kernel(x, x, width)
        inverse = np.linalg.inv(kernel + penalty * np.eye(len(x)))
        weights = inverse @ (y - offset)
        error = float(((weights / np.diag(inverse)[:, None]) ** 2).sum())
        if best is None or error < best[0]:
            best = error, lambda new, w=width, a=weights: offset + _kernel(new, x, w) @ a
    assert best is not None
    return best[1](unseen)


def _kernel(a: Matrix, b: Matrix, width: float) -> Matrix:
    numbers = a.shape[1]
    squares = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)
    both: Matrix = np.exp(-squares / (2 * numbers * width**2)) + a @ b.T / numbers
    return both


def select_experiments(y: Matrix, count: int) -> list[int]:
    """Select the experiments whose linear span explains most, one after the other."""
    rest = y - y.mean(axis=0)
    chosen: list[int] = []
    for _ in range(count):
        power = (rest**2).sum(axis=0)
        gain = np.where(
            power > 1e-12, ((rest.T @ rest) ** 2).sum(axis=1) / np.maximum(power, 1e-12), 0
        )
        gain[chosen] = -1.0
        best = int(np.argmax(gain))
        chosen.append(best)
        direction = rest[:, best] / math.sqrt(power[best])
        rest = rest - np.outer(direction, direction @ rest)
    return chosen


def components(y: Matrix, count: int) -> Matrix:
    """Return the residuals after projection on the first principal components."""
    centred = y - y.mean(axis=0)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    rest: Matrix = centred - (u[:, :count] * s[:count]) @ vt[:count]
    return rest


def study(devices: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    """Return the explained shares by set of numbers and micro-benchmark, and the best ten."""
    names = sorted(set.intersection(*(set(each["means"]) for each in devices)))
    y = np.log([[each["means"][name] for name in names] for each in devices])
    table3 = np.array([characteristics(each) for each in devices])
    chance = random.Random(seed)
    order = list(range(len(devices)))
    chance.shuffle(order)
    folds = [np.array(order[fold::FOLDS]) for fold in range(FOLDS)]
    draws = [chance.sample(range(len(names)), 10) for _ in range(RANDOM_DRAWS)]
    errors: dict[str, Matrix] = {}
    sets: dict[str, Callable[[Matrix], Matrix]] = {
        "ten key characteristics": lambda _: table3,
        "four baselines": lambda _: table3[:, :4],
        "ten best experiments": lambda seen: y[:, select_experiments(seen, 10)],
    } | {
        f"random {i}": (lambda _, columns=columns: y[:, columns]) for i, columns in enumerate(draws)
    }
    for label, numbers in sets.items():
        residuals = np.empty_like(y)
        for unseen in folds:
            seen = np.setdiff1d(order, unseen)
            x = numbers(y[seen])
            residuals[unseen] = y[unseen] - predict(x[seen], y[seen], x[unseen])
        errors[label] = residuals
    errors["ten principal components"] = components(y, 10)
    variance = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    groups = [name.split(" ")[0] for name in names]
    shares = {label: _shares(residuals, variance, groups) for label, residuals in errors.items()}
    rows = {label: row for label, row in shares.items() if not label.startswith("random")}
    rows["ten random experiments"] = {
        key: float(np.median([shares[f"random {i}"][key] for i in range(RANDOM_DRAWS)]))
        for key in shares["random 0"]
    }
    best = [names[i] for i in select_experiments(y, 10)]
    return {"devices": len(devices), "experiments": len(names), "shares": rows, "best": best}


def _shares(residuals: Matrix, variance: Matrix, groups: list[str]) -> dict[str, float]:
    squares = (residuals**2).sum(axis=0)
    members = {"all": np.ones(len(groups), dtype=bool)}
    members |= {name: np.array([each == name for each in groups]) for name in dict.fromkeys(groups)}
    return {
        name: float(1 - squares[mask].sum() / variance[mask].sum())
        for name, mask in members.items()
    }


def rows(result: dict[str, Any]) -> list[str]:
    """Return the tables as Markdown."""
    order = ["four baselines", "ten key characteristics", "ten random experiments",
             "ten best experiments", "ten principal components"]  # fmt: skip
    lines = ["| explained share | " + " | ".join(order) + " |", "|---|" + "---:|" * len(order)]
    for group in result["shares"][order[0]]:
        cells = " | ".join(f"{result['shares'][label][group]:.1%}" for label in order)
        lines.append(f"| {group} | {cells} |")
    lines += [
        "",
        f"{result['devices']} devices, {result['experiments']} experiments. The ten that explain"
        " most, in order:",
        "",
    ]
    lines += [f"{i}. {name}" for i, name in enumerate(result["best"], 1)]
    return lines


def draw_figure(result: dict[str, Any], path: Path) -> None:
    """Draw the explained shares by micro-benchmark."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    groups = [name for name in result["shares"]["four baselines"] if name != "all"] + ["all"]
    sets = {
        "ten key characteristics": "o",
        "four baselines": "s",
        "ten best experiments": "^",
        "ten random experiments": "x",
    }
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for label, marker in sets.items():
        values = [100 * max(result["shares"][label][name], 0.0) for name in groups]
        axes.plot(values, range(len(groups)), marker, label=label, linestyle="none")
    axes.set_yticks(range(len(groups)), groups)
    axes.set_xlabel("explained share of the variation between devices [%]")
    axes.set_xlim(0, 101)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    figure.savefig(path, dpi=160)


def main() -> None:
    """Draw and measure devices, or read measured ones; print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=0, help="devices to draw and measure")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--data", type=Path, help="file of measured devices: written, then read")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--figure", type=Path, help="PNG or SVG to write")
    args = parser.parse_args()
    if args.devices:
        chance = random.Random(args.seed)
        urls = [draw_valid(chance) for _ in range(args.devices)]
        with Processes(args.workers) as processes, using(processes):
            measured = [each for each in on_all(measure, urls) if each is not None]
        if args.data:
            args.data.parent.mkdir(parents=True, exist_ok=True)
            args.data.write_text(json.dumps(measured))
    elif args.data:
        measured = json.loads(args.data.read_text())
    else:
        parser.error("--devices or --data is required")
    result = study(measured, args.seed)
    print("\n".join(rows(result)))
    if args.figure:
        draw_figure(result, args.figure)


if __name__ == "__main__":
    main()
