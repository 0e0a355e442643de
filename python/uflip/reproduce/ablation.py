"""Ablation of the constants fitted to a row of Table 3: is the row worse without each of them?

The value of a constant is the loss of the row without it. A constant that was set until a cell
came out may be unnecessary: then it is an unknown number that makes the device look better founded
than it is.

**Source**: uFLIP (CIDR 2009), Table 3; ablation, as in stepwise regression (Efroymson 1960).
**Faithful**: the whole benchmark measures all ten cells again, not only those to which the
constant was fitted.
**Simplified**: one constant at a time. Of two constants with the same effect on a cell, both bring
nothing, but only one may be removed; run the study again after each removal.
**Ambiguous**: the value of a removed constant: that of data sheets, or its mechanism's absence
(`UNFITTED_VALUES`). It *brings nothing* if no fewer cells agree, neither by the paper's
repeatability nor on the wide scale, all cells together miss by no more (`table3.miss`), and it was
fitted to nothing else: figures that need it are not tested here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from uflip.data.device import DeviceInfo
from uflip.device.cache import switched_off
from uflip.errors import UsageError
from uflip.executors import OnStep, on_all
from uflip.profiles import profile_sources
from uflip.reproduce import table3
from uflip.reproduce.coordinate_search import Constants, Number, short
from uflip.reproduce.simulated_device import device_url
from uflip.reproduce.uflip_table3 import benchmark
from uflip.results.summary_document import key_row_of
from uflip.table import Table

Measure = Callable[[Constants], Mapping[str, table3.Cell] | None]
"""Makes the device with some constants changed and returns its row; None if there is no such
device."""

UNFITTED_VALUES: Constants = {
    # Data sheets of 8 Gbit SLC NAND of 2008, and of interfaces.
    "program_ns": 200_000, "program_high_ns": 800_000, "channel_bytes_per_s": 40_000_000,
    "link_bytes_per_s": 100_000_000, "unit_bytes": 1 << 20,
    # One of each, or none.
    "command_read_ns": 0, "command_write_ns": 0, "seek_read_ns": 0, "relocate_ns": 0,
    "banks": 1, "streams": 1, "resumed_streams": 1, "merges_at_once": 1, "free_clusters": 0,
    "switch_map_pages": 0, "log_map_pages": 0, "open_map_pages": 0, "reads_per_step": 0,
    "log_clusters": 1, "log_units": 1, "log_members": 0, "small_log_clusters": 0,
    "backward_clusters": 0, "rewrites": 0, "open_units": 1,
}  # fmt: skip
"""Values of constants without evidence from any column."""

MICRO_BENCHMARKS = ("baseline", "locality", "order", "partitioning", "pause")
TABLE_3 = "uflip/table3/"
# Logarithms of deviations: rounding leaves a tenth of a percent.
ROUNDING = 0.001
HEAD = ("constant", "fitted", "without", "fitted to", "agree", "widely", "missed by", "brings")


@dataclass(frozen=True)
class AblationScore:
    """The score of a row: cells that agree, cells that agree on the wide scale, the total miss."""

    agree: int
    wide: int
    missed: float

    def is_as_good_as(self, other: "AblationScore") -> bool:
        """Return whether it is no worse in any respect."""
        close = self.missed <= other.missed + ROUNDING
        return self.agree >= other.agree and self.wide >= other.wide and close


@dataclass(frozen=True)
class Ablation:
    """A constant, and the row without it."""

    key: str  #: The constant.
    #: Its value in the profile, and the value without it.
    fitted: Number
    without: Number
    values: tuple[str, ...]  #: Published values that it was fitted to.
    score: AblationScore | None  #: Score of the device without it; None if there is no such device.
    #: Whether the row is no worse, and the constant was fitted to nothing else.
    brings_nothing: bool


def score(cells: Mapping[str, table3.Cell]) -> AblationScore:
    """Score a row."""
    every = cells.values()
    return AblationScore(
        sum(cell.within for cell in every),
        sum(cell.wide for cell in every),
        sum(table3.miss(cell) for cell in every),
    )


def removable(profile: str, values: Constants) -> dict[str, Number]:
    """Return the values of the fitted constants of a device when they are removed.

    Constants without such a value are omitted, and constants that have it already.
    """
    return {
        key: UNFITTED_VALUES[key]
        for key, source in profile_sources(profile).items()
        if source.kind == "fitted"
        and key in UNFITTED_VALUES
        and values.get(key) != UNFITTED_VALUES[key]
    }


def ablate(
    profile: str,
    values: Constants,
    measure: Measure,
    on_step: OnStep,
) -> tuple[AblationScore, list[Ablation]]:
    """Remove each fitted constant of a device in turn."""
    replacements = removable(profile, values)
    changes: list[Constants] = [{}, *({key: without} for key, without in replacements.items())]
    rows = on_all(measure, changes, on_step, lambda one: next(iter(one), "as it is"))
    assert rows[0] is not None, "the device of the table exists"
    whole, ablations = score(rows[0]), []
    sources = profile_sources(profile)
    for (key, without), cells in zip(replacements.items(), rows[1:], strict=True):
        score_without = None if cells is None else score(cells)
        targets = tuple(sources[key].values)
        of_table = all(value.startswith(TABLE_3) for value in targets)
        nothing = score_without is not None and of_table and score_without.is_as_good_as(whole)
        ablations.append(Ablation(key, values[key], without, targets, score_without, nothing))
    return whole, ablations


def measure_row(profile: str, constants: Constants) -> Mapping[str, table3.Cell] | None:
    """Measure the row of a device with some constants changed; see `Measure`."""
    try:
        with switched_off():
            document = benchmark(
                profile, url=device_url(profile, **constants), only=MICRO_BENCHMARKS
            )
    except UsageError:
        return None
    cells = table3.compare(table3.row_of(profile), key_row_of(document))
    return {cell.column: cell for cell in cells}


def values_of(info: DeviceInfo) -> Constants:
    """Return all numeric constants of a simulated device, by key."""
    return {
        key: value
        for part in info.profile_table.values()
        if isinstance(part, dict)
        for key, value in part.items()
        if isinstance(value, int | float)
    }


def text(profile: str, whole: AblationScore, ablations: Sequence[Ablation]) -> str:
    """Format the study."""
    rows = []
    for ablation in ablations:
        targets = ", ".join(
            value.removeprefix("uflip/").replace(f"{profile}/", "") for value in ablation.values
        )
        head = (ablation.key, short(ablation.fitted), short(ablation.without), targets)
        if ablation.score is None:
            rows.append((*head, "", "", "", "the device"))
            continue
        verdict = "nothing" if ablation.brings_nothing else "something"
        scored = (
            str(ablation.score.agree),
            str(ablation.score.wide),
            f"{ablation.score.missed:.2f}",
        )
        rows.append((*head, *scored, verdict))
    nothing = sum(ablation.brings_nothing for ablation in ablations)
    return (
        f"{Table(HEAD, rows, 'llllrrrl').text()}\n\nsim:{profile}: {whole.agree} of "
        f"{len(table3.COLUMNS)} cells agree, {whole.wide} on the wide scale, missed by "
        f"{whole.missed:.2f} in total; {nothing} of {len(ablations)} constants bring nothing"
    )
