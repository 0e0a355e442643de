"""The inside of a device: the properties that `uflip infer` found, as text and as a section."""

from collections.abc import Iterator, Sequence
from statistics import median

from uflip.data.inference import Property, StoredInference, TwinError
from uflip.report.blocks import Block, Paragraph, Table
from uflip.report.labels import title
from uflip.units import format_duration_ns, format_size

EVIDENCE = "The figures of the probes are the evidence: each is among the micro-benchmarks."


def value_text(found: Property) -> str:
    """Return the value of a property with its unit."""
    return "not identified" if found.value is None else format_property(found.key, found.value)


def interval_text(found: Property) -> str:
    """Return the 90 % interval of a property; empty without one."""
    if found.low is None or found.high is None:
        return ""
    if found.low == found.high:
        return "exact"
    return f"{format_property(found.key, found.low)} to {format_property(found.key, found.high)}"


def format_property(key: str, value: float | str) -> str:
    """Return a value with the unit of its key.

    Examples
    --------
    >>> format_property("erase_ns", 2_000_000), format_property("spare_factor", 0.15)
    ('2 ms', '0.1500')
    """
    if isinstance(value, str):
        return value
    if key.endswith("_ns"):
        return format_duration_ns(value)
    if key.endswith("_bytes_per_s"):
        return f"{value / 1e6:,.1f} MB/s"
    if key.endswith("_bytes"):
        return format_size(int(value))
    return f"{value:.4f}" if isinstance(value, float) and value < 1 else str(value)


def check_text(errors: Sequence[TwinError]) -> str:
    """Return how well the twin predicts the probes; empty without a twin."""
    if not errors:
        return ""
    worst = max(errors, key=lambda each: abs(each.error))
    half = median(abs(each.error) for each in errors)
    return (
        f"A twin with these properties differs from the mean of a probe's run by {half:.1%} in the "
        f"median of {len(errors)} runs, and by {abs(worst.error):.1%} at most "
        f"({title(worst.probe)}, {worst.pattern})."
    )


def inside(found: StoredInference | None) -> list[Block]:
    """Return the section; empty without an inference."""
    return [] if found is None else list(_blocks(found))


def _blocks(found: StoredInference) -> Iterator[Block]:
    rows = [
        (each.key, value_text(each), interval_text(each), title(each.probe), each.reason)
        for each in found.properties
    ]
    yield Paragraph("Inferred from response times alone. " + EVIDENCE)
    yield Table(
        ("property", "value", "90 % interval", "probe", "how, or why not"),
        rows,
        caption="Properties of the device",
    )
    if found.errors:
        yield Paragraph(check_text(found.errors))
    if found.why_no_twin:
        yield Paragraph(f"No twin: {found.why_no_twin}.")
