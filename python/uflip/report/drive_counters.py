"""The counters of a drive in words: in the text summary, the report and the explorer."""

from uflip.data.counters import CONDITIONS, Counter, CounterChange, DriveCounters
from uflip.data.summary import Summary, experiments_of
from uflip.microbench.labels import format_value
from uflip.table import Table
from uflip.units import format_count, format_size

IMPLIED = (
    "implied: the rate of sequential writes over that of random writes; the drive does not report "
    "its physical writes"
)
CONDITION_NAMES = {
    "temperature_celsius": ("temperature", "°C"),
    "available_spare_percent": ("available spare", "%"),
    "percentage_used": ("endurance used", "%"),
}
MARKS = {
    "not_read": "not read",
    "went_back": "went back",
    "wrapped": "wrapped",
    "power_lost": "power lost or reset",
    "too_few_steps": "too small a difference",
    "others_wrote": "others wrote",
    "several_runs": "of several runs",
}


def drive_facts(document: Summary) -> list[tuple[str, str]]:
    """Return what the counters of a drive say about all runs: labels and texts; maybe none."""
    drive = document["drive"]
    if drive is None:
        return []
    facts = [] if drive.change is None else change_facts(drive.change)
    counters = drive.counters
    if counters is not None and counters.shared:
        facts.append(("scope", f"the counters are those of the whole drive: {counters.shared}"))
    if counters is not None and counters.problem and not facts:
        facts.append(("counters", f"unknown: {counters.problem}"))
    if drive.implied_write_amplification is not None:
        text = f"{drive.implied_write_amplification:.3g} ({IMPLIED})"
        facts.append(("write amplification, implied", text))
    return facts


def change_facts(change: CounterChange) -> list[tuple[str, str]]:
    """Return the change of the counters during one run, or several: labels and texts."""
    facts = [
        ("written by the host", _amount(change.host_written, change.unit)),
        ("written physically", _amount(change.physical_written, change.unit)),
        ("write amplification", _amplification(change)),
    ]
    for name, (label, unit) in CONDITION_NAMES.items():
        values = [_condition(values, name) for values in (change.before, change.after)]
        if None not in values:
            before, after = values
            same = f"{before} {unit}" if before == after else f"{before} to {after} {unit}"
            facts.append((label, same))
    facts.append(("doubts", _doubts(change)))
    return [(label, text) for label, text in facts if text]


def _condition(values: dict[str, int], name: str) -> int | None:
    return next((n for each, n in values.items() if each.partition(".")[2] == name), None)


def _amount(amount: int | None, unit: str) -> str:
    if amount is None:
        return ""
    return format_size(amount) if unit == "bytes" else f"{format_count(amount)} {unit}"


def _amplification(change: CounterChange) -> str:
    if change.write_amplification is None:
        return ""
    error = f" ± {100 * change.relative_error:.2g} %" if change.relative_error >= 0.001 else ""
    return f"{change.write_amplification:.3f}{error} (source: {change.source})"


def _doubts(change: CounterChange) -> str:
    return ", ".join(
        " ".join(
            part
            for part in (mark.counter, MARKS[mark.code], f"({mark.detail})" if mark.detail else "")
            if part
        )
        for mark in change.marks
    )


def runs_table(document: Summary) -> Table | None:
    """Return a row for each experiment whose runs have counters; None without any."""
    rows = [
        [
            run["pattern"],
            "–" if run["value"] is None else format_value(run["value"], run["unit"]),
            name,
            _amount(change.host_written, change.unit) or "–",
            _amount(change.physical_written, change.unit) or "–",
            _amplification(change).partition(" (")[0] or "–",
            *(_before_and_after(change, condition) for condition in CONDITIONS),
            _doubts(change) or "–",
        ]
        for name, run in experiments_of(document)
        if (change := run.get("drive")) is not None
    ]
    if not rows:
        return None
    head = [
        "pattern", "value", "micro-benchmark", "host", "physical", "write amplification",
        *(f"{label} [{unit}]" for label, unit in CONDITION_NAMES.values()), "doubts",
    ]  # fmt: skip
    return Table(head, rows, "lllrrrrrrl", "Counters of the drive, before and after each run")


def _before_and_after(change: CounterChange, name: str) -> str:
    before, after = (_condition(values, name) for values in (change.before, change.after))
    if before is None or after is None:
        return "–"
    return str(before) if before == after else f"{before} – {after}"


def counters_tables(counters: DriveCounters) -> list[Table]:
    """Return the known counters of a drive, and what is not known."""
    tables = []
    if counters.counters:
        rows = [
            [each.name.replace("_", " "), _value(each), each.source] for each in counters.counters
        ]
        tables.append(Table(["counter", "value", "source"], rows, "lrl"))
    if counters.sources:
        rows = [[each.id, each.name, each.problem or "read"] for each in counters.sources]
        tables.append(Table(["source", "page", "status"], rows, "lll"))
    if counters.unknown:
        rows = [
            [each.source, each.name, "–" if each.raw is None else format_count(each.raw)]
            for each in counters.unknown
        ]
        tables.append(Table(["source", "unknown counter", "raw value"], rows, "llr"))
    return tables


def _value(counter: Counter) -> str:
    if counter.unit == "bytes":
        return f"{format_size(counter.value)} ({counter.value} bytes)"
    return f"{format_count(counter.value)} {counter.unit}".rstrip()
