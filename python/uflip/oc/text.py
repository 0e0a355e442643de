"""Results of an open-channel benchmark as text for a terminal."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np

from uflip.data.summary import Rule, Summary
from uflip.microbench.open_channel.scaling import Scaling
from uflip.microbench.open_channel.series import READ, WRITE, ResponseSeries
from uflip.oc.benchmark import OpenChannelFindings, format_times, times_summary
from uflip.oc.result_dir import OpenChannelResult
from uflip.report.text import format_warnings, head
from uflip.table import Table

WIDTH = 96


def text_of(result: OpenChannelResult, document: Summary) -> str:
    """Return the text of a result folder; `document` is its summary."""
    parts = [
        head(document),
        render(result.measured, result.rules),
        format_warnings(document["warnings"]),
    ]
    return "\n\n".join(part for part in parts if part)


def render(measured: OpenChannelFindings, rules: Sequence[Rule]) -> str:
    """Return the tables, then the rules."""
    parts = []
    if measured.oc0:
        write, read = measured.oc0.write_mb_per_s, measured.oc0.read_mb_per_s
        parts += [
            "oc0: one LUN, one thread",
            _times(measured.oc0.mixes, measured.oc0.throughput),
            f"every LUN alone: writes {_range(write)} MB/s, reads {_range(read)} MB/s",
        ]
    if measured.oc1:
        worn = measured.oc1
        first = worn.first_failure()
        parts += [
            f"oc1: block {':'.join(map(str, worn.block))} erased {worn.cycles:,} times",
            f"  pages                  {worn.pages}, written and read each time\n"
            f"  first failing read     {'none' if first is None else f'{first:,} erases'}\n"
            f"  failing reads at last  {worn.failing_share()[-1]:.1%}\n"
            f"  failed writes          {int(worn.failed_writes.sum())}\n"
            f"  erase                  {worn.erase_ms[0]:.2f} ms at first, "
            f"{worn.erase_ms[-1]:.2f} ms at last"
            + ("\n  the last erase failed" if worn.erase_failed else ""),
        ]
    if measured.oc2:
        parts += ["oc2: LUNs of one channel", _scaling_rows(measured.oc2)]
    if measured.oc3:
        everything = measured.oc3.all_luns
        parts += [
            "oc3: channels",
            _scaling_rows(measured.oc3.scaling),
            "a thread for every LUN: "
            + ", ".join(f"{word} {value:.0f} MB/s" for word, value in everything.items()),
            _times(measured.oc3.mixes, measured.oc3.throughput),
        ]
    parts += ["The unwritten contract, revisited", _rules(rules)]
    return "\n\n".join(parts)


def _range(values: np.ndarray) -> str:
    return f"{values.min():.1f} to {values.max():.1f}"


def _times(mixes: Mapping[str, ResponseSeries], throughput: Mapping[str, float]) -> str:
    head = ("mix", "MB/s", "", "mean [ms]", "p5", "p50", "p95", "max")
    rows = []
    for mix, series in mixes.items():
        for op, word in ((WRITE, "writes"), (READ, "reads")):
            times = times_summary(series, op)
            if times is None:
                continue
            mean, p5, p50, p95, _, most = format_times(times, 2)
            rows.append((mix, f"{throughput[mix]:.2f}", word, mean, p5, p50, p95, most))
    return Table(head, rows, "lr").text("  ")


def _scaling_rows(scalings: Mapping[str, Scaling]) -> str:
    rows: list[tuple[str, ...]] = []
    for kind, scaling in scalings.items():
        factors = scaling.factors()
        rows += [
            (kind, scaling.degree_name(degree), f"{value:.2f}", f"{factors[degree]:.2f}")
            for degree, value in scaling.mb_per_s.items()
        ]
    return Table(("", "", "MB/s", "factor"), rows, "lr").text("  ")


def _rules(rules: Sequence[Rule]) -> str:
    def paragraph(number: int, rule: Rule) -> str:
        text = f"{number}. {rule.name} ({rule.says}): {rule.verdict}. {rule.evidence}"
        return textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="     ")

    return "\n".join(paragraph(number, rule) for number, rule in enumerate(rules, start=1))
