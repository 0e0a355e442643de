"""Names and number formats of a report."""

import re
from hashlib import blake2b

from uflip.data.summary import StatisticsSummary
from uflip.escape import escape_text
from uflip.microbench import MICRO_BENCHMARKS
from uflip.microbench.labels import parameter_name

# An id must be unique, but need not be readable.
MAX_ANCHOR = 60
# A longer text would fill the whole figure.
MAX_TEXT = 100


def anchor(name: str) -> str:
    """Return an HTML id for a name: letters, digits, - and _; different for different names.

    Examples
    --------
    >>> anchor("granularity"), anchor("<b>")
    ('granularity', '-b--381c882d')
    """
    slug = re.sub(r"[^A-Za-z0-9_-]", "-", name)[:MAX_ANCHOR]
    if slug == name:
        return slug
    return f"{slug}-{blake2b(name.encode(errors='replace'), digest_size=4).hexdigest()}"


def safe_text(written: str) -> str:
    """Return a text that is safe in XML and on a screen, cut to the space in a figure."""
    clean = escape_text(written)
    return f"{clean[:MAX_TEXT]}…" if len(clean) > MAX_TEXT else clean


def title(micro_benchmark: str) -> str:
    """Return the heading of a micro-benchmark; unknown ones keep their own name."""
    about = MICRO_BENCHMARKS.get(micro_benchmark)
    return about.title if about else micro_benchmark.replace("_", " ").capitalize()


WORDS = {
    "io_size": "size of an I/O",
    "io_shift": "shift of the addresses",
    "target_size": "size of the area",
    "partitions": "partitions",
    "incr": "increment of the address",
    "parallel_degree": "processes",
    "pause": "pause between I/Os",
    "burst": "I/Os between pauses",
}
"""Varied parameters in words."""


def axis_words(parameter: str | None, unit: str | None) -> str:
    """Return the axis label in words, with the paper's name of the parameter.

    Examples
    --------
    >>> axis_words("io_size", "bytes"), axis_words("queue_depth", "")
    ('size of an I/O (IOSize)', 'queue depth')
    """
    name = parameter_name(parameter)
    if parameter == "ratio":
        return f"{name} (I/Os of the first : second pattern)"
    if parameter == "first_percent":
        return "share of the first pattern [%]"
    if words := WORDS.get(parameter or ""):
        return f"{words} ({name})"
    return f"{name} [I/Os]" if unit == "ios" else name.replace("_", " ")


def format_ms(duration_ns: float | None) -> str:
    """Return a response time in ms with three significant digits; "–" for None.

    One unit throughout a table makes values comparable: 0.0421, 0.421, 4.21, 42.1, 421.

    Examples
    --------
    >>> format_ms(42_123), format_ms(4_212_345), format_ms(421_234_500), format_ms(None)
    ('0.0421', '4.21', '421', '–')
    """
    if duration_ns is None:
        return "–"
    ms = duration_ns / 1e6
    if ms == 0:
        return "0"
    if ms >= 1000:
        return f"{ms:,.0f}"
    text = f"{ms:.3g}"
    # %g turns to exponents below 1e-4; a nanosecond is 1e-6 ms and is written out.
    return f"{ms:.8f}".rstrip("0") if "e" in text else _padded(text)


def _padded(text: str) -> str:
    """Add the trailing zeros that %g drops, so that three digits are always shown."""
    digits = len(text.replace(".", "").lstrip("0"))
    if digits >= 3:
        return text
    return text + ("" if "." in text else ".") + "0" * (3 - digits)


def tail_percentile(statistics: StatisticsSummary) -> tuple[str, int | None]:
    """Return the highest percentile up to p99 that the sample supports, with its name."""
    tails = (
        ("p99", statistics["p99_ns"]),
        ("p95", statistics["p95_ns"]),
        ("p90", statistics["p90_ns"]),
    )
    for name, ns in tails:
        if ns is not None:
            return name, ns
    return "max", statistics["max_ns"]


COUNTERS = {
    "pages_relocated": "valid pages copied",
    "pages_read_to_modify": "pages read for read-modify-write",
    "pages_absorbed": "cache-coalesced writes",
    "pages_padded": "padding of flash pages",
    "blocks_collected": "blocks garbage-collected",
    "blocks_collected_idle": "blocks garbage-collected while idle",
}
"""Counters of a device, likewise."""


def counter_name(counter: str) -> str:
    """Return the name of a counter.

    Examples
    --------
    >>> counter_name("pages_relocated"), counter_name("blocks_erased")
    ('valid pages copied', 'blocks erased')
    """
    return COUNTERS.get(counter, counter.replace("_", " "))
