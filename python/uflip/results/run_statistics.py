"""Statistics of a run: as a whole, by mode, and of a mix by pattern.

Reads, writes, trims and appends are different populations: a mean over two of them is the response
time of neither. So a run with several modes has separate statistics for each: a mix, parallel
patterns, a replay, or an imported log. Everything is computed in one pass over the run, a part at a
time, so that memory use does not grow with the length of the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from uflip import _native
from uflip.data.device import DeviceInfo
from uflip.data.energy import PowerRecord, summarise_energy
from uflip.data.run import ModeDocument, OneRun
from uflip.data.spec import MODES, Mix, Parallel, Pattern, Replay, read_spec
from uflip.data.summary import StatisticsSummary
from uflip.results.columns import PIECE_IOS, as_array, pieces
from uflip.stats import Distribution


@dataclass(frozen=True, kw_only=True)
class RunStatistics:
    """Statistics of some runs together, without the ignored start-up."""

    count: int  #: Number of measured I/Os.
    statistics: StatisticsSummary | None  #: None if the runs contain only start-up.
    #: The same for each pattern of a mix, by `Mix.part_names`; empty for anything else.
    components: Mapping[str, StatisticsSummary | None]
    #: For each mode that occurs: `bytes`, `ios_per_s`, `bytes_per_s` and `statistics`.
    by_mode: Mapping[str, ModeDocument]
    causes_ns: Mapping[str, float]  #: Mean time of an I/O by cause [ns].
    #: See `measured_amount`.
    ios_per_s: float | None
    bytes_per_s: float | None

    @property
    def separate_modes(self) -> Mapping[str, ModeDocument]:
        """Return `by_mode` if there are several modes; a single one repeats the whole."""
        return self.by_mode if len(self.by_mode) > 1 else {}


def statistics_of(traces: Sequence[_native.Trace]) -> RunStatistics:
    """Compute the statistics of the repetitions of a run, at least one.

    >>> from uflip.device.opener import open_device
    >>> from uflip.spec import basic, mix
    >>> both = mix(basic("read", "random"), basic("write", "random"), 3, io_count=100)
    >>> with open_device("sim:demo") as device:
    ...     measured = statistics_of([device.run(both)])
    >>> {mode: one["statistics"]["count"] for mode, one in measured.by_mode.items()}
    {'read': 300, 'write': 100}
    """
    spec = read_spec(traces[0].spec_json)
    mode = _common_mode(spec)
    names = spec.part_names if isinstance(spec, Mix) else ()
    gathered = _Accumulator(len(names), mode, traces[0].causes)
    for trace in traces:
        gathered.add(trace)
    amounts = [measured_amount(trace, mode) for trace in traces]
    ios_per_s, bytes_per_s = rates(amounts)
    count = len(gathered.all_ios)
    return RunStatistics(
        count=count,
        statistics=gathered.all_ios.summary(),
        components={
            name: times.summary() for name, times in zip(names, gathered.components, strict=True)
        },
        by_mode=gathered.mode_statistics(amounts),
        causes_ns={name: ns / count if count else 0.0 for name, ns in gathered.causes.items()},
        ios_per_s=ios_per_s,
        bytes_per_s=bytes_per_s,
    )


class _Accumulator:
    """Response times, sizes and causes of measured I/Os.

    `mode` is the number of their common mode, if they have one.
    """

    def __init__(self, components: int, mode: int | None, causes: Sequence[str]) -> None:
        self._mode = mode
        self.all_ios = Distribution()
        self.components = [Distribution() for _ in range(components)]
        self.modes = {number: Distribution() for number in range(len(MODES)) if mode is None}
        self.bytes = dict.fromkeys(range(len(MODES)), 0)
        self.causes = dict.fromkeys(causes, 0)

    def add(self, trace: _native.Trace) -> None:
        names = ["ignored", "response_time_ns", "io_size_bytes"]
        names += ["component"] if self.components else []
        names += ["mode"] if self._mode is None else []
        start = 0
        for ignored, *columns in pieces(trace, names):
            measured = ignored == 0
            times, sizes, *other_columns = (column[measured] for column in columns)
            self.all_ios.add(times)
            if self.components:
                for number, component in enumerate(self.components):
                    component.add(times[other_columns[0] == number])
            if self._mode is not None:
                self.bytes[self._mode] += int(sizes.sum(dtype=np.uint64))
            else:
                for number in np.unique(other_columns[-1]).tolist():
                    in_mode = other_columns[-1] == number
                    self.modes[number].add(times[in_mode])
                    self.bytes[number] += int(sizes[in_mode].sum(dtype=np.uint64))
            for name in self.causes:
                values = np.asarray(trace.column(name, start, start + len(ignored)))
                self.causes[name] += int(values[measured].sum(dtype=np.uint64))
            start += len(ignored)

    def mode_statistics(self, amounts: Sequence[Amount]) -> dict[str, ModeDocument]:
        """Return the statistics of each mode that occurs."""
        modes = self.modes if self._mode is None else {self._mode: self.all_ios}
        by_mode: dict[str, ModeDocument] = {}
        for number, times in modes.items():
            if (statistics := times.summary()) is None:
                continue
            ios_per_s, bytes_per_s = rates([amount.of_mode(number) for amount in amounts])
            by_mode[MODES[number]] = {
                "bytes": self.bytes[number],
                "ios_per_s": ios_per_s,
                "bytes_per_s": bytes_per_s,
                "statistics": statistics,
            }
        return by_mode


def _common_mode(spec: Pattern) -> int | None:
    """Return the number of the mode of all I/Os of a pattern; None if there may be several."""
    if isinstance(spec, Replay):
        return None
    modes = {part.mode for part in spec.parts}
    return MODES.index(modes.pop()) if len(modes) == 1 else None


def describe(
    trace: _native.Trace, info: DeviceInfo, durability: str, power: PowerRecord | None = None
) -> OneRun:
    """Describe a run as plain data: the output of `uflip pattern --json`.

    Returns device, durability, spec, elapsed_ns, ios, bytes, ignored. Of the measured I/Os:
    ios_per_s, bytes_per_s, statistics, components (of a mix), by_mode (with several modes),
    causes_ns (mean per I/O). Of the whole run: counters, write_amplification, energy and power
    where they are known, ended (None, or the end of a run with a stop rule).
    """
    measured = statistics_of([trace])
    statistics = measured.statistics
    assert statistics is not None, "a run has I/Os behind its start-up"
    counters = json.loads(trace.counters_json() or "null")
    document: OneRun = {
        "device": info,
        "durability": durability,
        "spec": read_spec(trace.spec_json),
        "ios": len(trace),
        "ignored": len(trace) - measured.count,
        "bytes": sum(
            int(sizes.sum(dtype="uint64")) for (sizes,) in pieces(trace, ["io_size_bytes"])
        ),
        "elapsed_ns": trace.elapsed_ns(),
        "ios_per_s": measured.ios_per_s,
        "bytes_per_s": measured.bytes_per_s,
        "statistics": statistics,
        "causes_ns": dict(measured.causes_ns),
        "counters": counters,
        "write_amplification": write_amplification(counters, info.page_bytes, trace.bytes_written),
        "ended": None if trace.ended_json is None else json.loads(trace.ended_json),
    }
    if measured.components:
        # A mix may never draw one of its patterns.
        document["components"] = {name: of for name, of in measured.components.items() if of}
    if measured.separate_modes:
        document["by_mode"] = measured.separate_modes
    energy = summarise_energy(
        counters, [] if power is None else [power], len(trace), document["bytes"],
        document["elapsed_ns"],
    )  # fmt: skip
    if energy is not None:
        document["energy"] = energy
    if power is not None:
        document["power"] = power
    return document


def write_amplification(
    counters: Mapping[str, int] | None, page_bytes: int | None, host_bytes: int
) -> float | None:
    """Return bytes programmed, for any reason, divided by bytes that the host wrote.

    A write of 512 bytes that programs a page of 16 KiB has a write amplification of 32. Counted in
    pages it would be 1: one page written, one programmed. The counters of the device stay in pages.
    The closed forms of `uflip.models` count pages too, but for writes of whole pages, where both
    are equal. OFC (§V.C) counts only the extra pages, which gives a value that is smaller by one.

    `counters`: those of the device, of which `pages_programmed` is used. `page_bytes`: their unit,
    a flash page or a smaller mapping unit. `host_bytes`: bytes that the host wrote in the same
    time.

    >>> write_amplification({"pages_programmed": 10}, 16384, 10 * 512)
    32.0
    """
    programmed = (counters or {}).get("pages_programmed")
    if programmed is None or page_bytes is None or not host_bytes:
        return None
    return float(programmed * page_bytes / host_bytes)


Times = NDArray[np.uint64]
EDGE_ROUNDS = 2
"""Number of rounds at the begin that are compared with as many at the end."""


@dataclass(frozen=True)
class Amount:
    """I/Os and bytes completed in the measured part of a run."""

    ios: float  #: Number of I/Os.
    #: Their total size, and the time that they took, pauses included.
    size_bytes: float
    elapsed_ns: float
    #: Number of a mode -> its shares of the I/Os and of the bytes.
    modes: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def of_mode(self, number: int) -> Amount:
        """Return the amount of one mode in the same time."""
        ios, size = self.modes.get(number, (0.0, 0.0))
        return Amount(ios * self.ios, size * self.size_bytes, self.elapsed_ns)


def measured_amount(trace: _native.Trace, mode: int | None = None) -> Amount:
    """Return the I/Os and bytes completed in the steady part of a run, and the elapsed time.

    ::

        under way   4  |    ______________________
                    3  |   |                      |_
                    2  |  _|                      | |_
                    1  | |                        |   |_
                       +------------------------------------> time
                         filled  steady            run out

    **Source**: operational analysis: P. Denning, J. Buzen, *The operational analysis of queueing
    network models* (Computing Surveys 1978): throughput is completions over the time that they
    take.
    **Faithful**: with several I/Os in flight, completions are counted while all streams are past
    their start-up and still submit: neither while a queue fills, nor while it runs out.
    **Simplified**: a *round* is as many completions as there are I/Os in flight. The elapsed time
    is that from each completion of the first two rounds to its peer in the last two, on average. So
    the begin of counting does not matter, between two bursts of completions, or between a fast I/O
    and a slow one of each stream. Servers whose I/Os take at least s complete no more than one each
    in any s. Where their number divides a round, no such time is shorter than they need, and the
    result never exceeds their capacity. I/Os of several pages, which are served in turn, are half
    done when counting begins: that overstates by a share of a round.
    **Ambiguous**: with one I/O in flight no queue fills or runs out, and a run of fewer than two
    rounds has no steady part. Then all measured I/Os count, from the submission of the first to the
    completion of the last. With several in flight that understates, by a round at most.

    A run of more than `PIECE_IOS` I/Os is read a part at a time. A round of it is as many
    completions as the total depth of all queues, which equals the I/Os in flight wherever the
    queues are full.

    `mode` is the number of the mode of all I/Os, if they share one: then its column is not read.
    """
    if len(trace) > PIECE_IOS:
        return _long_run_amount(trace)
    measured = as_array(trace, "ignored") == 0
    if not measured.any():
        return Amount(0, 0, 0)
    began, sizes = as_array(trace, "submit_ns"), as_array(trace, "io_size_bytes")
    modes = as_array(trace, "mode") if mode is None else np.full(len(trace), mode, dtype=np.uint8)
    completed = began + as_array(trace, "response_time_ns")
    most = max_in_flight(began, completed)
    if most > 1:
        begin, end = _full_queues_span(trace)
        inside = (begin <= completed) & (completed <= end)
        steady = _rounds(completed[inside], sizes[inside], most)
        if steady is not None:
            return _ModeTotals().add(modes[inside], sizes[inside]).divide(steady)
    elapsed = completed[measured].max() - began[measured].min()
    whole = Amount(int(measured.sum()), float(sizes[measured].sum(dtype=np.uint64)), float(elapsed))
    return _ModeTotals().add(modes[measured], sizes[measured]).divide(whole)


class _ModeTotals:
    """Numbers of I/Os and bytes of each mode."""

    def __init__(self) -> None:
        self.ios: dict[int, int] = {}
        self.bytes: dict[int, int] = {}

    def add(self, modes: NDArray[np.uint8], sizes: NDArray[np.uint32]) -> _ModeTotals:
        for mode in np.unique(modes).tolist():
            in_mode = modes == mode
            self.ios[mode] = self.ios.get(mode, 0) + int(in_mode.sum())
            size = int(sizes[in_mode].sum(dtype=np.uint64))
            self.bytes[mode] = self.bytes.get(mode, 0) + size
        return self

    def divide(self, amount: Amount) -> Amount:
        """Return the same amount with the shares of the modes in it."""
        ios, size = sum(self.ios.values()), sum(self.bytes.values())
        modes = {
            mode: (count / ios, self.bytes[mode] / size if size else 0.0)
            for mode, count in self.ios.items()
        }
        return Amount(amount.ios, amount.size_bytes, amount.elapsed_ns, modes)


def _long_run_amount(trace: _native.Trace) -> Amount:
    """Compute `measured_amount` with one part of the run in memory at a time."""
    depths = _queue_depths(read_spec(trace.spec_json))
    most = sum(depths)
    begin, end, first, last = _long_run_span(trace, depths)
    steady, whole = _ModeTotals(), _ModeTotals()
    heads = _Extremes(EDGE_ROUNDS * most, largest=False)
    tails = _Extremes((EDGE_ROUNDS + 1) * most, largest=True)
    names = ["ignored", "submit_ns", "response_time_ns", "io_size_bytes", "mode"]
    for ignored, began, took, sizes, modes in pieces(trace, names):
        completed, measured = began + took, ignored == 0
        whole.add(modes[measured], sizes[measured])
        if most > 1:
            inside = (begin <= completed) & (completed <= end)
            steady.add(modes[inside], sizes[inside])
            heads.add(completed[inside], sizes[inside])
            tails.add(completed[inside], sizes[inside])
    count, size = sum(steady.ios.values()), sum(steady.bytes.values())
    if most > 1 and count >= 2 * EDGE_ROUNDS * most:
        rounds = count // most
        distance = (rounds - EDGE_ROUNDS) * most
        # Ranks are counted from the end: the rest of the last round comes after all rounds.
        begins, ends = count - rounds * most, count - distance
        at, sizes = (column[len(column) - ends : len(column) - begins] for column in tails.values())
        behind = tails.values()[1].astype(np.float64)
        done_at_end = size - (behind.sum() - np.cumsum(behind)[len(behind) - ends :])[: len(at)]
        first_at, first_sizes = heads.values()
        done_at_first = np.cumsum(first_sizes.astype(np.float64))
        took_ns = float((at - first_at[0]).mean() - (first_at - first_at[0]).mean())
        done = float((done_at_end - done_at_first).mean())
        return steady.divide(Amount(distance, done, took_ns))
    if not whole.ios:
        return Amount(0, 0, 0)
    done = sum(whole.bytes.values())
    return whole.divide(Amount(sum(whole.ios.values()), float(done), float(last - first)))


def _queue_depths(spec: Pattern) -> list[int]:
    """Return the queue depth of each process of a complete pattern."""
    if isinstance(spec, Parallel):
        return [depth for each in spec.patterns for depth in _queue_depths(each)]
    processes = 1 if isinstance(spec, Mix) else getattr(spec, "processes", 1)
    return [spec.queue_depth or 1] * processes


class _Extremes:
    """The smallest, or largest, of all added times, with the sizes of their I/Os."""

    def __init__(self, count: int, *, largest: bool) -> None:
        self.count, self.largest = count, largest
        self._at: Times = np.zeros(0, dtype=np.uint64)
        self._sizes: NDArray[np.uint32] = np.zeros(0, dtype=np.uint32)

    def add(self, at: Times, sizes: NDArray[np.uint32]) -> None:
        if not self.largest and len(self._at) == self.count and len(at):
            near = at < self._at[-1]
            at, sizes = at[near], sizes[near]
        elif self.largest and len(self._at) == self.count and len(at):
            near = at >= self._at[0]
            at, sizes = at[near], sizes[near]
        at, sizes = np.concatenate([self._at, at]), np.concatenate([self._sizes, sizes])
        # Of equal times the I/O that was submitted first comes first, as in the trace.
        order = np.argsort(at, kind="stable")
        order = order[-self.count :] if self.largest else order[: self.count]
        self._at, self._sizes = at[order], sizes[order]

    def values(self) -> tuple[Times, NDArray[np.uint32]]:
        """Return times and sizes (count,) in the order of time."""
        return self._at, self._sizes


def _long_run_span(trace: _native.Trace, depths: list[int]) -> tuple[int, int, int, int]:
    """Return the result of `_full_queues_span`, and the first submission and last completion [ns].

    The first k completions of a queue of depth d are among its first k + d - 1 I/Os, since no later
    I/O was submitted before. So the completion that ends a start-up is the d-th last of these.
    """
    begin, end, first, last = 0, None, None, 0
    start = 0
    for depth, (total, ignored) in zip(depths, _lengths(trace, len(depths)), strict=True):
        candidates = min(ignored + depth, total)
        last_count = candidates - min(ignored, total - 1)
        ends = _Extremes(last_count, largest=True)
        submitted = 0
        for at in range(start, start + total, PIECE_IOS):
            stop = min(at + PIECE_IOS, start + total)
            began = np.asarray(trace.column("submit_ns", at, stop))
            completed = began + np.asarray(trace.column("response_time_ns", at, stop))
            early = completed[: max(start + candidates - at, 0)]
            ends.add(early, np.zeros(len(early), dtype=np.uint32))
            submitted = max(submitted, int(began.max()))
            measured = slice(max(start + ignored - at, 0), None)
            if len(began[measured]):
                lowest = int(began[measured].min())
                first = lowest if first is None else min(first, lowest)
                last = max(last, int(completed[measured].max()))
        begin = max(begin, int(ends.values()[0][0]))
        end = submitted if end is None else min(end, submitted)
        start += total
    assert end is not None, "there is a process"
    return begin, end, first or 0, last


def _lengths(trace: _native.Trace, processes: int) -> list[tuple[int, int]]:
    """Return for each process the number of its I/Os, and of the ignored ones."""
    totals, ignored = np.zeros(processes, dtype=int), np.zeros(processes, dtype=int)
    for stream, is_ignored in pieces(trace, ["stream", "ignored"]):
        totals += np.bincount(stream, minlength=processes)
        ignored += np.bincount(stream[is_ignored > 0], minlength=processes)
    return list(zip(totals.tolist(), ignored.tolist(), strict=True))


def rates(amounts: Iterable[Amount]) -> tuple[float | None, float | None]:
    """Return I/Os and bytes per second of consecutive runs; None if no time passed.

    >>> rates([Amount(100, 409_600, 10**9), Amount(200, 819_200, 2 * 10**9)])
    (100.0, 409600.0)
    """
    every = list(amounts)
    seconds = sum(each.elapsed_ns for each in every) / 1e9
    if not seconds:
        return None, None
    ios, size = sum(each.ios for each in every), sum(each.size_bytes for each in every)
    return ios / seconds, size / seconds


def max_in_flight(began: Times, completed: Times) -> int:
    """Return the largest number of I/Os in flight, from submissions and completions (n,) [ns].

    >>> max_in_flight(np.array([0, 0, 5, 10]), np.array([5, 20, 10, 12]))
    2
    """
    submitted = np.sort(began, kind="stable")
    completed_before = np.searchsorted(np.sort(completed, kind="stable"), submitted, side="right")
    return max(int((np.arange(1, len(submitted) + 1) - completed_before).max()), 1)


def _full_queues_span(trace: _native.Trace) -> tuple[int, int]:
    """Return the time when all streams are past their start-up, and when one submits its last [ns].

    A start-up ends with as many completions as there are ignored I/Os: when the first measured I/O
    is submitted, all earlier I/Os of a queue are still in flight.
    """
    began, measured = as_array(trace, "submit_ns"), as_array(trace, "ignored") == 0
    completed = began + as_array(trace, "response_time_ns")
    firsts = np.flatnonzero(np.diff(as_array(trace, "stream").astype(int))) + 1
    begin, end = 0, None
    for arrays in zip(
        *(np.split(each, firsts) for each in (began, completed, measured)), strict=True
    ):
        submitted, stream_completed, counts = arrays
        ignored = min(int(np.count_nonzero(~counts)), len(stream_completed) - 1)
        begin = max(begin, int(np.partition(stream_completed, ignored)[ignored]))
        end = int(submitted.max()) if end is None else min(end, int(submitted.max()))
    assert end is not None, "there is an I/O"
    return begin, end


def _rounds(completed: Times, sizes: NDArray[np.uint32], most: int) -> Amount | None:
    """Return the amount completed in whole rounds; None with fewer than two.

    `ended` (n,) [ns] are completions in any order, and `sizes` (n,) [bytes] those of their I/Os.
    """
    rounds = len(completed) // most
    if rounds < 2:
        return None
    distance = (rounds - (EDGE_ROUNDS if rounds >= 2 * EDGE_ROUNDS else 1)) * most
    first, last = slice(0, rounds * most - distance), slice(distance, rounds * most)
    order = np.argsort(completed, kind="stable")
    at = (completed - completed[order[0]])[order].astype(np.float64)
    done = np.cumsum(sizes[order], dtype=np.float64)
    took = (at[last] - at[first]).mean()
    return Amount(distance, float((done[last] - done[first]).mean()), float(took))
