"""The table of accuracy: results of simulated devices at each scale, compared with long runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from uflip import api
from uflip.accuracy.claims import (
    MAX_CLAIM_ERROR,
    MAX_HEADLINE_ERROR,
    Accuracy,
    compare,
    long_run_specs,
)
from uflip.accuracy.long_run import long_run
from uflip.executors import OnStep, ignore, on_all
from uflip.results import Results, summary

SUITES = ("uflip", "today")
SCALES = ("quick", "standard")
DEVICES = (
    "sim:demo", "sim:mtron", "sim:samsung", "sim:dftl",
    "sim:tlc-nvme", "sim:qlc-nvme", "sim:enterprise-nvme", "sim:dramless-nvme",
)  # fmt: skip


@dataclass(frozen=True)
class TableEntry:
    """A result for the table, in its folder; the options are those of `uflip.run`."""

    device: str
    suite: str
    scale: str
    seed: int
    folder: Path
    only: tuple[str, ...] | None = None

    def make(self) -> Path:
        """Make the result, unless it exists; return its folder."""
        if not self.folder.exists():
            api.run(
                self.device, self.folder,
                suite=self.suite, scale=self.scale, seed=self.seed, only=self.only,
            )  # fmt: skip
        return self.folder


@dataclass(frozen=True)
class AccuracyRow:
    """The comparison of a device at a scale with long runs."""

    device: str
    scale: str
    accuracy: Accuracy


def results(entries: Sequence[TableEntry], on_step: OnStep = ignore) -> list[Path]:
    """Make results, concurrently if the executor has several workers."""
    return on_all(TableEntry.make, entries, on_step, lambda each: each.folder.name)


def rows(folders: Sequence[Path], on_step: OnStep = ignore) -> list[AccuracyRow]:
    """Compare finished results with long runs: a row for each simulated device and scale.

    `on_step`: called after each long run, in the order in which they end.
    """
    documents = [summary(Results.load(folder)) for folder in folders]
    specs = [long_run_specs(document) for document in documents]
    # Long runs shared by several results are made once, those of a device one after the other.
    different = {question.name: question for each in specs for question in each.values()}
    runs = on_all(long_run, [*different.values()], on_step, attrgetter("url"))
    answers = dict(zip(different, runs, strict=True))
    table: dict[tuple[str, str], Accuracy] = {}
    for document, each in zip(documents, specs, strict=True):
        key = (document["device"].url, document["scale"])
        accuracy = compare(document, {name: answers[one.name] for name, one in each.items()})
        table[key] = table.get(key, Accuracy()) + accuracy
    return [AccuracyRow(device, scale, accuracy) for (device, scale), accuracy in table.items()]


def format_table(table: Sequence[AccuracyRow], worst: int) -> str:
    """Return the table as Markdown, followed by the worst deviations of each row."""
    lines = [
        f"| device | scale | claims | off by > {MAX_CLAIM_ERROR:.0%} | share | headlines |"
        f" off by > {MAX_HEADLINE_ERROR:.0%} and unmarked | marked | without a steady mean |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_format_row(row.device, row.scale, row.accuracy) for row in table]
    if len(table) > 1:
        whole = sum((row.accuracy for row in table), Accuracy())
        lines.append(_format_row("all", "", whole))
    deviations = [line for row in table for line in _worst_deviations(row, worst)]
    if deviations:
        lines += [
            "", "| device | scale | what is off | reported | long run | ratio |",
            "|---|---|---|---|---|---|", *deviations,
        ]  # fmt: skip
    return "\n".join(lines)


def _format_row(device: str, scale: str, accuracy: Accuracy) -> str:
    claims, off = len(accuracy.claims), len(accuracy.claims_off)
    marked = sum(bool(each.marks) for each in accuracy.headlines)
    cells = [
        device, scale, claims, off, f"{off / claims:.1%}" if claims else "",
        len(accuracy.headlines), len(accuracy.headlines_off), marked,
        sum(not each.settled for each in accuracy.claims),
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def _worst_deviations(row: AccuracyRow, worst: int) -> list[str]:
    accuracy = row.accuracy
    headlines = {id(each) for each in accuracy.headlines_off}
    lines = []
    for each in [*accuracy.headlines_off[:worst], *accuracy.claims_off[:worst]]:
        ratio = "" if each.ratio is None else f"{each.ratio:.2f}"
        name = f"**{each.name}**" if id(each) in headlines else each.name
        cells = row.device, row.scale, name, each.claimed, each.true, ratio
        lines.append("| " + " | ".join(cells) + " |")
    return lines
