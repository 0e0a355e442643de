"""Skew: random writes by Zipf's law. How does write amplification depend on the skew?

**Source**: Haas et al. (PVLDB 2025): `zipf`, θ of 0.2 to 1.0, ranks scattered over the device.
**Faithful**: the range of θ, and uniform writes as the first value; scattered ranks.
**Simplified**: exact Zipf probabilities (`zipf` of the engine). fio's generator is more skewed for
the same θ.
**Ambiguous**: `long_writes`.
"""

from uflip.microbench.experiment import Context
from uflip.microbench.iq.long_writes import PATTERN, LongWrites, long_writes, result_of_each
from uflip.microbench.layout import Varying, by_scale
from uflip.spec import Spec

VARYING = Varying("skew", "skew_percent", "")
# θ in hundredths; 0 are uniform writes.
STANDARD = (0, 20, 40, 60, 80, 100)
QUICK = (0, 60, 100)


def _describe(context: Context, _pattern: str, skew_percent: int) -> Spec:
    if not skew_percent:
        return long_writes(context, uniform=True)
    return long_writes(context, location="zipf", skew_percent=skew_percent)


MICRO_BENCHMARK = LongWrites(
    name=VARYING.micro_benchmark,
    title="Skew",
    experiments=by_scale(VARYING, [PATTERN], STANDARD, QUICK, _describe),
    question="What do random writes cost if few addresses get most of them?",
    how_to_read=(
        "Rate, write amplification (of simulated devices) and p99 over the bytes written, a line "
        "for each skew in hundredths. A device that separates hot from cold data writes less the "
        "more skewed the writes are. Write amplification that rises with the skew shows a device "
        "whose victims contain cold data."
    ),
    finding=result_of_each(lambda percent: f"θ = {percent / 100:g}"),
)
