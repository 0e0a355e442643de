"""One pattern on a device as it is, stored as a result: for `uflip pattern --inside` and Play."""

from uflip.benchmark.plan import Plan
from uflip.benchmark_options import SEED
from uflip.data.device import DeviceInfo
from uflip.data.summary import WarningSummary
from uflip.experiment import PlannedRun
from uflip.spec import MixPart, Spec

SINGLE_PATTERN = "pattern"
"""Micro-benchmark of single patterns in results."""
_CODES = {
    ("read", "sequential"): "SR", ("read", "random"): "RR",
    ("write", "sequential"): "SW", ("write", "random"): "RW",
}  # fmt: skip


def label_of(spec: Spec) -> str:
    """Return the name of a pattern in results: SR RR SW RW, two for a mix, or words."""
    return "/".join(dict.fromkeys(_label(part) for part in spec.parts))


def _label(part: MixPart) -> str:
    return _CODES.get((part.mode, part.location), f"{part.location}-{part.mode}")


def plan_pattern(spec: Spec, info: DeviceInfo, *, label: str, durability: str) -> Plan:
    """Plan one run of a complete pattern, on a device in its current state."""
    size = spec.parts[0].io_bytes
    name = f"0001-{SINGLE_PATTERN}-{label.replace('/', '+')}-io_size-{size}"
    run = PlannedRun(name, SINGLE_PATTERN, label, "io_size", size, "bytes", spec)
    seed = SEED if spec.seed is None else spec.seed
    return plan_single_run(run, info, scale="quick", seed=seed, durability=durability)


def plan_single_run(
    run: PlannedRun,
    info: DeviceInfo,
    *,
    scale: str,
    durability: str,
    seed: int = SEED,
    warnings: tuple[WarningSummary, ...] = (),
) -> Plan:
    """Plan a single run, on a device in its current state."""
    return Plan(
        device=info,
        scale=scale,
        seed=seed,
        runs=(run,),
        skipped=(),
        pause_ns=0,
        target_size=info.capacity_bytes,
        state=None,
        repetitions=1,
        method="paper",
        durability=durability,
        warnings=warnings,
    )
