"""The keys of the plan file and their types: `docs/reference/plan-file.md`.

The native part checks a `spec` and a `state` against the device; a state is a table here. Names
become file names and parts of ids, so they are plain words.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from uflip.data.document import MAX_RUNS, Count, DocumentKind, Positive, Table
from uflip.data.spec import Spec
from uflip.errors import UsageError

KIND = DocumentKind(
    "plan",
    16 << 20,
    "correct it, or write a new one with `uflip plan DEVICE --out FILE`",
    UsageError,
    format="uflip-plan",
)

Word = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
PatternName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.+/-]{1,100}$")]
# A file name: it does not begin with a dot, and leaves room for endings in 255 bytes.
RunId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}$")]
# Limit of a plan that ends in reasonable time.
Repetitions = Annotated[int, Meta(ge=1, le=1000)]
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class PlanRunEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A table `[[runs]]`."""

    id: RunId
    micro_benchmark: Word
    pattern: PatternName
    parameter: Word
    value: Whole
    unit: Literal["", "bytes", "bytes/s", "ns", "ios"]
    spec: Spec
    repetition: Repetitions = 1
    reset_before: bool = False


class PlanFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    format: str
    format_version: int
    scale: str
    seed: Count
    repetitions: Repetitions
    pause_ns: Count
    target_size_bytes: Positive
    durability: str
    device: Table
    runs: Annotated[list[Table], Meta(max_length=MAX_RUNS)]
    """Each a `PlanRunEntry`: checked one by one, so that an error can name the run."""
    state: Table | None = None
    method: str = "auto"
