"""The papers' closed forms of flash devices, as pure functions of numbers.

========================  =====================================================================
`channel`                 data rate of a flash channel, with and without die interleaving (OFC)
`relocation`              valid pages in a collected block against the spare factor (OFC)
`write_amplification`     page-mapped devices: FIFO, greedy, d-choices, random
`hot_cold`                the same with hot and cold pages, mixed or separated
`reliability`             read retries of flash that wears out
`bast`                    block-mapped devices with log blocks that belong to data blocks (BAST)
`merges`                  Myers & Sinclair's equations: the time of one merge of FAST
`hybrid`                  block-mapped devices with a shared log: FAST
========================  =====================================================================

The models import no runs, traces or devices, and draw nothing at random. All parameters are
keyword-only numbers whose unit is the last word of the name. A value outside its range raises
`uflip.errors.UsageError`.
"""

from uflip.models import (
    bast,
    channel,
    hot_cold,
    hybrid,
    merges,
    reliability,
    relocation,
    write_amplification,
)

__all__ = [
    "bast",
    "channel",
    "hot_cold",
    "hybrid",
    "merges",
    "reliability",
    "relocation",
    "write_amplification",
]
