"""The simulated device that behaves most like a log: the same I/Os on each, quantiles compared.

    log ─ first I/Os ─▶ replay on sim:a, sim:b, ... ─▶ distance of quantiles ─▶ nearest, or none

**Source** ours. The distance is the mean of |log(measured / simulated)| over quantiles of reads and
of writes: a distance of log 1.25 means that quantiles differ by a quarter.
**Faithful** The I/Os have the addresses, sizes and order of the log, in a closed loop at its depth
if the device was always busy, and otherwise at their recorded times.
**Simplified** The devices are in the state of their profiles; the state of the measured one is
unknown. Addresses beyond the end of a device wrap around.
**Ambiguous** Confidence is the share of resampled logs (blocks of consecutive I/Os) with the same
nearest device. It does not contain that the real device may be none of them: beyond `MAX_DISTANCE`
none is named.
"""

import csv
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

import numpy as np

from uflip import _native
from uflip.data.device import DEEPEST_QUEUE
from uflip.data.spec import read_spec
from uflip.device.catalogue import inspect_device
from uflip.device.opener import open_device
from uflip.device.url import parse_url
from uflip.errors import UsageError, native_errors
from uflip.explain.finding import ABSENT, FOUND, Finding, Number, undecided
from uflip.explain.io_log import Floats, Integers, IoLog
from uflip.profiles import random_access_names

TOPIC = "device"
MAX_IOS = 5_000
MIN_IOS = 100
SHARES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
MAX_DISTANCE = log(1.5)
MIN_CONFIDENCE = 0.9
BLOCKS, RESAMPLES = 25, 400
BUSY_SHARE = 0.8
"""From this share of busy time on, a log is a closed loop."""
OnDevice = Callable[[int, int, str], None]
"""Called with the number of finished devices, of all devices, and the next name."""


@dataclass(frozen=True)
class Likeness:
    """A simulated device and its distance from the log; `took` are its response times (n,) [ns]."""

    name: str
    distance: float
    took: Floats


def default_devices() -> list[str]:
    """Return the built-in simulated devices."""
    return [f"sim:{name}" for name in random_access_names()]


def check_devices(devices: Sequence[str]) -> None:
    """Refuse devices that are not simulated, before anything is read."""
    for name in devices:
        if parse_url(name).kind != "sim":
            raise UsageError(
                "A log is compared with simulated devices only",
                where="--device",
                got=name,
                allowed="sim:NAME",
                action="replay it on a real device: uflip replay FILE DEVICE",
            )
        inspect_device(name)


def describe_device(
    observed: IoLog, devices: Sequence[str], on_device: OnDevice = lambda *_: None
) -> tuple[Finding, list[Likeness]]:
    """Return the simulated device that behaves most like a log, and all by distance."""
    if observed.submitted is None or observed.offset is None or len(observed) < MIN_IOS:
        reason = (
            f"{len(observed)} I/Os are too few to replay"
            if len(observed) < MIN_IOS
            else "the file lacks the times or addresses that a replay needs"
        )
        return undecided(TOPIC, "I/Os", reason, ios=len(observed)), []
    count = min(len(observed), MAX_IOS)
    took, mode = observed.took[:count], _modes(observed, count)
    likenesses = []
    with tempfile.TemporaryDirectory() as folder:
        recording = _recording(observed, count, Path(folder) / "ios.csv")
        speed, depth = _arrivals(observed, count)
        for index, name in enumerate(devices):
            on_device(index, len(devices), name)
            simulated = _replay(recording, name, speed, depth)
            likenesses.append(Likeness(name, distance(took, simulated, mode), simulated))
    ranked = sorted(likenesses, key=lambda each: each.distance)
    shares = _shares_of_nearest(took, mode, ranked)
    return _finding(ranked, shares, count), ranked


def distance(measured: Floats, simulated: Floats, mode: Integers) -> float:
    """Return the mean difference of logarithms of quantiles, over the modes.

    >>> ones, modes = np.ones(100), np.zeros(100, int)
    >>> round(float(np.exp(distance(ones, 2 * ones, modes))), 6)
    2.0
    """
    total, weight = 0.0, 0
    for each in np.unique(mode):
        members = mode == each
        if members.sum() < 1 / (1 - SHARES[-1]) and members.sum() < len(mode):
            continue
        ratio = np.log(_quantiles(measured[members]) / _quantiles(simulated[members]))
        total += float(np.abs(ratio).mean()) * int(members.sum())
        weight += int(members.sum())
    return total / max(weight, 1)


def _quantiles(took: Floats) -> Floats:
    values: Floats = np.quantile(np.maximum(took, 1.0), SHARES)
    return values


def _modes(observed: IoLog, count: int) -> Integers:
    return np.zeros(count, np.int64) if observed.mode is None else observed.mode[:count]


def _recording(observed: IoLog, count: int, path: Path) -> _native.Recording:
    """Return the first I/Os as a trace for a replay."""
    assert observed.submitted is not None
    assert observed.offset is not None
    assert observed.size is not None
    words = np.array(["read", "write", "trim"])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("submit_ns", "offset_bytes", "io_size_bytes", "mode"))
        writer.writerows(
            zip(
                observed.submitted[:count].tolist(),
                observed.offset[:count].tolist(),
                observed.size[:count].tolist(),
                words[_modes(observed, count)].tolist(),
                strict=True,
            )
        )
    with native_errors():
        return _native.read_recording([str(path)])


def _arrivals(observed: IoLog, count: int) -> tuple[int | None, int]:
    """Return the speed (None: a closed loop) and the depth of a replay."""
    assert observed.in_flight is not None
    depth = 1 + int(np.median(observed.in_flight[:count]))
    busy = observed.busy_share
    if busy is not None and busy >= BUSY_SHARE:
        return None, depth
    return 1_000_000, max(depth, 32)


def _replay(recording: _native.Recording, name: str, speed: int | None, depth: int) -> Floats:
    """Return the response times of the I/Os on a simulated device, in order of submission."""
    with open_device(name) as device:
        info = device.info
        with native_errors():
            ios = recording.fit(info.capacity_bytes, info.sector_bytes, "wrap", speed)
        device.set_replay_ios(ios)
        trace = device.run(read_spec(ios.spec_json(min(depth, DEEPEST_QUEUE))))
    order = np.argsort(np.asarray(trace.column("submit_ns")), kind="stable")
    took: Floats = np.asarray(trace.column("response_time_ns"))[order].astype(np.float64)
    return took


def _shares_of_nearest(
    took: Floats, mode: Integers, ranked: Sequence[Likeness]
) -> Mapping[str, float]:
    """Return how often each device is the nearest, over resampled blocks of consecutive I/Os."""
    random = np.random.default_rng(1)
    blocks = np.array_split(np.arange(len(took)), BLOCKS)
    wins = dict.fromkeys((each.name for each in ranked), 0)
    candidates = ranked[:4]  # others are farther by far, or the distance is too large anyway
    for _ in range(RESAMPLES):
        rows = np.concatenate([blocks[each] for each in random.integers(0, BLOCKS, BLOCKS)])
        nearest = min(
            candidates, key=lambda each: distance(took[rows], each.took[rows], mode[rows])
        )
        wins[nearest.name] += 1
    return {name: count / RESAMPLES for name, count in wins.items()}


def _finding(ranked: Sequence[Likeness], shares: Mapping[str, float], count: int) -> Finding:
    nearest = ranked[0]
    numbers: dict[str, Number] = {"ios": count, "devices": len(ranked)}
    for index, each in enumerate(ranked[:3], 1):
        numbers |= {
            f"device_{index}": each.name,
            f"device_{index}_ratio": exp(each.distance),
            f"device_{index}_confidence": shares[each.name],
        }
    away = f"its quantiles differ by a factor of {exp(nearest.distance):.2f} on average"
    if nearest.distance > MAX_DISTANCE:
        return Finding(
            topic=TOPIC,
            subject="I/Os",
            verdict=ABSENT,
            statement=f"none of {len(ranked)} simulated devices behaves like this: the nearest is "
            f"{nearest.name}, and {away}",
            numbers=numbers,
        )
    if shares[nearest.name] < MIN_CONFIDENCE:
        likely = [name for name, share in shares.items() if share >= 1 - MIN_CONFIDENCE]
        names = " or ".join(sorted(likely, key=lambda name: -shares[name]))
        return undecided(TOPIC, "I/Os", f"{names}: their quantiles are equally near", **numbers)
    second = ranked[1] if len(ranked) > 1 else None
    rest = "" if second is None else f"; {second.name} is next, at {exp(second.distance):.2f}"
    return Finding(
        topic=TOPIC,
        subject="I/Os",
        verdict=FOUND,
        statement=f"behaves most like {nearest.name} ({shares[nearest.name]:.0%} confidence): "
        f"{away}{rest}",
        numbers=numbers,
    )
