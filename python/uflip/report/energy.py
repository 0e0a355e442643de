"""The energy of runs: lines of text, and tables."""

from uflip.data.energy import MARKS, SIMULATED, EnergySummary
from uflip.data.summary import Summary, experiments_of
from uflip.microbench.labels import format_value
from uflip.results.causes import cause_name
from uflip.table import Table

LARGEST = 4
"""Number of causes in one line."""
OTHERS = {"memory": "memory (DRAM)", "idle": "idle power"}


def energy_cause(cause: str) -> str:
    """Return the name of a cause of energy: that of the same cause of time.

    Examples
    --------
    >>> energy_cause("cell_read"), energy_cause("idle")
    ('cell read (tR)', 'idle power')
    """
    return OTHERS.get(cause) or cause_name(f"{cause}_ns")


def energy_facts(energy: EnergySummary) -> list[tuple[str, str]]:
    """Return the energy of a run as labels and texts."""
    source = "computed" if energy["source"] == SIMULATED else f"measured by {energy['source']}"
    doubts = ", ".join(MARKS[mark] for mark in energy["marks"])
    if energy["joules"] is None:
        return [("energy", f"unknown: {doubts or 'no measurement'}")]
    error = f" ± {_number(energy['error_joules'])}" if energy["source"] != SIMULATED else ""
    text = (
        f"{_number(energy['joules'])}{error} J {source}, mean {_number(energy['mean_watts'])} W; "
        f"{_number(energy['uj_per_io'])} µJ per I/O, {_number(energy['nj_per_byte'])} nJ per byte"
    )
    facts = [("energy", text)]
    if shares := _shares(energy):
        facts.append(("energy spent on", shares))
    if doubts:
        facts.append(("energy, doubts", doubts))
    return facts


def _shares(energy: EnergySummary, most: int | None = None) -> str:
    causes = {name: joules for name, joules in energy["by_cause_joules"].items() if joules}
    total = sum(causes.values())
    ordered = sorted(causes.items(), key=lambda item: -item[1])[:most]
    return ", ".join(f"{energy_cause(name)} {joules / total:.1%}" for name, joules in ordered)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def energy_table(document: Summary, *, full: bool) -> Table | None:
    """Return a row for each experiment whose energy is known: of the baselines, or of all."""
    rows = [
        [
            run["pattern"],
            "–" if run["value"] is None else format_value(run["value"], run["unit"]),
            name,
            *(
                _number(number)
                for number in (
                    energy["joules"], energy["mean_watts"], energy["uj_per_io"],
                    energy["nj_per_byte"],
                )
            ),
            _shares(energy, LARGEST)
            or ", ".join(MARKS[mark] for mark in energy["marks"])
            or f"± {_number(energy['error_joules'])} J",
        ]
        for name, run in experiments_of(document)
        if (full or name == "baseline") and (energy := run.get("energy")) is not None
    ]  # fmt: skip
    if not rows:
        return None
    head = [
        "pattern", "value", "micro-benchmark", "J", "W", "µJ per I/O", "nJ per byte",
        "largest causes, or error and doubts",
    ]  # fmt: skip
    return Table(head, rows, "lllrrrrl", "Energy of all repetitions, start-up included")


def causes_table(document: Summary) -> Table | None:
    """Return the energy of the baselines by cause [J]; None if it is not known by cause."""
    runs = [
        (run["pattern"], energy["by_cause_joules"])
        for run in document["baselines"]
        if (energy := run.get("energy")) is not None and energy["by_cause_joules"]
    ]
    if not runs:
        return None
    rows = [
        [energy_cause(cause), *(_number(causes[cause]) for _, causes in runs)]
        for cause in runs[0][1]
        if any(causes[cause] for _, causes in runs)
    ]
    head = ["energy [J]", *(pattern for pattern, _ in runs)]
    return Table(head, rows, "lr", "Energy by cause")
