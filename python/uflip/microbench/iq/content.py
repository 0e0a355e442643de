"""Content: does the device compress or deduplicate data?

::

    compress_percent 90     ████ random ░░░░░░░░░░░░ zeros, in each sector
    duplicate_percent 90    A B A C A B A A B …    9 of 10 blocks repeat one of a few

**Source**: OFC (2011) §VI: "methods that reduce writes by means of compression or de-duplication";
fio's `buffer_compress_percentage` and `dedupe_percentage`.
**Faithful**: random writes to the whole device until its spare space shows the effect: data that
takes less flash leaves more of it spare.
**Simplified**: the decision compares the rates of the first and the last share only. Before each
run the device is discarded and written in sequence: data that the run before has left smaller would
be spare space.
**Ambiguous**: (1) how much to write: a quarter of the device. The pass leaves the spare space of
most drives free, 7 %; the rest of the run collects garbage. By then a fifth of the device has the
content of the run, and data that is 90 % smaller has doubled the spare space. A run that its time
limit ends before it has written that much decides nothing.
(2) how large an effect counts. Both experiments begin with the same content, neither
compressible nor duplicate; the difference of these two runs is the noise. The answer is yes if the
effect exceeds `NOISES` times the noise, no if an effect of `LEAST_EFFECT` would have shown, and
undecided otherwise.
"""

from collections.abc import Sequence
from typing import Any, cast

from uflip.microbench.experiment import Context, Experiment
from uflip.microbench.finding import Experiments, Means, Ratios, Run
from uflip.microbench.iq.long_writes import PASS, PATTERN, LongWrites, long_writes, sequential_pass
from uflip.microbench.layout import Describe, Varying, lay_out
from uflip.microbench.today.deallocate import PERCENT, TRIMS, further_trims, without_trims
from uflip.spec import Spec
from uflip.startup import steady_bytes
from uflip.units import format_count

NAME = "content"
COMPRESSION = "compress_percent"
DUPLICATES = "duplicate_percent"
ABILITIES = {COMPRESSION: "compresses data", DUPLICATES: "deduplicates data"}
STANDARD = (0, 50, 90)
QUICK = (0, 90)
NOISES = 3
# Two runs that agree better than this do so by chance.
LEAST_NOISE = 0.02
# 90 % less data makes random writes faster by this share at least, however slow the host is.
LEAST_EFFECT = 0.2


def experiments(context: Context) -> list[Experiment]:
    """Lay out random writes by the share that compression removes, then by that of duplicates.

    Each of them comes after discards and a pass over the device.
    """
    values = QUICK if context.quick else STANDARD
    return [
        lay_out(context, Varying(NAME, name, ""), pattern, values, _described_by(name),
                why_not=_why_not)
        for name in ABILITIES for pattern in (TRIMS, PASS, PATTERN)
    ]  # fmt: skip


def _described_by(name: str) -> Describe:
    def describe(context: Context, pattern: str, percent: int) -> Spec:
        if pattern == TRIMS:
            return further_trims(context, 0, PERCENT)
        if pattern == PASS:
            return sequential_pass(context)
        size = steady_bytes(context.capacity)
        return long_writes(context, size_bytes=size, **{name: cast("Any", percent)})

    return describe


def _why_not(context: Context, spec: Spec) -> str | None:
    if context.info.data == "zeros":
        return "its writes are zeros (--data)"
    return None if spec.writes else without_trims(context, spec)


def finding(measured: Experiments, _baselines: Means, _ratios: Ratios) -> str:
    """Return a sentence for each ability: yes, no or undecided, with the rates."""
    series = {
        name: sorted(
            (run for run in measured.get(PATTERN, ()) if run["parameter"] == name),
            key=lambda run: run["value"],
        )
        for name in ABILITIES
    }
    firsts = [_rate(runs[0]) for runs in series.values() if runs and not runs[0]["value"]]
    if len(firsts) < len(ABILITIES) or not all(firsts):
        return ""
    noise = max(abs(firsts[0] / firsts[1] - 1), abs(firsts[1] / firsts[0] - 1), LEAST_NOISE)
    parts = [_verdict(name, runs, noise) for name, runs in series.items() if len(runs) > 1]
    if not parts:
        return ""
    return f"{' '.join(parts)} Runs of the same content differ by {noise:.1%} at most."


def decide(first: float, last: float, noise: float) -> bool | None:
    """Return whether the rate `last` shows an effect against `first`; None: undecided.

    >>> decide(100, 250, 0.02), decide(100, 104, 0.02), decide(100, 125, 0.10)
    (True, False, None)
    """
    effect = last / first - 1
    if effect > NOISES * noise:
        return True
    return False if effect + NOISES * noise < LEAST_EFFECT else None


def _verdict(name: str, runs: Sequence[Run], noise: float) -> str:
    is_enough = all(_wrote_enough(run) for run in runs)
    decision = decide(_rate(runs[0]), _rate(runs[-1]), noise) if is_enough else None
    verb, _, thing = ABILITIES[name].partition(" ")
    if decision is None:
        answer = f"Undecided whether the device {verb} {thing}"
    elif decision:
        answer = f"The device {verb} {thing}"
    else:
        answer = f"The device shows no sign that it {verb} {thing}"
    return f"{answer}: {'; '.join(_result(run) for run in runs)}."


def _wrote_enough(run: Run) -> bool:
    io_size, target_size = int(run["spec"]["io_size"]), int(run["spec"]["target_size"])
    return run["io_count"] * io_size >= steady_bytes(target_size) // io_size * io_size


def _rate(run: Run) -> float:
    """Return the rate of the last half of a run, or of a whole quick run [I/Os per second]."""
    verdict = run.get("steadiness")
    return run["ios_per_s"] or 0.0 if verdict is None else verdict["ios_per_s"]


def _result(run: Run) -> str:
    text = f"{format_count(round(_rate(run)))} IOPS at {run['value']} %"
    verdict = run.get("steadiness")
    if verdict is None or verdict["write_amplification"] is None:
        return text
    return f"{text} (write amplification {verdict['write_amplification']:.2f})"


MICRO_BENCHMARK = LongWrites(
    name=NAME,
    title="Content",
    experiments=experiments,
    question="Does the device compress or deduplicate what it writes?",
    how_to_read=(
        "A line for each share of the data that compression could remove, and of the blocks that "
        "are duplicates [%]. Lines that rise with the share show a device that stores less than "
        "the host writes. Write amplification counts the host's bytes, so it may be below 1."
    ),
    finding=finding,
)
