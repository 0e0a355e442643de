"""Statistics of means: the entry of everything that asks how sure a mean is, or whether two differ.

==============  ==================================================================================
`run`           the interval of a repetition, from its own I/Os: `run_convergence`
`experiment`    the interval of an experiment, from its repetitions: `combined_mean`;
                `repetition_certainty`, with the values that decide about the next round
`ratio`         two experiments: `mean_ratio`, and the `verdict`; many tests at once: `holm`
`scatter`       the scatter of repetitions, pooled over experiments of a sort
==============  ==================================================================================
"""

from uflip.results.statistics.experiment import (
    AGREEMENT,
    COLD_READS,
    DEVICE_CHANGED,
    FREE_SPACE_LEFT,
    INSIDE_STARTUP,
    KEEPS_HEADLINE,
    MARKS,
    Experiments,
    Mark,
    RepetitionStatistics,
    allowed_ns,
    combined_mean,
    disagreement,
    peers_by_sort,
)
from uflip.results.statistics.ratio import (
    ROUNDING,
    VERDICTS,
    Factor,
    Mean,
    difference_chance,
    first_mark,
    holm,
    mean_ratio,
    ratio_interval,
    sum_of_means,
    typical_spread,
    verdict,
)
from uflip.results.statistics.run import (
    FEW_PLACES,
    STARTUP_IN_MEAN,
    job_convergence,
    repetition_convergence,
    run_convergence,
)

__all__ = [
    "AGREEMENT",
    "COLD_READS",
    "DEVICE_CHANGED",
    "FEW_PLACES",
    "FREE_SPACE_LEFT",
    "INSIDE_STARTUP",
    "KEEPS_HEADLINE",
    "MARKS",
    "ROUNDING",
    "STARTUP_IN_MEAN",
    "VERDICTS",
    "Experiments",
    "Factor",
    "Mark",
    "Mean",
    "RepetitionStatistics",
    "allowed_ns",
    "combined_mean",
    "difference_chance",
    "disagreement",
    "first_mark",
    "holm",
    "job_convergence",
    "mean_ratio",
    "peers_by_sort",
    "ratio_interval",
    "repetition_convergence",
    "run_convergence",
    "sum_of_means",
    "typical_spread",
    "verdict",
]
