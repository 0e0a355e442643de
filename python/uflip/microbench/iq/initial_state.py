"""Initial state: what do writes and a load cost on an empty, a sequential and a random device?

::

    empty        |  discarded    |  load  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ random writes
    sequential   |▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓|  load  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
    random       |▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒|  load  ▒▒▒

**Source**: Haas et al. (PVLDB 2025): the same workload on a fresh, a sequentially and a randomly
filled drive; uFLIP (CIDR 2009) §4.1: the state decides what is measured.
**Faithful**: the three states, one after another in one benchmark; the same runs in each.
**Simplified**: the load has one rate, `LOAD_PER_S`, which most drives sustain; `offered_load` has
the others. The pass and the discards that make a state are runs like any other.
**Ambiguous**: how much to write: twice the device. An empty device then has no data at 13 % of its
addresses (e^-2), which are spare space. The rate of a sequential one has fallen to that of a random
device, which is the third state; there a quarter suffices, because nothing changes. Quick runs
write too little to reach it: `offered_load` and `skew` begin in it.
"""

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.finding import Experiments, Means, Ratios, Run
from uflip.microbench.iq import offered_load
from uflip.microbench.iq.long_writes import PASS, PATTERN, LongWrites, long_writes, sequential_pass
from uflip.microbench.labels import INITIAL_STATES
from uflip.microbench.layout import Varying, lay_out
from uflip.microbench.today.deallocate import PERCENT, TRIMS, further_trims, without_trims
from uflip.microbench.today.loaded import tail, too_small
from uflip.microbench.today.steady_state import MIN_IOS, QUICK_BYTES
from uflip.spec import Basic, Mix, Spec
from uflip.startup import steady_bytes
from uflip.units import format_count, format_duration_ns

VARYING = Varying("initial_state", "initial_state", "state")
EMPTY, SEQUENTIAL, RANDOM = range(len(INITIAL_STATES))
STANDARD = (EMPTY, SEQUENTIAL, RANDOM)
QUICK = (EMPTY, SEQUENTIAL)
LOAD = offered_load.PATTERN
# I/Os per second.
LOAD_PER_S = 8000
# The load writes at most this fraction of the device: less than its spare space.
LOAD_PART = 64


def experiments(context: Context) -> list[Experiment]:
    """Lay out what makes each state, then a load and random writes in it."""
    states = QUICK if context.quick else STANDARD
    laid_out = (
        (TRIMS, (EMPTY, SEQUENTIAL)),
        (PASS, (SEQUENTIAL,)),
        (LOAD, states),
        (PATTERN, states),
    )
    return [
        lay_out(context, VARYING, pattern, values, _describe, why_not=_why_not)
        for pattern, values in laid_out
    ]


def _describe(context: Context, pattern: str, state: int) -> Spec:
    if pattern == PASS:
        return sequential_pass(context)
    if pattern == TRIMS:
        return further_trims(context, 0, PERCENT)
    if pattern == LOAD:
        load = offered_load.load_mix(context, LOAD_PER_S)
        ios = context.capacity // (LOAD_PART * load.first.io_bytes)
        ios = min(max(ios, MIN_IOS), load.io_count or 0)
        return load.but(io_count=ios, io_ignore=ios // 2)
    size = steady_bytes(context.capacity, overwritten=state == RANDOM)
    return long_writes(context, size_bytes=min(size, QUICK_BYTES) if context.quick else size)


def _why_not(context: Context, spec: Spec) -> str | None:
    if isinstance(spec, Mix):
        return too_small(context, spec)
    return without_trims(context, spec) if isinstance(spec, Basic) and spec.is_trim else None


def finding(measured: Experiments, _baselines: Means, _ratios: Ratios) -> str:
    """Return the sentence with the rates of writes at both ends, and the tails under load."""
    parts = [_rates(run) for run in measured.get(PATTERN, ()) if any(run.get("rounds", ()))]
    text = f"Random writes: {'; '.join(parts)}." if parts else ""
    tails = [_tails(run) for run in measured.get(LOAD, ())]
    if tails:
        text += f" At {format_count(LOAD_PER_S)} I/Os per second: {'; '.join(tails)}."
    return text.strip()


def _rates(run: Run) -> str:
    rounds = run["rounds"][0]
    first, last = (
        format_count(round(each["ios_per_s"] or 0.0)) for each in (rounds[0], rounds[-1])
    )
    return f"from {INITIAL_STATES[int(run['value'])]} {first} IOPS, in the end {last}"


def _tails(run: Run) -> str:
    parts = []
    for noun, component in (("reads", "second"), ("writes", "first")):
        if (statistics := run["components"][component]["statistics"]) is not None:
            name, value, _ = tail(statistics, statistics)
            parts.append(f"{name} of the {noun} {format_duration_ns(value)}")
    return f"{INITIAL_STATES[int(run['value'])]}: {', '.join(parts)}"


MICRO_BENCHMARK = LongWrites(
    name=VARYING.micro_benchmark,
    title="Initial state",
    experiments=experiments,
    question="What do random writes and a load cost on a device in each state?",
    how_to_read=(
        "A line for each state. Writes to an empty or a sequentially written device are fast until "
        "its spare space is used up. The amount after which the line of the sequential device "
        "meets that of the random one is what a test must write to measure the device, not its "
        "history. An empty device stays faster as long as some addresses have no data."
    ),
    finding=finding,
)
