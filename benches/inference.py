"""Grade `uflip infer` on random simulated devices whose properties are known.

    python benches/inference.py --devices 100 --seed 1
    python benches/inference.py --devices 20 --seed 7 --noise 2 --json rows.json
    python benches/inference.py --devices 20 --seed 7 --tier 2

Tier 1 are page maps without caches. Devices of tier 2 have the features of `FEATURES` as well, each
with its probability. Those of tier 3 have the FTL of any family: a page map, one of `MERGING`,
which `uflip infer` names, or one of `OUTSIDE`, which it refuses.

Every device is drawn from the ranges of `PRIORS`, each with its source. The probes run on it as on
any device, through patterns and response times only; then the estimates are compared with the
drawn properties, and the twin with the device, on patterns that no probe uses. The rivals predict
the same patterns from the same probes, with all other drawn devices as their examples.

The thresholds of `uflip.inference` were chosen on devices of the seeds 0 to 999, 2026, 6441 and
9001. Other seeds are unseen; docs/explanation/inverse.md has reports of 6442 and 7001 to 7003.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from uflip.device.cache import switched_off
from uflip.device.opener import open_device
from uflip.errors import UflipError
from uflip.inference import check, probes
from uflip.inference.infer import Inference, infer
from uflip.inference.observations import Observation, Observations

MIB = 1 << 20
PRIORS: dict[str, tuple[list[Any], str]] = {
    "page_bytes": ([4096, 8192, 16384], "data sheets of MLC and TLC NAND, 2010 to 2020"),
    "channels": ([1, 2, 4, 8], "Chen et al. (HPCA 2011); OFC (2011) has 8"),
    "dies_per_channel": ([1, 2, 4], "OFC (2011), §III"),
    "pages_per_block": ([64, 128, 256], "uFLIP (2009) §2.1: typically 64; data sheets: up to 256"),
    "spare_factor": ([0.07, 0.40], "SNIA PTS: 7 to 28 % over-provisioning; OFC §V.C: more"),
    "spare_share": ([0.03, 0.055, 0.08, 0.11], "data sheets: 64 B of 2 KiB to 1,872 B of 16 KiB"),
    "gc": (
        ["greedy", "cyclic", "random", "d_choices", "cost_benefit"],
        "Van Houdt (SIGMETRICS 2013), Desnoyers (SYSTOR 2012), Rosenblum & Ousterhout (1992)",
    ),
    "read_ns": ([25_000, 100_000], "data sheets: SLC 25 µs to TLC 100 µs"),
    "program_ns": ([200_000, 1_500_000], "data sheets: SLC 200 µs to MLC and TLC 1.5 ms"),
    "erase_ns": ([1_500_000, 6_000_000], "data sheets: 1.5 to 6 ms"),
    "channel_bytes_per_s": (
        [100_000_000, 200_000_000, 400_000_000, 800_000_000],
        "ONFI 2.0 to 4.0",
    ),
    "link_bytes_per_s": (
        [280_000_000, 550_000_000, 1_500_000_000, 3_500_000_000],
        "SATA 2, SATA 3, PCIe 3.0 with 2 and 4 lanes",
    ),
    "command_read_ns": ([2_000, 40_000], "OFC (2011) §V; NVMe drives of 2020"),
    "command_write_ns": ([2_000, 40_000], "the same"),
}
"""Property -> its values, or the bounds of a range, and their source."""

FEATURES: dict[str, tuple[float, str]] = {
    "write_cache": (0.85, "data sheets: all consumer drives since about 2010"),
    "mapping_unit": (0.6, "the block size of file systems; if a page is larger"),
    "page_types": (0.5, "Grupp et al. (MICRO 2009); SimpleSSD (IEEE CAL 2018): 56, 78 and 106 µs"),
    "suspend": (0.3, "Wu & He (FAST 2012)"),
    "map_cache": (0.15, "DFTL (ASPLOS 2009); drives without DRAM since 2018"),
    "planes": (0.2, "ONFI 4.1: operations of several planes"),
    "slc_cache": (0.2, "AnandTech on drives with TLC flash, 2013 to 2018"),
}
"""Feature of tier 2 -> its probability, and the source."""

MERGING = {
    "block_map": "Gal & Toledo (ACM Computing Surveys 2005) §2.2",
    "bast": "Kim et al. (2002)",
    "fast": "Lee et al. (2007)",
    "superblock": "Kang et al. (EMSOFT 2006), Jung et al. (2010)",
}
"""Known FTL of tier 3 -> its source. A log has `LOG_BLOCKS` blocks."""
LOG_BLOCKS = (8, 64)
SUPERBLOCK_BLOCKS = (1, 2, 4, 8)

OUTSIDE = {
    "linear": ("kingston-dti", "uFLIP (2009) Table 3: low-end sticks"),
    "stream_hybrid": ("samsung", "uFLIP (2009) Table 3: high-end drives"),
    "stripe_map": ("intel-x25m", "Myers & Sinclair (2010) §5.2"),
}
"""FTL of no known family -> the profile that has its other keys, and the source."""
BLOCK_MAP = Path(__file__).parents[1] / "crates/sim/tests/swarm/block-map.toml"
# Spare blocks of a die that the units of these need.
UNIT_SPARE = 20

CAPACITY_MIB = (192, 384)
# Real drives have hundreds of blocks on a die; with fewer, chance decides the course of collection.
FEWEST_BLOCKS = 24

# Values of keys that a device of tier 1 does not have.
ABSENT = {"write_cache_bytes": 0, "ftl": "page_map"}

EXACT = ("page_bytes", "mapping_unit_bytes", "write_cache_bytes", "dies", "channels",
         "pages_per_block", "superblock_bytes", "gc")  # fmt: skip
NUMBERS = ("spare_factor", "read_ns", "program_ns", "erase_ns", "channel_bytes_per_s",
           "link_bytes_per_s", "command_read_ns", "command_write_ns")  # fmt: skip

EXACT_2 = ("flush", "page_kinds", "suspends_programs", "ftl")
NUMBERS_2 = ("read_middle_ns", "read_high_ns", "program_suspend_ns", "map_cache_range_bytes",
             "slc_cache_bytes", "slc_program_ns")  # fmt: skip

Truth = dict[str, Any]


def draw_features(truth: Truth, chance: random.Random) -> Truth:
    """Draw the features of a device of tier 2, as keys of its profile."""
    has = {name: chance.random() < share for name, (share, _) in FEATURES.items()}
    keys: Truth = {}
    if has["write_cache"]:
        keys["write_cache_bytes"] = chance.choice([256, 512, 1024, 2048, 4096, 8192]) << 10
        keys["flush"] = chance.choice(["eager", "when_needed"])
    if has["map_cache"]:
        keys |= {"ftl": "dftl", "mapping_cache_policy": "lru", "mapping_batch_update": True}
        keys["mapping_cache_bytes"] = chance.choice([16, 32, 64]) << 10
    elif has["mapping_unit"] and truth["page_bytes"] > MAPPING_UNIT:
        keys["mapping_unit_bytes"] = MAPPING_UNIT
    if has["page_types"] or has["slc_cache"]:
        middle = chance.uniform(1.25, 1.5)
        keys |= {
            "bits_per_cell": 3,
            "read_middle_ns": round(truth["read_ns"] * middle),
            "read_high_ns": round(truth["read_ns"] * chance.uniform(middle + 0.2, 2.0)),
            "program_middle_ns": truth["program_ns"],
        }
    if has["slc_cache"] and not has["map_cache"]:
        blocks = chance.randint(2, 6)
        keys |= {"slc_blocks": blocks, "slc_blocks_max": blocks + chance.choice([0, 4])}
        keys["slc_read_ns"] = round(truth["read_ns"] * chance.uniform(0.5, 0.9))
        keys["slc_program_ns"] = round(truth["program_ns"] * chance.uniform(0.2, 0.4))
    if has["planes"] and truth["blocks_per_die"] % 2 == 0:
        keys |= {"planes_per_die": 2}
        keys |= chance.choice([{"multi_plane": "any_page"}, {"independent_planes": True}])
    if has["suspend"] and "multi_plane" not in keys:
        keys |= {"die_queue": "reads_first", "suspensions_max": chance.choice([4, 16])}
        keys["program_suspend_ns"] = chance.randint(10_000, 60_000)
        keys["erase_suspend_ns"] = chance.randint(20_000, 100_000)
    return keys


MAPPING_UNIT = 4096


def draw(chance: random.Random, tier: int = 1) -> Truth:
    """Draw a device; too large blocks for its capacity are drawn again."""
    ftl = chance.choice(["page_map", *MERGING, *OUTSIDE]) if tier == 3 else ""
    while True:
        truth: Truth = {}
        for key, (values, _) in PRIORS.items():
            is_range = len(values) == 2
            if not is_range:
                truth[key] = chance.choice(values)
            elif isinstance(values[0], float):
                truth[key] = round(chance.uniform(*values), 4)
            else:
                truth[key] = chance.randint(*values)
        truth["dies"] = truth["channels"] * truth["dies_per_channel"]
        row = truth["dies"] * truth["pages_per_block"] * truth["page_bytes"]
        capacity = chance.randint(*CAPACITY_MIB) * MIB
        truth["blocks_per_die"] = round(capacity / (1 - truth["spare_factor"]) / row)
        if tier == 2:
            truth |= draw_features(truth, chance)
        if ftl not in ("", "page_map"):
            truth |= {"ftl": ftl} | draw_family(truth, ftl, row, chance)
        spare_blocks = truth["blocks_per_die"] * truth["spare_factor"] - truth.get("slc_blocks", 0)
        least = 3.5
        if "log_blocks" in truth:
            least = max(least, (truth["log_blocks"] + 2) / truth["dies"])
        if "unit_bytes" in truth:
            least = UNIT_SPARE
        truth["seed"] = chance.randrange(2, 1 << 31)
        if truth["blocks_per_die"] >= FEWEST_BLOCKS and spare_blocks > least:
            return truth


def draw_family(truth: Truth, ftl: str, row: int, chance: random.Random) -> Truth:
    """Draw the keys of an FTL of tier 3 that is no page map."""
    if ftl == "stripe_map":
        dies = [dies for dies in (1, 2, 4, 8) if truth["dies"] % dies == 0]
        # As in its profile, for a device of another size: 3/10 and 1/10 of a map of 4 bytes a page.
        pages = truth["blocks_per_die"] * truth["dies"] * truth["pages_per_block"]
        changed = max(pages * 4 // 10, truth["page_bytes"])
        return {"stripe_dies": chance.choice(dies), "map_memory_bytes": 3 * changed,
                "map_changed_bytes": changed}  # fmt: skip
    if ftl in MERGING:
        keys: Truth = {} if ftl == "block_map" else {"log_blocks": chance.randint(*LOG_BLOCKS)}
        if ftl == "superblock":
            keys["superblock_blocks"] = chance.choice(SUPERBLOCK_BLOCKS)
        return keys
    # A merge unit is a block on every die, and the capacity is whole units.
    blocks = truth["blocks_per_die"]
    units = int(blocks * (1 - truth["spare_factor"])) // 4 * 4
    keys = {"unit_bytes": row, "banks": 1, "cluster_bytes": max(truth["page_bytes"], 16384),
            "spare_factor": 1 - (units + 1e-6) / blocks}  # fmt: skip
    if ftl == "linear":
        keys |= {"open_units": chance.randint(1, 8), "rewrites": chance.choice([0, 1]),
                 "backward_clusters": chance.choice([0, 8, 16])}  # fmt: skip
        keys["log_clusters"] = chance.choice([0, row // keys["cluster_bytes"] // 2])
        return keys
    log_units = chance.randint(2, 6)
    clusters = min(chance.randint(64, 200), log_units * row // keys["cluster_bytes"] - 1)
    return keys | {"streams": chance.choice([1, 2, 4]), "log_units": log_units,
                   "log_clusters": clusters, "merges_at_once": 1}  # fmt: skip


def url_of(truth: Truth) -> str:
    """Return the name of the simulated device."""
    keys = {key: value for key, value in truth.items() if key not in ("spare_share", "dies")}
    keys |= {
        "spare_bytes": round(truth["spare_share"] * truth["page_bytes"]),
        "program_high_ns": truth["program_ns"],
        "state": "random",
    }
    ftl = truth.get("ftl", "page_map")
    bases = {"block_map": str(BLOCK_MAP)} | {name: base for name, (base, _) in OUTSIDE.items()}
    base = bases.get(ftl, "fast-1gb" if ftl in MERGING else "demo")
    if base == "demo":
        keys["idle_free_blocks"] = 0
    else:
        del keys["gc"]
    if ftl in ("linear", "stream_hybrid"):
        keys |= {"seek_read_ns": 0, "commands_at_once": 32}
    return f"sim:{base}?" + "&".join(f"{key}={text(value)}" for key, value in keys.items())


def text(value: Any) -> str:
    """Return the text of a value in the name of a device."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_noise(observations: Observations, mean_us: float, seed: int) -> Observations:
    """Return the observations of a host that adds an exponential time to every I/O."""
    if not mean_us:
        return observations
    chance = np.random.default_rng(seed)

    def noisy(run: Observation) -> Observation:
        added = np.round(chance.exponential(mean_us * 1e3, len(run.response_ns)))
        return replace(run, response_ns=run.response_ns + added)

    return replace(observations, runs={key: noisy(run) for key, run in observations.runs.items()})


@dataclass
class Graded:
    """A device with its inference, what the patterns took on both, and the processor time [s]."""

    truth: Truth
    inference: Inference
    patterns: list[check.PatternError]
    measured: dict[str, tuple[float, float]]
    seconds: float

    def true_value(self, key: str) -> Any:
        """Return the drawn value of a property; None if the device has none."""
        truth = self.truth
        page, planes = truth["page_bytes"], truth.get("planes_per_die", 1)
        computed = {
            "mapping_unit_bytes": truth.get("mapping_unit_bytes", page),
            "superblock_bytes": truth["dies"] * truth["pages_per_block"] * planes * page,
            "suspends_programs": "yes" if "program_suspend_ns" in truth else "no",
            "page_kinds": truth.get("bits_per_cell", 1),
            # From outside, independent planes are dies.
            "dies": truth["dies"] * (planes if "independent_planes" in truth else 1),
        }
        if "mapping_cache_bytes" in truth:
            # An entry in memory takes 8 bytes.
            computed["map_cache_range_bytes"] = truth["mapping_cache_bytes"] // 8 * page
        if "slc_blocks" in truth:
            blocks = truth["slc_blocks"] * truth["dies"] * planes
            pages = truth["pages_per_block"] // truth["bits_per_cell"]
            computed["slc_cache_bytes"] = blocks * pages * page
        return computed.get(key, truth.get(key, ABSENT.get(key)))


def grade(truth: Truth, noise_us: float) -> Graded:
    """Draw nothing: probe a device, infer its properties, and check the twin."""
    begin = time.process_time()
    with open_device(url_of(truth), writable=True) as device:
        observations = with_noise(probes.measure(device), noise_us, truth["seed"])
        found = infer(observations)
        seconds = time.process_time() - begin
        twin = None if found.twin is None else found.twin.open()
        patterns = list(check.check(device, device if twin is None else twin))
    measured = {each.pattern: (each.measured_mean_ns, each.measured_p99_ns) for each in patterns}
    return Graded(truth, found, [] if twin is None else patterns, measured, seconds)


def features(graded: Graded) -> np.ndarray:
    """Return what rivals see: logarithms of quantiles of every run of the probes."""
    # The number of ranges depends on the capacity.
    found = graded.inference.observations.runs.items()
    runs = [run for key, run in found if key.probe != "read_range"]
    return np.log(
        [max(value, 1.0) for run in runs for value in np.quantile(run.response_ns, (0.1, 0.5, 0.9))]
    )


def nearest(x: np.ndarray, others: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Predict the patterns of the device with the most similar probes."""
    closest = int(np.argmin(np.sum((others - x) ** 2, axis=1)))
    return np.asarray(answers[closest])


def regression(x: np.ndarray, others: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Predict by ridge regression, in its dual form."""
    kernel = others @ others.T + np.eye(len(others)) * RIDGE * others.shape[1]
    middle = answers.mean(axis=0)
    weights = np.linalg.solve(kernel, answers - middle)
    return np.asarray(middle + x @ others.T @ weights)


RIDGE = 0.01
Rival = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
RIVALS: dict[str, Rival] = {
    "nearest drawn device": nearest,
    "direct regression": regression,
    "guess by class": lambda _x, _others, answers: np.median(answers, axis=0),
}


def rival_errors(devices: list[Graded]) -> dict[str, dict[str, np.ndarray]]:
    """Return the errors of each rival: pattern -> (devices, 2) of mean and p99."""
    names = list(devices[0].measured)
    answers = np.log([[each.measured[name] for name in names] for each in devices])
    flat = answers.reshape(len(devices), -1)
    x = np.array([features(each) for each in devices])
    x = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-9)
    classes = np.array([(each.truth["page_bytes"], each.truth["dies"]) for each in devices])
    errors: dict[str, dict[str, np.ndarray]] = {}
    for rival, predict in RIVALS.items():
        predicted = []
        for n in range(len(devices)):
            other = np.arange(len(devices)) != n
            if rival == "guess by class":
                same = other & (classes == classes[n]).all(axis=1)
                other = same if same.any() else other
            predicted.append(predict(x[n], x[other], flat[other]))
        error = np.abs(np.exp(np.array(predicted) - flat) - 1).reshape(answers.shape)
        errors[rival] = {name: error[:, n] for n, name in enumerate(names)}
    return errors


def rows(devices: list[Graded], tier: int) -> Iterator[str]:
    """Yield the printed report, in Markdown."""
    yield from _head("property", "exact", "wrong", "abstained")
    for key in EXACT + {1: (), 2: EXACT_2, 3: ("ftl",)}[tier]:
        graded = [each for each in devices if key != "ftl" or each.truth.get("ftl") not in OUTSIDE]
        found = [(each.inference.estimate(key), each.true_value(key)) for each in graded]
        known = [estimate.value == true for estimate, true in found if estimate.is_identified]
        n = len(found)
        hits, wrong = sum(known) / n, (len(known) - sum(known)) / n
        yield f"| `{key}` | {hits:.1%} | {wrong:.1%} | {1 - len(known) / n:.1%} |"
    yield ""
    yield from _head("property", "median error", "90 % of errors below", "coverage", "abstained")
    covered: list[bool] = []
    for key in NUMBERS + (NUMBERS_2 if tier == 2 else ()):
        errors, inside, asked = [], [], 0
        for each in devices:
            estimate, true = each.inference.estimate(key), each.true_value(key)
            if true is None:
                continue
            asked += 1
            if not estimate.is_identified:
                continue
            errors.append(abs(estimate.number() / true - 1))
            assert estimate.low is not None
            assert estimate.high is not None
            inside.append(estimate.low <= true <= estimate.high)
        covered += inside
        if errors:
            yield (
                f"| `{key}` | {np.median(errors):.2%} | {np.quantile(errors, 0.9):.1%} | "
                f"{np.mean(inside):.1%} | {1 - len(errors) / asked:.1%} |"
            )
    yield f"| all intervals | | | {np.mean(covered):.1%} | |"
    yield ""
    yield from _pattern_rows(devices)
    refused = {ftl: [each for each in devices if each.truth.get("ftl") == ftl] for ftl in OUTSIDE}
    if any(refused.values()):
        counts = [
            f"{sum(not each.inference.estimate('ftl').is_identified for each in of_ftl)} of "
            f"{len(of_ftl)} `{ftl}`"
            for ftl, of_ftl in refused.items()
        ]
        yield ""
        yield f"Refused, as of no known family: {', '.join(counts)}."
    written = [
        each.inference.observations.bytes_written / each.inference.observations.capacity_bytes
        for each in devices
    ]
    seconds = [each.seconds for each in devices]
    without = sum(each.inference.twin is None for each in devices)
    yield ""
    yield (
        f"{len(devices)} devices, {without} without a twin; written "
        f"{np.median(written):.2f} capacities (at most {max(written):.2f}); processor time "
        f"{np.median(seconds):.1f} s (at most {max(seconds):.1f} s)."
    )


def _head(*names: str) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"


def _pattern_rows(devices: list[Graded]) -> Iterator[str]:
    rivals = rival_errors(devices) if len(devices) > 3 else {}
    yield from _head("median error of mean, p99", "twin", *rivals)
    for n, name in enumerate(devices[0].measured):
        twins = [each.patterns[n] for each in devices if each.patterns]
        if not twins:
            continue
        mean, p99 = (
            np.median(np.abs(column))
            for column in zip(*((each.mean_error, each.p99_error) for each in twins), strict=True)
        )
        medians = [(mean, p99), *(np.median(each[name], axis=0) for each in rivals.values())]
        cells = [f"{first:.1%}, {second:.1%}" for first, second in medians]
        yield f"| {name} | {' | '.join(cells)} |"


def document(devices: list[Graded]) -> list[dict[str, Any]]:
    """Return the devices as plain data."""
    return [
        {
            "truth": each.truth,
            "estimates": [vars(estimate) for estimate in each.inference.estimates],
            "why_no_twin": each.inference.why_no_twin,
            "patterns": [vars(pattern) for pattern in each.patterns],
            "seconds": each.seconds,
        }
        for each in devices
    ]


def main() -> None:
    """Draw the devices, grade the inference, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tier", type=int, choices=(1, 2, 3), default=1, help="kind of devices")
    parser.add_argument("--devices", type=int, default=100, help="number of devices")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draws")
    parser.add_argument(
        "--noise",
        type=float,
        default=0.0,
        metavar="US",
        help="mean of the exponential time that the host adds to each I/O [µs]",
    )
    parser.add_argument("--json", type=Path, help="also write every device to this file")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    devices: list[Graded] = []
    with switched_off():
        while len(devices) < options.devices:
            truth = draw(chance, options.tier)
            try:
                devices.append(grade(truth, options.noise))
            except UflipError as error:
                # The features of a device may need more spare space: then it is drawn again.
                if "spare" not in error.what and "too few" not in error.what:
                    print(f"not graded: {error.what}: {error.got}; {url_of(truth)}")
    if options.json:
        options.json.write_text(json.dumps(document(devices), default=str) + "\n")
    print("\n".join(rows(devices, options.tier)))


if __name__ == "__main__":
    main()
