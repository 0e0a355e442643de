"""Counters of real drives: their values, and the change of them during a run.

A counter has an id: its source and its name, such as `ocp.physical_bytes_written`. The sources are
those of `uflip.device.counters`. A value that cannot be used has a mark with the reason.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from uflip.data.document import Count, Name, Positive, Text

HOST_BYTES = "host_bytes_written"
PHYSICAL_BYTES = "physical_bytes_written"
CONDITIONS = ("temperature_celsius", "available_spare_percent", "percentage_used")
"""Counters that are states of the drive: shown before and after, not as a difference."""
RESETS = ("power_cycles", "unsafe_shutdowns")
"""Counters that change if the drive lost power."""
# Programs of pages, without their size (Micron): of the host, and of garbage collection.
HOST_PROGRAMS, BACKGROUND_PROGRAMS = "host_page_programs", "background_page_programs"

MIN_STEPS = 20
"""A smaller difference of a counter, in its steps, has no write amplification: ± 5 %."""
OTHERS_SHARE = 0.05
"""Writes of others are reported from this share of the host's writes."""
WRAP_SHARE = 0.25
"""A counter wrapped if it was in this last share of its range, and is in the first."""


class CounterSource(Struct, frozen=True, omit_defaults=True):
    """A page of a drive; `problem`: why it was not read, empty otherwise."""

    id: Name
    name: Text
    problem: Text = ""


class Counter(Struct, frozen=True, omit_defaults=True):
    """A counter of a drive."""

    id: Name  #: Its source and name.
    value: int  #: In its unit.
    unit: Text = ""  #: "bytes", "pages", "%", "°C", or empty.
    step: Positive = 1  #: The smallest possible difference.
    range: Positive | None = None  #: Value at which it begins again from 0, if that can happen.

    @property
    def source(self) -> str:
        """The id of its source."""
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        """Its name, the same for all sources."""
        return self.id.partition(".")[2]


class UnknownCounter(Struct, frozen=True, omit_defaults=True):
    """A page or an attribute that the drive has, and whose meaning is unknown here."""

    source: Name
    name: Text
    raw: Count | None = None


class DriveCounters(Struct, frozen=True, omit_defaults=True):
    """All counters of a drive at one moment."""

    drive: Text = ""  #: Model and firmware; empty if unknown.
    #: The pages that such a drive may have, the most specific first.
    sources: tuple[CounterSource, ...] = ()
    counters: tuple[Counter, ...] = ()  #: In the order of the sources.
    unknown: tuple[UnknownCounter, ...] = ()  #: Not in the table of known counters.
    shared: Text = ""  #: Why the counters cover more than the target; empty if they do not.
    problem: Text = ""  #: Why there are no counters at all; empty otherwise.

    def find(self, name: str) -> Counter | None:
        """Return the first counter of this name."""
        return next((each for each in self.counters if each.name == name), None)

    @property
    def values(self) -> dict[str, int]:
        """The values by id."""
        return {each.id: each.value for each in self.counters}


class CounterMark(Struct, frozen=True, omit_defaults=True):
    """A doubt about the change of a counter; `counter` is empty if it concerns all.

    ========================  ==================================================================
    `not_read`                the drive returned it before the run, and not after it, or vice versa
    `went_back`               it is smaller than before: the drive or the counter was reset
    `wrapped`                 it began again from 0; the difference takes that into account
    `power_lost`              the drive was switched off, or reset, during the run
    `too_few_steps`           the difference is too small for a write amplification
    `others_wrote`            the host wrote more to the drive than the run did
    `several_runs`            the values cover several runs without a pause between them
    ========================  ==================================================================
    """

    code: Name
    counter: Text = ""
    detail: Text = ""


class CounterChange(Struct, frozen=True, omit_defaults=True):
    """The counters of a drive before and after a run, and what follows."""

    #: Values by id; empty if they could not be read.
    before: dict[Name, int] = {}
    after: dict[Name, int] = {}
    source: Text = ""  #: The source of the write amplification, or of the host's bytes without one.
    #: Differences, in `unit`.
    host_written: Count | None = None
    physical_written: Count | None = None
    unit: Text = ""  #: "bytes" or "pages".
    write_amplification: float | None = None  #: The quotient of both; None if unknown.
    #: Largest relative error of the quotient, by the steps of the counters.
    relative_error: float = 0.0
    marks: tuple[CounterMark, ...] = ()  #: Doubts.


def change_of(
    before: DriveCounters, after: DriveCounters, bytes_written: int, runs: int = 1
) -> CounterChange:
    """Return the change of the counters of a drive during a run.

    `before`, `after`: readings of the same drive. `bytes_written`: bytes that the run wrote.
    `runs`: number of runs between the readings.

    Examples
    --------
    >>> def reading(host, physical):
    ...     return DriveCounters(
    ...         counters=(
    ...             Counter("fdp.host_bytes_written", host, "bytes"),
    ...             Counter("fdp.physical_bytes_written", physical, "bytes"),
    ...         )
    ...     )
    >>> change_of(reading(1000, 3000), reading(2000, 5500), 1000).write_amplification
    2.5
    """
    marks: list[CounterMark] = []
    if runs > 1:
        marks.append(CounterMark("several_runs", detail=f"{runs} runs"))
    differences = _differences(before, after, marks)
    steps = {each.id: each for each in (*before.counters, *after.counters)}
    host_id, written = _host_and_physical(differences)
    host = differences.get(host_id)
    source = host_id.partition(".")[0]
    amplification, error, physical = None, 0.0, None
    if host is not None and written:
        physical = sum(differences[each] for each in written)
        source = written[0].partition(".")[0]
        coarse = [
            each
            for each, amount in ((host_id, host), (written[-1], physical))
            if amount < MIN_STEPS * steps[each].step
        ]
        if coarse:
            detail = f"less than {MIN_STEPS} steps of {steps[coarse[0]].step}"
            marks.append(CounterMark("too_few_steps", coarse[0], detail))
        else:
            amplification = physical / host
            error = steps[host_id].step / host + steps[written[-1]].step / physical
    unit = "" if host is None else steps[host_id].unit
    marks += _others(host, unit, steps.get(host_id), bytes_written)
    return CounterChange(
        before.values, after.values, source, host, physical, unit, amplification, error,
        tuple(marks),
    )  # fmt: skip


def _differences(
    before: DriveCounters, after: DriveCounters, marks: list[CounterMark]
) -> dict[str, int]:
    """Return the usable differences by id; add a mark for each counter without one."""
    earlier, later = before.values, after.values
    differences: dict[str, int] = {}
    known = {each.id: each for each in (*before.counters, *after.counters)}
    for reading, values in ((before, earlier), (after, later)):
        for each in known.values():
            if each.id in values:
                continue
            if _was_read(reading, each.source) and each.name not in CONDITIONS:
                values[each.id] = 0  # which is how a drive leaves a counter out
            else:
                marks.append(CounterMark("not_read", each.id, _problem(reading, each.source)))
    for each in known.values():
        if each.id not in earlier or each.id not in later or each.name in CONDITIONS:
            continue
        difference = later[each.id] - earlier[each.id]
        if each.name in RESETS and difference:
            marks.append(CounterMark("power_lost", each.id, f"{difference:+d}"))
        if difference < 0:
            wrapped = _wrapped(each, earlier[each.id], later[each.id])
            detail = f"from {earlier[each.id]} to {later[each.id]}"
            marks.append(CounterMark("wrapped" if wrapped else "went_back", each.id, detail))
            if not wrapped:
                continue
            difference += each.range or 0
        differences[each.id] = difference
    return differences


def _problem(reading: DriveCounters, source: str) -> str:
    problems = (each.problem for each in reading.sources if each.id == source)
    return reading.problem or next(problems, "")


def _was_read(reading: DriveCounters, source: str) -> bool:
    return any(each.id == source and not each.problem for each in reading.sources)


def _wrapped(counter: Counter, earlier: int, later: int) -> bool:
    if counter.range is None:
        return False
    return earlier > (1 - WRAP_SHARE) * counter.range and later < WRAP_SHARE * counter.range


def _host_and_physical(differences: Mapping[str, int]) -> tuple[str, Sequence[str]]:
    """Return the id of the host's writes, and those of the physical ones, which may be none.

    The host's counter is that of the same source, where the source has one.
    """
    of_host = [each for each in differences if each.endswith(f".{HOST_BYTES}")]
    for each in differences:
        source, _, name = each.partition(".")
        programs = f"{source}.{HOST_PROGRAMS}"
        if name == PHYSICAL_BYTES and of_host:
            own = f"{source}.{HOST_BYTES}"
            return own if own in differences else of_host[-1], (each,)
        if name == BACKGROUND_PROGRAMS and programs in differences:
            return programs, (programs, each)
    return (of_host[0] if of_host else ""), ()


def _others(
    host: int | None, unit: str, counter: Counter | None, bytes_written: int
) -> list[CounterMark]:
    """Return a mark if the host wrote clearly more to the drive than the run did."""
    if host is None or counter is None or unit != "bytes":
        return []
    extra = host - bytes_written
    if extra <= max(2 * counter.step, OTHERS_SHARE * bytes_written):
        return []
    return [CounterMark("others_wrote", counter.id, f"{extra} bytes")]


def combine(changes: Sequence[CounterChange]) -> CounterChange | None:
    """Return the change over several runs; None without one.

    Bytes are those of the runs only, not those between them. A write amplification needs that of
    every run that wrote.
    """
    if not changes:
        return None
    first, last = changes[0], changes[-1]
    units = {each.unit for each in changes if each.unit}
    host = [each.host_written for each in changes]
    physical = [each.physical_written for each in changes]
    marks = {(mark.code, mark.counter): mark for each in changes for mark in each.marks}
    total_host = sum(each or 0 for each in host) if None not in host else None
    total_physical = sum(each or 0 for each in physical) if None not in physical else None
    amplification, error = None, 0.0
    steps = [each.relative_error * (each.host_written or 0) for each in changes]
    if total_host and total_physical is not None and len(units) == 1:
        if any(each.write_amplification is not None for each in changes):
            amplification, error = total_physical / total_host, sum(steps) / total_host
        if len(changes) > 1 and amplification is not None:
            for key in [key for key in marks if key[0] == "too_few_steps"]:
                del marks[key]
    return CounterChange(
        first.before, last.after, first.source, total_host, total_physical,
        units.pop() if len(units) == 1 else "", amplification, error, tuple(marks.values()),
    )  # fmt: skip


class DriveSummary(Struct, frozen=True):
    """The counters of the drive of a benchmark."""

    counters: DriveCounters | None  #: As read before the first run; None for results without them.
    change: CounterChange | None  #: Over all runs; None if no run has counters.
    #: Rate of sequential writes over that of random ones, for a drive that does not report its
    #: physical writes; not a measurement of writes.
    implied_write_amplification: float | None
