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
(`refit.UNFITTED_VALUES`). It *brings nothing* if no fewer cells agree, neither by the paper's
repeatability nor on the wide scale, all cells together miss by no more (`refit.miss`), and it was
fitted to nothing else: figures that need it are not tested here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from uflip.executors import OnStep, on_all
from uflip.profiles import profile_sources
from uflip.reproduce import table3
from uflip.reproduce.refit import UNFITTED_VALUES, Constants, Measure, Number, miss, short
from uflip.table import Table

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
        sum(miss(cell) for cell in every),
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
    rows = on_all(partial(_row, measure), changes, on_step, lambda one: next(iter(one), "as it is"))
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


def _row(measure: Measure, constants: Constants) -> Mapping[str, table3.Cell] | None:
    return measure(constants, table3.COLUMNS)


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
