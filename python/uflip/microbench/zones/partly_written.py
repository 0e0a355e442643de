"""Commands to partly written zones: shared by reset and finish.

::

    25 %    SW   |▓▓>        |▓▓>        |▓▓>        |▓▓>        |     zones written in part
            ZR   |reset      |reset      |reset      |reset      |     then each is reset

`reset` and `finish` name the sources.
"""

from collections.abc import Callable

from uflip.microbench.experiment import Context, Experiment, IoCounts
from uflip.microbench.finding import Experiments, Means, Ratios, Rule, mean_ns
from uflip.microbench.layout import Varying, baseline_spec, lay_out
from uflip.microbench.zones import capacity_of, max_zones_at_once, why_not, zones_of
from uflip.spec import Spec, basic
from uflip.units import format_duration_ns

WRITES = "SW"
STANDARD = (1, 10, 25, 50, 75, 90, 100)
QUICK = (1, 50, 100)
PERCENT = 100
# Number of zones in a mean; every device allows this number of active zones.
ZONES, QUICK_ZONES = 8, 4


def zones_used(context: Context) -> int:
    """Return the number of zones that are written, and then reset or finished."""
    return min(QUICK_ZONES if context.quick else ZONES, max_zones_at_once(context))


def writes_per_zone(context: Context, percent: int) -> int:
    """Return the number of writes that fill a zone up to a share, at least one."""
    return max(capacity_of(context) * percent // PERCENT // context.io_size, 1)


def layout_of(command: str, label: str) -> Callable[[Context], list[Experiment]]:
    """Return a layout of writes to some zones, and a command to each of these."""
    varying = Varying(f"zone_{command}", "written_percent", "")

    def describe(context: Context, pattern: str, percent: int) -> Spec:
        zones, size = zones_used(context), zones_of(context).zone_bytes
        if pattern == label:
            return basic(
                command,
                "sequential",
                io_size=size,
                target_offset=0,
                target_size=zones * size,
                io_count=zones,
                io_ignore=0,
            )
        return baseline_spec(
            context,
            WRITES,
            counts=IoCounts(writes_per_zone(context, percent), 0),
            parallel_degree=zones,
            target_offset=0,
            target_size=zones * size,
        )

    def experiments(context: Context) -> list[Experiment]:
        values = QUICK if context.quick else STANDARD
        return [
            lay_out(context, varying, pattern, values, describe, why_not=why_not())
            for pattern in (WRITES, label)
        ]

    return experiments


def finding_of(label: str, command: str) -> Rule:
    """Return the rule for the cost of a command with the least and with the most written."""

    def finding(measured: Experiments, _baselines: Means, ratios: Ratios) -> str:
        """Return the sentence on the cost with the least and with the most written."""
        runs = list(measured.get(label, ()))
        if len(runs) < 2:
            return ""
        first, last = runs[0], runs[-1]
        factor = ratios.factor(mean_ns(last) / mean_ns(first), label)
        return (
            f"A {command} takes {format_duration_ns(mean_ns(first))} with {first['value']} % of "
            f"the zone written, {format_duration_ns(mean_ns(last))} with {last['value']} % "
            f"({factor})."
        )

    return finding
