"""Jobs over physical addresses (uFLIP-OC), as documents: see `uflip.data.spec`."""

from typing import Literal

from msgspec import Struct

from uflip.data.document import Text
from uflip.data.spec_base import Spec, SpecBase, Whole


class Job(SpecBase, Spec, frozen=True):
    """Commands to pages of an open-channel device; `docs/reference/open-channel.md`.

    Attributes
    ----------
    kind : str or None
        "pages" (None is the same), or "wear": cycles of one block until it fails.
    first_channel, channels, first_lun, luns, first_block, blocks, first_page, pages : int or None
        The range of pages.
    mix : str or None
        Letters W and R, repeated without end.
    threads, vector : int or None
        Threads; pages of all planes per command.
    sleep : int or None
        Time between commands [ns].
    iteration : str or None
        "sequential", "round_robin" or "isolated".
    repeat : int or None
        Number of repetitions of the whole job.
    """

    kind: Literal["pages", "wear"] | None = None
    first_channel: Whole | None = None
    channels: Whole | None = None
    first_lun: Whole | None = None
    luns: Whole | None = None
    first_block: Whole | None = None
    blocks: Whole | None = None
    first_page: Whole | None = None
    pages: Whole | None = None
    mix: Text | None = None
    threads: Whole | None = None
    vector: Whole | None = None
    sleep: Whole | None = None
    iteration: Text | None = None
    repeat: Whole | None = None

    @property
    def wears_out(self) -> bool:
        """Whether it sacrifices a block."""
        return self.kind == "wear"


class JobTotals(Struct, frozen=True):
    """The size of a job: commands, pages of all planes, blocks, and bytes."""

    total_ios: Whole
    pages_read: Whole
    pages_written: Whole
    blocks_erased: Whole
    bytes_read: Whole
    bytes_written: Whole
